/*
 * routes.c - from a request's head to its handler: path, identity, scope, body, idempotency.
 */
#include "api/routes.h"

#include <openssl/evp.h>
#include <unistd.h>

#include "api/auth.h"
#include "store/idem.h"
#include "wire/url.h"

#define KEY_BYTES_MAX 255
#define QUERY_MAX 8192

static struct api *the_api; /* the server's callbacks carry no pointer; a process has one API */

void api_init(struct api *a)
{
	the_api = a;
}

static const char *const scopes[] = { "none", "read", "exec", "manage", "approve", "admin" };
_Static_assert(COUNT(scopes) == SCOPES, "a scope has no name");

const char *scope_name(enum scope s)
{
	return scopes[s];
}

/* ---- matching ---------------------------------------------------------------------- */

static int take_param(struct call *c, size_t i, struct span raw, struct fail *f)
{
	char *buf = arena_alloc(&c->arena, raw.len + 1);
	struct err e = { 0 };
	int n = url_decode(URL_SEGMENT, raw, buf, raw.len + 1, &e);

	if (n < 0)
		return fail_err(f, &e);
	c->params[i] = buf;
	c->param_len[i] = (size_t)n;
	return 0;
}

/* All that is left of the path. */
static int take_rest(struct call *c, size_t i, struct span rest, struct fail *f)
{
	if (rest.len > 0 && rest.at[0] == '/')
		rest = span_after(rest, 1);
	return take_param(c, i, rest, f) < 0 ? -1 : 1;
}

static bool is_param(struct span word)
{
	return word.len > 2 && word.at[0] == '{';
}

static bool is_same(struct span a, struct span b)
{
	return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* 1: it is this pattern's; 0: it is not; -1: it is, and a segment is wrong. */
static int match(struct call *c, const char *pattern, struct fail *f)
{
	struct span rest = c->r->path, want = span_of(pattern), segment, word;
	size_t n = 0;

	while (url_segment(&want, &word)) {
		if (is_param(word) && word.at[word.len - 2] == '*')
			return take_rest(c, n, rest, f);
		if (!url_segment(&rest, &segment))
			return 0;
		if (!is_param(word) && !is_same(segment, word))
			return 0;
		if (is_param(word) && segment.len == 0)
			return 0;
		if (is_param(word) && take_param(c, n++, segment, f) < 0)
			return -1;
	}
	return rest.len == 0;
}

/* The route, or NULL with the reason: no such path, or not this method. */
static const struct route *find(struct call *c, struct fail *f, const char **allowed)
{
	const struct route *at = c->annex ? c->annex->routes : routes;
	const struct route *end = at + (c->annex ? c->annex->n_routes : n_routes);
	struct span method = c->r->head->method;
	const char *as = span_is(method, "HEAD") ? "GET" : NULL;

	*allowed = NULL;
	if (c->annex && c->annex->all)
		return c->annex->all;
	for (; at < end; at++) {
		int r = match(c, at->pattern, f);

		if (r < 0)
			return NULL;
		if (r == 0)
			continue;
		if (as ? strcmp(at->method, as) == 0 : span_is(method, at->method))
			return at;
		*allowed = at->method;
	}
	fail_set(f, FAIL_NOT_FOUND, "%s", *allowed ? "no such method here" : "no such resource");
	return NULL;
}

/* ---- the head ---------------------------------------------------------------------- */

/* Every parameter is one that the route knows: a typo is an error, never ignored. Clients of an
 * annex may send what came later, unless the route says what it knows. */
static int check_query(struct call *c, struct fail *f)
{
	char *buf = arena_alloc(&c->arena, QUERY_MAX);
	struct span rest = c->r->query;
	struct url_param p;
	struct err e = { 0 };
	int r;

	while ((r = url_param(&rest, (struct url_buf){ buf, QUERY_MAX }, &p, &e)) > 0) {
		struct span known = span_of(c->route->query ? c->route->query : "");
		bool is_known = c->annex && !c->route->query;

		while (known.len > 0 && !is_known) {
			size_t n = strcspn(known.at, " ");

			is_known = n == p.name_len && memcmp(known.at, p.name, n) == 0;
			known = span_after(known, known.at[n] ? n + 1 : n);
		}
		if (!is_known)
			return fail_set(f, FAIL_INVALID, "unknown parameter \"%.64s\"", p.name);
	}
	return r < 0 ? fail_err(f, &e) : 0;
}

struct call *call_ref(struct call *c)
{
	c->refs++;
	return c;
}

void call_unref(struct call *c)
{
	if (--c->refs > 0)
		return;
	if (!c->is_kept && !c->api->core->is_closing)
		call_keep_nothing(c);
	json_decref(c->body);
	json_decref(c->recording.body);
	json_decref(c->made);
	arena_done(&c->arena);
	free(c);
}

static const struct annex *annex_of(const struct request *r)
{
	const struct annex *const *at = the_api->annexes;

	while (at && *at && !(*at)->takes(r))
		at++;
	return at ? *at : NULL;
}

static int admit(struct call *c, struct fail *f)
{
	int r = c->annex ? c->annex->check(c, f) : auth_check(c, c->route->scope, f);
	bool is_others = c->annex && c->annex->all; /* who is asked knows what it means */

	return r < 0 ? -1 : is_others ? 0 : check_query(c, f);
}

static void on_head(struct request *r)
{
	struct call *c = mem_alloc(sizeof *c);
	struct fail f = { 0 };
	const char *allowed;

	*c = (struct call){ .api = the_api, .r = r, .refs = 1, .annex = annex_of(r) };
	r->route = c;
	r->body_mode = BODY_NONE;
	the_api->core->busy_ms = core_mono_ms();
	c->route = find(c, &f, &allowed);
	if (!c->route && allowed) {
		const char *extra[] = { "Allow", allowed, NULL };

		reply(r, 405, NULL, NULL, 0, extra);
		return;
	}
	if (!c->route || admit(c, &f) < 0) {
		if (!c->is_answered)
			answer_fail(c, &f);
		return;
	}
	r->body_mode = c->route->body;
	r->owner = c->is_operator ? NULL : c->tenant;
	/* What is streamed has the worker's ceiling, and the sandbox's disk. */
	r->body_max = c->route->body == BODY_STREAM ? UINT64_MAX : BODY_JSON_MAX;
}

/* The last the server says of a request: it is over, or its client has left. */
static void on_end(struct request *r)
{
	struct call *c = r->route;

	if (!c)
		return;
	c->r = NULL;
	if (!c->is_answered && c->gone)
		c->gone(c);
	if (c->over)
		c->over(c);
	call_unref(c);
}

/* ---- the request --------------------------------------------------------------------- */

static void hash_text(const void *bytes, size_t n, uint8_t out[STORE_HASH_BYTES])
{
	if (EVP_Digest(bytes, n, out, NULL, EVP_sha256(), NULL) != 1)
		abort();
}

static void replay(struct call *c, const struct idem_found *found)
{
	static const char *const extra[] = { "Idempotent-Replay", "true", NULL };
	bool is_problem = found->status < 0;

	c->is_answered = true;
	const char *type = is_problem ? "application/problem+json" : "application/json";

	if (c->r)
		reply(c->r, is_problem ? -found->status : found->status,
		      found->body_bytes > 0 ? type : NULL, found->body, found->body_bytes, extra);
}

/* What the request makes is noted before it is stored: who repeats the request after a crash is
 * told where to look. */
static void note_made(void *arg, const char *id)
{
	struct call *c = arg;
	struct err e = { 0 };

	if (!c->made)
		c->made = json_array();
	json_array_append_new(c->made, json_string(id));
	AUTO(freep) char *text = json_dumps(c->made, JSON_COMPACT);
	const struct idem_result r = {
		.tenant = c->tenant, .key = c->idem_key, .body = text, .body_bytes = strlen(text)
	};

	(void)store_idem_note(c->api->core->store, &r, (struct store_call){ .is_lazy = true },
	                      &e); /* then nobody is told */
}

bool call_enter(struct call *c)
{
	struct core *core = c->api->core;

	if (core->made_arg == c)
		return false;
	core->actor = c->actor;
	core->made = c->idem_key ? note_made : NULL;
	core->made_arg = c;
	return true;
}

static void leave_core(struct core *core)
{
	core->actor = NULL;
	core->made = NULL;
	core->made_arg = NULL;
}

void call_leave(struct call *c)
{
	leave_core(c->api->core);
}

static void run(struct call *c)
{
	struct core *core = c->api->core; /* the handler may let go of the call */

	(void)call_enter(c);
	c->route->run(c);
	leave_core(core);
}

void call_forget(struct call *c)
{
	struct err e = { 0 };

	if (c->idem_key)
		(void)store_idem_abandon(c->api->core->store, c->tenant, c->idem_key,
		                         (struct store_call){ 0 }, &e); /* or taken for a day */
	c->idem_key = NULL;
}

static void begun(void *arg, const struct store_answer *a)
{
	static const char *const why[] = {
		[IDEM_IN_PROGRESS] = "the same request is being worked on",
		[IDEM_MISMATCH] = "it was used for another request",
		[IDEM_INTERRUPTED] =
		    "interrupted by a restart; look at `made` before you repeat it",
	};
	struct call *c = arg;
	struct fail f = { 0 };

	if (a->code == STORE_OK && a->idem->state == IDEM_NEW) {
		if (c->r)
			run(c);
		else
			call_forget(c);
		call_unref(c);
		return;
	}
	c->idem_key = NULL;
	if (a->code == STORE_OK && a->idem->state == IDEM_DONE) {
		replay(c, a->idem);
	} else {
		bool is_cut = a->code == STORE_OK && a->idem->state == IDEM_INTERRUPTED;
		json_t *made =
		    is_cut ? json_loadb(a->idem->body, a->idem->body_bytes, 0, NULL) : NULL;

		if (a->code == STORE_OK)
			fail_set(&f, FAIL_CONFLICT, "Idempotency-Key: %s", why[a->idem->state]);
		else
			fail_set(&f, FAIL_BACKEND_ERROR, "the store does not answer");
		answer_fail_with(c, &f, is_cut ? "made" : NULL,
		                 is_cut && !made ? json_array() : made);
	}
	call_unref(c);
}

static void begin_once(struct call *c)
{
	struct idem_request q = { .tenant = c->tenant,
		                  .key = c->idem_key,
		                  .now_ms = core_now_ms() };
	AUTO(str_done) struct str route = { .max = 64u << 10 };
	struct err e = { 0 };
	struct fail f = { 0 };

	str_addn(&route, c->r->head->method.at, c->r->head->method.len);
	str_addn(&route, c->r->head->target.at, c->r->head->target.len);
	hash_text(str_text(&route), route.len, q.route_hash);
	hash_text(c->r->body.at ? c->r->body.at : "", c->r->body.len, q.body_hash);
	if (store_idem_begin(c->api->core->store, &q,
	                     (struct store_call){ .done = begun, .arg = call_ref(c) }, &e) < 0) {
		c->idem_key = NULL;
		fail_unsent(&f, &e);
		f.is_retry_safe = true;
		answer_fail(c, &f);
		call_unref(c);
	}
}

static int parse_body(struct call *c, struct fail *f)
{
	json_error_t e;
	struct span b = c->r->body;

	if (b.len == 0)
		return 0;
	c->body = json_loadb(b.at, b.len, JSON_REJECT_DUPLICATES, &e);
	if (!c->body)
		return fail_set(f, FAIL_INVALID, "the body is not JSON: line %d: %s", e.line,
		                e.text);
	if (!json_is_object(c->body) && !json_is_array(c->body))
		return fail_set(f, FAIL_INVALID, "the body is not a JSON object");
	return 0;
}

static bool wants_json(const struct route *r)
{
	return r->body == BODY_WHOLE && r->takes;
}

/* NULL: its answers are not kept. */
static const char *key_header(const struct call *c)
{
	return c->annex ? c->annex->once : "Idempotency-Key";
}

static void on_request(struct request *r)
{
	struct call *c = r->route;
	struct fail f = { 0 };

	if (wants_json(c->route) && parse_body(c, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (key_header(c) && strcmp(c->route->method, "POST") == 0 && c->route->body != BODY_STREAM)
		c->idem_key = call_header(c, key_header(c));
	if (c->idem_key && (!*c->idem_key || strlen(c->idem_key) > KEY_BYTES_MAX)) {
		c->idem_key = NULL;
		fail_set(&f, FAIL_INVALID, "Idempotency-Key: 1 to %d bytes", KEY_BYTES_MAX);
		answer_fail(c, &f);
		return;
	}
	if (c->idem_key)
		begin_once(c);
	else
		run(c);
}

const struct server_ops api_ops = { .on_head = on_head,
	                            .on_request = on_request,
	                            .on_end = on_end };
