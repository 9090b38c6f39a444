/*
 * verbs.h - the rows of the verbs that speak to the daemon, by the file that has them.
 */
#pragma once

#include "cli/verb.h"

/* verb_exec.c */
extern const struct verb cmd_exec, cmd_sh, cmd_attach;
/* verb_ps.c */
extern const struct verb cmd_ps, cmd_logs, cmd_kill;
/* verb_life.c */
extern const struct verb cmd_create, cmd_list, cmd_inspect, cmd_stop, cmd_start, cmd_pause;
extern const struct verb cmd_resume, cmd_replace, cmd_extend, cmd_rm;
/* verb_ws.c */
extern const struct verb cmd_ws, cmd_up, cmd_fork;
/* verb_undo.c */
extern const struct verb cmd_snap, cmd_restore, cmd_undo, cmd_redo, cmd_history, cmd_diff;
/* verb_files.c */
extern const struct verb cmd_read, cmd_write, cmd_edit, cmd_grep, cmd_glob, cmd_ls;
/* verb_cp.c */
extern const struct verb cmd_cp;
/* verb_top.c */
extern const struct verb cmd_top;
/* verb_net.c */
extern const struct verb cmd_net, cmd_why;
extern const struct verb cmd_events;
/* verb_approve.c */
extern const struct verb cmd_approve, cmd_approvals;
/* verb_mcp.c */
extern const struct verb cmd_mcp;
/* verb_cache.c */
extern const struct verb cmd_cache;
/* verb_fsck.c */
extern const struct verb cmd_fsck;
/* verb_port.c */
extern const struct verb cmd_ports, cmd_port;
/* verb_apply.c */
extern const struct verb cmd_apply;
/* verb_git.c */
extern const struct verb cmd_commit, cmd_merge, cmd_push, cmd_pulls, cmd_export;
/* verb_image.c */
extern const struct verb cmd_image;
/* verb_repo.c */
extern const struct verb cmd_repo;
int repo_prepare(struct client *c, const char *url, struct err *e) MUST_USE;
/* verb_attest.c */
extern const struct verb cmd_attest;
/* verb_report.c */
extern const struct verb cmd_report;
/* verb_token.c */
extern const struct verb cmd_token;
/* verb_secret.c */
extern const struct verb cmd_secret;
/* verb_serve.c */
extern const struct verb cmd_serve, cmd_config;
