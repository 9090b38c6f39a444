/*
 * seat.c - a bash with a terminal, and one who sits there: lines are typed, and what is said is
 * looked through for the prompt, which has the exit code in it, or for what was expected.
 *
 * The process is one of the sandbox, by its label. What is here is a view of its log and nothing
 * else: a daemon that is started again reads it from its beginning, and knows again what was said
 * since the last prompt.
 *
 * Nothing that is typed is echoed, and readline has no paste brackets; so what is said between two
 * prompts is what the command wrote.
 */
#include "base/limits.h"
#include "compat/compat-internal.h"

#define TEXT_MAX (8u << 20)    /* since the last prompt; beyond: */
#define TEXT_KEPT (2u << 20)   /* head and tail of so much each; the same while nobody sits there */
#define LOOK_BACK (64u << 10)  /* a pattern may begin so far before what is new */
#define LOOK_TURN (256u << 10) /* so much is new at most when it is looked at */
#define TYPED_MAX (32u << 20)  /* every byte of a command may take four */
#define TURNS_MAX 16           /* each has a command of up to BODY_JSON_MAX, its client or not */
#define MARK '\036'            /* RS: in no text that a person writes */

const char seat_command[] = "stty -echo; printf '\\036R\\036'; exec bash";
/* Exported, as theirs are: a shell in this shell has the same. An activated environment, or whoever
 * else changes the prompt, does not hide it. */
const char seat_init[] =
    "bind 'set enable-bracketed-paste off' 2>/dev/null; "
    "export PROMPT_COMMAND=$'PS1=\\'\\036P$?\\036\\' PS2= PS0=' PS1= PS2= PS0=";

struct seat {
	struct px_watch watch; /* first */
	struct seat *next;
	struct px *p;
	struct scan scan;
	struct str text; /* since the last prompt, or match */
	size_t look_at;  /* in the text: what is awaited is not before it */
	uint64_t cut;    /* bytes that were left out of the text, at TEXT_KEPT */
	struct str typed;
	size_t typed_at;
	struct seat_turn *turns; /* the first has it */
	struct timer again;      /* the rest of a long log, next turn */
	struct timer late;
	struct seat_wish wish;
	seat_fn *then; /* NULL: nothing is awaited */
	void *arg;
	bool is_draining; /* for the turn that is about to begin */
	bool is_busy;     /* within go_on() */
};

static struct seat *seats; /* views of logs: nothing is lost with them */

static void go_on(struct seat *x);

static void seat_free(struct seat *x)
{
	struct px *p = x->p;
	struct seat **at = &seats;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	timer_stop(&p->core->timers, &x->again);
	timer_stop(&p->core->timers, &x->late);
	px_watch_remove(p, &x->watch);
	scan_done(&x->scan);
	str_done(&x->text);
	str_done(&x->typed);
	free(x);
	px_unref(p);
}

/* ---- what was said ------------------------------------------------------------------- */

static void drop(struct seat *x, size_t n)
{
	if (!x->text.data) /* nothing was said: a pattern may match that */
		return;
	memmove(x->text.data, x->text.data + n, x->text.len - n);
	x->text.len -= n;
	x->text.data[x->text.len] = '\0';
	x->look_at = x->look_at > n ? x->look_at - n : 0;
}

static bool is_full(const struct seat *x)
{
	return x->text.len > TEXT_MAX - LOG_FRAME_DATA_MAX;
}

static void shorten(struct seat *x)
{
	size_t cut = x->text.len - (size_t)2 * TEXT_KEPT;

	memmove(x->text.data + TEXT_KEPT, x->text.data + TEXT_KEPT + cut, TEXT_KEPT);
	x->text.len -= cut;
	x->text.data[x->text.len] = '\0';
	x->cut += cut;
	x->look_at = x->look_at > TEXT_KEPT + cut ? x->look_at - cut : TEXT_KEPT;
}

/* RS P digits RS: the first at or behind `from`. */
static bool find_prompt(const struct seat *x, size_t from, size_t *at, size_t *end, int *code)
{
	const char *text = str_text(&x->text), *stop = text + x->text.len;

	for (const char *p = text + from; p < stop; p++) {
		p = memchr(p, MARK, (size_t)(stop - p));
		if (!p)
			return false;
		const char *digit = p + 2;
		int value = 0;

		while (digit < stop && *digit >= '0' && *digit <= '9' && value < 1000)
			value = value * 10 + (*digit++ - '0');
		if (p + 1 < stop && p[1] == 'P' && digit > p + 2 && digit < stop &&
		    *digit == MARK) {
			*at = (size_t)(p - text);
			*end = (size_t)(digit - text) + 1;
			*code = value;
			return true;
		}
	}
	return false;
}

/* Before a turn nobody waits for prompts: what was said before the last one was somebody else's.
 * There may be a million of them, since a command can write what it likes: all go at once. */
static void drop_past(struct seat *x)
{
	size_t at, end, past = 0;
	int code;

	while (find_prompt(x, past, &at, &end, &code))
		past = end;
	if (past == 0)
		return;
	drop(x, past);
	x->cut = 0;
}

/* Nobody sits there: no more memory than what is left needs. */
static void rest(struct seat *x)
{
	struct str left = { .max = x->text.max };

	if (!x->scan.block) /* nothing came since */
		return;
	if (x->text.len > (size_t)2 * TEXT_KEPT)
		shorten(x);
	if (x->text.len > 0)
		str_addn(&left, x->text.data, x->text.len);
	str_done(&x->text);
	x->text = left;
	scan_done(&x->scan);
	x->scan.block_len = 0;
}

/* ---- the wait ------------------------------------------------------------------------ */

static void tell(struct seat *x, const struct seat_match *m)
{
	seat_fn *then = x->then;

	x->then = NULL;
	timer_stop(&x->p->core->timers, &x->late);
	then(x->arg, m);
}

/* What was left out is named where it was. */
static void mark_cut(struct seat *x, struct str *before)
{
	size_t head = before->len < TEXT_KEPT ? before->len : TEXT_KEPT;
	AUTO(str_done) struct str whole = { .max = (size_t)2 * TEXT_MAX };

	str_addn(&whole, str_text(before), head);
	str_addf(&whole, "\n[... %llu bytes left out ...]\n", (unsigned long long)x->cut);
	str_addn(&whole, str_text(before) + head, before->len - head);
	str_clear(before);
	str_addn(before, str_text(&whole), whole.len);
	x->cut = 0;
}

/* The text up to `at` is told, and what was matched is gone. */
static void tell_match(struct seat *x, struct seat_match m, size_t at, size_t end)
{
	AUTO(str_done) struct str before = { .max = (size_t)2 * TEXT_MAX };

	str_addn(&before, str_text(&x->text), at);
	if (x->cut > 0)
		mark_cut(x, &before);
	drop(x, end);
	x->look_at = 0;
	m.before = (struct span){ str_text(&before), before.len };
	tell(x, &m);
}

static bool find_token(const struct seat *x, struct seat_match *m, size_t *at, size_t *end)
{
	size_t n = strlen(x->wish.token);
	const char *found = memmem(str_text(&x->text), x->text.len, x->wish.token, n);

	if (!found)
		return false;
	m->found = SEAT_TOKEN;
	*at = (size_t)(found - x->text.data);
	*end = *at + n;
	return true;
}

static bool look(struct seat *x)
{
	struct span text = { str_text(&x->text), x->text.len };
	struct seat_match m = { .found = SEAT_PROMPT };
	size_t at = 0, end = 0, other_at = 0, other_end = 0;
	bool is_prompt;

	if (x->wish.is_pause)
		return false;
	if (x->wish.token)
		is_prompt = find_token(x, &m, &at, &end);
	else
		is_prompt = find_prompt(x, x->look_at, &at, &end, &m.exit_code);
	if (expects_find(x->wish.expects, text, x->look_at, &other_at, &other_end, &m.index) &&
	    (!is_prompt || other_at < at)) {
		m.found = SEAT_EXPECT;
		tell_match(x, m, other_at, other_end);
		return true;
	}
	if (is_prompt)
		tell_match(x, m, at, end);
	else if (text.len > x->look_at + LOOK_BACK)
		x->look_at = text.len - LOOK_BACK;
	return is_prompt;
}

static void on_late(struct timer *t)
{
	struct seat *x = (struct seat *)(void *)((char *)t - offsetof(struct seat, late));
	struct seat_match m = { .found = SEAT_TIMEOUT,
		                .before = { str_text(&x->text), x->text.len } };

	if (x->then)
		tell(x, &m);
	go_on(x);
}

void seat_await(struct seat *x, struct seat_wish wish, seat_fn *then, void *arg)
{
	x->wish = wish;
	x->then = then;
	x->arg = arg;
	if (wish.has_limit)
		timer_set(&x->p->core->timers, &x->late, wish.ms);
	/* What is there already may be it; from the loop, so that callers are not called back from
	 * within. */
	timer_set(&x->p->core->timers, &x->again, 0);
}

void seat_unread(struct seat *x, struct span text)
{
	AUTO(str_done) struct str whole = { .max = TEXT_MAX };

	str_addn(&whole, text.at, text.len);
	str_addn(&whole, str_text(&x->text), x->text.len);
	str_clear(&x->text);
	str_addn(&x->text, str_text(&whole), whole.len);
}

/* ---- what is typed ------------------------------------------------------------------- */

static void feed(struct seat *x)
{
	struct fail f = { 0 };

	while (x->typed_at < x->typed.len && !x->p->has_end) {
		size_t room = px_input_room(x->p), left = x->typed.len - x->typed_at;
		size_t n = left < room ? left : room;

		if (n == 0)
			return;
		if (px_input(x->p, x->typed.data + x->typed_at, n, false, &f) < 0)
			break; /* it has ended, and that is told */
		x->typed_at += n;
	}
	str_done(&x->typed);
	x->typed = (struct str){ .max = TYPED_MAX };
	x->typed_at = 0;
}

void seat_say(struct seat *x, const void *bytes, size_t n)
{
	x->look_at = x->text.len;
	str_addn(&x->typed, bytes, n);
	feed(x);
}

void seat_sync(struct seat *x)
{
	static const char line[] = "stty -echo; printf '\\036S\\036'\n";

	seat_say(x, line, strlen(line));
}

/* ---- turns --------------------------------------------------------------------------- */

static void begin_next(struct seat *x)
{
	struct seat_turn *t = x->turns;

	x->is_draining = false;
	drop_past(x);
	t->begin(t, x);
}

static void lose_all(struct seat *x)
{
	struct seat_match m = { .found = SEAT_ENDED,
		                .before = { str_text(&x->text), x->text.len } };

	if (x->then) {
		x->turns = x->turns->next;
		tell(x, &m);
	}
	while (x->turns) {
		struct seat_turn *t = x->turns;

		x->turns = t->next;
		t->lost(t);
	}
	seat_free(x);
}

void seat_leave(struct seat *x)
{
	x->turns = x->turns->next;
	x->then = NULL;
	timer_stop(&x->p->core->timers, &x->late);
	x->is_draining = x->turns != NULL;
	timer_set(&x->p->core->timers, &x->again, 0);
}

/* As much as is looked at in one turn, or as the text has room for. True: that was all for now. */
static bool read_some(struct seat *x)
{
	uint64_t from = x->scan.at, most = x->then ? LOOK_TURN : SCAN_TURN;
	struct scan_piece piece;
	int r = x->p->log_fd >= 0 ? 1 : 0;

	while (r > 0 && x->scan.at - from < most && !is_full(x) &&
	       (r = scan_next(&x->scan, &piece)) > 0)
		str_addn(&x->text, piece.bytes, piece.len);
	if (x->scan.at != from)
		px_ack(x->p, x->scan.at); /* the next doorbell may ring */
	return r <= 0;
}

/* What was expected took long to look for: nothing is read meanwhile. */
static bool is_resting(struct seat *x)
{
	uint64_t ms = x->then && !x->p->is_over ? expects_rest_ms(x->wish.expects) : 0;

	if (ms > 0)
		timer_set(&x->p->core->timers, &x->again, ms);
	return ms > 0;
}

/* Nobody's turn: nothing is read. */
static void go_on(struct seat *x)
{
	if (x->is_busy)
		return;
	if (!x->turns) {
		if (x->p->is_over)
			seat_free(x);
		else
			rest(x);
		return;
	}
	feed(x);
	if (is_resting(x))
		return;
	x->is_busy = true;
	bool is_all = read_some(x);

	if (x->is_draining)
		drop_past(x);
	if (is_all && x->is_draining)
		begin_next(x);
	else if (x->then)
		(void)look(x);
	if (is_full(x)) /* it was looked at */
		shorten(x);
	x->is_busy = false;
	if (!is_all)
		timer_set(&x->p->core->timers, &x->again, 0);
	else if (x->p->is_over || x->p->is_unrecorded)
		lose_all(x);
}

static void fired(struct timer *t)
{
	go_on((struct seat *)(void *)((char *)t - offsetof(struct seat, again)));
}

static void changed(struct px_watch *w)
{
	go_on((struct seat *)w);
}

/* ---- which --------------------------------------------------------------------------- */

struct px *seat_process(struct sbx *s, const char *name)
{
	struct fail f;
	size_t skip = strlen(SEAT_LABEL);

	for (struct px *p = s->processes; p; p = p->next)
		if (!p->has_end && p->is_tty && p->label &&
		    strncmp(p->label, SEAT_LABEL, skip) == 0 && strcmp(p->label + skip, name) == 0)
			return px_find(s->core, s->tenant, p->id, &f);
	return NULL;
}

static struct seat *seat_of(struct px *p)
{
	struct seat *x = seats;

	while (x && x->p != p)
		x = x->next;
	if (x) {
		px_unref(p);
		return x;
	}
	x = mem_alloc(sizeof *x);
	*x = (struct seat){ .watch = { .changed = changed, .grew = changed },
		            .next = seats,
		            .p = p,
		            .text = { .max = (size_t)2 * TEXT_MAX },
		            .typed = { .max = TYPED_MAX } };
	x->again.fired = fired;
	x->late.fired = on_late;
	scan_init(&x->scan, p->log_fd, 0);
	px_watch_add(p, &x->watch);
	seats = x;
	return x;
}

bool seat_take(struct px *p, struct seat_turn *t)
{
	struct seat *x = seat_of(p);
	struct seat_turn **at = &x->turns;
	size_t n = 0;

	t->next = NULL;
	if (x->then && !x->turns->call->r && !x->is_busy)
		tell(x, &(struct seat_match){ .found = SEAT_TIMEOUT });
	x->is_draining |= !x->turns;
	for (; *at; at = &(*at)->next)
		n++;
	if (n >= TURNS_MAX)
		return false;
	*at = t;
	timer_set(&p->core->timers, &x->again, 0);
	return true;
}

void seat_disturb(const struct px *p)
{
	struct seat *x = seats;

	while (x && x->p != p)
		x = x->next;
	if (x && x->then) {
		str_addn(&x->typed, "\003", 1);
		feed(x);
	}
}
