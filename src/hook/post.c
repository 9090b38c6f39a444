/*
 * post.c - one request to the receiver, on a connection of its own. Only the status of the answer
 * counts; its body is not read.
 */
#include <time.h>

#include "base/fd.h"
#include "hook/hook-internal.h"
#include "wire/http.h"

#define WAIT_MS 10000

struct post {
	struct relay relay; /* of which it is the client */
	struct leg leg;
	struct flow flow;
	struct meter meter;
	uint64_t used;
	struct hook *hook;
	struct dial *dial;
	struct timer late;
	post_done *done;
	char *id, *body;
};

static void post_free(struct post *p)
{
	dial_cancel(p->dial);
	timer_stop(&p->hook->timers, &p->late);
	leg_done(&p->leg);
	if (p->relay.client.watch.fd >= 0)
		relay_end_unwatch(&p->relay, &p->relay.client);
	fd_close(&p->relay.client.watch.fd);
	p->hook->post = NULL;
	free(p->id);
	free(p->body);
	free(p);
}

static void end(struct post *p, int status, const char *wrong)
{
	struct hook *h = p->hook;
	post_done *done = p->done;

	post_free(p);
	done(h, status, wrong);
}

/* ---- the answer ----------------------------------------------------------------------- */

/* Its status; 0: more has to come, or it is broken. */
static int read_status(struct post *p)
{
	static struct http_head head;

	while (!p->leg.is_broken) {
		struct span in = leg_input(&p->leg);
		int n = http_response_head(in.at, in.len, HTTP_ASKED_BODY, &head);

		if (n < 0) {
			p->leg.is_broken = true;
		} else if (n == 0) {
			if (!leg_fill(&p->leg))
				break;
		} else if (head.status >= 200) {
			return head.status;
		} else {
			leg_take(&p->leg, (size_t)n);
		}
	}
	return 0;
}

static void run(struct post *p)
{
	(void)leg_flush(&p->leg);
	int status = read_status(p);

	if (status > 0)
		end(p, status, NULL);
	else if (p->leg.is_broken || p->leg.is_deaf || p->leg.is_eof)
		end(p, 0,
		    p->leg.tls && !p->leg.is_shaken ? "it does not prove who it is"
		                                    : "it does not answer");
	else
		leg_watch(&p->relay, &p->leg, true);
}

static void ready(struct watch *w, uint32_t events)
{
	struct post *p = OWNER_OF(w, struct post, relay.client.watch);

	leg_heard(&p->leg, events);
	run(p);
}

static void too_late(struct timer *t)
{
	end(OWNER_OF(t, struct post, late), 0, "it does not answer in time");
}

/* ---- the question --------------------------------------------------------------------- */

static int print(const struct post *p, struct str *out, struct err *e)
{
	const struct hook *h = p->hook;
	const struct span body = span_of(p->body);
	const int64_t now = (int64_t)time(NULL);
	AUTO(str_done) struct str host = { .max = GATE_NAME_SIZE + 8 };
	AUTO(str_done) struct str signature = { .max = 256 };
	struct http_print q = http_print_request(out, span_of("POST"), span_of(h->to.path));
	bool is_usual = h->to.port == (h->to.is_tls ? 443 : 80);
	char seconds[32];

	str_addf(&host, is_usual ? "%s" : "%s:%u", h->to.host, h->to.port);
	snprintf(seconds, sizeof seconds, "%lld", (long long)now);
	sign_text((struct span){ (const char *)h->key, h->key_len }, p->id, now, body, &signature);
	http_print_text(&q, "Host", str_text(&host));
	http_print_text(&q, "User-Agent", "caisson");
	http_print_text(&q, "Content-Type", "application/json");
	http_print_text(&q, "webhook-id", p->id);
	http_print_text(&q, "webhook-timestamp", seconds);
	http_print_text(&q, "webhook-signature", str_text(&signature));
	http_print_framing(&q, HTTP_LENGTH, body.len);
	http_print_text(&q, "Connection", "close");
	int r = http_print_end(&q, e);

	str_addn(out, body.at, body.len);
	return r;
}

static void dialled(void *owner, int fd, enum gate_reason why, const struct rules_addr *real)
{
	struct post *p = owner;
	struct hook *h = p->hook;
	struct err e = { 0 };

	(void)real;
	p->dial = NULL;
	if (fd < 0) {
		end(p, 0, gate_reason_name(why));
		return;
	}
	p->relay.client.watch = (struct watch){ .fd = fd, .ready = ready };
	p->meter = (struct meter){ .used = &p->used, .max = UINT64_MAX };
	p->leg = (struct leg){ .end = &p->relay.client,
		               .flow = &p->flow,
		               .meter = &p->meter,
		               .legs = &h->legs,
		               .is_readable = true };
	if (h->to.is_tls)
		p->leg.tls = ends_connect(&h->ends, fd, h->to.host);
	if (h->to.is_tls && !p->leg.tls)
		end(p, 0, "no TLS can be spoken");
	else if (print(p, leg_out(&p->leg), &e) < 0)
		end(p, 0, e.msg);
	else
		run(p);
}

void post_start(struct hook *h, const char *id, struct span body, post_done *done)
{
	struct post *p = mem_alloc(sizeof *p);

	*p = (struct post){ .relay = { .client = { .watch = { .fd = -1 } },
		                       .server = { .watch = { .fd = -1 } },
		                       .loop = &h->loop },
		            .hook = h,
		            .late.fired = too_late,
		            .done = done,
		            .id = mem_strdup(id),
		            .body = mem_strdup(body.at) };
	h->post = p;
	ends_refresh();
	timer_set(&h->timers, &p->late, WAIT_MS);
	p->dial = dial_start(&h->dialer, &(struct dial_to){ h->to.host, { .port = h->to.port } },
	                     dialled, p);
}

void post_cancel(struct hook *h)
{
	if (h->post)
		post_free(h->post);
}
