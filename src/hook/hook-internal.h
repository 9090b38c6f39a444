/*
 * hook-internal.h - the sender of webhooks: what its files share.
 *
 *   serve.c  start, daemons and what they want sent, one after the other, tries and ends
 *   post.c   one request
 *   sign.c   the signature
 */
#pragma once

#include "gate/dial.h"
#include "gate/ends.h"
#include "gate/leg.h"
#include "hook/sign.h"
#include "io/timer.h"
#include "wire/hook.h"
#include "wire/weburl.h"

#define OWNER_OF(at, type, member) ((type *)(void *)((char *)(at)-offsetof(type, member)))

struct hook {
	struct loop loop;
	struct timers timers;
	struct lookups lookups;
	struct ends ends;
	struct legs legs;
	struct rules rules;
	struct dialer dialer;
	struct watch launcher;
	struct weburl to;
	uint8_t *key; /* in memory that is locked */
	size_t key_len;
	struct client *clients;
	struct item *first, **last; /* the first is being sent */
	size_t n_items;
	struct post *post; /* NULL: it waits for its next try */
	struct timer again;
};

/* What came of one try: its status, or 0 and why. Called once, from the loop. */
typedef void post_done(struct hook *h, int status, const char *wrong);
void post_start(struct hook *h, const char *id, struct span body, post_done *done);
void post_cancel(struct hook *h); /* fine when there is none */
