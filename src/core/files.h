/*
 * files.h - requests about files of a sandbox. Workers inside do them (wire/tree.h), one request
 * at a time each; here they are started, given work and ended when idle. What comes back is bytes
 * for the client: only the few numbers of an answer are looked at.
 */
#pragma once

#include "core/sandbox.h"
#include "wire/tree.h"

#define FILES_WORKERS_MAX 8 /* of one sandbox; a watch holds one for as long as it lasts */
#define FILES_LONG_MAX 128  /* of one sandbox: jobs that last as long as a connection */
#define FILES_WAITING_MAX 256
#define FILES_IDLE_MS 10000

struct worker;

/* One request; embedded in its owner, and his until `over`. */
struct job {
	struct tree_ask ask; /* path, match and body live until `sent` */
	/* The answer begins; its first bytes. With is_last there is no more to come. */
	void (*answer)(struct job *j, const struct tree_packet *p, bool is_last);
	void (*data)(struct job *j, struct span bytes);
	/* The answer has ended; NULL: the worker died, and nobody knows how far it came. */
	void (*over)(struct job *j, const struct tree_answer *a);
	void (*room)(struct job *j); /* more of the body may be given */
	struct worker *worker;
	struct sbx *sandbox; /* where it waits for a worker, if it ever did */
	struct job *next;
	size_t sent;  /* of ask.body */
	int fd;       /* with TREE_FD: goes along; borrowed by files_start() */
	bool is_long; /* has a worker of its own, and never waits for one: refused instead */
	bool is_answered;
};

/* Queued when all workers are busy. The sandbox runs, or it is stopped and its walls stand. */
int files_start(struct sbx *s, struct job *j, struct fail *f) MUST_USE;
/* More of the body, when ask.has_more. False: no room, `room` tells. At most TREE_PIECE_MAX. */
bool files_body(struct job *j, const void *bytes, size_t n, bool is_last);
void files_pause(struct job *j, bool is_paused); /* the client is slower than the worker */
void files_cancel(struct job *j);                /* its owner forgets it */

bool files_are_idle(const struct sbx *s);
bool files_may_change(enum tree_verb verb); /* what it is asked about */
void files_close(struct sbx *s);            /* every worker ends */
