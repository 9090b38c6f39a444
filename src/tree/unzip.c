/*
 * unzip.c - a zip archive that lies in the sandbox becomes files. Modes are those of new files:
 * whoever unpacks one with Python has no others. A link is a file with a name in it there, and so
 * it is here.
 */
#include <unistd.h>
#include <zlib.h>

#include "base/fd.h"
#include "base/limits.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/root.h"
#include "tree/tarname.h"
#include "tree/unpack.h"
#include "tree/verbs.h"
#include "wire/zip.h"

#define PIECE (64u << 10)
#define DIRECTORY_MAX (64u << 20)
#define RAW_DEFLATE (-15)

struct unzip {
	struct unpack in; /* first */
	int fd;
	uint64_t size;
	char *directory;
};

static void unzip_done(struct unzip *u)
{
	fd_close(&u->fd);
	free(u->directory);
	u->directory = NULL;
}

static int broken(const struct unzip *u, const char *words)
{
	return fail(u->in.e, TREE_INVALID, "the archive: %s", words);
}

static int read_at(struct unzip *u, void *buf, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(u->fd, (char *)buf + done, n - done, (off_t)(at + done));

		if (r < 0)
			return err_sys(u->in.e, errno, "read the archive");
		if (r == 0)
			return broken(u, "it ends early");
		done += (size_t)r;
	}
	return 0;
}

/* What is left of one entry, on both sides. */
struct copying {
	int to;
	uint64_t at, packed, size;
	uLong crc;
	z_stream z;
};

static int put(struct unzip *u, struct copying *x, const unsigned char *bytes, size_t n)
{
	if (n > x->size)
		return broken(u, "an entry is longer than it says");
	x->size -= n;
	x->crc = crc32(x->crc, bytes, (uInt)n);
	int r = os_write_all(x->to, bytes, n);
	return r < 0 ? err_sys(u->in.e, -r, "write what was unpacked") : 0;
}

static int inflate_piece(struct unzip *u, struct copying *x, unsigned char *in, size_t n,
                         bool *is_over)
{
	unsigned char out[PIECE];

	x->z.next_in = in;
	x->z.avail_in = (uInt)n;
	do {
		x->z.next_out = out;
		x->z.avail_out = sizeof out;
		int r = inflate(&x->z, Z_NO_FLUSH);

		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return broken(u, "an entry cannot be inflated");
		if (put(u, x, out, sizeof out - x->z.avail_out) < 0)
			return -1;
		*is_over = r == Z_STREAM_END;
	} while (!*is_over && (x->z.avail_in > 0 || x->z.avail_out == 0));
	return 0;
}

static int copy(struct unzip *u, struct copying *x, bool is_deflated)
{
	unsigned char in[PIECE];
	bool is_over = false;

	while (x->packed > 0 && !is_over) {
		size_t n = x->packed < sizeof in ? (size_t)x->packed : sizeof in;

		if (read_at(u, in, n, x->at) < 0 || call_check(u->in.call, u->in.e) < 0)
			return -1;
		x->at += n;
		x->packed -= n;
		if ((is_deflated ? inflate_piece(u, x, in, n, &is_over) : put(u, x, in, n)) < 0)
			return -1;
	}
	return 0;
}

static int fill(struct unzip *u, int to, const struct zip_entry *entry)
{
	char head[ZIP_LOCAL_BYTES];
	struct copying x = {
		.to = to, .packed = entry->packed, .size = entry->size, .crc = crc32(0, NULL, 0)
	};
	bool is_deflated = entry->method == ZIP_DEFLATED;
	struct err e = { 0 };

	if (read_at(u, head, sizeof head, entry->at) < 0)
		return -1;
	int skip = zip_local(head, &e);
	if (skip < 0)
		return broken(u, e.msg);
	x.at = entry->at + sizeof head + (uint64_t)skip;
	if (is_deflated && inflateInit2(&x.z, RAW_DEFLATE) != Z_OK)
		return broken(u, "no memory to inflate");
	int r = copy(u, &x, is_deflated);
	if (is_deflated)
		inflateEnd(&x.z);
	if (r < 0)
		return -1;
	return x.size == 0 && x.crc == entry->crc ? 0 : broken(u, "an entry is not whole");
}

static int unpack_file(struct unzip *u, const struct zip_entry *entry, const char *path)
{
	const char *name;

	if (dest_count(&u->in.dest, entry->size, u->in.e) < 0)
		return -1;
	int dir_fd = dest_parent(&u->in.dest, path, &name, u->in.e);
	if (dir_fd < 0)
		return -1;
	AUTO(fd_close)
	int fd = os_openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (fd == -EEXIST)
		return fail(u->in.e, TREE_INVALID, "%s: twice in the archive", path);
	if (fd < 0)
		return err_sys(u->in.e, -fd, "unpack %s", path);
	u->in.dest.files++;
	return fill(u, fd, entry) < 0 ? err_wrap(u->in.e, "%s", path) : 0;
}

static int unpack_entry(struct unzip *u, const struct zip_entry *entry)
{
	char name[PATH_TEXT_MAX], path[PATH_TEXT_MAX];
	bool is_dir = entry->name.len > 0 && entry->name.at[entry->name.len - 1] == '/';
	bool is_top = false;

	if (entry->name.len >= sizeof name || memchr(entry->name.at, '\0', entry->name.len))
		return broken(u, "a name that is not taken");
	memcpy(name, entry->name.at, entry->name.len);
	name[entry->name.len] = '\0';
	if (!tarname_clean(name, path, &is_top))
		return is_top && is_dir
		           ? 0
		           : fail(u->in.e, TREE_INVALID, "\"%s\": a name that is not taken", name);
	return is_dir ? dest_mkdir(&u->in.dest, path, u->in.e) : unpack_file(u, entry, path);
}

static int read_directory(struct unzip *u, struct zip_end *end)
{
	size_t n = u->size < ZIP_TAIL_MAX ? (size_t)u->size : ZIP_TAIL_MAX;
	AUTO(freep) char *tail = mem_alloc(n + 1);
	struct err e = { 0 };

	if (read_at(u, tail, n, u->size - n) < 0)
		return -1;
	if (zip_end((struct span){ tail, n }, u->size, end, &e) < 0)
		return broken(u, e.msg);
	if (end->len > DIRECTORY_MAX)
		return fail(u->in.e, TREE_TOO_LARGE, "too many entries");
	u->directory = mem_alloc((size_t)end->len + 1);
	return read_at(u, u->directory, (size_t)end->len, end->at);
}

static int unpack_all(struct unpack *in)
{
	struct unzip *u = (struct unzip *)in;
	struct zip_end end = { 0 };
	struct zip_entry entry;
	struct err e = { 0 };
	int r = read_directory(u, &end);
	struct span rest = { u->directory, (size_t)end.len };

	if (r < 0)
		return -1;
	while ((r = zip_next(&rest, &entry, &e)) > 0)
		if (unpack_entry(u, &entry) < 0)
			return -1;
	return r < 0 ? broken(u, e.msg) : 0;
}

struct zip_ask {
	const char *from;
};

int verb_unzip(struct call *c, struct err *e)
{
	static const struct field fields[] = {
		{ "from", offsetof(struct zip_ask, from), FIELD_PATH, true },
	};
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	AUTO(unzip_done) struct unzip u = { .in = UNPACK(c, e, unpack_all), .fd = -1 };
	struct zip_ask ask = { 0 };
	struct stat st;

	if (!body ||
	    json_read(body, (struct fields){ fields, COUNT(fields) }, &ask, &c->arena, e) < 0)
		return -1;
	u.fd = root_open_file(c->conn->root_fd, ask.from, &st, e);
	u.size = u.fd < 0 ? 0 : (uint64_t)st.st_size;
	return u.fd < 0 ? -1 : unpack_run(&u.in);
}
