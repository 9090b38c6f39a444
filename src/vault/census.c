/*
 * census.c - everything that lies in the store, one JSON object a line; all names are numbers of
 * ours.
 *
 *   {"tree":N,"bytes":B,"files":F,"sealed":true,"half":false}   half: it was being made
 *   {"volume":W,"bytes":B}
 *   {"checkpoint":N,"workspace":W,"broken":false}
 *   {"workspace":W,"kept":B,"shared":B}   what its checkpoints hold, each content once; of that
 *                                         also in others'
 *   {"blobs":N,"bytes":B}
 *   {"stray":"trees"}                     something there has no name of ours
 *
 * Others work meanwhile: what comes and goes is there or not.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"
#include "vault/blob.h"
#include "vault/names.h"
#include "vault/points.h"
#include "vault/reserve.h"
#include "vault/trees.h"
#include "vault/verbs.h"

#define TEXT_MAX (1u << 30)

/* A content that a checkpoint of a workspace holds. */
struct holding {
	uint8_t hash[BLOB_HASH];
	uint64_t size, workspace;
};

struct holder {
	uint64_t workspace, kept, shared;
};

struct census {
	const struct vault *v;
	struct str out;
	VEC(struct holding) holdings;
	VEC(struct holder) holders;
	uint64_t workspace; /* whose checkpoint is read */
	uint64_t bytes;
};

static void line(struct census *c, const char *fmt, ...) PRINTF(2, 3);
static void line(struct census *c, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	str_addf(&c->out, "{%s}\n", text);
}

/* 0: no name of ours. */
static uint64_t number_of(const char *name)
{
	char *end;
	uint64_t number = strtoull(name, &end, 10);

	return *end || name[0] < '1' || name[0] > '9' ? 0 : number;
}

/* ---- trees --------------------------------------------------------------------------- */

static bool has(int fd, const char *name)
{
	struct stat st;

	return os_fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int count_tree(struct census *c, uint64_t number, struct err *e)
{
	uint64_t files = 0, bytes = 0;
	struct err why = { 0 };
	AUTO(fd_close) int tree = trees_open(c->v, number, &why);

	if (tree < 0) {
		*e = why;
		return why.kind == ERR_NOT_FOUND ? 0 : -1;
	}
	bool is_half = has(tree, "filling") || !has(tree, "d");
	if (has(tree, "d") && trees_usage(c->v, number, &files, &bytes, e) < 0)
		return -1;
	c->bytes += bytes;
	line(c, "\"tree\":%llu,\"bytes\":%llu,\"files\":%llu,\"sealed\":%s,\"half\":%s",
	     (unsigned long long)number, (unsigned long long)bytes, (unsigned long long)files,
	     has(tree, "sealed") ? "true" : "false", is_half ? "true" : "false");
	return 0;
}

static int count_trees(struct census *c, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };
	int r = names_read(c->v->trees_fd, &names, e);

	for (size_t i = 0; i < names.list.len && r >= 0; i++) {
		uint64_t number = number_of(names.list.at[i].text);

		if (number == 0)
			line(c, "\"stray\":\"trees\"");
		else
			r = count_tree(c, number, e);
	}
	return r;
}

/* What is a template, or is being written, has a name of another kind. */
static int count_volumes(struct census *c, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };

	if (names_read(c->v->volumes_fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.list.len; i++) {
		const char *name = names.list.at[i].text;
		uint64_t number = number_of(name);
		struct stat st;

		if (os_fstatat(c->v->volumes_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		c->bytes += (uint64_t)st.st_blocks * 512;
		if (number)
			line(c, "\"volume\":%llu,\"bytes\":%llu", (unsigned long long)number,
			     (unsigned long long)st.st_blocks * 512);
	}
	return 0;
}

/* ---- checkpoints --------------------------------------------------------------------- */

static void add_record(void *ctx, const struct entry *entry)
{
	struct census *c = ctx;
	struct holding h = { .size = entry->size, .workspace = c->workspace };

	if (entry->type != ENTRY_FILE || entry->size == 0)
		return;
	memcpy(h.hash, entry->hash, sizeof h.hash);
	vec_push(&c->holdings, h);
}

static int add_point(void *ctx, uint64_t number, struct span bytes, const struct err *why)
{
	struct census *c = ctx;
	struct manifest_head head = { 0 };
	struct err ignored = { 0 };
	bool is_whole = !why && manifest_parse_head(bytes, &head, &ignored) >= 0;

	c->workspace = head.workspace;
	if (is_whole)
		is_whole = manifest_records(bytes, add_record, c, &ignored) >= 0;
	c->bytes += bytes.len;
	line(c, "\"checkpoint\":%llu,\"workspace\":%llu,\"broken\":%s", (unsigned long long)number,
	     (unsigned long long)head.workspace, is_whole ? "false" : "true");
	return 0;
}

static int by_content(const void *a, const void *b)
{
	const struct holding *x = a, *y = b;
	int order = memcmp(x->hash, y->hash, BLOB_HASH);

	return order ? order : (x->workspace > y->workspace) - (x->workspace < y->workspace);
}

static struct holder *holder_of(struct census *c, uint64_t workspace)
{
	for (size_t i = c->holders.len; i-- > 0;)
		if (c->holders.at[i].workspace == workspace)
			return &c->holders.at[i];
	vec_push(&c->holders, (struct holder){ .workspace = workspace });
	return &c->holders.at[c->holders.len - 1];
}

/* One content: all its holdings are neighbours, those of one workspace too. */
static void share_out(struct census *c, size_t from, size_t to)
{
	const struct holding *h = c->holdings.at;
	bool is_shared = h[from].workspace != h[to - 1].workspace;

	for (size_t i = from; i < to; i++) {
		if (i > from && h[i].workspace == h[i - 1].workspace)
			continue;
		struct holder *one = holder_of(c, h[i].workspace);

		one->kept += h[i].size;
		one->shared += is_shared ? h[i].size : 0;
	}
}

static int count_points(struct census *c, struct err *e)
{
	size_t to = 0;

	if (points_all(c->v, add_point, c, e) < 0)
		return -1;
	if (c->holdings.len > 1)
		qsort(c->holdings.at, c->holdings.len, sizeof *c->holdings.at, by_content);
	for (size_t from = 0; from < c->holdings.len; from = to) {
		for (to = from + 1;
		     to < c->holdings.len &&
		     memcmp(c->holdings.at[from].hash, c->holdings.at[to].hash, BLOB_HASH) == 0;)
			to++;
		share_out(c, from, to);
	}
	for (size_t i = 0; i < c->holders.len; i++)
		line(c, "\"workspace\":%llu,\"kept\":%llu,\"shared\":%llu",
		     (unsigned long long)c->holders.at[i].workspace,
		     (unsigned long long)c->holders.at[i].kept,
		     (unsigned long long)c->holders.at[i].shared);
	return 0;
}

/* ---- blobs --------------------------------------------------------------------------- */

/* Folders of blobs, and that of the packs. */
static int count_blobs(struct census *c, struct err *e)
{
	AUTO(names_done) struct names folders = { 0 };
	uint64_t n = 0, bytes = 0;

	if (names_read(c->v->blobs_fd, &folders, e) < 0)
		return -1;
	for (size_t i = 0; i < folders.list.len; i++) {
		AUTO(names_done) struct names names = { 0 };
		const char *folder = folders.list.at[i].text;
		struct stat st;

		if (strcmp(folder, "p") == 0 || strcmp(folder, RESERVE_FOLDER) == 0)
			continue;
		AUTO(fd_close)
		int fd = os_openat(c->v->blobs_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd < 0)
			continue; /* the lock */
		if (names_read(fd, &names, e) < 0)
			return -1;
		for (size_t k = 0; k < names.list.len; k++)
			if (os_fstatat(fd, names.list.at[k].text, &st, AT_SYMLINK_NOFOLLOW) == 0) {
				n++;
				bytes += (uint64_t)st.st_blocks * 512;
			}
	}
	c->bytes += bytes;
	line(c, "\"blobs\":%llu,\"bytes\":%llu", (unsigned long long)n, (unsigned long long)bytes);
	return 0;
}

int verb_census(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                struct err *e)
{
	static int (*const parts[])(struct census *, struct err *) = { count_trees, count_volumes,
		                                                       count_points, count_blobs };
	struct census c = { .v = v, .out.max = TEXT_MAX };
	int r = 0;

	(void)ask;
	for (size_t i = 0; i < COUNT(parts) && r >= 0; i++)
		r = parts[i](&c, e);
	done->bytes = c.bytes;
	if (r >= 0 && c.out.len > 0) {
		r = os_write_all(fd, c.out.data, c.out.len);
		if (r < 0)
			r = err_sys(e, -r, "write the census");
	}
	vec_done(&c.holdings);
	vec_done(&c.holders);
	str_done(&c.out);
	return r < 0 ? -1 : 0;
}
