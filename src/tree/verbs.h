/*
 * verbs.h - one function per verb: from the request to the answer (wire/tree.h).
 */
#pragma once

#include "tree/call.h"

int verb_stat(struct call *c, struct err *e);
int verb_list(struct call *c, struct err *e);
int verb_read(struct call *c, struct err *e);
int verb_lines(struct call *c, struct err *e);
int verb_write(struct call *c, struct err *e);
int verb_edit(struct call *c, struct err *e);
int verb_delete(struct call *c, struct err *e);
int verb_move(struct call *c, struct err *e);
int verb_copy(struct call *c, struct err *e);
int verb_mkdir(struct call *c, struct err *e);
int verb_batch(struct call *c, struct err *e);
int verb_patch(struct call *c, struct err *e);
int verb_grep(struct call *c, struct err *e);
int verb_glob(struct call *c, struct err *e);
int verb_watch(struct call *c, struct err *e);
int verb_tar_out(struct call *c, struct err *e);
int verb_tar_in(struct call *c, struct err *e);
int verb_unzip(struct call *c, struct err *e);
int verb_image(struct call *c, struct err *e);
int verb_ports(struct call *c, struct err *e);
int verb_dial(struct call *c, struct err *e);
int verb_mark(struct call *c, struct err *e);
