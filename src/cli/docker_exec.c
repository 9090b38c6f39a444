/*
 * docker_exec.c - processes of containers: `exec`, and what `run` and `start` need of it.
 */
#include <time.h>
#include <unistd.h>

#include "cli/daemon.h"
#include "cli/docker-internal.h"
#include "cli/terminal.h"

#define BEGIN_MS 20000
#define LOOK_MS 5

/* ---- how it went --------------------------------------------------------------------- */

/* What the kernel said when there was nothing to execute; NULL: it ran. */
static const char *why_not(const json_t *process)
{
	static const char prefix[] = "execute: ";
	const char *reason = text_of(process, "reason");

	return strncmp(reason, prefix, strlen(prefix)) == 0 ? reason + strlen(prefix) : NULL;
}

/* Docker's sentence for it, by the exit status. */
static int say_why_not(const char *word, int status, bool is_start, struct err *e)
{
	const char *what = status == DOCKER_STATUS_NO_FILE && !strchr(word, '/')
	                       ? "executable file not found in $PATH"
	                   : status == DOCKER_STATUS_NO_FILE ? "stat: no such file or directory"
	                                                     : "permission denied";

	return err_new(e, ERR_NOT_FOUND,
	               "OCI runtime %s failed: unable to start container process: exec: "
	               "\"%.200s\": %s: unknown",
	               is_start ? "create" : "exec", word, what);
}

void docker_size(json_t *body)
{
	uint16_t rows, cols;

	if (!terminal_size(&rows, &cols) || rows == 0 || cols == 0)
		return;
	json_object_set_new(body, "rows", json_integer(rows));
	json_object_set_new(body, "cols", json_integer(cols));
}

/* What docker_live() and docker_begin() return when there was nothing to execute: said by `e`. */
static const char *first_word(const json_t *body)
{
	const char *word = json_string_value(json_array_get(json_object_get(body, "cmd"), 0));

	return word ? word : "?";
}

int docker_live(struct client *c, const char *path, json_t *body, const struct docker_live *how,
                struct err *e)
{
	AUTO(pump_done)
	struct pump p = { .is_tty = how->is_tty,
		          .has_stdin = how->has_stdin,
		          .is_proxy = how->is_start };

	json_object_set_new(body, "stdin", json_boolean(how->has_stdin));
	if (how->is_tty) {
		json_object_set_new(body, "tty", json_true());
		docker_size(body);
	}
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT);
	const struct client_ask ask = { .method = "POST", .path = path, .body = span_of(text) };

	if (daemon_pump(c, &ask, &p, e) < 0)
		return -1;
	if (!why_not(p.process))
		return pump_report(&p);
	int status = remote_exit_status(p.process);
	const struct client said = { .problem = p.process };

	(void)say_why_not(first_word(body), status, how->is_start, e);
	docker_say(how->is_start ? &docker_run_cmd : &docker_exec_cmd, &said, e);
	return status;
}

int docker_begin(struct client *c, const char *path, json_t *body, const char *word, int *status,
                 struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	AUTO(json_decrefp) json_t *process = NULL;

	*status = 0;
	json_object_set_new(body, "wait", json_string("0s"));
	if (client_call(c, "POST", path, json_incref(body), &process, e) < 0)
		return -1;
	for (int i = 0; strcmp(text_of(process, "state"), "queued") == 0; i++) {
		const char *texts[] = { text_of(process, "id") };
		AUTO(str_done) struct str at = { .max = DOCKER_PATH_MAX };
		json_t *now = NULL;

		if (i == BEGIN_MS / LOOK_MS)
			return err_new(e, ERR_INTERNAL, "the command does not begin");
		nanosleep(&pause, NULL);
		client_path(&at, "/v1/processes/{}", texts);
		if (client_call(c, "GET", str_text(&at), NULL, &now, e) < 0)
			return -1;
		json_decref(process);
		process = now;
	}
	if (!why_not(process))
		return 0;
	*status = remote_exit_status(process);
	return say_why_not(word, *status, strcmp(text_of(body, "label"), DOCKER_MAIN) == 0, e);
}

/* ---- exec ---------------------------------------------------------------------------- */

struct exec {
	struct verb_opts common;
	bool is_detached, has_stdin, is_tty;
	struct flag_list env, env_files;
	const char *folder, *user;
};

static int exec_body(const struct exec *x, const struct box *b, char *const *argv, json_t *body,
                     struct err *e)
{
	json_t *env = json_object();

	json_object_set_new(body, "env", env);
	json_object_set_new(body, "cmd", remote_argv(argv));
	if (json_object_set_new(body, "cwd", json_string(x->folder ? x->folder : box_folder(b))) <
	        0 ||
	    (x->user && json_object_set_new(body, "user", json_string(x->user)) < 0))
		return err_new(e, ERR_INVALID, "user and working folder: not UTF-8");
	return docker_env(&x->env, &x->env_files, env, e);
}

static int check_running(const struct box *b, struct err *e)
{
	enum box_state s = box_state(b);

	if (s == BOX_PAUSED)
		return err_new(e, ERR_NOT_FOUND,
		               "container %s is paused, unpause the container before exec", b->id);
	if (s != BOX_RUNNING)
		return err_new(e, ERR_NOT_FOUND, "container %s is not running", b->id);
	return 0;
}

static int exec_run(struct verb_call *c, struct err *e)
{
	const struct exec *x = c->opts;
	AUTO(box_done) struct box b = { 0 };
	AUTO(json_decrefp) json_t *body = json_object();
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	int status;

	if (x->is_tty && x->has_stdin && !x->is_detached && !isatty(STDIN_FILENO)) {
		fprintf(stderr, "the input device is not a TTY\n");
		return 1;
	}
	if (box_find(&c->client, c->words.at[0], &b, e) < 0 || check_running(&b, e) < 0 ||
	    exec_body(x, &b, c->words.at + 1, body, e) < 0)
		return -1;
	const char *texts[] = { box_sandbox(&b) };

	client_path(&path, "/v1/sandboxes/{}/exec", texts);
	if (!x->is_detached)
		return docker_live(&c->client, str_text(&path), body,
		                   &(struct docker_live){ x->has_stdin, x->is_tty, false }, e);
	if (docker_begin(&c->client, str_text(&path), body, c->words.at[1], &status, e) < 0) {
		if (!status)
			return -1;
		docker_say(c->verb, &c->client, e);
		return status;
	}
	return 0;
}

/* clang-format off */
static const struct flag exec_flags[] = {
	{ 'd',  FLAG_SWITCH, "detach",      offsetof(struct exec, is_detached), NULL, "run it in the background", NULL },
	{ 'i',  FLAG_SWITCH, "interactive", offsetof(struct exec, has_stdin), NULL, "pass standard input on", NULL },
	{ 't',  FLAG_SWITCH, "tty",         offsetof(struct exec, is_tty), NULL, "a terminal of its own", NULL },
	{ 'e',  FLAG_LIST,   "env",         offsetof(struct exec, env), "NAME=VALUE", "a variable", NULL },
	{ '\0', FLAG_LIST,   "env-file",    offsetof(struct exec, env_files), "FILE", "variables, one on a line", NULL },
	{ 'w',  FLAG_TEXT,   "workdir",     offsetof(struct exec, folder), "DIR", "working folder inside", NULL },
	{ 'u',  FLAG_TEXT,   "user",        offsetof(struct exec, user), "USER", "name, uid or uid:gid", NULL },
};
/* clang-format on */

const struct verb docker_exec_cmd = { .name = "exec",
	                              .usage = "[OPTIONS] CONTAINER COMMAND [ARG...]",
	                              .does = "Execute a command in a running container",
	                              .flags = exec_flags,
	                              .n_flags = COUNT(exec_flags),
	                              .opts_size = sizeof(struct exec),
	                              .words_min = 2,
	                              .words_max = SIZE_MAX,
	                              .words_before = 1,
	                              .other = docker_word,
	                              .run = exec_run };

/* ---- attach -------------------------------------------------------------------------- */

struct attach {
	struct verb_opts common;
	bool has_no_stdin;
};

static int attach_run(struct verb_call *c, struct err *e)
{
	const struct attach *x = c->opts;
	AUTO(box_done) struct box b = { 0 };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };

	if (box_find(&c->client, c->words.at[0], &b, e) < 0)
		return -1;
	if (!b.main || box_state(&b) != BOX_RUNNING)
		return err_new(e, ERR_NOT_FOUND,
		               "cannot attach to a stopped container, start it first");
	const char *texts[] = { text_of(b.main, "id"), "0" };

	client_path(&path, "/v1/processes/{}/attach?after={}", texts);
	const struct client_ask ask = { .method = "GET", .path = str_text(&path) };
	AUTO(pump_done) struct pump p = { .has_stdin = !x->has_no_stdin, .is_guest = true };

	if (daemon_pump(&c->client, &ask, &p, e) < 0)
		return -1;
	return p.is_left && !p.is_pipe_closed ? 0 : pump_report(&p);
}

static const struct flag attach_flags[] = {
	{ .name = "no-stdin",
	  .type = FLAG_SWITCH,
	  .offset = offsetof(struct attach, has_no_stdin),
	  .help = "only look" },
};

const struct verb docker_attach_cmd = { .name = "attach",
	                                .usage = "[OPTIONS] CONTAINER",
	                                .does = "Attach to a running container's own process",
	                                .flags = attach_flags,
	                                .n_flags = COUNT(attach_flags),
	                                .opts_size = sizeof(struct attach),
	                                .words_min = 1,
	                                .words_max = 1,
	                                .other = docker_word,
	                                .run = attach_run };
