#include "tree/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <linux/openat2.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/remove.h"
#include "tree/sys.h"
#include "tree/tarname.h"
#include "tree/walk.h"
#include "wire/hash.h"

#define STRICT (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)
#define WHITEOUT ".wh."
#define WHITEOUT_OURS ".wh..wh." /* what aufs keeps for itself */
#define OPAQUE ".wh..wh..opq"
#define ENTRY_BYTES 4096 /* that one takes besides its own */
#define BLOCK 512
#define END_MARK 1024 /* zeros, at least */

struct unpack {
	struct layers *l;
	const struct layer_ask *ask;
	struct archive *archive;
	struct decode decode;
	struct hash hash;
	size_t zeros;  /* at the end of what came, up to END_MARK */
	bool has_mark; /* we made one */
	struct err *e;
};

/* An entry on its way. */
struct member {
	struct archive_entry *entry;
	char path[PATH_TEXT_MAX];
	int dir_fd; /* borrowed */
	const char *name;
	mode_t type;
};

/* ---- room ---------------------------------------------------------------------------- */

/* Now and then: others write as well. */
static int look_at_disk(struct layers *l, uint64_t bytes, struct err *e)
{
	uint64_t left, all;

	l->unlooked += bytes;
	if (l->unlooked < TREE_FREE_EVERY)
		return 0;
	l->unlooked = 0;
	int r = os_room(l->dest.root_fd, &left, &all);
	if (r < 0)
		return err_sys(e, -r, "look at the disk");
	return left < l->keep_free ? fail(e, TREE_QUOTA, "the disk is full but for its reserve")
	                           : 0;
}

int layers_count(struct layers *l, uint64_t bytes, struct err *e)
{
	if (bytes > l->bytes_max || l->dest.bytes > l->bytes_max - bytes)
		return fail(e, TREE_TOO_LARGE, "more than %llu bytes",
		            (unsigned long long)l->bytes_max);
	l->dest.bytes += bytes;
	return look_at_disk(l, bytes, e);
}

/* ---- what is there ------------------------------------------------------------------- */

static void forget_dir(struct dest *d)
{
	fd_close(&d->dir_fd);
	str_clear(&d->dir);
}

/* Of the layers below: all of `path`, which lies at `name` in `dir_fd`; what this layer touched
 * stays. */
static int purge(struct unpack *u, int dir_fd, const char *name, const char *path)
{
	const struct remove_how how = { .call = u->l->call };
	struct nameset *mine = &u->l->mine;

	if (!nameset_has(mine, path)) {
		if (remove_tree(dir_fd, name, how, u->e) == 0 || u->e->sys == ENOENT) {
			*u->e = (struct err){ 0 };
			return 0;
		}
		return -1;
	}
	AUTO(walk_done) struct walk w = { .fd = -1 };
	AUTO(str_done) struct str inner = { .max = TREE_WALK_PATH_MAX };
	const struct walk_how all = {
		.call = u->l->call, .with_hidden = true, .with_temp = true, .with_git = true
	};
	struct walk_entry entry;
	int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd == -ENOTDIR || fd == -ELOOP)
		return 0; /* of this layer, and no directory */
	if (fd < 0)
		return err_sys(u->e, -fd, "open %s", path);
	int r = walk_open(&w, fd, all, u->e);
	while (r >= 0 && (r = walk_next(&w, &entry, u->e)) > 0) {
		str_clear(&inner);
		str_addf(&inner, "%s%s%s", path, *path ? "/" : "", entry.path);
		if (nameset_has(mine, str_text(&inner)))
			continue;
		walk_skip(&w);
		r = remove_tree(entry.dir_fd, entry.name, how, u->e);
	}
	return r;
}

static int purge_root(struct unpack *u)
{
	nameset_add(&u->l->mine, ""); /* the root itself stays */
	return purge(u, u->l->dest.root_fd, ".", "");
}

/* The place is free, or has a directory that stays one. What this layer made may only be made
 * again as what it was. */
static int make_room(struct unpack *u, const struct member *m)
{
	struct stat st;
	int r = os_fstatat(m->dir_fd, m->name, &st, AT_SYMLINK_NOFOLLOW);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(u->e, -r, "look at %s", m->path);
	bool is_mine = nameset_has(&u->l->mine, m->path);
	if (is_mine && (st.st_mode & S_IFMT) != m->type)
		return fail(u->e, TREE_INVALID, "%s: twice, and not the same kind", m->path);
	if (S_ISDIR(st.st_mode) && m->type == S_IFDIR)
		return 0;
	if (S_ISDIR(st.st_mode))
		return remove_tree(m->dir_fd, m->name, (struct remove_how){ .call = u->l->call },
		                   u->e);
	r = os_unlinkat(m->dir_fd, m->name);
	return r < 0 ? err_sys(u->e, -r, "replace %s", m->path) : 0;
}

/* ---- attributes ---------------------------------------------------------------------- */

static uint32_t id_of(int64_t id)
{
	return id < 0 || id > LAYER_ID_MAX ? LAYER_ID_MAX : (uint32_t)id;
}

/* Bits that mean nothing where nothing is setuid. */
static mode_t mode_of(struct unpack *u, struct archive_entry *entry)
{
	mode_t mode = archive_entry_perm(entry);

	u->l->dropped += (mode & 06000) != 0;
	return mode & 01777;
}

static int put_xattr(struct unpack *u, int fd, const char *name, struct span value)
{
	if (strncmp(name, "trusted.", 8) == 0 || strncmp(name, "user.overlay.", 13) == 0)
		return fail(u->e, TREE_INVALID, "an attribute that is not taken: %.64s", name);
	if (strncmp(name, "user.", 5) != 0) {
		u->l->dropped++;
		return 0;
	}
	if (value.len > TREE_XATTR_MAX)
		return fail(u->e, TREE_TOO_LARGE, "an attribute of %zu bytes", value.len);
	int r = os_setxattr(fd, name, value.at, value.len);
	return r < 0 ? err_sys(u->e, -r, "set %.64s", name) : 0;
}

/* `fd` -1: a link, which has none of a user. */
static int put_xattrs(struct unpack *u, int fd, const struct member *m)
{
	const char *name;
	const void *value;
	size_t n;

	archive_entry_xattr_reset(m->entry);
	while (archive_entry_xattr_next(m->entry, &name, &value, &n) == ARCHIVE_OK) {
		if (fd < 0)
			u->l->dropped++;
		else if (put_xattr(u, fd, name, (struct span){ value, n }) < 0)
			return err_wrap(u->e, "%s", m->path);
	}
	return 0;
}

static int put_owner(struct unpack *u, int fd, const char *name, const struct member *m)
{
	if (!u->l->has_owners)
		return 0;
	int r = os_fchownat(fd, name, id_of(archive_entry_uid(m->entry)),
	                    id_of(archive_entry_gid(m->entry)));
	return r < 0 ? err_sys(u->e, -r, "set the owner of %s", m->path) : 0;
}

static struct timespec mtime_of(struct archive_entry *entry)
{
	return (struct timespec){ archive_entry_mtime(entry), archive_entry_mtime_nsec(entry) };
}

/* Attributes before the mode, which may take away the right to set them. */
static int put_attributes(struct unpack *u, int fd, const struct member *m, mode_t mode)
{
	if (put_xattrs(u, fd, m) < 0 || put_owner(u, fd, "", m) < 0)
		return -1;
	int r = os_fchmod(fd, mode);
	return r < 0 ? err_sys(u->e, -r, "set the mode of %s", m->path) : 0;
}

/* ---- entries ------------------------------------------------------------------------- */

static int archive_fails(struct unpack *u)
{
	if (u->e->kind != ERR_NONE)
		return -1;
	return fail(u->e, TREE_INVALID, "the archive: %s", archive_error_string(u->archive));
}

/* Holes stay holes. */
static int fill(struct unpack *u, int fd, const struct member *m, uint64_t size)
{
	const void *bytes;
	size_t n;
	la_int64_t at;
	int r;

	while ((r = archive_read_data_block(u->archive, &bytes, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
			return fail(u->e, TREE_INVALID, "%s: longer than it says", m->path);
		if (n > 0 && u->has_mark) /* bytes of ours */
			return fail(u->e, TREE_INVALID, "%s: the archive ends in it", m->path);
		int w = n > 0 ? os_pwrite2(fd, bytes, n, NULL, 0, at) : 0;
		if (w < 0)
			return err_sys(u->e, -w, "write %s", m->path);
		if (call_check(u->l->call, u->e) < 0)
			return -1;
	}
	if (r != ARCHIVE_EOF)
		return archive_fails(u);
	r = os_ftruncate(fd, (off_t)size);
	return r < 0 ? err_sys(u->e, -r, "write %s", m->path) : 0;
}

static int unpack_file(struct unpack *u, struct member *m)
{
	int64_t size = archive_entry_size(m->entry);

	if (size < 0)
		return fail(u->e, TREE_INVALID, "%s: a size below 0", m->path);
	if (layers_count(u->l, (uint64_t)size, u->e) < 0)
		return err_wrap(u->e, "%s", m->path);
	AUTO(fd_close)
	int fd = os_openat(m->dir_fd, m->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(u->e, -fd, "unpack %s", m->path);
	if (fill(u, fd, m, (uint64_t)size) < 0 ||
	    put_attributes(u, fd, m, mode_of(u, m->entry)) < 0)
		return -1;
	/* A time that the file system does not take is no reason to fail. */
	(void)os_utimens(m->dir_fd, m->name, mtime_of(m->entry));
	u->l->dest.files++;
	return 0;
}

static int unpack_symlink(struct unpack *u, struct member *m)
{
	const char *target = archive_entry_symlink(m->entry);

	if (!target || !*target)
		return fail(u->e, TREE_INVALID, "%s: a link to nothing", m->path);
	int r = os_symlinkat(target, m->dir_fd, m->name);
	if (r < 0)
		return err_sys(u->e, -r, "make link %s", m->path);
	if (put_xattrs(u, -1, m) < 0 || put_owner(u, m->dir_fd, m->name, m) < 0)
		return -1;
	(void)os_utimens(m->dir_fd, m->name, mtime_of(m->entry));
	u->l->dest.files++;
	return 0;
}

static int note_time(struct unpack *u, const struct member *m)
{
	struct layers *l = u->l;

	l->names_bytes += strlen(m->path) + 1 + sizeof(struct layer_time);
	if (l->names_bytes > TREE_NAMES_MAX)
		return fail(u->e, TREE_TOO_LARGE, "names of directories of more than %u bytes",
		            TREE_NAMES_MAX);
	struct layer_time t = { arena_strdup(&l->names, m->path), mtime_of(m->entry) };

	vec_push(&l->times, t);
	return 0;
}

/* `mode` is what it has at least. */
static int set_dir(struct unpack *u, int fd, const struct member *m, mode_t mode)
{
	if (put_attributes(u, fd, m, mode_of(u, m->entry) | mode) < 0)
		return -1;
	return note_time(u, m);
}

static int unpack_dir(struct unpack *u, struct member *m)
{
	int r = os_mkdirat(m->dir_fd, m->name, 0700);

	if (r < 0 && r != -EEXIST)
		return err_sys(u->e, -r, "make directory %s", m->path);
	AUTO(fd_close)
	int fd = os_openat(m->dir_fd, m->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(u->e, -fd, "open directory %s", m->path);
	return set_dir(u, fd, m, 0700); /* what is below must still find room in it */
}

/* To what was unpacked before, here or below. */
static int unpack_hardlink(struct unpack *u, struct member *m)
{
	char target[PATH_TEXT_MAX];
	struct stat st;
	bool is_top;

	if (!tarname_clean(archive_entry_hardlink(m->entry), target, &is_top))
		return fail(u->e, TREE_INVALID, "%s: a link that leads out of the archive",
		            m->path);
	if (archive_entry_size(m->entry) > 0)
		return fail(u->e, TREE_INVALID, "%s: a link with bytes of its own", m->path);
	const char *slash = strrchr(target, '/'), *name = slash ? slash + 1 : target;
	char parent[PATH_TEXT_MAX] = ".";
	if (slash)
		snprintf(parent, sizeof parent, "%.*s", (int)(slash - target), target);
	AUTO(fd_close)
	int dir = os_openat2(u->l->dest.root_fd, parent, O_PATH | O_DIRECTORY, 0, STRICT);
	if (dir < 0 || os_fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return fail(u->e, TREE_INVALID, "%s: a link to what is not there", m->path);
	if (strcmp(target, m->path) == 0)
		return 0;
	m->type = st.st_mode & S_IFMT;
	if (make_room(u, m) < 0)
		return -1;
	int r = os_linkat((struct os_names){ dir, name, m->dir_fd, m->name });
	u->l->dest.files++;
	return r < 0 ? err_sys(u->e, -r, "make link %s", m->path) : 0;
}

/* ---- whiteouts ----------------------------------------------------------------------- */

static int whiteout(struct unpack *u, const struct member *m)
{
	const char *slash = strrchr(m->path, '/');
	char parent[PATH_TEXT_MAX] = ".", hidden[PATH_TEXT_MAX];
	const char *name = m->name + strlen(WHITEOUT);

	if (archive_entry_filetype(m->entry) != AE_IFREG)
		return fail(u->e, TREE_INVALID, "%s: a whiteout that is no file", m->path);
	if (slash)
		snprintf(parent, sizeof parent, "%.*s", (int)(slash - m->path), m->path);
	AUTO(fd_close)
	int dir = os_openat2(u->l->dest.root_fd, parent, O_RDONLY | O_DIRECTORY, 0, STRICT);
	if (dir == -ENOENT)
		return 0;
	if (dir < 0)
		return err_sys(u->e, -dir, "open %s", parent);
	forget_dir(&u->l->dest);
	if (strcmp(m->name, OPAQUE) == 0) {
		if (!slash)
			return purge_root(u);
		nameset_add(&u->l->mine, parent); /* it stays, empty */
		return purge(u, dir, ".", parent);
	}
	if (strncmp(m->name, WHITEOUT_OURS, strlen(WHITEOUT_OURS)) == 0)
		return 0;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return fail(u->e, TREE_INVALID, "%s: a whiteout of nothing", m->path);
	snprintf(hidden, sizeof hidden, "%s%s%s", slash ? parent : "", slash ? "/" : "", name);
	return purge(u, dir, name, hidden);
}

/* ---- one layer ----------------------------------------------------------------------- */

static const struct {
	mode_t type;
	int (*make)(struct unpack *u, struct member *m);
} kinds[] = {
	{ S_IFREG, unpack_file },
	{ S_IFLNK, unpack_symlink },
	{ S_IFDIR, unpack_dir },
};

static int unpack_root(struct unpack *u, struct member *m)
{
	m->path[0] = '\0';
	return set_dir(u, u->l->dest.root_fd, m, 0755);
}

static int unpack_kind(struct unpack *u, struct member *m)
{
	m->type = archive_entry_filetype(m->entry);
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (kinds[i].type == m->type)
			return make_room(u, m) < 0 ? -1 : kinds[i].make(u, m);
	return fail(u->e, TREE_INVALID, "%s: not a file, directory or link", m->path);
}

static int unpack_one(struct unpack *u, struct archive_entry *entry)
{
	static struct member m; /* a path is large, and there is one at a time */
	const char *name = archive_entry_pathname(entry);
	bool is_top;

	m = (struct member){ .entry = entry };
	if (look_at_disk(u->l, ENTRY_BYTES, u->e) < 0)
		return -1;
	if (++u->l->entries > TREE_ARCHIVE_ENTRIES_MAX)
		return fail(u->e, TREE_TOO_LARGE, "more than %d entries", TREE_ARCHIVE_ENTRIES_MAX);
	if (!name || !tarname_clean(name, m.path, &is_top)) {
		if (name && is_top && archive_entry_filetype(entry) == AE_IFDIR)
			return unpack_root(u, &m);
		return fail(u->e, TREE_INVALID, "\"%.200s\": a name that is not taken",
		            name ? name : "");
	}
	const char *slash = strrchr(m.path, '/');
	m.name = slash ? slash + 1 : m.path;
	if (u->ask->has_whiteouts && strncmp(m.name, WHITEOUT, strlen(WHITEOUT)) == 0)
		return whiteout(u, &m);
	m.dir_fd = dest_parent(&u->l->dest, m.path, &m.name, u->e);
	if (m.dir_fd < 0)
		return u->e->sys == ELOOP ? fail(u->e, TREE_INVALID, "%s: through a link", m.path)
		                          : -1;
	int r = archive_entry_hardlink(entry) ? unpack_hardlink(u, &m) : unpack_kind(u, &m);
	if (r == 0)
		nameset_add(&u->l->mine, m.path);
	return r;
}

static void count_zeros(struct unpack *u, struct span piece)
{
	size_t n = 0;

	while (n < piece.len && n < END_MARK && piece.at[piece.len - 1 - n] == 0)
		n++;
	if (n == piece.len)
		n += u->zeros;
	u->zeros = n < END_MARK ? n : END_MARK;
}

static int next_piece(struct unpack *u, struct span *out)
{
	int r = decode_next(&u->decode, out, u->e);

	if (r > 0 && u->ask->hex)
		hash_add(&u->hash, *out);
	if (r > 0)
		count_zeros(u, *out);
	return r;
}

/* Some programs leave out the end of the last block, and the mark behind it. What has a digest is
 * whole all the same. */
static struct span end_mark(struct unpack *u)
{
	static const char zeros[BLOCK + END_MARK];
	size_t open = u->decode.n_out % BLOCK;

	if (u->ask->must_end || u->has_mark)
		return (struct span){ "", 0 };
	u->has_mark = true;
	return (struct span){ zeros, (open ? BLOCK - open : 0) + END_MARK };
}

static la_ssize_t get(struct archive *archive, void *data, const void **bytes)
{
	struct unpack *u = data;
	struct span piece = { "", 0 };
	int r = next_piece(u, &piece);

	if (r == 0)
		piece = end_mark(u);
	*bytes = piece.at;
	if (r >= 0)
		return (la_ssize_t)piece.len;
	archive_set_error(archive, EIO, "it ends early");
	return -1;
}

static int unpack_all(struct unpack *u)
{
	struct archive_entry *entry;
	struct span rest;
	int r;

	if (archive_read_open(u->archive, u, NULL, get, NULL) != ARCHIVE_OK)
		return archive_fails(u);
	/* A warning says that a name is not ASCII; we take its bytes. */
	while ((r = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN) {
		if (unpack_one(u, entry) < 0 || call_check(u->l->call, u->e) < 0)
			return -1;
	}
	if (r != ARCHIVE_EOF)
		return archive_fails(u);
	while ((r = next_piece(u, &rest)) > 0) /* what is behind the end mark is nobody's */
		if (call_check(u->l->call, u->e) < 0)
			return -1;
	if (r == 0 && u->ask->must_end && u->zeros < END_MARK)
		return fail(u->e, TREE_INVALID, "the archive is cut: it has no end mark");
	return r;
}

int layers_apply(struct layers *l, const struct layer_ask *ask, struct err *e)
{
	struct unpack u = { .l = l, .ask = ask, .archive = archive_read_new(), .e = e };

	if (!u.archive)
		abort();
	nameset_clear(&l->mine);
	hash_init(&u.hash);
	decode_open(&u.decode, ask->kind, ask->source, ask->arg);
	archive_read_support_format_tar(u.archive);
	int r = unpack_all(&u);
	if (r == 0 && ask->hex)
		hash_text(&u.hash, ask->hex);
	archive_read_free(u.archive);
	decode_done(&u.decode);
	l->n++;
	return r;
}

/* ---- all of them --------------------------------------------------------------------- */

int layers_open(struct layers *l, struct call *call, int root_fd, struct err *e)
{
	*l = (struct layers){ .call = call,
		              .has_owners = call->flags & TREE_OWNERS,
		              .bytes_max = call->req.count,
		              .keep_free = call->req.from,
		              .unlooked = TREE_FREE_EVERY,
		              .mine = { .seed = sys_random() },
		              .dest = { .dir_fd = -1, .dir = { .max = TREE_WALK_PATH_MAX } } };
	l->dest.root_fd = os_openat(root_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (l->dest.root_fd < 0)
		return err_sys(e, -l->dest.root_fd, "open the folder of the image");
	int r = os_fchmod(l->dest.root_fd, 0755);
	return r < 0 ? err_sys(e, -r, "set the mode of the root") : 0;
}

int layers_finish(struct layers *l, struct err *e)
{
	for (size_t i = 0; i < l->times.len; i++) {
		const struct layer_time *t = &l->times.at[i];
		AUTO(fd_close)
		int fd = os_openat2(l->dest.root_fd, *t->path ? t->path : ".",
		                    O_RDONLY | O_DIRECTORY, 0, STRICT);

		if (fd >= 0) /* a layer above may have removed it */
			(void)os_utimens(fd, ".", t->mtime);
		if (call_check(l->call, e) < 0)
			return -1;
	}
	return 0;
}

void layers_done(struct layers *l)
{
	dest_done(&l->dest);
	nameset_done(&l->mine);
	arena_done(&l->names);
	vec_done(&l->times);
}
