/*
 * docker_ps.c - which containers there are, and all about one: ps, inspect, port, top.
 */
#include <regex.h>

#include "cli/docker-internal.h"
#include "cli/docker_template.h"
#include "cli/remote.h"

#define COMMAND_SHOWN 20

/* ---- one row ------------------------------------------------------------------------- */

static void join_words(const json_t *cmd, struct str *out)
{
	for (size_t i = 0; i < json_array_size(cmd); i++) {
		const char *word = json_string_value(json_array_get(cmd, i));

		str_addf(out, "%s%s", i ? " " : "", word ? word : "?");
	}
}

static json_t *text_json(struct str *s)
{
	json_t *v = json_stringn(str_text(s), s->len);

	str_done(s);
	return v ? v : json_string("?");
}

static json_t *command_cell(const struct box *b, bool is_whole)
{
	AUTO(str_done) struct str words = { .max = DOCKER_TEXT_MAX };
	struct str cell = { .max = DOCKER_TEXT_MAX };
	size_t n;

	join_words(box_command(b), &words);
	n = words.len;
	bool is_cut = !is_whole && n > COMMAND_SHOWN;
	if (is_cut)
		n = COMMAND_SHOWN - 1;
	while (is_cut && n > 0 && ((unsigned char)str_text(&words)[n] & 0xc0) == 0x80)
		n--;
	str_addf(&cell, "\"%.*s%s\"", (int)n, str_text(&words), is_cut ? "\xe2\x80\xa6" : "");
	return text_json(&cell);
}

static json_t *status_cell(const struct box *b)
{
	struct str cell = { .max = NAME_TEXT_MAX };

	switch (box_state(b)) {
	case BOX_CREATED:
		str_add(&cell, "Created");
		break;
	case BOX_PAUSED:
	case BOX_RUNNING:
		str_add(&cell, "Up ");
		docker_ago(number_of(b->main ? b->main : b->sandbox, "started_ms"), &cell);
		str_add(&cell, box_state(b) == BOX_PAUSED ? " (Paused)" : "");
		break;
	case BOX_EXITED:
		str_addf(&cell, "Exited (%d) ", box_exit_code(b));
		docker_ago(number_of(b->main ? b->main : b->sandbox, "ended_ms"), &cell);
		str_add(&cell, " ago");
		break;
	case BOX_DEAD:
		str_add(&cell, "Dead");
		break;
	case BOX_STATES:
		break;
	}
	return text_json(&cell);
}

static json_t *ports_cell(const struct box *b)
{
	struct str cell = { .max = DOCKER_PATH_MAX };
	json_t *p;
	size_t i;

	json_array_foreach(json_object_get(b->sandbox, "ports"), i, p)
	    str_addf(&cell, "%s127.0.0.1:%lld->%lld/tcp", i ? ", " : "",
	             (long long)number_of(p, "local_port"), (long long)number_of(p, "port"));
	return text_json(&cell);
}

static json_t *labels_cell(const json_t *labels)
{
	struct str cell = { .max = DOCKER_TEXT_MAX };
	const char *k, *comma = "";
	json_t *v;

	json_object_foreach((json_t *)labels, k, v)
	{
		str_addf(&cell, "%s%s=%s", comma, k, json_string_value(v));
		comma = ",";
	}
	return text_json(&cell);
}

static json_t *mounts_cell(const struct box *b)
{
	const json_t *fs = json_object_get(json_object_get(b->sandbox, "spec"), "fs");
	struct str cell = { .max = DOCKER_PATH_MAX };
	json_t *m;
	size_t i;

	json_array_foreach(fs, i, m)
	{
		const char *src = text_of(m, "src");

		if (*src)
			str_addf(&cell, "%s%s", cell.len ? "," : "", src);
	}
	return text_json(&cell);
}

static json_t *network_of(const struct box *b)
{
	const json_t *net = json_object_get(json_object_get(b->sandbox, "spec"), "net");
	const char *mode = text_of(net, "mode");

	return json_string(*mode && strcmp(mode, "deny") != 0 ? "bridge" : "none");
}

static json_t *row_of(const struct box *b, bool is_whole)
{
	struct str age = { .max = NAME_TEXT_MAX }, made = { .max = NAME_TEXT_MAX };
	char id[DOCKER_ID_SIZE];
	json_t *labels = box_labels(b);

	docker_ago(number_of(b->sandbox, "created_ms"), &age);
	str_add(&age, " ago");
	docker_time(number_of(b->sandbox, "created_ms"), &made);
	snprintf(id, sizeof id, "%.*s", is_whole ? DOCKER_ID_SIZE : DOCKER_SHORT, b->id);
	json_t *row = json_pack(
	    "{so,so,ss,ss,so,so,ss,ss,so,so,ss,ss,ss,so}", "Command", command_cell(b, is_whole),
	    "CreatedAt", text_json(&made), "ID", id, "Image", box_image(b), "Labels",
	    labels_cell(labels), "Mounts", mounts_cell(b), "Names", box_name(b), "LocalVolumes",
	    "0", "Ports", ports_cell(b), "RunningFor", text_json(&age), "Size", "0B", "State",
	    box_state_name(box_state(b)), "Platform", "linux", "Status", status_cell(b));

	json_object_set_new(row, "Networks", network_of(b));
	json_object_set_new(row, TEMPLATE_LABELS, labels);
	return row;
}

/* ---- filters ------------------------------------------------------------------------- */

static bool is_labelled(const struct box *b, const char *text)
{
	AUTO(json_decrefp) json_t *labels = box_labels(b);
	const char *equals = strchr(text, '=');
	char name[NAME_TEXT_MAX];

	snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - text : (long)strlen(text)),
	         text);
	const char *value = json_string_value(json_object_get(labels, name));

	return value && (!equals || strcmp(value, equals + 1) == 0);
}

/* A regular expression, anywhere in the name, with or without the slash of the API in front. */
static bool is_named(const struct box *b, const char *text)
{
	char name[NAME_TEXT_MAX];
	regex_t re;

	snprintf(name, sizeof name, "/%s", box_name(b));
	if (regcomp(&re, text, REG_EXTENDED | REG_NOSUB) != 0)
		return strstr(name, text) != NULL;
	bool is_fit =
	    regexec(&re, name, 0, NULL, 0) == 0 || regexec(&re, name + 1, 0, NULL, 0) == 0;

	regfree(&re);
	return is_fit;
}

static bool has_status(const struct box *b, const char *text)
{
	return strcmp(box_state_name(box_state(b)), text) == 0;
}

static bool has_id(const struct box *b, const char *text)
{
	return strncmp(b->id, text, strlen(text)) == 0;
}

static bool is_of_image(const struct box *b, const char *text)
{
	const char *image = box_image(b);
	size_t n = strlen(text);

	return strcmp(image, text) == 0 || (strncmp(image, text, n) == 0 && image[n] == ':');
}

static bool has_exited(const struct box *b, const char *text)
{
	return box_state(b) == BOX_EXITED && box_exit_code(b) == (int)strtol(text, NULL, 10);
}

static const struct filter {
	const char *name;
	bool (*fits)(const struct box *b, const char *text);
	bool is_for_all; /* asks for those that have ended, too */
} filters[] = {
	{ "name", is_named, false },        { "label", is_labelled, false },
	{ "status", has_status, true },     { "id", has_id, false },
	{ "ancestor", is_of_image, false }, { "exited", has_exited, true },
};

static const struct filter *find_filter(const char *text, const char **value)
{
	size_t n = strcspn(text, "=");

	for (size_t i = 0; text[n] && i < COUNT(filters); i++) {
		if (strlen(filters[i].name) != n || strncmp(filters[i].name, text, n) != 0)
			continue;
		*value = text + n + 1;
		return &filters[i];
	}
	return NULL;
}

static int check_filters(const struct flag_list *list, bool *is_all, struct err *e)
{
	const char *value;

	for (size_t i = 0; i < list->len; i++) {
		const struct filter *f = find_filter(list->at[i], &value);

		if (!f)
			return err_new(e, ERR_NOT_FOUND, "invalid filter '%.*s'",
			               (int)strcspn(list->at[i], "="), list->at[i]);
		*is_all |= f->is_for_all;
	}
	return 0;
}

/* Of one name any, of different names all; labels all. */
static bool fits(const struct box *b, const struct flag_list *list)
{
	const char *value;

	for (size_t k = 0; k < COUNT(filters); k++) {
		bool is_asked = false, is_any = false, is_every = true;

		for (size_t i = 0; i < list->len; i++) {
			if (find_filter(list->at[i], &value) != &filters[k])
				continue;
			bool is_fit = filters[k].fits(b, value);

			is_asked = true;
			is_any |= is_fit;
			is_every &= is_fit;
		}
		if (is_asked && !(filters[k].fits == is_labelled ? is_every : is_any))
			return false;
	}
	return true;
}

/* ---- ps ------------------------------------------------------------------------------ */

struct ps {
	struct verb_opts common;
	bool is_all, is_quiet, is_whole, is_latest, has_size;
	struct flag_number last;
	const char *format;
	struct flag_list filters;
};

static json_t *ps_heads(void)
{
	static const char *const pairs[] = {
		"ID",           "CONTAINER ID",  "Names",      "NAMES",
		"Image",        "IMAGE",         "Command",    "COMMAND",
		"CreatedAt",    "CREATED AT",    "RunningFor", "CREATED",
		"Ports",        "PORTS",         "State",      "STATE",
		"Status",       "STATUS",        "Size",       "SIZE",
		"Labels",       "LABELS",        "Mounts",     "MOUNTS",
		"LocalVolumes", "LOCAL VOLUMES", "Networks",   "NETWORKS",
		"Platform",     "PLATFORM",
	};
	json_t *heads = json_object();

	for (size_t i = 0; i < COUNT(pairs); i += 2)
		json_object_set_new(heads, pairs[i], json_string(pairs[i + 1]));
	json_object_set_new(heads, TEMPLATE_LABELS, json_object());
	return heads;
}

static int ps_run(struct verb_call *c, struct err *e)
{
	const struct ps *x = c->opts;
	AUTO(box_list_done) struct box_list list = { 0 };
	AUTO(json_decrefp) json_t *rows = json_array(), *heads = ps_heads();
	bool is_all = x->is_all || x->is_latest || x->last.is_set;
	size_t most = x->is_latest ? 1 : x->last.is_set ? (size_t)x->last.value : SIZE_MAX;
	struct docker_view view = {
		.format = x->format,
		.otherwise = "table {{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}"
			     "\t{{.Ports}}\t{{.Names}}",
		.heads = heads
	};

	if (check_filters(&x->filters, &is_all, e) < 0 || box_all(&c->client, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.len && json_array_size(rows) < most; i++) {
		enum box_state s = box_state(&list.at[i]);

		if ((is_all || s == BOX_RUNNING || s == BOX_PAUSED) &&
		    fits(&list.at[i], &x->filters))
			json_array_append_new(rows, row_of(&list.at[i], x->is_whole));
	}
	if (x->is_quiet)
		view.format = "{{.ID}}";
	return docker_view_print(&view, rows, e);
}

/* clang-format off */
static const struct flag ps_flags[] = {
	{ 'a',  FLAG_SWITCH, "all",      offsetof(struct ps, is_all), NULL, "those that have ended, too", NULL },
	{ 'q',  FLAG_SWITCH, "quiet",    offsetof(struct ps, is_quiet), NULL, "only their ids", NULL },
	{ 'l',  FLAG_SWITCH, "latest",   offsetof(struct ps, is_latest), NULL, "only the newest", NULL },
	{ 'n',  FLAG_NUMBER, "last",     offsetof(struct ps, last), "N", "only the newest ones", NULL },
	{ 's',  FLAG_SWITCH, "size",     offsetof(struct ps, has_size), NULL, "sizes are never counted: 0B", NULL },
	{ '\0', FLAG_SWITCH, "no-trunc", offsetof(struct ps, is_whole), NULL, "whole ids and commands", NULL },
	{ '\0', FLAG_TEXT,   "format",   offsetof(struct ps, format), "TEMPLATE", "json, table TEMPLATE, or TEMPLATE", NULL },
	{ 'f',  FLAG_LIST,   "filter",   offsetof(struct ps, filters), "NAME=VALUE", "name, label, status, id, ancestor, exited", NULL },
};
/* clang-format on */

const struct verb docker_ps_cmd = { .name = "ps",
	                            .usage = "[OPTIONS]",
	                            .does = "List containers",
	                            .flags = ps_flags,
	                            .n_flags = COUNT(ps_flags),
	                            .opts_size = sizeof(struct ps),
	                            .other = docker_word,
	                            .run = ps_run };

/* ---- port ---------------------------------------------------------------------------- */

static int port_run(struct verb_call *c, struct err *e)
{
	AUTO(box_done) struct box b = { 0 };
	AUTO(str_done) struct str out = { .max = DOCKER_PATH_MAX };
	const char *only = c->words.n > 1 ? c->words.at[1] : NULL;
	json_t *p;
	size_t i;

	if (box_find(&c->client, c->words.at[0], &b, e) < 0)
		return -1;
	json_array_foreach(json_object_get(b.sandbox, "ports"), i, p)
	{
		long long local = number_of(p, "local_port"), port = number_of(p, "port");

		if (!only)
			str_addf(&out, "%lld/tcp -> 127.0.0.1:%lld\n", port, local);
		else if (strtoll(only, NULL, 10) == port)
			str_addf(&out, "127.0.0.1:%lld\n", local);
	}
	if (only && out.len == 0)
		return err_new(e, ERR_NOT_FOUND, "no public port '%s' published for %s", only,
		               c->words.at[0]);
	return print_text(&out, e);
}

const struct verb docker_port_cmd = { .name = "port",
	                              .usage = "CONTAINER [PRIVATE_PORT[/PROTO]]",
	                              .does = "List port mappings for the container",
	                              .opts_size = sizeof(struct verb_opts),
	                              .words_min = 1,
	                              .words_max = 2,
	                              .other = docker_word,
	                              .run = port_run };

/* ---- top ----------------------------------------------------------------------------- */

/* What was started in it by us. Numbers inside are its own business: nobody outside has them. */
static json_t *top_row(const json_t *process, const char *user)
{
	struct str words = { .max = DOCKER_TEXT_MAX };
	AUTO(str_done) struct str at = { .max = NAME_TEXT_MAX };
	int64_t cpu_s = number_of(json_object_get(process, "usage"), "cpu_ms") / 1000;
	char time[32], start[8];

	join_words(json_object_get(process, "cmd"), &words);
	docker_time(number_of(process, "started_ms"), &at);
	snprintf(start, sizeof start, "%.5s", str_text(&at) + strlen("0001-01-01T"));
	snprintf(time, sizeof time, "%02lld:%02lld:%02lld", (long long)(cpu_s / 3600),
	         (long long)(cpu_s / 60 % 60), (long long)(cpu_s % 60));
	return json_pack("{ss,ss,ss,ss,so}", "User", user, "Start", start, "Tty",
	                 json_is_true(json_object_get(process, "tty")) ? "pts" : "?", "Time", time,
	                 "Cmd", text_json(&words));
}

static int top_run(struct verb_call *c, struct err *e)
{
	AUTO(box_done) struct box b = { 0 };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	AUTO(json_decrefp) json_t *list = NULL, *rows = json_array();
	AUTO(json_decrefp)
	json_t *heads = json_pack("{ss,ss,ss,ss,ss}", "User", "UID", "Start", "STIME", "Tty", "TTY",
	                          "Time", "TIME", "Cmd", "CMD");
	const struct docker_view view = {
		.otherwise = "table {{.User}}\t{{.Start}}\t{{.Tty}}\t{{.Time}}\t{{.Cmd}}",
		.heads = heads
	};

	if (box_find(&c->client, c->words.at[0], &b, e) < 0)
		return -1;
	if (box_state(&b) != BOX_RUNNING)
		return err_new(e, ERR_NOT_FOUND, "container %s is not running", b.id);
	const char *texts[] = { box_sandbox(&b) };
	const char *user = text_of(json_object_get(b.sandbox, "spec"), "user");

	client_path(&path, "/v1/processes?sandbox={}&state=running", texts);
	if (fetch_list(&c->client, str_text(&path), "processes", &list, e) < 0)
		return -1;
	for (size_t i = json_array_size(list); i-- > 0;)
		json_array_append_new(rows, top_row(json_array_get(list, i), user));
	return docker_view_print(&view, rows, e);
}

const struct verb docker_top_cmd = { .name = "top",
	                             .usage = "CONTAINER",
	                             .does = "Display the running processes of a container",
	                             .opts_size = sizeof(struct verb_opts),
	                             .words_min = 1,
	                             .words_max = 1,
	                             .other = docker_word,
	                             .run = top_run };
