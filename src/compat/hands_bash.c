/*
 * hands_bash.c - commands, and what they say. A command is a process, its id ours; what it said is
 * read from its log, and the order of an event is the position behind it: whoever asks for what
 * came after one gets that and no more.
 */
#include <time.h>

#include "compat/compat-internal.h"
#include "core/details.h"
#include "wire/utf8.h"

#define LOG_MAX (16u << 20) /* a position is found by walking there */
#define EVENT_MAX (1u << 20)
#define PAGE_MAX (2u << 20)
#define EVENTS_MAX 100
#define TIMEOUT_DEFAULT_S 300

/* ---- what the server is -------------------------------------------------------------- */

void hands_health(struct call *c)
{
	answer_json(c, 200, json_pack("{ss}", "status", "ok"));
}

void hands_ready(struct call *c)
{
	answer_json(c, 200, json_pack("{ss}", "status", "ready"));
}

void hands_info(struct call *c)
{
	struct fail f = { 0 };
	const struct sbx *s = compat_find(c, &f);
	int64_t since = s ? s->created_ms : core_now_ms();
	uint64_t idle = s ? core_mono_ms() - s->active_ms : 0;

	if (!s && !compat_is_own(c)) {
		answer_fail(c, &f);
		return;
	}
	answer_json(c, 200,
	            json_pack("{sI,sI,ss,ss,s[]}", "uptime",
	                      (json_int_t)((core_now_ms() - since) / 1000), "idle_time",
	                      (json_int_t)(idle / 1000), "title", "Caisson", "version",
	                      CAISSON_VERSION, "usable_tools"));
}

/* ---- commands ------------------------------------------------------------------------ */

static json_t *time_of(int64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[48], day[32];

	if (!gmtime_r(&s, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		return json_null();
	snprintf(text, sizeof text, "%s.%03dZ", day, (int)(ms % 1000));
	return json_string(text);
}

static int take_command(struct call *c, const struct sbx *s, struct px_ask *ask, struct fail *f)
{
	const char *cwd = NULL;
	uint64_t ms = TIMEOUT_DEFAULT_S * 1000ull;

	*ask = (struct px_ask){ .actor = c->actor, .log_max = LOG_MAX };
	if (member_text(c->body, "command", &ask->script, f) < 0 ||
	    member_text(c->body, "cwd", &cwd, f) < 0 ||
	    member_seconds(c->body, "timeout", &ms, f) < 0)
		return -1;
	if (!ask->script)
		return fail_set(f, FAIL_INVALID, "command is needed");
	ask->timeout_ms = ms > 0 ? ms : 1; /* none at all would be for ever */
	ask->cwd = cwd ? compat_path(c, s, cwd) : NULL;
	return 0;
}

/* Answered once there is a record: whoever asks for its events finds it. */
struct starting {
	struct px_watch watch; /* first */
	struct call *call;
	struct px *p;
};

static void started(struct px_watch *w)
{
	struct starting *x = (struct starting *)w;
	struct call *c = x->call;
	struct px *p = x->p;
	json_t *cwd = json_object_get(c->body, "cwd");
	json_t *timeout = json_object_get(c->body, "timeout");
	struct fail f = { 0 };

	if (!p->is_stored && !p->is_unrecorded)
		return;
	if (p->is_unrecorded) {
		fail_set(&f, FAIL_BACKEND_ERROR, "the process could not be recorded and was ended");
		answer_fail(c, &f);
	} else {
		json_t *o = json_pack("{ss,so,ss,sO}", "id", p->id, "timestamp",
		                      time_of(p->created_ms), "kind", "BashCommand", "command",
		                      json_object_get(c->body, "command"));

		json_object_set_new(o, "cwd", cwd ? json_incref(cwd) : json_null());
		json_object_set_new(o, "timeout",
		                    json_is_number(timeout) ? json_incref(timeout)
		                                            : json_integer(TIMEOUT_DEFAULT_S));
		answer_json(c, 200, o);
	}
	px_watch_remove(p, w);
	call_unref(c);
	free(x);
	px_unref(p);
}

static void grew(struct px_watch *w)
{
	(void)w; /* read when it is asked for */
}

static void start(struct call *c, struct sbx *s)
{
	struct px_ask ask;
	struct fail f = { 0 };
	struct px *p = take_command(c, s, &ask, &f) == 0 ? px_start(s, &ask, &f) : NULL;

	if (!p) {
		answer_fail(c, &f);
		return;
	}
	struct starting *x = mem_alloc(sizeof *x);
	*x = (struct starting){ .watch = { .changed = started, .grew = grew },
		                .call = call_ref(c),
		                .p = p };
	px_watch_add(p, &x->watch);
	started(&x->watch);
}

void hands_start(struct call *c)
{
	compat_enter(c, start);
}

/* ---- events -------------------------------------------------------------------------- */

static json_t *event(const struct px *p, uint64_t order, int64_t ms)
{
	AUTO(str_done) struct str id = { .max = 64 };

	str_addf(&id, "%s-%llu", p->id, (unsigned long long)order);
	return json_pack("{ss,so,ss,ss,sI,sn,sn,sn}", "id", str_text(&id), "timestamp", time_of(ms),
	                 "kind", "BashOutput", "command_id", p->id, "order", (json_int_t)order,
	                 "exit_code", "stdout", "stderr");
}

static json_t *text_of(struct span bytes)
{
	AUTO(str_done) struct str text = { .max = (size_t)4 * PAGE_MAX };

	(void)py_utf8(bytes, PY_REPLACE, &text, NULL);
	return json_stringn(str_text(&text), text.len);
}

static void set_text(json_t *o, enum log_stream stream, struct span bytes)
{
	if (bytes.len > 0)
		json_object_set_new(o, stream == LOG_OUT ? "stdout" : "stderr", text_of(bytes));
}

/* It was never executed, or nobody knows how it ended. */
static bool is_unknown(const struct px *p)
{
	return p->is_never_run || (p->end.signal <= 0 && p->end.exit_code < 0);
}

static int exit_code_of(const struct px *p)
{
	if (p->state == PROCESS_TIMEOUT || is_unknown(p))
		return -1;
	return p->end.signal > 0 ? -p->end.signal : p->end.exit_code;
}

static json_t *last_event(const struct px *p, uint64_t order)
{
	json_t *o = event(p, order, p->ended_ms ? p->ended_ms : core_now_ms());

	json_object_set_new(o, "exit_code", json_integer(exit_code_of(p)));
	if (p->state != PROCESS_TIMEOUT && is_unknown(p))
		set_text(o, LOG_ERR, span_of(p->end.reason));
	return o;
}

/* Pieces of one stream that follow each other are one event. */
struct page {
	const struct px *p;
	struct scan scan;
	json_t *items;
	struct str text; /* of the event that is being made */
	enum log_stream stream;
	uint64_t order; /* behind it */
	size_t last;    /* bytes of its last piece */
	int64_t ms;
	size_t bytes, limit;
};

/* Bytes at the end that may be the beginning of a character; of the last piece, since a position
 * can only be in there. */
static size_t open_end(const struct page *g)
{
	size_t n = utf8_open_end(str_text(&g->text), g->text.len);

	return n <= g->last ? n : 0;
}

/* But for `held` bytes, which stay. */
static void end_event(struct page *g, size_t held)
{
	size_t n = g->text.len - held;

	if (n > 0) {
		json_t *o = event(g->p, g->order - held, g->ms);

		set_text(o, g->stream, (struct span){ g->text.data, n });
		json_array_append_new(g->items, o);
		memmove(g->text.data, g->text.data + n, held);
		g->text.len = held;
	}
}

/* The one that is being made counts, unless it may have to stay. */
static bool is_full(const struct page *g)
{
	size_t begun = g->text.len > open_end(g) ? 1 : 0;

	return g->bytes >= PAGE_MAX || json_array_size(g->items) + begun >= g->limit;
}

static void add_piece(struct page *g, const struct scan_piece *piece)
{
	if (g->text.len > 0 && piece->stream != g->stream)
		end_event(g, 0);
	else if (g->text.len + piece->len > EVENT_MAX)
		end_event(g, open_end(g));
	g->stream = piece->stream;
	g->order = piece->seq;
	g->last = piece->len;
	g->ms = g->p->created_ms + (int64_t)piece->ms;
	g->bytes += piece->len;
	str_addn(&g->text, piece->bytes, piece->len);
}

/* True: that was all that there is. */
static bool fill(struct page *g)
{
	struct scan_piece piece;

	while (!is_full(g) && g->p->log_fd >= 0 && scan_next(&g->scan, &piece) > 0)
		add_piece(g, &piece);
	bool is_all = !is_full(g);

	/* The rest of a character may be on its way. */
	end_event(g, is_all && g->p->is_over ? 0 : open_end(g));
	return is_all;
}

static void answer_page(struct call *c, const struct px *p, uint64_t after, size_t limit)
{
	struct page g = { .p = p,
		          .items = json_array(),
		          .text = { .max = PAGE_MAX + EVENT_MAX },
		          .limit = limit };
	char next[24];

	scan_init(&g.scan, p->log_fd, after);
	bool is_all = fill(&g);
	uint64_t end = g.scan.at + 1;

	if (is_all && p->is_over && after < end)
		json_array_append_new(g.items, last_event(p, end));
	/* What was held back is said with the next one. */
	snprintf(next, sizeof next, "%llu", (unsigned long long)(g.order - g.text.len));
	scan_done(&g.scan);
	str_done(&g.text);
	answer_json(c, 200,
	            json_pack("{so,so}", "items", g.items, "next_page_id",
	                      is_all ? json_null() : json_string(next)));
}

static int take_query(struct call *c, uint64_t *after, uint64_t *limit, struct fail *f)
{
	const char *kind = call_query(c, "kind__eq"), *sort = call_query(c, "sort_order");

	if (kind && strcmp(kind, "BashOutput") != 0 && strcmp(kind, "BashCommand") != 0)
		return fail_set(f, FAIL_INVALID, "kind__eq: BashCommand or BashOutput");
	if (sort && strcmp(sort, "TIMESTAMP") != 0)
		return fail_set(f, FAIL_INVALID, "sort_order: TIMESTAMP is what there is");
	if (call_query(c, "timestamp__gte") || call_query(c, "timestamp__lt"))
		return fail_set(f, FAIL_INVALID, "events are found by order, not by time");
	if (query_number(c, "page_id", after, f) < 0 ||
	    query_number(c, "order__gt", after, f) < 0 || query_number(c, "limit", limit, f) < 0)
		return -1;
	if (*limit < 1 || *limit > EVENTS_MAX)
		return fail_set(f, FAIL_INVALID, "limit: 1 to %d", EVENTS_MAX);
	return 0;
}

void hands_search(struct call *c)
{
	const char *id = call_query(c, "command_id__eq"), *kind = call_query(c, "kind__eq");
	struct fail f = { 0 };
	const struct sbx *s = compat_find(c, &f);
	uint64_t after = 0, limit = EVENTS_MAX;

	if (s && !id)
		fail_set(&f, FAIL_INVALID, "command_id__eq is needed");
	struct px *p = s && id && take_query(c, &after, &limit, &f) == 0
	                   ? px_find(c->api->core, c->tenant, id, &f)
	                   : NULL;
	if (p && strcmp(p->sandbox_id, s->id) != 0)
		fail_set(&f, FAIL_NOT_FOUND, "no such process");
	if (!p || f.code != FAIL_NONE)
		answer_fail(c, &f);
	else if (kind && strcmp(kind, "BashCommand") == 0) /* which are of no command */
		answer_json(c, 200, json_pack("{s[],sn}", "items", "next_page_id"));
	else
		answer_page(c, p, after, (size_t)limit);
	if (p)
		px_unref(p);
}

/* ---- one that is waited for ---------------------------------------------------------- */

static void ran(struct call *c, const struct whole_end *end)
{
	struct fail f = { 0 };

	if (!end) {
		fail_set(&f, FAIL_BACKEND_ERROR, "the process could not be recorded and was ended");
		answer_fail(c, &f);
		return;
	}
	json_t *o = last_event(end->p, 0);
	set_text(o, LOG_OUT, end->out);
	if (!end->is_never_run)
		set_text(o, LOG_ERR, end->err);
	answer_json(c, 200, o);
}

static void execute(struct call *c, struct sbx *s)
{
	struct px_ask ask;
	struct fail f = { 0 };

	if (take_command(c, s, &ask, &f) < 0)
		answer_fail(c, &f);
	else
		whole_run(c, s, &ask, (struct span){ "", 0 }, ran);
}

void hands_execute(struct call *c)
{
	compat_enter(c, execute);
}
