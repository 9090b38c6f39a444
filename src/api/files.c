/*
 * files.c - /v1/sandboxes/{id}/files… and /v1/workspaces/{id}/files…: requests for the worker
 * inside, and its answers as they come. Of a workspace the worker is in a sandbox of our own. Paths
 * are bytes; nothing of an answer is understood here but its code and its size.
 */
#include "core/files.h"

#include "api/handlers.h"
#include "core/workspace.h"
#include "engine/command.h"

struct file_op {
	struct job job; /* first */
	struct call *call;
	bool is_begun;    /* the answer's head is out */
	bool is_whole;    /* and it was all of it */
	bool is_paused;   /* the client is slower than the worker */
	bool is_from_cwd; /* a path without a slash in front is taken from the working folder */
	bool is_last_due; /* the end of the body has still to be told */
	bool is_waiting;  /* for a sandbox, or for what is under way in its workspace */
	bool is_left;     /* and its client did not */
	char sandbox[ID_SIZE]; /* "": ours, of the workspace */
	struct str whole;      /* body bytes that found no room */
};

static void op_free(struct file_op *o)
{
	call_unref(o->call);
	str_done(&o->whole);
	free(o);
}

/* ---- answers ------------------------------------------------------------------------- */

static void quote_hash(char out[80], const char *hash)
{
	snprintf(out, 80, "\"%s\"", hash);
}

static void begin(struct file_op *o, const struct tree_packet *p, bool is_last)
{
	const struct tree_answer *a = &p->answer;
	int status = tree_code_status((enum tree_code)a->code);
	const char *type = a->code == TREE_OK ? tree_content_type((enum tree_content)a->content)
	                                      : "application/problem+json";
	bool is_part = a->code == TREE_OK && (o->job.ask.flags & TREE_HAS_RANGE) &&
	               o->job.ask.request.verb == TREE_READ;
	char etag[80], range[96];
	const char *extra[7] = { NULL };
	size_t n = 0;

	if (a->code == TREE_OK && a->hash[0]) {
		quote_hash(etag, a->hash);
		extra[n++] = "ETag";
		extra[n++] = etag;
	}
	if (is_part && a->count > 0) {
		snprintf(range, sizeof range, "bytes %llu-%llu/%llu", (unsigned long long)a->from,
		         (unsigned long long)(a->from + a->count - 1), (unsigned long long)a->size);
		extra[n++] = "Content-Range";
		extra[n++] = range;
		status = 206;
	}
	extra[n++] = "X-Content-Type-Options";
	extra[n++] = "nosniff";
	o->is_begun = true;
	o->call->is_answered = true;
	o->is_whole = is_last;
	if (is_last) {
		o->call->state = NULL; /* the request may be over with this: nothing to cancel */
		if (o->call->idem_key)
			answer_body(o->call, status, a->code != TREE_OK,
			            arena_strndup(&o->call->arena, p->data.at, p->data.len));
		else
			reply(o->call->r, status, type, p->data.at, p->data.len, extra);
		return;
	}
	reply_begin(o->call->r, status, type, a->count == TREE_UNKNOWN ? -1 : (int64_t)a->count,
	            extra);
	if (p->data.len > 0)
		(void)reply_write(o->call->r, p->data.at, p->data.len);
}

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct file_op *o = (struct file_op *)j;

	if (o->call->r)
		begin(o, p, is_last);
}

static void data(struct job *j, struct span bytes)
{
	struct file_op *o = (struct file_op *)j;

	if (!o->call->r || reply_write(o->call->r, bytes.at, bytes.len))
		return;
	o->is_paused = true;
	files_pause(j, true);
}

static void over(struct job *j, const struct tree_answer *a)
{
	struct file_op *o = (struct file_op *)j;
	struct call *c = o->call;
	struct fail f = { 0 };

	c->state = NULL;
	if (!o->is_begun) {
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the file worker of the sandbox died");
		f.is_retry_safe = !files_may_change((enum tree_verb)o->job.ask.request.verb);
		answer_fail(c, &f);
	} else if (c->r && !a) {
		reply_abort(c->r); /* what was sent is not whole */
	} else if (c->r && !o->is_whole) {
		reply_end(c->r);
	}
	op_free(o);
}

static void left(struct call *c)
{
	struct file_op *o = c->state;

	if (!o)
		return;
	c->state = NULL;
	o->is_left = true;
	if (o->is_waiting)
		return; /* who comes back frees it */
	files_cancel(&o->job);
	op_free(o);
}

static void on_room(struct request *r)
{
	struct call *c = r->route;
	struct file_op *o = c->state;

	if (o && o->is_paused) {
		o->is_paused = false;
		files_pause(&o->job, false);
	}
}

/* ---- requests ------------------------------------------------------------------------ */

static struct file_op *op_new(struct call *c, enum tree_verb verb)
{
	struct file_op *o = mem_alloc(sizeof *o);

	*o = (struct file_op){ .call = call_ref(c),
		               .job = { .answer = answered, .data = data, .over = over } };
	o->job.ask.request.verb = verb;
	return o;
}

/* Where a command of the sandbox would look for it. */
static void start_from_cwd(struct file_op *o, const struct sbx *s)
{
	struct span *path = &o->job.ask.path;
	const char *cwd = command_cwd(&s->spec);
	size_t size = strlen(cwd) + 1 + path->len + 1;

	if (path->len > 0 && path->at[0] == '/')
		return;
	char *joined = arena_alloc(&o->call->arena, size);
	snprintf(joined, size, "%s%s%.*s", cwd, path->len > 0 ? "/" : "", (int)path->len,
	         path->len > 0 ? path->at : "");
	*path = span_of(joined);
}

static void give_up(struct file_op *o, const struct fail *f)
{
	o->call->state = NULL;
	answer_fail(o->call, f);
	op_free(o);
}

static void go(struct file_op *o, struct sbx *s)
{
	struct fail f = { 0 };

	o->is_waiting = false;
	if (o->is_left) {
		call_forget(o->call);
		op_free(o);
		return;
	}
	if (!s)
		fail_set(&f, FAIL_NOT_FOUND, "no such sandbox");
	if (s && o->is_from_cwd && !s->is_service) /* whose root is the workspace itself */
		start_from_cwd(o, s);
	if (!s || files_start(s, &o->job, &f) < 0)
		give_up(o, &f);
}

/* The sandbox of ours is at hand, or there is none. */
static void found(void *arg, struct sbx *s, const struct fail *f)
{
	struct file_op *o = arg;

	if (f && !o->is_left)
		give_up(o, f);
	else
		go(o, s);
}

/* What was before it is over, and may have ended the sandbox of ours: it is looked for now. */
static void settled(void *arg, struct wsx *w, const struct fail *f)
{
	struct file_op *o = arg;

	(void)f;
	if (o->sandbox[0])
		go(o, roster_find(&o->call->api->core->sandboxes, o->sandbox));
	else
		wsx_service(w, found, o);
}

static void start(struct file_op *o)
{
	struct call *c = o->call;
	bool is_change = files_may_change((enum tree_verb)o->job.ask.request.verb);
	struct fail f = { 0 };
	struct sbx *s = NULL;
	struct wsx *w = NULL;

	if (strncmp(c->route->pattern, "/v1/workspaces", 14) == 0)
		w = wsx_find(c->api->core, c->tenant, c->params[0], &f);
	else
		s = sbx_find(c->api->core, c->tenant, c->params[0], &f);
	if (!c->r || (!s && !w)) {
		answer_fail(c, &f);
		op_free(o);
		return;
	}
	c->state = o;
	c->over = left;
	c->r->on_room = on_room;
	o->is_waiting = true;
	if (s)
		snprintf(o->sandbox, sizeof o->sandbox, "%s", s->id);
	if (is_change && (w || s->workspace)) /* what changed it before is a step of its own */
		wsx_settle(w ? w : s->workspace, settled, o);
	else if (w)
		wsx_service(w, found, o);
	else
		go(o, s);
}

/* The rest of the target is the path: bytes. A URL has one slash in front of it either way, so it
 * is taken from the root, unless the caller says `relative`. */
static void set_path(struct file_op *o)
{
	o->job.ask.path = (struct span){ o->call->params[1], o->call->param_len[1] };
	o->is_from_cwd = call_query(o->call, "relative") != NULL;
}

/* The folder of ?path= : text as one writes it in a command. */
static void set_folder(struct file_op *o)
{
	const char *path = call_query(o->call, "path");

	o->job.ask.path = span_of(path ? path : "");
	o->is_from_cwd = true;
}

/* If-Match: "hash"; the quotes are HTTP's. */
static int set_match(struct file_op *o, struct fail *f)
{
	const char *match = call_header(o->call, "If-Match");
	const char *none = call_header(o->call, "If-None-Match");

	if (none && strcmp(none, "*") != 0)
		return fail_set(f, FAIL_INVALID, "If-None-Match: only * has a meaning here");
	if (none)
		o->job.ask.flags |= TREE_ONLY_NEW;
	if (!match)
		return 0;
	size_t n = strlen(match);
	bool is_quoted = n >= 2 && match[0] == '"' && match[n - 1] == '"';
	o->job.ask.match = (struct span){ match + is_quoted, n - (is_quoted ? 2 : 0) };
	return 0;
}

static int take_number(struct call *c, const char *name, uint32_t max, uint32_t *out,
                       struct fail *f)
{
	const char *text = call_query(c, name);
	char *end;

	if (!text)
		return 0;
	unsigned long n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || n > max)
		return fail_set(f, FAIL_INVALID, "%s: 0 to %u", name, max);
	*out = (uint32_t)n;
	return 0;
}

/* "1-200", "20-", "-" */
static int take_lines(struct file_op *o, const char *text, struct fail *f)
{
	char *end;
	struct tree_request *q = &o->job.ask.request;

	q->from = strtoull(text, &end, 10);
	if (end == text || q->from == 0 || (*end != '-' && *end))
		return fail_set(f, FAIL_INVALID, "lines: FIRST-LAST, the first line is 1");
	uint64_t last = *end && end[1] ? strtoull(end + 1, &end, 10) : UINT64_MAX;
	if (last < q->from)
		return fail_set(f, FAIL_INVALID, "lines: the last is before the first");
	q->count = last == UINT64_MAX ? UINT64_MAX : last - q->from + 1;
	o->job.ask.flags |= TREE_HAS_RANGE;
	return 0;
}

void file_show(struct call *c, struct sbx *s, const char *path)
{
	struct file_op *o = op_new(c, TREE_READ);

	o->job.ask.path = span_of(path);
	range_take(c, &o->job.ask);
	c->state = o;
	c->over = left;
	c->r->on_room = on_room;
	go(o, s);
}

void range_take(struct call *c, struct tree_ask *ask)
{
	const char *text = call_header(c, "Range");
	struct tree_request *q = &ask->request;
	char *end;

	if (!text || strncmp(text, "bytes=", 6) != 0 || text[6] < '0' || text[6] > '9')
		return; /* anything else is no range, and all of it comes */
	q->from = strtoull(text + 6, &end, 10);
	if (*end != '-')
		return;
	uint64_t last = end[1] ? strtoull(end + 1, &end, 10) : UINT64_MAX;
	if (last < q->from)
		return;
	q->count = last == UINT64_MAX ? UINT64_MAX : last - q->from + 1;
	ask->flags |= TREE_HAS_RANGE;
}

static void fail_op(struct file_op *o, const struct fail *f)
{
	answer_fail(o->call, f);
	op_free(o);
}

void file_get(struct call *c)
{
	const char *lines = call_query(c, "lines"), *accept = call_header(c, "Accept");
	bool is_json = accept && strstr(accept, "application/json");
	struct file_op *o = op_new(c, TREE_READ);
	struct tree_request *q = &o->job.ask.request;
	struct fail f = { 0 };
	int r = 0;

	set_path(o);
	if (call_query(c, "stat")) {
		q->verb = TREE_STAT;
		o->job.ask.flags = call_query(c, "hash") ? TREE_HASH : 0;
	} else if (call_query(c, "list")) {
		q->verb = TREE_LIST;
		q->depth = 1;
		o->job.ask.flags = call_query(c, "hidden") ? TREE_HIDDEN : 0;
		r = take_number(c, "depth", 64, &q->depth, &f);
		if (r == 0)
			r = take_number(c, "max", 100000, &q->max, &f);
	} else if (call_query(c, "watch")) {
		q->verb = TREE_WATCH;
		o->job.ask.flags = call_query(c, "recursive") ? TREE_RECURSIVE : 0;
	} else if (lines || is_json) {
		q->verb = TREE_LINES;
		r = lines ? take_lines(o, lines, &f) : 0;
	} else {
		range_take(c, &o->job.ask);
	}
	if (r < 0)
		fail_op(o, &f);
	else
		start(o);
}

/* The body goes on as it comes: the worker takes it in pieces. */
static void put_data(struct request *r, const void *bytes, size_t n)
{
	struct call *c = r->route;
	struct file_op *o = c->state;
	const char *p = bytes;

	if (!o)
		return;
	if (n == 0) {
		o->is_last_due = !files_body(&o->job, NULL, 0, true);
		return;
	}
	while (n > 0) {
		size_t piece = n < TREE_PIECE_MAX ? n : TREE_PIECE_MAX;

		if (!files_body(&o->job, p, piece, false)) {
			str_addn(&o->whole, p, n); /* at most what one read brings */
			reply_pause(r, true);
			return;
		}
		p += piece;
		n -= piece;
	}
}

static void put_room(struct job *j)
{
	struct file_op *o = (struct file_op *)j;
	size_t at = 0;

	while (at < o->whole.len) {
		size_t left = o->whole.len - at,
		       piece = left < TREE_PIECE_MAX ? left : TREE_PIECE_MAX;

		if (!files_body(j, o->whole.data + at, piece, false))
			break;
		at += piece;
	}
	if (at > 0) {
		memmove(o->whole.data, o->whole.data + at, o->whole.len - at);
		o->whole.len -= at;
	}
	if (o->whole.len > 0)
		return;
	if (o->is_last_due)
		o->is_last_due = !files_body(j, NULL, 0, true);
	else if (o->call->r)
		reply_pause(o->call->r, false);
}

static void upload(struct file_op *o)
{
	struct call *c = o->call;
	struct fail f = { 0 };
	const char *mode = call_query(c, "mode");
	char *end = NULL;

	o->whole.max = 1u << 20;
	o->job.ask.has_more = true;
	o->job.room = put_room;
	c->r->on_data = put_data;
	if (mode) {
		o->job.ask.request.mode = (uint32_t)strtoul(mode, &end, 8);
		o->job.ask.flags |= TREE_HAS_MODE;
	}
	if (mode && (mode[0] < '0' || mode[0] > '7' || *end))
		fail_set(&f, FAIL_INVALID, "mode: octal digits such as 0644");
	else
		(void)set_match(o, &f);
	if (f.code != FAIL_NONE)
		fail_op(o, &f);
	else
		start(o);
}

void file_put(struct call *c)
{
	struct file_op *o = op_new(c, TREE_WRITE);

	set_path(o);
	upload(o);
}

void archive_put(struct call *c)
{
	struct file_op *o = op_new(c, TREE_TAR_IN);

	set_folder(o);
	upload(o);
}

void archive_get(struct call *c)
{
	struct file_op *o = op_new(c, TREE_TAR_OUT);
	const char *format = call_query(c, "format");
	struct fail f = { 0 };

	set_folder(o);
	if (format && strcmp(format, "tar") != 0) {
		fail_set(&f, FAIL_INVALID, "format: \"tar\" is what there is");
		fail_op(o, &f);
		return;
	}
	start(o);
}

void file_delete(struct call *c)
{
	struct file_op *o = op_new(c, TREE_DELETE);
	struct fail f = { 0 };

	set_path(o);
	o->job.ask.flags = call_query(c, "recursive") ? TREE_RECURSIVE : 0;
	if (set_match(o, &f) < 0)
		fail_op(o, &f);
	else
		start(o);
}

/* The worker reads the body itself: it is JSON, or a patch. */
static void with_body(struct call *c, enum tree_verb verb)
{
	struct file_op *o = op_new(c, verb);
	struct fail f = { 0 };

	o->job.ask.body =
	    (struct span){ arena_strndup(&c->arena, c->r->body.at ? c->r->body.at : "",
		                         c->r->body.len),
		           c->r->body.len };
	if (c->params[1])
		set_path(o);
	else
		set_folder(o);
	if (call_query(c, "atomic"))
		o->job.ask.flags |= TREE_ATOMIC;
	if (set_match(o, &f) < 0)
		fail_op(o, &f);
	else
		start(o);
}

#define WITH_BODY(name, verb)                                                                      \
	void name(struct call *c)                                                                  \
	{                                                                                          \
		with_body(c, verb);                                                                \
	}

WITH_BODY(file_edit, TREE_EDIT)
WITH_BODY(file_move, TREE_MOVE)
WITH_BODY(file_copy, TREE_COPY)
WITH_BODY(file_mkdir, TREE_MKDIR)
WITH_BODY(file_batch, TREE_BATCH)
WITH_BODY(file_patch, TREE_PATCH)
WITH_BODY(file_grep, TREE_GREP)
WITH_BODY(file_glob, TREE_GLOB)
