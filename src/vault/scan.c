#include "vault/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/blob.h"
#include "vault/names.h"
#include "vault/xattrs.h"
#include "wire/tree.h"

#define TICKS_NS 20000000ll /* two of the slowest clock (100 Hz) */
#define CLOCK_TRIES 8
#define LARGE (4u << 20) /* reading it again costs more than a millisecond */

struct link_name {
	uint64_t ino;
	size_t place;
};

struct walk {
	struct scan *s;
	struct manifest *out;
	size_t cursor; /* in s->before */
	int64_t now_ns, wait_until_ns;
	char path[MANIFEST_PATH_MAX + 1];
	size_t path_len;
	VEC(struct link_name) links;
	struct str xattrs;
};

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static bool looks_same(const struct entry *e, const struct stat *st)
{
	return e->ino == st->st_ino && e->ctime_s == st->st_ctim.tv_sec &&
	       e->ctime_ns == (uint32_t)st->st_ctim.tv_nsec && e->mtime_s == st->st_mtim.tv_sec &&
	       e->mtime_ns == (uint32_t)st->st_mtim.tv_nsec && e->mode == (st->st_mode & 07777) &&
	       (e->type != ENTRY_FILE || e->size == (uint64_t)st->st_size);
}

static enum entry_type type_of(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return ENTRY_DIR;
	case S_IFREG:
		return ENTRY_FILE;
	case S_IFLNK:
		return ENTRY_LINK;
	case S_IFIFO:
		return ENTRY_FIFO;
	case S_IFSOCK:
		return ENTRY_SOCKET;
	case S_IFCHR:
		return st->st_rdev == 0 ? ENTRY_WHITEOUT : ENTRY_TYPES;
	default:
		return ENTRY_TYPES;
	}
}

static const struct entry *find_before(struct walk *w, struct span path)
{
	const struct manifest *b = w->s->before;

	if (!b)
		return NULL;
	while (w->cursor < b->list.len && path_order(b->list.at[w->cursor].path, path) < 0)
		w->cursor++;
	if (w->cursor == b->list.len || path_order(b->list.at[w->cursor].path, path) != 0)
		return NULL;
	return &b->list.at[w->cursor];
}

static int read_content(struct walk *w, int fd, struct entry *out, struct err *e)
{
	bool has_writer = os_nobody_writes(fd) < 0; /* anything but a clear no is a yes */
	int64_t ctime_ns = out->ctime_s * 1000000000ll + out->ctime_ns;
	bool is_young = w->s->v->clock != CLOCK_FINE && ctime_ns > w->now_ns - TICKS_NS;

	if (out->size > LARGE) {
		if (has_writer && os_write_out(fd) < 0)
			out->is_unsure = true;
		if (is_young && ctime_ns + TICKS_NS > w->wait_until_ns)
			w->wait_until_ns = ctime_ns + TICKS_NS;
	} else {
		out->is_unsure = has_writer || is_young;
	}
	if (w->s->is_keeping)
		return blob_keep(w->s->v, fd, out->size, out->hash, &w->s->kept, e);
	return blob_hash((struct content){ fd, 0 }, out->size, out->hash, e);
}

static int read_link(struct walk *w, int dir_fd, const char *name, struct entry *out, struct err *e)
{
	char text[PATH_MAX];
	int n = os_readlinkat(dir_fd, name, text, sizeof text);

	if (n < 0)
		return err_sys(e, -n, "read a link");
	out->target = (struct span){ text, (size_t)n };
	manifest_add(w->out, out);
	out->target = (struct span){ 0 }; /* the copy has it */
	return 0;
}

/* All that an entry says; `fd` of what can be opened (a file, a directory), else -1. */
static int read_entry(struct walk *w, int dir_fd, const char *name, int fd, struct entry *out,
                      struct err *e)
{
	if (out->type == ENTRY_LINK)
		return read_link(w, dir_fd, name, out, e);
	if (fd >= 0) {
		if (xattrs_read(fd, &w->xattrs, e) < 0)
			return -1;
		out->xattrs = (struct span){ str_text(&w->xattrs), w->xattrs.len };
	}
	if (out->type == ENTRY_FILE && read_content(w, fd, out, e) < 0)
		return -1;
	manifest_add(w->out, out);
	return 0;
}

static struct entry entry_of(const struct walk *w, const struct stat *st)
{
	return (struct entry){ .path = { w->path, w->path_len },
		               .type = type_of(st),
		               .mode = st->st_mode & 07777,
		               .uid = st->st_uid,
		               .gid = st->st_gid,
		               .mtime_s = st->st_mtim.tv_sec,
		               .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		               .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
		               .ino = st->st_ino,
		               .ctime_s = st->st_ctim.tv_sec,
		               .ctime_ns = (uint32_t)st->st_ctim.tv_nsec };
}

static int scan_dir(struct walk *w, int fd, struct err *e);

/* `fd` of a directory that is open already, else -1. */
static int scan_one(struct walk *w, int dir_fd, const char *name, int fd, const struct stat *st,
                    struct err *e)
{
	struct entry now = entry_of(w, st);
	const struct entry *before = find_before(w, now.path);
	AUTO(fd_close) int own = -1;

	if (now.type == ENTRY_TYPES)
		return 0; /* a device: nobody inside can make one */
	if (now.type == ENTRY_FILE && st->st_nlink > 1)
		vec_push(&w->links, (struct link_name){ st->st_ino, w->out->list.len });
	if (before && before->type == now.type && !before->is_unsure && looks_same(before, st)) {
		struct entry *same = manifest_add(w->out, before);

		if (same->type == ENTRY_FILE)
			same->target = (struct span){ "", 0 };
		return 0;
	}
	if (now.type == ENTRY_FILE) {
		own = os_openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME, 0);
		if (own < 0)
			return err_sys(e, -own, "open a file");
		fd = own;
	}
	return read_entry(w, dir_fd, name, fd, &now, e);
}

static int scan_name(struct walk *w, int dir_fd, const char *name, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int fd = -1;
	int r = os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return err_sys(e, -r, "look at a file");
	if (S_ISDIR(st.st_mode)) {
		fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd < 0)
			return err_sys(e, -fd, "open a directory");
	}
	if (scan_one(w, dir_fd, name, fd, &st, e) < 0)
		return -1;
	return fd < 0 ? 0 : scan_dir(w, fd, e);
}

/* The entry of the directory itself is there already. */
static int scan_dir(struct walk *w, int fd, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };
	size_t len = w->path_len;

	if (names_read(fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.list.len; i++) {
		const char *name = names.list.at[i].text;
		size_t n = strlen(name), slash = len > 0;

		if (strncmp(name, TREE_TEMP_PREFIX, strlen(TREE_TEMP_PREFIX)) == 0)
			continue;
		if (len + slash + n > MANIFEST_PATH_MAX)
			return err_new(e, ERR_LIMIT, "a path has more than %d bytes",
			               MANIFEST_PATH_MAX);
		if (slash)
			w->path[len] = '/';
		memcpy(w->path + len + slash, name, n + 1);
		w->path_len = len + slash + n;
		if (scan_name(w, fd, name, e) < 0)
			return -1;
	}
	w->path_len = len;
	return 0;
}

static int by_inode(const void *a, const void *b)
{
	const struct link_name *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

/* Every name of a file but the first says which that is. */
static void tie_links(struct walk *w)
{
	if (w->links.len > 1)
		qsort(w->links.at, w->links.len, sizeof *w->links.at, by_inode);
	for (size_t i = 1, first = 0; i < w->links.len; i++) {
		if (w->links.at[i].ino != w->links.at[first].ino)
			first = i;
		else
			w->out->list.at[w->links.at[i].place].target =
			    w->out->list.at[w->links.at[first].place].path;
	}
}

static void wait_for_tick(int64_t until_ns)
{
	int64_t left = until_ns - clock_ns();

	if (until_ns == 0 || left <= 0)
		return;
	if (left > TICKS_NS) /* the clock was set back */
		left = TICKS_NS;
	nanosleep(&(struct timespec){ .tv_nsec = (long)left }, NULL);
}

/* Does every change have a time of its own when somebody looks in between? A coarse clock would
 * have to tick as often as we try. */
static bool is_clock_fine(int files_fd)
{
	AUTO(fd_close) int fd = os_openat(files_fd, ".", O_TMPFILE | O_RDWR, 0600);
	struct stat st, last = { 0 };

	for (int i = 0; i < CLOCK_TRIES && fd >= 0; i++) {
		if (os_pwrite2(fd, "x", 1, NULL, 0, 0) < 0 ||
		    os_fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
			return false;
		if (st.st_ctim.tv_sec == last.st_ctim.tv_sec &&
		    st.st_ctim.tv_nsec == last.st_ctim.tv_nsec)
			return false;
		last = st;
	}
	return fd >= 0;
}

int scan_top(struct scan *s, int files_fd, struct manifest *out, struct err *e)
{
	struct walk w = { .s = s, .out = out, .now_ns = clock_ns(), .xattrs.max = XATTRS_MAX };
	struct stat st;

	if (s->v->clock == CLOCK_UNKNOWN)
		s->v->clock = is_clock_fine(files_fd) ? CLOCK_FINE : CLOCK_COARSE;
	int r = os_fstatat(files_fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		(void)err_sys(e, -r, "look at the top");
	if (r >= 0)
		r = scan_one(&w, files_fd, "", files_fd, &st, e);
	if (r >= 0)
		r = scan_dir(&w, files_fd, e);
	if (r < 0 && w.path_len > 0)
		(void)err_wrap(e, "%.200s", w.path);
	if (r >= 0) {
		tie_links(&w);
		wait_for_tick(w.wait_until_ns);
	}
	vec_done(&w.links);
	str_done(&w.xattrs);
	return r < 0 ? -1 : 0;
}
