/*
 * verbs.h - the rows of the verbs that speak to the daemon, by the file that has them.
 */
#pragma once

#include "cli/verb.h"

/* verb_exec.c */
extern const struct verb verb_exec, verb_sh, verb_attach;
/* verb_ps.c */
extern const struct verb verb_ps, verb_logs, verb_kill;
/* verb_life.c */
extern const struct verb verb_create, verb_list, verb_inspect, verb_stop, verb_start, verb_pause;
extern const struct verb verb_resume, verb_replace, verb_extend, verb_rm;
/* verb_files.c */
extern const struct verb verb_read, verb_write, verb_edit, verb_grep, verb_glob, verb_ls;
/* verb_cp.c */
extern const struct verb verb_cp;
/* verb_top.c */
extern const struct verb verb_top;
/* verb_token.c */
extern const struct verb verb_token;
/* verb_serve.c */
extern const struct verb verb_serve;
