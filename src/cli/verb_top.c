/*
 * verb_top.c - what sandboxes use, again every second.
 */
#include "cli/verbs.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/table.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (4u << 20)
#define EACH_MS 1000
#define CLEAR "\033[H\033[J"

struct top_opts {
	struct verb_opts common;
	bool is_once;
};

/* What one sandbox had used when it was last looked at. */
struct seen {
	char id[64];
	int64_t cpu_ms, at_ms;
};

struct top {
	struct client *client;
	VEC(struct seen) seen;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One that has ended meanwhile, or is paused, has no figures: its row says its state. */
static json_t *usage_of(struct top *t, const char *id)
{
	const char *texts[] = { id };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	struct err ignored = { 0 };
	json_t *usage = NULL;

	client_path(&path, "/v1/sandboxes/{}/usage", texts);
	return client_call(t->client, "GET", str_text(&path), NULL, &usage, &ignored) < 0 ? NULL
	                                                                                  : usage;
}

static int collect(struct top *t, json_t **out, struct err *e)
{
	json_t *list = NULL, *s;
	size_t i;

	if (fetch_list(t->client, "/v1/sandboxes", "sandboxes", &list, e) < 0)
		return -1;
	json_array_foreach(list, i, s)
	{
		json_t *usage = usage_of(t, text_of(s, "id"));

		json_object_set_new(s, "usage", usage ? usage : json_null());
	}
	*out = list;
	return 0;
}

/* The one with that id, made when there is none: then at_ms is 0. */
static struct seen *seen_of(struct top *t, const char *id)
{
	for (size_t i = 0; i < t->seen.len; i++)
		if (strcmp(t->seen.at[i].id, id) == 0)
			return &t->seen.at[i];
	vec_push(&t->seen, (struct seen){ 0 });
	struct seen *s = &t->seen.at[t->seen.len - 1];
	snprintf(s->id, sizeof s->id, "%s", id);
	return s;
}

/* Hundredths of one core since the last look; -1: there was none. */
static int64_t cpu_percent(struct top *t, const char *id, int64_t cpu_ms)
{
	struct seen *s = seen_of(t, id);
	int64_t now = now_ms(), percent = -1;

	if (s->at_ms > 0 && now > s->at_ms)
		percent = (cpu_ms - s->cpu_ms) * 100 / (now - s->at_ms);
	s->cpu_ms = cpu_ms;
	s->at_ms = now;
	return percent;
}

static void add_row(struct top *t, struct table *table, const json_t *s)
{
	const json_t *usage = json_object_get(s, "usage");
	bool is_known = json_is_object(usage);
	int64_t cpu_ms = number_of(usage, "cpu_ms");
	int64_t percent = is_known ? cpu_percent(t, text_of(s, "id"), cpu_ms) : -1;

	table_cell(table, text_of(s, "id"));
	table_cell(table, text_of(s, "key"));
	table_cell(table, text_of(s, "state"));
	if (percent >= 0)
		table_cellf(table, "%lld%%", (long long)percent);
	else
		table_cell(table, NULL);
	table_cell(table, is_known ? brief_duration((uint64_t)cpu_ms).text : NULL);
	table_cell(table, is_known ? brief_bytes((uint64_t)number_of(usage, "mem")).text : NULL);
	table_cell(table, is_known ? brief_bytes((uint64_t)number_of(usage, "disk")).text : NULL);
	if (is_known)
		table_cellf(table, "%lld", (long long)number_of(usage, "pids"));
	else
		table_cell(table, NULL);
	table_cell(table, brief_age(number_of(s, "created_ms")).text);
}

static int show(struct top *t, const json_t *list, bool is_live, struct err *e)
{
	static const char *const heads[] = { "ID",  "KEY",  "STATE", "CPU", "CPU-TIME",
		                             "MEM", "DISK", "PIDS",  "AGE", NULL };
	AUTO(table_clear) struct table table;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *s;
	size_t i;

	table_init(&table, heads);
	json_array_foreach(list, i, s) add_row(t, &table, s);
	if (is_live)
		str_add(&out, CLEAR);
	table_print(&table, terminal_width(), &out);
	return print_text(&out, e);
}

/* Ctrl-C ends it, as it ends any program. */
static int watch(struct top *t, bool is_live, struct err *e)
{
	for (;;) {
		AUTO(json_decrefp) json_t *list = NULL;

		if (collect(t, &list, e) < 0 || show(t, list, is_live, e) < 0)
			return -1;
		if (!is_live)
			return 0;
		(void)poll(NULL, 0, EACH_MS);
	}
}

static int top_run(struct verb_call *c, struct err *e)
{
	const struct top_opts *x = c->opts;
	struct top t = { .client = &c->client };
	AUTO(json_decrefp) json_t *list = NULL;
	int r;

	if (x->common.is_json) {
		r = collect(&t, &list, e);
		return r < 0 ? r : print_json(json_pack("{sO}", "sandboxes", list), e);
	}
	r = watch(&t, isatty(STDOUT_FILENO) && !x->is_once, e);
	vec_done(&t.seen);
	return r;
}

/* clang-format off */
static const struct flag top_flags[] = {
	{ '1', FLAG_SWITCH, "once", offsetof(struct top_opts, is_once), NULL, "once, also on a terminal", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_top = { .name = "top",
	                      .usage = "[--once] [--json]",
	                      .does = "what the sandboxes use",
	                      .more = "On a terminal it goes on until Ctrl-C.",
	                      .flags = top_flags,
	                      .n_flags = COUNT(top_flags),
	                      .opts_size = sizeof(struct top_opts),
	                      .run = top_run };
