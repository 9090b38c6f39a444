/*
 * exec.c - the one verb that runs things: POST …/exec and POST /v1/run.
 *
 * `wait` is how long this call blocks, `timeout` how long the command may live. A client that goes
 * away loses nothing: the process has a record and a log.
 */
#include <signal.h>

#include "api/auth.h"
#include "api/handlers.h"
#include "api/print.h"
#include "core/workspace.h"
#include "wire/base64.h"

#define LOG_MAX_DEFAULT (64u << 20)
#define LOG_MAX_MOST (1u << 30)
#define INLINE_MOST (4u << 20)
#define WINDOW (1u << 20)

/* ---- the body ------------------------------------------------------------------------ */

/* A text; or what is none, as {"base64":"…"}: an argument may be any bytes but NUL. */
static const char *take_word_of(struct call *c, const json_t *v)
{
	const json_t *coded = json_object_size(v) == 1 ? json_object_get(v, "base64") : NULL;
	AUTO(str_done) struct str bytes = { .max = ARGV_BYTES_MAX };

	if (coded && (!json_is_string(coded) ||
	              !base64_decode(json_string_value(coded), json_string_length(coded), &bytes)))
		return NULL;
	const char *text = coded ? str_text(&bytes) : json_string_value(v);
	size_t n = coded ? bytes.len : json_string_length(v);
	return text && strlen(text) == n ? arena_strndup(&c->arena, text, n) : NULL;
}

static int take_cmd(struct call *c, const json_t *cmd, struct px_ask *out, struct fail *f)
{
	size_t n = json_array_size(cmd);
	const char **argv = arena_alloc(&c->arena, (n + 1) * sizeof *argv);

	if (json_is_string(cmd)) {
		out->script = json_string_value(cmd);
		if (strlen(out->script) != json_string_length(cmd))
			return fail_set(f, FAIL_INVALID, "cmd: a NUL byte");
		return 0;
	}
	if (n == 0)
		return fail_set(f, FAIL_INVALID, "cmd: a text or a list of texts is expected");
	for (size_t i = 0; i < n; i++) {
		argv[i] = take_word_of(c, json_array_get(cmd, i));
		if (!argv[i])
			return fail_set(f, FAIL_INVALID, "cmd: a list of texts is expected");
	}
	out->argv = argv;
	return 0;
}

static bool is_name(const char *k)
{
	if (!*k || (*k >= '0' && *k <= '9'))
		return false;
	for (; *k; k++)
		if (*k == '=' || (unsigned char)*k < 0x21)
			return false;
	return true;
}

static int take_env(struct call *c, json_t *env, struct pair_list *out, struct fail *f)
{
	const char *k;
	json_t *v;

	if (!env || json_is_null(env))
		return 0;
	if (!json_is_object(env) || json_object_size(env) > ENV_ENTRIES_MAX)
		return fail_set(f, FAIL_INVALID, "env: an object of texts is expected");
	out->at = arena_alloc(&c->arena, (json_object_size(env) + 1) * sizeof *out->at);
	json_object_foreach(env, k, v)
	{
		if (!is_name(k) || !json_is_string(v) ||
		    strlen(json_string_value(v)) != json_string_length(v))
			return fail_set(f, FAIL_INVALID, "env: \"%.64s\": a name and a text", k);
		out->at[out->len++] = (struct text_pair){ k, json_string_value(v) };
	}
	return 0;
}

static int take_size(const json_t *body, const char *key, uint16_t *out, struct fail *f)
{
	const json_t *v = json_object_get(body, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > 4096)
		return fail_set(f, FAIL_INVALID, "%s: 1 to 4096", key);
	*out = (uint16_t)json_integer_value(v);
	return 0;
}

static int take_output(const json_t *o, struct exec_ask *a, struct fail *f)
{
	static const char *const known[] = { "inline", "keep", "merge", "max_log", NULL };
	const char *keep = "head+tail";

	if (!o || json_is_null(o))
		return 0;
	if (members_known(o, known, f) < 0 || member_size(o, "inline", &a->inline_max, f) < 0 ||
	    member_size(o, "max_log", &a->px.log_max, f) < 0 ||
	    member_bool(o, "merge", &a->px.is_merged, f) < 0 ||
	    member_text(o, "keep", &keep, f) < 0)
		return -1;
	if (strcmp(keep, "head+tail") != 0)
		return fail_set(f, FAIL_INVALID, "output.keep: \"head+tail\" is what there is");
	if (a->inline_max > INLINE_MOST || a->px.log_max > LOG_MAX_MOST || a->px.log_max < 4096)
		return fail_set(f, FAIL_INVALID, "output: inline at most 4m, max_log 4k to 1g");
	return 0;
}

static int take_word(const json_t *body, const char *key, const char *other, bool *is_other,
                     struct fail *f)
{
	const char *word = "keep";

	if (member_text(body, key, &word, f) < 0)
		return -1;
	if (strcmp(word, "keep") != 0 && strcmp(word, other) != 0)
		return fail_set(f, FAIL_INVALID, "%s: \"keep\" or \"%s\"", key, other);
	*is_other = strcmp(word, other) == 0;
	return 0;
}

/* Whoever may only execute must not end a sandbox by it. */
static int take_at_end(struct call *c, const json_t *body, struct px_ask *px, struct fail *f)
{
	static const char *const words[] = {
		[AT_END_KEEP] = "keep", [AT_END_STOP] = "stop", [AT_END_DELETE] = "delete"
	};
	const char *word = words[AT_END_KEEP];
	size_t i = 0;

	if (member_text(body, "at_end", &word, f) < 0)
		return -1;
	while (i < COUNT(words) && strcmp(words[i], word) != 0)
		i++;
	if (i == COUNT(words))
		return fail_set(f, FAIL_INVALID, "at_end: \"keep\", \"stop\" or \"delete\"");
	px->at_end = (enum process_at_end)i;
	return i == AT_END_KEEP ? 0 : auth_check(c, SCOPE_MANAGE, f);
}

int exec_parse(struct call *c, const json_t *body, struct exec_ask *a, struct fail *f)
{
	static const char *const known[] = { "cmd",    "cwd",     "env",        "stdin",
		                             "user",   "timeout", "wait",       "tty",
		                             "output", "rows",    "cols",       "on_disconnect",
		                             "label",  "shell",   "background", "at_end",
		                             NULL };
	struct px_ask *px = &a->px;

	*a = (struct exec_ask){
		.inline_max = INLINE_OUTPUT_MAX,
		.px = { .actor = c->actor, .log_max = LOG_MAX_DEFAULT, .rows = 24, .cols = 80 }
	};
	if (members_known(body, known, f) < 0 ||
	    take_cmd(c, json_object_get(body, "cmd"), px, f) < 0 ||
	    take_env(c, json_object_get(body, "env"), &a->env, f) < 0 ||
	    take_output(json_object_get(body, "output"), a, f) < 0 ||
	    member_text(body, "cwd", &px->cwd, f) < 0 ||
	    member_text(body, "user", &px->user, f) < 0 ||
	    member_text(body, "label", &px->label, f) < 0 ||
	    member_bool(body, "tty", &px->is_tty, f) < 0 ||
	    member_duration(body, "timeout", &px->timeout_ms, f) < 0 ||
	    member_duration(body, "wait", &a->wait_ms, f) < 0 ||
	    take_size(body, "rows", &px->rows, f) < 0 ||
	    take_size(body, "cols", &px->cols, f) < 0 ||
	    member_text(body, "shell", &px->shell, f) < 0 ||
	    take_word(body, "background", "kill", &px->is_alone, f) < 0 ||
	    take_word(body, "on_disconnect", "kill", &px->kill_on_disconnect, f) < 0 ||
	    take_at_end(c, body, px, f) < 0)
		return -1;
	const json_t *input = json_object_get(body, "stdin");
	/* Whoever asks for a terminal means to type. */
	px->has_stdin = json_is_true(input) || json_is_string(input) || (!input && px->is_tty);
	if (input && !json_is_null(input) && !json_is_boolean(input) && !json_is_string(input))
		return fail_set(f, FAIL_INVALID, "stdin: a text, true or null is expected");
	a->has_wait = json_object_get(body, "wait") && !json_is_null(json_object_get(body, "wait"));
	px->env = &a->env;
	if (px->cwd && px->cwd[0] != '/')
		return fail_set(f, FAIL_INVALID, "cwd: %.64s is not an absolute path", px->cwd);
	return 0;
}

/* ---- one that waits ------------------------------------------------------------------ */

struct waiter {
	struct px_watch watch; /* first */
	struct call *call;
	struct px *p;
	struct timer timer;
	struct scan scan;
	struct keep kept[LOG_STREAMS];
	json_t *extra; /* what the answer has besides, or NULL */
	bool is_due;   /* answered as soon as there is a record */
	bool is_reading;
};

static void waiter_free(struct waiter *w)
{
	struct px *p = w->p;

	timer_stop(&w->call->api->core->timers, &w->timer);
	px_watch_remove(p, &w->watch);
	scan_done(&w->scan);
	keep_done(&w->kept[LOG_OUT]);
	keep_done(&w->kept[LOG_ERR]);
	json_decref(w->extra);
	call_unref(w->call);
	free(w);
	px_unref(p);
}

/* The log is read a few MiB a turn; the last turn answers. */
static void read_on(struct waiter *w)
{
	w->is_reading = true;
	if (w->p->log_fd >= 0 && !output_keep(&w->scan, w->kept)) {
		timer_set(&w->p->core->timers, &w->timer, 0);
		return;
	}
	json_t *o = print_process(w->p, w->kept, w->scan.at);

	json_object_update(o, w->extra);
	answer_json(w->call, 200, o);
	waiter_free(w);
}

/* Nobody is told of what is not on record. */
static void go_on(struct waiter *w)
{
	const struct px *p = w->p;
	struct fail f = { 0 };

	if (w->is_reading || !(p->is_over || (w->is_due && p->is_stored) || p->is_unrecorded))
		return;
	if (!p->is_unrecorded) {
		read_on(w);
		return;
	}
	fail_unstored(&f, "the process could not be recorded and was ended", p->is_disk_full);
	answer_fail(w->call, &f);
	waiter_free(w);
}

static void waiter_changed(struct px_watch *watch)
{
	go_on((struct waiter *)watch);
}

static void waiter_grew(struct px_watch *watch)
{
	(void)watch; /* read when it is asked for */
}

static void waiter_late(struct timer *t)
{
	struct waiter *w = (struct waiter *)(void *)((char *)t - offsetof(struct waiter, timer));

	if (w->is_reading) {
		read_on(w);
		return;
	}
	w->is_due = true;
	go_on(w);
}

static void waiter_gone(struct call *c)
{
	struct waiter *w = c->state;
	struct fail f;

	if (w->p && c->is_kill_on_disconnect)
		(void)px_kill(w->p, &f); /* it may have ended meanwhile */
	if (!c->idem_key)                /* else the answer is kept for whoever asks again */
		waiter_free(w);
}

void wait_for(struct call *c, struct px *p, const struct exec_ask *a)
{
	struct waiter *w = mem_alloc(sizeof *w);

	*w = (struct waiter){ .watch = { .changed = waiter_changed, .grew = waiter_grew },
		              .call = call_ref(c),
		              .p = p,
		              .extra = a->extra };
	w->timer.fired = waiter_late;
	scan_init(&w->scan, p->log_fd, 0);
	keep_init(&w->kept[LOG_OUT], a->inline_max);
	keep_init(&w->kept[LOG_ERR], a->inline_max);
	px_watch_add(p, &w->watch);
	c->state = w;
	c->gone = waiter_gone;
	c->is_kill_on_disconnect = a->px.kill_on_disconnect;
	if (p->has_stdin && !p->has_end)
		px_watch_input(p, true);
	w->is_due = a->has_wait && a->wait_ms == 0;
	if (a->has_wait && !w->is_due)
		timer_set(&p->core->timers, &w->timer, a->wait_ms);
	go_on(w);
}

/* ---- exec ---------------------------------------------------------------------------- */

int exec_input(struct px *p, const json_t *input, struct fail *f)
{
	if (!json_is_string(input))
		return 0;
	if (json_string_length(input) > CHANNEL_INPUT_MAX)
		return fail_set(f, FAIL_TOO_LARGE,
		                "stdin: at most %u bytes here; POST …/stdin takes more",
		                CHANNEL_INPUT_MAX);
	return px_input(p, json_string_value(input), json_string_length(input), true, f);
}

static void exec_now(struct call *c, struct sbx *s)
{
	struct exec_ask a;
	struct fail f = { 0 };
	struct px *p = NULL;

	if (exec_parse(c, c->body, &a, &f) == 0 && sbx_check_running(s, &f) == 0) {
		if (live_is_asked(c))
			a.px.window = WINDOW;
		bool is_later = call_enter(c);

		p = px_start(s, &a.px, &f);
		if (is_later)
			call_leave(c);
	}
	if (!p) {
		answer_fail(c, &f);
		return;
	}
	if (exec_input(p, json_object_get(c->body, "stdin"), &f) < 0) {
		struct fail ignored;

		(void)px_kill(p, &ignored);
		px_unref(p);
		answer_fail(c, &f);
		return;
	}
	if (live_is_asked(c))
		live_start(c, p,
		           (struct live_opts){ .inline_max = a.inline_max,
		                               .kill_on_disconnect = a.px.kill_on_disconnect });
	else
		wait_for(c, p, &a);
}

struct exec_later {
	struct call *call;
	char sandbox[ID_SIZE];
};

static void exec_settled(void *arg, struct wsx *w, const struct fail *fail)
{
	struct exec_later *l = arg;
	struct call *c = l->call;
	struct sbx *s = roster_find(&c->api->core->sandboxes, l->sandbox);
	struct fail f = { 0 };

	(void)w;
	(void)fail; /* whatever was before it is over */
	if (s && c->r) {
		exec_now(c, s);
	} else if (c->r) {
		fail_set(&f, FAIL_NOT_FOUND, "no such sandbox");
		answer_fail(c, &f);
	} else {
		call_forget(c);
	}
	call_unref(c);
	free(l);
}

/* What changed its workspace before is a step of its own. */
void exec_in(struct call *c, struct sbx *s)
{
	if (!s->workspace) {
		exec_now(c, s);
		return;
	}
	struct exec_later *l = mem_alloc(sizeof *l);
	*l = (struct exec_later){ .call = call_ref(c) };
	snprintf(l->sandbox, sizeof l->sandbox, "%s", s->id);
	wsx_settle(s->workspace, exec_settled, l);
}

void exec_start(struct call *c)
{
	struct sbx *s = call_sandbox(c);

	if (s)
		exec_in(c, s);
}

/* ---- run ----------------------------------------------------------------------------- */

struct run_op {
	struct call *call;
	struct exec_ask ask;
	json_t *body; /* the texts of `ask` */
	bool is_inline, is_brief;
	bool is_tried;    /* the command was made while the sandbox was: */
	struct px *p;     /* this came of it, */
	struct fail fail; /* or this */
};

static void run_done(struct run_op *o)
{
	call_unref(o->call);
	json_decref(o->body);
	free(o);
}

static void run_try(struct run_op *o, struct sbx *s)
{
	bool is_later = call_enter(o->call);

	o->is_tried = true;
	o->p = px_make(s, &o->ask.px, &o->fail);
	if (is_later)
		call_leave(o->call);
}

/* The process, on record. */
static struct px *run_begun(struct run_op *o, struct sbx *s, const struct fail *fail)
{
	if (!fail && !o->is_tried)
		run_try(o, s);
	if (o->p && (fail || px_record(o->p, &o->fail) < 0)) {
		px_forget(o->p);
		o->p = NULL;
	}
	if (fail)
		o->fail = *fail;
	return o->p;
}

static void run_made(void *arg, struct sbx *s, const struct fail *fail)
{
	struct run_op *o = arg;
	struct px *p = run_begun(o, s, fail);
	struct fail f = o->fail;

	if (!p) {
		answer_fail(o->call, &f);
		if (!fail)
			(void)sbx_delete(s, NULL, NULL, &f);
	} else if (!o->call->r && !o->call->idem_key) { /* the client left while it was made */
		(void)sbx_delete(s, NULL, NULL, &f);
		px_unref(p);
	} else if (exec_input(p, json_object_get(o->body, "stdin"), &f) < 0) {
		answer_fail(o->call, &f);
		(void)sbx_delete(s, NULL, NULL, &f);
		px_unref(p);
	} else if (live_is_asked(o->call)) {
		live_start(o->call, p,
		           (struct live_opts){ .is_owner = true,
		                               .is_inline = o->is_inline,
		                               .is_brief = o->is_brief && !o->is_inline,
		                               .inline_max = o->ask.inline_max });
	} else {
		if (!o->call->r) /* who asks again under its key is told what became of it */
			(void)px_kill(p, &f);
		o->ask.px.kill_on_disconnect = true;
		wait_for(o->call, p, &o->ask);
	}
	run_done(o);
}

static int run_parse(struct call *c, struct run_op *o, struct spec *spec, struct str *text,
                     struct fail *f)
{
	json_t *wishes = json_object_get(c->body, "spec");
	json_t *empty = json_object();
	int r = members_known(c->body,
	                      (const char *const[]){ "spec", "cmd", "cwd", "env", "stdin", "user",
	                                             "timeout", "tty", "output", "rows", "cols",
	                                             "label", "inline", "brief", "files", "collect",
	                                             "allow_exec", NULL },
	                      f);

	if (r == 0)
		r = member_bool(c->body, "inline", &o->is_inline, f);
	if (r == 0)
		r = member_bool(c->body, "brief", &o->is_brief, f);
	if (r == 0)
		r = spec_of(c, wishes ? wishes : empty, spec, text, f);
	json_decref(empty);
	json_t *rest = json_copy(c->body);
	json_object_del(rest, "spec");
	json_object_del(rest, "inline");
	json_object_del(rest, "brief");
	json_object_del(rest, "files");
	json_object_del(rest, "collect");
	json_object_del(rest, "allow_exec");
	if (r == 0)
		r = exec_parse(c, rest, &o->ask, f);
	json_decref(rest); /* its values are the body's too */
	o->ask.px.env = &o->ask.env;
	o->ask.px.is_final = true;
	o->ask.px.window = live_is_asked(c) ? WINDOW : 0;
	return r;
}

void exec_run(struct call *c)
{
	struct run_op *o = mem_alloc(sizeof *o);
	AUTO(spec_done) struct spec spec;
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	struct fail f = { 0 };

	spec_init(&spec);
	*o = (struct run_op){ .call = call_ref(c), .body = json_incref(c->body) };
	struct sbx_ask ask = { .tenant = c->tenant,
		               .spec = &spec,
		               .is_one_shot = true,
		               .client_fd = c->r->door == DOOR_UNIX ? c->r->socket_fd : -1 };
	int r = run_parse(c, o, &spec, &text, &f);
	ask.spec_text = str_text(&text);
	if (r == 0 && collect_is_asked(c)) {
		collect_run(c, &ask, &o->ask);
		run_done(o);
		return;
	}
	struct sbx *s = r < 0 ? NULL : sbx_create(c->api->core, &ask, run_made, o, &f);
	if (!s) {
		answer_fail(c, &f);
		run_done(o);
	} else if (s->link.is_expected) {
		run_try(o, s);
	}
}
