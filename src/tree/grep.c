/*
 * grep.c - lines that match, in one file or in all below a directory.
 *
 * Of a file one window is in memory. A line that is longer than the window is searched in pieces.
 * What takes too long, is too much or too large ends the search or is left out, and the answer
 * says so.
 */
#include "base/fd.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/glob.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/matcher.h"
#include "tree/root.h"
#include "tree/sys.h"
#include "tree/text.h"
#include "tree/verbs.h"
#include "tree/walk.h"

#define BINARY_LOOK 8192 /* a NUL in so many first bytes makes a file binary, as for git */
#define TEXT_MAX 2000    /* bytes of a line in the answer */
#define LINES_PER_LOOK 16

struct grep {
	struct call *call;
	struct span pattern;
	bool literal, ignore_case, multiline, ignored;
	const char *path;
	const json_t *glob;
	uint32_t context, max;

	struct matcher *matcher;
	struct globs globs;
	char *window;
	size_t window_max;
	size_t matches, files, binary, too_large, unreadable, too_costly;
	uint64_t bytes;
	const char *cut; /* why it ended early; NULL: it did not */
};

/* A file while it is searched. */
struct scan {
	struct grep *g;
	const char *path;
	int fd;
	size_t len, pos; /* bytes in the window; where the next line begins */
	size_t line;     /* its number */
	uint64_t offset; /* of what is read next */
	bool is_end;     /* nothing is left to read */
};

static void grep_done(struct grep *g)
{
	matcher_free(&g->matcher);
	globs_done(&g->globs);
	free(g->window);
}

static size_t count_lines(struct span s)
{
	struct line_ends ends = line_ends_count(s);

	return ends.lf + ends.crlf;
}

/* The beginning of the line that is `lines` before `at`; not far. */
static size_t back(const char *text, size_t at, size_t lines)
{
	for (size_t n = 0; at > 0; at--) {
		if (text[at - 1] == '\n' && n++ == lines)
			break;
	}
	return at;
}

static json_t *shown(struct span line, size_t col)
{
	struct span bare = line_bare(line);

	if (bare.len > TEXT_MAX && col > TEXT_MAX / 2)
		bare = span_after(bare, col - TEXT_MAX / 2);
	/* Not in the middle of a code point. */
	while (bare.at > line.at && bare.len > 0 && ((unsigned char)bare.at[0] & 0xc0) == 0x80)
		bare = span_after(bare, 1);
	return json_bytes(utf8_cut(bare, TEXT_MAX));
}

static void put_context(json_t *to, const char *key, struct span lines, size_t max)
{
	json_t *list = json_array();
	struct span line;

	for (size_t i = 0; i < max && line_take(&lines, &line); i++)
		json_add(list, shown(line, 0));
	json_put(to, key, list);
}

/* `first` to `last` are the lines of the match, in the window. */
static int tell(struct scan *s, struct found found, size_t first, size_t last, struct err *e)
{
	struct grep *g = s->g;
	AUTO(json_drop) json_t *j = json_object();
	struct span text = { g->window + first, last - first };

	json_put_bytes(j, "path", span_of(s->path));
	json_put_number(j, "line", s->line);
	json_put_number(j, "col", found.at - first + 1);
	json_put(j, "text",
	         g->multiline ? json_bytes(utf8_cut(line_bare(text), TEXT_MAX))
	                      : shown(text, found.at - first));
	if (line_bare(text).len > TEXT_MAX)
		json_put_bool(j, "cut", true);
	if (g->context > 0) {
		size_t from = back(g->window, first, g->context);

		put_context(j, "before", (struct span){ g->window + from, first - from },
		            g->context);
		put_context(j, "after", (struct span){ g->window + last, s->len - last },
		            g->context);
	}
	if (g->matches++ > 0 && call_add(g->call, span_of(","), e) < 0)
		return -1;
	return call_add_json(g->call, j, e);
}

/* Reads until the window holds so much. What cannot be read is as if the file ended there. */
static void fill(struct scan *s, size_t want)
{
	struct grep *g = s->g;

	while (!s->is_end && s->len < want) {
		ssize_t n = sys_pread(s->fd, g->window + s->len, want - s->len, s->offset);
		size_t got = n > 0 ? (size_t)n : 0;

		g->unreadable += n < 0;
		s->is_end = got == 0;
		s->len += got;
		s->offset += got;
		g->bytes += got;
	}
}

/* Keeps the context before the next line and fills the window up. */
static void refill(struct scan *s)
{
	struct grep *g = s->g;
	size_t keep = back(g->window, s->pos, g->context);

	if (s->pos - keep > g->window_max / 4)
		keep = s->pos;
	memmove(g->window, g->window + keep, s->len - keep);
	s->len -= keep;
	s->pos -= keep;
	fill(s, g->window_max);
}

/* Up to where lines are whole, or the window is full of one. */
static size_t whole_lines(const struct scan *s)
{
	const char *text = s->g->window;
	const char *last = s->is_end ? NULL : memrchr(text + s->pos, '\n', s->len - s->pos);

	return last ? (size_t)(last - text) + 1 : s->len;
}

/* Skips lines that lack a byte that a match must have. */
static size_t skip_lines(const struct scan *s, size_t at, size_t end)
{
	int needs = matcher_needs(s->g->matcher);

	if (needs < 0)
		return at;
	const char *text = s->g->window;
	const char *p = memchr(text + at, needs, end - at);

	return p ? back(text, (size_t)(p - text), 0) : end;
}

/* Line by line. 1: found, 0: not in these lines, -1: stop. */
static int find_in_lines(struct scan *s, size_t end, struct found *out)
{
	struct grep *g = s->g;
	size_t at = s->pos;

	for (size_t n = 1; at < end; n++) {
		size_t next = skip_lines(s, at, end);

		at = next > at ? next : at;
		struct span rest = { g->window + at, end - at }, line;
		if (!line_take(&rest, &line))
			break;
		int r = matcher_find(g->matcher, line_bare(line), 0, out);

		g->too_costly += r < 0;
		if (r > 0) {
			out->at += at;
			return 1;
		}
		at += line.len;
		if (n % LINES_PER_LOOK == 0 && call_stopped(g->call) != STOP_NONE)
			return -1;
	}
	return 0;
}

static int find_next(struct scan *s, size_t end, struct found *out)
{
	struct grep *g = s->g;

	if (!matcher_is_plain(g->matcher) && !g->multiline)
		return find_in_lines(s, end, out);
	int r = matcher_find(g->matcher, (struct span){ g->window, end }, s->pos, out);

	g->too_costly += r < 0;
	return r > 0;
}

/* Goes on behind the match, at the beginning of a line. */
static int take_match(struct scan *s, struct found found, size_t end, struct err *e)
{
	struct grep *g = s->g;
	size_t first = back(g->window, found.at, 0);
	size_t stop = found.at + (found.len > 0 ? found.len - 1 : 0);
	const char *feed = stop < end ? memchr(g->window + stop, '\n', end - stop) : NULL;
	size_t last = feed ? (size_t)(feed - g->window) + 1 : end;

	if (first < s->pos)
		first = s->pos;
	s->line += count_lines((struct span){ g->window + s->pos, first - s->pos });
	if (tell(s, found, first, last, e) < 0)
		return -1;
	s->line += count_lines((struct span){ g->window + first, last - first });
	s->pos = last;
	if (g->matches == g->max)
		g->cut = "max";
	else if (g->call->sent_bytes > TREE_JSON_MAX)
		g->cut = "bytes";
	return 0;
}

static bool must_stop(struct grep *g)
{
	if (!g->cut && call_stopped(g->call) != STOP_NONE)
		g->cut = "time";
	return g->cut;
}

/* What follows a match is wanted too: a late one waits until the window has been moved. */
static bool is_too_late(struct scan *s, struct found found)
{
	struct grep *g = s->g;
	size_t first = back(g->window, found.at, 0);

	if (g->context == 0 || s->is_end || found.at <= g->window_max / 2 || first <= s->pos)
		return false;
	s->line += count_lines((struct span){ g->window + s->pos, first - s->pos });
	s->pos = first;
	return true;
}

/* Until the window must be moved. */
static int scan_window(struct scan *s, struct err *e)
{
	struct found found;

	while (s->pos < s->len && !must_stop(s->g)) {
		size_t end = whole_lines(s);
		int r = find_next(s, end, &found);

		if (r < 0 || (r > 0 && is_too_late(s, found)))
			return 0;
		if (r > 0) {
			if (take_match(s, found, end, e) < 0)
				return -1;
			continue;
		}
		s->line += count_lines((struct span){ s->g->window + s->pos, end - s->pos });
		s->pos = end;
		if (!s->is_end)
			return 0;
	}
	return 0;
}

static int scan_file(struct grep *g, int fd, const char *path, struct err *e)
{
	struct scan s = { .g = g, .path = path, .fd = fd, .line = 1 };

	fill(&s, BINARY_LOOK);
	g->files++;
	if (has_nul((struct span){ g->window, s.len })) {
		g->binary++;
		return 0;
	}
	fill(&s, g->window_max);
	if (g->multiline && !s.is_end) {
		g->too_large++;
		return 0;
	}
	while (s.pos < s.len && !g->cut) {
		if (scan_window(&s, e) < 0)
			return -1;
		if (g->cut || (s.is_end && s.pos == s.len))
			break;
		refill(&s);
	}
	return 0;
}

/* A file that cannot be read is left out; everything else that fails ends the search. */
static int grep_entry(struct grep *g, const struct walk_entry *entry, const char *prefix,
                      struct err *e)
{
	AUTO(str_done) struct str path = { .max = TREE_WALK_PATH_MAX + PATH_TEXT_MAX };
	struct stat st;
	AUTO(fd_close)
	int fd =
	    os_openat(entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0 || sys_fstat(fd, &st) < 0) {
		g->unreadable++;
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	str_add(&path, prefix);
	str_add(&path, entry->path);
	return scan_file(g, fd, str_text(&path), e);
}

/* A pattern without a slash is about the name alone, wherever it is. */
static bool is_chosen(const struct grep *g, const struct walk_entry *entry)
{
	bool has_only_not = true;

	for (size_t i = 0; i < g->globs.at.len; i++) {
		struct span p = g->globs.at.at[i];
		bool is_not = p.at[0] == '!';

		p = span_after(p, is_not);
		has_only_not = has_only_not && is_not;
		bool is_name = p.len > 0 && !memchr(p.at, '/', p.len);
		struct span path = span_of(is_name ? entry->name : entry->path);

		if (path.len <= TREE_GLOB_PATH_MAX && glob_matches(p, path))
			return !is_not;
	}
	return has_only_not;
}

static int grep_below(struct grep *g, int dir_fd, const char *start, struct err *e)
{
	AUTO(ignore_done) struct ignore ignore = { 0 };
	AUTO(walk_done) struct walk w = { .fd = dir_fd };
	struct walk_how how = { .call = g->call, .with_hidden = true };
	AUTO(str_done) struct str prefix = { .max = PATH_TEXT_MAX };
	struct walk_entry entry;

	ignore_init(&ignore, g->call->conn->root_fd, start);
	how.ignore = g->ignored ? NULL : &ignore;
	if (g->path)
		str_addf(&prefix, "%s%s", g->path, g->path[strlen(g->path) - 1] == '/' ? "" : "/");
	int r = walk_open(&w, dir_fd, how, e);
	while (r >= 0 && !must_stop(g) && (r = walk_next(&w, &entry, e)) > 0) {
		if (entry.type == DT_REG && is_chosen(g, &entry))
			r = grep_entry(g, &entry, str_text(&prefix), e);
	}
	g->unreadable += w.unreadable;
	if (r < 0 && g->call->stop == STOP_TIME) {
		g->cut = "time";
		r = 0;
	}
	return r;
}

static int add_globs(struct grep *g, struct err *e)
{
	const json_t *list = g->glob;
	size_t n = json_is_array(list) ? json_array_size(list) : list ? 1 : 0;

	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_is_array(list) ? json_array_get(list, i) : list;
		struct span text = { json_string_value(one), json_string_length(one) };

		if (!text.at || i >= TREE_BRACES_MAX)
			return fail(e, TREE_INVALID, "glob: a pattern or a short list of them");
		if (globs_add(&g->globs, text, &g->call->arena, e) < 0)
			return err_wrap(e, "glob");
	}
	return 0;
}

static int read_args(struct grep *g, const json_t *body, struct err *e)
{
	static const struct field fields[] = {
		{ "pattern", offsetof(struct grep, pattern), FIELD_BYTES, true },
		{ "literal", offsetof(struct grep, literal), FIELD_BOOL, false },
		{ "ignore_case", offsetof(struct grep, ignore_case), FIELD_BOOL, false },
		{ "multiline", offsetof(struct grep, multiline), FIELD_BOOL, false },
		{ "ignored", offsetof(struct grep, ignored), FIELD_BOOL, false },
		{ "path", offsetof(struct grep, path), FIELD_PATH, false },
		{ "glob", offsetof(struct grep, glob), FIELD_ANY, false },
		{ "context", offsetof(struct grep, context), FIELD_COUNT, false },
		{ "max", offsetof(struct grep, max), FIELD_COUNT, false },
	};
	struct arena *arena = &g->call->arena;

	if (json_read(body, (struct fields){ fields, COUNT(fields) }, g, arena, e) < 0)
		return -1;
	if (g->max == 0)
		g->max = TREE_MATCHES_DEFAULT;
	if (g->max > TREE_MATCHES_MAX || g->context > TREE_CONTEXT_MAX)
		return fail(e, TREE_INVALID, "max up to %d, context up to %d", TREE_MATCHES_MAX,
		            TREE_CONTEXT_MAX);
	const struct matcher_how how = { g->call, g->pattern, g->literal, g->ignore_case,
		                         g->multiline };
	g->matcher = matcher_new(&how, e);
	if (!g->matcher || add_globs(g, e) < 0)
		return -1;
	g->window_max = g->multiline ? TREE_MULTILINE_MAX : TREE_GREP_WINDOW;
	g->window = mem_alloc(g->window_max);
	return 0;
}

static int finish(struct grep *g, struct err *e)
{
	AUTO(json_drop) json_t *j = json_object(), *skipped = json_object();
	AUTO(freep) char *text = NULL;

	json_put_bool(j, "truncated", g->cut);
	json_put(j, "why", g->cut ? json_string(g->cut) : json_null());
	json_put_number(j, "scanned", g->files);
	json_put_number(j, "scanned_bytes", g->bytes);
	json_put_number(skipped, "binary", g->binary);
	json_put_number(skipped, "too_large", g->too_large);
	json_put_number(skipped, "unreadable", g->unreadable);
	json_put_number(skipped, "lines_too_costly", g->too_costly);
	json_put(j, "skipped", json_incref(skipped));
	text = json_dumps(j, JSON_COMPACT);
	g->call->answer.is_cut = g->cut != NULL;
	if (!text || call_add(g->call, span_of("],"), e) < 0)
		return -1;
	return call_add(g->call, span_of(text + 1), e); /* without its first brace */
}

int verb_grep(struct call *c, struct err *e)
{
	AUTO(grep_done) struct grep g = { .call = c };
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	char start[PATH_TEXT_MAX];
	struct stat st;

	if (!body || read_args(&g, body, e) < 0 ||
	    root_join(c->path, g.path ? g.path : "", start, e) < 0)
		return -1;
	AUTO(fd_close) int fd = root_open(c->conn->root_fd, start, O_RDONLY, e);
	if (fd < 0 || sys_fstat(fd, &st) < 0 || call_add(c, span_of("{\"matches\":["), e) < 0)
		return -1;
	int r = 0;
	if (S_ISDIR(st.st_mode))
		r = grep_below(&g, fd_take(&fd), start, e);
	else if (S_ISREG(st.st_mode))
		r = scan_file(&g, fd, g.path ? g.path : start, e);
	else
		return fail(e, TREE_INVALID, "%s is not a file or directory", start);
	call_forgive(c);
	if (r < 0 || c->stop != STOP_NONE)
		return r < 0 ? -1 : call_check(c, e);
	return finish(&g, e);
}
