/*
 * docker_life.c - containers end: stop, kill, rm, wait, pause, unpause.
 */
#include <signal.h>
#include <strings.h>

#include "cli/docker-internal.h"
#include "cli/remote.h"

#define STOP_SECONDS 10
#define WAIT_EACH "60s"
#define WAIT_KILLED "5s"

static int print_name(const char *name, struct err *e)
{
	AUTO(str_done) struct str line = { .max = DOCKER_PATH_MAX };

	str_addf(&line, "%s\n", name);
	return print_text(&line, e);
}

/* ---- its process --------------------------------------------------------------------- */

/* TERM, SIGTERM, 15, RTMIN+3. */
int docker_signal(const char *text, int *out, struct err *e)
{
	const char *name = text + (strncasecmp(text, "SIG", 3) == 0 ? 3 : 0);
	bool is_late = strncasecmp(name, "RTMIN", 5) == 0;
	const char *digits = is_late ? name + 5 : name;
	char *end = NULL;
	long number = strtol(digits, &end, 10);
	bool is_number = !*end && (is_late || end != digits);

	*out = 0;
	for (int i = 1; i < SIGRTMIN && !is_number; i++)
		if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), name) == 0)
			*out = i;
	if (is_number && number >= 0 && number <= SIGRTMAX)
		*out = (int)number + (is_late ? SIGRTMIN : 0);
	return *out > 0 && *out <= SIGRTMAX ? 0
	                                    : err_new(e, ERR_NOT_FOUND, "invalid signal: %s", text);
}

static int send_signal(struct client *c, const struct box *b, int sig, struct err *e)
{
	const char *texts[] = { text_of(b->main, "id") };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };

	client_path(&path, "/v1/processes/{}/signal", texts);
	return client_call(c, "POST", str_text(&path), json_pack("{si}", "sig", sig), NULL, e);
}

/* Waits so long for its end, or for as long as it takes (NULL). */
static int await_main(struct client *c, struct box *b, const char *time, struct err *e)
{
	const char *texts[] = { text_of(b->main, "id"), time ? time : WAIT_EACH };

	do {
		AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
		json_t *process = NULL;

		client_path(&path, "/v1/processes/{}?wait={}", texts);
		if (client_call(c, "GET", str_text(&path), NULL, &process, e) < 0)
			return -1;
		json_decref(b->main);
		b->main = process;
		texts[0] = text_of(b->main, "id");
	} while (!time && !box_is_over(b->main));
	return 0;
}

/* The walls stand, nothing runs; with --rm it is gone. */
static int settle_down(struct client *c, struct box *b, struct err *e)
{
	if (json_is_true(json_object_get(b->conf, "rm")))
		return box_remove(c, b, e);
	if (box_again(c, b, e) < 0 || box_settle(c, b, e) < 0)
		return -1;
	const char *state = text_of(b->sandbox, "state");

	if (strcmp(state, "running") != 0 && strcmp(state, "paused") != 0)
		return 0;
	return box_stop(c, b, e);
}

int docker_seconds(const char *text, long *out, struct err *e)
{
	char *end = NULL;

	*out = text && *text ? strtol(text, &end, 10) : STOP_SECONDS;
	if (end && (*end || end == text))
		return err_new(e, ERR_INVALID, "invalid argument \"%s\" for \"-t, --timeout\" flag",
		               text);
	return 0;
}

/* A signal, and so long for its end. What cannot be told may have ended: settle_down() sees. */
static int tell_and_wait(struct client *c, struct box *b, int sig, const char *time, struct err *e)
{
	struct err missed = { 0 };

	if (!b->main || box_is_over(b->main) || send_signal(c, b, sig, &missed) < 0)
		return 0;
	return await_main(c, b, time, e);
}

int docker_stop_box(struct client *c, struct box *b, const char *seconds, const char *sig,
                    struct err *e)
{
	const char *own_sig = text_of(b->conf, "stop_signal");
	char wait[32];
	long time;
	int number;

	if (!sig)
		sig = *own_sig ? own_sig : "TERM";
	if (docker_signal(sig, &number, e) < 0 ||
	    docker_seconds(seconds ? seconds : text_of(b->conf, "stop_timeout"), &time, e) < 0)
		return -1;
	if (box_state(b) == BOX_PAUSED &&
	    (box_post(c, b, "resume", NULL, NULL, e) < 0 || box_again(c, b, e) < 0))
		return -1;
	snprintf(wait, sizeof wait, "%lds", time);
	if (time != 0 && tell_and_wait(c, b, number, time < 0 ? NULL : wait, e) < 0)
		return -1;
	if (tell_and_wait(c, b, SIGKILL, WAIT_KILLED, e) < 0)
		return -1;
	return settle_down(c, b, e);
}

/* ---- stop ---------------------------------------------------------------------------- */

struct stop {
	struct verb_opts common;
	const char *time, *sig;
};

static int stop_one(struct verb_call *c, const char *name, struct err *e)
{
	const struct stop *x = c->opts;
	AUTO(box_done) struct box b = { 0 };

	if (box_find(&c->client, name, &b, e) < 0 ||
	    docker_stop_box(&c->client, &b, x->time, x->sig, e) < 0)
		return -1;
	return print_name(name, e);
}

static int stop_run(struct verb_call *c, struct err *e)
{
	(void)e;
	return docker_each(c, stop_one);
}

/* ---- kill ---------------------------------------------------------------------------- */

static int kill_one(struct verb_call *c, const char *name, struct err *e)
{
	const struct stop *x = c->opts;
	AUTO(box_done) struct box b = { 0 };
	int sig;

	if (docker_signal(x->sig ? x->sig : "KILL", &sig, e) < 0 ||
	    box_find(&c->client, name, &b, e) < 0)
		return -1;
	if (box_state(&b) != BOX_RUNNING && box_state(&b) != BOX_PAUSED)
		return err_new(e, ERR_NOT_FOUND,
		               "cannot kill container: %s: container %s is not running", name,
		               b.id);
	if (!b.main)
		return err_new(e, ERR_NOT_FOUND,
		               "cannot kill container: %s: it has no process of its own", name);
	/* What is frozen would not hear of it before it goes on. */
	if (sig == SIGKILL && box_state(&b) == BOX_PAUSED &&
	    (box_post(&c->client, &b, "resume", NULL, NULL, e) < 0))
		return -1;
	if (send_signal(&c->client, &b, sig, e) < 0)
		return -1;
	if (sig == SIGKILL &&
	    (await_main(&c->client, &b, NULL, e) < 0 || settle_down(&c->client, &b, e) < 0))
		return -1;
	return print_name(name, e);
}

static int kill_run(struct verb_call *c, struct err *e)
{
	(void)e;
	return docker_each(c, kill_one);
}

/* ---- rm ------------------------------------------------------------------------------ */

struct rm {
	struct verb_opts common;
	bool is_forced, is_volumes, is_link;
};

static int rm_one(struct verb_call *c, const char *name, struct err *e)
{
	const struct rm *x = c->opts;
	AUTO(box_done) struct box b = { 0 };

	if (box_find(&c->client, name, &b, e) < 0) {
		if (!x->is_forced || e->kind != ERR_NOT_FOUND)
			return -1;
		fprintf(stderr, "Error response from daemon: %s\n", e->msg);
		*e = (struct err){ 0 };
		return 0; /* as there: what is not there need not be removed */
	}
	enum box_state s = box_state(&b);

	if (!x->is_forced && (s == BOX_RUNNING || s == BOX_PAUSED))
		return err_new(
		    e, ERR_NOT_FOUND,
		    "cannot remove container \"%s\": container is %s: stop the container "
		    "before removing or force remove",
		    box_name(&b), box_state_name(s));
	if (box_settle(&c->client, &b, e) < 0 || box_remove(&c->client, &b, e) < 0)
		return -1;
	return print_name(name, e);
}

static int rm_run(struct verb_call *c, struct err *e)
{
	const struct rm *x = c->opts;

	if (x->is_link)
		return err_new(e, ERR_INVALID,
		               "-l is refused: there are no links between containers");
	return docker_each(c, rm_one);
}

/* ---- wait ---------------------------------------------------------------------------- */

static int wait_one(struct verb_call *c, const char *name, struct err *e)
{
	AUTO(box_done) struct box b = { 0 };
	char code[16];

	if (box_find(&c->client, name, &b, e) < 0)
		return -1;
	if (!b.conf)
		return err_new(e, ERR_NOT_FOUND, "container %s has no process to wait for", b.id);
	if (b.main && await_main(&c->client, &b, NULL, e) < 0)
		return -1;
	/* One that was only created does not run: as there, nobody waits for its start. */
	snprintf(code, sizeof code, "%d", b.main ? remote_exit_status(b.main) : 0);
	return print_name(code, e);
}

static int wait_run(struct verb_call *c, struct err *e)
{
	(void)e;
	return docker_each(c, wait_one);
}

/* ---- pause, unpause ------------------------------------------------------------------ */

static int freeze_one(struct verb_call *c, const char *name, struct err *e)
{
	bool is_pause = strcmp(c->verb->name, "pause") == 0;
	AUTO(box_done) struct box b = { 0 };

	if (box_find(&c->client, name, &b, e) < 0 ||
	    box_post(&c->client, &b, is_pause ? "pause" : "resume", NULL, NULL, e) < 0)
		return -1;
	return print_name(name, e);
}

static int freeze_run(struct verb_call *c, struct err *e)
{
	(void)e;
	return docker_each(c, freeze_one);
}

/* ---- rows ---------------------------------------------------------------------------- */

/* clang-format off */
static const struct flag stop_flags[] = {
	{ 't',  FLAG_TEXT, "time",    offsetof(struct stop, time), "SECONDS", "how long to wait before it is killed", NULL },
	{ '\0', FLAG_TEXT, "timeout", offsetof(struct stop, time), "SECONDS", "the same", NULL },
	{ 's',  FLAG_TEXT, "signal",  offsetof(struct stop, sig), "SIGNAL", "what it is sent first", NULL },
};

static const struct flag kill_flags[] = {
	{ 's', FLAG_TEXT, "signal", offsetof(struct stop, sig), "SIGNAL", "instead of KILL", NULL },
};

static const struct flag rm_flags[] = {
	{ 'f', FLAG_SWITCH, "force",   offsetof(struct rm, is_forced), NULL, "a running one, too", NULL },
	{ 'v', FLAG_SWITCH, "volumes", offsetof(struct rm, is_volumes), NULL, "folders without a name always go with it", NULL },
	{ 'l', FLAG_SWITCH, "link",    offsetof(struct rm, is_link), NULL, "refused: there are none", NULL },
};
/* clang-format on */

#define ENDS(word, what, size, table, count, how)                                                  \
	const struct verb docker_##word##_cmd = { .name = #word,                                   \
		                                  .usage = "[OPTIONS] CONTAINER [CONTAINER...]",   \
		                                  .does = (what),                                  \
		                                  .flags = (table),                                \
		                                  .n_flags = (count),                              \
		                                  .opts_size = (size),                             \
		                                  .words_min = 1,                                  \
		                                  .words_max = SIZE_MAX,                           \
		                                  .other = docker_word,                            \
		                                  .run = (how) }

ENDS(stop, "Stop one or more running containers", sizeof(struct stop), stop_flags,
     COUNT(stop_flags), stop_run);
ENDS(kill, "Kill one or more running containers", sizeof(struct stop), kill_flags,
     COUNT(kill_flags), kill_run);
ENDS(rm, "Remove one or more containers", sizeof(struct rm), rm_flags, COUNT(rm_flags), rm_run);
ENDS(wait, "Block until one or more containers stop, then print their exit codes",
     sizeof(struct verb_opts), NULL, 0, wait_run);
ENDS(pause, "Pause all processes within one or more containers", sizeof(struct verb_opts), NULL, 0,
     freeze_run);
ENDS(unpause, "Unpause all processes within one or more containers", sizeof(struct verb_opts), NULL,
     0, freeze_run);
