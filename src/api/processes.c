/*
 * processes.c - /v1/processes: look at one, give it input, signal it, end it.
 */
#include <signal.h>

#include "api/handlers.h"
#include "api/print.h"
#include "wire/base64.h"

static struct px *named(struct call *c)
{
	struct fail f = { 0 };
	struct px *p = px_find(c->api->core, c->tenant, c->params[0], &f);

	if (!p)
		answer_fail(c, &f);
	return p;
}

void process_get(struct call *c)
{
	struct exec_ask a = { .has_wait = true, .inline_max = INLINE_OUTPUT_MAX };
	const char *wait = call_query(c, "wait");
	struct fail f = { 0 };
	struct err e = { 0 };

	if (wait && duration_parse(wait, &a.wait_ms, &e) < 0) {
		fail_set(&f, FAIL_INVALID, "wait: %s", e.msg);
		answer_fail(c, &f);
		return;
	}
	struct px *p = named(c);
	if (p)
		wait_for(c, p, &a);
}

void process_list(struct call *c)
{
	struct process_query q = { .sandbox = call_query(c, "sandbox"),
		                   .label = call_query(c, "label") };
	const char *state = call_query(c, "state");
	struct process_list list = { 0 };
	struct fail f = { 0 };
	struct err e = { 0 };

	for (enum process_state s = 0; state && s < PROCESS_STATE_COUNT; s++)
		if (strcmp(state, process_state_name(s)) == 0)
			q.states = 1u << s;
	if (state && q.states == 0)
		fail_set(&f, FAIL_INVALID, "state: \"%.32s\" is none", state);
	if (f.code == FAIL_NONE && take_page(c, &q.page, &f) == 0 &&
	    store_process_list(c->api->core->store, &q, &c->arena, &list, &e) < 0)
		fail_err(&f, &e);
	if (f.code != FAIL_NONE) {
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++) {
		const struct px *p = roster_find(&c->api->core->processes, list.rows[i].id);
		bool is_late = p && p->has_end && !p->is_ended; /* the row hears of it just now */

		if (!is_late)
			json_array_append_new(rows, print_process_row(&list.rows[i]));
		else if (q.states == 0 || q.states & 1u << p->state)
			json_array_append_new(rows, print_process(p, NULL, 0));
	}
	json_t *o = json_pack("{so}", "processes", rows);
	json_object_set_new(o, "next", list.next ? json_string(list.next) : json_null());
	answer_json(c, 200, o);
}

/* What came of it: the process as it is now. */
static void answer_process(struct call *c, struct px *p, int result, const struct fail *f)
{
	if (result < 0)
		answer_fail(c, f);
	else
		answer_json(c, 200, print_process(p, NULL, 0));
	px_unref(p);
}

static int take_bytes(const json_t *body, struct str *out, struct fail *f)
{
	const json_t *data = json_object_get(body, "data"),
		     *coded = json_object_get(body, "base64");

	if (json_is_string(data))
		str_addn(out, json_string_value(data), json_string_length(data));
	else if (json_is_string(coded) &&
	         !base64_decode(json_string_value(coded), json_string_length(coded), out))
		return fail_set(f, FAIL_INVALID, "base64: it is not");
	else if ((data && !json_is_string(data)) || (coded && !json_is_string(coded)))
		return fail_set(f, FAIL_INVALID, "data or base64: a text is expected");
	return 0;
}

void process_stdin(struct call *c)
{
	static const char *const known[] = { "data", "base64", "eof", "wait", NULL };
	AUTO(str_done) struct str bytes = { .max = BODY_JSON_MAX };
	struct exec_ask a = { .has_wait = true, .inline_max = INLINE_OUTPUT_MAX };
	struct fail f = { 0 };
	bool is_end = false;
	struct px *p = named(c);

	if (!p)
		return;
	int r = members_known(c->body, known, &f);
	if (r == 0)
		r = member_bool(c->body, "eof", &is_end, &f);
	if (r == 0)
		r = member_duration(c->body, "wait", &a.wait_ms, &f);
	if (r == 0)
		r = take_bytes(c->body, &bytes, &f);
	if (r == 0)
		r = px_input(p, str_text(&bytes), bytes.len, is_end, &f);
	if (r < 0 || a.wait_ms == 0)
		answer_process(c, p, r, &f);
	else
		wait_for(c, p, &a);
}

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },   { "KILL", SIGKILL },
	{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "TERM", SIGTERM },   { "CONT", SIGCONT },
	{ "STOP", SIGSTOP }, { "TSTP", SIGTSTP }, { "WINCH", SIGWINCH },
};

static int take_signal(const json_t *v, int *out, struct fail *f)
{
	const char *name = json_string_value(v);

	if (json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) < 65) {
		*out = (int)json_integer_value(v);
		return 0;
	}
	if (name && strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; name && i < COUNT(signals); i++) {
		if (strcmp(name, signals[i].name) == 0) {
			*out = signals[i].number;
			return 0;
		}
	}
	return fail_set(f, FAIL_INVALID, "sig: a name such as \"TERM\", or 1 to 64");
}

void process_signal(struct call *c)
{
	static const char *const known[] = { "sig", "scope", NULL };
	const char *scope = "process";
	struct fail f = { 0 };
	int sig = SIGTERM;
	struct px *p = named(c);

	if (!p)
		return;
	int r = members_known(c->body, known, &f);
	if (r == 0)
		r = take_signal(json_object_get(c->body, "sig"), &sig, &f);
	if (r == 0)
		r = member_text(c->body, "scope", &scope, &f);
	if (r == 0 && strcmp(scope, "process") != 0 && strcmp(scope, "tree") != 0)
		r = fail_set(&f, FAIL_INVALID, "scope: \"process\" or \"tree\"");
	if (r == 0)
		r = px_signal(p, sig, strcmp(scope, "tree") == 0, &f);
	answer_process(c, p, r, &f);
}

void process_resize(struct call *c)
{
	static const char *const known[] = { "rows", "cols", NULL };
	struct fail f = { 0 };
	struct px *p = named(c);

	if (!p)
		return;
	json_int_t rows = json_integer_value(json_object_get(c->body, "rows"));
	json_int_t cols = json_integer_value(json_object_get(c->body, "cols"));
	int r = members_known(c->body, known, &f);
	if (r == 0 && (rows < 1 || rows > 4096 || cols < 1 || cols > 4096))
		r = fail_set(&f, FAIL_INVALID, "rows, cols: 1 to 4096");
	if (r == 0 && !p->is_tty)
		r = fail_set(&f, FAIL_CONFLICT, "the process has no terminal");
	if (r == 0)
		r = px_resize(p, (uint16_t)rows, (uint16_t)cols, &f);
	answer_process(c, p, r, &f);
}

void process_kill(struct call *c)
{
	struct fail f = { 0 };
	struct px *p = named(c);

	if (p)
		answer_process(c, p, px_kill(p, &f), &f);
}
