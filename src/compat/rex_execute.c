/*
 * rex_execute.c - a command of its own, as subprocess.run() of Python has it.
 */
#include "compat/compat-internal.h"

#define LOG_MAX (64u << 20)
#define WORDS_MAX (64u << 20)

struct asked {
	struct px_ask px;
	const char **argv;
	size_t argc;
	bool is_shell, is_merged;
};

static int add_word(struct asked *a, const json_t *v, struct fail *f)
{
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
		return fail_set(f, FAIL_INVALID, "command: a text or a list of texts is expected");
	a->argv[a->argc++] = json_string_value(v);
	return 0;
}

/* An environment that is given is the whole one. */
static int add_env(struct call *c, json_t *env, struct asked *a, struct fail *f)
{
	const char *k;
	json_t *v;

	if (!env || json_is_null(env))
		return 0;
	if (!json_is_object(env))
		return fail_set(f, FAIL_INVALID, "env: an object of texts is expected");
	a->argv[a->argc++] = "/usr/bin/env";
	a->argv[a->argc++] = "-i";
	json_object_foreach(env, k, v)
	{
		AUTO(str_done) struct str pair = { .max = ARGV_BYTES_MAX };

		if (!*k || strchr(k, '=') || !json_is_string(v))
			return fail_set(f, FAIL_INVALID, "env: \"%.64s\": a name and a text", k);
		str_addf(&pair, "%s=%s", k, json_string_value(v));
		a->argv[a->argc++] = arena_strdup(&c->arena, str_text(&pair));
	}
	return 0;
}

static int take_argv(struct call *c, struct asked *a, struct fail *f)
{
	json_t *env = json_object_get(c->body, "env");
	const json_t *command = json_object_get(c->body, "command"), *v;
	size_t i;

	a->argv = arena_alloc(&c->arena, (json_array_size(command) + json_object_size(env) + 8) *
	                                     sizeof *a->argv);
	if (add_env(c, env, a, f) < 0)
		return -1;
	if (a->is_shell) {
		a->argv[a->argc++] = "/bin/sh";
		a->argv[a->argc++] = "-c";
	}
	if (!json_is_array(command) && add_word(a, command, f) < 0)
		return -1;
	json_array_foreach(command, i, v) if (add_word(a, v, f) < 0) return -1;
	if (a->argc == 0)
		return fail_set(f, FAIL_INVALID, "command: it is empty");
	a->argv[a->argc] = NULL;
	a->px.argv = a->argv;
	return 0;
}

static int take_body(struct call *c, const struct sbx *s, struct asked *a, struct fail *f)
{
	const char *cwd = NULL;

	a->px = (struct px_ask){ .actor = c->actor, .log_max = LOG_MAX };
	if (member_bool(c->body, "shell", &a->is_shell, f) < 0 || take_argv(c, a, f) < 0 ||
	    member_bool(c->body, "merge_output_streams", &a->px.is_merged, f) < 0 ||
	    member_text(c->body, "cwd", &cwd, f) < 0 ||
	    member_seconds(c->body, "timeout", &a->px.timeout_ms, f) < 0)
		return -1;
	a->px.cwd = cwd ? compat_path(c, s, cwd) : NULL;
	return 0;
}

static void add_command(struct str *words, const json_t *command)
{
	const json_t *v;
	size_t i;

	if (json_is_string(command)) {
		py_repr(words, span_of(json_string_value(command)));
		return;
	}
	str_add(words, "[");
	json_array_foreach(command, i, v)
	{
		str_add(words, i > 0 ? ", " : "");
		py_repr(words, span_of(json_string_value(v)));
	}
	str_add(words, "]");
}

static void raise_exit_code(struct call *c, const struct whole_end *end)
{
	const char *more = json_string_value(json_object_get(c->body, "error_msg"));
	AUTO(str_done) struct str words = { .max = WORDS_MAX };

	if (more && *more)
		str_addf(&words, "%s: ", more);
	str_add(&words, "Command ");
	add_command(&words, json_object_get(c->body, "command"));
	str_addf(&words, " failed with exit code %d. Stdout:\n", end->exit_code);
	py_repr(&words, end->out);
	str_add(&words, "\nStderr:\n");
	py_repr(&words, end->err);
	rex_raise(c, REX("NonZeroExitCodeError"), str_text(&words), NULL);
}

static void raise_timeout(struct call *c)
{
	AUTO(str_done) struct str words = { .max = 256 };

	str_addf(&words, "Timeout (%gs) exceeded while running command",
	         json_number_value(json_object_get(c->body, "timeout")));
	rex_raise(c, REX("CommandTimeoutError"), str_text(&words), NULL);
}

static void ran(struct call *c, const struct whole_end *end)
{
	struct fail f = { 0 };

	if (!end) {
		fail_set(&f, FAIL_BACKEND_ERROR, "the process could not be recorded and was ended");
		answer_fail(c, &f);
	} else if (end->is_never_run) {
		rex_raise(c, "builtins.FileNotFoundError", end->why, NULL);
	} else if (end->is_timeout) {
		raise_timeout(c);
	} else if (json_is_true(json_object_get(c->body, "check")) && end->exit_code != 0) {
		raise_exit_code(c, end);
	} else {
		answer_json(c, 200,
		            json_pack("{so,so,si}", "stdout", py_json(end->out), "stderr",
		                      py_json(end->err), "exit_code", end->exit_code));
	}
}

static void execute(struct call *c, struct sbx *s)
{
	struct asked a = { 0 };
	struct fail f = { 0 };

	if (take_body(c, s, &a, &f) < 0)
		answer_fail(c, &f);
	else
		whole_run(c, s, &a.px, (struct span){ "", 0 }, ran);
}

void rex_execute(struct call *c)
{
	compat_enter(c, execute);
}
