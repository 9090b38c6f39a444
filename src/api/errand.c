#include "api/errand.h"

struct errand {
	struct job job; /* first */
	errand_fn *done;
	errand_bytes_fn *done_bytes; /* one of both */
	void *arg;
	char *body, *path;
	struct str answer;
};

void errand_fail(enum tree_code code, struct span problem, struct fail *f)
{
	json_t *o = json_loadb(problem.at, problem.len, 0, NULL);
	const char *detail = json_string_value(json_object_get(o, "detail"));

	fail_set(f, tree_code_fail(code), "%s", detail ? detail : tree_code_name(code));
	json_decref(o);
}

static void finish_json(struct errand *x, const struct fail *f)
{
	json_t *o = f ? NULL : json_loadb(x->answer.data, x->answer.len, 0, NULL);
	struct fail bad = { 0 };

	if (!f && !o) {
		fail_set(&bad, FAIL_BACKEND_ERROR, "the file worker of the sandbox said nonsense");
		f = &bad;
	}
	x->done(x->arg, o, f);
	json_decref(o);
}

static void finish_bytes(struct errand *x, const struct fail *f)
{
	struct fail bad = { 0 };

	if (!f && x->answer.overflow) {
		fail_set(&bad, FAIL_TOO_LARGE, "more than %u bytes", ERRAND_ANSWER_MAX);
		f = &bad;
	}
	x->done_bytes(x->arg, (struct span){ str_text(&x->answer), x->answer.len }, f);
}

static void finish(struct errand *x, const struct fail *f)
{
	if (x->done)
		finish_json(x, f);
	else
		finish_bytes(x, f);
	str_done(&x->answer);
	free(x->body);
	free(x->path);
	free(x);
}

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct errand *x = (struct errand *)j;

	(void)is_last;
	str_addn(&x->answer, p->data.at, p->data.len);
}

static void data(struct job *j, struct span bytes)
{
	str_addn(&((struct errand *)j)->answer, bytes.at, bytes.len);
}

static void over(struct job *j, const struct tree_answer *a)
{
	struct errand *x = (struct errand *)j;
	struct fail f = { 0 };

	if (!a)
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the file worker of the sandbox died");
	else if (a->code != TREE_OK)
		errand_fail((enum tree_code)a->code,
		            (struct span){ str_text(&x->answer), x->answer.len }, &f);
	finish(x, f.code == FAIL_NONE ? NULL : &f);
}

static void start(struct sbx *s, const struct errand_ask *ask, struct errand *x)
{
	struct fail f = { 0 };

	x->job = (struct job){ .answer = answered, .data = data, .over = over };
	x->path = mem_strdup(ask->path ? ask->path : "");
	x->answer.max = ERRAND_ANSWER_MAX;
	x->job.ask.request =
	    (struct tree_request){ .verb = ask->verb, .depth = ask->depth, .max = ask->max };
	x->job.ask.flags = ask->flags;
	x->job.ask.path = span_of(x->path);
	if (ask->body) {
		x->body = json_dumps(ask->body, JSON_COMPACT);
		json_decref(ask->body);
		x->job.ask.body = span_of(x->body);
	} else if (ask->bytes.len > 0) {
		x->body = mem_alloc(ask->bytes.len);
		memcpy(x->body, ask->bytes.at, ask->bytes.len);
		x->job.ask.body = (struct span){ x->body, ask->bytes.len };
	}
	if (files_start(s, &x->job, &f) < 0)
		finish(x, &f);
}

void errand(struct sbx *s, const struct errand_ask *ask, errand_fn *done, void *arg)
{
	struct errand *x = mem_alloc(sizeof *x);

	*x = (struct errand){ .done = done, .arg = arg };
	start(s, ask, x);
}

void errand_bytes(struct sbx *s, const struct errand_ask *ask, errand_bytes_fn *done, void *arg)
{
	struct errand *x = mem_alloc(sizeof *x);

	*x = (struct errand){ .done_bytes = done, .arg = arg };
	start(s, ask, x);
}
