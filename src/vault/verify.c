/*
 * verify.c - are the checkpoints, and what they hold, still what they were? One finding a line;
 * checkpoints and blobs have names of ours.
 *
 *   {"blob":"NAME","problem":"missing","points":[7,8]}     missing, changed, another size,
 *                                                          unreadable; the first that need it
 *   {"checkpoint":"7","problem":"broken"}                  or unreadable: the disk refuses
 *
 * To mend is to lose nothing that could still be read. A blob is made again from the top whose
 * checkpoint holds it, if the file is still there ("mended":"again"); else one that is wrong goes,
 * because a later checkpoint would take it for what its name says ("removed"). A checkpoint that
 * says nothing any more is set aside ("aside"): the sweep could not go on with it.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"
#include "vault/held.h"
#include "vault/trees.h"
#include "vault/verbs.h"

#define NAMED_MAX 16 /* checkpoints of one finding */
#define BELOW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

struct bad {
	uint8_t hash[BLOB_HASH]; /* first: they are sorted by it */
	uint64_t size;
	const char *problem, *mended; /* mended NULL: it is not */
	bool is_wrong;                /* there is one, and it is not what it says */
	uint64_t points[NAMED_MAX];
	size_t n_points;
};

struct verifying {
	struct vault *v;
	int fd;
	bool is_mending;
	struct vault_done *done;
	struct err *e;
	VEC(struct bad) bad;
	uint64_t number, top; /* of the checkpoint that is read */
};

static int report(struct verifying *c, const struct str *text)
{
	int r = os_write_all(c->fd, text->data, text->len);

	c->done->files++;
	return r < 0 ? err_sys(c->e, -r, "write the findings") : 0;
}

/* ---- checkpoints --------------------------------------------------------------------- */

/* Names that are no number are nobody's. */
static int set_aside(const struct verifying *c, const char *name)
{
	char aside[TREE_NAME_MAX + 8];

	snprintf(aside, sizeof aside, "broken-%s", name);
	if (points_lock_alone(c->v, c->e) < 0)
		return -1;
	int r = os_rename_in(c->v->points_fd, name, aside);
	points_unlock(c->v);
	return r < 0 ? err_sys(c->e, -r, "set a checkpoint aside") : 0;
}

/* Can each be read with all that it is based on? */
static int verify_point(void *ctx, uint64_t number, struct span bytes, const struct err *why)
{
	AUTO(manifest_done) struct manifest m = { 0 };
	AUTO(str_done) struct str text = { .max = 256 };
	struct verifying *c = ctx;
	struct err e = { 0 };
	char name[TREE_NAME_MAX];

	(void)bytes;
	if (!why && points_load(c->v, number, &m, &e) >= 0)
		return 0;
	bool is_refused = (why ? why : &e)->sys != 0;
	bool is_mended = c->is_mending && !is_refused;

	trees_name(number, name);
	if (is_mended && set_aside(c, name) < 0)
		return -1;
	str_addf(&text, "{\"checkpoint\":\"%s\",\"problem\":\"%s\"%s}\n", name,
	         is_refused ? "unreadable" : "broken", is_mended ? ",\"mended\":\"aside\"" : "");
	return report(c, &text);
}

/* ---- blobs --------------------------------------------------------------------------- */

static const char *look_at_blob(const struct vault *v, const struct held *h, bool *is_wrong)
{
	struct err e = { 0 };
	struct stat st;
	uint8_t hash[BLOB_HASH];
	AUTO(content_done) struct content from = { .fd = -1 };

	if (blob_open(v, h->hash, &from, &e) < 0)
		return e.kind == ERR_NOT_FOUND ? "missing" : "unreadable";
	*is_wrong = from.at == 0;
	if (from.at == 0 &&
	    (os_fstatat(from.fd, "", &st, AT_EMPTY_PATH) < 0 || (uint64_t)st.st_size != h->size))
		return "another size";
	if (blob_hash(from, h->size, hash, &e) < 0) {
		*is_wrong = false;
		return "unreadable";
	}
	return memcmp(hash, h->hash, sizeof hash) == 0 ? NULL : "changed";
}

static void check_blob(struct verifying *c, const struct held *h)
{
	struct bad b = { .size = h->size };

	b.problem = look_at_blob(c->v, h, &b.is_wrong);
	memcpy(b.hash, h->hash, sizeof b.hash);
	if (b.problem)
		vec_push(&c->bad, b);
}

static void find_bad(struct verifying *c, const struct held_list *held)
{
	for (size_t i = 0; i < held->list.len; i++)
		check_blob(c, &held->list.at[i]);
}

static int by_hash(const void *a, const void *b)
{
	return memcmp(a, b, BLOB_HASH);
}

static void remove_blob(const struct verifying *c, const struct bad *b)
{
	char path[BLOB_PATH_MAX];

	blob_path(b->hash, path);
	(void)os_unlinkat(c->v->blobs_fd, path); /* or it is not there */
}

/* The file that was kept may be in its top still, as it was. */
static int open_again(const struct verifying *c, const struct bad *b, struct span path)
{
	char name[MANIFEST_PATH_MAX + 1];
	uint8_t hash[BLOB_HASH];
	struct err e = { 0 };
	struct stat st;
	AUTO(fd_close) int files = trees_open_files(c->v, c->top, &e);

	if (files < 0 || path.len >= sizeof name)
		return -1;
	memcpy(name, path.at, path.len);
	name[path.len] = '\0';
	AUTO(fd_close)
	int fd = os_openat2(files, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, BELOW);
	if (fd < 0 || os_fstatat(fd, "", &st, AT_EMPTY_PATH) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size != b->size ||
	    blob_hash((struct content){ fd, 0 }, b->size, hash, &e) < 0 ||
	    memcmp(hash, b->hash, sizeof hash) != 0)
		return -1;
	return fd_take(&fd);
}

static void make_again(struct verifying *c, struct bad *b, struct span path)
{
	struct err e = { 0 };
	AUTO(fd_close) int fd = open_again(c, b, path);

	if (fd < 0 || points_lock(c->v, &e) < 0)
		return; /* perhaps another checkpoint has it */
	remove_blob(c, b);
	if (blob_make(c->v, b->hash, fd, 0, (size_t)b->size, &e) >= 0)
		b->mended = "again";
	points_unlock(c->v);
}

static void match_record(void *ctx, const struct entry *entry)
{
	struct verifying *c = ctx;

	if (entry->type != ENTRY_FILE || entry->size == 0)
		return;
	struct bad *b = bsearch(entry->hash, c->bad.at, c->bad.len, sizeof *c->bad.at, by_hash);
	if (!b)
		return;
	if (b->n_points < NAMED_MAX &&
	    (b->n_points == 0 || b->points[b->n_points - 1] != c->number))
		b->points[b->n_points++] = c->number;
	if (c->is_mending && !b->mended)
		make_again(c, b, entry->path);
}

static int match_point(void *ctx, uint64_t number, struct span bytes, const struct err *why)
{
	struct verifying *c = ctx;
	struct manifest_head head;
	struct err ignored = { 0 };

	if (why || manifest_parse_head(bytes, &head, &ignored) < 0)
		return 0; /* it has a line of its own */
	c->number = number;
	c->top = head.top;
	(void)!manifest_records(bytes, match_record, c, &ignored);
	return 0;
}

static int report_bad(struct verifying *c, struct bad *b)
{
	AUTO(str_done) struct str text = { .max = 1024 };
	char path[BLOB_PATH_MAX];

	if (c->is_mending && !b->mended && b->is_wrong) {
		if (points_lock_alone(c->v, c->e) < 0)
			return -1;
		remove_blob(c, b);
		points_unlock(c->v);
		b->mended = "removed";
	}
	blob_path(b->hash, path);
	str_addf(&text, "{\"blob\":\"%s\",\"problem\":\"%s\",\"points\":[", path, b->problem);
	for (size_t i = 0; i < b->n_points; i++)
		str_addf(&text, "%s%llu", i ? "," : "", (unsigned long long)b->points[i]);
	str_add(&text, "]");
	if (b->mended)
		str_addf(&text, ",\"mended\":\"%s\"", b->mended);
	str_add(&text, "}\n");
	return report(c, &text);
}

static int verify_blobs(struct verifying *c)
{
	struct held_list held = { 0 };
	int r = held_find(c->v, &held, c->e);

	if (r >= 0)
		find_bad(c, &held);
	held_done(&held);
	if (r >= 0 && c->bad.len > 0)
		r = points_all(c->v, match_point, c, c->e);
	for (size_t i = 0; i < c->bad.len && r >= 0; i++)
		r = report_bad(c, &c->bad.at[i]);
	vec_done(&c->bad);
	return r;
}

static int verify(struct verifying *c)
{
	return points_all(c->v, verify_point, c, c->e) < 0 || verify_blobs(c) < 0 ? -1 : 0;
}

int verb_verify(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                struct err *e)
{
	struct verifying c = { .v = v, .fd = fd, .done = done, .e = e };

	(void)ask;
	return verify(&c);
}

int verb_mend(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
              struct err *e)
{
	struct verifying c = { .v = v, .fd = fd, .is_mending = true, .done = done, .e = e };

	(void)ask;
	return verify(&c);
}
