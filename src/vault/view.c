#include "vault/view.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"
#include "vault/blob.h"
#include "vault/names.h"
#include "vault/xattrs.h"

#define BELOW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

struct compare {
	const struct side *a, *b;
	struct view_pairs pairs;
	view_visit *visit;
	void *ctx;
	struct arena arena;
};

/* A child as the manifests name it. */
struct child {
	struct span name;
	const struct entry *a, *b;
};

static struct span join(struct arena *arena, struct span dir, struct span name)
{
	char *text = arena_alloc(arena, dir.len + name.len + 2);

	memcpy(text, dir.at, dir.len);
	if (dir.len > 0)
		text[dir.len] = '/';
	memcpy(text + dir.len + (dir.len > 0), name.at, name.len);
	return (struct span){ text, dir.len + (dir.len > 0) + name.len };
}

static int open_lower(const struct side *s, struct span lower, int flags)
{
	if (lower.len == 0)
		return os_openat(s->lower_fd, ".", flags | O_NOFOLLOW, 0);
	return os_openat2(s->lower_fd, lower.at, flags | O_NOFOLLOW, 0, BELOW);
}

static int stat_lower(const struct side *s, struct span lower, struct stat *st)
{
	AUTO(fd_close) int fd = open_lower(s, lower, O_PATH);

	return fd < 0 ? fd : os_fstatat(fd, "", st, AT_EMPTY_PATH);
}

static enum entry_type type_of(mode_t mode)
{
	return S_ISDIR(mode)    ? ENTRY_DIR
	       : S_ISREG(mode)  ? ENTRY_FILE
	       : S_ISLNK(mode)  ? ENTRY_LINK
	       : S_ISFIFO(mode) ? ENTRY_FIFO
	       : S_ISSOCK(mode) ? ENTRY_SOCKET
	                        : ENTRY_TYPES;
}

static int look_lower(const struct node *n, struct entry *out, struct err *e)
{
	struct stat st;
	int r = stat_lower(n->side, n->lower, &st);

	*out = (struct entry){ .type = ENTRY_TYPES };
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "look at the layers");
	out->type = type_of(st.st_mode); /* a device: sandboxes do not see it either */
	out->mode = st.st_mode & 07777;
	out->uid = st.st_uid;
	out->gid = st.st_gid;
	out->mtime_s = st.st_mtim.tv_sec;
	out->mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
	out->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	out->ino = st.st_ino;
	out->ctime_s = st.st_ctim.tv_sec;
	out->ctime_ns = (uint32_t)st.st_ctim.tv_nsec;
	return 0;
}

/* From the layers; absent when they have nothing there. */
static int see_lower(struct node *n, struct err *e)
{
	n->known = n->side->known ? known_at(n->side->known, n->lower) : NULL;
	if (n->known && n->known->is_looked)
		n->seen = n->known->seen;
	else if (look_lower(n, &n->seen, e) < 0)
		return -1;
	if (n->known && !n->known->is_looked) {
		n->known->seen = n->seen;
		n->known->is_looked = true;
	}
	n->is_there = n->seen.type != ENTRY_TYPES;
	return 0;
}

/* Of a directory in the top: what it is merged with. Attributes of users are not the overlay's own
 * where it uses the other kind, whatever they say. */
static void see_below(const struct node *parent, struct node *n, struct arena *arena,
                      bool is_rootless)
{
	const char *opaque = is_rootless ? "user.overlay.opaque" : "trusted.overlay.opaque";
	const char *redirect = is_rootless ? "user.overlay.redirect" : "trusted.overlay.redirect";
	struct span o = entry_xattr(n->top, opaque), to = entry_xattr(n->top, redirect);

	if (span_is(o, "y")) {
		n->has_lower = false;
	} else if (to.len > 0 && to.at[0] == '/') {
		n->has_lower = true;
		n->lower = (struct span){ arena_strndup(arena, to.at + 1, to.len - 1), to.len - 1 };
	} else if (to.len > 0) {
		n->has_lower = parent->has_lower;
		n->lower = join(arena, parent->lower, to);
	}
}

static int see(const struct node *parent, struct span name, const struct entry *top,
               struct arena *arena, struct node *out, struct err *e)
{
	*out = (struct node){ .side = parent->side, .top = top };
	out->path = join(arena, parent->path, name);
	if (!parent->is_there || parent->seen.type != ENTRY_DIR)
		return 0;
	out->has_lower = parent->has_lower;
	if (out->has_lower)
		out->lower = join(arena, parent->lower, name);
	if (!top)
		return out->has_lower ? see_lower(out, e) : 0;
	out->seen = *top;
	out->is_there = top->type != ENTRY_WHITEOUT;
	if (top->type == ENTRY_DIR)
		see_below(parent, out, arena, parent->side->is_rootless);
	else
		out->has_lower = false;
	return 0;
}

static int see_root(const struct side *s, struct node *out, struct err *e)
{
	*out = (struct node){ .side = s, .path = { "", 0 }, .has_lower = true, .lower = { "", 0 } };
	out->top = manifest_find(s->top, (struct span){ "", 0 });
	if (!out->top)
		return see_lower(out, e);
	out->seen = *out->top;
	out->is_there = true;
	return 0;
}

/* ---- what is in a directory -------------------------------------------------------- */

struct children {
	VEC(struct child) list;
};

/* The name in `dir` that an entry below it begins with, and where the list goes on behind it. */
static struct span child_name(struct span path, size_t dir_len)
{
	struct span rest = span_after(path, dir_len + (dir_len > 0));
	const char *slash = memchr(rest.at, '/', rest.len);

	return (struct span){ rest.at, slash ? (size_t)(slash - rest.at) : rest.len };
}

/* The next entry that is directly in `dir`; NULL at the end. */
static const struct entry *next_child(const struct manifest *m, struct span dir, size_t *at)
{
	while (*at < m->list.len && path_is_below(m->list.at[*at].path, dir)) {
		const struct entry *e = &m->list.at[(*at)++];

		if (child_name(e->path, dir.len).len == e->path.len - dir.len - (dir.len > 0))
			return e;
	}
	return NULL;
}

/* The first one that may be in `dir`. */
static size_t first_child(const struct manifest *m, struct span dir)
{
	size_t i = manifest_place(m, dir);

	return i + (i < m->list.len && path_order(m->list.at[i].path, dir) == 0);
}

static void add_child(struct children *c, struct child one)
{
	vec_push(&c->list, one);
}

/* The children of one side, one after the other. */
struct cursor {
	const struct manifest *m;
	struct span dir;
	size_t at;
	const struct entry *entry; /* NULL: the end */
	struct span name;
};

static void cursor_next(struct cursor *c)
{
	c->entry = next_child(c->m, c->dir, &c->at);
	if (c->entry)
		c->name = child_name(c->entry->path, c->dir.len);
}

static struct cursor cursor_begin(const struct manifest *m, struct span dir)
{
	struct cursor c = { .m = m, .dir = dir, .at = first_child(m, dir) };

	cursor_next(&c);
	return c;
}

/* Of both manifests, in order. */
static void list_tops(const struct compare *c, const struct node *a, const struct node *b,
                      struct children *out)
{
	struct cursor x = cursor_begin(c->a->top, a->path), y = cursor_begin(c->b->top, b->path);

	while (x.entry || y.entry) {
		int order = !x.entry ? 1 : !y.entry ? -1 : path_order(x.name, y.name);
		struct child n = { .name = order <= 0 ? x.name : y.name };

		if (order <= 0) {
			n.a = x.entry;
			cursor_next(&x);
		}
		if (order >= 0) {
			n.b = y.entry;
			cursor_next(&y);
		}
		add_child(out, n);
	}
}

static int by_name(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return path_order(x->name, y->name);
}

static const struct child *find_child(const struct children *c, size_t n, struct span name)
{
	struct child key = { .name = name };

	return n == 0 ? NULL : bsearch(&key, c->list.at, n, sizeof key, by_name);
}

/* Names of the layers that no top names; `n_known` of the list are sorted. */
static int list_lower(struct compare *c, const struct node *n, size_t n_known, struct children *out,
                      struct err *e)
{
	AUTO(names_done) struct names names = { 0 };

	if (!n->is_there || n->seen.type != ENTRY_DIR || !n->has_lower)
		return 0;
	AUTO(fd_close) int fd = open_lower(n->side, n->lower, O_RDONLY | O_DIRECTORY);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return err_sys(e, -fd, "open a directory of the layers");
	if (names_read(fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.list.len; i++) {
		struct span name = span_of(names.list.at[i].text);

		if (find_child(out, n_known, name))
			continue;
		name.at = arena_strndup(&c->arena, name.at, name.len);
		add_child(out, (struct child){ .name = name });
	}
	return 0;
}

static void sort_children(struct children *c, size_t n_known)
{
	size_t n = 0;

	if (c->list.len == n_known)
		return;
	qsort(c->list.at, c->list.len, sizeof *c->list.at, by_name);
	for (size_t i = 0; i < c->list.len; i++) /* both layers may have had it */
		if (n == 0 || by_name(&c->list.at[n - 1], &c->list.at[i]) != 0)
			c->list.at[n++] = c->list.at[i];
	c->list.len = n;
}

static bool same_lower(const struct node *a, const struct node *b)
{
	if (!a->is_there || !b->is_there || a->side->is_other || b->side->is_other)
		return false;
	if (a->has_lower != b->has_lower)
		return false;
	return !a->has_lower || path_order(a->lower, b->lower) == 0;
}

static int list_children(struct compare *c, const struct node *a, const struct node *b,
                         struct children *out, struct err *e)
{
	list_tops(c, a, b, out);
	if (same_lower(a, b))
		return 0;
	size_t n_known = out->list.len;
	if (list_lower(c, a, n_known, out, e) < 0 || list_lower(c, b, n_known, out, e) < 0)
		return -1;
	sort_children(out, n_known);
	return 0;
}

/* ---- the walk ---------------------------------------------------------------------- */

/* Nothing at this name can differ, nor below it. */
static bool is_same(const struct child *n, const struct node *a, const struct node *b)
{
	if (n->a && n->b)
		return n->a->type != ENTRY_DIR && entry_same(n->a, n->b);
	if (n->a || n->b)
		return !a->is_there && !b->is_there;
	if (!a->is_there && !b->is_there)
		return true;
	if (!a->is_there || !b->is_there)
		return false;
	if (same_lower(a, b))
		return true;
	return a->seen.type == b->seen.type && a->seen.type != ENTRY_DIR &&
	       a->seen.ino == b->seen.ino && a->seen.ctime_s == b->seen.ctime_s &&
	       a->seen.ctime_ns == b->seen.ctime_ns && a->seen.size == b->seen.size;
}

static bool is_dir(const struct node *n)
{
	return n->is_there && n->seen.type == ENTRY_DIR;
}

/* What was renamed is gone from its old name, and is what the new one had before. */
static int follow_pairs(const struct compare *c, struct node *a, const struct node *b,
                        struct arena *arena, struct err *e)
{
	for (size_t i = 0; i < c->pairs.n; i++) {
		const struct view_pair *p = &c->pairs.at[i];

		if (is_dir(b) && path_order(b->path, p->to) == 0)
			return view_find(c->a, p->from, arena, a, e);
		if (a->is_there && path_order(a->path, p->from) == 0)
			a->is_there = false;
	}
	return 0;
}

static int walk_dir(struct compare *c, struct node *a, struct node *b, struct err *e);

static int walk_child(struct compare *c, const struct child *n, const struct node *pa,
                      const struct node *pb, struct err *e)
{
	struct node a, b;

	if (n->a && n->b && n->a->type != ENTRY_DIR && entry_same(n->a, n->b))
		return 0;
	if (see(pa, n->name, n->a, &c->arena, &a, e) < 0 ||
	    see(pb, n->name, n->b, &c->arena, &b, e) < 0)
		return -1;
	if (c->pairs.n > 0 && follow_pairs(c, &a, &b, &c->arena, e) < 0)
		return -1;
	if (is_same(n, &a, &b))
		return 0;
	if (b.path.len > MANIFEST_PATH_MAX)
		return err_new(e, ERR_LIMIT, "a path has more than %d bytes", MANIFEST_PATH_MAX);
	int r = c->visit(c->ctx, VIEW_ENTER, b.path, &a, &b, e);
	if (r < 0)
		return -1;
	if (r != VIEW_STAY && (is_dir(&a) || is_dir(&b)) && walk_dir(c, &a, &b, e) < 0)
		return -1;
	return 1;
}

static int walk_dir(struct compare *c, struct node *a, struct node *b, struct err *e)
{
	struct children list = { 0 };
	int n_seen = 0;
	int r = list_children(c, a, b, &list, e);

	for (size_t i = 0; i < list.list.len && r >= 0; i++) {
		r = walk_child(c, &list.list.at[i], a, b, e);
		n_seen += r > 0;
	}
	vec_done(&list.list);
	if (r < 0)
		return -1;
	if (!is_dir(b) || (n_seen == 0 && a->top && b->top && entry_same(a->top, b->top)))
		return 0;
	return c->visit(c->ctx, VIEW_LEAVE, b->path, a, b, e) < 0 ? -1 : 0;
}

int view_compare(const struct side *a, const struct side *b, struct view_pairs pairs,
                 view_visit *visit, void *ctx, struct err *e)
{
	struct compare c = { .a = a, .b = b, .pairs = pairs, .visit = visit, .ctx = ctx };
	struct node x, y;
	int r = see_root(a, &x, e);

	if (r >= 0)
		r = see_root(b, &y, e);
	if (r >= 0)
		r = walk_dir(&c, &x, &y, e);
	arena_done(&c.arena);
	return r < 0 ? -1 : 0;
}

int view_find(const struct side *s, struct span path, struct arena *arena, struct node *out,
              struct err *e)
{
	struct span done = { path.at, 0 };

	if (see_root(s, out, e) < 0)
		return -1;
	while (done.len < path.len && out->is_there) {
		struct span name = child_name(path, done.len);
		struct node parent = *out;

		done.len += (done.len > 0) + name.len;
		if (see(&parent, name, manifest_find(s->top, done), arena, out, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- what a node holds ------------------------------------------------------------- */

int view_open(const struct vault *v, const struct node *n, struct content *out, struct err *e)
{
	if (n->top)
		return blob_open(v, n->top->hash, out, e);
	*out = (struct content){ open_lower(n->side, n->lower, O_RDONLY | O_NONBLOCK), 0 };
	return out->fd < 0 ? err_sys(e, -out->fd, "open a file of the layers") : 0;
}

static int hash_of_node(const struct vault *v, struct node *n, struct err *e)
{
	static const uint8_t none[BLOB_HASH];
	struct known *k = n->top ? NULL : n->known;

	if (n->top || n->seen.size == 0 || memcmp(n->seen.hash, none, sizeof none) != 0)
		return 0;
	if (!k || !k->is_hashed) {
		AUTO(content_done) struct content from = { .fd = -1 };

		if (view_open(v, n, &from, e) < 0 ||
		    blob_hash(from, n->seen.size, n->seen.hash, e) < 0)
			return -1;
	}
	if (k && k->is_hashed)
		memcpy(n->seen.hash, k->seen.hash, BLOB_HASH);
	else if (k)
		memcpy(k->seen.hash, n->seen.hash, BLOB_HASH);
	if (k)
		k->is_hashed = true;
	return 0;
}

int view_same_content(const struct vault *v, struct node *a, struct node *b, struct err *e)
{
	if (a->seen.size != b->seen.size)
		return 0;
	if (a->seen.size == 0)
		return 1;
	if (hash_of_node(v, a, e) < 0 || hash_of_node(v, b, e) < 0)
		return -1;
	return memcmp(a->seen.hash, b->seen.hash, BLOB_HASH) == 0;
}

static int read_target(const struct node *n, struct arena *arena, struct entry *out, struct err *e)
{
	char text[PATH_MAX];
	AUTO(fd_close) int fd = open_lower(n->side, n->lower, O_PATH);
	int r = fd < 0 ? fd : os_readlinkat(fd, "", text, sizeof text);

	if (r < 0)
		return err_sys(e, -r, "read a link of the layers");
	out->target = (struct span){ arena_strndup(arena, text, (size_t)r), (size_t)r };
	return 0;
}

static int read_xattrs(int fd, struct arena *arena, struct entry *out, struct err *e)
{
	AUTO(str_done) struct str xattrs = { .max = XATTRS_MAX };

	if (xattrs_read(fd, &xattrs, e) < 0)
		return -1;
	out->xattrs =
	    (struct span){ arena_strndup(arena, str_text(&xattrs), xattrs.len), xattrs.len };
	return 0;
}

static void note_read(const struct node *n, const struct entry *e)
{
	struct known *k = n->known;

	if (!k)
		return;
	k->seen.target = known_keep(n->side->known, e->target);
	k->seen.xattrs = known_keep(n->side->known, e->xattrs);
	k->is_read = true;
}

int view_open_read(const struct vault *v, const struct node *n, struct arena *arena,
                   struct content *out, struct entry *entry, struct err *e)
{
	*entry = n->seen;
	if (view_open(v, n, out, e) < 0)
		return -1;
	if (n->top)
		return 0;
	if (n->known && n->known->is_read) {
		entry->xattrs = n->known->seen.xattrs;
		return 0;
	}
	if (read_xattrs(out->fd, arena, entry, e) < 0)
		return -1;
	note_read(n, entry);
	return 0;
}

static int read_lower(const struct node *n, struct arena *arena, struct entry *out, struct err *e)
{
	if (n->seen.type == ENTRY_LINK)
		return read_target(n, arena, out, e);
	if (n->seen.type != ENTRY_FILE && n->seen.type != ENTRY_DIR)
		return 0;
	AUTO(fd_close) int fd = open_lower(n->side, n->lower, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return err_sys(e, -fd, "open a file of the layers");
	return read_xattrs(fd, arena, out, e);
}

int view_read(const struct node *n, struct arena *arena, struct entry *out, struct err *e)
{
	struct known *k = n->known;

	*out = n->seen;
	if (n->top)
		return 0;
	if (!k || !k->is_read) {
		if (read_lower(n, arena, out, e) < 0)
			return -1;
		note_read(n, out);
		return 0;
	}
	out->target = k->seen.target;
	out->xattrs = k->seen.xattrs;
	return 0;
}

static bool same_target(const struct entry *a, const struct entry *b)
{
	return a->target.len == b->target.len &&
	       (a->target.len == 0 || memcmp(a->target.at, b->target.at, a->target.len) == 0);
}

int view_same(const struct vault *v, struct node *a, struct node *b, struct arena *arena,
              struct err *e)
{
	struct entry x, y;

	if (a->is_there != b->is_there)
		return 0;
	if (!a->is_there)
		return 1;
	if (a->seen.type != b->seen.type || a->seen.mode != b->seen.mode ||
	    a->seen.uid != b->seen.uid || a->seen.gid != b->seen.gid)
		return 0;
	if (a->seen.type != ENTRY_DIR && a->seen.type != ENTRY_SOCKET &&
	    (a->seen.mtime_s != b->seen.mtime_s || a->seen.mtime_ns != b->seen.mtime_ns))
		return 0;
	if (view_read(a, arena, &x, e) < 0 || view_read(b, arena, &y, e) < 0)
		return -1;
	if (!same_target(&x, &y) || !xattrs_same_view(x.xattrs, y.xattrs))
		return 0;
	return a->seen.type == ENTRY_FILE ? view_same_content(v, a, b, e) : 1;
}
