/*
 * follow.c - what a process wrote: as events (Server-Sent Events or NDJSON), and as bytes.
 */
#include "api/handlers.h"
#include "api/print.h"
#include "wire/utf8.h"

static const char *const stream_names[] = { [LOG_OUT] = "stdout", [LOG_ERR] = "stderr" };

struct follow {
	struct px_watch watch; /* first */
	struct call *call;
	struct px *p;
	struct timer again; /* the rest of a long log, next turn */
	struct scan scan;
	bool is_sse, is_live, is_full, is_over;
	struct { /* the beginning of a code point whose rest is still to come */
		unsigned char bytes[4];
		size_t n;
	} held[LOG_STREAMS];
	/* the log as bytes */
	bool is_raw;
	uint64_t from, left; /* bytes still to be skipped, and to be sent */
};

static void follow_over(struct call *c)
{
	struct follow *w = c->state;
	struct px *p = w->p;

	px_watch_remove(p, &w->watch);
	timer_stop(&p->core->timers, &w->again);
	scan_done(&w->scan);
	call_unref(w->call);
	free(w);
	px_unref(p);
}

/* ---- events -------------------------------------------------------------------------- */

static bool put_event(struct follow *w, const char *name, uint64_t seq, json_t *o)
{
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);
	AUTO(str_done) struct str line = { .max = 1u << 20 };

	json_decref(o);
	if (w->is_sse)
		str_addf(&line, "id: %llu\nevent: %s\ndata: %s\n\n", (unsigned long long)seq, name,
		         text);
	else
		str_addf(&line, "%s\n", text);
	return reply_write(w->call->r, str_text(&line), line.len);
}

static bool put_text(struct follow *w, enum log_stream stream, const struct scan_piece *p,
                     struct span bytes)
{
	json_t *o = json_pack("{sI,ss,ss,sI}", "seq", (json_int_t)p->seq, "type", "output",
	                      "stream", stream_names[stream], "ms", (json_int_t)p->ms);

	if (w->scan.skipped > 0)
		json_object_set_new(o, "skipped", json_integer((json_int_t)w->scan.skipped));
	print_bytes(o, "data", bytes.at, bytes.len);
	return put_event(w, "output", p->seq, o);
}

/* A code point that lies across two pieces comes with the second; the `seq` of the first lies
 * before it, so that whoever comes back from there gets it too. */
static bool put_output(struct follow *w, const struct scan_piece *p)
{
	AUTO(str_done) struct str all = { .max = LOG_FRAME_DATA_MAX + 16 };
	struct scan_piece piece = *p;
	size_t open;

	str_addn(&all, w->held[p->stream].bytes, w->held[p->stream].n);
	str_addn(&all, p->bytes, p->len);
	open = utf8_open_end(all.data, all.len);
	w->held[p->stream].n = open;
	memcpy(w->held[p->stream].bytes, all.data + all.len - open, open);
	piece.seq -= open < p->len ? open : p->len;
	if (all.len == open)
		return true;
	return put_text(w, p->stream, &piece, (struct span){ all.data, all.len - open });
}

/* It ended in the middle of a code point: then these bytes are no text. */
static void put_held(struct follow *w)
{
	for (enum log_stream s = 0; s < LOG_STREAMS; s++) {
		struct scan_piece p = { .stream = s, .seq = w->scan.at };

		if (w->held[s].n > 0)
			(void)put_text(w, s, &p,
			               (struct span){ (char *)w->held[s].bytes, w->held[s].n });
		w->held[s].n = 0;
	}
}

static void put_end(struct follow *w)
{
	json_t *o = json_pack("{sI,ss,so}", "seq", (json_int_t)w->scan.at, "type", "end", "process",
	                      print_process(w->p, NULL, 0));

	(void)put_event(w, "end", w->scan.at, o);
}

/* ---- bytes --------------------------------------------------------------------------- */

static bool put_raw(struct follow *w, const struct scan_piece *p)
{
	size_t skip = w->from < p->len ? (size_t)w->from : p->len;
	size_t n = p->len - skip < w->left ? p->len - skip : (size_t)w->left;

	w->from -= skip;
	w->left -= n;
	return n == 0 || reply_write(w->call->r, p->bytes + skip, n);
}

/* ---- both ---------------------------------------------------------------------------- */

static void follow_on(struct follow *w)
{
	uint64_t begin = w->scan.at;
	struct scan_piece p;
	int r = 0;

	if (w->is_over || !w->call->r)
		return;
	while (!w->is_full && w->left > 0 && w->p->log_fd >= 0 && w->scan.at - begin < SCAN_TURN &&
	       (r = scan_next(&w->scan, &p)) > 0)
		w->is_full = !(w->is_raw ? put_raw(w, &p) : put_output(w, &p));
	if (w->scan.at != begin)
		px_ack(w->p, w->scan.at);
	if (w->is_full)
		return;
	if (r > 0 && w->left > 0) {
		timer_set(&w->p->core->timers, &w->again, 0);
		return;
	}
	if (w->is_live && !w->p->is_over && w->left > 0)
		return;
	w->is_over = true;
	if (!w->is_raw)
		put_held(w);
	if (!w->is_raw && w->p->is_over)
		put_end(w);
	w->call->is_answered = true;
	reply_end(w->call->r);
}

static void follow_again(struct timer *t)
{
	follow_on((struct follow *)(void *)((char *)t - offsetof(struct follow, again)));
}

static void follow_grew(struct px_watch *w)
{
	follow_on((struct follow *)w);
}

static void on_room(struct request *r)
{
	struct call *c = r->route;
	struct follow *w = c->state;

	w->is_full = false;
	follow_on(w);
}

static struct follow *follow_new(struct call *c, struct px *p, uint64_t after)
{
	struct follow *w = mem_alloc(sizeof *w);

	*w = (struct follow){ .watch = { .changed = follow_grew, .grew = follow_grew },
		              .call = call_ref(c),
		              .p = p,
		              .left = UINT64_MAX };
	w->again.fired = follow_again;
	scan_init(&w->scan, p->log_fd, after);
	px_watch_add(p, &w->watch);
	c->state = w;
	c->over = follow_over;
	c->r->on_room = on_room;
	return w;
}

int query_number(struct call *c, const char *name, uint64_t *out, struct fail *f)
{
	const char *text = call_query(c, name);
	char *end;

	if (!text)
		return 0;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno)
		return fail_set(f, FAIL_INVALID, "%s: a number is expected", name);
	return 0;
}

void process_events(struct call *c)
{
	const char *accept = call_header(c, "Accept"), *follow = call_query(c, "follow");
	const char *last = call_header(c, "Last-Event-ID");
	struct fail f = { 0 };
	uint64_t after = last ? strtoull(last, NULL, 10) : 0;
	struct px *p = px_find(c->api->core, c->tenant, c->params[0], &f);

	if (!p || query_number(c, "after", &after, &f) < 0) {
		if (p)
			px_unref(p);
		answer_fail(c, &f);
		return;
	}
	struct follow *w = follow_new(c, p, after);
	w->is_sse = accept && strstr(accept, "text/event-stream");
	w->is_live = follow && strcmp(follow, "0") != 0;
	reply_begin(c->r, 200, w->is_sse ? "text/event-stream" : "application/x-ndjson", -1,
	            (const char *[]){ "Cache-Control", "no-store", NULL });
	follow_on(w);
}

/* "bytes=0-99", "bytes=100-", "bytes=-50"; anything else is no range, and all of it comes. */
static bool take_range(const char *text, uint64_t size, uint64_t *from, uint64_t *n)
{
	char *end;

	if (!text || strncmp(text, "bytes=", 6) != 0 || size == 0)
		return false;
	text += 6;
	if (*text == '-') {
		uint64_t last = strtoull(text + 1, &end, 10);

		*n = last < size ? last : size;
		*from = size - *n;
		return *end == '\0' && last > 0;
	}
	*from = strtoull(text, &end, 10);
	if (end == text || *end != '-')
		return false;
	uint64_t to = end[1] ? strtoull(end + 1, &end, 10) : size - 1;
	if (to >= size)
		to = size - 1;
	*n = to >= *from ? to - *from + 1 : 0;
	return *n > 0;
}

static uint64_t kept_bytes(const struct px *p)
{
	struct log_hole hole = { 0 };

	if (p->log_fd >= 0)
		(void)log_hole(p->log_fd, &hole);
	return p->end.out_bytes + p->end.err_bytes - p->end.dropped_bytes - hole.bytes;
}

void process_log(struct call *c)
{
	struct fail f = { 0 };
	struct px *p = px_find(c->api->core, c->tenant, c->params[0], &f);
	uint64_t from = 0, n = 0;
	char range[96];

	if (!p) {
		answer_fail(c, &f);
		return;
	}
	/* How much there is in all is known at the end only. */
	uint64_t size = p->is_over ? kept_bytes(p) : 0;
	bool is_part = take_range(call_header(c, "Range"), size, &from, &n);
	struct follow *w = follow_new(c, p, 0);
	w->is_raw = true;
	w->is_live = !p->is_over && call_query(c, "follow");
	if (is_part) {
		w->from = from;
		w->left = n;
		snprintf(range, sizeof range, "bytes %llu-%llu/%llu", (unsigned long long)from,
		         (unsigned long long)(from + n - 1), (unsigned long long)size);
		reply_begin(c->r, 206, "application/octet-stream", (int64_t)n,
		            (const char *[]){ "Content-Range", range, NULL });
	} else {
		reply_begin(c->r, 200, "application/octet-stream", -1,
		            (const char *[]){ "Accept-Ranges", "bytes", NULL });
	}
	follow_on(w);
}
