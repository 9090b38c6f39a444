/*
 * report_net.c - of a report: who was reached, what was refused, which secrets went out.
 */
#include "cli/report.h"

#define KEY_MAX 1024

/* "example.org:443", "[2001:db8::1]:443" */
static void add_host(struct str *out, const json_t *data)
{
	const char *name = report_text(data, "name"),
		   *host = *name ? name : report_text(data, "dst");
	bool is_v6 = !*name && strchr(host, ':');
	int64_t port = report_number(data, "port");

	str_addf(out, "%s%s%s", is_v6 ? "[" : "", *host ? host : "(many)", is_v6 ? "]" : "");
	if (port > 0)
		str_addf(out, ":%lld", (long long)port);
}

static json_t *row_of(json_t *rows, const char *key)
{
	json_t *row = json_object_get(rows, key);

	if (!row) {
		row = json_object();
		json_object_set_new_nocheck(rows, key, row);
	}
	return row;
}

static void count(json_t *row, const char *key, int64_t more)
{
	json_object_set_new(row, key, json_integer(report_number(row, key) + more));
}

static bool is_denied(const json_t *data)
{
	const char *decision = report_text(data, "decision");

	return strcmp(decision, "deny") == 0 || strcmp(decision, "ask_deny") == 0;
}

/* A connection ends because of a request: that says more. */
static bool is_told(struct report *r, const json_t *record, const json_t *data, const char *host,
                    bool is_request)
{
	AUTO(str_done) struct str key = { .max = KEY_MAX };

	str_addf(&key, "%s\n%s\n%s", report_text(record, "process"), host,
	         report_text(data, "reason"));
	if (is_request)
		json_object_set_new_nocheck(r->told, str_text(&key), json_true());
	return json_object_get(r->told, str_text(&key)) != NULL;
}

/* What was refused: the same by the same command is one row. */
static void take_denied(struct report *r, const json_t *record, const json_t *data,
                        const char *what)
{
	AUTO(str_done) struct str key = { .max = KEY_MAX };
	const char *process = report_text(record, "process"), *reason = report_text(data, "reason");
	int64_t n = report_number(data, "count");

	str_addf(&key, "%s\n%s\n%s", process, what, reason);
	json_t *row = row_of(r->stopped, str_text(&key));

	if (!json_object_get(row, "ts")) {
		json_object_set(row, "ts", json_object_get(record, "ts"));
		json_object_set_new(row, "process", json_string(process));
		json_object_set_new(row, "what", json_string(what));
		json_object_set_new(row, "reason", json_string(reason));
		json_object_set(row, "rule", json_object_get(data, "rule"));
	}
	count(row, "n", n > 0 ? n : 1);
	r->n_denied++;
}

static void take_secrets(struct report *r, const json_t *data, const char *host)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(data, "secrets"), i, name)
	{
		AUTO(str_done) struct str key = { .max = KEY_MAX };

		str_addf(&key, "%s\n%s", json_string_value(name) ? json_string_value(name) : "",
		         host);
		count(row_of(r->secrets, str_text(&key)), "n", 1);
	}
}

static void take_request(struct report *r, const json_t *record, const json_t *data,
                         const char *host)
{
	AUTO(str_done) struct str what = { .max = KEY_MAX };

	if (is_denied(data)) {
		str_addf(&what, "%s %s%s", report_text(data, "method"), host,
		         report_text(data, "path"));
		take_denied(r, record, data, str_text(&what));
		(void)is_told(r, record, data, host, true);
	}
	count(row_of(r->hosts, host), is_denied(data) ? "denied" : "requests", 1);
	take_secrets(r, data, host);
}

/* When it opens and when it closes: the second record has the bytes, and is not counted. */
static void take_connection(struct report *r, const json_t *record, const json_t *data,
                            const char *host)
{
	AUTO(str_done) struct str what = { .max = KEY_MAX };
	json_t *row = row_of(r->hosts, host);
	bool is_open = strcmp(report_text(data, "close"), "open") == 0;

	count(row, "up", report_number(data, "bytes_up"));
	count(row, "down", report_number(data, "bytes_down"));
	if (is_denied(data) && !is_told(r, record, data, host, false)) {
		const char *proto = report_text(data, "proto");

		count(row, "denied", 1);
		bool is_known = *proto && strcmp(proto, "unknown") != 0;

		str_addf(&what, "connect %s%s%s%s", host, is_known ? " (" : "",
		         is_known ? proto : "", is_known ? ")" : "");
		take_denied(r, record, data, str_text(&what));
	} else if (is_open) {
		count(row, "allowed", 1);
	}
}

static void stop(struct report *r, const json_t *record, const char *what, const char *reason)
{
	AUTO(str_done) struct str key = { .max = KEY_MAX };

	str_addf(&key, "%s\n%s\n%s", report_text(record, "process"), what, reason);
	json_t *row = row_of(r->stopped, str_text(&key));

	json_object_set(row, "ts", json_object_get(record, "ts"));
	json_object_set_new(row, "process", json_string(report_text(record, "process")));
	json_object_set_new(row, "what", json_string(what));
	json_object_set_new(row, "reason", json_string(reason));
	count(row, "n", 1);
}

/* A canary on its way out, a secret where it does not belong. */
static void take_found(struct report *r, const json_t *record, const json_t *data)
{
	bool is_canary = strcmp(report_text(record, "kind"), "secret.canary") == 0;
	const char *host = report_text(data, "host");
	AUTO(str_done) struct str what = { .max = KEY_MAX };

	str_addf(&what, "%s %s, by %s%s%s", is_canary ? "the canary" : "the secret",
	         report_text(data, "name"), report_text(data, "way"), *host ? " to " : "", host);
	stop(r, record, str_text(&what), is_canary ? "blocked" : "masked");
}

void report_take_net(struct report *r, const json_t *record)
{
	const char *kind = report_text(record, "kind");
	const json_t *data = json_object_get(record, "data");
	AUTO(str_done) struct str host = { .max = KEY_MAX / 2 };

	add_host(&host, data);
	if (strcmp(kind, "net.connection") == 0) {
		take_connection(r, record, data, str_text(&host));
	} else if (strcmp(kind, "net.request") == 0) {
		take_request(r, record, data, str_text(&host));
	} else if (strcmp(kind, "net.lookup") == 0 && is_denied(data)) {
		AUTO(str_done) struct str what = { .max = KEY_MAX };

		str_addf(&what, "look up %s", report_text(data, "name"));
		count(row_of(r->hosts, report_text(data, "name")), "denied", 1);
		take_denied(r, record, data, str_text(&what));
	} else if (strcmp(kind, "secret.canary") == 0 || strcmp(kind, "secret.masked") == 0) {
		take_found(r, record, data);
	} else if (strcmp(kind, "secret.used") == 0) {
		const char *name = report_text(data, "secret");
		AUTO(str_done) struct str key = { .max = KEY_MAX };

		str_addf(&key, "%s\n%s", *name ? name : report_text(data, "name"),
		         report_text(data, "host"));
		count(row_of(r->secrets, str_text(&key)), "n", 1);
	}
}

/* ---- limits --------------------------------------------------------------------------- */

/* A command that was ended, and limits that it ran into. */
void report_take_limits(struct report *r, const json_t *record)
{
	const json_t *data = json_object_get(record, "data");
	const char *reason = report_text(data, "reason"), *limit;
	json_t *times;

	if (*reason && strcmp(reason, "exited") != 0) {
		stop(r, record, "the command was ended", reason);
		r->n_limits++;
	}
	json_object_foreach(json_object_get(data, "limits"), limit, times)
	{
		AUTO(str_done) struct str what = { .max = KEY_MAX / 2 };

		str_addf(&what, "limit: %s", limit);
		stop(r, record, str_text(&what), "over the limit");
		r->n_limits++;
	}
}

/* In words; what has none is shown as it is. */
static const char *reason_of(const char *word)
{
	static const struct {
		const char *word, *words;
	} rows[] = {
		{ "no_rule", "no rule allows it" },
		{ "rule", "a rule denies it" },
		{ "literal", "an address that no rule has" },
		{ "name_mismatch", "it named another host" },
		{ "no_sni", "it named no host" },
		{ "protocol", "another protocol" },
		{ "special", "a special address" },
		{ "metadata", "metadata of a cloud" },
		{ "budget", "too much of it" },
		{ "ask_timeout", "nobody decided" },
		{ "ask_denied", "somebody said no" },
		{ "http_rule", "method or path" },
		{ "http_bad", "a malformed request" },
		{ "credential", "another credential" },
		{ "git", "a ref that is not allowed" },
		{ "reflected", "a secret in the answer" },
		{ "canary", "it carried a canary" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (strcmp(rows[i].word, word) == 0)
			return rows[i].words;
	return word;
}

/* ---- sections ------------------------------------------------------------------------- */

void report_stopped(struct report *r)
{
	static const char *const heads[] = { "Time", "What", "Why", "Rule", "Times", "By", NULL };
	const char *key;
	json_t *row;
	size_t n = 0;

	page_section(&r->page, "What was stopped");
	if (json_object_size(r->stopped) == 0) {
		page_say(&r->page, PAGE_GOOD,
		         "Nothing: no connection was refused and no limit met.");
		return;
	}
	page_table(&r->page, heads);
	json_object_foreach(r->stopped, key, row)
	{
		char time[32];

		if (n++ >= REPORT_ROWS_MAX)
			continue;
		report_time(report_number(row, "ts"), time);
		page_row(&r->page, PAGE_BAD);
		page_cellf(&r->page, "%s", time);
		page_cell(&r->page, report_text(row, "what"));
		page_cellf(&r->page, "%s", reason_of(report_text(row, "reason")));
		page_cell(&r->page, report_text(row, "rule"));
		page_cellf(&r->page, "%lld", (long long)report_number(row, "n"));
		page_cell(&r->page, report_command(r, report_text(row, "process")));
	}
	if (n > REPORT_ROWS_MAX)
		page_say(&r->page, PAGE_WARN,
		         "There are more than are shown; caisson net has them.");
}

void report_hosts(struct report *r)
{
	static const char *const heads[] = { "Host",     "Connections", "Requests", "Denied",
		                             "Bytes up", "Bytes down",  NULL };
	const char *key;
	json_t *row;
	size_t n = 0;

	page_section(&r->page, "Hosts");
	if (json_object_size(r->hosts) == 0) {
		page_say(&r->page, PAGE_PLAIN, "None was asked for.");
		return;
	}
	page_table(&r->page, heads);
	json_object_foreach(r->hosts, key, row)
	{
		int64_t denied = report_number(row, "denied");
		static const char *const numbers[] = { "allowed", "requests", "denied", "up",
			                               "down" };

		if (n++ >= REPORT_ROWS_MAX)
			continue;
		page_row(&r->page, denied > 0 ? PAGE_BAD : PAGE_PLAIN);
		page_cell(&r->page, key);
		for (size_t i = 0; i < COUNT(numbers); i++)
			page_cellf(&r->page, "%lld", (long long)report_number(row, numbers[i]));
	}
	if (n > REPORT_ROWS_MAX)
		page_say(&r->page, PAGE_WARN, "There are more hosts than are shown.");
}

void report_secrets(struct report *r)
{
	static const char *const heads[] = { "Secret", "For", "Uses", NULL };
	const char *key;
	json_t *row;

	page_section(&r->page, "Secrets");
	if (json_object_size(r->secrets) == 0) {
		page_say(&r->page, PAGE_PLAIN, "None was used.");
		return;
	}
	page_table(&r->page, heads);
	json_object_foreach(r->secrets, key, row)
	{
		size_t n = strcspn(key, "\n");
		char name[256];

		snprintf(name, sizeof name, "%.*s", (int)n, key);
		page_row(&r->page, PAGE_PLAIN);
		page_cell(&r->page, name);
		page_cell(&r->page, key + n + (key[n] == '\n'));
		page_cellf(&r->page, "%lld", (long long)report_number(row, "n"));
	}
}
