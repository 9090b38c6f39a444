#include "gate/gitreq.h"

#include "base/hex.h"
#include "spec/rules.h"
#include "wire/git.h"

#define LINE_HEAD 4
#define REF_PATH_MAX (GIT_REF_MAX + 2)

/* ---- heads --------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
	const char *method, *place, *query;
	enum git_verb verb;
} requests[] = {
	{ "GET",  "/info/refs",        "service=git-upload-pack",  GIT_FETCH },
	{ "POST", "/git-upload-pack",  "",                         GIT_FETCH },
	{ "GET",  "/info/refs",        "service=git-receive-pack", GIT_PUSH_ASK },
	{ "POST", "/git-receive-pack", "",                         GIT_PUSH },
};
/* clang-format on */

/* What follows the repository in the path, with or without .git; NULL: it is another one. */
static const char *behind_repo(const char *path, const char *repo)
{
	size_t n = strlen(repo);

	if (path[0] != '/' || strncmp(path + 1, repo, n) != 0)
		return NULL;
	path += 1 + n;
	if (strncmp(path, ".git/", 5) == 0)
		path += 4;
	return *path == '/' ? path : NULL;
}

enum git_verb git_verb_of(const struct bind *b, const struct git_request *r)
{
	for (size_t i = 0; i < b->git.len; i++) {
		const char *rest = behind_repo(r->path, b->git.at[i]);

		for (size_t k = 0; rest && k < COUNT(requests); k++)
			if (strcmp(requests[k].method, r->method) == 0 &&
			    strcmp(requests[k].place, rest) == 0 &&
			    span_is(r->query, requests[k].query))
				return requests[k].verb;
	}
	return GIT_NOT;
}

bool git_path_is(const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < COUNT(requests); i++) {
		size_t len = strlen(requests[i].place);

		if (n > len && strcmp(path + n - len, requests[i].place) == 0)
			return true;
	}
	return false;
}

/* ---- the body of a push -------------------------------------------------------------- */

void gitpush_take_head(struct gitpush *p, struct str *out)
{
	str_addn(out, str_text(&p->head), p->head.len);
	str_wipe(&p->head);
}

void gitpush_done(struct gitpush *p)
{
	str_wipe(&p->head);
	str_done(&p->held);
	free(p->refs);
	free(p->asks);
	str_done(&p->wanted);
	*p = (struct gitpush){ 0 };
}

static char *patterns(const struct text_list *l)
{
	struct str out = { .max = BIND_TEXT_MAX };

	for (size_t i = 0; i < l->len; i++)
		str_addn(&out, l->at[i], strlen(l->at[i]) + 1);
	str_addn(&out, "", 1);
	return out.data;
}

void gitpush_begin(struct gitpush *p, const struct bind *b)
{
	gitpush_done(p);
	*p = (struct gitpush){ .is_on = true,
		               .refs = patterns(&b->push),
		               .asks = patterns(&b->push_ask),
		               .wanted.max = GIT_COMMANDS_MAX,
		               .held.max = GIT_COMMANDS_MAX + (1u << 20) /* one read */ };
}

static bool some_matches(const char *patterns, const char *path)
{
	char pattern[NAME_TEXT_MAX + 2];

	for (const char *at = patterns; *at; at += strlen(at) + 1) {
		snprintf(pattern, sizeof pattern, "/%s", at);
		if (path_matches(pattern, path))
			return true;
	}
	return false;
}

/* Once: what is asked for is noted. */
static bool may_push(struct gitpush *p, struct span ref)
{
	char name[GIT_REF_MAX + 1], path[REF_PATH_MAX];

	if (ref.len == 0 || ref.len > GIT_REF_MAX)
		return false;
	snprintf(name, sizeof name, "%.*s", (int)ref.len, ref.at);
	if (strlen(name) != ref.len || strncmp(name, "refs/", 5) != 0 || !git_ref_is(name))
		return false;
	snprintf(path, sizeof path, "/%s", name);
	if (some_matches(p->refs, path))
		return true;
	if (!some_matches(p->asks, path))
		return false;
	str_addf(&p->wanted, "%s%s", p->wanted.len > 0 ? " " : "", name);
	return !p->wanted.overflow;
}

/* The name of an object and the space behind it; its length. 0: none. */
static size_t object_len(struct span s)
{
	const char *space = memchr(s.at, ' ', s.len);
	size_t n = space ? (size_t)(space - s.at) : 0;

	return n > 0 && git_sha_is(s.at, n) ? n + 1 : 0;
}

/* "OLD NEW REF", the first with what the client can behind a NUL; or "shallow OBJECT". */
static bool is_command(struct gitpush *p, struct span line)
{
	static const char shallow[] = "shallow ";

	if (line.len > 0 && line.at[line.len - 1] == '\n')
		line.len--;
	if (line.len > sizeof shallow - 1 && memcmp(line.at, shallow, sizeof shallow - 1) == 0) {
		line = span_after(line, sizeof shallow - 1);
		return git_sha_is(line.at, line.len);
	}
	size_t n = object_len(line);

	line = span_after(line, n);
	size_t m = n > 0 ? object_len(line) : 0;

	line = span_after(line, m);
	const char *end = memchr(line.at, '\0', line.len);

	return m > 0 &&
	       may_push(p, (struct span){ line.at, end ? (size_t)(end - line.at) : line.len });
}

/* Four digits; -1: they are none. */
static int line_len(const char *at)
{
	int n = 0;

	for (int i = 0; i < LINE_HEAD; i++) {
		int digit = hex_digit((char)span_lower(at[i]));

		if (digit < 0)
			return -1;
		n = n * 16 + digit;
	}
	return n;
}

/* Every command that is there whole: 1 when the last of them was, 0: more has to come, -1. */
static int judge(struct gitpush *p)
{
	size_t at = 0;

	str_clear(&p->wanted);

	while (p->held.len - at >= LINE_HEAD) {
		int n = line_len(p->held.data + at);

		if (n == 0)
			return 1;
		if (n <= LINE_HEAD)
			return -1;
		if (p->held.len - at < (size_t)n)
			break;
		if (!is_command(
			p, (struct span){ p->held.data + at + LINE_HEAD, (size_t)n - LINE_HEAD }))
			return -1;
		at += (size_t)n;
	}
	return p->held.len > GIT_COMMANDS_MAX ? -1 : 0;
}

void gitpush_go_on(struct gitpush *p, struct str *out)
{
	p->is_judged = true;
	p->is_waiting = false;
	str_addn(out, p->held.data, p->held.len);
	str_done(&p->held);
}

bool gitpush_feed(struct gitpush *p, struct span in, struct str *out)
{
	if (!p->is_on || p->is_judged) {
		str_addn(out, in.at, in.len);
		return true;
	}
	str_addn(&p->held, in.at, in.len);
	int r = p->held.overflow ? -1 : judge(p);

	if (r <= 0)
		return r == 0;
	if (p->wanted.len > 0)
		p->is_waiting = true;
	else
		gitpush_go_on(p, out);
	return true;
}

bool gitpush_end(const struct gitpush *p)
{
	return !p->is_on || p->is_judged;
}
