/*
 * handlers.h - every handler of the table in table.c, by the file that has it.
 */
#pragma once

#include "api/routes.h"
#include "core/process.h"

/* sandboxes.c */
handler_fn sandbox_create, sandbox_get, sandbox_list, sandbox_delete, sandbox_usage;
handler_fn sandbox_stop, sandbox_start, sandbox_pause, sandbox_resume, sandbox_replace,
    sandbox_extend;
/* exec.c */
handler_fn exec_start, exec_run;
/* processes.c */
handler_fn process_get, process_list, process_stdin, process_signal, process_resize, process_kill;
/* follow.c */
handler_fn process_events, process_log;
/* live.c */
handler_fn process_attach, process_tty;
/* shells.c */
handler_fn shell_list, shell_delete;
/* files.c */
handler_fn file_get, file_put, file_edit, file_delete, file_move, file_copy, file_mkdir, file_batch;
void file_show(struct call *c, struct sbx *s, const char *path); /* its bytes, or a range */
handler_fn file_patch, file_grep, file_glob, archive_get, archive_put;
/* images.c */
handler_fn image_put, image_post, image_get, image_list, image_delete;
/* secrets.c */
handler_fn secret_put_one, secret_get, secret_list_all, secret_delete, sealing_get;
/* workspaces.c */
handler_fn workspace_put, workspace_get, workspace_list, workspace_change, workspace_delete;
handler_fn workspace_untrash, workspace_fork, workspace_exec, workspace_snapshot, workspace_undo;
handler_fn workspace_redo, workspace_restore, workspace_history, workspace_changes;
/* apply.c */
handler_fn workspace_ask;
/* approvals.c */
handler_fn approval_list, approval_get, approval_post;
/* net.c */
handler_fn connection_list, net_why, net_change;
/* git.c */
handler_fn workspace_commit, workspace_merge, workspace_push, workspace_export;
handler_fn workspace_take, workspace_join, workspace_applied;
/* pulls.c */
handler_fn workspace_pull;
void workspace_patch(struct call *c, struct wsx *w); /* changes as git has them */
/* attest.c */
handler_fn workspace_attest;
/* repos.c */
handler_fn repos_put, repos_get, repos_list, repos_refresh, repos_delete;
/* events.c */
handler_fn events_get;
/* cache.c */
handler_fn cache_list, cache_gc, cache_verify;
/* store.c */
handler_fn store_gc, store_fsck;
/* ports.c */
handler_fn port_list, port_forward, port_delete, port_connect;
/* admin.c */
handler_fn health_get, metrics_get, backends_get, quota_get, openapi_get, token_create, token_list,
    token_delete;

/* ---- shared by them ---- */
/* A spec of the body, checked and resolved; its canonical text. */
int spec_of(const struct call *c, const json_t *body, struct spec *spec, struct str *text,
            struct fail *f) MUST_USE;
int take_page(struct call *c, struct store_page *page, struct fail *f) MUST_USE;
int query_number(struct call *c, const char *name, uint64_t *out, struct fail *f) MUST_USE;

/* A person was asked: 202, with the question. */
void answer_asked(struct call *c, const char *id);
/* The end of wsx_delete() for a call: 204. */
void workspace_gone(void *arg, struct wsx *w, const struct fail *f);
struct tree_ask;
void range_take(struct call *c, struct tree_ask *ask); /* of the head, if it has one */
struct wsx *call_workspace(struct call *c);  /* of {id}; NULL: it was answered that there is none */
void exec_in(struct call *c, struct sbx *s); /* the command of the body */

/* The wishes for one command (exec.c); what they point to lives in the call. */
struct exec_ask {
	struct px_ask px;
	struct pair_list env;
	uint64_t wait_ms, inline_max;
	bool has_wait;
	json_t *extra; /* members that the answer has besides, or NULL; wait_for() takes it */
};
int exec_parse(struct call *c, const json_t *body, struct exec_ask *a, struct fail *f) MUST_USE;

/* The connection becomes a live process (live.c). Takes the reference of `p`. */
struct live_opts {
	bool is_inline; /* output comes with the end, not as it is written */
	bool is_brief;  /* what goes without saying is not said: an empty greeting, a plain end */
	bool is_owner;  /* the sandbox ends when the client leaves (POST /v1/run) */
	bool kill_on_disconnect;
	uint64_t inline_max, after;
};
bool live_is_asked(struct call *c);
void live_start(struct call *c, struct px *p, struct live_opts o);

/* Answers when the process has ended or the time is over (exec.c). Takes the reference of `p`. */
void wait_for(struct call *c, struct px *p, const struct exec_ask *a);
/* All of its input, when it was asked with some. */
int exec_input(struct px *p, const json_t *input, struct fail *f) MUST_USE;

/* A run that is given files, or leaves some (collect.c). */
bool collect_is_asked(const struct call *c);
void collect_run(struct call *c, struct sbx_ask *want, const struct exec_ask *command);
