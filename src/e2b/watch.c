/*
 * watch.c - changes of a folder: as a stream (WatchDir), or kept until somebody asks
 * (CreateWatcher, GetWatcherEvents, RemoveWatcher). A file worker watches (wire/tree.h,
 * TREE_WATCH).
 *
 * A file that is written here comes by a rename, and what is new is also written to: so what comes
 * to a folder is told as created and, unless it is a folder itself, as written. Attributes and
 * contents are not told apart: both are written.
 */
#include <stdio.h>

#include "base/limits.h"
#include "core/details.h"
#include "e2b/e2b-internal.h"

#define LINE_MAX_BYTES (64u << 10) /* of which a part may wait for the rest: a packet more */
#define EVENTS_MOST 4096           /* that wait; more than that are forgotten, the oldest first */
#define KEPT_MOST 64               /* watchers of one sandbox that nobody is connected to */
#define PING_MS 50000
#define SETTLE_MS 5000 /* a worker that does not say that it has told all: then what there is */

struct watcher {
	struct job job; /* first */
	struct watcher *next;
	struct call *call; /* NULL: nobody listens, events are kept */
	struct core *core;
	char sandbox[ID_SIZE], id[ID_SIZE];
	char *path;
	struct str line;
	json_t *events;          /* that wait */
	json_t *event;           /* whose entry is looked for; NULL: none */
	struct gathering *asked; /* wait until the worker has told all; first come, first served */
	struct timer ping;
	unsigned int refs;
	bool has_entry, is_ready, is_gone;
	bool is_full;    /* the client takes no more for now */
	bool is_sending; /* an answer that comes at once is not another level of it */
};

static struct watcher *kept; /* a process has one API */

static void watcher_unref(struct watcher *w)
{
	if (--w->refs > 0)
		return;
	timer_stop(&w->core->timers, &w->ping);
	if (w->call)
		call_unref(w->call);
	json_decref(w->events);
	json_decref(w->event);
	str_done(&w->line);
	free(w->path);
	free(w);
}

static void settled(struct watcher *w);

static void forget(struct watcher *w)
{
	for (struct watcher **at = &kept; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	while (w->asked)
		settled(w); /* there is no such watcher any more */
}

/* ---- events -------------------------------------------------------------------------- */

static void add(struct watcher *w, const char *name, const char *type)
{
	json_t *o = json_pack("{ss,ss}", "name", name, "type", type);

	if (json_array_size(w->events) >= EVENTS_MOST)
		json_array_remove(w->events, 0);
	json_array_append_new(w->events, o);
}

static void take_event(struct watcher *w, const json_t *line)
{
	static const struct {
		const char *event, *type;
		bool is_new;
	} kinds[] = { { "create", "EVENT_TYPE_CREATE", true },
		      { "move_to", "EVENT_TYPE_CREATE", true },
		      { "modify", "EVENT_TYPE_WRITE", false },
		      { "delete", "EVENT_TYPE_REMOVE", false },
		      { "move_from", "EVENT_TYPE_RENAME", false } };
	const char *event = json_string_value(json_object_get(line, "event"));
	const char *path = json_string_value(json_object_get(line, "path"));

	if (event && strcmp(event, "ready") == 0)
		w->is_ready = true;
	if (event && strcmp(event, "settled") == 0 && w->asked)
		settled(w);
	for (size_t i = 0; event && path && i < COUNT(kinds); i++) {
		if (strcmp(event, kinds[i].event) != 0)
			continue;
		add(w, path, kinds[i].type);
		if (kinds[i].is_new && !json_is_true(json_object_get(line, "dir")))
			add(w, path, "EVENT_TYPE_WRITE");
	}
}

static bool is_there(const json_t *event)
{
	const char *type = json_string_value(json_object_get(event, "type"));

	return strcmp(type, "EVENT_TYPE_REMOVE") != 0 && strcmp(type, "EVENT_TYPE_RENAME") != 0;
}

static void add_path(struct str *out, const char *folder, const json_t *event)
{
	str_addf(out, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder,
	         json_string_value(json_object_get(event, "name")));
}

static void ask_for(struct sbx *s, const char *folder, const json_t *event, errand_fn *done,
                    void *arg)
{
	AUTO(str_done) struct str path = { .max = (size_t)4 * PATH_TEXT_MAX };

	add_path(&path, folder, event);
	errand(s,
	       &(struct errand_ask){
		   .verb = TREE_STAT, .flags = TREE_DETAIL, .path = str_text(&path) },
	       done, arg);
}

static void set_entry(json_t *event, const char *folder, const json_t *stat)
{
	AUTO(str_done) struct str path = { .max = (size_t)4 * PATH_TEXT_MAX };

	add_path(&path, folder, event);
	json_object_set_new(event, "entry", entry_of(stat, str_text(&path)));
}

/* Takes the event. */
static void send_one(struct watcher *w, json_t *event)
{
	w->is_full = !rpc_send(w->call, json_pack("{so}", "filesystem", event));
}

static void send_next(struct watcher *w);

static void looked(void *arg, json_t *answer, const struct fail *f)
{
	struct watcher *w = arg;
	json_t *event = w->event;

	w->event = NULL;
	if (!f)
		set_entry(event, w->path, answer);
	if (w->call && w->call->r) {
		send_one(w, event);
		send_next(w);
	} else {
		json_decref(event);
	}
	watcher_unref(w);
}

/* What a slow client does not take waits here, where there is room for so many. */
static void send_next(struct watcher *w)
{
	if (w->is_sending)
		return;
	w->is_sending = true;
	while (w->call && w->call->r && !w->event && !w->is_full && json_array_size(w->events)) {
		json_t *event = json_incref(json_array_get(w->events, 0));
		struct sbx *s = roster_find(&w->core->sandboxes, w->sandbox);

		json_array_remove(w->events, 0);
		if (!w->has_entry || !s || !is_there(event)) {
			send_one(w, event);
			continue;
		}
		w->event = event;
		w->refs++;
		ask_for(s, w->path, event, looked, w);
	}
	w->is_sending = false;
}

static void on_room(struct request *r)
{
	struct call *c = r->route;
	struct watcher *w = c->state;

	if (!w)
		return;
	w->is_full = false;
	send_next(w);
}

/* ---- the worker ---------------------------------------------------------------------- */

static void begin(struct watcher *w)
{
	rpc_begin(w->call);
	w->call->is_answered = true;
	(void)rpc_send(w->call, json_pack("{s{}}", "start"));
	timer_set(&w->core->timers, &w->ping, PING_MS);
}

static void keep(struct watcher *w)
{
	struct call *c = w->call;

	w->call = NULL;
	c->state = NULL;
	rpc_answer(c, json_pack("{ss}", "watcherId", w->id));
	call_unref(c);
}

static void take_line(struct watcher *w, struct span text)
{
	json_t *line = json_loadb(text.at, text.len, 0, NULL);
	bool was_ready = w->is_ready;

	take_event(w, line);
	json_decref(line);
	if (w->is_ready == was_ready || !w->call || !w->call->r)
		return;
	if (w->id[0])
		keep(w);
	else
		begin(w);
}

static void take_lines(struct watcher *w, struct span bytes)
{
	str_addn(&w->line, bytes.at, bytes.len);
	if (w->line.overflow)
		str_clear(&w->line); /* a line as long as no worker of ours says */
	for (;;) {
		const char *end = w->line.len ? memchr(w->line.data, '\n', w->line.len) : NULL;
		size_t n = end ? (size_t)(end - w->line.data) : 0;

		if (!end)
			break;
		take_line(w, (struct span){ w->line.data, n });
		memmove(w->line.data, w->line.data + n + 1, w->line.len - n - 1);
		w->line.len -= n + 1;
	}
	send_next(w);
}

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct watcher *w = (struct watcher *)j;
	struct fail f = { 0 };

	(void)is_last;
	if (p->answer.code == TREE_OK) {
		take_lines(w, p->data);
		return;
	}
	errand_fail((enum tree_code)p->answer.code, p->data, &f);
	if (w->call) {
		w->call->state = NULL; /* its last word ends it */
		answer_fail(w->call, &f);
	}
}

static void data(struct job *j, struct span bytes)
{
	take_lines((struct watcher *)j, bytes);
}

/* The folder is gone, or the sandbox is. */
static void over(struct job *j, const struct tree_answer *a)
{
	struct watcher *w = (struct watcher *)j;

	(void)a;
	w->is_gone = true;
	forget(w);
	if (w->call && w->call->state == w) {
		w->call->state = NULL;
		if (w->call->r && w->is_ready)
			rpc_end(w->call);
		else if (w->call->r)
			rpc_refuse(w->call, CONNECT_UNAVAILABLE, "the folder is not watched");
	}
	watcher_unref(w);
}

static void left(struct call *c)
{
	struct watcher *w = c->state;

	if (!w)
		return;
	c->state = NULL;
	forget(w);
	files_cancel(&w->job);
	watcher_unref(w);
}

static void ping(struct timer *t)
{
	struct watcher *w = (struct watcher *)(void *)((char *)t - offsetof(struct watcher, ping));

	if (!w->call || !w->call->r)
		return;
	if (!w->is_full)
		w->is_full = !rpc_send(w->call, json_pack("{s{}}", "keepalive"));
	timer_set(&w->core->timers, &w->ping, PING_MS);
}

/* ---- the calls ----------------------------------------------------------------------- */

static int take_ask(struct call *c, struct watcher *w, struct fail *f)
{
	struct e2b_user user;
	const char *path = "";
	bool is_recursive = false;

	if (e2b_user(c, NULL, &user, f) < 0 || member_text(c->body, "path", &path, f) < 0 ||
	    member_bool(c->body, "recursive", &is_recursive, f) < 0 ||
	    member_bool(c->body, "includeEntry", &w->has_entry, f) < 0)
		return -1;
	if (strlen(path) >= PATH_TEXT_MAX / 2)
		return fail_set(f, FAIL_INVALID, "path: too long");
	w->path = mem_strdup(e2b_path(c, &user, path));
	w->job.ask.path = span_of(w->path);
	w->job.ask.flags = is_recursive ? TREE_RECURSIVE : 0;
	return 0;
}

static struct watcher *watcher_new(struct call *c, const struct sbx *s)
{
	struct watcher *w = mem_alloc(sizeof *w);

	*w = (struct watcher){
		.job = { .answer = answered, .data = data, .over = over, .is_long = true },
		.call = call_ref(c),
		.core = c->api->core,
		.line = { .max = LINE_MAX_BYTES + TREE_PACKET_MAX },
		.events = json_array(),
		.refs = 1
	};
	w->ping.fired = ping;
	w->job.ask.request.verb = TREE_WATCH;
	snprintf(w->sandbox, sizeof w->sandbox, "%s", s->id);
	return w;
}

static void start(struct call *c, struct sbx *s, struct watcher *w)
{
	struct fail f = { 0 };

	c->state = w;
	c->over = left;
	c->r->on_room = on_room;
	if (take_ask(c, w, &f) == 0 && files_start(s, &w->job, &f) == 0)
		return;
	c->state = NULL;
	forget(w);
	answer_fail(c, &f);
	watcher_unref(w);
}

void e2b_watch(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	struct fail f = { 0 };

	if (!s)
		return;
	if (rpc_take(c, &f) < 0)
		answer_fail(c, &f);
	else
		start(c, s, watcher_new(c, s));
}

void e2b_watch_make(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	size_t n = 0;

	if (!s)
		return;
	for (const struct watcher *w = kept; w; w = w->next)
		n += strcmp(w->sandbox, s->id) == 0;
	if (n >= KEPT_MOST) {
		rpc_refuse(c, CONNECT_RESOURCE_EXHAUSTED, "too many watchers");
		return;
	}
	struct watcher *w = watcher_new(c, s);
	id_make(w->id, "wt");
	w->next = kept;
	kept = w;
	start(c, s, w);
}

static struct watcher *named(struct call *c)
{
	const char *id = json_string_value(json_object_get(c->body, "watcherId"));
	struct watcher *w = kept;

	while (w && !(id && strcmp(w->id, id) == 0 && strcmp(w->sandbox, c->params[0]) == 0))
		w = w->next;
	if (!w)
		rpc_refuse(c, CONNECT_NOT_FOUND, "no such watcher");
	return w;
}

/* ---- events that were kept ----------------------------------------------------------- */

struct gathering {
	struct gathering *next;
	struct call *call;
	struct timer late;
	json_t *events;
	char *path;
	size_t at;
	bool has_entry;
	bool is_waiting, is_going; /* for an entry; is_going: and it may come at once */
};

static void gather_next(struct gathering *g);

static void gather_end(struct gathering *g)
{
	json_decref(g->events);
	free(g->path);
	call_unref(g->call);
	free(g);
}

static void gathered(void *arg, json_t *answer, const struct fail *f)
{
	struct gathering *g = arg;

	if (!f)
		set_entry(json_array_get(g->events, g->at), g->path, answer);
	g->at++;
	g->is_waiting = false;
	if (!g->is_going)
		gather_next(g);
}

static void gather_next(struct gathering *g)
{
	g->is_going = true;
	while (!g->is_waiting && g->at < json_array_size(g->events)) {
		const json_t *event = json_array_get(g->events, g->at);
		struct sbx *s = roster_find(&g->call->api->core->sandboxes, g->call->params[0]);

		if (!g->has_entry || !g->call->r || !s || !is_there(event)) {
			g->at++;
			continue;
		}
		g->is_waiting = true;
		ask_for(s, g->path, event, gathered, g);
	}
	g->is_going = false;
	if (g->is_waiting)
		return;
	rpc_answer(g->call, json_pack("{sO}", "events", g->events));
	gather_end(g);
}

static void gather(struct gathering *g)
{
	struct watcher *w = g->call->r ? named(g->call) : NULL;

	if (!w) {
		gather_end(g);
		return;
	}
	g->events = w->events;
	g->path = mem_strdup(w->path);
	g->has_entry = w->has_entry;
	w->events = json_array();
	gather_next(g);
}

static void settled(struct watcher *w)
{
	struct gathering *g = w->asked;

	w->asked = g->next;
	timer_stop(&g->call->api->core->timers, &g->late);
	gather(g);
}

static void late(struct timer *t)
{
	struct gathering *g =
	    (struct gathering *)(void *)((char *)t - offsetof(struct gathering, late));

	for (struct watcher *w = kept; w; w = w->next)
		for (struct gathering **at = &w->asked; *at; at = &(*at)->next)
			if (*at == g) {
				*at = g->next;
				gather(g);
				return;
			}
}

/* The worker is asked, so that all is in the answer that was done before the question. */
void e2b_watch_events(struct call *c)
{
	struct watcher *w = e2b_enter(c) ? named(c) : NULL;

	if (!w)
		return;
	struct gathering *g = mem_alloc(sizeof *g);
	struct gathering **at = &w->asked;

	*g = (struct gathering){ .call = call_ref(c), .late.fired = late };
	while (*at)
		at = &(*at)->next;
	*at = g;
	timer_set(&c->api->core->timers, &g->late, SETTLE_MS);
	(void)files_body(&w->job, "", 0, false); /* no room: it is late then */
}

void e2b_watch_remove(struct call *c)
{
	struct watcher *w = e2b_enter(c) ? named(c) : NULL;

	if (!w)
		return;
	forget(w);
	files_cancel(&w->job);
	watcher_unref(w);
	rpc_answer(c, json_object());
}
