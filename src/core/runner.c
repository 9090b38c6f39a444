#include "core/runner.h"

#include "core/output.h"

#define LOG_MAX (64u << 20)

struct line {
	char text[RUNNER_LINE_MAX];
	size_t len;
};

struct runner {
	struct core *core;
	struct px *p;
	struct px_watch watch;
	struct timer finish; /* nothing is told from within a callback of others */
	struct scan scan;
	struct line lines[2]; /* of standard output, and of errors */
	struct str out;
	uint64_t timeout_ms;
	void (*on_line)(void *arg, bool is_err, const char *text);
	void (*on_done)(void *arg, const struct runner_end *end);
	void *arg;
};

static void runner_free(struct runner *r)
{
	timer_stop(&r->core->timers, &r->finish);
	px_watch_remove(r->p, &r->watch);
	px_unref(r->p);
	scan_done(&r->scan);
	str_done(&r->out);
	free(r);
}

static void end_line(struct runner *r, bool is_err)
{
	struct line *l = &r->lines[is_err];

	l->text[l->len] = '\0';
	if (l->len > 0 && r->on_line)
		r->on_line(r->arg, is_err, l->text);
	l->len = 0;
}

static void take(struct runner *r, bool is_err, const unsigned char *bytes, size_t n)
{
	struct line *l = &r->lines[is_err];

	if (!is_err && r->out.len + n <= RUNNER_OUT_MAX)
		str_addn(&r->out, bytes, n);
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n' || bytes[i] == '\r')
			end_line(r, is_err);
		else if (l->len < sizeof l->text - 1)
			l->text[l->len++] =
			    (char)(bytes[i] < ' ' || bytes[i] == 0x7f ? ' ' : bytes[i]);
	}
}

/* Some of it; false: there is more. */
static bool read_some(struct runner *r)
{
	uint64_t from = r->scan.at;
	struct scan_piece piece;

	while (r->scan.at - from < SCAN_TURN) {
		if (scan_next(&r->scan, &piece) <= 0)
			return true;
		take(r, piece.stream == LOG_ERR, piece.bytes, piece.len);
	}
	return false;
}

static void explain(const struct runner *r, struct runner_end *end)
{
	const struct px *p = r->p;

	if (p->state == PROCESS_TIMEOUT || p->state == PROCESS_EXPIRED)
		fail_set(&end->fail, FAIL_BACKEND_ERROR, "it took longer than %llu s",
		         (unsigned long long)(r->timeout_ms / 1000));
	else if (p->state == PROCESS_OOM)
		fail_set(&end->fail, FAIL_TOO_LARGE, "it needs more memory than it may have");
	else if (p->state == PROCESS_EXITED)
		end->exit_code = p->end.exit_code;
	else if (p->state == PROCESS_SIGNALED)
		end->exit_code = 128 + p->end.signal;
	else
		fail_set(&end->fail, FAIL_SANDBOX_UNAVAILABLE, "%s",
		         p->end.reason[0] ? p->end.reason : "it could not be run");
}

static void finish_fired(struct timer *t)
{
	struct runner *r = (struct runner *)(void *)((char *)t - offsetof(struct runner, finish));
	struct runner_end end = { 0 };

	if (r->p->log_fd >= 0 && !read_some(r)) {
		timer_set(&r->core->timers, &r->finish, 0);
		return;
	}
	end_line(r, false);
	end_line(r, true);
	explain(r, &end);
	end.out = str_text(&r->out);
	end.out_len = r->out.len;
	r->on_done(r->arg, &end);
	runner_free(r);
}

static void grew(struct px_watch *w)
{
	struct runner *r = (struct runner *)(void *)((char *)w - offsetof(struct runner, watch));

	if (r->p->is_over || r->p->log_fd < 0)
		return; /* the rest is read at its end */
	(void)read_some(r);
	px_ack(r->p, r->scan.at); /* it rings again when there is more */
}

static void changed(struct px_watch *w)
{
	struct runner *r = (struct runner *)(void *)((char *)w - offsetof(struct runner, watch));

	if (r->p->is_over)
		timer_set(&r->core->timers, &r->finish, 0);
}

struct runner *runner_start(struct sbx *s, const struct runner_ask *ask, struct fail *f)
{
	struct px *p = px_start(s,
	                        &(struct px_ask){ .script = ask->script,
	                                          .user = ask->user,
	                                          .cwd = ask->cwd,
	                                          .env = ask->env,
	                                          .log_max = LOG_MAX,
	                                          .timeout_ms = ask->timeout_ms },
	                        f);

	if (!p)
		return NULL;
	struct runner *r = mem_alloc(sizeof *r);
	*r = (struct runner){ .core = s->core,
		              .p = p,
		              .watch = { .grew = grew, .changed = changed },
		              .finish.fired = finish_fired,
		              .out = { .max = RUNNER_OUT_MAX + 1 },
		              .timeout_ms = ask->timeout_ms,
		              .on_line = ask->line,
		              .on_done = ask->done,
		              .arg = ask->arg };
	scan_init(&r->scan, p->log_fd, 0);
	px_watch_add(p, &r->watch);
	return r;
}

void runner_cancel(struct runner *r)
{
	if (r)
		runner_free(r);
}
