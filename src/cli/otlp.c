#include "cli/otlp.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/verb.h"
#include "wire/ledger_export.h"

#define RECORDS_MAX 512 /* of one request */
#define LINES_MAX (1u << 20)
#define TRIES 8
#define TRY_MS 250 /* and twice as long each time: about half a minute in all */
#define PORT_DEFAULT "4318"

void otlp_init(struct otlp *o)
{
	*o = (struct otlp){ .records = json_array() };
	client_init(&o->collector);
}

void otlp_done(struct otlp *o)
{
	client_done(&o->collector);
	json_decref(o->records);
	o->records = NULL;
}

/* ---- where ---------------------------------------------------------------------------- */

static int take_url(struct otlp *o, const char *url, struct err *e)
{
	static const char scheme[] = "http://";
	struct address *a = &o->collector.address;
	size_t skip = sizeof scheme - 1;

	if (strncmp(url, scheme, skip) != 0)
		return err_new(e, ERR_INVALID,
		               "--otlp: http://HOST:PORT; a collector on this host can pass on by "
		               "TLS");
	size_t n = strcspn(url + skip, "/");
	const char *path = url + skip + n, *colon = memchr(url + skip, ':', n);

	if (n == 0 || n + sizeof PORT_DEFAULT + 1 > sizeof a->host || strpbrk(url, " @#\r\n") ||
	    strlen(path) >= sizeof o->path)
		return err_new(e, ERR_INVALID, "--otlp: not an address");
	*a = (struct address){ .is_tcp = true, .is_named = true };
	snprintf(a->host, sizeof a->host, "%.*s%s", (int)n, url + skip,
	         colon ? "" : ":" PORT_DEFAULT);
	snprintf(o->path, sizeof o->path, "%s", path[0] && path[1] ? path : "/v1/logs");
	return 0;
}

static int read_cursor(const char *file, uint64_t *after, struct err *e)
{
	AUTO(fd_close) int fd = open(file, O_RDONLY | O_CLOEXEC);
	char text[32] = "", *end;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "open %s", file);
	if (read(fd, text, sizeof text - 1) < 0)
		return err_sys(e, errno, "read %s", file);
	*after = strtoull(text, &end, 10);
	return end == text || *end != '\n' ? err_new(e, ERR_INVALID, "%s is no cursor", file) : 0;
}

/* Whole or not at all. */
static int write_cursor(const struct otlp *o, struct err *e)
{
	char text[32], made[PATH_TEXT_MAX];
	int n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)o->seq);

	if (snprintf(made, sizeof made, "%s.new", o->cursor) >= (int)sizeof made)
		return err_new(e, ERR_INVALID, "--cursor: too long");
	AUTO(fd_close) int fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, errno, "open %s", made);
	if (write_all(fd, text, (size_t)n, e) < 0)
		return -1;
	if (fsync(fd) < 0 || rename(made, o->cursor) < 0)
		return err_sys(e, errno, "write %s", o->cursor);
	return 0;
}

int otlp_open(struct otlp *o, const char *url, const char *cursor, uint64_t *after, struct err *e)
{
	o->cursor = cursor;
	if (take_url(o, url, e) < 0)
		return -1;
	return cursor && after ? read_cursor(cursor, after, e) : 0;
}

/* ---- sending -------------------------------------------------------------------------- */

/* What the protocol calls retryable. */
static bool is_for_later(int status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static int ended(struct otlp *o, struct client_answer *a, struct err *e)
{
	AUTO(str_done) struct str body = { .max = LINES_MAX };
	struct span piece;
	int r;

	while ((r = client_read(&o->collector, a, &piece, e)) > 0)
		str_addn(&body, piece.at, piece.len);
	if (r < 0)
		return -1;
	AUTO(json_decrefp) json_t *said = json_loadb(str_text(&body), body.len, 0, NULL);
	const json_t *partial = json_object_get(said, "partialSuccess");
	const json_t *n = json_object_get(partial, "rejectedLogRecords");

	/* A 64-bit number of that protocol is a text. */
	if (json_integer_value(n) != 0 ||
	    (json_is_string(n) && strtoll(json_string_value(n), NULL, 10) != 0))
		return err_new(e, ERR_INTERNAL, "the collector refuses some of the records");
	return 0;
}

static void hang_up(struct otlp *o)
{
	const struct address a = o->collector.address;

	client_done(&o->collector);
	client_init(&o->collector);
	o->collector.address = a;
}

/* 1: it was taken; 0: later. */
static int try_once(struct otlp *o, const char *body, struct err *e)
{
	const struct client_ask ask = { .method = "POST", .path = o->path, .body = span_of(body) };
	struct client_answer a;

	if (client_begin(&o->collector, &ask, &a, e) < 0)
		return 0; /* it may come back */
	if (is_for_later(a.status)) {
		hang_up(o);
		return err_new(e, ERR_INTERNAL, "the collector is busy: status %d", a.status), 0;
	}
	if (a.status < 200 || a.status > 299)
		return err_new(e, ERR_INTERNAL, "the collector says no: status %d", a.status);
	return ended(o, &a, e) < 0 ? -1 : 1;
}

static int flush(struct otlp *o, struct err *e)
{
	size_t n = json_array_size(o->records);
	int r = 0;

	if (n == 0)
		return 0;
	json_t *request = ledger_otlp_request(json_incref(o->records));
	AUTO(freep) char *body = json_dumps(request, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(request);
	for (unsigned int i = 0; i < TRIES && r == 0; i++) {
		const uint64_t ms = (uint64_t)TRY_MS << i;
		const struct timespec pause = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

		*e = (struct err){ 0 };
		r = try_once(o, body, e);
		if (r == 0 && i + 1 < TRIES)
			(void)nanosleep(&pause, NULL);
	}
	if (r <= 0)
		return -1;
	o->n_sent += n;
	o->seq = o->next;
	json_array_clear(o->records);
	return o->cursor ? write_cursor(o, e) : 0;
}

static int take_line(struct otlp *o, struct span line, struct err *e)
{
	struct ledger_line l;
	json_t *record = ledger_parse(line, &l) < 0 ? NULL : ledger_otlp(line);

	if (!record)
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: a record");
	json_array_append_new(o->records, record);
	o->next = l.seq;
	return json_array_size(o->records) < RECORDS_MAX ? 0 : flush(o, e);
}

static int take_lines(struct otlp *o, struct str *in, struct err *e)
{
	struct span rest = { str_text(in), in->len };
	const char *newline;

	while ((newline = memchr(rest.at, '\n', rest.len))) {
		const struct span line = { rest.at, (size_t)(newline - rest.at) };

		rest = span_after(rest, line.len + 1);
		if (take_line(o, line, e) < 0)
			return -1;
	}
	memmove(in->data, rest.at, rest.len);
	in->len = rest.len;
	in->data[in->len] = '\0';
	return flush(o, e);
}

int otlp_push(struct otlp *o, struct client *daemon, const char *path, struct err *e)
{
	static const char *const headers[] = { "Accept", "application/x-ndjson", NULL };
	const struct client_ask ask = { .method = "GET", .path = path, .headers = headers };
	AUTO(str_done) struct str in = { .max = LINES_MAX };
	struct client_answer a;
	struct span piece;
	int r;

	if (client_begin(daemon, &ask, &a, e) < 0 || client_check(daemon, &a, e) < 0)
		return -1;
	while ((r = client_read(daemon, &a, &piece, e)) > 0) {
		str_addn(&in, piece.at, piece.len);
		if (in.overflow)
			return err_new(e, ERR_INTERNAL,
			               "the daemon's answer is malformed: a record");
		if (take_lines(o, &in, e) < 0)
			return -1;
	}
	return r;
}
