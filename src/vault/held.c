#include "vault/held.h"

void held_done(struct held_list *l)
{
	vec_done(&l->list);
	vec_done(&l->broken);
}

static int by_hash(const void *a, const void *b)
{
	return memcmp(((const struct held *)a)->hash, ((const struct held *)b)->hash, BLOB_HASH);
}

struct adding {
	struct held_list *to;
	bool is_own;
};

static void add_record(void *ctx, const struct entry *e)
{
	const struct adding *a = ctx;
	struct held h = { .size = e->size, .is_own = a->is_own, .is_others = !a->is_own };

	if (e->type != ENTRY_FILE || e->size == 0)
		return;
	memcpy(h.hash, e->hash, sizeof h.hash);
	vec_push(&a->to->list, h);
}

static int add_point(void *ctx, uint64_t number, struct span bytes, const struct err *why)
{
	struct held_list *l = ctx;
	struct manifest_head head;
	struct err ignored = { 0 };
	struct adding a = { .to = l };

	if (!why && manifest_parse_head(bytes, &head, &ignored) >= 0) {
		a.is_own = head.workspace == l->own_workspace;
		if (manifest_records(bytes, add_record, &a, &ignored) >= 0)
			return 0;
	}
	vec_push(&l->broken, number);
	return 0;
}

int held_find(const struct vault *v, struct held_list *out, struct err *e)
{
	size_t n = 0;

	out->own_workspace = v->open.workspace;
	if (points_all(v, add_point, out, e) < 0)
		return -1;
	if (out->list.len > 1)
		qsort(out->list.at, out->list.len, sizeof *out->list.at, by_hash);
	for (size_t i = 0; i < out->list.len; i++) {
		struct held *h = &out->list.at[i];

		if (n > 0 && by_hash(&out->list.at[n - 1], h) == 0) {
			out->list.at[n - 1].is_own |= h->is_own;
			out->list.at[n - 1].is_others |= h->is_others;
		} else {
			out->list.at[n++] = *h;
		}
	}
	out->list.len = n;
	return 0;
}

bool held_has(const struct held_list *l, const uint8_t hash[BLOB_HASH])
{
	struct held key;

	memcpy(key.hash, hash, sizeof key.hash);
	return l->list.len && bsearch(&key, l->list.at, l->list.len, sizeof key, by_hash) != NULL;
}
