/*
 * verb_mcp.c - the Model Context Protocol on standard input and output: each line is a request to
 * POST /mcp, each message of an answer is a line. What a message means is the daemon's business.
 *
 *   a line ─▷ a connection of its own ─▷ one JSON text, or events ─▷ lines
 *
 * Requests run side by side. A notification that takes one back hangs up on it, which is how the
 * daemon hears of that, and nothing more is said about it. The end of the input is the end.
 */
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/verbs.h"
#include "wire/jsonrpc.h"

#define LINE_MAX_BYTES (8u << 20)
#define ANSWER_MAX_BYTES (64u << 20)
#define REQUESTS_MAX 64
#define FLIGHTS_MAX (REQUESTS_MAX + 16) /* with answers to what the daemon asks */
#define LAST_MS 1000                    /* for answers that are nearly there when the input ends */
#define PATH_BYTES_MAX 8192

struct mcp_opts {
	struct verb_opts common;
	const char *workspace, *key;
	bool is_conformance;
};

/* One request on its way. */
struct flight {
	struct client client;
	struct client_answer answer;
	struct client_ask ask;
	struct rpc rpc;    /* what was asked */
	struct str text;   /* of the answer, not yet said */
	bool has_begun;    /* its head is there */
	bool has_answered; /* something with its id was said */
};

struct bridge {
	const struct address *address;
	struct str path;
	struct str in; /* of a line */
	char *session; /* NULL: none */
	struct flight *flights[FLIGHTS_MAX];
	size_t n_flights;
	bool is_ended;
};

/* ---- lines ----------------------------------------------------------------------------- */

static int say(struct span text, struct err *e)
{
	AUTO(str_done) struct str line = { .max = ANSWER_MAX_BYTES };

	str_addn(&line, text.at, text.len);
	str_add(&line, "\n");
	return write_all(STDOUT_FILENO, line.data, line.len, e);
}

static int say_json(json_t *message, struct err *e)
{
	char *text = json_dumps(message, JSON_COMPACT);
	int r = say(span_of(text), e);

	json_decref(message);
	free(text);
	return r;
}

/* Of a request, and of nothing else. */
static int say_error(struct flight *f, const char *text, struct err *e)
{
	if (f->rpc.kind != RPC_REQUEST || !f->rpc.id)
		return 0;
	f->has_answered = true;
	return say_json(rpc_error(json_incref(f->rpc.id), RPC_INTERNAL, text, NULL), e);
}

/* Only what is a message goes out; what the daemon says besides becomes one. */
static int say_answer(struct bridge *b, struct flight *f, struct span text, struct err *e)
{
	AUTO(json_decrefp) json_t *o = json_loadb(text.at, text.len, 0, NULL);
	const json_t *meta = json_object_get(json_object_get(o, "result"), "_meta");
	const char *session = json_string_value(json_object_get(meta, MCP_SESSION));

	if (session && !b->session)
		b->session = mem_strdup(session);
	f->has_answered |= json_object_get(o, "result") || json_object_get(o, "error");
	if (json_object_get(o, "jsonrpc"))
		return say(text, e);
	const char *detail = json_string_value(json_object_get(o, "detail"));
	return say_error(f, detail ? detail : "the daemon's answer is none", e);
}

/* ---- answers --------------------------------------------------------------------------- */

static void flight_free(struct bridge *b, size_t i)
{
	struct flight *f = b->flights[i];

	client_done(&f->client);
	rpc_done(&f->rpc);
	str_done(&f->text);
	free(f);
	b->flights[i] = b->flights[--b->n_flights];
}

/* "data: …" of each event; the rest of an event says nothing here. */
static int take_events(struct bridge *b, struct flight *f, struct err *e)
{
	static const char data[] = "data: ";
	struct span rest = { str_text(&f->text), f->text.len };
	const char *end;

	while ((end = memchr(rest.at, '\n', rest.len))) {
		struct span line = { rest.at, (size_t)(end - rest.at) };

		rest = span_after(rest, line.len + 1);
		if (line.len > strlen(data) && memcmp(line.at, data, strlen(data)) == 0 &&
		    say_answer(b, f, span_after(line, strlen(data)), e) < 0)
			return -1;
	}
	memmove(f->text.data, rest.at, rest.len);
	f->text.len = rest.len;
	return 0;
}

static bool is_events(const struct flight *f)
{
	return f->text.len > 0 && f->text.data[0] != '{';
}

/* `lost`: why there is no more of it; "": it is whole. */
static int finish(struct bridge *b, struct flight *f, const char *lost, struct err *e)
{
	struct span text = { str_text(&f->text), f->text.len };

	if (f->answer.status == 202 || f->has_answered)
		return 0;
	if (*lost)
		return say_error(f, lost, e);
	return say_answer(b, f, is_events(f) ? span_of("") : text, e);
}

/* 1: there is more to come; 0: it is over; -1: our own output failed. */
static int receive(struct bridge *b, struct flight *f, struct err *e)
{
	struct err lost = { 0 };
	struct span piece;
	int r = 1;

	if (!f->has_begun) {
		f->has_begun = true;
		r = client_begin(&f->client, &f->ask, &f->answer, &lost);
		if (r < 0)
			return finish(b, f, lost.msg, e);
	}
	while ((r = client_read_some(&f->client, &f->answer, &piece, &lost)) == 1) {
		str_addn(&f->text, piece.at, piece.len);
		if (is_events(f) && take_events(b, f, e) < 0)
			return -1;
	}
	if (r == CLIENT_LATER)
		return 1;
	return finish(b, f, r < 0 ? lost.msg : "", e) < 0 ? -1 : 0;
}

/* ---- requests -------------------------------------------------------------------------- */

static void take_back(struct bridge *b, const json_t *id)
{
	for (size_t i = 0; i < b->n_flights; i++)
		if (b->flights[i]->rpc.id && json_equal(b->flights[i]->rpc.id, id)) {
			flight_free(b, i);
			return;
		}
}

static int send_line(struct bridge *b, struct span line, struct err *e)
{
	struct flight *f = mem_alloc(sizeof *f);
	const char *headers[] = { "Accept",
		                  "application/json, text/event-stream",
		                  "Connection",
		                  "close", /* its end is something to wait for */
		                  b->session ? "Mcp-Session-Id" : NULL,
		                  b->session,
		                  NULL };
	struct rpc_fault fault;
	struct err lost = { 0 };

	*f = (struct flight){ .text = { .max = ANSWER_MAX_BYTES } };
	client_init(&f->client);
	f->client.address = *b->address;
	f->ask = (struct client_ask){ .method = "POST", .path = str_text(&b->path) };
	struct client_ask ask = f->ask;
	ask.body = line;
	ask.headers = headers;
	(void)!rpc_parse(line.at, line.len, &f->rpc, &fault); /* the daemon says what is wrong */
	b->flights[b->n_flights++] = f;
	if (client_send(&f->client, &ask, &lost) == 0)
		return 0;
	int r = say_error(f, lost.msg, e);
	flight_free(b, b->n_flights - 1);
	return r;
}

static int take_line(struct bridge *b, struct span line, struct err *e)
{
	struct rpc rpc;
	struct rpc_fault fault;
	int r = 0;

	if (line.len == 0)
		return 0;
	bool is_back = rpc_parse(line.at, line.len, &rpc, &fault) == 0 &&
	               rpc.kind == RPC_NOTIFICATION &&
	               strcmp(rpc.method, "notifications/cancelled") == 0;
	if (is_back)
		take_back(b, json_object_get(rpc.params, "requestId"));
	else if (b->n_flights < (rpc.kind == RPC_REQUEST ? REQUESTS_MAX : FLIGHTS_MAX))
		r = send_line(b, line, e);
	else if (rpc.kind == RPC_REQUEST && rpc.id)
		r = say_json(
		    rpc_error(json_incref(rpc.id), RPC_INTERNAL, "too many requests at once", NULL),
		    e);
	rpc_done(&rpc);
	return r;
}

/* What came of standard input, line by line. */
static int read_lines(struct bridge *b, struct err *e)
{
	char buf[65536];
	ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
	const char *end;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : err_sys(e, errno, "read");
	b->is_ended = n == 0;
	str_addn(&b->in, buf, (size_t)n);
	if (b->is_ended && b->in.len > 0)
		str_add(&b->in, "\n"); /* the last line may have no end of its own */
	if (b->in.overflow)
		return err_new(e, ERR_LIMIT, "a line has more than %u bytes", LINE_MAX_BYTES);
	struct span rest = { str_text(&b->in), b->in.len };
	while ((end = memchr(rest.at, '\n', rest.len))) {
		struct span line = { rest.at, (size_t)(end - rest.at) };

		rest = span_after(rest, line.len + 1);
		if (line.len > 0 && line.at[line.len - 1] == '\r')
			line.len--;
		if (take_line(b, line, e) < 0)
			return -1;
	}
	if (b->in.len > 0)
		memmove(b->in.data, rest.at, rest.len);
	b->in.len = rest.len;
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------- */

/* 1: go on; 0: nothing came in time; -1. */
static int turn(struct bridge *b, struct err *e)
{
	struct pollfd p[FLIGHTS_MAX + 1];
	size_t n = b->n_flights;
	struct flight *who[FLIGHTS_MAX];

	for (size_t i = 0; i < n; i++) {
		who[i] = b->flights[i];
		p[i] = (struct pollfd){ .fd = who[i]->client.fd, .events = POLLIN };
	}
	p[n] = (struct pollfd){ .fd = b->is_ended ? -1 : STDIN_FILENO, .events = POLLIN };
	(void)waitpid(-1, NULL, WNOHANG); /* a daemon that we started may have ended since */
	int r = poll(p, n + 1, b->is_ended ? LAST_MS : -1);
	if (r < 0)
		return errno == EINTR ? 1 : err_sys(e, errno, "poll");
	if (r == 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		r = p[i].revents ? receive(b, who[i], e) : 1;
		if (r < 0)
			return -1;
		for (size_t k = 0; r == 0 && k < b->n_flights; k++)
			if (b->flights[k] == who[i]) {
				flight_free(b, k);
				break;
			}
	}
	return p[n].revents && read_lines(b, e) < 0 ? -1 : 1;
}

/* The workspace is there, or is made: who starts us hears at once when it is not. */
static int bind_to(struct verb_call *c, const struct mcp_opts *x, struct err *e)
{
	const char *name = x->key ? x->key : x->workspace;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	if (x->key && x->workspace)
		return err_new(e, ERR_INVALID, "--workspace or --key, not both");
	client_path(&path, name ? "/v1/workspaces/{}" : "/v1/health", &name);
	return client_call(&c->client, x->key ? "PUT" : "GET", str_text(&path),
	                   x->key ? json_object() : NULL, NULL, e);
}

static int mcp_run(struct verb_call *c, struct err *e)
{
	const struct mcp_opts *x = c->opts;
	const char *name = x->key ? x->key : x->workspace;
	struct bridge b = { .path = { .max = PATH_BYTES_MAX }, .in = { .max = LINE_MAX_BYTES } };
	int r = bind_to(c, x, e);

	if (r < 0)
		return -1;
	b.address = &c->client.address;
	client_path(&b.path, name ? "/mcp?stdio=1&workspace={}" : "/mcp?stdio=1", &name);
	if (x->is_conformance)
		str_add(&b.path, "&conformance=1");
	do {
		r = turn(&b, e);
	} while (r > 0 && !(b.is_ended && b.n_flights == 0));
	while (b.n_flights > 0)
		flight_free(&b, 0);
	str_done(&b.path);
	str_done(&b.in);
	free(b.session);
	return r < 0 ? -1 : 0;
}

/* clang-format off */
static const struct flag mcp_flags[] = {
	{ '\0', FLAG_TEXT,   "workspace",   offsetof(struct mcp_opts, workspace), "WORKSPACE", "all tools are about this one", NULL },
	{ '\0', FLAG_TEXT,   "key",         offsetof(struct mcp_opts, key), "KEY", "the same, and it is made when there is none with this key", NULL },
	{ '\0', FLAG_SWITCH, "conformance", offsetof(struct mcp_opts, is_conformance), NULL, "of a daemon of the tests: what the protocol's conformance suite wants to see", NULL },
};
/* clang-format on */

const struct verb cmd_mcp = {
	.name = "mcp",
	.usage = "[--workspace WORKSPACE | --key KEY]",
	.does = "a server of the Model Context Protocol on standard input and output",
	.more =
	    "For agents: bash, read, write, edit, glob, grep, process, git and workspace, all of "
	    "it in a sandbox (docs/agents.md). It ends with its input.",
	.flags = mcp_flags,
	.n_flags = COUNT(mcp_flags),
	.opts_size = sizeof(struct mcp_opts),
	.words_max = 0,
	.run = mcp_run
};
