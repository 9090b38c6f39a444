/*
 * interpreter.c - port 49999 of a sandbox: E2B's code interpreter. Who listens there is a program
 * of ours that runs inside, as any command does (interpreter.py), or one that the image brings;
 * requests are relayed (host.c) and not looked at. Here it is started when somebody asks for it
 * first.
 *
 * Its text is in the daemon and goes to it by standard input: nothing is placed in the sandbox, and
 * nothing there can be put in its place.
 */
#include "interpreter.h" /* made of interpreter.py: interpreter_text */
#include "core/dial.h"
#include "e2b/e2b-internal.h"
#include "wire/channel.h"

#define LABEL "caisson:code-interpreter"
#define LOG_MAX (1u << 20)
#define YOUNG_MS 30000 /* so long it may not listen yet */
#define AGAIN_MS 20
#define TRIES 1000
#define ENV_MAX 16

_Static_assert(sizeof interpreter_text - 1 <= CHANNEL_INPUT_MAX, "more than fits at once");

struct starting {
	struct call *call;
	e2b_interpreted_fn *then;
	struct dial *dial;
	struct timer again;
	int tries;
	bool is_started;
	char id[ID_SIZE];
};

bool e2b_interpreter_is(const struct px *p)
{
	return p->label && strcmp(p->label, LABEL) == 0;
}

static const struct px *running(const struct sbx *s)
{
	const struct px *p = s->processes;

	while (p && (p->has_end || !e2b_interpreter_is(p)))
		p = p->next;
	return p;
}

static void finish(struct starting *x, struct sbx *s, const struct fail *f)
{
	struct call *c = x->call;
	e2b_interpreted_fn *then = x->then;

	if (x->dial)
		dial_end(x->dial);
	timer_stop(&c->api->core->timers, &x->again);
	free(x);
	if (c->r) { /* else nobody waits any more */
		reply_pause(c->r, false);
		then(c, s, f);
	}
	call_unref(c);
}

static int start(struct call *c, struct sbx *s, struct fail *f)
{
	static const char *const argv[] = {
		"python3", "-c",
		"import sys; text = sys.stdin.read(); exec(compile(text, '<interpreter>', 'exec'), "
		"{'__name__': '__main__', 'SOURCE': text})",
		NULL
	};
	struct text_pair pairs[ENV_MAX];
	struct pair_list env = { .at = pairs };
	const struct e2b_user user = { NULL, E2B_HOME, E2B_USER, E2B_HOME };
	struct fail ignored;

	process_env(c, s, &user, NULL, &env);
	struct px *p = px_start(s,
	                        &(struct px_ask){ .argv = argv,
	                                          .cwd = E2B_HOME,
	                                          .label = LABEL,
	                                          .env = &env,
	                                          .has_stdin = true,
	                                          .log_max = LOG_MAX },
	                        f);

	if (!p)
		return -1;
	int r = px_input(p, interpreter_text, sizeof interpreter_text - 1, true, f);
	if (r < 0)
		(void)px_kill(p, &ignored);
	px_unref(p);
	return r;
}

/* Nobody listens: yet, or at all. */
static void not_open(struct starting *x, struct sbx *s)
{
	struct fail f = { 0 };

	if (!running(s) && x->is_started)
		fail_set(&f, FAIL_UNENFORCEABLE,
		         "the code interpreter has ended: it takes python3 in the image");
	else if (!running(s) && start(x->call, s, &f) == 0)
		x->is_started = true;
	else if (++x->tries > TRIES)
		fail_set(&f, FAIL_EXPIRED, "the code interpreter does not listen");
	if (f.code != FAIL_NONE)
		finish(x, NULL, &f);
	else
		timer_set(&x->call->api->core->timers, &x->again, AGAIN_MS);
}

static void dialled(struct dial *d)
{
	struct starting *x = d->owner;
	struct sbx *s = roster_find(&x->call->api->core->sandboxes, x->id);

	if (d->is_connected && s) {
		finish(x, s, NULL);
	} else if (d->is_over) {
		struct fail f = d->fail;

		x->dial = NULL;
		dial_end(d);
		if (s && f.code == FAIL_NOT_FOUND && x->call->r)
			not_open(x, s);
		else
			finish(x, NULL, &f);
	}
}

static void look(struct starting *x)
{
	struct sbx *s = roster_find(&x->call->api->core->sandboxes, x->id);
	struct fail f = { 0 };

	if (s && x->call->r)
		x->dial = dial_start(s, E2B_INTERPRETER_PORT, DIAL_MS, &f);
	else
		fail_set(&f, FAIL_NOT_FOUND, "the sandbox was not found");
	if (!x->dial) {
		finish(x, NULL, &f);
		return;
	}
	x->dial->owner = x;
	x->dial->changed = dialled;
}

static void fired(struct timer *t)
{
	look((struct starting *)(void *)((char *)t - offsetof(struct starting, again)));
}

void e2b_interpret(struct call *c, struct sbx *s, e2b_interpreted_fn *then)
{
	const struct px *p = running(s);

	if (p && core_now_ms() - p->created_ms > YOUNG_MS) {
		then(c, s, NULL);
		return;
	}
	struct starting *x = mem_alloc(sizeof *x);

	*x = (struct starting){ .call = call_ref(c), .then = then };
	x->again.fired = fired;
	memcpy(x->id, s->id, sizeof x->id);
	reply_pause(c->r, true); /* a body waits too */
	look(x);
}
