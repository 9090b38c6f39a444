/*
 * process.c - their Process service: start, connect, list, signal, resize.
 */
#include <signal.h>

#include "core/details.h"
#include "core/workspace.h"
#include "e2b/e2b-internal.h"
#include "wire/base64.h"

#define LOG_MAX (64u << 20)
#define TIMEOUT_MOST_MS (30ull * 86400 * 1000)
#define ENV_OURS 8

/* ---- start --------------------------------------------------------------------------- */

struct asked {
	struct px_ask px;
	struct pair_list env;
	struct e2b_user user;
};

static int take_argv(struct call *c, const json_t *process, struct px_ask *out, struct fail *f)
{
	const char *cmd = NULL;
	const json_t *args = json_object_get(process, "args"), *v;
	size_t n = json_array_size(args), i;
	const char **argv = arena_alloc(&c->arena, (n + 2) * sizeof *argv);

	if (member_text(process, "cmd", &cmd, f) < 0)
		return -1;
	if (!cmd || !*cmd)
		return fail_set(f, FAIL_INVALID, "process.cmd is needed");
	argv[0] = cmd;
	json_array_foreach(args, i, v)
	{
		if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
			return fail_set(f, FAIL_INVALID, "process.args: texts are expected");
		argv[i + 1] = json_string_value(v);
	}
	out->argv = argv;
	return 0;
}

static void add_env(struct pair_list *env, const char *key, const char *value)
{
	env->at[env->len++] = (struct text_pair){ key, value };
}

void process_env(struct call *c, const struct sbx *s, const struct e2b_user *user,
                 const json_t *envs, struct pair_list *out)
{
	char *id = arena_alloc(&c->arena, E2B_ID_SIZE);
	json_t *door = e2b_door(s);
	const char *template = json_string_value(json_object_get(door, "template"));
	const struct text_pair ours[] = {
		{ "HOME", user->home },
		{ "USER", user->shown },
		{ "LOGNAME", user->shown },
		{ "E2B_SANDBOX", "true" },
		{ "E2B_SANDBOX_ID", id },
		{ "E2B_TEMPLATE_ID", arena_strdup(&c->arena, template ? template : E2B_TEMPLATE) },
	};
	_Static_assert(COUNT(ours) <= ENV_OURS, "there is no room for a variable");

	ident_out(s->id, id);
	for (size_t i = 0; i < COUNT(ours); i++) {
		bool is_said = json_object_get(envs, ours[i].key) != NULL;

		for (size_t k = 0; k < s->spec.env.len; k++)
			is_said |= strcmp(s->spec.env.at[k].key, ours[i].key) == 0;
		if (!is_said)
			add_env(out, ours[i].key, ours[i].value);
	}
	json_decref(door);
}

static int take_env(struct call *c, const struct sbx *s, const json_t *process, struct asked *a,
                    struct fail *f)
{
	json_t *envs = json_object_get(process, "envs"), *v;
	const char *k;

	if (json_object_size(envs) > ENV_ENTRIES_MAX)
		return fail_set(f, FAIL_INVALID, "process.envs: too many");
	a->env.at = arena_alloc(&c->arena, (json_object_size(envs) + ENV_OURS) * sizeof *a->env.at);
	process_env(c, s, &a->user, envs, &a->env);
	json_object_foreach(envs, k, v)
	{
		if (!*k || strchr(k, '=') || !json_is_string(v) ||
		    strlen(json_string_value(v)) != json_string_length(v))
			return fail_set(f, FAIL_INVALID, "process.envs: \"%.64s\"", k);
		add_env(&a->env, k, json_string_value(v));
	}
	a->px.env = &a->env;
	return 0;
}

static uint16_t size_or(const json_t *size, const char *key, uint16_t otherwise)
{
	json_int_t n = json_integer_value(json_object_get(size, key));

	return n > 0 && n <= 4096 ? (uint16_t)n : otherwise;
}

static int take_timeout(struct call *c, uint64_t *ms, struct fail *f)
{
	const char *text = call_header(c, "Connect-Timeout-Ms");
	char *end = NULL;

	if (!text)
		return 0;
	*ms = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || *ms > TIMEOUT_MOST_MS)
		return fail_set(f, FAIL_INVALID, "Connect-Timeout-Ms: a number of milliseconds");
	return 0;
}

static int take_start(struct call *c, const struct sbx *s, struct asked *a, struct fail *f)
{
	const json_t *process = json_object_get(c->body, "process");
	const json_t *pty = json_object_get(c->body, "pty");
	const json_t *size = json_object_get(pty, "size");
	bool has_stdin = true;
	const char *cwd = NULL;

	if (take_argv(c, process, &a->px, f) < 0 || e2b_user(c, NULL, &a->user, f) < 0 ||
	    take_env(c, s, process, a, f) < 0 || member_text(process, "cwd", &cwd, f) < 0 ||
	    member_text(c->body, "tag", &a->px.label, f) < 0 ||
	    member_bool(c->body, "stdin", &has_stdin, f) < 0 ||
	    take_timeout(c, &a->px.timeout_ms, f) < 0)
		return -1;
	a->px.is_tty = json_is_object(pty);
	a->px.has_stdin = has_stdin || a->px.is_tty;
	a->px.rows = size_or(size, "rows", 24);
	a->px.cols = size_or(size, "cols", 80);
	a->px.user = a->user.name;
	a->px.cwd = e2b_path(c, &a->user, cwd ? cwd : "");
	a->px.log_max = LOG_MAX;
	return 0;
}

void e2b_process_start(struct call *c)
{
	struct asked a = { 0 };
	struct fail f = { 0 };
	struct sbx *s = e2b_enter(c);
	struct px *p = NULL;

	if (!s)
		return;
	if (rpc_take(c, &f) == 0 && take_start(c, s, &a, &f) == 0 && sbx_check_running(s, &f) == 0)
		p = px_start(s, &a.px, &f);
	if (p)
		stream_start(c, p, true);
	else
		answer_fail(c, &f);
}

/* ---- one that runs ------------------------------------------------------------------- */

/* {"pid":…} or {"tag":…}; NULL: it was answered. With a reference. */
static struct px *named(struct call *c, struct sbx *s)
{
	const json_t *which = json_object_get(c->body, "process");
	const json_t *pid = json_object_get(which, "pid");
	const char *tag = json_string_value(json_object_get(which, "tag"));
	struct px *p = s->processes;
	struct fail f = { 0 };

	while (p && !(tag ? p->label && strcmp(p->label, tag) == 0
	                  : json_integer_value(pid) == (json_int_t)p->num + E2B_PID_BASE))
		p = p->next;
	if (p && !p->has_end)
		return px_find(c->api->core, s->tenant, p->id, &f);
	rpc_refuse(c, CONNECT_NOT_FOUND, "no such process runs");
	return NULL;
}

void e2b_process_connect(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	struct fail f = { 0 };

	if (!s)
		return;
	if (rpc_take(c, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	struct px *p = named(c, s);
	if (p)
		stream_start(c, p, false);
}

static json_t *print_process_of(const struct px *p)
{
	json_t *argv = json_loads(p->argv, 0, NULL), *args = json_array(), *v;
	json_t *config = json_object();
	size_t i;

	json_array_foreach(argv, i, v) if (i > 0) json_array_append(args, v);
	json_object_set(config, "cmd", json_array_get(argv, 0));
	json_object_set_new(config, "args", args);
	json_object_set_new(config, "envs", json_object());
	if (p->cwd)
		json_object_set_new(config, "cwd", details_text(p->cwd));
	json_decref(argv);
	json_t *o =
	    json_pack("{sI,so}", "pid", (json_int_t)p->num + E2B_PID_BASE, "config", config);
	if (p->label)
		json_object_set_new(o, "tag", details_text(p->label));
	return o;
}

void e2b_process_list(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	json_t *all = json_array();

	for (const struct px *p = s ? s->processes : NULL; p; p = p->next)
		if (!p->has_end && !e2b_interpreter_is(p)) /* their agent lists no other */
			json_array_append_new(all, print_process_of(p));
	if (s)
		rpc_answer(c, json_pack("{sO}", "processes", all));
	json_decref(all);
}

static void answer(struct call *c, struct px *p, int r, const struct fail *f)
{
	px_unref(p);
	if (r < 0)
		answer_fail(c, f);
	else
		rpc_answer(c, json_object());
}

void e2b_process_eof(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	struct px *p = s ? named(c, s) : NULL;
	struct fail f = { 0 };

	if (!p)
		return;
	if (p->is_tty) {
		px_unref(p);
		rpc_refuse(c, CONNECT_UNKNOWN, "a terminal's input cannot be closed");
		return;
	}
	answer(c, p, p->has_stdin ? px_input(p, NULL, 0, true, &f) : 0, &f);
}

static int signal_of(const json_t *v)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = { { "SIGNAL_SIGTERM", SIGTERM }, { "SIGNAL_SIGKILL", SIGKILL } };

	for (size_t i = 0; i < COUNT(signals); i++)
		if ((json_is_string(v) && strcmp(json_string_value(v), signals[i].name) == 0) ||
		    (json_is_integer(v) && json_integer_value(v) == signals[i].number))
			return signals[i].number;
	return 0;
}

void e2b_process_signal(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	struct px *p = s ? named(c, s) : NULL;
	int sig = signal_of(json_object_get(c->body, "signal"));
	struct fail f = { 0 };

	if (!p)
		return;
	answer(c, p,
	       sig ? px_signal(p, sig, true, &f)
	           : fail_set(&f, FAIL_INVALID, "signal: SIGNAL_SIGTERM or SIGNAL_SIGKILL"),
	       &f);
}

void e2b_process_update(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	struct px *p = s ? named(c, s) : NULL;
	const json_t *size = json_object_get(json_object_get(c->body, "pty"), "size");
	struct fail f = { 0 };
	int r = 0;

	if (!p)
		return;
	if (size && !p->is_tty)
		r = fail_set(&f, FAIL_CONFLICT, "the process has no terminal");
	else if (size)
		r = px_resize(p, size_or(size, "rows", 24), size_or(size, "cols", 80), &f);
	answer(c, p, r, &f);
}

/* ---- input --------------------------------------------------------------------------- */

/* More than the process takes now waits for it, and so does the answer. */
struct feeding {
	struct px_watch watch; /* first */
	struct call *call;
	struct px *p;
	struct str bytes;
	size_t at;
};

static void feeding_over(struct call *c)
{
	struct feeding *x = c->state;

	if (!x)
		return;
	c->state = NULL;
	px_watch_remove(x->p, &x->watch);
	px_unref(x->p);
	str_done(&x->bytes);
	call_unref(x->call);
	free(x);
}

static void feed(struct feeding *x)
{
	struct fail f = { 0 };
	int r = 0;

	while (r == 0 && x->at < x->bytes.len) {
		size_t room = px_input_room(x->p), left = x->bytes.len - x->at;
		size_t n = left < room ? left : room;

		if (x->p->has_end)
			r = fail_set(&f, FAIL_BACKEND_ERROR, "the process has ended");
		else if (n == 0)
			return;
		else
			r = px_input(x->p, x->bytes.data + x->at, n, false, &f);
		x->at += n;
	}
	if (x->call->is_answered)
		return;
	if (r < 0)
		answer_fail(x->call, &f);
	else
		rpc_answer(x->call, json_object());
}

static void feed_more(struct px_watch *w)
{
	feed((struct feeding *)w);
}

static void feed_nothing(struct px_watch *w)
{
	(void)w; /* what it says is for others */
}

/* Padding may be left out. */
static bool decode(const char *text, struct str *out)
{
	size_t n = strlen(text);
	AUTO(str_done) struct str padded = { .max = BODY_JSON_MAX + 4 };

	str_addn(&padded, text, n);
	for (; n % 4 != 0 && padded.len < n + 3 && padded.len % 4 != 0;)
		str_add(&padded, "=");
	return base64_decode(str_text(&padded), padded.len, out);
}

void e2b_process_input(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	struct px *p = s ? named(c, s) : NULL;
	const json_t *input = json_object_get(c->body, "input");

	if (!p)
		return;
	const char *text = json_string_value(json_object_get(input, p->is_tty ? "pty" : "stdin"));
	struct feeding *x = mem_alloc(sizeof *x);
	*x = (struct feeding){ .watch = { .changed = feed_more, .grew = feed_nothing },
		               .call = call_ref(c),
		               .p = p,
		               .bytes = { .max = BODY_JSON_MAX } };
	px_watch_add(p, &x->watch);
	c->state = x;
	c->over = feeding_over;
	if (!p->has_stdin)
		rpc_refuse(c, CONNECT_INTERNAL, "the process takes no input");
	else if (!text && json_object_size(input) > 0)
		rpc_refuse(c, CONNECT_INTERNAL, "input: pty for a terminal, else stdin");
	else if (text && !decode(text, &x->bytes))
		rpc_refuse(c, CONNECT_INVALID_ARGUMENT, "input: not base64");
	else
		feed(x);
}
