/*
 * events.h - reads the ledger: one reader, from a record on, through all files of it.
 *
 * Files are the writer's; the daemon gets descriptors to read them (core/ledger.h). A record is
 * handed on as the line that it is, so that whoever gets it can verify it.
 */
#pragma once

#include "core/ledger.h"

#define EVENTS_KINDS_MAX 16
#define EVENTS_BLOCK (256u << 10)
#define EVENTS_TURN (1u << 20) /* bytes of one turn of the loop */

/* All texts are the caller's, for the reader's life; NULL: any. */
struct events_query {
	const char *tenant, *sandbox, *workspace, *process;
	const char *kinds[EVENTS_KINDS_MAX]; /* "exec.ended", or "exec" for all that begin so */
	size_t n_kinds;
	uint64_t after;
	int64_t since_ms;
};

struct events {
	struct core *core;
	struct events_query query;
	void (*more)(struct events *e); /* there may be more to read */
	struct ledger_watch watch;
	int fd;            /* -1: none */
	uint64_t at, next; /* in the file; and the first record of the file behind it */
	uint64_t seq;      /* the last record that was seen */
	char *block;
	size_t begin, end; /* of what is in it and not yet taken */
	bool is_asking;
};

enum events_what {
	EVENTS_LINE,
	EVENTS_WAIT, /* more() will be called */
	EVENTS_TURN_OVER,
	EVENTS_END, /* for now: more() is called when there are new ones */
	EVENTS_FAILED
};

void events_open(struct events *e, struct core *c, const struct events_query *q,
                 void (*more)(struct events *e));
void events_close(struct events *e);
/* `line` is without its newline, until the next call. `budget` begins with 0 in each turn. */
enum events_what events_next(struct events *e, size_t *budget, struct span *line,
                             struct ledger_line *l);
bool events_match(const struct events_query *q, const struct ledger_line *l);
