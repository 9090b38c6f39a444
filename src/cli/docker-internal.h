/*
 * docker-internal.h - what the files of `caisson docker` share.
 */
#pragma once

#include "base/limits.h"
#include "cli/verb.h"

#define DOCKER_LABEL "caisson.docker" /* of a sandbox; with .0, .1, ... the settings, in pieces */
#define DOCKER_MAIN "docker:main"     /* the label of a container's own process */
#define DOCKER_KEY "docker:"          /* before a container's name in a sandbox's key */
#define DOCKER_ID_SIZE 65             /* 64 digits */
#define DOCKER_SHORT 12               /* as many are shown */
#define DOCKER_PATH_MAX (64u << 10)   /* of a request */
#define DOCKER_TEXT_MAX (64u << 20)   /* of what is printed */

/* Exit codes that are Docker's. */
#define DOCKER_STATUS_DAEMON 125
#define DOCKER_STATUS_NO_EXEC 126
#define DOCKER_STATUS_NO_FILE 127

/* ---- docker_id.c: 64 digits that stand for an id of ours, and back ---- */
void docker_id_of(const char *id, char out[DOCKER_ID_SIZE]); /* "" when it is none */
bool docker_id_back(const char *digits, char out[NAME_TEXT_MAX]);
bool docker_is_digits(const char *text); /* of base 16, at most 64 */

/* ---- docker_box.c: containers ---- */
struct box {
	json_t *sandbox; /* the API's object */
	json_t *conf;    /* what `docker run` was told; NULL: somebody else made it */
	json_t *main;    /* its newest main process, or NULL */
	char id[DOCKER_ID_SIZE];
};

enum box_state { BOX_CREATED, BOX_RUNNING, BOX_PAUSED, BOX_EXITED, BOX_DEAD, BOX_STATES };

struct box_list {
	struct box *at;
	size_t len, cap;
};

/* By name, id, the beginning of an id, or a name of a sandbox that is not Docker's. */
int box_find(struct client *c, const char *name, struct box *out, struct err *e) MUST_USE;
void box_done(struct box *b);
/* All that were made here, newest first. */
int box_all(struct client *c, struct box_list *out, struct err *e) MUST_USE;
void box_list_done(struct box_list *l);
/* Its objects again, after something was done to it. */
int box_again(struct client *c, struct box *b, struct err *e) MUST_USE;
/* Until nothing is under way with it. */
int box_settle(struct client *c, struct box *b, struct err *e) MUST_USE;
int box_stop(struct client *c, struct box *b, struct err *e) MUST_USE; /* it has ended then */

/* Until it has stopped, or is gone: what the daemon does when its process has ended. */
int box_await_end(struct client *c, struct box *b, struct err *e) MUST_USE;
int box_remove(struct client *c, struct box *b, struct err *e) MUST_USE;

const char *box_sandbox(const struct box *b); /* sb_... */
const char *box_name(const struct box *b);
const char *box_image(const struct box *b);
enum box_state box_state(const struct box *b);
const char *box_state_name(enum box_state s);
int box_exit_code(const struct box *b);   /* 0 while it runs */
json_t *box_labels(const struct box *b);  /* the user's own; a new object */
json_t *box_command(const struct box *b); /* a list, borrowed; NULL: none */
const char *box_folder(const struct box *b);
bool box_is_over(const json_t *process);

/* The labels of a sandbox that is a container with these settings, added to `labels`. */
int box_label(json_t *labels, json_t *conf, struct err *e) MUST_USE;

/* POST /v1/sandboxes/ID/WHAT */
int box_post(struct client *c, const struct box *b, const char *what, json_t *body, json_t **out,
             struct err *e) MUST_USE;

/* ---- docker_show.c: rows and columns ---- */
/* Each of the rows by the template; "table ..." gets heads, which are the columns' names for the
 * fields. NULL: `otherwise`. Rows are objects of texts. */
struct docker_view {
	const char *format, *otherwise;
	json_t *heads;
};
int docker_view_print(const struct docker_view *v, json_t *rows, struct err *e) MUST_USE;
void docker_ago(int64_t since_ms, struct str *out); /* "3 minutes" */
void docker_time(int64_t ms, struct str *out);      /* RFC 3339, or the zero time */
/* `inspect`: all as JSON, or each by the template. */
int docker_print_objects(json_t *list, const char *format, struct err *e) MUST_USE;

/* ---- docker_words.c: options that need no field ---- */
/* For flag_table.other: 1 taken, -1 with Docker's words for what is not known or refused. */
int docker_run_word(void *into, int argc, char **argv, int *i, struct err *e);
int docker_word(void *into, int argc, char **argv, int *i, struct err *e);
void docker_warn(const char *text);

/* ---- docker_spec.c: options of run as a spec ---- */
struct docker_run {
	struct verb_opts common;
	bool is_detached, has_stdin, is_tty, is_removed, is_read_only, is_publishing_all;
	bool is_quiet; /* nothing is pulled, so nothing is said of it */
	const char *name, *folder, *user, *entrypoint, *network, *memory, *cpus, *pids;
	const char *platform, *cidfile, *stop_signal, *stop_timeout, *restart;
	struct flag_list env, env_files, volumes, mounts, ports, labels, label_files, tmpfs;
	struct flag_list ulimits, cap_add, cap_drop, storage;
};
/* The body of POST /v1/sandboxes, without what names the container; and its settings. */
int docker_spec(const struct docker_run *x, json_t *body, struct err *e) MUST_USE;
int docker_env(const struct flag_list *env, const struct flag_list *files, json_t *into,
               struct err *e) MUST_USE;
int docker_pairs(const struct flag_list *given, const struct flag_list *files, const char *what,
                 json_t *into, struct err *e) MUST_USE;

/* ---- docker_image.c ---- */
struct docker_image {
	char name[NAME_TEXT_MAX]; /* that it has here */
	json_t *settings;         /* ImageSettings of the API, or NULL */
};
/* ERR_NOT_FOUND: there is none. */
int docker_image_find(struct client *c, const char *name, struct docker_image *out,
                      struct err *e) MUST_USE;
void docker_image_done(struct docker_image *i);

int docker_image_object(struct client *c, const char *name, json_t *list, struct err *e) MUST_USE;

/* ---- docker_exec.c ---- */
struct docker_live {
	bool has_stdin, is_tty;
	bool is_start; /* the container's own process: words of `docker run` when it cannot begin */
};
/* A process that the request starts, to its end: its exit status, -1. */
int docker_live(struct client *c, const char *path, json_t *body, const struct docker_live *how,
                struct err *e) MUST_USE;
/* The same in the background: -1 when it could not be executed; `status` says which code. */
int docker_begin(struct client *c, const char *path, json_t *body, const char *word, int *status,
                 struct err *e) MUST_USE;
void docker_size(json_t *body); /* of the terminal */

/* ---- docker_life.c ---- */
int docker_signal(const char *text, int *out, struct err *e) MUST_USE;   /* TERM, SIGTERM, 15 */
int docker_seconds(const char *text, long *out, struct err *e) MUST_USE; /* "": the default */
/* Its process gets the signal, then the time, then the end: as `docker stop`. */
int docker_stop_box(struct client *c, struct box *b, const char *seconds, const char *sig,
                    struct err *e) MUST_USE;

/* ---- docker.c ---- */
/* f() for each word; what fails is said, and the rest goes on: the exit status. */
int docker_each(struct verb_call *c,
                int (*f)(struct verb_call *c, const char *name, struct err *e));
void docker_say(const struct verb *v, const struct client *c, const struct err *e);

extern const struct verb docker_run_cmd, docker_create_cmd, docker_start_cmd, docker_restart_cmd;
extern const struct verb docker_exec_cmd, docker_attach_cmd;
extern const struct verb docker_ps_cmd, docker_inspect_cmd, docker_port_cmd, docker_top_cmd;
extern const struct verb docker_stop_cmd, docker_kill_cmd, docker_rm_cmd, docker_wait_cmd;
extern const struct verb docker_pause_cmd, docker_unpause_cmd;
extern const struct verb docker_logs_cmd;
extern const struct verb docker_cp_cmd;
extern const struct verb docker_images_cmd, docker_pull_cmd, docker_image_inspect_cmd;
extern const struct verb docker_version_cmd, docker_info_cmd;
