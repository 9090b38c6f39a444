/*
 * verify.c - are the checkpoints, and what they hold, still what they were? One finding a line:
 * {"blob":"NAME","problem":"missing"}; checkpoints and blobs have names of ours.
 */
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"
#include "vault/held.h"
#include "vault/trees.h"
#include "vault/verbs.h"

static int report(int fd, const char *kind, const char *which, const char *problem,
                  struct vault_done *done, struct err *e)
{
	char line[256];
	int n = snprintf(line, sizeof line, "{\"%s\":\"%s\",\"problem\":\"%s\"}\n", kind, which,
	                 problem);
	int r = os_write_all(fd, line, (size_t)n);

	done->files++;
	return r < 0 ? err_sys(e, -r, "write the findings") : 0;
}

static const char *look_at_blob(const struct vault *v, const struct held *h)
{
	struct err e = { 0 };
	struct stat st;
	uint8_t hash[BLOB_HASH];
	AUTO(content_done) struct content from = { .fd = -1 };

	if (blob_open(v, h->hash, &from, &e) < 0)
		return e.kind == ERR_NOT_FOUND ? "missing" : "unreadable";
	if (from.at == 0 &&
	    (os_fstatat(from.fd, "", &st, AT_EMPTY_PATH) < 0 || (uint64_t)st.st_size != h->size))
		return "another size";
	if (blob_hash(from, h->size, hash, &e) < 0)
		return "unreadable";
	return memcmp(hash, h->hash, sizeof hash) == 0 ? NULL : "changed";
}

static int verify_blobs(const struct vault *v, const struct held_list *held, int fd,
                        struct vault_done *done, struct err *e)
{
	for (size_t i = 0; i < held->list.len; i++) {
		char path[BLOB_PATH_MAX];
		const char *problem = look_at_blob(v, &held->list.at[i]);

		blob_path(held->list.at[i].hash, path);
		if (problem && report(fd, "blob", path, problem, done, e) < 0)
			return -1;
	}
	return 0;
}

struct verifying {
	const struct vault *v;
	int fd;
	struct vault_done *done;
	struct err *e;
};

/* Can each be read with all that it is based on? */
static int verify_point(void *ctx, uint64_t number, struct span bytes, const struct err *why)
{
	AUTO(manifest_done) struct manifest m = { 0 };
	const struct verifying *c = ctx;
	struct err ignored = { 0 };
	char name[TREE_NAME_MAX];

	(void)bytes;
	trees_name(number, name);
	if (!why && points_load(c->v, number, &m, &ignored) >= 0)
		return 0;
	return report(c->fd, "checkpoint", name, "broken", c->done, c->e);
}

int verb_verify(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                struct err *e)
{
	struct held_list held = { 0 };
	struct verifying c = { v, fd, done, e };

	(void)ask;
	int r = points_all(v, verify_point, &c, e);
	if (r >= 0)
		r = held_find(v, &held, e);
	if (r >= 0)
		r = verify_blobs(v, &held, fd, done, e);
	held_done(&held);
	return r < 0 ? -1 : 0;
}
