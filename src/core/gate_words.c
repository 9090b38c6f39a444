/*
 * gate_words.c - what a gate asks for, in the words of the queue: the same question is the same
 * words (approval.h). Pure.
 */
#include "core/gate.h"

static const char push_end[] = "/git-receive-pack";

static void add_where(struct str *out, const struct gate_ask *a)
{
	str_addf(out, "%s:%u", a->name, a->port);
}

static bool is_path_cut(const struct gate_ask *a)
{
	return strlen(a->path) + 1 >= sizeof a->path || strlen(a->refs) + 1 >= sizeof a->refs;
}

/* Of two that are cut nobody can say that they are the same. A query that is cut has its hash. */
static void add_cut(struct str *out, const struct gate_ask *a)
{
	if (is_path_cut(a))
		str_addf(out, " ... (cut; number %llu)", (unsigned long long)a->ask);
}

static void say_connect(const struct gate_ask *a, struct str *what, struct str *hint)
{
	str_add(what, "connect to ");
	add_where(what, a);
	str_add(hint, "net.allow: ");
	add_where(hint, a);
}

/* What would be sent besides the path. Bytes that were not looked at make no two requests the
 * same. */
static void add_content(struct str *out, const struct gate_ask *a)
{
	const struct gate_content *c = &a->content;
	const unsigned long long n = c->body_bytes;

	if (a->query[0])
		str_addf(out, "?%s", a->query);
	if (c->is_partial)
		str_addf(out,
		         " with a body of more than %llu bytes, of which only the first %llu were "
		         "looked at: sha256:%s (number %llu)",
		         n, n, c->body_hash, (unsigned long long)a->ask);
	else if (c->body_hash[0])
		str_addf(out, " with a body of %llu bytes, sha256:%s", n, c->body_hash);
	if (c->is_stream)
		str_addf(out, " and a stream behind it that nobody looks at (number %llu)",
		         (unsigned long long)a->ask);
}

static void say_request(const struct gate_ask *a, struct str *what, struct str *hint)
{
	str_addf(what, "send %s ", a->method);
	add_where(what, a);
	str_add(what, a->path);
	add_content(what, a);
	add_cut(what, a);
	str_addf(hint, "net.http: {host: %s, methods: [%s]} without ask", a->name, a->method);
}

static void say_secret(const struct gate_ask *a, struct str *what, struct str *hint)
{
	str_addf(what, "use the secret %s for ", a->secret);
	if (!a->is_first)
		str_addf(what, "%s ", a->method);
	add_where(what, a);
	str_add(what, a->is_first ? "" : a->path);
	add_content(what, a);
	add_cut(what, a);
	str_addf(hint, "caisson secret set %s without --approve", a->secret);
}

/* "/acme/app.git/git-receive-pack" is the repository's, with this at its end. */
static void say_push(const struct gate_ask *a, struct str *what, struct str *hint)
{
	size_t n = strlen(a->path), end = sizeof push_end - 1;

	if (n > end && strcmp(a->path + n - end, push_end) == 0)
		n -= end;
	str_addf(what, "push to %s of ", a->refs);
	add_where(what, a);
	str_addn(what, a->path, n);
	add_cut(what, a);
	str_addf(hint, "caisson secret set %s --push REF", a->secret);
}

/* clang-format off */
static const struct {
	enum approval_kind kind;
	void (*say)(const struct gate_ask *a, struct str *what, struct str *hint);
} kinds[] = {
	[GATE_ASK_CONNECT] = { APPROVAL_NET,     say_connect },
	[GATE_ASK_REQUEST] = { APPROVAL_PUBLISH, say_request },
	[GATE_ASK_SECRET]  = { APPROVAL_SECRET,  say_secret },
	[GATE_ASK_PUSH]    = { APPROVAL_PUSH,    say_push },
};
/* clang-format on */
_Static_assert(COUNT(kinds) == GATE_ASK_KINDS, "a kind has no words");

bool gate_words_are_cut(const struct gate_ask *a)
{
	return is_path_cut(a) || strlen(a->query) + 1 >= sizeof a->query;
}

enum approval_kind gate_words(const struct gate_ask *a, struct str *what, struct str *hint)
{
	kinds[a->kind].say(a, what, hint);
	return kinds[a->kind].kind;
}
