/*
 * form.c - multipart/form-data with one file and some short texts. The file goes to a worker as it
 * comes: what that does not take yet stays here, and the client waits.
 */
#include "base/limits.h"
#include "compat/compat-internal.h"
#include "wire/multipart.h"

#define PIECE (32u << 10)
#define RAW_MAX (4u << 20)
#define FIELD_MAX (64u << 10)
#define FIELDS_MAX 16

static void pump(struct form *f);

static void form_free(struct form *f)
{
	f->call->state = NULL;
	if (f->has_file && !f->is_done && f->forsaken)
		f->forsaken(f);
	str_done(&f->raw);
	str_done(&f->field);
	json_decref(f->fields);
	call_unref(f->call);
	free(f->parts);
	free(f);
}

/* Answered; what is with a worker is left when the request is over. */
static void refuse(struct form *f, enum fail_code code, const char *words)
{
	struct fail why = { 0 };

	f->is_over = true;
	fail_set(&why, code, "%s", words);
	f->failed(f, &why);
}

/* ---- the file ------------------------------------------------------------------------ */

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct form *f = (struct form *)j;
	struct fail why = { 0 };

	(void)is_last;
	if (p->answer.code == TREE_OK || f->is_over)
		return;
	errand_fail((enum tree_code)p->answer.code, p->data, &why);
	f->call->state = NULL; /* the worker's last word frees it */
	refuse(f, why.code, why.detail);
}

static void data(struct job *j, struct span bytes)
{
	(void)j;
	(void)bytes; /* what it says of the file is known */
}

static void written(struct job *j, const struct tree_answer *a)
{
	struct form *f = (struct form *)j;

	f->is_writing = false;
	if (f->call->state != f) {
		f->has_file = a && a->code == TREE_OK;
		form_free(f);
		return;
	}
	if (f->is_over)
		return;
	if (!a || a->code != TREE_OK) {
		refuse(f, FAIL_SANDBOX_UNAVAILABLE, "the file worker of the sandbox died");
		return;
	}
	f->is_closing = f->is_waiting = false;
	f->has_file = true;
	pump(f);
}

static void room(struct job *j)
{
	struct form *f = (struct form *)j;

	if (f->call->state != f || f->is_over || f->is_pumping || !f->is_waiting)
		return;
	if (f->is_closing && !f->is_close_due)
		return; /* it has all, and says when it is done */
	f->is_waiting = false;
	pump(f);
}

static bool begin_file(struct form *f)
{
	struct sbx *s = roster_find(&f->call->api->core->sandboxes, f->sandbox);
	struct fail why = { 0 };

	f->job = (struct job){ .answer = answered, .data = data, .over = written, .room = room };
	f->job.ask = (struct tree_ask){ .request = { .verb = TREE_WRITE },
		                        .path = span_of(f->path),
		                        .has_more = true };
	f->is_writing = true;
	if (!s)
		fail_set(&why, FAIL_NOT_FOUND, "no such sandbox");
	else if (sbx_check_running(s, &why) == 0 && files_start(s, &f->job, &why) == 0)
		return true;
	f->is_writing = false;
	refuse(f, why.code, why.detail);
	return false;
}

static void end_file(struct form *f)
{
	f->is_closing = f->is_waiting = true;
	f->is_close_due = !files_body(&f->job, NULL, 0, true);
}

/* How much of it was taken; less than all: the worker has no room for now. */
static size_t give(struct form *f, struct span bytes)
{
	size_t taken = 0;

	while (taken < bytes.len) {
		size_t left = bytes.len - taken, n = left < PIECE ? left : PIECE;

		if (!files_body(&f->job, bytes.at + taken, n, false))
			break;
		taken += n;
	}
	f->bytes += taken;
	return taken;
}

/* ---- the parts ----------------------------------------------------------------------- */

static bool begin_part(struct form *f, const struct multipart_event *ev)
{
	f->is_file = strcmp(ev->name, "file") == 0;
	snprintf(f->name, sizeof f->name, "%.63s", ev->name);
	str_clear(&f->field);
	if (f->is_file && f->has_file) {
		refuse(f, FAIL_INVALID, "one file is expected");
		return false;
	}
	if (json_object_size(f->fields) >= FIELDS_MAX) {
		refuse(f, FAIL_INVALID, "too many parts");
		return false;
	}
	return !f->is_file || begin_file(f);
}

static bool take_data(struct form *f, struct span bytes)
{
	size_t taken = bytes.len;

	if (f->is_file)
		taken = give(f, bytes);
	else
		str_addn(&f->field, bytes.at, bytes.len);
	f->is_waiting = taken < bytes.len;
	f->raw_at = (size_t)(bytes.at - f->raw.data) + taken;
	return !f->is_waiting;
}

static bool end_part(struct form *f)
{
	json_t *text = NULL;

	if (f->is_file) {
		end_file(f);
		return true;
	}
	if (!f->field.overflow)
		text = json_stringn(str_text(&f->field), f->field.len);
	if (!text) {
		refuse(f, FAIL_INVALID, "a part is too long, or no text");
		return false;
	}
	json_object_set_new(f->fields, f->name, text);
	return true;
}

static void finish(struct form *f)
{
	f->is_over = true;
	f->is_done = f->has_file;
	if (f->has_file)
		f->done(f);
	else
		refuse(f, FAIL_INVALID, "a part named file is expected");
}

/* True: something moved. */
static bool step(struct form *f)
{
	struct span in = { str_text(&f->raw) + f->raw_at, f->raw.len - f->raw_at };
	struct multipart_event *ev = mem_alloc(sizeof *ev);
	int r = multipart_next(f->parts, &in, f->is_raw_over, ev);
	bool goes_on = r > 0;

	f->raw_at = f->raw.len - in.len;
	if (r < 0)
		refuse(f, FAIL_INVALID, "the form is not one");
	else if (r > 0 && ev->type == MULTIPART_PART)
		goes_on = begin_part(f, ev);
	else if (r > 0 && ev->type == MULTIPART_DATA)
		goes_on = take_data(f, ev->data);
	else if (r > 0)
		goes_on = end_part(f);
	else if (f->is_raw_over && f->parts->step == MULTIPART_DONE)
		finish(f);
	free(ev);
	return goes_on && !f->is_waiting;
}

static void pump(struct form *f)
{
	struct call *c = call_ref(f->call);

	f->is_pumping = true;
	if (f->is_close_due)
		end_file(f);
	while (c->r && c->state == f && !f->is_over && !f->is_waiting && step(f))
		continue;
	if (c->state == f) {
		f->is_pumping = false;
		if (f->raw_at > 0)
			memmove(f->raw.data, f->raw.data + f->raw_at, f->raw.len - f->raw_at);
		f->raw.len -= f->raw_at;
		f->raw_at = 0;
		if (c->r && !f->is_over)
			reply_pause(c->r, f->is_waiting);
	}
	call_unref(c);
}

static void on_data(struct request *r, const void *bytes, size_t n)
{
	struct call *c = r->route;
	struct form *f = c->state;

	if (!f || f->is_over)
		return;
	str_addn(&f->raw, bytes, n); /* at most what one read brings: it waits then */
	f->is_raw_over = n == 0;
	if (f->path)
		pump(f);
}

/* The request is over; a worker that is still at work is the last who needs the memory. */
static void left(struct call *c)
{
	struct form *f = c->state;

	if (!f)
		return;
	c->state = NULL;
	if (f->is_writing && f->is_closing && !f->is_close_due)
		return; /* it has all of the file, and says what became of it */
	if (f->is_writing)
		files_cancel(&f->job);
	form_free(f);
}

struct form *form_take(struct call *c)
{
	const struct span *type = http_header(c->r->head, "Content-Type");
	struct multipart *parts = mem_alloc(sizeof *parts);
	struct fail why = { 0 };

	if (!type || !multipart_init(parts, *type)) {
		free(parts);
		fail_set(&why, FAIL_INVALID, "multipart/form-data is expected");
		answer_fail(c, &why);
		return NULL;
	}
	struct form *f = mem_alloc(sizeof *f);
	*f = (struct form){ .call = call_ref(c),
		            .parts = parts,
		            .raw = { .max = RAW_MAX },
		            .field = { .max = FIELD_MAX },
		            .fields = json_object() };
	c->state = f;
	c->over = left;
	c->r->on_data = on_data;
	reply_pause(c->r, true);
	return f;
}

void form_go(struct form *f, struct sbx *s, const char *path)
{
	memcpy(f->sandbox, s->id, sizeof f->sandbox);
	f->path = path;
	pump(f);
}
