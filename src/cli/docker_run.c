/*
 * docker_run.c - containers are made and started: run, create, start, restart.
 */
#include <ctype.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/daemon.h"
#include "cli/docker-internal.h"

#define NAME_MAX_HERE 120
#define PORTS_MAX 65535

struct made {
	struct box box;
	int status; /* when its process could not be executed */
};

/* ---- made ---------------------------------------------------------------------------- */

static int check_name(const char *name, struct err *e)
{
	bool is_good = isalnum((unsigned char)name[0]) && name[1] && strlen(name) <= NAME_MAX_HERE;

	for (const char *c = name; is_good && *c; c++)
		is_good = isalnum((unsigned char)*c) || strchr("_.-", *c);
	if (is_good)
		return 0;
	return err_new(e, ERR_NOT_FOUND,
	               "Invalid container name (%s), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed",
	               name);
}

/* The entry point, then the command; an image's own where nothing was said. How many of the words
 * are the entry point's is told. */
static json_t *command_of(const struct docker_run *x, char *const *words, const json_t *image,
                          size_t *n_entry)
{
	AUTO(json_decrefp) json_t *given = remote_argv(words);
	json_t *cmd = json_array();
	bool is_own = x->entrypoint != NULL; /* then the image's command is not for it */

	if (is_own && *x->entrypoint)
		json_array_append_new(cmd, json_string(x->entrypoint));
	else if (!is_own && json_object_get(image, "entrypoint"))
		json_array_extend(cmd, json_object_get(image, "entrypoint"));
	*n_entry = json_array_size(cmd);
	if (json_array_size(given) > 0 || is_own)
		json_array_extend(cmd, given);
	else if (json_object_get(image, "cmd"))
		json_array_extend(cmd, json_object_get(image, "cmd"));
	return cmd;
}

/* What a container has besides its sandbox. `at` makes each one different. */
static json_t *settings(const struct docker_run *x, char *const *words, const json_t *image)
{
	const char *folder = *text_of(image, "cwd") ? text_of(image, "cwd") : "/";
	struct timespec now;
	size_t n_entry = 0;
	char at[64];

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(at, sizeof at, "%lld.%09ld.%d", (long long)now.tv_sec, now.tv_nsec, getpid());
	json_t *cmd = command_of(x, words + 1, image, &n_entry);
	json_t *conf = json_pack("{ss,ss,so,ss,sI}", "at", at, "image", words[0], "cmd", cmd, "wd",
	                         x->folder ? x->folder : folder, "entry", (json_int_t)n_entry);
	const struct {
		const char *key;
		bool is_set;
	} switches[] = { { "tty", x->is_tty }, { "stdin", x->has_stdin }, { "rm", x->is_removed } };

	for (size_t i = 0; i < COUNT(switches); i++)
		if (switches[i].is_set)
			json_object_set_new(conf, switches[i].key, json_true());
	if (x->stop_signal)
		json_object_set_new(conf, "stop_signal", json_string(x->stop_signal));
	if (x->stop_timeout)
		json_object_set_new(conf, "stop_timeout", json_string(x->stop_timeout));
	return conf;
}

/* What the image says holds where the caller says nothing. */
static void apply_image(const struct docker_run *x, const struct docker_image *image, json_t *body)
{
	json_t *env = json_object_get(image->settings, "env");

	json_object_set_new(body, "image", json_string(image->name));
	if (env)
		json_object_update_missing(json_object_get(body, "env"), env);
	if (!x->user && *text_of(image->settings, "user"))
		json_object_set_new(body, "user", json_string(text_of(image->settings, "user")));
}

static int find_image(struct client *c, const char *name, struct docker_image *out, struct err *e)
{
	if (docker_image_find(c, name, out, e) == 0)
		return 0;
	if (e->kind == ERR_NOT_FOUND)
		fprintf(stderr, "Unable to find image '%s%s' locally\n", name,
		        strchr(name, ':') ? "" : ":latest");
	return -1;
}

/* The workspace that a volume stands for. */
static int need_workspace(struct client *c, const json_t *body, struct err *e)
{
	const char *texts[] = { text_of(body, "workspace") };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };

	if (!*texts[0])
		return 0;
	client_path(&path, "/v1/workspaces/{}", texts);
	return client_call(c, "PUT", str_text(&path), json_object(), NULL, e);
}

/* Where root has no range of ids, nobody inside can be more than the caller is. */
static int post(struct client *c, const struct docker_run *x, json_t *body, json_t **out,
                struct err *e)
{
	if (client_call(c, "POST", "/v1/sandboxes", json_incref(body), out, e) == 0)
		return 0;
	if (e->kind != ERR_UNENFORCEABLE || !json_object_get(body, "profile"))
		return -1;
	*e = (struct err){ 0 };
	json_object_del(body, "profile");
	if (!x->user)
		json_object_del(body, "user");
	return client_call(c, "POST", "/v1/sandboxes", json_incref(body), out, e);
}

static int taken(const char *name, struct err *e)
{
	return err_new(e, ERR_NOT_FOUND,
	               "Conflict. The container name \"/%s\" is already in use. You have to remove "
	               "(or rename) that container to be able to reuse that name.",
	               name);
}

/* An object of ours, or somebody else's with that name? */
static int keep(const struct docker_run *x, json_t *sandbox, const json_t *labels, struct box *out,
                struct err *e)
{
	const char *first = DOCKER_LABEL ".0";

	if (strcmp(text_of(json_object_get(sandbox, "labels"), first), text_of(labels, first)) !=
	    0) {
		json_decref(sandbox);
		return taken(x->name, e);
	}
	*out = (struct box){ .sandbox = sandbox };
	return 0;
}

/* What `stop` will need has to be right now. */
static int check_stop(const struct docker_run *x, struct err *e)
{
	int sig;
	long seconds;

	return (x->stop_signal && docker_signal(x->stop_signal, &sig, e) < 0) ||
	               docker_seconds(x->stop_timeout, &seconds, e) < 0
	           ? -1
	           : 0;
}

static int make(struct client *c, const struct docker_run *x, char *const *words, struct box *out,
                struct err *e)
{
	AUTO(json_decrefp) json_t *body = json_object(), *conf = NULL;
	AUTO(docker_image_done) struct docker_image image = { 0 };
	json_t *labels = json_object(), *sandbox = NULL;
	char key[NAME_TEXT_MAX];

	json_object_set_new(body, "labels", labels);
	if ((x->name && check_name(x->name, e) < 0) || check_stop(x, e) < 0 ||
	    docker_pairs(&x->labels, &x->label_files, "label", labels, e) < 0 ||
	    docker_spec(x, body, e) < 0 || find_image(c, words[0], &image, e) < 0)
		return -1;
	apply_image(x, &image, body);
	conf = settings(x, words, image.settings);
	if (box_label(labels, conf, e) < 0)
		return -1;
	if (json_array_size(json_object_get(conf, "cmd")) == 0)
		return err_new(e, ERR_NOT_FOUND, "no command specified");
	if (x->name) {
		snprintf(key, sizeof key, DOCKER_KEY "%s", x->name);
		json_object_set_new(body, "key", json_string(key));
	}
	if (need_workspace(c, body, e) < 0)
		return -1;
	c->doing = "making a sandbox";
	if (post(c, x, body, &sandbox, e) < 0)
		return x->name && strcmp(text_of(c->problem, "code"), "exists") == 0
		           ? taken(x->name, e)
		           : -1;
	if (keep(x, sandbox, labels, out, e) < 0)
		return -1;
	return box_again(c, out, e);
}

/* ---- what it needs before its process begins ------------------------------------------ */

/* As root, when whoever it runs as may not. */
static int make_folder_as_root(struct client *c, const struct box *b, const char *folder,
                               struct err *e)
{
	AUTO(json_decrefp) json_t *done = NULL;

	if (box_post(c, b, "exec",
	             json_pack("{s[ssss],ss,ss}", "cmd", "mkdir", "-p", "--", folder, "user",
	                       "root", "cwd", "/"),
	             &done, e) < 0)
		return err_wrap(e, "make working folder %s", folder);
	return remote_exit_status(done) == 0
	           ? 0
	           : err_new(e, ERR_DENIED, "working folder %s cannot be made", folder);
}

/* Docker makes a working folder that is not there. */
static int make_folder(struct client *c, const struct box *b, struct err *e)
{
	const char *folder = box_folder(b);

	if (strcmp(folder, "/") == 0)
		return 0;
	if (box_post(c, b, "files:mkdir", json_pack("{ss}", "path", folder), NULL, e) == 0)
		return 0;
	if (strcmp(text_of(c->problem, "code"), "permission_denied") != 0 && e->kind != ERR_DENIED)
		return -1;
	*e = (struct err){ 0 };
	return make_folder_as_root(c, b, folder, e);
}

/* [ADDRESS:][LOCAL:]PORT[/tcp] */
static int take_port(const char *text, json_t **out, struct err *e)
{
	const char *last = strrchr(text, ':'), *before = last;
	char *end = NULL;
	unsigned long port = strtoul(last ? last + 1 : text, &end, 10), local = 0;

	if (port == 0 || port > PORTS_MAX || (*end && strcmp(end, "/tcp") != 0))
		return err_new(e, ERR_INVALID, "Invalid containerPort: %s", text);
	while (before && before > text && before[-1] != ':')
		before--;
	if (last && before < last) {
		local = strtoul(before, &end, 10);
		if (end != last || local > PORTS_MAX)
			return err_new(e, ERR_INVALID, "Invalid hostPort: %s", text);
	}
	*out = json_pack("{si}", "port", (int)port);
	if (local > 0)
		json_object_set_new(*out, "local_port", json_integer((json_int_t)local));
	return 0;
}

/* A port here takes a token with every request; Docker's does not, so it is said. */
static int publish(struct client *c, const struct docker_run *x, const struct box *b, struct err *e)
{
	for (size_t i = 0; i < x->ports.len; i++) {
		AUTO(json_decrefp) json_t *made = NULL;
		json_t *ask = NULL, *value;
		const char *name;

		if (take_port(x->ports.at[i], &ask, e) < 0)
			return -1;
		if (box_post(c, b, "ports", ask, &made, e) < 0)
			return err_wrap(e, "-p %s", x->ports.at[i]);
		fprintf(stderr, "WARNING: -p %s: HTTP at %s, and every request needs",
		        x->ports.at[i], text_of(made, "url"));
		json_object_foreach(json_object_get(made, "headers"), name, value)
		    fprintf(stderr, " %s: %s", name, json_string_value(value));
		fprintf(stderr, "\n");
	}
	return 0;
}

static int write_id(const struct docker_run *x, const struct box *b, struct err *e)
{
	if (!x->cidfile)
		return 0;
	AUTO(fd_close) int fd = open(x->cidfile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(e, errno, "container ID file %s", x->cidfile);
	return write_all(fd, b->id, strlen(b->id), e);
}

static json_t *main_body(const struct box *b)
{
	json_t *body = json_pack("{sO,ss,ss}", "cmd", box_command(b), "cwd", box_folder(b), "label",
	                         DOCKER_MAIN);

	if (json_is_true(json_object_get(b->conf, "tty")))
		json_object_set_new(body, "tty", json_true());
	json_object_set_new(
	    body, "at_end",
	    json_string(json_is_true(json_object_get(b->conf, "rm")) ? "delete" : "stop"));
	return body;
}

static void exec_path(const struct box *b, struct str *out)
{
	const char *texts[] = { box_sandbox(b) };

	client_path(out, "/v1/sandboxes/{}/exec", texts);
}

static void remove_quietly(struct client *c, struct box *b)
{
	struct err e = { 0 };

	if (b->sandbox && box_remove(c, b, &e) < 0)
		docker_warn(e.msg);
}

/* ---- its process --------------------------------------------------------------------- */

static int begin_main(struct client *c, const struct box *b, int *status, struct err *e)
{
	AUTO(json_decrefp) json_t *body = main_body(b);
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	const char *word = json_string_value(json_array_get(box_command(b), 0));

	exec_path(b, &path);
	json_object_set_new(body, "stdin",
	                    json_boolean(json_is_true(json_object_get(b->conf, "stdin"))));
	return docker_begin(c, str_text(&path), body, word ? word : "?", status, e);
}

/* With its input and output here, to its end. The stream has a connection of its own. */
static int live_main(const struct box *b, bool has_stdin, struct err *e)
{
	AUTO(json_decrefp) json_t *body = main_body(b);
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	struct client c;
	struct docker_live how = { .has_stdin = has_stdin,
		                   .is_tty = json_is_true(json_object_get(b->conf, "tty")),
		                   .is_start = true };

	exec_path(b, &path);
	client_init(&c);
	int r = docker_live(&c, str_text(&path), body, &how, e);
	client_done(&c);
	return r;
}

/* When its process is over, the daemon ends what it left, and with --rm everything: whoever asks
 * next finds it so. What never began is not ended by anybody. */
static void end(struct client *c, struct box *b, bool has_begun)
{
	struct err e = { 0 };

	if (has_begun ? box_await_end(c, b, &e) < 0
	              : json_is_true(json_object_get(b->conf, "rm")) && box_remove(c, b, &e) < 0)
		docker_warn(e.msg);
}

static int print_id(const char *id, struct err *e)
{
	AUTO(str_done) struct str line = { .max = DOCKER_PATH_MAX };

	str_addf(&line, "%s\n", id);
	return print_text(&line, e);
}

static int make_whole(struct verb_call *c, struct box *b, struct err *e)
{
	const struct docker_run *x = c->opts;

	if (make(&c->client, x, c->words.at, b, e) < 0)
		return -1;
	if (make_folder(&c->client, b, e) < 0 || publish(&c->client, x, b, e) < 0 ||
	    write_id(x, b, e) < 0) {
		remove_quietly(&c->client, b);
		return -1;
	}
	return 0;
}

static int create_run(struct verb_call *c, struct err *e)
{
	AUTO(box_done) struct box b = { 0 };

	return make_whole(c, &b, e) < 0 ? -1 : print_id(b.id, e);
}

static int run_detached(struct verb_call *c, struct box *b, struct err *e)
{
	int status;

	if (begin_main(&c->client, b, &status, e) == 0)
		return print_id(b->id, e);
	end(&c->client, b, status > 0);
	if (!status)
		return -1;
	docker_say(c->verb, &c->client, e);
	return status;
}

static int run_run(struct verb_call *c, struct err *e)
{
	const struct docker_run *x = c->opts;
	AUTO(box_done) struct box b = { 0 };

	if (x->is_tty && x->has_stdin && !x->is_detached && !isatty(STDIN_FILENO)) {
		fprintf(stderr, "the input device is not a TTY\n");
		return 1;
	}
	if (make_whole(c, &b, e) < 0)
		return -1;
	if (x->is_detached)
		return run_detached(c, &b, e);
	int status = live_main(&b, x->has_stdin, e);

	end(&c->client, &b, status >= 0);
	return status;
}

/* ---- start, restart ------------------------------------------------------------------ */

struct start {
	struct verb_opts common;
	bool is_attached, has_stdin;
	const char *time, *sig;
};

/* Its sandbox runs, and nothing is in it. */
static int make_ready(struct client *c, struct box *b, struct err *e)
{
	if (!b->conf)
		return err_new(e, ERR_NOT_FOUND,
		               "%s was not made by `docker run`: caisson start %s", box_name(b),
		               box_name(b));
	if (box_settle(c, b, e) < 0)
		return -1;
	/* What an ended process left behind is not for the next one. */
	if (b->main && strcmp(text_of(b->sandbox, "state"), "running") == 0 &&
	    box_stop(c, b, e) < 0)
		return -1;
	if (strcmp(text_of(b->sandbox, "state"), "running") == 0)
		return 0;
	return box_post(c, b, "start", NULL, NULL, e) < 0 ? -1 : box_again(c, b, e);
}

static int start_one(struct verb_call *c, const char *name, struct err *e)
{
	const struct start *x = c->opts;
	AUTO(box_done) struct box b = { 0 };
	int status;

	if (box_find(&c->client, name, &b, e) < 0)
		return -1;
	if (box_state(&b) == BOX_RUNNING)
		return print_id(name, e);
	if (make_ready(&c->client, &b, e) < 0)
		return -1;
	if (x->is_attached || x->has_stdin) {
		status = live_main(&b, x->has_stdin, e);
		end(&c->client, &b, status >= 0);
		return status;
	}
	return begin_main(&c->client, &b, &status, e) < 0 ? -1 : print_id(name, e);
}

static int start_run(struct verb_call *c, struct err *e)
{
	const struct start *x = c->opts;

	if (!x->is_attached && !x->has_stdin)
		return docker_each(c, start_one);
	if (c->words.n > 1)
		return err_new(e, ERR_INVALID,
		               "you cannot start and attach multiple containers at once");
	return start_one(c, c->words.at[0], e);
}

static int restart_one(struct verb_call *c, const char *name, struct err *e)
{
	const struct start *x = c->opts;
	AUTO(box_done) struct box b = { 0 };
	int status;

	if (box_find(&c->client, name, &b, e) < 0 ||
	    docker_stop_box(&c->client, &b, x->time, x->sig, e) < 0 ||
	    box_again(&c->client, &b, e) < 0 || make_ready(&c->client, &b, e) < 0 ||
	    begin_main(&c->client, &b, &status, e) < 0)
		return -1;
	return print_id(name, e);
}

static int restart_run(struct verb_call *c, struct err *e)
{
	(void)e;
	return docker_each(c, restart_one);
}

/* ---- rows ---------------------------------------------------------------------------- */

/* clang-format off */
static const struct flag run_flags[] = {
	{ 'd',  FLAG_SWITCH, "detach",       offsetof(struct docker_run, is_detached), NULL, "run it in the background; prints its id", NULL },
	{ 'i',  FLAG_SWITCH, "interactive",  offsetof(struct docker_run, has_stdin), NULL, "pass standard input on", NULL },
	{ 't',  FLAG_SWITCH, "tty",          offsetof(struct docker_run, is_tty), NULL, "a terminal of its own", NULL },
	{ 'q',  FLAG_SWITCH, "quiet",        offsetof(struct docker_run, is_quiet), NULL, "nothing is pulled in any case", NULL },
	{ '\0', FLAG_SWITCH, "rm",           offsetof(struct docker_run, is_removed), NULL, "remove it when its process has ended", NULL },
	{ '\0', FLAG_TEXT,   "name",         offsetof(struct docker_run, name), "NAME", "a name of yours", NULL },
	{ 'e',  FLAG_LIST,   "env",          offsetof(struct docker_run, env), "NAME=VALUE", "a variable", NULL },
	{ '\0', FLAG_LIST,   "env-file",     offsetof(struct docker_run, env_files), "FILE", "variables, one on a line", NULL },
	{ 'w',  FLAG_TEXT,   "workdir",      offsetof(struct docker_run, folder), "DIR", "working folder inside; made when it is not there", NULL },
	{ 'v',  FLAG_LIST,   "volume",       offsetof(struct docker_run, volumes), "SRC:AT:ro|SRC:AT:O|NAME:AT", "a folder of the host to read, or to write to a copy; a workspace", NULL },
	{ '\0', FLAG_LIST,   "mount",        offsetof(struct docker_run, mounts), "KEY=VALUE,...", "the same in words: type=bind,src=/a,dst=/b,readonly", NULL },
	{ '\0', FLAG_LIST,   "tmpfs",        offsetof(struct docker_run, tmpfs), "AT", "a writable folder that is gone at the end", NULL },
	{ '\0', FLAG_TEXT,   "network",      offsetof(struct docker_run, network), "none|bridge|RULE", "what may be reached: none, or allow:HOST,HOST or preset:pip", NULL },
	{ '\0', FLAG_TEXT,   "net",          offsetof(struct docker_run, network), "RULE", "the same", NULL },
	{ 'p',  FLAG_LIST,   "publish",      offsetof(struct docker_run, ports), "[LOCAL:]PORT", "forward a port: HTTP, with a token", NULL },
	{ 'P',  FLAG_SWITCH, "publish-all",  offsetof(struct docker_run, is_publishing_all), NULL, "refused: name the ports", NULL },
	{ 'm',  FLAG_TEXT,   "memory",       offsetof(struct docker_run, memory), "BYTES", "most memory", NULL },
	{ '\0', FLAG_TEXT,   "cpus",         offsetof(struct docker_run, cpus), "NUMBER", "most processor time, in cores", NULL },
	{ '\0', FLAG_TEXT,   "pids-limit",   offsetof(struct docker_run, pids), "NUMBER", "most processes and threads", NULL },
	{ '\0', FLAG_LIST,   "ulimit",       offsetof(struct docker_run, ulimits), "nofile=N", "most open files of a process", NULL },
	{ '\0', FLAG_LIST,   "storage-opt",  offsetof(struct docker_run, storage), "size=BYTES", "most that it may write", NULL },
	{ 'u',  FLAG_TEXT,   "user",         offsetof(struct docker_run, user), "USER", "name, uid or uid:gid; root unless given", NULL },
	{ '\0', FLAG_TEXT,   "entrypoint",   offsetof(struct docker_run, entrypoint), "PROGRAM", "what is executed; the command is its arguments", NULL },
	{ 'l',  FLAG_LIST,   "label",        offsetof(struct docker_run, labels), "NAME=VALUE", "a label to find it by", NULL },
	{ '\0', FLAG_LIST,   "label-file",   offsetof(struct docker_run, label_files), "FILE", "labels, one on a line", NULL },
	{ '\0', FLAG_SWITCH, "read-only",    offsetof(struct docker_run, is_read_only), NULL, "only /tmp, /run and what is mounted can be written", NULL },
	{ '\0', FLAG_LIST,   "cap-add",      offsetof(struct docker_run, cap_add), "CAP", "one that root has here anyway", NULL },
	{ '\0', FLAG_LIST,   "cap-drop",     offsetof(struct docker_run, cap_drop), "CAP", "ALL: root has none", NULL },
	{ '\0', FLAG_TEXT,   "platform",     offsetof(struct docker_run, platform), "OS/ARCH", "this host's", NULL },
	{ '\0', FLAG_TEXT,   "cidfile",      offsetof(struct docker_run, cidfile), "FILE", "write the id there", NULL },
	{ '\0', FLAG_TEXT,   "restart",      offsetof(struct docker_run, restart), "no", "nothing restarts by itself", NULL },
	{ '\0', FLAG_TEXT,   "stop-signal",  offsetof(struct docker_run, stop_signal), "SIGNAL", "what `stop` sends first", NULL },
	{ '\0', FLAG_TEXT,   "stop-timeout", offsetof(struct docker_run, stop_timeout), "SECONDS", "how long `stop` waits", NULL },
};

static const struct flag start_flags[] = {
	{ 'a', FLAG_SWITCH, "attach",      offsetof(struct start, is_attached), NULL, "its output here", NULL },
	{ 'i', FLAG_SWITCH, "interactive", offsetof(struct start, has_stdin), NULL, "its input from here", NULL },
};

static const struct flag restart_flags[] = {
	{ 't', FLAG_TEXT, "time",    offsetof(struct start, time), "SECONDS", "how long to wait before it is killed", NULL },
	{ '\0', FLAG_TEXT, "timeout", offsetof(struct start, time), "SECONDS", "the same", NULL },
	{ 's', FLAG_TEXT, "signal",  offsetof(struct start, sig), "SIGNAL", "what it is sent first", NULL },
};
/* clang-format on */

#define MAKES(word, what, how)                                                                     \
	const struct verb docker_##word##_cmd = { .name = #word,                                   \
		                                  .usage = "[OPTIONS] IMAGE [COMMAND] [ARG...]",   \
		                                  .does = (what),                                  \
		                                  .flags = run_flags,                              \
		                                  .n_flags = COUNT(run_flags),                     \
		                                  .opts_size = sizeof(struct docker_run),          \
		                                  .words_min = 1,                                  \
		                                  .words_max = SIZE_MAX,                           \
		                                  .words_before = 1,                               \
		                                  .refused = DOCKER_STATUS_DAEMON,                 \
		                                  .other = docker_run_word,                        \
		                                  .run = (how) }

MAKES(run, "Create and run a new container from an image", run_run);
MAKES(create, "Create a new container", create_run);

const struct verb docker_start_cmd = { .name = "start",
	                               .usage = "[OPTIONS] CONTAINER [CONTAINER...]",
	                               .does = "Start one or more stopped containers",
	                               .flags = start_flags,
	                               .n_flags = COUNT(start_flags),
	                               .opts_size = sizeof(struct start),
	                               .words_min = 1,
	                               .words_max = SIZE_MAX,
	                               .other = docker_word,
	                               .run = start_run };

const struct verb docker_restart_cmd = { .name = "restart",
	                                 .usage = "[OPTIONS] CONTAINER [CONTAINER...]",
	                                 .does = "Restart one or more containers",
	                                 .flags = restart_flags,
	                                 .n_flags = COUNT(restart_flags),
	                                 .opts_size = sizeof(struct start),
	                                 .words_min = 1,
	                                 .words_max = SIZE_MAX,
	                                 .other = docker_word,
	                                 .run = restart_run };
