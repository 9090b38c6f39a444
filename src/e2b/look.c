/*
 * look.c - one sandbox, a page of them, what one uses.
 */
#include <time.h>

#include "e2b/e2b-internal.h"
#include "wire/url.h"

#define LIST_MOST 100
#define FILTER_MAX 4096

/* The years that a timestamp of theirs can have (RFC 3339). A file inside may say any. */
#define TIME_LEAST (-62135596800000ll) /* of year 1 */
#define TIME_MOST 253402300799999ll    /* of year 9999 */

json_t *e2b_time(int64_t ms)
{
	char text[96];
	struct tm tm = { 0 };

	ms = ms < TIME_LEAST ? TIME_LEAST : ms > TIME_MOST ? TIME_MOST : ms;
	int rest = (int)((ms % 1000 + 1000) % 1000);
	time_t s = (time_t)((ms - rest) / 1000);

	(void)gmtime_r(&s, &tm); /* it can be said */
	snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
	         tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, rest);
	return json_string(text);
}

static const char *state_of(const struct sbx *s)
{
	return s->state == SANDBOX_PAUSED || s->state == SANDBOX_STOPPED ||
	               s->state == SANDBOX_STOPPING
	           ? "paused"
	           : "running";
}

static int64_t mebibytes(const struct sbx *s, enum limit_id id)
{
	return (int64_t)(s->spec.limits[id].value >> 20);
}

static json_t *print_listed(const struct sbx *s, const json_t *door)
{
	const char *template = json_string_value(json_object_get(door, "template"));
	int64_t began = s->started_ms ? s->started_ms : s->created_ms;
	int64_t cpus = ((int64_t)s->spec.limits[LIMIT_CPU].value + 999) / 1000;
	char id[E2B_ID_SIZE];
	json_t *labels = json_loads(s->labels, 0, NULL);

	ident_out(s->id, id);
	json_t *o =
	    json_pack("{ss,ss,ss,ss,ss,sI,sI,sI}", "templateID", template ? template : E2B_TEMPLATE,
	              "sandboxID", id, "clientID", "caisson", "envdVersion", E2B_ENVD_VERSION,
	              "state", state_of(s), "cpuCount", (json_int_t)(cpus ? cpus : 1), "memoryMB",
	              (json_int_t)mebibytes(s, LIMIT_MEM), "diskSizeMB",
	              (json_int_t)mebibytes(s, LIMIT_DISK));
	json_object_set_new(o, "startedAt", e2b_time(began));
	/* One that rests has no end: it is said to be now. */
	json_object_set_new(o, "endAt", e2b_time(s->expires_ms ? s->expires_ms : core_now_ms()));
	json_object_set_new(o, "metadata", labels ? labels : json_object());
	json_object_set_new(o, "alias", json_string(template ? template : E2B_TEMPLATE));
	if (json_object_get(door, "volumeMounts"))
		json_object_set(o, "volumeMounts", json_object_get(door, "volumeMounts"));
	return o;
}

void e2b_get(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);
	char token[E2B_TOKEN_SIZE];

	if (!s)
		return;
	json_t *door = e2b_door(s);
	json_t *o = print_listed(s, door);
	json_t *network = json_object_get(door, "network"),
	       *internet = json_object_get(door, "internet");

	if (c->may_exec) { /* whoever has it runs commands */
		ident_token(s, "envd", token);
		json_object_set_new(o, "envdAccessToken", json_string(token));
	}
	json_object_set_new(o, "domain", e2b_domain() ? json_string(e2b_domain()) : json_null());
	json_object_set(o, "allowInternetAccess", internet ? internet : json_null());
	if (network)
		json_object_set(o, "network", network);
	json_object_set_new(o, "lifecycle",
	                    json_pack("{sb,ss}", "autoResume", (s->life & LIFE_WAKES) != 0,
	                              "onTimeout",
	                              s->life & (LIFE_PAUSE | LIFE_STOP) ? "pause" : "kill"));
	json_decref(door);
	e2b_answer(c, 200, o);
}

/* ---- lists --------------------------------------------------------------------------- */

struct listing {
	struct text_pair labels[STORE_LABELS_MAX];
	struct sandbox_query query;
	const char *template, *after;
};

static char *decode(struct call *c, struct span in)
{
	char *buf = arena_alloc(&c->arena, in.len + 1);
	struct err e;

	return url_decode(URL_QUERY, in, buf, in.len + 1, &e) < 0 ? NULL : buf;
}

/* The query's value is itself one: k=v&k=v, each side escaped. */
static int take_metadata(struct call *c, struct listing *l, struct fail *f)
{
	const char *text = call_query(c, "metadata");
	char *buf = arena_alloc(&c->arena, FILTER_MAX);
	struct span rest = span_of(text ? text : "");
	struct url_param p;
	struct err e = { 0 };
	int r;

	while ((r = url_param(&rest, (struct url_buf){ buf, FILTER_MAX }, &p, &e)) > 0) {
		if (l->query.n_labels == STORE_LABELS_MAX)
			return fail_set(f, FAIL_INVALID, "metadata: at most %d at a time",
			                STORE_LABELS_MAX);
		/* Clients escape each side once more. */
		const char *k = decode(c, (struct span){ p.name, p.name_len });
		const char *v = decode(c, (struct span){ p.value, p.value_len });
		if (!k || !v)
			return fail_set(f, FAIL_INVALID, "metadata: not escaped as it should be");
		l->labels[l->query.n_labels++] = (struct text_pair){ k, v };
	}
	return r < 0 ? fail_err(f, &e) : 0;
}

static int take_states(struct call *c, struct listing *l, struct fail *f)
{
	static const struct {
		const char *name;
		uint32_t states;
	} names[] = {
		{ "running", 1u << SANDBOX_CREATING | 1u << SANDBOX_RUNNING |
		                 1u << SANDBOX_REPLACING | 1u << SANDBOX_UNREACHABLE },
		{ "paused", 1u << SANDBOX_PAUSED | 1u << SANDBOX_STOPPING | 1u << SANDBOX_STOPPED },
	};
	const char *text = call_query(c, "state");
	struct span rest = span_of(text ? text : "running,paused");

	while (rest.len > 0) {
		size_t n = strcspn(rest.at, ","), i = 0;
		struct span word = { rest.at, n };

		while (i < COUNT(names) && !span_is(word, names[i].name))
			i++;
		if (i == COUNT(names))
			return fail_set(f, FAIL_INVALID, "state: running or paused");
		l->query.states |= names[i].states;
		rest = span_after(rest, rest.at[n] ? n + 1 : n);
	}
	return 0;
}

static int take_page_of(struct call *c, struct listing *l, struct fail *f)
{
	const char *order = call_query(c, "order");
	uint64_t limit = LIST_MOST;

	if (query_number(c, "limit", &limit, f) < 0)
		return -1;
	if (limit < 1 || limit > LIST_MOST)
		return fail_set(f, FAIL_INVALID, "limit: 1 to %d", LIST_MOST);
	if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
		return fail_set(f, FAIL_INVALID, "order: asc or desc");
	l->query.page =
	    (struct store_page){ .tenant = c->tenant,
		                 .limit = limit,
		                 .cursor = call_query(c, "nextToken"),
		                 .is_oldest_first = order && strcmp(order, "asc") == 0 };
	l->template = call_query(c, "template");
	l->after = call_query(c, "startedAfter");
	return 0;
}

/* Times of ours are always of one form, so letters compare as times do; theirs has the form too. */
static bool is_wanted(const struct listing *l, const json_t *row)
{
	const char *template = json_string_value(json_object_get(row, "templateID"));
	const char *began = json_string_value(json_object_get(row, "startedAt"));

	return (!l->template || strcmp(l->template, template) == 0) &&
	       (!l->after || strcmp(began, l->after) >= 0);
}

static void answer_page(struct call *c, const struct listing *l, const struct sandbox_list *list)
{
	json_t *rows = json_array();
	char running[24];
	size_t n_running = 0;
	const char *extra[] = { "X-Total-Running", running, NULL, NULL, NULL };

	for (size_t i = 0; i < list->n; i++) {
		struct sbx *s = roster_find(&c->api->core->sandboxes, list->rows[i].id);

		if (!s || !e2b_is_there(s))
			continue;
		json_t *door = e2b_door(s), *row = print_listed(s, door);

		n_running += s->state == SANDBOX_RUNNING;
		if (is_wanted(l, row))
			json_array_append(rows, row);
		json_decref(row);
		json_decref(door);
	}
	snprintf(running, sizeof running, "%zu", n_running);
	if (list->next) {
		extra[2] = "X-Next-Token";
		extra[3] = list->next;
	}
	AUTO(freep) char *text = json_dumps(rows, JSON_COMPACT);
	json_decref(rows);
	c->is_answered = true;
	reply(c->r, 200, "application/json", text, strlen(text), extra);
}

static void list(struct call *c, const char *only)
{
	struct listing l = { 0 };
	struct sandbox_list found;
	struct fail f = { 0 };
	struct err e = { 0 };

	l.query.labels = l.labels;
	if (only)
		l.query.states = 1u << SANDBOX_RUNNING;
	if (take_page_of(c, &l, &f) < 0 || take_metadata(c, &l, &f) < 0 ||
	    (!only && take_states(c, &l, &f) < 0) ||
	    (store_sandbox_list(c->api->core->store, &l.query, &c->arena, &found, &e) < 0 &&
	     fail_err(&f, &e) < 0)) {
		answer_fail(c, &f);
		return;
	}
	answer_page(c, &l, &found);
}

void e2b_list(struct call *c)
{
	list(c, NULL);
}

void e2b_list_old(struct call *c)
{
	list(c, "running");
}

/* ---- metrics ------------------------------------------------------------------------- */

struct metrics {
	struct call *call;
	char id[ID_SIZE];
};

static json_t *sample(const struct sbx *s, const struct channel_usage *u)
{
	int64_t now = core_now_ms(), began = s->started_ms ? s->started_ms : s->created_ms;
	double lived_ms = now > began ? (double)(now - began) : 1.0;
	int64_t cpus = ((int64_t)s->spec.limits[LIMIT_CPU].value + 999) / 1000;
	json_t *o = json_pack(
	    "{sI,sI,sf,sI,sI,sI,sI,sI}", "timestampUnix", (json_int_t)(now / 1000), "cpuCount",
	    (json_int_t)(cpus ? cpus : 1), "cpuUsedPct", (double)u->cpu_ms * 100.0 / lived_ms,
	    "memUsed", (json_int_t)u->mem_now, "memTotal",
	    (json_int_t)s->spec.limits[LIMIT_MEM].value, "memCache", (json_int_t)0, "diskUsed",
	    (json_int_t)u->disk_bytes, "diskTotal", (json_int_t)s->spec.limits[LIMIT_DISK].value);

	json_object_set_new(o, "timestamp", e2b_time(now));
	return o;
}

static void used(void *arg, const struct channel_usage *u)
{
	struct metrics *o = arg;
	const struct sbx *s = roster_find(&o->call->api->core->sandboxes, o->id);
	json_t *all = json_array();

	if (s && u)
		json_array_append_new(all, sample(s, u));
	e2b_answer(o->call, 200, all);
	call_unref(o->call);
	free(o);
}

/* There is one sample, and it is of now: nothing is collected ahead. */
void e2b_metrics(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);
	uint64_t start = 0, end = UINT64_MAX, now = (uint64_t)(core_now_ms() / 1000);
	struct fail f = { 0 };

	if (!s)
		return;
	if (query_number(c, "start", &start, &f) < 0 || query_number(c, "end", &end, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	struct metrics *o = mem_alloc(sizeof *o);
	*o = (struct metrics){ .call = call_ref(c) };
	snprintf(o->id, sizeof o->id, "%s", s->id);
	if (start > now || end < now || sbx_usage(s, used, o, &f) < 0)
		used(o, NULL);
}
