/*
 * upload.c - POST /files: one file as it is, or several in a form; both may be gzipped.
 *
 *   request ─▷ raw ─▷ (inflate) ─▷ plain ─▷ (form) ─▷ worker of the part's file
 *
 * Each stage holds one piece. What the worker does not take yet stays where it is and the client
 * waits; the next file begins when the one before is written.
 */
#include <zlib.h>

#include "base/limits.h"
#include "core/details.h"
#include "e2b/e2b-internal.h"
#include "wire/multipart.h"

#define PIECE (32u << 10)
#define RAW_MAX (1u << 20)
#define FILES_MOST 1000
#define META_PREFIX "x-metadata-"
#define WINDOW_GZIP (15 + 16)

struct upload {
	struct job job; /* first */
	struct call *call;
	struct e2b_user user;
	struct str raw; /* as it came */
	size_t raw_at;
	struct str plain; /* inflated, or the same */
	size_t plain_at;
	z_stream z;
	struct multipart form;
	json_t *metadata, *written; /* written: the answer */
	const char *named;          /* by the query, or NULL */
	const char *path;           /* of the file that is being written, in the arena */
	bool is_gzip, is_form;
	bool is_raw_over, is_plain_over; /* nothing follows what is there */
	bool is_inflated;                /* the gzip stream has ended */
	bool is_writing;                 /* a worker has a file */
	bool is_closing;                 /* and all of it */
	bool is_close_due;               /* but for its end, which found no room */
	bool is_waiting;                 /* for an answer, or for room */
	bool is_pumping; /* a worker that says at once that it has room is heard later */
	bool is_over;
};

static void upload_free(struct upload *u)
{
	u->call->state = NULL;
	if (u->is_gzip)
		inflateEnd(&u->z);
	str_done(&u->raw);
	str_done(&u->plain);
	json_decref(u->metadata);
	json_decref(u->written);
	call_unref(u->call);
	free(u);
}

/* Answered; what is with a worker is left when the request is over. */
static void refuse(struct upload *u, enum fail_code code, const char *words)
{
	struct fail f = { 0 };

	u->is_over = true;
	fail_set(&f, code, "%s", words);
	if (code == FAIL_IS_DIRECTORY || code == FAIL_NOT_DIRECTORY)
		e2b_refuse(u->call, 400, words);
	else if (code == FAIL_QUOTA)
		e2b_refuse(u->call, 507, words);
	else
		answer_fail(u->call, &f);
}

/* ---- one file ------------------------------------------------------------------------ */

static void pump(struct upload *u);

static void add_written(struct upload *u)
{
	const char *slash = strrchr(u->path, '/');
	json_t *o = json_pack("{so,so,ss}", "path", details_text(u->path), "name",
	                      details_text(slash ? slash + 1 : u->path), "type", "file");

	if (json_object_size(u->metadata) > 0)
		json_object_set(o, "metadata", u->metadata);
	json_array_append_new(u->written, o);
	u->is_writing = u->is_closing = u->is_waiting = false;
}

/* The call keeps it alive; whoever asked may have left. */
static void marked(void *arg, json_t *answer, const struct fail *f)
{
	struct call *c = arg;
	struct upload *u = c->state;

	(void)answer;
	if (u && f) {
		refuse(u, f->code, f->detail);
	} else if (u) {
		add_written(u);
		pump(u);
	}
	call_unref(c);
}

/* NULL: it was answered, and the upload is over. */
static struct sbx *still_running(struct upload *u)
{
	u->is_over = true;
	struct sbx *s = e2b_running(u->call);

	if (s)
		u->is_over = false;
	return s;
}

static void mark(struct upload *u)
{
	struct sbx *s = still_running(u);

	if (!s)
		return;
	u->is_waiting = true;
	errand(s,
	       &(struct errand_ask){
		   .verb = TREE_MARK,
		   .path = u->path,
		   .body = json_pack("{ss,sO}", "prefix", "user.e2b.", "set", u->metadata) },
	       marked, call_ref(u->call));
}

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct upload *u = (struct upload *)j;
	struct fail f = { 0 };

	(void)is_last;
	if (p->answer.code == TREE_OK || u->is_over)
		return;
	errand_fail((enum tree_code)p->answer.code, p->data, &f);
	u->call->state = NULL; /* the worker's last word frees it */
	refuse(u, f.code, f.detail);
}

static void data(struct job *j, struct span bytes)
{
	(void)j;
	(void)bytes; /* a hash, which nobody here asks for */
}

static void written(struct job *j, const struct tree_answer *a)
{
	struct upload *u = (struct upload *)j;
	bool is_left = u->call->state != u;

	u->is_writing = false;
	if (is_left) {
		upload_free(u);
		return;
	}
	if (u->is_over)
		return;
	if (!a || a->code != TREE_OK)
		refuse(u, FAIL_SANDBOX_UNAVAILABLE, "the file worker of the sandbox died");
	else if (json_object_size(u->metadata) > 0)
		mark(u);
	else {
		add_written(u);
		pump(u);
	}
}

static void room(struct job *j)
{
	struct upload *u = (struct upload *)j;

	if (u->call->state != u || u->is_over || u->is_pumping || !u->is_waiting)
		return;
	if (u->is_closing && !u->is_close_due)
		return; /* it has all, and says when it is done */
	u->is_waiting = false;
	pump(u);
}

static bool begin_file(struct upload *u, const char *name)
{
	struct sbx *s = still_running(u);
	struct fail f = { 0 };

	if (!s)
		return false;
	u->path = arena_strdup(&u->call->arena, e2b_path(u->call, &u->user, name));
	u->job = (struct job){ .answer = answered, .data = data, .over = written, .room = room };
	u->job.ask = (struct tree_ask){ .request = { .verb = TREE_WRITE },
		                        .path = span_of(u->path),
		                        .has_more = true };
	u->is_writing = true;
	if (files_start(s, &u->job, &f) == 0)
		return true;
	u->is_writing = false;
	refuse(u, f.code, f.detail);
	return false;
}

/* False: the worker takes no more for now. */
static bool give(struct upload *u, struct span bytes, size_t *taken)
{
	*taken = 0;
	while (*taken < bytes.len) {
		size_t left = bytes.len - *taken, n = left < PIECE ? left : PIECE;

		if (!files_body(&u->job, bytes.at + *taken, n, false))
			return false;
		*taken += n;
	}
	return true;
}

static void end_file(struct upload *u)
{
	u->is_closing = u->is_waiting = true;
	u->is_close_due = !files_body(&u->job, NULL, 0, true);
}

/* ---- the body ------------------------------------------------------------------------ */

static struct span rest_of(const struct upload *u)
{
	return (struct span){ str_text(&u->plain) + u->plain_at, u->plain.len - u->plain_at };
}

/* More plain bytes behind those that are there. False: it is broken. */
static bool fill_plain(struct upload *u)
{
	size_t left = u->raw.len - u->raw_at;

	if (u->plain_at > 0) {
		memmove(u->plain.data, u->plain.data + u->plain_at, u->plain.len - u->plain_at);
		u->plain.len -= u->plain_at;
		u->plain_at = 0;
	}
	if (!u->is_gzip) {
		str_addn(&u->plain, str_text(&u->raw) + u->raw_at, left);
		u->raw_at = u->raw.len;
		u->is_plain_over = u->is_raw_over;
	} else if (!u->is_inflated) {
		unsigned char out[PIECE];

		u->z.next_in = (unsigned char *)u->raw.data + u->raw_at;
		u->z.avail_in = (unsigned int)left;
		u->z.next_out = out;
		u->z.avail_out = sizeof out;
		int r = left > 0 ? inflate(&u->z, Z_NO_FLUSH) : Z_BUF_ERROR;

		str_addn(&u->plain, out, sizeof out - u->z.avail_out);
		u->raw_at = u->raw.len - u->z.avail_in;
		u->is_inflated = r == Z_STREAM_END;
		if ((r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) ||
		    (left == 0 && u->is_raw_over))
			return false;
	} else if (left > 0) {
		return false; /* behind the end of the stream */
	}
	if (u->is_gzip)
		u->is_plain_over = u->is_inflated && u->is_raw_over && u->raw_at == u->raw.len;
	if (u->raw_at == u->raw.len)
		str_clear(&u->raw), u->raw_at = 0;
	return true;
}

static void answer(struct upload *u)
{
	u->is_over = true;
	e2b_answer(u->call, 200, json_incref(u->written));
}

/* One file, whose name the query has. True: something moved. */
static bool pump_plain(struct upload *u)
{
	struct span in = rest_of(u);
	size_t taken;

	if (json_array_size(u->written) > 0) {
		answer(u);
		return false;
	}
	if (!u->is_writing && !u->named) {
		refuse(u, FAIL_INVALID, "path is needed");
		return false;
	}
	if (!u->is_writing && !begin_file(u, u->named))
		return false;
	u->is_waiting = !give(u, in, &taken);
	u->plain_at += taken;
	if (!u->is_waiting && u->is_plain_over && rest_of(u).len == 0)
		end_file(u);
	return taken > 0 && !u->is_waiting;
}

static bool is_named_already(const struct upload *u, const char *path)
{
	size_t i;
	const json_t *v;

	json_array_foreach(u->written, i,
	                   v) if (strcmp(json_string_value(json_object_get(v, "path")), path) ==
	                          0) return true;
	return false;
}

static bool begin_part(struct upload *u, const struct multipart_event *ev)
{
	const char *name = u->named ? u->named : ev->filename;

	if (strcmp(ev->name, "file") != 0 || !*name) {
		refuse(u, FAIL_INVALID, "a part named file, with a filename, is expected");
		return false;
	}
	if (is_named_already(u, e2b_path(u->call, &u->user, name)) ||
	    json_array_size(u->written) >= FILES_MOST) {
		refuse(u, FAIL_INVALID, "the same path comes twice");
		return false;
	}
	return begin_file(u, name);
}

static bool take_part_data(struct upload *u, struct span bytes)
{
	size_t taken;

	u->is_waiting = !give(u, bytes, &taken);
	u->plain_at = (size_t)(bytes.at - u->plain.data) + taken;
	return !u->is_waiting;
}

static bool pump_form(struct upload *u)
{
	struct span in = rest_of(u);
	struct multipart_event *ev = mem_alloc(sizeof *ev);
	int r = multipart_next(&u->form, &in, u->is_plain_over, ev);
	bool goes_on = r > 0;

	u->plain_at = u->plain.len - in.len;
	if (r < 0)
		refuse(u, FAIL_INVALID, "the form is not one");
	else if (r > 0 && ev->type == MULTIPART_PART)
		goes_on = begin_part(u, ev);
	else if (r > 0 && ev->type == MULTIPART_DATA)
		goes_on = take_part_data(u, ev->data);
	else if (r > 0)
		end_file(u);
	else if (u->is_plain_over && u->form.step == MULTIPART_DONE)
		answer(u);
	free(ev);
	return goes_on && !u->is_waiting;
}

static void pump(struct upload *u)
{
	struct call *c = call_ref(u->call);

	u->is_pumping = true;
	if (u->is_close_due)
		end_file(u);
	while (c->r && c->state && !u->is_over && !u->is_waiting) {
		size_t before = rest_of(u).len;

		if (!fill_plain(u)) {
			refuse(u, FAIL_INVALID, "the body is not gzip, or not whole");
			break;
		}
		bool has_more = rest_of(u).len > before;
		bool goes_on = u->is_form ? pump_form(u) : pump_plain(u);

		if (!c->state || (!goes_on && !has_more))
			break;
	}
	if (c->state)
		u->is_pumping = false;
	if (c->r && c->state && !u->is_over)
		reply_pause(c->r, u->raw.len - u->raw_at > 0);
	call_unref(c);
}

static void on_data(struct request *r, const void *bytes, size_t n)
{
	struct call *c = r->route;
	struct upload *u = c->state;

	if (!u || u->is_over)
		return;
	str_addn(&u->raw, bytes, n); /* at most what one read brings: it waits then */
	u->is_raw_over = n == 0;
	pump(u);
}

/* The request is over; a worker that is still at work is the last who needs the memory. */
static void left(struct call *c)
{
	struct upload *u = c->state;

	if (!u)
		return;
	c->state = NULL;
	if (u->is_writing)
		files_cancel(&u->job);
	upload_free(u);
}

/* ---- the head ------------------------------------------------------------------------ */

/* X-Metadata-NAME: text; names in lower case, as a header's are. */
static void take_metadata(struct upload *u)
{
	const struct http_head *h = u->call->r->head;
	size_t skip = strlen(META_PREFIX);

	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *field = &h->fields[i];

		if (field->name.len <= skip ||
		    !span_is_nocase((struct span){ field->name.at, skip }, META_PREFIX))
			continue;
		char *name =
		    arena_strndup(&u->call->arena, field->name.at + skip, field->name.len - skip);
		for (char *at = name; *at; at++)
			*at = (char)span_lower(*at);
		json_object_set_new(u->metadata, name,
		                    json_stringn(field->value.at, field->value.len));
	}
}

static int take_head(struct upload *u, struct fail *f)
{
	struct call *c = u->call;
	const struct span *type = http_header(c->r->head, "Content-Type");
	const struct span *coding = http_header(c->r->head, "Content-Encoding");
	const char *name = call_query(c, "username");

	if (e2b_user(c, name ? name : "", &u->user, f) < 0)
		return -1;
	u->named = call_query(c, "path");
	u->is_form = type && multipart_init(&u->form, *type);
	if (!u->is_form && type && !span_is_nocase(*type, "application/octet-stream"))
		return fail_set(f, FAIL_INVALID,
		                "multipart/form-data or application/octet-stream is expected");
	if (coding && !span_is_nocase(*coding, "gzip") && !span_is_nocase(*coding, "identity"))
		return fail_set(f, FAIL_INVALID, "Content-Encoding: gzip is what there is");
	if (coding && span_is_nocase(*coding, "gzip")) {
		if (inflateInit2(&u->z, WINDOW_GZIP) != Z_OK)
			return fail_set(f, FAIL_BACKEND_ERROR, "no memory to inflate");
		u->is_gzip = true;
	}
	take_metadata(u);
	return 0;
}

void e2b_file_post(struct call *c)
{
	struct upload *u;
	struct fail f = { 0 };

	if (!e2b_enter(c))
		return;
	u = mem_alloc(sizeof *u);
	*u = (struct upload){ .call = call_ref(c),
		              .raw = { .max = RAW_MAX },
		              .plain = { .max = (size_t)4 * RAW_MAX },
		              .metadata = json_object(),
		              .written = json_array() };
	c->state = u;
	c->over = left;
	c->r->on_data = on_data;
	if (take_head(u, &f) < 0)
		refuse(u, f.code, f.detail);
}
