/*
 * answer.c - what every handler needs: answers, parameters, members of a body.
 */
#include "api/print.h"
#include "api/routes.h"
#include "io/journal.h"
#include "spec/spec.h"
#include "store/idem.h"
#include "wire/url.h"

#define PARAM_MAX 8192

/* ---- answers ----------------------------------------------------------------------- */

static const char *type_of(bool is_problem)
{
	return is_problem ? "application/problem+json" : "application/json";
}

/* At debug every answer, else our own failures; with their words. */
static void note(const struct call *c, int status, const char *detail)
{
	bool is_ours = status >= 500 && status != 511; /* that is an exception in a sandbox */
	enum journal_level level = is_ours ? JOURNAL_WARN : JOURNAL_DEBUG;
	char method[16], path[256], code[8];

	if (!c->r || !journal_hears(level))
		return;
	snprintf(method, sizeof method, "%.*s", (int)c->r->head->method.len, c->r->head->method.at);
	snprintf(path, sizeof path, "%.*s", (int)c->r->path.len, c->r->path.at);
	snprintf(code, sizeof code, "%d", status);
	journal(level, is_ours ? "a request failed" : "a request", "method", method, "path", path,
	        "status", code, "tenant", c->tenant, "detail", detail, NULL);
}

static void send(struct call *c, int status, bool is_problem, const char *body)
{
	if (c->r)
		reply(c->r, status, *body ? type_of(is_problem) : NULL, body, strlen(body), NULL);
}

/* The answer is kept before it is given: a client that asks again gets the same one. */
struct kept_answer {
	struct call *call;
	int status;
	bool is_problem;
	char *body;
};

static void kept(void *arg, const struct store_answer *a)
{
	struct kept_answer *k = arg;

	(void)a; /* an answer that could not be kept is still the answer */
	send(k->call, k->status, k->is_problem, k->body);
	call_unref(k->call);
	free(k->body);
	free(k);
}

static bool keep_answer(struct call *c, int status, bool is_problem, const char *body)
{
	struct kept_answer *k = mem_alloc(sizeof *k);
	struct err e = { 0 };

	*k = (struct kept_answer){ c, status, is_problem, mem_strdup(body) };
	struct idem_result result = { .tenant = c->tenant,
		                      .key = c->idem_key,
		                      .status = is_problem ? -status : status,
		                      .body = k->body,
		                      .body_bytes = strlen(body) };
	if (result.body_bytes > STORE_BODY_MAX ||
	    store_idem_finish(c->api->core->store, &result,
	                      (struct store_call){ .done = kept, .arg = k }, &e) < 0) {
		free(k->body);
		free(k);
		return false;
	}
	c->is_kept = true;
	call_ref(c);
	return true;
}

void call_keep_nothing(struct call *c)
{
	struct fail f = { 0 };
	struct err e = { 0 };

	if (!c->idem_key)
		return;
	fail_set(&f, FAIL_CONFLICT,
	         "Idempotency-Key: it was worked on, and its answer is not kept; look before you "
	         "repeat it under a new key");
	json_t *o = print_problem(&f);
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	struct idem_result result = { .tenant = c->tenant,
		                      .key = c->idem_key,
		                      .status = -fail_status(f.code),
		                      .body = text,
		                      .body_bytes = strlen(text) };
	(void)store_idem_finish(c->api->core->store, &result, (struct store_call){ 0 },
	                        &e); /* else it is in progress for a day */
	c->idem_key = NULL;
}

void answer_body(struct call *c, int status, bool is_problem, const char *text)
{
	c->is_answered = true;
	if (!is_problem)
		note(c, status, NULL);
	if (!c->idem_key || !keep_answer(c, status, is_problem, text))
		send(c, status, is_problem, text);
}

/* ---- records ------------------------------------------------------------------------- */

static void recorded(void *arg, bool is_on_disk)
{
	struct call *c = arg;
	json_t *body = c->recording.body;
	struct fail f = { 0 };

	c->recording.n--;
	c->recording.has_failed |= !is_on_disk;
	if (c->recording.n == 0 && c->recording.is_answered) {
		c->recording.body = NULL;
		fail_set(&f, FAIL_BACKEND_ERROR, "it is done, and the ledger could not record it");
		if (c->recording.has_failed)
			answer_fail(c, &f);
		else if (body)
			answer_json(c, c->recording.status, json_incref(body));
		else
			answer_empty(c, c->recording.status);
		json_decref(body);
	}
	call_unref(c);
}

void call_note(struct call *c, enum ledger_kind kind, const struct ledger_who *who, json_t *data)
{
	struct ledger_who full = who ? *who : (struct ledger_who){ 0 };

	full.tenant = full.tenant ? full.tenant : c->tenant;
	full.actor = c->actor;
	if (!ledger_is_synced(kind)) {
		ledger_note(c->api->core, kind, &full, data);
		return;
	}
	c->recording.n++;
	ledger_commit(c->api->core, kind, &full, data, recorded, call_ref(c));
}

/* True: later. */
static bool is_too_early(struct call *c, int status, json_t *body)
{
	if (c->recording.n == 0)
		return false;
	c->is_answered = c->recording.is_answered = true;
	c->recording.status = status;
	c->recording.body = body;
	return true;
}

void answer_json(struct call *c, int status, json_t *body)
{
	if (is_too_early(c, status, body))
		return;
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT);

	json_decref(body);
	answer_body(c, status, false, text ? text : "{}");
}

void answer_fail_with(struct call *c, const struct fail *f, const char *key, json_t *value)
{
	c->api->core->stats.failures++;
	note(c, fail_status(f->code), f->detail);
	if (c->annex && c->annex->fail) {
		json_decref(value);
		c->annex->fail(c, f);
		return;
	}
	json_t *o = print_problem(f);

	if (key)
		json_object_set_new(o, key, value);
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	answer_body(c, fail_status(f->code), true, text);
}

void answer_fail(struct call *c, const struct fail *f)
{
	answer_fail_with(c, f, NULL, NULL);
}

void answer_empty(struct call *c, int status)
{
	if (is_too_early(c, status, NULL))
		return;
	answer_body(c, status, false, "");
}

void answer_dropped(void *call, const struct store_answer *a)
{
	struct fail f = { 0 };

	if (a->code == STORE_OK) {
		answer_empty(call, 204);
	} else {
		fail_set(&f, FAIL_BACKEND_ERROR, "it has ended, and could not be forgotten");
		answer_fail(call, &f);
	}
	call_unref(call);
}

/* ---- parameters -------------------------------------------------------------------- */

struct sbx *call_sandbox(struct call *c)
{
	struct fail f = { 0 };
	struct sbx *s = sbx_find(c->api->core, c->tenant, c->params[0], &f);

	if (!s)
		answer_fail(c, &f);
	return s;
}

const char *call_query(struct call *c, const char *name)
{
	struct span rest = c->r->query;
	char *buf = arena_alloc(&c->arena, PARAM_MAX);
	struct url_param p;
	struct err e;

	while (url_param(&rest, (struct url_buf){ buf, PARAM_MAX }, &p, &e) > 0)
		if (strcmp(p.name, name) == 0)
			return arena_strndup(&c->arena, p.value, p.value_len);
	return NULL;
}

const char *call_header(struct call *c, const char *name)
{
	const struct span *v = http_header(c->r->head, name);

	return v ? arena_strndup(&c->arena, v->at, v->len) : NULL;
}

/* ---- members of a body --------------------------------------------------------------- */

static const json_t *member(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return v && !json_is_null(v) ? v : NULL;
}

int member_text(const json_t *o, const char *key, const char **out, struct fail *f)
{
	const json_t *v = member(o, key);

	if (!v)
		return 0;
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return fail_set(f, FAIL_INVALID, "%s: a text is expected", key);
	*out = json_string_value(v);
	return 0;
}

int member_bool(const json_t *o, const char *key, bool *out, struct fail *f)
{
	const json_t *v = member(o, key);

	if (!v)
		return 0;
	if (!json_is_boolean(v))
		return fail_set(f, FAIL_INVALID, "%s: true or false is expected", key);
	*out = json_is_true(v);
	return 0;
}

static int member_unit(const json_t *o, const char *key, uint64_t *out,
                       int (*parse)(const char *, uint64_t *, struct err *), struct fail *f)
{
	const json_t *v = member(o, key);
	struct err e = { 0 };
	char digits[24];
	const char *text = digits;

	if (!v)
		return 0;
	if (json_is_integer(v) && json_integer_value(v) >= 0)
		snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(v));
	else if (json_is_string(v))
		text = json_string_value(v);
	else
		return fail_set(f, FAIL_INVALID,
		                "%s: a number or a text such as \"10m\" is expected", key);
	if (parse(text, out, &e) < 0)
		return fail_set(f, FAIL_INVALID, "%s: %s", key, e.msg);
	return 0;
}

int member_size(const json_t *o, const char *key, uint64_t *out, struct fail *f)
{
	return member_unit(o, key, out, size_parse, f);
}

int member_duration(const json_t *o, const char *key, uint64_t *out_ms, struct fail *f)
{
	return member_unit(o, key, out_ms, duration_parse, f);
}

int members_known(const json_t *o, const char *const *known, struct fail *f)
{
	const char *key;
	json_t *value;

	if (!json_is_object(o))
		return fail_set(f, FAIL_INVALID, "a JSON object is expected");
	json_object_foreach((json_t *)(uintptr_t)o, key, value)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (!known[i])
			return fail_set(f, FAIL_INVALID, "unknown key \"%.64s\"", key);
	}
	return 0;
}
