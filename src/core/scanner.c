#include "core/scanner.h"

#include <fcntl.h>
#include <sys/random.h>

#include "base/fd.h"
#include "core/canary.h"
#include "core/maker.h"
#include "core/secret.h"
#include "os/extent.h"
#include "os/net.h"
#include "os/pulse.h"
#include "os/sock.h"
#include "wire/marks.h"

#define ASK_MS 10000
#define ROUNDS ((SECRETS_MAX + MARKS_NAMES - 1) / MARKS_NAMES)
#define TEXT_MAX (16u << 20)

/* One after the other: as many secrets as one set of marks has room for. */
struct scanner {
	struct canaries *canaries;
	struct canary_scan scan;
	const char *canary;
	struct marker *markers[ROUNDS];
	struct masking maskings[ROUNDS];
	size_t n;
	struct str between;
};

/* ---- looking ------------------------------------------------------------------------- */

void scanner_free(struct scanner *s)
{
	if (!s)
		return;
	canaries_free(s->canaries);
	for (size_t i = 0; i < s->n; i++) {
		masking_done(&s->maskings[i]);
		marker_free(s->markers[i]);
	}
	str_done(&s->between);
	free(s);
}

void scanner_again(struct scanner *s)
{
	s->scan = (struct canary_scan){ 0 };
	s->canary = NULL;
	for (size_t i = 0; i < s->n; i++) {
		masking_done(&s->maskings[i]);
		s->maskings[i] = (struct masking){ 0 };
	}
}

/* Through all of them from `from` on; with `is_end` each lets go of what it holds. */
static void run(struct scanner *s, struct span in, bool is_end, struct str *out)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };

	str_addn(&text, in.at, in.len);
	for (size_t i = 0; i < s->n; i++) {
		s->between.max = TEXT_MAX;
		str_clear(&s->between);
		masking_feed(&s->maskings[i], s->markers[i],
		             (struct span){ str_text(&text), text.len }, &s->between);
		if (is_end)
			masking_flush(&s->maskings[i], s->markers[i], &s->between);
		str_clear(&text);
		str_addn(&text, str_text(&s->between), s->between.len);
	}
	str_addn(out, str_text(&text), text.len);
}

void scanner_feed(struct scanner *s, struct span in, struct str *out)
{
	if (!s->canary)
		s->canary = canaries_look(s->canaries, &s->scan, in);
	run(s, in, false, out);
}

void scanner_flush(struct scanner *s, struct str *out)
{
	run(s, (struct span){ "", 0 }, true, out);
}

const char *scanner_canary(const struct scanner *s)
{
	return s->canary;
}

const char *scanner_secret(const struct scanner *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->maskings[i].hits > 0)
			return s->maskings[i].name;
	return NULL;
}

uint64_t scanner_hits(const struct scanner *s)
{
	uint64_t hits = 0;

	for (size_t i = 0; i < s->n; i++)
		hits += s->maskings[i].hits;
	return hits;
}

/* ---- asking -------------------------------------------------------------------------- */

struct scanner_ask {
	struct watch watch; /* to a child of the gate; fd -1: the launcher was asked for one */
	struct core *core;
	struct scanner_ask *next, **link;
	struct scanner *scanner;
	struct arena arena;
	struct secret_list secrets; /* without canaries */
	size_t n_asked;
	struct marks marks; /* of this round */
	uint8_t key[MARKS_KEY];
	char tenant[TENANT_SIZE];
	scanner_fn *done;
	void *arg;
	struct timer late;
};

static void ask_round(struct scanner_ask *a);

static void hang_up(struct scanner_ask *a)
{
	if (a->watch.fd >= 0)
		loop_remove(a->core->loop, &a->watch);
	fd_close(&a->watch.fd);
}

static void ask_end(struct scanner_ask *a, const char *why)
{
	struct fail f = { 0 };

	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	maker_cancel(a->core, a);
	hang_up(a);
	timer_stop(&a->core->timers, &a->late);
	if (why)
		fail_set(&f, FAIL_BACKEND_ERROR, "the gate, which knows the secrets: %s", why);
	if (why)
		scanner_free(a->scanner);
	a->done(a->arg, why ? NULL : a->scanner, why ? &f : NULL);
	arena_done(&a->arena);
	free(a);
}

static size_t round_size(const struct scanner_ask *a)
{
	size_t left = a->secrets.n - a->n_asked;

	return left < MARKS_NAMES ? left : MARKS_NAMES;
}

/* The child has said all and ended. One that does not open is nobody's secret any more, so there
 * may be fewer than were asked about. */
static void round_over(struct scanner_ask *a)
{
	hang_up(a);
	a->scanner->markers[a->scanner->n++] = marker_new(&a->marks);
	a->n_asked += round_size(a);
	ask_round(a);
}

static void ready(struct watch *w, uint32_t events)
{
	struct scanner_ask *a = (struct scanner_ask *)(void *)w;
	struct gate_packet p;
	int n = os_recv_some(w->fd, &p, sizeof p);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n > 0 && gate_check(&p, (size_t)n, 0) && p.head.type == G_MARKS)
		marks_take(&a->marks, &p.marks);
	else if (n > 0 && gate_check(&p, (size_t)n, 0) && p.head.type == G_UP)
		round_over(a);
	else
		ask_end(a, "it does not answer; see the launcher's log");
}

/* Nothing but the secrets: a child that has no network. */
static int document(const struct scanner_ask *a, struct str *out)
{
	json_t *list = json_array();

	for (size_t i = 0; i < round_size(a); i++) {
		const struct secret_row *row = &a->secrets.rows[a->n_asked + i];

		json_array_append_new(list, json_pack("{ss,ss,ss,ss}", "name", row->name, "tenant",
		                                      a->tenant, "bind", row->bind, "sealed",
		                                      row->sealed));
	}
	json_t *doc = json_pack("{ss,so}", "net", "deny", "creds", list);
	AUTO(freep) char *text = json_dumps(doc, JSON_COMPACT);

	json_decref(doc);
	str_add(out, text ? text : "");
	AUTO(fd_close) int fd = os_memfd_sealable("secrets");
	int r = fd < 0 ? fd : os_pwrite2(fd, str_text(out), out->len, NULL, 0, 0);
	if (r >= 0)
		r = os_seal(fd);
	return r < 0 ? r : fd_take(&fd);
}

static void opened(void *arg, int child_fd, const struct err *e)
{
	struct scanner_ask *a = arg;
	struct gate_packet ask = { .head = { G_LOOK, sizeof ask.look } };
	AUTO(str_done) struct str text = { .max = GATE_RULES_MAX };
	AUTO(fd_close) int fd = child_fd;

	if (e) {
		ask_end(a, e->msg);
		return;
	}
	AUTO(fd_close) int rules = document(a, &text);
	int r = rules;

	memcpy(ask.look.key, a->key, MARKS_KEY);
	if (r >= 0)
		r = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	(void)os_refuse_fds(fd);
	if (r >= 0)
		r = os_send(fd, &ask, gate_size(&ask), &rules, 1);
	if (r >= 0) {
		a->watch.fd = fd_take(&fd);
		r = loop_add(a->core->loop, &a->watch, EPOLLIN);
	}
	if (r < 0)
		ask_end(a, strerror(-r));
}

static void ask_round(struct scanner_ask *a)
{
	if (a->n_asked == a->secrets.n) {
		ask_end(a, NULL);
		return;
	}
	marks_begin(&a->marks, a->key);
	timer_set(&a->core->timers, &a->late, ASK_MS);
	maker_gate(a->core, opened, a);
}

static void late(struct timer *t)
{
	ask_end((struct scanner_ask *)(void *)((char *)t - offsetof(struct scanner_ask, late)),
	        "it does not answer");
}

/* Those that are secrets, in front. */
static void drop_canaries(struct secret_list *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->rows[i].sealed, SECRET_NONE) != 0)
			all->rows[n++] = all->rows[i];
	all->n = n;
}

void scanner_open(struct core *c, const char *tenant, scanner_fn *done, void *arg)
{
	struct scanner_ask *a = mem_alloc(sizeof *a);
	struct err e = { 0 };

	*a = (struct scanner_ask){ .watch = { .fd = -1, .ready = ready },
		                   .core = c,
		                   .next = c->scanner_asks,
		                   .link = &c->scanner_asks,
		                   .done = done,
		                   .arg = arg,
		                   .late.fired = late };
	if (a->next)
		a->next->link = &a->next;
	c->scanner_asks = a;
	snprintf(a->tenant, sizeof a->tenant, "%s", tenant);
	struct canaries *canaries = canary_all(c, tenant);

	if (store_secret_list(c->store, tenant, &a->arena, &a->secrets, &e) < 0) {
		canaries_free(canaries);
		ask_end(a, e.msg);
		return;
	}
	drop_canaries(&a->secrets);
	if (canaries || a->secrets.n > 0) {
		a->scanner = mem_alloc(sizeof *a->scanner);
		*a->scanner = (struct scanner){ .canaries = canaries };
	}
	if (getrandom(a->key, sizeof a->key, 0) != (ssize_t)sizeof a->key) {
		ask_end(a, "no random bytes");
		return;
	}
	ask_round(a);
}

void scanners_close(struct core *c)
{
	for (struct scanner_ask *a = c->scanner_asks, *next; a; a = next) {
		next = a->next;
		ask_end(a, "the daemon ends");
	}
}
