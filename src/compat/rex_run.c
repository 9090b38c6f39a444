/*
 * rex_run.c - commands in a session.
 *
 *   bash             checked by `bash -n`, then typed as one line; ends with the prompt
 *   interactive      typed as it is; ends with what was expected, or the prompt
 *   bash_interrupt   Ctrl-C, some times; then Ctrl-Z and kill -9
 */
#include "compat/compat-internal.h"

#define REST_MS 1000   /* for the exit code, behind what was expected */
#define CHECK_MS 10000 /* bash looks at a command; which bash, is for the sandbox to say */
#define SYNC_MS 5000   /* a shell that has its prompt says a word */
#define PAUSE_MS 200   /* between two Ctrl-C */
#define TRIES_MAX 100
#define WORDS_MAX (64u << 20)

enum check { CHECK_RAISE, CHECK_SILENT, CHECK_IGNORE };

struct run {
	struct seat_turn turn; /* first */
	struct call *call;
	struct seat *seat;
	const char *session, *command, *error_msg;
	struct expects *expects;
	const json_t *expect; /* in the body */
	struct str out;
	enum check check;
	bool is_interactive, is_quit, is_interrupt, has_limit;
	uint64_t ms;
	int64_t tries; /* Ctrl-C that are left */
	int exit_code;
	const char *matched;
};

static void run_free(struct run *x)
{
	expects_free(x->expects);
	str_done(&x->out);
	call_unref(x->call);
	free(x);
}

/* ---- the end ------------------------------------------------------------------------- */

static void finish(struct run *x)
{
	seat_leave(x->seat);
	run_free(x);
}

static void raise(struct run *x, const char *class_path, const char *words)
{
	rex_raise(x->call, class_path, words, NULL);
	finish(x);
}

static json_t *observation(struct run *x, struct span output)
{
	json_t *o =
	    json_pack("{so,ss,so,ss}", "output", py_json(output), "failure_reason", "",
	              "expect_string", py_json(span_of(x->matched)), "session_type", "bash");

	json_object_set_new(o, "exit_code",
	                    x->exit_code < 0 ? json_null() : json_integer(x->exit_code));
	return o;
}

static void answer(struct run *x, struct span output)
{
	answer_json(x->call, 200, observation(x, output));
	finish(x);
}

static struct span out_of(struct run *x)
{
	py_plain(&x->out);
	return (struct span){ str_text(&x->out), x->out.len };
}

static void raise_exit_code(struct run *x)
{
	AUTO(str_done) struct str words = { .max = WORDS_MAX };
	struct span out = out_of(x);

	if (x->error_msg && *x->error_msg)
		str_addf(&words, "%s: ", x->error_msg);
	str_add(&words, "Command ");
	py_repr(&words, span_of(x->command));
	str_addf(&words, " failed with exit code %d. Here is the output:\n", x->exit_code);
	py_repr(&words, out);
	raise(x, REX("NonZeroExitCodeError"), str_text(&words));
}

static void raise_timeout(struct run *x)
{
	AUTO(str_done) struct str words = { .max = WORDS_MAX };

	str_addf(&words, "timeout after %g seconds while running command ", (double)x->ms / 1000);
	py_repr(&words, span_of(x->command));
	if (expects_are_spent(x->expects))
		str_add(&words, "; what was expected takes too long to look for");
	raise(x, REX("CommandTimeoutError"), str_text(&words));
}

/* The shell has ended, and its turns with it. */
static void lost(struct seat_turn *t)
{
	struct run *x = (struct run *)t;

	rex_raise(x->call, "pexpect.exceptions.EOF", "the shell of the session has ended", NULL);
	run_free(x);
}

static void take_match(struct run *x, const struct seat_match *m)
{
	str_addn(&x->out, m->before.at, m->before.len);
	x->matched = m->found == SEAT_EXPECT
	                 ? json_string_value(json_array_get(x->expect, m->index))
	                 : SEAT_PS1;
}

/* ---- a command ----------------------------------------------------------------------- */

static void end_normal(struct run *x)
{
	if (x->check == CHECK_RAISE && x->exit_code != 0)
		raise_exit_code(x);
	else
		answer(x, out_of(x));
}

/* Something that was expected came first; the exit code follows soon, or not. */
static void on_rest(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	if (m->found == SEAT_ENDED) {
		lost(&x->turn);
		return;
	}
	if (m->found == SEAT_PROMPT) {
		str_addn(&x->out, m->before.at, m->before.len);
		x->exit_code = m->exit_code;
		end_normal(x);
	} else if (x->check == CHECK_RAISE) {
		raise(x, REX("NoExitCodeError"), "timeout while getting exit code");
	} else {
		answer(x, out_of(x));
	}
}

/* What was waited for has come; else it was answered. */
static bool has_come(struct run *x, const struct seat_match *m)
{
	switch (m->found) {
	case SEAT_ENDED:
		lost(&x->turn);
		return false;
	case SEAT_TIMEOUT:
		raise_timeout(x);
		return false;
	case SEAT_TOKEN:
	case SEAT_EXPECT:
	case SEAT_PROMPT:
		break;
	}
	take_match(x, m);
	return true;
}

static void on_normal(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	if (!has_come(x, m))
		return;
	if (m->found == SEAT_PROMPT)
		x->exit_code = m->exit_code;
	if (x->check == CHECK_IGNORE) {
		x->exit_code = -1;
		answer(x, out_of(x));
	} else if (m->found == SEAT_EXPECT) {
		seat_await(x->seat, (struct seat_wish){ .has_limit = true, .ms = REST_MS }, on_rest,
		           x);
	} else {
		end_normal(x);
	}
}

static void begin_normal(struct seat_turn *t, struct seat *seat)
{
	struct run *x = (struct run *)t;
	AUTO(str_done) struct str line = { .max = (size_t)5 * BODY_JSON_MAX };

	x->seat = seat;
	py_eval(&line, x->command);
	seat_say(seat, str_text(&line), line.len);
	seat_await(
	    seat,
	    (struct seat_wish){ .expects = x->expects, .has_limit = x->has_limit, .ms = x->ms },
	    on_normal, x);
}

/* ---- to a program that goes on ------------------------------------------------------- */

/* Prompts that are on their way come before the word; then there is one more. */
static void on_synced_prompt(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	if (m->found == SEAT_ENDED)
		lost(&x->turn);
	else
		answer(x, x->is_interrupt ? py_strip(out_of(x)) : out_of(x));
}

static void on_token(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	if (m->found == SEAT_ENDED)
		lost(&x->turn);
	else if (m->found == SEAT_TIMEOUT)
		raise(x, "pexpect.exceptions.TIMEOUT", "the shell does not answer");
	else
		seat_await(x->seat, (struct seat_wish){ .has_limit = true, .ms = SYNC_MS },
		           on_synced_prompt, x);
}

static void synchronise(struct run *x)
{
	seat_sync(x->seat);
	seat_await(x->seat,
	           (struct seat_wish){ .token = SEAT_TOKEN_SYNC, .has_limit = true, .ms = SYNC_MS },
	           on_token, x);
}

/* Where the terminal echoes, what was typed comes first. */
static void end_interactive(struct run *x)
{
	struct span out = py_strip(out_of(x)), typed = span_of(x->command);

	if (out.len >= typed.len && memcmp(out.at, typed.at, typed.len) == 0)
		out = py_strip(span_after(out, typed.len));
	answer(x, out);
}

static void on_interactive(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	if (!has_come(x, m))
		return;
	x->exit_code = 0;
	if (x->is_quit)
		synchronise(x);
	else
		end_interactive(x);
}

static void begin_interactive(struct seat_turn *t, struct seat *seat)
{
	struct run *x = (struct run *)t;

	x->seat = seat;
	seat_say(seat, x->command, strlen(x->command));
	seat_say(seat, "\n", 1);
	seat_await(
	    seat,
	    (struct seat_wish){ .expects = x->expects, .has_limit = x->has_limit, .ms = x->ms },
	    on_interactive, x);
}

/* ---- an interrupt -------------------------------------------------------------------- */

static void on_interrupt(void *arg, const struct seat_match *m);

static struct seat_wish wish_of(const struct run *x)
{
	return (struct seat_wish){ .expects = x->expects, .has_limit = true, .ms = x->ms };
}

static void cannot(struct run *x)
{
	raise(x, "pexpect.exceptions.TIMEOUT", "Failed to interrupt session");
}

/* Bash tells of the end of the job at this prompt or at the next one; so that whoever asks next
 * hears of it in any case, it is left there. */
static void on_killed(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	if (m->found == SEAT_ENDED) {
		lost(&x->turn);
	} else if (m->found == SEAT_TIMEOUT) {
		cannot(x);
	} else {
		take_match(x, m);
		seat_unread(x->seat, m->before);
		answer(x, py_strip(out_of(x)));
	}
}

static void on_stopped(void *arg, const struct seat_match *m)
{
	/* Until bash has seen the end of it, a second at most. */
	static const char line[] = "kill -9 %1; for _ in {1..50}; do kill -0 %1 2>/dev/null || "
				   "break; sleep 0.02; done\n";
	struct run *x = arg;

	if (m->found == SEAT_ENDED) {
		lost(&x->turn);
	} else if (m->found == SEAT_TIMEOUT) {
		cannot(x);
	} else {
		take_match(x, m);
		seat_say(x->seat, line, strlen(line));
		seat_await(x->seat, (struct seat_wish){ .has_limit = true, .ms = SYNC_MS },
		           on_killed, x);
	}
}

static void try_again(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	if (m && m->found == SEAT_ENDED) {
		lost(&x->turn);
	} else if (x->tries-- > 0) {
		seat_say(x->seat, "\003", 1);
		seat_await(x->seat, wish_of(x), on_interrupt, x);
	} else {
		seat_say(x->seat, "\032", 1);
		seat_await(x->seat, wish_of(x), on_stopped, x);
	}
}

static void on_interrupt(void *arg, const struct seat_match *m)
{
	struct run *x = arg;

	switch (m->found) {
	case SEAT_ENDED:
		lost(&x->turn);
		break;
	case SEAT_TIMEOUT:
		seat_await(
		    x->seat,
		    (struct seat_wish){ .is_pause = true, .has_limit = true, .ms = PAUSE_MS },
		    try_again, x);
		break;
	case SEAT_PROMPT:
		take_match(x, m);
		synchronise(x);
		break;
	case SEAT_TOKEN:
	case SEAT_EXPECT:
		take_match(x, m);
		answer(x, py_strip(out_of(x)));
		break;
	}
}

static void begin_interrupt(struct seat_turn *t, struct seat *seat)
{
	struct run *x = (struct run *)t;

	x->seat = seat;
	try_again(x, NULL);
}

/* ---- the request --------------------------------------------------------------------- */

static int take_check(struct run *x, struct fail *f)
{
	static const char *const words[] = {
		[CHECK_RAISE] = "raise", [CHECK_SILENT] = "silent", [CHECK_IGNORE] = "ignore"
	};
	const char *word = words[CHECK_RAISE];

	if (member_text(x->call->body, "check", &word, f) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(word, words[i]) == 0) {
			x->check = (enum check)i;
			return 0;
		}
	return fail_set(f, FAIL_INVALID, "check: \"raise\", \"silent\" or \"ignore\"");
}

static int take_bash(struct run *x, struct fail *f)
{
	const json_t *body = x->call->body, *limit = json_object_get(body, "timeout");

	if (member_text(body, "command", &x->command, f) < 0 ||
	    member_text(body, "error_msg", &x->error_msg, f) < 0 ||
	    member_bool(body, "is_interactive_command", &x->is_interactive, f) < 0 ||
	    member_bool(body, "is_interactive_quit", &x->is_quit, f) < 0 ||
	    member_seconds(body, "timeout", &x->ms, f) < 0 || take_check(x, f) < 0)
		return -1;
	if (!x->command)
		return fail_set(f, FAIL_INVALID, "command is needed");
	if (x->is_interactive && x->is_quit)
		return fail_set(f, FAIL_INVALID,
		                "is_interactive_command and is_interactive_quit are two things");
	x->has_limit = json_is_number(limit);
	x->turn.begin = x->is_interactive || x->is_quit ? begin_interactive : begin_normal;
	return 0;
}

static int take_interrupt(struct run *x, struct fail *f)
{
	const json_t *n = json_object_get(x->call->body, "n_retry");

	x->is_interrupt = true;
	x->ms = 200;
	x->tries = n ? json_integer_value(n) : 3;
	x->turn.begin = begin_interrupt;
	if (x->tries < 0 || x->tries > TRIES_MAX)
		return fail_set(f, FAIL_INVALID, "n_retry: 0 to %d", TRIES_MAX);
	return member_seconds(x->call->body, "timeout", &x->ms, f);
}

static int take_body(struct run *x, struct fail *f)
{
	const json_t *body = x->call->body;
	const char *type = "bash";

	x->session = "default";
	x->expect = json_object_get(body, "expect");
	if (member_text(body, "action_type", &type, f) < 0 ||
	    member_text(body, "session", &x->session, f) < 0)
		return -1;
	x->expects = expects_new(x->expect, f);
	if (!x->expects)
		return -1;
	if (strcmp(type, "bash") == 0)
		return take_bash(x, f);
	if (strcmp(type, "bash_interrupt") == 0)
		return take_interrupt(x, f);
	return fail_set(f, FAIL_INVALID, "action_type: \"bash\" or \"bash_interrupt\"");
}

static struct px *session_of(struct run *x, struct sbx *s)
{
	struct px *p = seat_process(s, x->session);
	AUTO(str_done) struct str words = { .max = BODY_JSON_MAX };

	if (p)
		return p;
	str_add(&words, "session ");
	py_repr(&words, span_of(x->session));
	str_add(&words, " does not exist");
	rex_raise(x->call, REX("SessionDoesNotExistError"), str_text(&words), NULL);
	run_free(x);
	return NULL;
}

static void raise_syntax(struct call *c, const char *command, const struct whole_end *end)
{
	AUTO(str_done) struct str words = { .max = WORDS_MAX };

	str_addf(&words, "Error (exit code %d) while checking bash command \n", end->exit_code);
	py_repr(&words, span_of(command));
	str_add(&words, "\n---- Stderr ----\n");
	str_addn(&words, end->err.at, end->err.len);
	str_add(&words, "\n---- Stdout ----\n");
	str_addn(&words, end->out.at, end->out.len);
	rex_raise(c, REX("BashIncorrectSyntaxError"), str_text(&words),
	          json_pack("{so,so}", "bash_stdout", py_json(end->out), "bash_stderr",
	                    py_json(end->err)));
}

static void take_turn(struct run *x, struct px *p)
{
	struct fail f = { 0 };

	if (seat_take(p, &x->turn))
		return;
	fail_set(&f, FAIL_BUSY, "too many requests for this session wait already");
	answer_fail(x->call, &f);
	run_free(x);
}

/* The session may have ended, and the sandbox too, while bash looked at it. */
static void checked(struct call *c, const struct whole_end *end)
{
	struct run *x = c->state;
	struct fail f = { 0 };
	struct sbx *s = compat_find(c, &f);

	c->state = NULL;
	if (!end)
		fail_set(&f, FAIL_BACKEND_ERROR, "the check could not be recorded");
	if (!end || !s) {
		answer_fail(c, &f);
		run_free(x);
	} else if (end->is_timeout) {
		rex_raise(c, REX("CommandTimeoutError"), "bash took too long to check the command",
		          NULL);
		run_free(x);
	} else if (end->exit_code != 0) {
		raise_syntax(c, x->command, end);
		run_free(x);
	} else {
		struct px *p = session_of(x, s);

		if (p)
			take_turn(x, p);
	}
}

static void run(struct call *c, struct sbx *s)
{
	static const char *const argv[] = { "/usr/bin/env", "bash", "-n", NULL };
	struct run *x = mem_alloc(sizeof *x);
	struct fail f = { 0 };

	*x = (struct run){ .turn = { .lost = lost, .call = c },
		           .call = call_ref(c),
		           .out = { .max = WORDS_MAX },
		           .exit_code = -1 };
	if (take_body(x, &f) < 0) {
		answer_fail(c, &f);
		run_free(x);
		return;
	}
	struct px *p = session_of(x, s);
	if (!p)
		return;
	if (x->turn.begin != begin_normal) {
		x->exit_code = 0;
		if (x->is_interrupt)
			seat_disturb(p);
		take_turn(x, p);
		return;
	}
	px_unref(p);
	c->state = x;
	whole_run(c, s,
	          &(struct px_ask){ .argv = argv,
	                            .actor = c->actor,
	                            .has_stdin = true,
	                            .timeout_ms = CHECK_MS,
	                            .log_max = 1u << 20 },
	          span_of(x->command), checked);
	if (c->is_answered && c->state == x) { /* it could not be started */
		c->state = NULL;
		run_free(x);
	}
}

void rex_run_in_session(struct call *c)
{
	compat_enter(c, run);
}
