#include "core/events.h"

#include "base/fd.h"
#include "os/extent.h"

#define OWNER_OF(w, type, member) ((type *)(void *)((char *)(w)-offsetof(type, member)))

/* ---- which ---------------------------------------------------------------------------- */

static bool is_of(struct span s, const char *wanted)
{
	return !wanted || (s.at && span_is(s, wanted));
}

static bool is_kind(const struct events_query *q, struct span kind)
{
	for (size_t i = 0; i < q->n_kinds; i++) {
		size_t n = strlen(q->kinds[i]);

		if (kind.len >= n && memcmp(kind.at, q->kinds[i], n) == 0 &&
		    (kind.len == n || kind.at[n] == '.'))
			return true;
	}
	return q->n_kinds == 0;
}

bool events_match(const struct events_query *q, const struct ledger_line *l)
{
	return l->seq > q->after && l->ts_ms >= q->since_ms && is_of(l->tenant, q->tenant) &&
	       is_of(l->sandbox, q->sandbox) && is_of(l->workspace, q->workspace) &&
	       is_of(l->process, q->process) && is_kind(q, l->kind);
}

/* ---- files ---------------------------------------------------------------------------- */

static void got_file(void *arg, int fd, uint64_t first, uint64_t next)
{
	struct events *e = arg;

	(void)first;
	e->is_asking = false;
	fd_close(&e->fd);
	e->fd = fd;
	e->next = next;
	e->at = 0;
	e->begin = e->end = 0;
	e->more(e);
}

static enum events_what ask(struct events *e, uint64_t seq)
{
	e->is_asking = true;
	ledger_file(e->core, seq, got_file, e);
	return EVENTS_WAIT;
}

/* 1: there are more bytes; 0: the file ends here, for now. */
static int fill(struct events *e)
{
	size_t rest = e->end - e->begin;

	memmove(e->block, e->block + e->begin, rest);
	e->begin = 0;
	e->end = rest;
	if (rest == EVENTS_BLOCK)
		return -EPROTO; /* no line is that long */
	int n = os_pread(e->fd, e->block + rest, EVENTS_BLOCK - rest, (off_t)e->at);

	if (n <= 0)
		return n;
	e->at += (uint64_t)n;
	e->end += (size_t)n;
	return 1;
}

static bool take_line(struct events *e, struct span *line)
{
	char *begin = e->block + e->begin;
	const char *newline = memchr(begin, '\n', e->end - e->begin);

	if (!newline)
		return false;
	*line = (struct span){ begin, (size_t)(newline - begin) };
	e->begin += line->len + 1;
	return true;
}

static enum events_what at_end(struct events *e)
{
	if (e->next)
		return ask(e, e->next);
	/* The writer has begun another file meanwhile. */
	return ledger_last(e->core) > e->seq ? ask(e, e->seq + 1) : EVENTS_END;
}

/* Damage is for who verifies. */
static bool is_wanted(struct events *e, struct span line, struct ledger_line *l)
{
	if (ledger_parse(line, l) < 0)
		return false;
	if (l->seq > e->seq)
		e->seq = l->seq;
	return events_match(&e->query, l);
}

enum events_what events_next(struct events *e, size_t *budget, struct span *line,
                             struct ledger_line *l)
{
	if (e->is_asking)
		return EVENTS_WAIT;
	if (e->fd < 0)
		return ask(e, e->seq + 1);
	int r;

	do {
		while (take_line(e, line)) {
			*budget += line->len;
			if (is_wanted(e, *line, l))
				return EVENTS_LINE;
			if (*budget > EVENTS_TURN)
				return EVENTS_TURN_OVER;
		}
		r = fill(e);
	} while (r > 0);
	return r < 0 ? EVENTS_FAILED : at_end(e);
}

/* ---- life ----------------------------------------------------------------------------- */

static void grew(struct ledger_watch *w)
{
	struct events *e = OWNER_OF(w, struct events, watch);

	if (!e->is_asking)
		e->more(e);
}

void events_open(struct events *e, struct core *c, const struct events_query *q,
                 void (*more)(struct events *e))
{
	*e = (struct events){ .core = c,
		              .query = *q,
		              .more = more,
		              .watch.grew = grew,
		              .fd = -1,
		              .seq = q->after,
		              .block = mem_alloc(EVENTS_BLOCK) };
	ledger_watch_add(c, &e->watch);
}

void events_close(struct events *e)
{
	ledger_watch_remove(e->core, &e->watch);
	ledger_file_cancel(e->core, e);
	fd_close(&e->fd);
	free(e->block);
	e->block = NULL;
}
