/*
 * rex_session.c - sessions begin and end.
 */
#include <signal.h>

#include "compat/compat-internal.h"
#include "core/details.h"

#define NAME_MAX_BYTES 128
#define LOG_MAX (64u << 20)
#define BEGIN_MS 30000   /* what is ours of it: a program is started */
#define SOURCES_MAX 3000 /* bytes: more does not fit in a line of a terminal */

void rex_root(struct call *c)
{
	answer_json(c, 200, json_pack("{ss}", "message", "hello world"));
}

/* One that is not made yet will be: it is as alive as it can be. */
void rex_is_alive(struct call *c)
{
	struct fail f = { 0 };
	struct sbx *s = compat_find(c, &f);
	bool is_alive = s ? sbx_check_running(s, &f) == 0 : compat_is_own(c);

	answer_json(c, 200,
	            json_pack("{sb,so}", "is_alive", is_alive, "message",
	                      is_alive ? json_string("") : details_text(f.detail)));
}

/* ---- create -------------------------------------------------------------------------- */

struct creating {
	struct seat_turn turn; /* first */
	struct call *call;
	struct seat *seat;
	struct px *p;
	struct str said;
	const char *sources; /* a line, or NULL */
	uint64_t ms;
};

static void creating_free(struct creating *x)
{
	px_unref(x->p);
	str_done(&x->said);
	call_unref(x->call);
	free(x);
}

static void created(struct creating *x)
{
	struct span said;

	py_plain(&x->said);
	said = (struct span){ str_text(&x->said), x->said.len };
	if (py_strip(said).len == 0) /* bash makes room for its first prompt */
		said.len = 0;
	answer_json(x->call, 200,
	            json_pack("{so,ss}", "output", py_json(said), "session_type", "bash"));
	seat_leave(x->seat);
	creating_free(x);
}

static void never_began(struct creating *x, const char *class_path, const char *words)
{
	struct fail f;

	(void)px_kill(x->p, &f); /* it may have ended */
	rex_raise(x->call, class_path, words, NULL);
	creating_free(x);
}

static void lost(struct seat_turn *t)
{
	never_began((struct creating *)t, "pexpect.exceptions.EOF", "the shell has ended");
}

static bool is_well(struct creating *x, const struct seat_match *m)
{
	if (m->found == SEAT_TIMEOUT) {
		seat_leave(x->seat);
		never_began(x, "pexpect.exceptions.TIMEOUT", "the session did not begin in time");
	} else if (m->found == SEAT_ENDED) {
		lost(&x->turn);
	}
	return m->found != SEAT_TIMEOUT && m->found != SEAT_ENDED;
}

static void sourced(void *arg, const struct seat_match *m)
{
	struct creating *x = arg;

	if (!is_well(x, m))
		return;
	str_addn(&x->said, m->before.at, m->before.len);
	created(x);
}

static void prompted(void *arg, const struct seat_match *m)
{
	struct creating *x = arg;

	if (!is_well(x, m))
		return;
	str_addn(&x->said, m->before.at, m->before.len);
	if (!x->sources) {
		created(x);
		return;
	}
	seat_say(x->seat, x->sources, strlen(x->sources));
	seat_await(x->seat, (struct seat_wish){ .has_limit = true, .ms = x->ms }, sourced, x);
}

static void ready(void *arg, const struct seat_match *m)
{
	struct creating *x = arg;

	if (!is_well(x, m))
		return;
	seat_say(x->seat, seat_init, strlen(seat_init));
	seat_say(x->seat, "\n", 1);
	seat_await(x->seat, (struct seat_wish){ .has_limit = true, .ms = BEGIN_MS }, prompted, x);
}

static void begin(struct seat_turn *t, struct seat *seat)
{
	struct creating *x = (struct creating *)t;

	x->seat = seat;
	seat_await(
	    seat,
	    (struct seat_wish){ .token = SEAT_TOKEN_READY, .has_limit = true, .ms = BEGIN_MS },
	    ready, x);
}

/* "source a; source b; …": what they do to prompts is undone in the same line. */
static int take_sources(struct call *c, const char **out, struct fail *f)
{
	const json_t *list = json_object_get(c->body, "startup_source"), *v;
	AUTO(str_done) struct str line = { .max = SOURCES_MAX };
	size_t i;

	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v) || strpbrk(json_string_value(v), "\n\r"))
			return fail_set(f, FAIL_INVALID,
			                "startup_source: a list of paths is expected");
		str_addf(&line, "source %s; ", json_string_value(v));
	}
	if (i == 0 || !json_is_array(list))
		return 0;
	str_addf(&line, "%s\n", seat_init);
	if (line.overflow)
		return fail_set(f, FAIL_INVALID, "startup_source: too long");
	*out = arena_strdup(&c->arena, str_text(&line));
	return 0;
}

static const char *session_of(struct call *c, struct fail *f)
{
	const char *name = "default";

	if (member_text(c->body, "session", &name, f) < 0)
		return NULL;
	if (strlen(name) > NAME_MAX_BYTES) {
		fail_set(f, FAIL_INVALID, "session: at most %d bytes", NAME_MAX_BYTES);
		return NULL;
	}
	return name;
}

static struct px *start(struct call *c, struct sbx *s, const char *name, struct fail *f)
{
	static const char *const argv[] = { "/bin/sh", "-c", seat_command, NULL };
	struct text_pair none[] = { { "PS1", "" } };
	struct pair_list env = { .at = none, .len = COUNT(none) };
	AUTO(str_done) struct str label = { .max = NAME_MAX_BYTES + sizeof SEAT_LABEL };

	str_addf(&label, SEAT_LABEL "%s", name);
	return px_start(s,
	                &(struct px_ask){ .argv = argv,
	                                  .label = str_text(&label),
	                                  .actor = c->actor,
	                                  .env = &env,
	                                  .is_tty = true,
	                                  .has_stdin = true,
	                                  .rows = 24,
	                                  .cols = 80,
	                                  .log_max = LOG_MAX },
	                f);
}

static void create(struct call *c, struct sbx *s)
{
	struct creating *x = mem_alloc(sizeof *x);
	struct fail f = { 0 };
	const char *name = session_of(c, &f);
	struct px *other = name ? seat_process(s, name) : NULL;

	*x = (struct creating){ .turn = { .begin = begin, .lost = lost, .call = c },
		                .said = { .max = LOG_MAX },
		                .ms = 1000 };
	if (other) {
		AUTO(str_done) struct str words = { .max = 256 };

		px_unref(other);
		str_addf(&words, "session %s already exists", name);
		rex_raise(c, REX("SessionExistsError"), str_text(&words), NULL);
	} else if (!name || take_sources(c, &x->sources, &f) < 0 ||
	           member_seconds(c->body, "startup_timeout", &x->ms, &f) < 0 ||
	           !(x->p = start(c, s, name, &f))) {
		answer_fail(c, &f);
	}
	if (!x->p) {
		free(x);
		return;
	}
	x->call = call_ref(c);
	(void)!seat_take(px_find(s->core, s->tenant, x->p->id, &f), &x->turn); /* the first */
}

void rex_create_session(struct call *c)
{
	compat_enter(c, create);
}

/* ---- close --------------------------------------------------------------------------- */

/* Answered when all of them have ended: a new one may have the name of one of these. */
struct closing {
	struct call *call;
	unsigned int left;
	bool is_removal; /* of the sandbox too */
	char sandbox[ID_SIZE];
	json_t *answer;
};

struct closing_one {
	struct px_watch watch; /* first */
	struct closing *all;
	struct px *p;
};

static void removed(void *arg, struct sbx *s, const struct fail *f)
{
	struct closing *x = arg;

	(void)s;
	if (f)
		answer_fail(x->call, f);
	else
		answer_json(x->call, 200, json_incref(x->answer));
	json_decref(x->answer);
	call_unref(x->call);
	free(x);
}

static void one_less(struct closing *x)
{
	struct fail f = { 0 };

	if (--x->left > 0)
		return;
	struct sbx *s =
	    x->is_removal ? roster_find(&x->call->api->core->sandboxes, x->sandbox) : NULL;
	if (!s)
		removed(x, NULL, NULL);
	else if (sbx_delete(s, removed, x, &f) < 0)
		removed(x, NULL, &f);
}

static void closed(struct px_watch *w)
{
	struct closing_one *one = (struct closing_one *)w;
	struct closing *all = one->all;
	struct px *p = one->p;

	if (!p->has_end)
		return;
	px_watch_remove(p, w);
	free(one);
	px_unref(p);
	one_less(all);
}

static void grew(struct px_watch *w)
{
	(void)w; /* nobody hears it any more */
}

/* Takes the reference. */
static void close_one(struct closing *x, struct px *p)
{
	struct closing_one *one = mem_alloc(sizeof *one);
	struct fail f;

	*one =
	    (struct closing_one){ .watch = { .changed = closed, .grew = grew }, .all = x, .p = p };
	x->left++;
	px_watch_add(p, &one->watch);
	/* A shell that somebody types into does not heed TERM, but a terminal that is gone. It may
	 * be about to end. */
	(void)px_signal(p, SIGHUP, true, &f);
	(void)px_kill(p, &f);
}

static struct closing *closing_new(struct call *c, json_t *answer)
{
	struct closing *x = mem_alloc(sizeof *x);

	*x = (struct closing){ .call = call_ref(c), .left = 1, .answer = answer };
	return x;
}

void rex_close_session(struct call *c)
{
	struct fail f = { 0 };
	const char *name = session_of(c, &f);
	struct sbx *s = name ? compat_find(c, &f) : NULL;
	struct px *p = s ? seat_process(s, name) : NULL;
	AUTO(str_done) struct str words = { .max = 1024 }; /* each byte may take four */

	if (!name || (!s && !compat_is_own(c))) {
		answer_fail(c, &f);
		return;
	}
	if (!p) {
		str_add(&words, "session ");
		py_repr(&words, span_of(name));
		str_add(&words, " does not exist");
		rex_raise(c, REX("SessionDoesNotExistError"), str_text(&words), NULL);
		return;
	}
	struct closing *x = closing_new(c, json_pack("{ss}", "session_type", "bash"));
	close_one(x, p);
	one_less(x);
}

/* All sessions; and the sandbox, where nobody else has made it. */
void rex_close(struct call *c)
{
	struct fail f = { 0 };
	struct sbx *s = compat_find(c, &f);

	if (!s && !compat_is_own(c)) {
		answer_fail(c, &f);
		return;
	}
	struct closing *x = closing_new(c, json_object());
	if (s && compat_is_own(c)) {
		x->is_removal = true;
		memcpy(x->sandbox, s->id, sizeof x->sandbox);
	}
	for (struct px *p = s ? s->processes : NULL; p; p = p->next)
		if (!p->has_end && p->label && p->is_tty && !x->is_removal &&
		    strncmp(p->label, SEAT_LABEL, strlen(SEAT_LABEL)) == 0)
			close_one(x, px_find(s->core, s->tenant, p->id, &f));
	one_less(x);
}
