/*
 * cache.h - what an operator asks of the package cache (cache/asks.c): one line of JSON goes there
 * by a stream that the launcher opens, one document comes back.
 */
#pragma once

#include <jansson.h>

#include "core/core.h"

/* One of both is NULL; the answer is borrowed. */
typedef void cache_answer_fn(void *arg, json_t *answer, const struct fail *f);

/* Takes `ask`. `done` is called once, later. */
void cache_ask(struct core *c, json_t *ask, cache_answer_fn *done, void *arg);
void cache_asks_done(struct core *c); /* nobody is told any more */
