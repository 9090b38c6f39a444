/*
 * verb_exec.c - exec, sh, attach: a command in a sandbox that lives on.
 */
#include "cli/verbs.h"

#include <unistd.h>

#include "base/limits.h"
#include "cli/daemon.h"
#include "cli/terminal.h"
#include "wire/escape.h"
#include "wire/utf8.h"

#define BODY_MAX (4u << 20)
#define STDIN_TEXT_MAX (64u << 10) /* of one request; live input has no ceiling */

struct exec {
	struct verb_opts common;
	bool has_stdin, is_tty, is_background;
	struct flag_list env;
	const char *cwd, *user, *label, *shell, *children, *at_end;
	struct flag_number timeout, wait;
};

/* ---- the body ------------------------------------------------------------------------ */

static void set_duration(json_t *o, const char *key, const struct flag_number *n)
{
	char text[32];

	if (!n->is_set)
		return;
	snprintf(text, sizeof text, "%llums", (unsigned long long)n->value);
	json_object_set_new(o, key, json_string(text));
}

static int set_text(json_t *o, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(o, key, json_string(text)) < 0)
		return err_new(e, ERR_INVALID, "%s: not UTF-8", key);
	return 0;
}

static int set_env(json_t *o, const struct flag_list *env, struct err *e)
{
	json_t *all = json_object();

	if (env->len > 0)
		json_object_set(o, "env", all);
	for (size_t i = 0; i < env->len; i++) {
		const char *equals = strchr(env->at[i], '=');
		char name[NAME_TEXT_MAX];

		int n = snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - env->at[i]) : 0,
		                 env->at[i]);
		if (!equals || n == 0 || n >= (int)sizeof name ||
		    json_object_set_new(all, name, json_string(equals + 1)) < 0) {
			json_decref(all);
			return err_new(e, ERR_INVALID, "-e: NAME=VALUE is expected, in UTF-8");
		}
	}
	json_decref(all);
	return 0;
}

/* Without a stream, standard input is a text in the request. */
static int set_stdin(json_t *o, struct err *e)
{
	AUTO(str_done) struct str text = { .max = STDIN_TEXT_MAX };
	char buf[4096];
	ssize_t n;

	while ((n = read(STDIN_FILENO, buf, sizeof buf)) > 0 && !text.overflow)
		str_addn(&text, buf, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read standard input");
	if (text.overflow || memchr(str_text(&text), '\0', text.len) ||
	    !utf8_is(str_text(&text), text.len))
		return err_new(e, ERR_INVALID,
		               "with --json, --wait and --background standard input is UTF-8 of at "
		               "most %u KiB",
		               STDIN_TEXT_MAX >> 10);
	json_object_set_new(o, "stdin", json_string(str_text(&text)));
	return 0;
}

static void set_size(json_t *o)
{
	uint16_t rows, cols;

	if (!terminal_size(&rows, &cols) || rows == 0 || cols == 0)
		return;
	json_object_set_new(o, "rows", json_integer(rows));
	json_object_set_new(o, "cols", json_integer(cols));
}

static int exec_body(const struct exec *x, char *const *argv, json_t *o, struct err *e)
{
	/* A shell's command is a script; several words are one command, each as it is. */
	if (x->shell && !argv[1] && set_text(o, "cmd", argv[0], e) < 0)
		return -1;
	if (!x->shell || argv[1])
		json_object_set_new(o, "cmd", remote_argv(argv));
	if (set_text(o, "cwd", x->cwd, e) < 0 || set_text(o, "user", x->user, e) < 0 ||
	    set_text(o, "label", x->label, e) < 0 || set_text(o, "shell", x->shell, e) < 0 ||
	    set_text(o, "background", x->children, e) < 0 ||
	    set_text(o, "at_end", x->at_end, e) < 0 || set_env(o, &x->env, e) < 0)
		return -1;
	set_duration(o, "timeout", &x->timeout);
	if (x->is_tty) {
		json_object_set_new(o, "tty", json_true());
		set_size(o);
	}
	return 0;
}

/* ---- with a stream ------------------------------------------------------------------- */

static int run_live(struct verb_call *c, const struct exec *x, json_t *body, struct err *e)
{
	const char *texts[] = { place_of(&c->client, c->words.at[0], e), c->words.at[0] };
	AUTO(str_done) struct str path = { .max = BODY_MAX };
	AUTO(freep) char *text = NULL;

	if (!texts[0])
		return -1;
	json_object_set_new(body, "stdin", json_boolean(x->has_stdin));
	text = json_dumps(body, JSON_COMPACT);
	client_path(&path, "/v1/{}/{}/exec", texts);
	struct client_ask ask = { .method = "POST",
		                  .path = str_text(&path),
		                  .body = span_of(text) };
	AUTO(pump_done) struct pump p = { .is_tty = x->is_tty, .has_stdin = x->has_stdin };

	if (daemon_pump(&c->client, &ask, &p, e) < 0)
		return -1;
	return pump_report(&p);
}

/* ---- with one answer ----------------------------------------------------------------- */

static bool is_over(const json_t *process)
{
	const char *state = text_of(process, "state");

	return strcmp(state, "running") != 0 && strcmp(state, "queued") != 0 &&
	       strcmp(state, "awaiting_approval") != 0;
}

static int print_streams(const json_t *process, struct err *e)
{
	const json_t *out = json_object_get(process, "stdout");
	const json_t *err = json_object_get(process, "stderr");

	if (strcmp(text_of(process, "encoding"), "base64") == 0)
		return err_new(e, ERR_INVALID, "the output is not UTF-8; `caisson logs %s` has it",
		               text_of(process, "id"));
	if (write_all(STDOUT_FILENO, text_of(process, "stdout"), json_string_length(out), e) < 0)
		return -1;
	return write_all(STDERR_FILENO, text_of(process, "stderr"), json_string_length(err), e);
}

static int report_answer(const struct exec *x, json_t *process, struct err *e)
{
	if (x->common.is_json)
		return print_json(json_incref(process), e);
	if (x->is_background) {
		AUTO(str_done) struct str id = { .max = 256 };

		str_addf(&id, "%s\n", text_of(process, "id"));
		return print_text(&id, e);
	}
	if (print_streams(process, e) < 0)
		return -1;
	if (is_over(process))
		pump_explain(process);
	else
		fprintf(stderr, "caisson: %s is still running\n", text_of(process, "id"));
	return 0;
}

static int run_once(struct verb_call *c, struct exec *x, json_t *body, struct err *e)
{
	const char *texts[] = { place_of(&c->client, c->words.at[0], e), c->words.at[0] };
	AUTO(str_done) struct str path = { .max = BODY_MAX };
	AUTO(json_decrefp) json_t *process = NULL;

	if (!texts[0])
		return -1;
	client_path(&path, "/v1/{}/{}/exec", texts);
	if (x->is_background)
		x->wait = (struct flag_number){ true, 0 };
	set_duration(body, "wait", &x->wait);
	if (x->has_stdin && set_stdin(body, e) < 0)
		return -1;
	c->client.doing = "running";
	if (client_call(&c->client, "POST", str_text(&path), json_incref(body), &process, e) < 0 ||
	    report_answer(x, process, e) < 0)
		return -1;
	return is_over(process) ? remote_exit_status(process) : 0;
}

static int exec_run(struct verb_call *c, struct err *e)
{
	struct exec *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object();

	if (x->wait.is_set && x->is_background)
		return err_new(e, ERR_INVALID, "--wait and --background: which one?");
	if (exec_body(x, c->words.at + 1, body, e) < 0)
		return -1;
	if (x->common.is_json || x->wait.is_set || x->is_background)
		return run_once(c, x, body, e);
	x->has_stdin |= x->is_tty && isatty(STDIN_FILENO);
	return run_live(c, x, body, e);
}

/* clang-format off */
static const struct flag exec_flags[] = {
	{ 'i',  FLAG_SWITCH,   NULL,         offsetof(struct exec, has_stdin), NULL, "pass standard input on (else it is /dev/null)", NULL },
	{ 't',  FLAG_SWITCH,   NULL,         offsetof(struct exec, is_tty), NULL, "a terminal of its own for the command", NULL },
	{ 'e',  FLAG_LIST,     "env",        offsetof(struct exec, env), "NAME=VALUE", "a variable on top of the sandbox's", NULL },
	{ 'w',  FLAG_TEXT,     "cwd",        offsetof(struct exec, cwd), "DIR", "working directory inside", NULL },
	{ 'u',  FLAG_TEXT,     "user",       offsetof(struct exec, user), "USER", "who it runs as inside", NULL },
	{ '\0', FLAG_DURATION, "timeout",    offsetof(struct exec, timeout), "DURATION", "end it and all it started after this long", NULL },
	{ '\0', FLAG_DURATION, "wait",       offsetof(struct exec, wait), "DURATION", "wait so long, then leave it running", NULL },
	{ '\0', FLAG_SWITCH,   "background", offsetof(struct exec, is_background), NULL, "leave it running at once; prints its id", NULL },
	{ '\0', FLAG_TEXT,     "shell",      offsetof(struct exec, shell), "NAME", "run it in the shell of this name, which lives on", NULL },
	{ '\0', FLAG_TEXT,     "children",   offsetof(struct exec, children), "keep|kill", "what becomes of processes that it leaves running", "keep kill" },
	{ '\0', FLAG_TEXT,     "at-end",     offsetof(struct exec, at_end), "keep|stop|delete", "what becomes of the sandbox when it has ended", "keep stop delete" },
	{ '\0', FLAG_TEXT,     "label",      offsetof(struct exec, label), "TEXT", "a name for the record", NULL },
	FLAG_JSON,
};
/* clang-format on */

static const char exec_more[] =
    "Output comes as it is written, and signals are passed on. SIGTERM and SIGHUP end the command "
    "and all it started; when this program is killed, the command lives on (`caisson attach`).\n"
    "A named shell keeps folder, variables and functions from one command to the next; one word is "
    "a "
    "script for it, several are a command. What ends the shell ends the command; the next one "
    "starts another with the same folder and exported variables, and says so.\n"
    "Exit status: the command's own; 124 timeout or wall; 125 lost, our failure or bad usage; 126 "
    "denied or not executable; 127 not found; 128+n by signal (oom 137).";

const struct verb cmd_exec = { .name = "exec",
	                       .usage = "SANDBOX|WORKSPACE [options] -- CMD [ARG]...",
	                       .does = "run a command in a sandbox, or in a workspace's own",
	                       .more = exec_more,
	                       .flags = exec_flags,
	                       .n_flags = COUNT(exec_flags),
	                       .words = "place",
	                       .opts_size = sizeof(struct exec),
	                       .words_min = 2,
	                       .words_max = SIZE_MAX,
	                       .words_before = 1,
	                       .refused = EXIT_OURS,
	                       .run = exec_run };

/* ---- sh ------------------------------------------------------------------------------ */

static int sh_run(struct verb_call *c, struct err *e)
{
	static char shell[] = "/bin/sh", flag[] = "-c",
		    script[] = "if [ -x /bin/bash ]; then exec /bin/bash; fi; exec /bin/sh";
	char *const argv[] = { shell, flag, script, NULL };
	struct exec *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object();

	x->has_stdin = true;
	x->is_tty = isatty(STDIN_FILENO);
	return exec_body(x, argv, body, e) < 0 ? -1 : run_live(c, x, body, e);
}

/* clang-format off */
static const struct flag sh_flags[] = {
	{ 'e', FLAG_LIST, "env",  offsetof(struct exec, env), "NAME=VALUE", "a variable on top of the sandbox's", NULL },
	{ 'w', FLAG_TEXT, "cwd",  offsetof(struct exec, cwd), "DIR", "working directory inside", NULL },
	{ 'u', FLAG_TEXT, "user", offsetof(struct exec, user), "USER", "who it runs as inside", NULL },
};
/* clang-format on */

const struct verb cmd_sh = { .name = "sh",
	                     .usage = "SANDBOX|WORKSPACE [options]",
	                     .does = "a shell in a sandbox, or in a workspace's own",
	                     .more = "bash where there is one, else sh; with a terminal of its "
	                             "own when standard input is one.",
	                     .flags = sh_flags,
	                     .n_flags = COUNT(sh_flags),
	                     .words = "place",
	                     .opts_size = sizeof(struct exec),
	                     .words_min = 1,
	                     .words_max = 1,
	                     .refused = EXIT_OURS,
	                     .run = sh_run };

/* ---- attach -------------------------------------------------------------------------- */

struct attach {
	struct verb_opts common;
	struct flag_number after;
	bool has_no_stdin;
};

static int attach_run(struct verb_call *c, struct err *e)
{
	const struct attach *x = c->opts;
	char after[32];
	const char *texts[] = { c->words.at[0], after };
	AUTO(str_done) struct str path = { .max = BODY_MAX };

	snprintf(after, sizeof after, "%llu", (unsigned long long)x->after.value);
	client_path(&path, "/v1/processes/{}/attach?after={}", texts);
	struct client_ask ask = { .method = "GET", .path = str_text(&path) };
	AUTO(pump_done) struct pump p = { .has_stdin = !x->has_no_stdin, .is_guest = true };

	if (daemon_pump(&c->client, &ask, &p, e) < 0)
		return -1;
	if (!p.is_left || p.is_pipe_closed)
		return pump_report(&p);
	fprintf(stderr, "caisson: left %s running\n", c->words.at[0]);
	return 0;
}

/* clang-format off */
static const struct flag attach_flags[] = {
	{ '\0', FLAG_NUMBER, "after",    offsetof(struct attach, after), "SEQ", "show what was written after this position (0: all of it)", NULL },
	{ '\0', FLAG_SWITCH, "no-stdin", offsetof(struct attach, has_no_stdin), NULL, "only look: nothing typed here reaches it", NULL },
};
/* clang-format on */

const struct verb cmd_attach = {
	.name = "attach",
	.usage = "PROCESS [options]",
	.does = "the terminal of a running process",
	.more =
	    "Ctrl-], SIGTERM and SIGHUP leave, and the process goes on. Exit status as of exec.",
	.flags = attach_flags,
	.n_flags = COUNT(attach_flags),
	.words = "process",
	.opts_size = sizeof(struct attach),
	.words_min = 1,
	.words_max = 1,
	.refused = EXIT_OURS,
	.run = attach_run
};
