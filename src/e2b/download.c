/*
 * download.c - GET /files: the bytes of one file, or a range of them.
 */
#include "base/limits.h"
#include "e2b/e2b-internal.h"

struct download {
	struct job job; /* first */
	struct call *call;
	bool is_begun, is_paused;
};

static void download_free(struct download *d)
{
	d->call->state = NULL;
	call_unref(d->call);
	free(d);
}

static void refuse(struct download *d, const struct fail *f)
{
	if (f->code == FAIL_IS_DIRECTORY || f->code == FAIL_NOT_DIRECTORY)
		e2b_refuse(d->call, 400, f->detail);
	else
		answer_fail(d->call, f);
}

static void begin(struct download *d, const struct tree_packet *p, bool is_last)
{
	const struct tree_answer *a = &p->answer;
	bool is_part = d->job.ask.flags & TREE_HAS_RANGE && a->count > 0;
	char range[96];
	const char *extra[] = { "Content-Range", range, NULL };
	const char *type = tree_content_type(TREE_RAW);
	struct call *c = d->call;

	snprintf(range, sizeof range, "bytes %llu-%llu/%llu", (unsigned long long)a->from,
	         (unsigned long long)(a->from + a->count - 1), (unsigned long long)a->size);
	c->is_answered = true;
	if (is_last) {
		c->state = NULL; /* the request may be over with this */
		reply(c->r, is_part ? 206 : 200, type, p->data.at, p->data.len,
		      is_part ? extra : NULL);
		return;
	}
	reply_begin(c->r, is_part ? 206 : 200, type, (int64_t)a->count, is_part ? extra : NULL);
	if (p->data.len > 0)
		(void)reply_write(c->r, p->data.at, p->data.len);
}

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct download *d = (struct download *)j;
	struct fail f = { 0 };

	d->is_begun = true;
	if (!d->call->r)
		return;
	if (p->answer.code == TREE_OK) {
		begin(d, p, is_last);
		return;
	}
	d->call->state = NULL;
	errand_fail((enum tree_code)p->answer.code, p->data, &f);
	refuse(d, &f);
}

static void data(struct job *j, struct span bytes)
{
	struct download *d = (struct download *)j;

	if (!d->call->state || reply_write(d->call->r, bytes.at, bytes.len))
		return;
	d->is_paused = true;
	files_pause(j, true);
}

static void over(struct job *j, const struct tree_answer *a)
{
	struct download *d = (struct download *)j;
	struct call *c = d->call;
	struct fail f = { 0 };
	bool is_streaming = c->state != NULL;

	c->state = NULL;
	if (!d->is_begun) {
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the file worker of the sandbox died");
		answer_fail(c, &f);
	} else if (is_streaming && c->r && (!a || a->code != TREE_OK)) {
		reply_abort(c->r); /* what was sent is not whole */
	} else if (is_streaming && c->r) {
		reply_end(c->r);
	}
	download_free(d);
}

static void left(struct call *c)
{
	struct download *d = c->state;

	if (!d)
		return;
	files_cancel(&d->job);
	download_free(d);
}

static void on_room(struct request *r)
{
	struct call *c = r->route;
	struct download *d = c->state;

	if (!d || !d->is_paused)
		return;
	d->is_paused = false;
	files_pause(&d->job, false);
}

void download_start(struct call *c, struct sbx *s, const char *path)
{
	struct download *d = mem_alloc(sizeof *d);
	struct fail f = { 0 };

	*d = (struct download){ .call = call_ref(c),
		                .job = { .answer = answered, .data = data, .over = over } };
	d->job.ask.request.verb = TREE_READ;
	d->job.ask.path = span_of(path);
	range_take(c, &d->job.ask);
	c->state = d;
	c->over = left;
	c->r->on_room = on_room;
	if (files_start(s, &d->job, &f) < 0) {
		c->state = NULL;
		answer_fail(c, &f);
		download_free(d);
	}
}

void e2b_file_get(struct call *c)
{
	struct sbx *s = e2b_enter(c);
	const char *path = call_query(c, "path"), *name = call_query(c, "username");
	struct e2b_user user;
	struct fail f = { 0 };

	if (!s)
		return;
	if (e2b_user(c, name ? name : "", &user, &f) < 0)
		answer_fail(c, &f);
	else
		download_start(c, s, e2b_path(c, &user, path ? path : ""));
}
