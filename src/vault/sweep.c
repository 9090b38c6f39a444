/*
 * sweep.c - blobs that no checkpoint holds are removed; how much there is; and that it is on disk.
 *
 * Checkpoints are made meanwhile. They touch each blob that they will hold, under the shared lock;
 * so one that is older than the sweep, looked at while we have the lock alone, is in none. The lock
 * is given back between a few: who waits for it has stopped a sandbox.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/hex.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/held.h"
#include "vault/names.h"
#include "vault/pack.h"
#include "vault/trees.h"
#include "vault/verbs.h"

#define AT_ONCE 16

/* False: this is the name of no blob. */
static bool parse_hash(const char *folder, const char *name, uint8_t out[BLOB_HASH])
{
	char text[BLOB_HASH * 2 + 1];

	if (strlen(folder) != 2 || strlen(name) != BLOB_HASH * 2 - 2)
		return false;
	snprintf(text, sizeof text, "%s%s", folder, name);
	return hex_read(text, out, BLOB_HASH);
}

struct sweep {
	const struct vault *v;
	struct held_list held;
	time_t started;
	struct vault_done *done;
};

static int sweep_one(struct sweep *s, int dir_fd, const char *folder, const char *name,
                     struct err *e)
{
	uint8_t hash[BLOB_HASH];
	struct stat st;

	if (parse_hash(folder, name, hash) && held_has(&s->held, hash))
		return 0;
	int r = os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		return r == -ENOENT ? 0 : err_sys(e, -r, "look at a blob");
	if (st.st_mtim.tv_sec >= s->started)
		return 0;
	r = os_unlinkat(dir_fd, name);
	if (r < 0)
		return err_sys(e, -r, "remove a blob");
	s->done->files++;
	s->done->bytes += (uint64_t)st.st_blocks * 512;
	return 0;
}

static int sweep_folder(struct sweep *s, const char *folder, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };
	AUTO(fd_close)
	int fd = os_openat(s->v->blobs_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = 0;

	if (fd < 0)
		return err_sys(e, -fd, "open a folder of blobs");
	if (names_read(fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.list.len && r >= 0; i += AT_ONCE) {
		if (points_lock_alone(s->v, e) < 0)
			return -1;
		for (size_t k = i; k < i + AT_ONCE && k < names.list.len && r >= 0; k++)
			r = sweep_one(s, fd, folder, names.list.at[k].text, e);
		points_unlock(s->v);
	}
	return r;
}

/* A folder of blobs at a time: 00 to ff. */
static int each_folder(const struct vault *v, int (*f)(struct sweep *s, const char *, struct err *),
                       struct sweep *s, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };
	int r = names_read(v->blobs_fd, &names, e);

	for (size_t i = 0; i < names.list.len && r >= 0; i++)
		if (strlen(names.list.at[i].text) == 2)
			r = f(s, names.list.at[i].text, e);
	return r;
}

int verb_sweep(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
               struct err *e)
{
	struct sweep s = { .v = v, .done = done };

	(void)ask;
	(void)fd;
	/* A clock that ticks in whole seconds for files: what is made in this one stays. */
	s.started = time(NULL);
	int r = pack_unpack_all(v, e);
	if (r >= 0)
		r = held_find(v, &s.held, e);
	if (r >= 0 && s.held.broken.len > 0)
		r = err_new(e, ERR_INTERNAL, "checkpoint %llu is broken: nothing is removed",
		            (unsigned long long)s.held.broken.at[0]);
	if (r >= 0)
		r = each_folder(v, sweep_folder, &s, e);
	held_done(&s.held);
	return r < 0 ? -1 : 0;
}

int verb_usage(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
               struct err *e)
{
	struct held_list held = { 0 };

	(void)ask;
	(void)fd;
	if (v->open.top && trees_usage(v, v->open.top, &done->files, &done->bytes, e) < 0)
		return -1;
	int r = held_find(v, &held, e);
	for (size_t i = 0; i < held.list.len && r >= 0; i++) {
		const struct held *h = &held.list.at[i];

		done->kept += h->is_own ? h->size : 0;
		done->shared += h->is_own && h->is_others ? h->size : 0;
	}
	held_done(&held);
	return r < 0 ? -1 : 0;
}

int verb_sync(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
              struct err *e)
{
	(void)ask;
	(void)fd;
	(void)done;
	AUTO(fd_close) int top = v->open.top ? trees_open(v, v->open.top, e) : -1;
	if (v->open.top && top < 0)
		return -1;
	int r = os_syncfs(v->blobs_fd);
	if (r >= 0 && top >= 0) /* it may lie in a volume */
		r = os_syncfs(top);
	if (r >= 0)
		blob_synced(v);
	return r < 0 ? err_sys(e, -r, "sync") : 0;
}
