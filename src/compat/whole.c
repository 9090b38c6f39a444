/*
 * whole.c - one command to its end: what it reads is given, what it says is kept. It goes on when
 * the client has left: whoever asks again under the same id gets its answer.
 */
#include "compat/compat-internal.h"

#define KEEP_MAX (4u << 20)

struct whole {
	struct px_watch watch; /* first */
	struct call *call;
	struct px *p;
	whole_fn *done;
	struct scan scan;
	struct keep kept[LOG_STREAMS];
	struct timer again; /* the rest of a long log, next turn */
	struct str input;
	size_t input_at;
	bool is_input_over;
};

static void whole_free(struct whole *x)
{
	struct px *p = x->p;

	timer_stop(&p->core->timers, &x->again);
	px_watch_remove(p, &x->watch);
	scan_done(&x->scan);
	keep_done(&x->kept[LOG_OUT]);
	keep_done(&x->kept[LOG_ERR]);
	str_done(&x->input);
	call_unref(x->call);
	free(x);
	px_unref(p);
}

static void finish(struct whole *x)
{
	AUTO(str_done) struct str out = { .max = (size_t)2 * KEEP_MAX };
	AUTO(str_done) struct str err = { .max = (size_t)2 * KEEP_MAX };
	const struct px *p = x->p;
	const struct channel_end *e = &p->end;

	(void)keep_text(&x->kept[LOG_OUT], &out);
	(void)keep_text(&x->kept[LOG_ERR], &err);
	struct whole_end end = { .p = p,
		                 .out = { str_text(&out), out.len },
		                 .err = { str_text(&err), err.len },
		                 .exit_code = e->signal > 0 ? -e->signal : e->exit_code,
		                 .is_timeout = p->state == PROCESS_TIMEOUT,
		                 .is_cut = keep_dropped(&x->kept[LOG_OUT]) > 0,
		                 .is_never_run = p->is_never_run,
		                 .why = e->reason };
	x->done(x->call, p->is_unrecorded ? NULL : &end);
	whole_free(x);
}

/* It reads when it likes to. */
static void feed(struct whole *x)
{
	struct fail f = { 0 };

	while (!x->is_input_over && !x->p->has_end) {
		size_t room = px_input_room(x->p), left = x->input.len - x->input_at;
		size_t n = left < room ? left : room;
		bool is_end = n == left;

		if (!is_end && n == 0)
			return;
		if (px_input(x->p, str_text(&x->input) + x->input_at, n, is_end, &f) < 0)
			return; /* it has ended, or will be told of as lost */
		x->input_at += n;
		x->is_input_over = is_end;
	}
}

static void go_on(struct whole *x)
{
	if (x->p->is_unrecorded) {
		finish(x);
		return;
	}
	if (!x->p->is_over) {
		feed(x);
		return;
	}
	if (x->p->log_fd >= 0 && !output_keep(&x->scan, x->kept))
		timer_set(&x->p->core->timers, &x->again, 0);
	else
		finish(x);
}

static void changed(struct px_watch *w)
{
	go_on((struct whole *)w);
}

static void grew(struct px_watch *w)
{
	(void)w; /* read when it has ended */
}

static void fired(struct timer *t)
{
	go_on((struct whole *)(void *)((char *)t - offsetof(struct whole, again)));
}

void whole_run(struct call *c, struct sbx *s, const struct px_ask *ask, struct span input,
               whole_fn *done)
{
	struct fail f = { 0 };
	struct px *p = px_start(s, ask, &f);

	if (!p) {
		answer_fail(c, &f);
		return;
	}
	struct whole *x = mem_alloc(sizeof *x);
	*x = (struct whole){ .watch = { .changed = changed, .grew = grew },
		             .call = call_ref(c),
		             .p = p,
		             .done = done,
		             .input = { .max = BODY_JSON_MAX },
		             .is_input_over = !ask->has_stdin };
	x->again.fired = fired;
	str_addn(&x->input, input.at, input.len);
	scan_init(&x->scan, p->log_fd, 0);
	keep_init(&x->kept[LOG_OUT], KEEP_MAX);
	keep_init(&x->kept[LOG_ERR], KEEP_MAX);
	px_watch_add(p, &x->watch);
	go_on(x);
}
