#include "cli/docker.h"

#include <signal.h>

#include "cli/docker-internal.h"
#include "wire/escape.h"

static const struct verb *const plain[] = {
	&docker_run_cmd,     &docker_exec_cmd,   &docker_ps_cmd,      &docker_create_cmd,
	&docker_start_cmd,   &docker_stop_cmd,   &docker_restart_cmd, &docker_kill_cmd,
	&docker_wait_cmd,    &docker_rm_cmd,     &docker_pause_cmd,   &docker_unpause_cmd,
	&docker_logs_cmd,    &docker_attach_cmd, &docker_cp_cmd,      &docker_inspect_cmd,
	&docker_port_cmd,    &docker_top_cmd,    &docker_images_cmd,  &docker_pull_cmd,
	&docker_version_cmd, &docker_info_cmd,
};
static const struct verb_table commands = { plain, COUNT(plain) };

/* `docker container ls` is `docker ps`. */
static const struct {
	const char *group, *name;
	const struct verb *verb;
} grouped[] = {
	{ "container", "ls", &docker_ps_cmd },
	{ "container", "list", &docker_ps_cmd },
	{ "image", "ls", &docker_images_cmd },
	{ "image", "list", &docker_images_cmd },
	{ "image", "inspect", &docker_image_inspect_cmd },
	{ "image", "pull", &docker_pull_cmd },
	{ "system", "info", &docker_info_cmd },
};

static const struct verb *find(const char *group, const char *name)
{
	for (size_t i = 0; group && i < COUNT(grouped); i++)
		if (strcmp(grouped[i].group, group) == 0 && strcmp(grouped[i].name, name) == 0)
			return grouped[i].verb;
	/* All that is about containers is in their group as well. */
	return !group || strcmp(group, "container") == 0 ? verb_find(&commands, name) : NULL;
}

static bool is_group(const char *name)
{
	for (size_t i = 0; i < COUNT(grouped); i++)
		if (strcmp(grouped[i].group, name) == 0)
			return true;
	return false;
}

/* ---- what is said -------------------------------------------------------------------- */

static bool is_making(const struct verb *v)
{
	return v->refused == DOCKER_STATUS_DAEMON;
}

/* What the daemon would say is marked as its words, as there; what only we can know is not. */
void docker_say(const struct verb *v, const struct client *c, const struct err *e)
{
	bool is_theirs = c->problem || e->kind != ERR_INVALID;

	fprintf(stderr, "%s%s%s\n", is_making(v) ? "docker: " : "",
	        is_theirs ? "Error response from daemon: " : "", escape_brief(e->msg));
	if (is_making(v))
		fprintf(stderr, "\nRun 'docker %s --help' for more information\n", v->name);
}

static int say_usage(const struct verb *v, const struct err *e)
{
	fprintf(stderr,
	        "%s\n\nUsage:  docker %s %s\n\nRun 'docker %s --help' for more information\n",
	        escape_brief(e->msg), v->name, v->usage, v->name);
	return DOCKER_STATUS_DAEMON;
}

static int say_words(const struct verb *v)
{
	bool is_exact = v->words_min == v->words_max;

	fprintf(
	    stderr,
	    "docker: 'docker %s' requires %s %zu argument%s\n\nUsage:  docker %s %s\n\nSee 'docker "
	    "%s --help' for more information\n",
	    v->name,
	    v->words_max == 0 ? "no arguments, not"
	    : is_exact        ? "exactly"
			      : "at least",
	    v->words_min, v->words_min == 1 ? "" : "s", v->name, v->usage, v->name);
	return 1;
}

static int show_help(const struct verb *v)
{
	AUTO(str_done) struct str out = { .max = DOCKER_PATH_MAX };
	struct err e = { 0 };

	str_addf(&out, "\nUsage:  docker %s %s\n\n%s\n", v->name, v->usage, v->does);
	if (v->n_flags > 0)
		str_add(&out, "\nOptions:\n");
	for (size_t i = 0; i < v->n_flags; i++) {
		const struct flag *f = &v->flags[i];
		char letter[8] = "    ";

		if (f->letter)
			snprintf(letter, sizeof letter, "-%c, ", f->letter);
		str_addf(&out, "  %s--%s%s%s\n          %s\n", letter, f->name, f->arg ? " " : "",
		         f->arg ? f->arg : "", f->help);
	}
	return print_text(&out, &e) < 0 ? 1 : 0;
}

static int show_commands(void)
{
	printf("\nUsage:  docker COMMAND\n\nSandboxes of Caisson by Docker's words "
	       "(docs/docker.md)\n\nCommands:\n");
	for (size_t i = 0; i < COUNT(plain); i++)
		printf("  %-10s  %s\n", plain[i]->name, plain[i]->does);
	return 0;
}

/* ---- one command --------------------------------------------------------------------- */

int docker_each(struct verb_call *c, int (*f)(struct verb_call *c, const char *name, struct err *e))
{
	int status = 0;

	for (size_t i = 0; i < c->words.n; i++) {
		struct err e = { 0 };

		if (f(c, c->words.at[i], &e) >= 0)
			continue;
		docker_say(c->verb, &c->client, &e);
		status = 1;
	}
	return status;
}

static int call(const struct verb *v, struct verb_call *c)
{
	struct err e = { 0 };

	client_init(&c->client);
	int status = v->run(c, &e);
	if (status < 0) {
		docker_say(v, &c->client, &e);
		status = v->refused ? v->refused : 1;
	}
	client_done(&c->client);
	return status;
}

static int run(const struct verb *v, int argc, char **argv)
{
	struct flag_table table = {
		.at = v->flags, .n = v->n_flags, .other = v->other, .is_strict = v->words_before > 0
	};
	AUTO(freep) void *opts = mem_alloc(v->opts_size);
	struct verb_call c = { .verb = v, .opts = opts };
	struct err e = { 0 };

	signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error like another, and has a status */
	int r = flags_parse(&table, argc, argv, opts, &c.words, &e);
	bool is_count_good = c.words.n >= v->words_min && c.words.n <= v->words_max;
	int status = r < 0           ? say_usage(v, &e)
	             : r > 0         ? show_help(v)
	             : is_count_good ? call(v, &c)
	                             : say_words(v);
	flags_done(&table, opts);
	return status;
}

bool docker_is(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strcmp(slash ? slash + 1 : program, "docker") == 0;
}

/* Options before the command that have a value, behind an equals sign or as the next word. */
static const struct valued {
	const char *name;
	bool is_daemon; /* else nothing here depends on it */
} valued[] = { { "--config", false }, { "--log-level", false }, { "-l", false },
	       { "--context", true }, { "-c", true },           { "--host", true },
	       { "-H", true } };

static const struct valued *find_valued(const char *word)
{
	size_t n = strcspn(word, "=");

	for (size_t i = 0; i < COUNT(valued); i++)
		if (strlen(valued[i].name) == n && strncmp(valued[i].name, word, n) == 0)
			return &valued[i];
	return NULL;
}

/* Which daemon is asked is $CAISSON_SOCKET's business. */
static int skip_global(int argc, char **argv, int *at)
{
	for (; *at < argc && argv[*at][0] == '-'; ++*at) {
		const char *word = argv[*at];
		const struct valued *v = find_valued(word);

		if (v && v->is_daemon) {
			fprintf(stderr,
			        "docker: %s is refused: $CAISSON_SOCKET says which daemon\n",
			        v->name);
			return DOCKER_STATUS_DAEMON;
		}
		*at += v && !strchr(word, '=');
		if (v)
			continue;
		if (strcmp(word, "-D") == 0 || strcmp(word, "--debug") == 0)
			continue;
		if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
			return show_commands();
		if (strcmp(word, "--version") == 0 || strcmp(word, "-v") == 0) {
			printf("Docker version 27.0.0, caisson " CAISSON_VERSION "\n");
			return 0;
		}
		fprintf(stderr, "unknown flag: %s\nSee 'docker --help'.\n", word);
		return DOCKER_STATUS_DAEMON;
	}
	return -1;
}

int docker_main(int argc, char **argv)
{
	int at = 1, status = skip_global(argc, argv, &at);

	if (status >= 0)
		return status;
	if (at >= argc)
		return show_commands();
	const char *group = is_group(argv[at]) && at + 1 < argc ? argv[at++] : NULL;
	const struct verb *v = find(group, argv[at]);

	if (!v && strcmp(argv[at], "help") == 0)
		return show_commands();
	if (!v) {
		fprintf(stderr, "docker: '%s%s%s' is not a docker command.\nSee 'docker --help'\n",
		        group ? group : "", group ? " " : "", argv[at]);
		return 1;
	}
	return run(v, argc - at, argv + at);
}

const struct verb cmd_docker = {
	.name = "docker",
	.usage = "COMMAND [options]",
	.does = "sandboxes by the words of Docker's client",
	.more =
	    "run, exec, cp, ps, logs, stop, start, rm, inspect and more, with Docker's options, "
	    "outputs and exit codes; `caisson docker --help` lists them. As a link named `docker` "
	    "the program is that command: ln -s $(which caisson) ~/bin/docker.",
	.main = docker_main
};
