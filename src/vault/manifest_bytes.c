/*
 * manifest_bytes.c - a manifest as it lies on disk: a head, records in order, the hash of all that.
 *
 * Written and read by the vault alone, on one machine; the hash says whether a disk kept it.
 */
#include "vault/manifest.h"
#include "wire/hash.h"

#define MAGIC "caisson1"

struct record {
	uint32_t path_len, target_len, xattrs_len;
	uint8_t type, is_gone, is_unsure, zero; /* is_gone: the base has it, and this has not */
	uint32_t mode, uid, gid, mtime_ns;
	int64_t mtime_s, ctime_s;
	uint64_t size, ino;
	uint32_t ctime_ns, zero2;
	uint8_t hash[32];
};

static void print_entry(struct str *out, const struct entry *e, bool is_gone)
{
	struct record r = { .path_len = (uint32_t)e->path.len, .is_gone = is_gone };

	if (!is_gone) {
		r.target_len = (uint32_t)e->target.len;
		r.xattrs_len = (uint32_t)e->xattrs.len;
		r.type = (uint8_t)e->type;
		r.is_unsure = e->is_unsure;
		r.mode = e->mode;
		r.uid = e->uid;
		r.gid = e->gid;
		r.mtime_s = e->mtime_s;
		r.mtime_ns = e->mtime_ns;
		r.ctime_s = e->ctime_s;
		r.ctime_ns = e->ctime_ns;
		r.size = e->size;
		r.ino = e->ino;
		memcpy(r.hash, e->hash, sizeof r.hash);
	}
	str_addn(out, &r, sizeof r);
	str_addn(out, e->path.at, e->path.len);
	str_addn(out, e->target.at, r.target_len);
	str_addn(out, e->xattrs.at, r.xattrs_len);
}

struct printing {
	struct str *out;
	uint64_t n_records;
};

static int print_difference(void *ctx, const struct entry *a, const struct entry *b)
{
	struct printing *p = ctx;

	print_entry(p->out, b ? b : a, !b);
	p->n_records++;
	return 0;
}

void manifest_print(const struct manifest *m, const struct manifest *base, struct str *out)
{
	static const struct manifest none;
	struct manifest_head head = { .number = m->number,
		                      .workspace = m->workspace,
		                      .top = m->top,
		                      .base = base ? base->number : 0,
		                      .chain = base ? base->chain + 1 : 0,
		                      .n_layers = m->n_layers };
	struct printing p = { .out = out };
	size_t at = out->len;
	uint8_t sum[HASH_BYTES];
	struct hash h;

	memcpy(head.magic, MAGIC, sizeof head.magic);
	str_addn(out, &head, sizeof head);
	str_addn(out, m->layers, m->n_layers * sizeof m->layers[0]);
	(void)manifest_compare(base ? base : &none, m, print_difference, &p);
	head.n_records = p.n_records;
	if (!out->overflow)
		memcpy(out->data + at, &head, sizeof head);
	hash_init(&h);
	hash_add(&h, (struct span){ str_text(out) + at, out->len - at });
	hash_bytes(&h, sum);
	str_addn(out, sum, sizeof sum);
}

static int broken(struct err *e)
{
	return err_new(e, ERR_INTERNAL, "a checkpoint on disk is broken");
}

int manifest_parse_head(struct span bytes, struct manifest_head *out, struct err *e)
{
	if (bytes.len < sizeof *out)
		return broken(e);
	memcpy(out, bytes.at, sizeof *out);
	if (memcmp(out->magic, MAGIC, sizeof out->magic) != 0 || out->n_layers > VAULT_LAYERS_MAX ||
	    bytes.len < sizeof *out + out->n_layers * sizeof(uint64_t))
		return broken(e);
	return 0;
}

static bool check_sum(struct span bytes)
{
	uint8_t sum[HASH_BYTES];
	struct hash h;

	if (bytes.len < sizeof sum)
		return false;
	hash_init(&h);
	hash_add(&h, (struct span){ bytes.at, bytes.len - sizeof sum });
	hash_bytes(&h, sum);
	return memcmp(sum, bytes.at + bytes.len - sizeof sum, sizeof sum) == 0;
}

static struct span take(struct span *rest, size_t n)
{
	struct span s = { rest->at, n };

	*rest = span_after(*rest, n);
	return s;
}

/* Borrows from the bytes. */
static bool parse_record(struct span *rest, struct entry *out, bool *is_gone)
{
	struct record r;

	if (rest->len < sizeof r)
		return false;
	memcpy(&r, rest->at, sizeof r);
	*rest = span_after(*rest, sizeof r);
	if ((uint64_t)r.path_len + r.target_len + r.xattrs_len > rest->len ||
	    r.path_len > MANIFEST_PATH_MAX || r.type >= ENTRY_TYPES)
		return false;
	*is_gone = r.is_gone;
	*out = (struct entry){ .type = (enum entry_type)r.type,
		               .mode = r.mode,
		               .uid = r.uid,
		               .gid = r.gid,
		               .mtime_s = r.mtime_s,
		               .mtime_ns = r.mtime_ns,
		               .size = r.size,
		               .ino = r.ino,
		               .ctime_s = r.ctime_s,
		               .ctime_ns = r.ctime_ns,
		               .is_unsure = r.is_unsure };
	memcpy(out->hash, r.hash, sizeof out->hash);
	out->path = take(rest, r.path_len);
	out->target = take(rest, r.target_len);
	out->xattrs = take(rest, r.xattrs_len);
	return true;
}

static void add_entry(struct manifest *m, const struct entry *e)
{
	vec_push(&m->list, *e);
}

/* Takes over entries of `old` from *i on, those before `path` (.at NULL: all). One at the path
 * itself is left out. */
static void take_before(struct manifest *m, const struct manifest *old, size_t *i, struct span path)
{
	int order = -1;

	while (*i < old->list.len && order < 0) {
		const struct entry *e = &old->list.at[*i];

		order = path.at ? path_order(e->path, path) : -1;
		if (order < 0)
			add_entry(m, e);
		*i += order <= 0;
	}
}

/* The list of `m` with the records merged into it. Old entries keep what they point to. */
static int merge(struct manifest *m, struct span rest, uint64_t n)
{
	struct manifest old = *m;
	size_t i = 0;
	bool is_good = true;

	m->list.at = NULL;
	m->list.len = m->list.cap = 0;
	for (uint64_t k = 0; k < n && is_good; k++) {
		struct entry e;
		bool is_gone;

		is_good = parse_record(&rest, &e, &is_gone);
		if (!is_good)
			break;
		take_before(m, &old, &i, e.path);
		if (!is_gone)
			manifest_add(m, &e);
	}
	take_before(m, &old, &i, (struct span){ 0 });
	vec_done(&old.list);
	return is_good && rest.len == HASH_BYTES ? 0 : -1;
}

int manifest_parse(struct span bytes, struct manifest *m, struct err *e)
{
	struct manifest_head head;

	if (manifest_parse_head(bytes, &head, e) < 0)
		return -1;
	if (!check_sum(bytes) || head.base != m->number)
		return broken(e);
	size_t n = head.n_layers * sizeof m->layers[0];

	memcpy(m->layers, bytes.at + sizeof head, n);
	if (merge(m, span_after(bytes, sizeof head + n), head.n_records) < 0)
		return broken(e);
	m->n_layers = head.n_layers;
	m->number = head.number;
	m->workspace = head.workspace;
	m->top = head.top;
	m->base = head.base;
	m->chain = head.chain;
	return 0;
}

int manifest_records(struct span bytes, manifest_record *f, void *ctx, struct err *e)
{
	struct manifest_head head;

	if (manifest_parse_head(bytes, &head, e) < 0)
		return -1;
	if (!check_sum(bytes))
		return broken(e);
	struct span rest = span_after(bytes, sizeof head + head.n_layers * sizeof(uint64_t));
	for (uint64_t i = 0; i < head.n_records; i++) {
		struct entry entry;
		bool is_gone;

		if (!parse_record(&rest, &entry, &is_gone))
			return broken(e);
		if (!is_gone)
			f(ctx, &entry);
	}
	return 0;
}
