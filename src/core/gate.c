#include "core/gate.h"

#include "base/fd.h"
#include "core/maker.h"
#include "core/net.h"
#include "core/sandbox-internal.h"
#include "core/secret.h"
#include "io/journal.h"
#include "os/extent.h"
#include "spec/netdoc.h"

#define AGAIN_MS_MIN 20
#define AGAIN_MS_MAX 1000
#define TRIES_MAX 4 /* of children that do not even begin, while a sandbox is made */

struct gate {
	struct sbx *sandbox;
	int rules_fd;        /* the document, sealed; -1 once the monitor has it */
	int child_fd;        /* the socket of a child that the monitor has not got yet; or -1 */
	uint32_t generation; /* of the rules */
	bool is_asked;       /* the launcher */
	bool is_linked, is_up;
	unsigned int tries;
	struct timer again;
	struct fail fail; /* before it is linked */
	struct {
		gate_ruled_fn *done;
		void *arg;
	} ruled;
};

/* ---- rules --------------------------------------------------------------------------- */

static int write_rules(struct sbx *s, struct fail *f)
{
	AUTO(str_done) struct str text = { .max = GATE_RULES_MAX };
	struct err e = { 0 };
	json_t *held = s->spec.creds.len > 0 ? secret_rules(s) : NULL;

	if (net_document(&s->spec.net, s->core->config.net, held, &text, &e) < 0)
		return fail_err(f, &e);
	if (text.overflow)
		return fail_set(f, FAIL_INVALID, "net: the rules have more than %u bytes",
		                GATE_RULES_MAX);
	AUTO(fd_close) int fd = os_memfd_sealable("rules");
	int r = fd < 0 ? fd : os_pwrite2(fd, str_text(&text), text.len, NULL, 0, 0);
	if (r >= 0)
		r = os_seal(fd);
	if (r < 0)
		return fail_set(f, FAIL_BACKEND_ERROR, "write the rules: %s", strerror(-r));
	fd_close(&s->gate->rules_fd);
	s->gate->rules_fd = fd_take(&fd);
	/* Numbers grow, also when a daemon before us has given some. */
	uint32_t seconds = (uint32_t)(core_now_ms() / 1000);
	s->gate->generation = s->gate->generation >= seconds ? s->gate->generation + 1 : seconds;
	return 0;
}

static int pass_rules(struct sbx *s)
{
	const struct gate_rules rules = { .generation = s->gate->generation };
	struct channel_head head = { .type = CH_RULES, .len = sizeof rules };
	int r = link_send_fds(&s->link, head, &rules,
	                      (struct link_fds){ .fd = { s->gate->rules_fd }, .n = 1 });

	fd_close(&s->gate->rules_fd);
	return r;
}

/* ---- a child ------------------------------------------------------------------------- */

static void pass_child(struct sbx *s)
{
	struct channel_head head = { .type = CH_GATE };

	if (s->gate->child_fd >= 0)
		(void)link_send_fds(&s->link, head, NULL,
		                    (struct link_fds){ .fd = { s->gate->child_fd }, .n = 1 });
	fd_close(&s->gate->child_fd);
}

static void ask_later(struct gate *g)
{
	uint64_t ms = (uint64_t)AGAIN_MS_MIN << (g->tries < 10 ? g->tries : 10);

	g->tries++;
	timer_set(&g->sandbox->core->timers, &g->again, ms < AGAIN_MS_MAX ? ms : AGAIN_MS_MAX);
}

static void gated(void *arg, int child_fd, const struct err *e)
{
	struct sbx *s = arg;
	struct gate *g = s->gate;
	AUTO(fd_close) int fd = child_fd;

	g->is_asked = false;
	if (!e) {
		fd_close(&g->child_fd);
		g->child_fd = fd_take(&fd);
		if (g->is_linked)
			pass_child(s);
		return;
	}
	if (!g->is_linked) {
		fail_err(&g->fail, e);
		return;
	}
	if (!g->is_up && g->tries >= TRIES_MAX) {
		struct fail f = { 0 };

		fail_err(&f, e);
		sbx_on_gate_failed(s, &f);
		return;
	}
	journal(JOURNAL_WARN, "a sandbox has no gate", "sandbox", s->id, "reason", e->msg, NULL);
	ask_later(g);
}

static void ask(struct gate *g)
{
	if (g->is_asked)
		return;
	g->is_asked = true;
	maker_gate(g->sandbox->core, gated, g->sandbox);
}

static void again_fired(struct timer *t)
{
	ask((struct gate *)(void *)((char *)t - offsetof(struct gate, again)));
}

/* ---- life ---------------------------------------------------------------------------- */

static struct gate *gate_new(struct sbx *s)
{
	struct gate *g = mem_alloc(sizeof *g);

	*g = (struct gate){
		.sandbox = s, .rules_fd = -1, .child_fd = -1, .again.fired = again_fired
	};
	return g;
}

void gate_begin(struct sbx *s)
{
	gate_close(s);
	if (s->spec.net.mode == NET_DENY)
		return;
	s->gate = gate_new(s);
	if (write_rules(s, &s->gate->fail) == 0)
		ask(s->gate);
}

int gate_possible(const struct sbx *s, struct fail *f)
{
	if (!s->gate || s->gate->fail.code == FAIL_NONE)
		return 0;
	*f = s->gate->fail;
	return -1;
}

void gate_linked(struct sbx *s)
{
	if (!s->gate)
		return;
	s->gate->is_linked = true;
	(void)pass_rules(s); /* one that takes nothing does not get far anyway */
	pass_child(s);
}

/* What the operator says may have changed since. */
void gate_found(struct sbx *s)
{
	struct fail f = { 0 };

	if (!s->link.ready.has_net || s->gate)
		return;
	s->gate = gate_new(s);
	s->gate->is_linked = s->gate->is_up = true;
	if (write_rules(s, &f) < 0)
		journal(JOURNAL_ERROR, "the old rules of a sandbox stay", "sandbox", s->id,
		        "reason", f.detail, NULL);
	else
		(void)pass_rules(s);
}

bool gate_is_up(const struct sbx *s)
{
	return !s->gate || s->gate->is_up;
}

static void tell_ruled(struct gate *g, const struct gate_ruled *r)
{
	gate_ruled_fn *done = g->ruled.done;

	g->ruled.done = NULL;
	if (done)
		done(g->ruled.arg, r);
}

void gate_close(struct sbx *s)
{
	struct gate *g = s->gate;

	if (!g)
		return;
	s->gate = NULL;
	if (g->is_asked)
		maker_cancel(s->core, s);
	gate_asks_close(s);
	timer_stop(&s->core->timers, &g->again);
	fd_close(&g->rules_fd);
	fd_close(&g->child_fd);
	tell_ruled(g, NULL);
	free(g);
}

/* ---- what is asked of it ------------------------------------------------------------- */

int gate_send_rules(struct sbx *s, gate_ruled_fn *done, void *arg, struct fail *f)
{
	if (!s->gate || !s->gate->is_linked)
		return fail_set(f, FAIL_CONFLICT, "the sandbox has no network");
	if (s->gate->ruled.done)
		return fail_set(f, FAIL_BUSY, "other rules are being taken");
	if (write_rules(s, f) < 0)
		return -1;
	if (pass_rules(s) < 0)
		return fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
	s->gate->ruled.done = done;
	s->gate->ruled.arg = arg;
	return 0;
}

void gate_renew(struct sbx *s)
{
	struct fail f = { 0 };

	if (!s->gate || !s->gate->is_linked)
		return; /* what it begins with is still to be written */
	if (write_rules(s, &f) < 0)
		journal(JOURNAL_ERROR, "the old rules of a sandbox stay", "sandbox", s->id,
		        "reason", f.detail, NULL);
	else
		(void)pass_rules(s); /* one that does not answer is about to be found dead */
}

void gate_took(struct sbx *s, uint64_t at)
{
	(void)link_send(&s->link, CH_NET_ACK, 0, &at, sizeof at); /* or it sends them again */
}

int gate_answer(struct sbx *s, uint64_t ask_id, bool is_allowed)
{
	const struct gate_answer a = { .ask = ask_id, .is_allowed = is_allowed };

	return link_send(&s->link, CH_ANSWER, 0, &a, sizeof a);
}

/* ---- what the monitor says ----------------------------------------------------------- */

void gate_on_less(struct sbx *s)
{
	struct gate *g = s->gate;
	struct fail f = { 0 };

	net_on_lost(s);
	if (!g || g->is_asked)
		return;
	if (!g->is_up && g->tries >= TRIES_MAX) {
		fail_set(&f, FAIL_BACKEND_ERROR,
		         "the gate of the sandbox does not start; see the launcher's log");
		sbx_on_gate_failed(s, &f);
		return;
	}
	if (g->is_up)
		journal(JOURNAL_WARN, "the gate of a sandbox ended", "sandbox", s->id, NULL);
	if (g->tries == 0) {
		g->tries++;
		ask(g);
	} else {
		ask_later(g);
	}
}

void gate_on_ruled(struct sbx *s, const void *bytes, size_t n)
{
	struct gate *g = s->gate;
	struct gate_ruled r;
	struct fail f = { 0 };

	if (!g || n != sizeof r)
		return;
	memcpy(&r, bytes, sizeof r);
	r.reason[sizeof r.reason - 1] = '\0';
	if (r.is_refused && !g->is_up) {
		fail_set(&f, FAIL_INVALID, "net: %s", r.reason);
		sbx_on_gate_failed(s, &f);
		return;
	}
	if (r.is_refused)
		journal(JOURNAL_ERROR, "the old rules of a sandbox stay", "sandbox", s->id,
		        "reason", r.reason, NULL);
	g->tries = 0;
	if (r.generation == g->generation)
		tell_ruled(g, &r);
	if (g->is_up)
		return;
	g->is_up = true;
	sbx_on_gated(s);
}

void gate_on_net(struct sbx *s, uint32_t num, const void *bytes, size_t n)
{
	static struct gate_packet p = { .head = { G_RECORD, sizeof p.record } };
	struct channel_net net;

	if (n != sizeof net)
		return;
	memcpy(&net, bytes, sizeof net);
	p.record = net.record;
	if (gate_check(&p, gate_size(&p), 0))
		core_on_record(s, net.at, num, &p.record);
}
