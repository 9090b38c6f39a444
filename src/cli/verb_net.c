/*
 * verb_net.c - what a sandbox reached (net), and why it may or may not (why).
 */
#include <time.h>

#include "cli/table.h"
#include "cli/verbs.h"
#include "wire/escape.h"

#define TEXT_MAX (64u << 20)
#define PATH_BYTES_MAX 8192

/* ---- net ------------------------------------------------------------------------------ */

struct net_opts {
	struct verb_opts common;
	bool is_followed, is_denied;
	const char *name;
	struct flag_number after;
};

struct net_rows {
	const struct net_opts *opts;
	struct table table;
	bool has_head;
};

static const char *const heads[] = { "TIME", "DECISION", "TARGET", "PROTO", "UP",
	                             "DOWN", "TOOK",     "BY",     NULL };
/* Of lines that come one by one; the last is as long as it is. */
static const int widths[] = { 12, 9, 40, 7, 7, 7, 7 };

struct cells {
	char text[COUNT(heads) - 1][640];
};

static void time_cell(char out[640], int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	localtime_r(&seconds, &tm);
	size_t n = strftime(out, 640, "%H:%M:%S", &tm);
	snprintf(out + n, 640 - n, ".%03d", (int)(ms % 1000));
}

/* "example.org:443", "[2001:db8::1]:443", "GET example.org/path", "12 lookups" */
static void target_cell(char out[640], const json_t *row)
{
	const char *kind = text_of(row, "kind"), *name = text_of(row, "name");
	const char *host = *name ? name : text_of(row, "dst");
	bool is_v6 = !*name && strchr(host, ':');
	int64_t port = number_of(row, "port");

	if (strcmp(kind, "request") == 0)
		snprintf(out, 640, "%s %s%s", text_of(row, "method"), host, text_of(row, "path"));
	else if (!*host)
		snprintf(out, 640, "%lld %s", (long long)number_of(row, "count"), kind);
	else if (port > 0 && strcmp(kind, "lookup") != 0)
		snprintf(out, 640, "%s%s%s:%lld", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
		         (long long)port);
	else
		snprintf(out, 640, "%s", host);
}

/* The rule, why it was denied, and what else there is to say. */
static void by_cell(char out[640], const json_t *row)
{
	const char *rule = text_of(row, "rule"), *reason = text_of(row, "reason");
	const char *close = text_of(row, "close");
	int64_t status = number_of(row, "status");
	int n = snprintf(out, 640, "%s%s%s", reason, *reason && *rule ? ", " : "", rule);

	if (strcmp(close, "open") == 0 || strcmp(close, "lost") == 0)
		n += snprintf(out + n, 640 - (size_t)n, "%s%s", n > 0 ? ", " : "", close);
	if (status > 0)
		n += snprintf(out + n, 640 - (size_t)n, "%s%lld", n > 0 ? ", " : "",
		              (long long)status);
	if (*text_of(row, "cache"))
		snprintf(out + n, 640 - (size_t)n, ", cache %s", text_of(row, "cache"));
}

static void fill_cells(struct cells *c, const json_t *row)
{
	time_cell(c->text[0], number_of(row, "ts_ms"));
	snprintf(c->text[1], 640, "%s", text_of(row, "decision"));
	target_cell(c->text[2], row);
	snprintf(c->text[3], 640, "%s",
	         strcmp(text_of(row, "kind"), "lookup") == 0 ? "dns" : text_of(row, "proto"));
	snprintf(c->text[4], 640, "%s", brief_bytes((uint64_t)number_of(row, "bytes_up")).text);
	snprintf(c->text[5], 640, "%s", brief_bytes((uint64_t)number_of(row, "bytes_down")).text);
	snprintf(c->text[6], 640, "%s", brief_duration((uint64_t)number_of(row, "ms")).text);
	by_cell(c->text[7], row);
}

static void add_padded(struct str *line, const char *text, size_t i)
{
	AUTO(str_done) struct str shown = { .max = 8192 };

	escape_text(text, &shown);
	if (i < COUNT(widths))
		str_addf(line, "%-*s ", widths[i], str_text(&shown));
	else
		str_add(line, str_text(&shown));
}

static int print_row(struct net_rows *r, const struct cells *c, struct err *e)
{
	AUTO(str_done) struct str text = { .max = 65536 };

	for (size_t i = 0; heads[i] && !r->has_head; i++)
		add_padded(&text, heads[i], i);
	if (!r->has_head)
		str_add(&text, "\n");
	r->has_head = true;
	for (size_t i = 0; i < COUNT(c->text); i++)
		add_padded(&text, c->text[i], i);
	str_add(&text, "\n");
	return print_text(&text, e);
}

static int take_row(void *arg, const json_t *row, struct err *e)
{
	struct net_rows *r = arg;
	struct cells c;

	if (r->opts->common.is_json)
		return print_json(json_deep_copy(row), e);
	fill_cells(&c, row);
	if (r->opts->is_followed)
		return print_row(r, &c, e);
	for (size_t i = 0; i < COUNT(c.text); i++)
		table_cell(&r->table, c.text[i]);
	return 0;
}

static int net_run(struct verb_call *c, struct err *e)
{
	const struct net_opts *x = c->opts;
	struct net_rows rows = { .opts = x };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(str_done) struct str text = { .max = TEXT_MAX };
	char after[32];
	const char *texts[] = { c->words.at[0], after, x->name };

	snprintf(after, sizeof after, "%llu", (unsigned long long)x->after.value);
	client_path(&path,
	            x->name ? "/v1/sandboxes/{}/connections?after={}&name={}"
	                    : "/v1/sandboxes/{}/connections?after={}",
	            texts);
	str_add(&path, x->is_followed ? "&follow=1" : "");
	str_add(&path, x->is_denied ? "&decision=deny" : "");
	table_init(&rows.table, heads);
	int r = fetch_lines(&c->client, str_text(&path), take_row, &rows, e);
	if (r == 0 && !x->common.is_json && !x->is_followed) {
		table_print(&rows.table, terminal_width(), &text);
		r = print_text(&text, e);
	}
	table_clear(&rows.table);
	return r;
}

/* clang-format off */
static const struct flag net_flags[] = {
	{ 'f',  FLAG_SWITCH, "follow", offsetof(struct net_opts, is_followed), NULL, "go on until the sandbox ends", NULL },
	{ '\0', FLAG_SWITCH, "denied", offsetof(struct net_opts, is_denied), NULL, "only what was denied", NULL },
	{ '\0', FLAG_TEXT,   "name",   offsetof(struct net_opts, name), "HOST", "only this host", NULL },
	{ '\0', FLAG_NUMBER, "after",  offsetof(struct net_opts, after), "SEQ", "only what changed after this position", NULL },
	{ '\0', FLAG_SWITCH, "json",   offsetof(struct verb_opts, is_json), NULL, "the API's records, one on a line", NULL },
};
/* clang-format on */

const struct verb cmd_net = { .name = "net",
	                      .usage = "SANDBOX [options]",
	                      .does = "what a sandbox reached, and what was denied",
	                      .more =
	                          "With -f a connection is shown when it opens and again when it "
	                          "is closed. New rules: caisson policy set.",
	                      .flags = net_flags,
	                      .n_flags = COUNT(net_flags),
	                      .words = "sandbox",
	                      .opts_size = sizeof(struct net_opts),
	                      .words_min = 1,
	                      .words_max = 1,
	                      .run = net_run };

/* ---- why ------------------------------------------------------------------------------ */

#define HOST_SIZE 320

/* HOST, HOST:PORT, [V6]:PORT, V6 */
static int split_host(const char *text, char host[HOST_SIZE], char port[8], struct err *e)
{
	const char *colon = strrchr(text, ':');
	bool is_v6 = colon && strchr(text, ':') != colon;
	size_t n = strlen(text);

	if (text[0] == '[') {
		const char *close = strchr(text, ']');

		if (!close || (close[1] && close[1] != ':'))
			return err_new(e, ERR_INVALID, "[ADDRESS]:PORT is expected");
		colon = close[1] ? close + 1 : NULL;
		n = (size_t)(close - text) - 1;
		text++;
	} else if (is_v6) {
		colon = NULL;
	} else if (colon) {
		n = (size_t)(colon - text);
	}
	if (n == 0 || n >= HOST_SIZE || (colon && (!colon[1] || strlen(colon + 1) > 5)))
		return err_new(e, ERR_INVALID, "HOST or HOST:PORT is expected");
	snprintf(host, HOST_SIZE, "%.*s", (int)n, text);
	snprintf(port, 8, "%s", colon ? colon + 1 : "443");
	return 0;
}

static int print_why(const json_t *why, struct err *e)
{
	const char *decision = text_of(why, "decision"), *rule = text_of(why, "rule");
	const char *reason = text_of(why, "reason"), *add = text_of(why, "would_allow");
	const json_t *asked = json_object_get(why, "approval");
	AUTO(str_done) struct str text = { .max = 8192 };
	AUTO(str_done) struct str shown = { .max = 8192 };

	str_addf(&text, "%s:%lld: %s", text_of(why, "host"), (long long)number_of(why, "port"),
	         decision);
	if (*rule)
		str_addf(&text, ", by %s", rule);
	if (*reason)
		str_addf(&text, " (%s)", reason);
	escape_text(str_text(&text), &shown);
	str_add(&shown, "\n");
	if (json_is_object(asked))
		str_addf(&shown, "approval: %s is %s\n", text_of(asked, "id"),
		         text_of(asked, "state"));
	if (*add) {
		str_add(&shown, "would allow it: ");
		escape_text(add, &shown);
		str_add(&shown, "\n");
	}
	return print_text(&shown, e);
}

static int why_run(struct verb_call *c, struct err *e)
{
	const struct verb_opts *x = c->opts;
	char host[HOST_SIZE], port[8];
	const char *texts[] = { c->words.at[0], host, port };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *why = NULL;

	if (split_host(c->words.at[1], host, port, e) < 0)
		return -1;
	client_path(&path, "/v1/sandboxes/{}/why?host={}&port={}", texts);
	if (client_call(&c->client, "GET", str_text(&path), NULL, &why, e) < 0 ||
	    (x->is_json ? print_json(json_incref(why), e) : print_why(why, e)) < 0)
		return -1;
	return strcmp(text_of(why, "decision"), "deny") == 0 ? EXIT_REFUSED : 0;
}

static const struct flag why_flags[] = { FLAG_JSON };

const struct verb cmd_why = { .name = "why",
	                      .usage = "SANDBOX HOST[:PORT] [--json]",
	                      .does = "which rule decides about a host, and what would allow it",
	                      .more = "Port 443 unless given. Exit status 1: it is denied.",
	                      .flags = why_flags,
	                      .n_flags = COUNT(why_flags),
	                      .words = "sandbox",
	                      .opts_size = sizeof(struct verb_opts),
	                      .words_min = 2,
	                      .words_max = 2,
	                      .run = why_run };
