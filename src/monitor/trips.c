/*
 * trips.c - programs that are held until somebody has said yes (spec/trip.h).
 *
 * The filter holds execve until it is answered, so whoever starts such a program just waits: the
 * command itself before it is executed, what it starts in the middle of it. A signal, and a moment
 * in which all stand still, interrupt that, and the kernel says it again under another number: the
 * same program of the same process is the same question. A process that tries folder after folder
 * for a program is asked for once: a decision holds for a moment, for the one that it was about.
 *
 * What is compared is read from the caller's memory, and once more before it goes on. Between that
 * and the kernel's own look another thread can still change it: this is a tripwire, not a wall.
 *
 * The client asks and answers. What it does not know is said again to the next one; without any
 * answer in time the program is refused.
 */
#include <sys/syscall.h>

#include "monitor/monitor-internal.h"
#include "os/seccomp.h"
#include "spec/trip.h"

#define ARGS_MAX 512
#define PATH_SIZE 1024
#define PENDING_MAX 64
#define UNTOLD_MAX 16 /* and refused, while nobody can be told */
#define SWEEP_MS 250
#define MISSES_MAX 2   /* sweeps that find nobody waiting, until nobody is */
#define STANDS_MS 2000 /* a decision, for attempts of the same */
#define SLACK_MS 1000  /* who asks for us has the same time, and the first word */

/* What a process is about to start. */
struct seen {
	char path[PATH_SIZE];
	char text[CHANNEL_TRIP_TEXT]; /* arguments, each with its NUL */
	size_t len;
	const char *argv[ARGS_MAX + 1];
	bool is_cut;
};

struct trip {
	struct trip *next;
	struct proc *proc; /* NULL: it is over, and somebody is to be told */
	uint32_t num;
	struct seccomp_notif notif;
	pid_t pid; /* 0: the command itself */
	uint64_t until_ms;
	int misses;
	bool is_told, is_decided, is_allowed;
	struct channel_trip said;
};

/* ---- what is started ----------------------------------------------------------------- */

static void add_argument(struct seen *s, size_t n)
{
	s->argv[n] = s->text + s->len;
	s->argv[n + 1] = NULL;
	s->len += strlen(s->text + s->len) + 1;
}

/* Into `text`, as far as there is room. */
static void look(const struct seccomp_notif *n, struct seen *s)
{
	const bool is_at = n->data.nr == SYS_execveat;
	const uint64_t list = n->data.args[is_at ? 2 : 1];
	const pid_t pid = (pid_t)n->pid;
	uint64_t at = 0;

	s->len = 0;
	s->is_cut = false;
	s->argv[0] = NULL;
	execs_peek_text(pid, n->data.args[is_at ? 1 : 0], s->path, sizeof s->path);
	for (size_t i = 0; i <= ARGS_MAX; i++) {
		size_t room = sizeof s->text - s->len;

		if (execs_peek(pid, list + i * sizeof at, &at, sizeof at) != sizeof at || at == 0)
			return;
		s->is_cut = i == ARGS_MAX || room < 2;
		if (s->is_cut)
			return;
		s->is_cut = execs_peek_text(pid, at, s->text + s->len, room) + 1 == room;
		add_argument(s, i);
		if (s->is_cut)
			return;
	}
}

static void look_at_own(const struct proc *p, struct seen *s)
{
	const char *from = p->trips.own, *end = from + p->trips.own_len;
	size_t n = 0;

	*s = (struct seen){ .is_cut = p->trips.is_own_cut };
	for (; from < end && n < ARGS_MAX; from += strlen(from) + 1) {
		memcpy(s->text + s->len, from, strlen(from) + 1);
		add_argument(s, n++);
	}
}

/* The number of the command that it is; -1: none. */
static int rule_of(const struct proc *p, const struct seen *s)
{
	const struct trip_command c = { .path = s->path[0] ? s->path : NULL, .argv = s->argv };
	const char *rule = p->trips.rules;

	for (uint32_t i = 0; i < p->trips.n; i++, rule += strlen(rule) + 1)
		if (trip_matches(rule, &c))
			return (int)i;
	return -1;
}

static bool is_same(const struct trip *t, const struct seen *s)
{
	return t->said.text_len == s->len && memcmp(t->said.text, s->text, s->len) == 0;
}

/* ---- to the client ------------------------------------------------------------------- */

static void drop(struct monitor *m, struct trip *t)
{
	struct trip **at = &m->trips;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	m->n_trips--;
	free(t);
}

static bool say(struct monitor *m, struct trip *t)
{
	const uint64_t now = timer_now_ms();

	t->said.left_ms = (uint32_t)(t->until_ms > now ? t->until_ms - now : 0);
	t->said.left_ms -= t->said.left_ms > SLACK_MS ? SLACK_MS : t->said.left_ms;
	return talk_about(m, CH_TRIP, t->num, &t->said, sizeof t->said);
}

static bool is_refusal(const struct trip *t)
{
	return t->said.flags & (TRIP_FULL | TRIP_LATE);
}

static void tell(struct monitor *m, struct trip *t)
{
	const struct gate_unask over = { .ask = t->said.ask };

	if (!t->is_told && (t->proc || is_refusal(t)) && (!t->is_decided || is_refusal(t)))
		t->is_told = say(m, t);
	if (t->proc || (is_refusal(t) && !t->is_told))
		return;
	if (is_refusal(t) || !t->is_told || t->is_decided ||
	    talk_about(m, CH_UNTRIP, t->num, &over, sizeof over))
		drop(m, t);
}

void trips_tell(struct monitor *m)
{
	for (struct trip *t = m->trips, *next; t; t = next) {
		next = t->next;
		tell(m, t);
	}
}

/* Those that are over are of no interest to one that was never told of them. */
void trips_new_client(struct monitor *m)
{
	for (struct trip *t = m->trips; t; t = t->next)
		if (!is_refusal(t))
			t->is_told = false;
}

/* ---- their life ---------------------------------------------------------------------- */

static void refuse(struct trip *t)
{
	(void)os_seccomp_refuse(execs_listener(t->proc), t->notif.id, EPERM); /* or it is gone */
}

static void go_on(struct trip *t)
{
	struct proc *p = t->proc;

	if (t->said.flags & TRIP_OWN && p->command.timeout_ms) /* it begins now */
		timer_set(&p->monitor->timers, &p->timeout, p->command.timeout_ms);
	execs_resume(p, &t->notif);
}

static void decide(struct trip *t, bool is_allowed)
{
	t->is_decided = true;
	t->is_allowed = is_allowed;
	t->until_ms = timer_now_ms() + STANDS_MS;
	if (is_allowed)
		go_on(t);
	else
		refuse(t);
}

static void sweep_one(struct trip *t)
{
	const bool is_late = timer_now_ms() >= t->until_ms;

	if (!t->proc)
		return;
	if (t->is_decided && is_late) {
		t->proc = NULL;
		return;
	}
	if (t->is_decided)
		return;
	if (is_late) {
		t->said.flags |= TRIP_LATE;
		t->is_told = false;
		decide(t, false);
		return;
	}
	t->misses = os_seccomp_valid(execs_listener(t->proc), t->notif.id) < 0 ? t->misses + 1 : 0;
	if (t->misses > MISSES_MAX)
		t->proc = NULL;
}

static void sweep_fired(struct timer *timer)
{
	struct monitor *m = OWNER_OF(timer, struct monitor, trip_sweep);

	for (struct trip *t = m->trips, *next; t; t = next) {
		next = t->next;
		sweep_one(t);
	}
	trips_tell(m);
	if (m->trips)
		timer_set(&m->timers, timer, SWEEP_MS);
}

static struct trip *trip_new(struct proc *p, const struct seen *s, int rule)
{
	struct monitor *m = p->monitor;
	struct trip *t = mem_alloc(sizeof *t);
	const bool is_own = !p->is_announced;

	*t = (struct trip){ .next = m->trips,
		            .proc = p,
		            .num = p->num,
		            .until_ms = timer_now_ms() + p->trips.ms + SLACK_MS,
		            .said = { .ask = ++m->last_trip,
		                      .flags = (is_own ? TRIP_OWN : 0) | (s->is_cut ? TRIP_CUT : 0),
		                      .rule = (uint32_t)rule,
		                      .text_len = (uint32_t)s->len } };
	memcpy(t->said.text, s->text, s->len);
	m->trips = t;
	m->n_trips++;
	m->trip_sweep.fired = sweep_fired;
	if (m->trip_sweep.at_ms == 0)
		timer_set(&m->timers, &m->trip_sweep, SWEEP_MS);
	return t;
}

static struct trip *find(const struct proc *p, pid_t pid)
{
	for (struct trip *t = p->monitor->trips; t; t = t->next)
		if (t->proc == p && t->pid == pid)
			return t;
	return NULL;
}

/* It is the one that waits already, or that was decided just now. */
static bool is_known(struct trip *t, const struct seccomp_notif *n)
{
	t->notif = *n;
	t->misses = 0;
	if (!t->is_decided)
		return true;
	if (!t->is_allowed)
		refuse(t);
	return !t->is_allowed;
}

static bool hold(struct proc *p, const struct seccomp_notif *n, const struct seen *s, int rule)
{
	struct monitor *m = p->monitor;
	const bool is_own = !p->is_announced, is_full = m->n_trips >= PENDING_MAX;

	if (m->n_trips >= PENDING_MAX + UNTOLD_MAX) {
		(void)os_seccomp_refuse(execs_listener(p), n->id, EPERM); /* or it is gone */
		return true;
	}
	struct trip *t = trip_new(p, s, rule);

	t->notif = *n;
	t->pid = is_own ? 0 : (pid_t)n->pid;
	t->said.pid = n->pid;
	if (is_own) /* the time until somebody answers is not its own */
		timer_stop(&m->timers, &p->timeout);
	if (is_full) {
		t->said.flags |= TRIP_FULL;
		decide(t, false);
		t->proc = NULL;
	}
	trips_tell(m);
	return true;
}

bool trips_hold(struct proc *p, const struct seccomp_notif *n)
{
	static struct seen s;
	const bool is_own = !p->is_announced;

	if (p->trips.n == 0 || (is_own && p->command.is_shell))
		return false;
	if (is_own)
		look_at_own(p, &s);
	else
		look(n, &s);
	const int rule = rule_of(p, &s);
	struct trip *t = find(p, is_own ? 0 : (pid_t)n->pid);

	if (t && rule >= 0 && is_same(t, &s))
		return is_known(t, n);
	if (t)
		t->proc = NULL; /* it does something else now */
	return rule >= 0 && hold(p, n, &s, rule);
}

void trips_answer(struct monitor *m, const struct gate_answer *a)
{
	static struct seen s;
	struct trip *t = m->trips;

	while (t && (t->said.ask != a->ask || !t->proc || t->is_decided))
		t = t->next;
	if (!t)
		return; /* too late */
	if (a->is_allowed && !(t->said.flags & TRIP_OWN)) {
		look(&t->notif, &s);
		if (!is_same(t, &s)) { /* it was not asked about that */
			decide(t, false);
			return;
		}
	}
	decide(t, a->is_allowed != 0);
}

void trips_leave(struct proc *p)
{
	for (struct trip *t = p->monitor->trips; t; t = t->next)
		if (t->proc == p)
			t->proc = NULL;
	freep(&p->trips.rules);
	freep(&p->trips.own);
	p->trips.n = 0;
	trips_tell(p->monitor);
}

/* ---- what is asked about it from inside ---------------------------------------------- */

const struct channel_trip *trips_at(const struct monitor *m, size_t i, const char **rule,
                                    uint64_t *left_ms)
{
	const uint64_t now = timer_now_ms();
	size_t n = 0;

	for (const struct trip *t = m->trips; t; t = t->next) {
		if (!t->proc || t->is_decided || t->until_ms <= now || n++ < i)
			continue;
		*rule = t->proc->trips.rules;
		for (uint32_t k = 0; k < t->said.rule; k++)
			*rule += strlen(*rule) + 1;
		*left_ms = t->until_ms - now;
		return &t->said;
	}
	return NULL;
}

/* ---- what is to be held -------------------------------------------------------------- */

static void learn_own(struct proc *p, const struct command *c)
{
	const char *from = c->text + strlen(c->text) + 1;
	struct str own = { .max = CHANNEL_TRIP_TEXT };
	uint32_t i = 0;

	for (; i < c->argc && i < ARGS_MAX && !own.overflow; i++, from += strlen(from) + 1)
		str_addn(&own, from, strlen(from) + 1);
	p->trips.is_own_cut = i < c->argc || own.overflow;
	p->trips.own = own.data;
	p->trips.own_len = own.len;
}

void trips_learn(struct proc *p, const struct command *c)
{
	const char *rules = command_trips(c);
	size_t len = (size_t)(c->text + c->text_len - rules);

	if (c->tripc == 0)
		return;
	p->trips.n = c->tripc;
	p->trips.ms = c->trip_ms;
	p->trips.rules = mem_alloc(len);
	memcpy(p->trips.rules, rules, len);
	learn_own(p, c);
}
