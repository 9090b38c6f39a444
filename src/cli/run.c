#include "cli/run.h"

#include <unistd.h>

#include "base/limits.h"
#include "cli/policy.h"
#include "cli/pump.h"
#include "cli/registry.h"
#include "cli/remote.h"
#include "cli/result.h"
#include "cli/run_collect.h"
#include "cli/terminal.h"
#include "spec/opts.h"

enum { EXIT_DENIED = 126, EXIT_NOT_FOUND = 127, EXIT_OURS = 125 };

struct run {
	struct spec spec;
	struct str asked; /* the spec as it was said */
	const char *cwd;
	bool is_tty, has_stdin, is_json;
	uint64_t timeout_ms;
	struct run_collect collect;
	char **command;
};

/* -i, -t and both in one word. Returns false when it is another word. */
static bool take_letters(struct run *r, const char *word)
{
	if (word[0] != '-' || word[1] == '\0' || strspn(word + 1, "it") != strlen(word + 1))
		return false;
	r->has_stdin |= strchr(word, 'i') != NULL;
	r->is_tty |= strchr(word, 't') != NULL;
	return true;
}

static int take_value(int argc, char **argv, int *i, const char **value, struct err *e)
{
	if (*i + 1 >= argc)
		return err_new(e, ERR_INVALID, "%s needs a value", argv[*i]);
	*value = argv[++*i];
	return 0;
}

/* NAME VALUE and NAME=VALUE: 1 with the value; 0: it is another word. */
static int take_named(const char *name, int argc, char **argv, int *i, const char **value,
                      struct err *e)
{
	size_t n = strlen(name);

	if (strncmp(argv[*i], name, n) != 0 || (argv[*i][n] && argv[*i][n] != '='))
		return 0;
	if (argv[*i][n] != '=')
		return take_value(argc, argv, i, value, e) < 0 ? -1 : 1;
	*value = argv[*i] + n + 1;
	return 1;
}

static int take_collect(struct run *r, int argc, char **argv, int *i, struct err *e)
{
	const char *value = NULL;
	int taken = take_named("--collect", argc, argv, i, &value, e);

	if (taken > 0)
		vec_push(&r->collect.patterns, value);
	if (taken == 0 && (taken = take_named("--allow-exec", argc, argv, i, &value, e)) > 0)
		vec_push(&r->collect.allow, value);
	if (taken == 0)
		taken = take_named("--into", argc, argv, i, &r->collect.into, e);
	return taken;
}

static int take_own(struct run *r, int argc, char **argv, int *i, struct err *e)
{
	const char *word = argv[*i];
	const char *value = NULL;

	if (strcmp(word, "--json") == 0) {
		r->is_json = true;
		return 1;
	}
	int collected = take_collect(r, argc, argv, i, e);
	if (collected != 0)
		return collected;
	if (take_letters(r, word))
		return 1;
	if (strcmp(word, "-w") == 0 || strcmp(word, "--cwd") == 0)
		return take_value(argc, argv, i, &r->cwd, e) < 0 ? -1 : 1;
	int timed = take_named("--timeout", argc, argv, i, &value, e);
	if (timed <= 0)
		return timed;
	if (duration_parse(value, &r->timeout_ms, e) < 0)
		return err_wrap(e, "--timeout");
	if (r->timeout_ms == 0)
		return err_new(e, ERR_INVALID, "--timeout: \"%s\" is too small", value);
	return 1;
}

static int unknown(const char *word, struct err *e)
{
	const char *name = word + strspn(word, "-");
	const char *words[] = {
		"cwd", "timeout", "collect", "allow-exec", "into", "json", spec_nearest_flag(name),
		NULL
	};
	const char *near = nearest(name, words);

	if (near)
		return err_new(e, ERR_INVALID, "unknown option %s; did you mean --%s?", word, near);
	return err_new(e, ERR_INVALID, "unknown option %s; `caisson help run` lists them", word);
}

static int parse(struct run *r, int argc, char **argv, struct err *e)
{
	int i = 1;

	for (; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			break;
		int taken = take_own(r, argc, argv, &i, e);
		if (taken == 0)
			taken = policy_flag(&r->spec, argc, argv, &i, e);
		if (taken < 0)
			return -1;
		if (taken == 0)
			return unknown(argv[i], e);
	}
	if (i >= argc)
		return err_new(e, ERR_INVALID, "no command: caisson run [options] -- CMD [ARG]...");
	r->command = argv + i;
	if (registry_expand(&r->spec, e) < 0 ||
	    spec_print(&r->spec, &r->asked, e) < 0) /* the driver checks it */
		return -1;
	spec_resolve(&r->spec);
	return 0;
}

static int fail(const struct run *r, const struct err *e)
{
	if (r->is_json) {
		AUTO(str_done) struct str text = { .max = 4096 };

		result_print_error(e, &text);
		fputs(str_text(&text), stdout);
	}
	fprintf(stderr, "caisson: %s\n", e->msg);
	if (strncmp(e->msg, "execute: ", 9) != 0)
		return EXIT_OURS;
	return e->kind == ERR_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_DENIED;
}

/* A program that is not there, or may not be executed, never ran: that is not its end. */
static int never_ran(const json_t *process, struct err *e)
{
	const char *reason = json_string_value(json_object_get(process, "reason"));
	const char *state = json_string_value(json_object_get(process, "state"));
	json_int_t code = json_integer_value(json_object_get(process, "exit_code"));

	if (!reason || strncmp(reason, "execute: ", 9) != 0 || !state ||
	    strcmp(state, "exited") != 0)
		return 0;
	return err_new(e, code == EXIT_NOT_FOUND ? ERR_NOT_FOUND : ERR_DENIED, "%s", reason);
}

static int report(const struct run *r, const struct pump *p)
{
	struct err e = { 0 };

	if (never_ran(p->process, &e) < 0)
		return fail(r, &e);
	if (!r->is_json)
		return pump_report(p);
	AUTO(str_done) struct str text = { .max = 4u << 20 };

	result_print(p->hello, p->process, &text);
	if (fputs(str_text(&text), stdout) < 0 || fflush(stdout) != 0) {
		fprintf(stderr, "caisson: write the result: %s\n", strerror(errno));
		return EXIT_OURS;
	}
	return remote_exit_status(p->process);
}

static int run_command(struct run *r, const struct driver *driver, struct err *e)
{
	struct run_setup setup = { .spec = &r->spec,
		                   .spec_text = str_text(&r->asked),
		                   .argv = r->command,
		                   .cwd = r->cwd,
		                   .is_tty = r->is_tty,
		                   .has_stdin = r->has_stdin || (r->is_tty && isatty(STDIN_FILENO)),
		                   .is_inline = r->is_json,
		                   .timeout_ms = r->timeout_ms,
		                   .rows = 24,
		                   .cols = 80 };
	struct run_session session = { .poll_fd = -1 };

	terminal_size(&setup.rows, &setup.cols);
	if ((r->collect.into || r->collect.allow.len > 0) && r->collect.patterns.len == 0) {
		err_new(e, ERR_INVALID, "%s is about what --collect brings back; there is none",
		        r->collect.into ? "--into" : "--allow-exec");
		return fail(r, e);
	}
	if (r->collect.patterns.len > 0) {
		r->collect.is_json = r->is_json;
		int status = run_collect(&setup, &r->collect, e);

		return status < 0 ? fail(r, e) : status;
	}
	if (driver->start(&setup, &session, e) < 0)
		return fail(r, e);
	AUTO(pump_done)
	struct pump pump = { .driver = driver,
		             .session = &session,
		             .is_tty = r->is_tty,
		             .has_stdin = setup.has_stdin };
	int status = pump_run(&pump, e);

	driver->end(&session);
	return status < 0 ? fail(r, e) : report(r, &pump);
}

int run_main(int argc, char **argv, const struct driver *driver)
{
	struct run r = { .asked = { .max = SPEC_BYTES_MAX } };
	struct err e = { 0 };

	spec_init(&r.spec);
	int status = parse(&r, argc, argv, &e) < 0 ? fail(&r, &e) : run_command(&r, driver, &e);
	spec_done(&r.spec);
	str_done(&r.asked);
	vec_done(&r.collect.patterns);
	vec_done(&r.collect.allow);
	return status;
}
