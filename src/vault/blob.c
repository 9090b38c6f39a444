#include "vault/blob.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/pack.h"
#include "wire/hash.h"

#define PIECE (64u << 10)
#define BUFFER (1u << 20) /* a smaller file is read once */

static char buffer[BUFFER];

void blob_path(const uint8_t hash[BLOB_HASH], char out[BLOB_PATH_MAX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < BLOB_HASH; i++) {
		*out++ = digits[hash[i] >> 4];
		*out++ = digits[hash[i] & 15];
		if (i == 0)
			*out++ = '/';
	}
	*out = '\0';
}

static bool is_zero(const char *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static void hash_number(struct hash *h, uint64_t n)
{
	hash_add(h, (struct span){ (const char *)&n, sizeof n });
}

/* What is done with a piece that is not all zeros: hashed, and with `to_fd` written too. */
struct pass {
	struct hash hash;
	bool has_hash;
	int to_fd;    /* -1: none */
	uint64_t end; /* of what was written */
};

static int do_pieces(struct pass *p, const char *bytes, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n; done += PIECE) {
		size_t len = n - done < PIECE ? n - done : PIECE;

		if (is_zero(bytes + done, len))
			continue;
		if (p->has_hash) {
			hash_number(&p->hash, (at + done) / PIECE);
			hash_add(&p->hash, (struct span){ bytes + done, len });
		}
		int r = p->to_fd < 0
		            ? 0
		            : os_pwrite2(p->to_fd, bytes + done, len, NULL, 0, (off_t)(at + done));
		if (r < 0)
			return r;
		p->end = at + done + len;
	}
	return 0;
}

/* A file that ends with a hole is as long as it was. */
static int finish(const struct pass *p, uint64_t size, struct err *e)
{
	int r = p->end < size ? os_ftruncate(p->to_fd, (off_t)size) : 0;

	return r < 0 ? err_sys(e, -r, "copy a file") : 0;
}

/* Afterwards a file of at most BUFFER bytes is in the buffer, whole. */
static int do_file(struct pass *p, struct content from, uint64_t size, struct err *e)
{
	for (uint64_t at = 0; at < size;) {
		int64_t data = size > BUFFER ? os_seek_data(from.fd, (int64_t)at) : (int64_t)at;

		if (data == -ENXIO || (data >= 0 && (uint64_t)data >= size))
			break;
		if (data < 0)
			return err_sys(e, (int)-data, "look for data in a file");
		at = (uint64_t)data / PIECE * PIECE;
		size_t want = size - at < BUFFER ? (size_t)(size - at) : BUFFER;
		int n = os_pread(from.fd, buffer, want, (off_t)(from.at + at));
		if (n < 0 || (size_t)n < want)
			return n < 0 ? err_sys(e, -n, "read a file")
			             : err_sys(e, EAGAIN, "a file became shorter");
		int r = do_pieces(p, buffer, want, at);
		if (r < 0)
			return err_sys(e, -r, "copy a file");
		at += want;
	}
	return 0;
}

static void pass_begin(struct pass *p, uint64_t size, int to_fd)
{
	*p = (struct pass){ .has_hash = true, .to_fd = to_fd };
	hash_init(&p->hash);
	hash_number(&p->hash, size);
}

int blob_hash(struct content from, uint64_t size, uint8_t hash[BLOB_HASH], struct err *e)
{
	struct pass p;

	pass_begin(&p, size, -1);
	if (do_file(&p, from, size, e) < 0)
		return -1;
	hash_bytes(&p.hash, hash);
	return 0;
}

/* 1: it is there, and now young. */
static int touch(const struct vault *v, const char *path, struct err *e)
{
	int r = os_utimens(v->blobs_fd, path, (struct timespec){ .tv_nsec = UTIME_NOW });

	if (r == -ENOENT)
		return 0;
	return r < 0 ? err_sys(e, -r, "touch a blob") : 1;
}

/* The file that becomes a blob; one name for all of this workspace, beside its last one. */
static int open_temp(const struct vault *v, const char *path, char temp[BLOB_PATH_MAX],
                     struct err *e)
{
	const int flags = O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW;

	snprintf(temp, BLOB_PATH_MAX, "%.2s/tmp-%llu", path, (unsigned long long)v->open.workspace);
	int fd = os_openat(v->blobs_fd, temp, flags, 0600);
	if (fd == -ENOENT) {
		char folder[3] = { path[0], path[1], '\0' };
		int r = os_mkdirat(v->blobs_fd, folder, 0700);

		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make a folder of blobs");
		fd = os_openat(v->blobs_fd, temp, flags, 0600);
	}
	return fd < 0 ? err_sys(e, -fd, "make a blob") : fd;
}

/* Under its name, or in a pack; `temp` becomes the blob `path`. */
static int name_blob(const struct vault *v, const char *temp, const char *path, struct err *e)
{
	int r = os_renameat2((struct os_names){ v->blobs_fd, temp, v->blobs_fd, path }, 0);

	return r < 0 ? err_sys(e, -r, "name a blob") : 0;
}

/* ---- large ones ---------------------------------------------------------------------- */

/* Nobody waits for the disk while a sandbox stands still. So one that can be written by its owner
 * is not known to be there: whoever finds it, after a loss of power perhaps, reads it first. */
#define SURE 0400

static void note_unsynced(struct vault *v, const uint8_t hash[BLOB_HASH])
{
	struct blob_name name;

	memcpy(name.hash, hash, BLOB_HASH);
	vec_push(&v->unsynced, name);
}

void blob_synced(struct vault *v)
{
	for (size_t i = 0; i < v->unsynced.len; i++) {
		char path[BLOB_PATH_MAX];

		blob_path(v->unsynced.at[i].hash, path);
		AUTO(fd_close) int fd = os_openat(v->blobs_fd, path, O_RDONLY | O_NOFOLLOW, 0);
		if (fd >= 0)                       /* else it was swept */
			(void)os_fchmod(fd, SURE); /* or it is read once more than it must be */
	}
	vec_done(&v->unsynced);
}

/* 1: it is there and holds what its name says. */
static int find_large(struct vault *v, const char *path, const uint8_t hash[BLOB_HASH],
                      uint64_t size, struct err *e)
{
	uint8_t sum[BLOB_HASH];
	struct stat st;
	struct err ignored = { 0 };
	AUTO(fd_close) int fd = os_openat(v->blobs_fd, path, O_RDONLY | O_NOFOLLOW, 0);

	if (fd == -ENOENT)
		return 0;
	int r = fd < 0 ? fd : os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "look at a blob");
	if ((st.st_mode & 0777) == SURE)
		return touch(v, path, e);
	if ((uint64_t)st.st_size != size ||
	    blob_hash((struct content){ fd, 0 }, size, sum, &ignored) < 0 ||
	    memcmp(sum, hash, sizeof sum) != 0)
		return 0;
	note_unsynced(v, hash);
	return touch(v, path, e);
}

/* Read again, and named after what was read then. */
static int keep_large(struct vault *v, int fd, uint64_t size, uint8_t hash[BLOB_HASH],
                      struct err *e)
{
	char path[BLOB_PATH_MAX], temp[BLOB_PATH_MAX];
	struct pass p;

	blob_path(hash, path);
	AUTO(fd_close) int temp_fd = open_temp(v, path, temp, e);
	if (temp_fd < 0)
		return -1;
	pass_begin(&p, size, temp_fd);
	if (do_file(&p, (struct content){ fd, 0 }, size, e) < 0 || finish(&p, size, e) < 0)
		return -1;
	hash_bytes(&p.hash, hash);
	blob_path(hash, path);
	if (name_blob(v, temp, path, e) < 0)
		return -1;
	note_unsynced(v, hash);
	return 0;
}

int blob_keep(struct vault *v, int fd, uint64_t size, uint8_t hash[BLOB_HASH], uint64_t *kept,
              struct err *e)
{
	char path[BLOB_PATH_MAX];

	if (blob_hash((struct content){ fd, 0 }, size, hash, e) < 0)
		return -1;
	if (size == 0 || pack_has(v, hash))
		return 0;
	blob_path(hash, path);
	int r = size > PACK_MAX ? find_large(v, path, hash, size, e) : touch(v, path, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	*kept += size;
	if (size <= PACK_MAX) /* it is in the buffer still */
		return pack_add(v, hash, buffer, (size_t)size, e);
	return keep_large(v, fd, size, hash, e);
}

int blob_make(const struct vault *v, const uint8_t hash[BLOB_HASH], int fd, uint64_t at, size_t n,
              struct err *e)
{
	char path[BLOB_PATH_MAX], temp[BLOB_PATH_MAX];
	struct pass p;
	uint8_t sum[BLOB_HASH];

	blob_path(hash, path);
	int r = touch(v, path, e);
	if (r != 0)
		return r < 0 ? -1 : 0;
	AUTO(fd_close) int temp_fd = open_temp(v, path, temp, e);
	if (temp_fd < 0)
		return -1;
	pass_begin(&p, n, temp_fd);
	if (do_file(&p, (struct content){ fd, at }, n, e) < 0 || finish(&p, n, e) < 0)
		return -1;
	hash_bytes(&p.hash, sum);
	if (memcmp(sum, hash, sizeof sum) != 0) /* a power loss: V_VERIFY will miss it */
		return 0;
	/* Its pack goes then: the disk must not know only that. */
	r = os_fsync(temp_fd);
	if (r < 0)
		return err_sys(e, -r, "sync a blob");
	return name_blob(v, temp, path, e);
}

void content_done(struct content *c)
{
	fd_close(&c->fd);
}

int blob_open(const struct vault *v, const uint8_t hash[BLOB_HASH], struct content *out,
              struct err *e)
{
	char path[BLOB_PATH_MAX];

	blob_path(hash, path);
	for (int i = 0; i < 2; i++) { /* it may be unpacked between the two looks */
		int fd = os_openat(v->blobs_fd, path, O_RDONLY | O_NOFOLLOW, 0);

		*out = (struct content){ fd, 0 };
		if (fd >= 0)
			return 0;
		if (fd != -ENOENT)
			return err_sys(e, -fd, "open blob %s", path);
		int r = pack_find(v, hash, &out->fd, &out->at, e);
		if (r != 0)
			return r < 0 ? -1 : 0;
	}
	*out = (struct content){ -1, 0 };
	return err_new(e, ERR_NOT_FOUND, "blob %s is missing", path);
}

static int damaged(struct err *e)
{
	return err_new(e, ERR_INTERNAL, "what the file held is damaged in the store");
}

static int judge(struct pass *p, const uint8_t *hash, struct err *e)
{
	uint8_t sum[BLOB_HASH];

	if (!p->has_hash || !hash)
		return 0;
	hash_bytes(&p->hash, sum);
	return memcmp(sum, hash, sizeof sum) == 0 ? 0 : damaged(e);
}

/* As do_file(); a blob that is too short is no file that somebody writes to. */
static int do_blob(struct pass *p, const struct blob_source *s, struct err *e)
{
	int r = do_file(p, s->from, s->size, e);

	return r < 0 && s->hash && e->sys == EAGAIN ? damaged(e) : r;
}

int blob_check(struct content from, uint64_t size, const uint8_t hash[BLOB_HASH], struct err *e)
{
	const struct blob_source s = { from, size, hash };
	struct pass p;

	pass_begin(&p, size, -1);
	return do_blob(&p, &s, e) < 0 ? -1 : judge(&p, hash, e);
}

/* All of it is in the buffer then, and is what it must be. */
static int load(const struct blob_source *s, struct err *e)
{
	struct pass p;

	pass_begin(&p, s->size, -1);
	p.has_hash = s->hash != NULL;
	return do_blob(&p, s, e) < 0 ? -1 : judge(&p, s->hash, e);
}

int blob_copy(struct blob_source s, int to_fd, struct err *e)
{
	struct pass p;

	pass_begin(&p, s.size, to_fd);
	p.has_hash = s.hash && s.size > BUFFER;
	if (s.size > BUFFER) {
		if (do_blob(&p, &s, e) < 0 || judge(&p, s.hash, e) < 0)
			return -1;
		return finish(&p, s.size, e);
	}
	if (load(&s, e) < 0)
		return -1;
	int r = do_pieces(&p, buffer, (size_t)s.size, 0);
	return r < 0 ? err_sys(e, -r, "copy a file") : finish(&p, s.size, e);
}

static bool has_zero_piece(size_t n)
{
	for (size_t at = 0; at < n; at += PIECE)
		if (is_zero(buffer + at, n - at < PIECE ? n - at : PIECE))
			return true;
	return false;
}

int blob_copy_over(struct blob_source s, int to_fd, uint64_t old_size, struct err *e)
{
	int r;

	if (s.size > 0 && s.size <= BUFFER) {
		if (load(&s, e) < 0)
			return -1;
		if (!has_zero_piece((size_t)s.size)) {
			r = os_pwrite2(to_fd, buffer, (size_t)s.size, NULL, 0, 0);
			if (r >= 0 && old_size > s.size)
				r = os_ftruncate(to_fd, (off_t)s.size);
			return r < 0 ? err_sys(e, -r, "write a file") : 0;
		}
	}
	r = os_ftruncate(to_fd, 0);
	return r < 0 ? err_sys(e, -r, "empty a file") : blob_copy(s, to_fd, e);
}
