/*
 * changes.c - what differs between two points, one JSON object a line.
 *
 *   {"path":…,"status":"A","type":"file","mode":"0644","bytes":12}
 *
 * status: A added, M content, D deleted, T another type, R renamed ("from" says whence; what
 * changed in it besides has lines of its own; none of it with VAULT_PLAIN), "mode" mode or owner,
 * "xattr" extended attributes.
 * What was only touched, or written with the same bytes, is not there. A path that is no UTF-8 is
 * path_base64.
 */
#include <jansson.h>

#include "base/fd.h"
#include "os/file.h"
#include "vault/moved.h"
#include "vault/sides.h"
#include "vault/verbs.h"
#include "vault/xattrs.h"
#include "wire/base64.h"
#include "wire/utf8.h"

struct change {
	const char *status;
	struct span path, from; /* from.at NULL: none */
	struct node node;       /* as it is, or was when it is gone */
	bool is_done;           /* part of another one */
};

struct listing {
	struct vault *v;
	bool is_plain; /* VAULT_PLAIN */
	struct arena arena;
	VEC(struct change) list;
};

static const char *const types[] = {
	[ENTRY_DIR] = "dir",       [ENTRY_FILE] = "file", [ENTRY_LINK] = "symlink",
	[ENTRY_WHITEOUT] = "none", [ENTRY_FIFO] = "fifo", [ENTRY_SOCKET] = "socket",
};
_Static_assert(COUNT(types) == ENTRY_TYPES, "a type has no name");

static struct span keep(struct arena *arena, struct span s)
{
	return (struct span){ s.len ? arena_strndup(arena, s.at, s.len) : "", s.len };
}

static void add(struct listing *l, const char *status, struct span path, const struct node *n)
{
	struct change c = { .status = status, .path = keep(&l->arena, path), .node = *n };

	c.node.path = keep(&l->arena, n->path);
	c.node.lower = keep(&l->arena, n->lower);
	vec_push(&l->list, c);
}

/* What is different about a name that both have with the same type; NULL: nothing. */
static int compare(struct listing *l, struct node *a, struct node *b, const char **out,
                   struct err *e)
{
	struct entry x, y;

	*out = NULL;
	if (a->seen.type == ENTRY_FILE) {
		int same = view_same_content(l->v, a, b, e);

		if (same < 0)
			return -1;
		if (!same)
			*out = "M";
	}
	if (!*out && (a->seen.mode != b->seen.mode || a->seen.uid != b->seen.uid ||
	              a->seen.gid != b->seen.gid))
		*out = "mode";
	if (*out)
		return 0;
	if (view_read(a, &l->arena, &x, e) < 0 || view_read(b, &l->arena, &y, e) < 0)
		return -1;
	bool is_link = x.type == ENTRY_LINK;
	if (is_link &&
	    (x.target.len != y.target.len || memcmp(x.target.at, y.target.at, x.target.len) != 0))
		*out = "M";
	else if (!xattrs_same_view(x.xattrs, y.xattrs))
		*out = "xattr";
	return 0;
}

static int visit(void *ctx, enum view_event event, struct span path, struct node *a, struct node *b,
                 struct err *e)
{
	struct listing *l = ctx;
	const char *status = NULL;

	if (event == VIEW_LEAVE && path.len > 0)
		return 0;
	if (!a->is_there && !b->is_there)
		return 0;
	if (!a->is_there || !b->is_there)
		status = b->is_there ? "A" : "D";
	else if (a->seen.type != b->seen.type)
		status = "T";
	else if (compare(l, a, b, &status, e) < 0)
		return -1;
	if (status)
		add(l, status, path, b->is_there ? b : a);
	return 0;
}

/* ---- files that were renamed ------------------------------------------------------- */

static bool may_pair(const struct change *gone, const struct change *come)
{
	return !gone->is_done && !come->is_done && strcmp(gone->status, "D") == 0 &&
	       gone->node.seen.type == ENTRY_FILE && gone->node.seen.size == come->node.seen.size;
}

static int pair_one(struct listing *l, struct change *come, struct err *e)
{
	for (size_t i = 0; i < l->list.len; i++) {
		struct change *gone = &l->list.at[i];

		if (!may_pair(gone, come))
			continue;
		int same = view_same_content(l->v, &gone->node, &come->node, e);
		if (same < 0)
			return -1;
		if (!same)
			continue;
		gone->is_done = true;
		come->status = "R";
		come->from = gone->path;
		return 0;
	}
	return 0;
}

/* One that is gone and one that came with the same bytes; an empty file says nothing. */
static int pair_files(struct listing *l, struct err *e)
{
	const size_t files_max = 2000; /* beyond it the list is long enough without */
	size_t n_gone = 0, n_come = 0;

	for (size_t i = 0; i < l->list.len; i++) {
		n_gone += l->list.at[i].status[0] == 'D';
		n_come += l->list.at[i].status[0] == 'A';
	}
	if (n_gone == 0 || n_gone > files_max || n_come > files_max)
		return 0;
	for (size_t i = 0; i < l->list.len; i++) {
		struct change *c = &l->list.at[i];

		if (strcmp(c->status, "A") == 0 && c->node.seen.type == ENTRY_FILE &&
		    c->node.seen.size > 0 && pair_one(l, c, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- as text ----------------------------------------------------------------------- */

static void put(json_t *object, const char *key, json_t *value)
{
	if (!value || json_object_set_new(object, key, value) < 0)
		abort(); /* out of memory */
}

static void put_path(json_t *object, const char *key, struct span path)
{
	AUTO(str_done) struct str text = { .max = SIZE_MAX };
	char with_base64[32];

	if (utf8_is(path.at, path.len)) {
		put(object, key, json_stringn(path.at, path.len));
		return;
	}
	base64_encode(path.at, path.len, &text);
	snprintf(with_base64, sizeof with_base64, "%s_base64", key);
	put(object, with_base64, json_stringn(text.data, text.len));
}

static void print(const struct change *c, struct str *out)
{
	json_t *j = json_object();
	char mode[8];

	if (!j)
		abort();
	snprintf(mode, sizeof mode, "%04o", c->node.seen.mode & 07777);
	put_path(j, "path", c->path);
	put(j, "status", json_string(c->status));
	if (c->from.at)
		put_path(j, "from", c->from);
	put(j, "type", json_string(types[c->node.seen.type]));
	put(j, "mode", json_string(mode));
	put(j, "bytes", json_integer((json_int_t)c->node.seen.size));
	char *text = json_dumps(j, JSON_COMPACT);
	if (!text)
		abort();
	str_addf(out, "%s\n", text);
	free(text);
	json_decref(j);
}

static int by_path(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return path_order(x->path, y->path);
}

static int print_all(struct listing *l, int fd, struct vault_done *done, struct err *e)
{
	AUTO(str_done) struct str out = { .max = 1u << 30 };

	if (l->list.len > 1)
		qsort(l->list.at, l->list.len, sizeof *l->list.at, by_path);
	for (size_t i = 0; i < l->list.len; i++) {
		if (l->list.at[i].is_done)
			continue;
		print(&l->list.at[i], &out);
		done->files++;
	}
	int r = out.len ? os_write_all(fd, out.data, out.len) : 0;
	return r < 0 ? err_sys(e, -r, "write the list") : 0;
}

static int add_moved(struct listing *l, const struct side *to, const struct moved *m, struct err *e)
{
	struct node n;

	if (view_find(to, m->to, &l->arena, &n, e) < 0)
		return -1;
	add(l, "R", m->to, &n);
	l->list.at[l->list.len - 1].from = m->from;
	return 0;
}

/* Directories first: what is in them is then compared with what it was. */
static int list_all(struct listing *l, const struct sides *s, struct err *e)
{
	AUTO(moved_done) struct moved_list moved = { 0 };
	int r = l->is_plain ? 0 : moved_find(&s->at[0], &s->at[1], &l->arena, &moved, e);
	size_t n = moved.list.len;
	struct view_pair *pairs = arena_alloc(&l->arena, (n + 1) * sizeof *pairs);

	for (size_t i = 0; i < n && r >= 0; i++) {
		pairs[i] = (struct view_pair){ moved.list.at[i].from, moved.list.at[i].to };
		r = add_moved(l, &s->at[1], &moved.list.at[i], e);
	}
	if (r >= 0)
		r = view_compare(&s->at[0], &s->at[1], (struct view_pairs){ pairs, n }, visit, l,
		                 e);
	return r < 0 ? -1 : l->is_plain ? 0 : pair_files(l, e);
}

int verb_changes(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                 struct err *e)
{
	AUTO(sides_done) struct sides sides = { .other_fd = -1 };
	struct listing l = { .v = v, .is_plain = ask->between.flags & VAULT_PLAIN };

	if (!v->open.workspace)
		return err_new(e, ERR_INVALID, "no workspace is open");
	int r = sides_open(v, ask->between.from, ask->between.to, &sides, e);
	if (r >= 0)
		r = list_all(&l, &sides, e);
	if (r >= 0)
		r = print_all(&l, fd, done, e);
	vec_done(&l.list);
	arena_done(&l.arena);
	return r < 0 ? -1 : 0;
}
