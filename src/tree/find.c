/*
 * find.c - names that match a glob.
 */
#include "base/fd.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/glob.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/root.h"
#include "tree/text.h"
#include "tree/verbs.h"
#include "tree/walk.h"

struct hit {
	const char *path;
	int64_t mtime_ns;
};

struct search {
	struct span pattern, sort;
	const char *path;
	bool ignored;
	uint32_t max;
	bool by_time;

	struct globs globs;
	VEC(struct hit) hits;
	size_t bytes;
	bool is_cut;
};

static void search_done(struct search *s)
{
	globs_done(&s->globs);
	vec_done(&s->hits);
}

static int newest_first(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns > y->mtime_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

static int read_args(struct call *c, struct search *s, const json_t *body, struct err *e)
{
	static const struct field fields[] = {
		{ "pattern", offsetof(struct search, pattern), FIELD_BYTES, true },
		{ "path", offsetof(struct search, path), FIELD_PATH, false },
		{ "max", offsetof(struct search, max), FIELD_COUNT, false },
		{ "sort", offsetof(struct search, sort), FIELD_TEXT, false },
		{ "ignored", offsetof(struct search, ignored), FIELD_BOOL, false },
	};

	if (json_read(body, (struct fields){ fields, COUNT(fields) }, s, &c->arena, e) < 0)
		return -1;
	s->by_time = s->sort.at && span_is(s->sort, "mtime");
	if (s->sort.at && !s->by_time && !span_is(s->sort, "path"))
		return fail(e, TREE_INVALID, "sort: mtime or path");
	if (s->max == 0)
		s->max = TREE_ENTRIES_DEFAULT;
	if (s->max > TREE_ENTRIES_MAX)
		return fail(e, TREE_INVALID, "max: up to %d", TREE_ENTRIES_MAX);
	while (s->pattern.len > 1 && s->pattern.at[0] == '.' && s->pattern.at[1] == '/')
		s->pattern = span_after(s->pattern, 2);
	return globs_add(&s->globs, s->pattern, &c->arena, e);
}

/* Without `**` a pattern says how deep it goes. */
static size_t depth_of(const struct globs *g)
{
	size_t depth = 0;

	for (size_t i = 0; i < g->at.len; i++) {
		struct span p = g->at.at[i];
		size_t slashes = 1;

		if (memmem(p.at, p.len, "**", 2))
			return 0;
		for (size_t j = 0; j < p.len; j++)
			slashes += p.at[j] == '/';
		depth = slashes > depth ? slashes : depth;
	}
	return depth;
}

static void add_hit(struct call *c, struct search *s, const struct walk_entry *entry)
{
	struct hit hit = { 0 };
	struct stat st;
	size_t n = strlen(entry->path);

	s->bytes += n;
	if (s->hits.len == (s->by_time ? TREE_ENTRIES_MAX : s->max) ||
	    s->bytes > TREE_JSON_MAX / 2) {
		s->is_cut = true;
		return;
	}
	if (s->by_time && os_fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		hit.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	hit.path = arena_strndup(&c->arena, entry->path, n);
	vec_push(&s->hits, hit);
}

static int collect(struct call *c, struct search *s, int dir_fd, const char *start, struct err *e)
{
	AUTO(ignore_done) struct ignore ignore = { 0 };
	AUTO(walk_done) struct walk w = { .fd = dir_fd };
	struct walk_how how = { .call = c, .with_hidden = true, .depth = depth_of(&s->globs) };
	struct walk_entry entry;

	ignore_init(&ignore, c->conn->root_fd, start);
	how.ignore = s->ignored ? NULL : &ignore;
	int r = walk_open(&w, dir_fd, how, e);
	while (r >= 0 && !s->is_cut && (r = walk_next(&w, &entry, e)) > 0) {
		if (globs_match(&s->globs, span_of(entry.path)))
			add_hit(c, s, &entry);
	}
	s->is_cut |= w.is_too_deep;
	if (r < 0 && c->stop == STOP_TIME) {
		s->is_cut = true;
		return 0;
	}
	return r;
}

/* Text when it can be, else an object with both forms. */
static json_t *path_json(const struct search *s, const char *path)
{
	AUTO(str_done) struct str full = { .max = TREE_WALK_PATH_MAX + PATH_TEXT_MAX };

	if (s->path)
		str_addf(&full, "%s%s", s->path, s->path[strlen(s->path) - 1] == '/' ? "" : "/");
	str_add(&full, path);
	struct span text = { str_text(&full), full.len };
	if (utf8_is_valid(text))
		return json_bytes(text);
	json_t *j = json_object();
	json_put_bytes(j, "path", text);
	return j;
}

int verb_glob(struct call *c, struct err *e)
{
	AUTO(search_done) struct search s = { 0 };
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	char start[PATH_TEXT_MAX];

	if (!body || read_args(c, &s, body, e) < 0 ||
	    root_join(c->path, s.path ? s.path : "", start, e) < 0)
		return -1;
	int fd = root_open_dir(c->conn->root_fd, start, e);
	if (fd < 0 || collect(c, &s, fd, start, e) < 0)
		return -1;
	call_forgive(c);
	if (s.by_time && s.hits.len > 1)
		qsort(s.hits.at, s.hits.len, sizeof s.hits.at[0], newest_first);
	AUTO(json_drop) json_t *j = json_object();
	json_t *paths = json_array();
	for (size_t i = 0; i < s.hits.len && i < s.max; i++)
		json_add(paths, path_json(&s, s.hits.at[i].path));
	json_put(j, "paths", paths);
	json_put_bool(j, "truncated", s.is_cut || s.hits.len > s.max);
	c->answer.is_cut = s.is_cut || s.hits.len > s.max;
	return call_answer(c, j, e);
}
