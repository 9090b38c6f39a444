/*
 * play.h - hosts that the gate plays itself (spec/mock.h): nobody is dialled for them.
 */
#pragma once

#include "gate/gate-internal.h"

void play_read(struct gate *g); /* after new rules */
void play_done(struct gate *g);

bool play_has(const struct conn *c); /* the rules of now say so */

/* What is answered by the rules of now. `path` is from http_target_normal(), or "". */
const struct mock_answer *play_answer(const struct conn *c, const char *method, const char *path);
