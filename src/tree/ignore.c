#include "tree/ignore.h"

#include "base/fd.h"
#include "base/limits.h"
#include "os/file.h"
#include "tree/blob.h"
#include "tree/glob.h"
#include "tree/limits.h"
#include "tree/root.h"
#include "tree/text.h"

/* Blanks at the end do not count unless the last is escaped. */
static struct span trimmed(struct span s)
{
	s = line_bare(s);
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t') &&
	       !(s.len > 1 && s.at[s.len - 2] == '\\'))
		s.len--;
	return s;
}

static void add_rule(struct ignore *ig, struct ignore_level *level, struct span line)
{
	struct ignore_rule rule = { 0 };
	struct span s = trimmed(line);

	if (s.len == 0 || s.at[0] == '#' || s.len > TREE_IGNORE_RULE_MAX ||
	    ig->rules.len >= TREE_IGNORE_RULES_MAX)
		return;
	rule.is_not = s.at[0] == '!';
	s = span_after(s, rule.is_not);
	rule.is_dir_only = s.len > 0 && s.at[s.len - 1] == '/';
	s.len -= rule.is_dir_only;
	rule.is_anchored = s.len > 0 && memchr(s.at, '/', s.len);
	if (s.len > 0 && s.at[0] == '/')
		s = span_after(s, 1);
	if (s.len == 0)
		return;
	rule.pattern = (struct span){ arena_strndup(&level->arena, s.at, s.len), s.len };
	vec_push(&ig->rules, rule);
}

/* The path of an entry from the root, in ig->path. */
static struct span full_path(struct ignore *ig, const char *path)
{
	ig->path.len = ig->start_len;
	ig->path.overflow = false;
	str_add(&ig->path, path);
	return (struct span){ str_text(&ig->path), ig->path.len };
}

void ignore_push_text(struct ignore *ig, struct span text, const char *path)
{
	struct ignore_level level = { .base_len = full_path(ig, path).len };
	struct span line;

	/* The start itself has its slash already. */
	if (!*path && level.base_len > 0)
		level.base_len--;
	while (line_take(&text, &line))
		add_rule(ig, &level, line);
	level.n_rules = ig->rules.len;
	vec_push(&ig->levels, level);
}

static void push_file(struct ignore *ig, int fd, const char *path)
{
	AUTO(blob_done) struct blob text = { 0 };
	struct stat st;
	struct err e;

	if (fd >= 0)
		(void)blob_read(&text, fd, &st, TREE_IGNORE_BYTES_MAX, &e);
	ignore_push_text(ig, blob_span(&text), path);
}

void ignore_push(struct ignore *ig, int dir_fd, const char *path)
{
	AUTO(fd_close)
	int fd = os_openat(dir_fd, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	push_file(ig, fd, path);
}

void ignore_pop(struct ignore *ig)
{
	arena_done(&ig->levels.at[--ig->levels.len].arena);
	ig->rules.len = ig->levels.len > 0 ? ig->levels.at[ig->levels.len - 1].n_rules : 0;
}

/* The rules of one directory above the start. */
static void push_above(struct ignore *ig, int root_fd, const char *dir)
{
	char path[PATH_TEXT_MAX];
	struct stat st;
	struct err e;

	if (root_join(dir, ".git", path, &e) < 0)
		return;
	AUTO(fd_close) int git = root_open(root_fd, path, O_PATH, &e);
	while (git >= 0 && ig->levels.len > 0)
		ignore_pop(ig); /* what is above a repository is not its business */
	if (root_join(dir, ".gitignore", path, &e) < 0)
		return;
	AUTO(fd_close) int fd = root_open_file(root_fd, path, &st, &e);
	push_file(ig, fd, dir);
}

void ignore_init(struct ignore *ig, int root_fd, const char *start)
{
	AUTO(str_done) struct str clean = { .max = PATH_TEXT_MAX };

	*ig = (struct ignore){ .path = { .max = TREE_WALK_PATH_MAX + PATH_TEXT_MAX } };
	for (const char *p = start; *p;) {
		size_t n = strcspn(p, "/");
		bool is_dot = n == 1 && p[0] == '.';

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			/* Only the kernel knows where that leads; do without what is above. */
			while (ig->levels.len > 0)
				ignore_pop(ig);
			str_clear(&clean);
			break;
		}
		if (n > 0 && !is_dot) {
			push_above(ig, root_fd, str_text(&clean));
			if (clean.len > 0)
				str_add(&clean, "/");
			str_addn(&clean, p, n);
		}
		p += n + (p[n] == '/');
	}
	str_add(&ig->path, str_text(&clean));
	if (clean.len > 0)
		str_add(&ig->path, "/");
	ig->start_len = ig->path.len;
}

static bool rule_matches(const struct ignore_rule *rule, struct span path, size_t base_len)
{
	struct span rel = base_len > 0 ? span_after(path, base_len + 1) : path;
	const char *slash = memrchr(rel.at, '/', rel.len);

	if (!rule->is_anchored && slash)
		rel = span_after(rel, (size_t)(slash - rel.at) + 1);
	return glob_matches(rule->pattern, rel);
}

bool ignore_has(struct ignore *ig, const char *path, bool is_dir)
{
	struct span full = full_path(ig, path);

	if (full.len > PATH_TEXT_MAX)
		return false;
	for (size_t l = ig->levels.len; l-- > 0;) {
		size_t first = l > 0 ? ig->levels.at[l - 1].n_rules : 0;

		for (size_t i = ig->levels.at[l].n_rules; i-- > first;) {
			const struct ignore_rule *rule = &ig->rules.at[i];

			if ((is_dir || !rule->is_dir_only) &&
			    rule_matches(rule, full, ig->levels.at[l].base_len))
				return !rule->is_not;
		}
	}
	return false;
}

void ignore_done(struct ignore *ig)
{
	while (ig->levels.len > 0)
		ignore_pop(ig);
	vec_done(&ig->levels);
	vec_done(&ig->rules);
	str_done(&ig->path);
}
