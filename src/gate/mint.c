/*
 * mint.c - tokens that the gate gets by itself: of an app, for one installation of it, with what
 * the app shows of itself (gate/jwt.h, said by the master, which alone has the app's key).
 *
 *   POST API/app/installations/ID/access_tokens  ->  201 {"token": "…", "expires_at": "…"}
 *
 * One for all requests, until shortly before its end. Who needs it meanwhile waits; in vain, all
 * are refused at once for a moment.
 */
#include <jansson.h>
#include <time.h>

#include "base/fd.h"
#include "gate/gate-internal.h"
#include "gate/safe.h"
#include "gate/web.h"
#include "io/journal.h"
#include "os/secret.h"
#include "wire/http.h"
#include "wire/weburl.h"

#define WAIT_MS 15000
#define AGAIN_MS 3000   /* after one that failed */
#define EARLY_MS 120000 /* before its end another one is wanted; half of a short life */
#define ANSWER_MAX (64u << 10)
#define TARGET_MAX (2ul * WEBURL_PATH_SIZE)

struct mint {
	struct relay relay; /* of which it is the client */
	struct leg leg;
	struct flow flow;
	struct meter meter;
	uint64_t used;
	struct gate *gate;
	struct mint *next, **link;
	size_t which; /* of rules.creds */
	uint64_t seq; /* of its records; 0: nothing was said yet */
	struct dial *dial;
	struct timer late;
	struct weburl api;
	struct http_body body;
	struct str answer;
	bool has_head;
	int status;
};

/* ---- ends ---------------------------------------------------------------------------- */

static void mint_free(struct mint *m)
{
	*m->link = m->next;
	if (m->next)
		m->next->link = m->link;
	dial_cancel(m->dial);
	timer_stop(&m->gate->timers, &m->late);
	str_wipe(&m->leg.in);
	str_wipe(&m->answer);
	leg_done(&m->leg);
	if (m->relay.client.watch.fd >= 0)
		relay_end_unwatch(&m->relay, &m->relay.client);
	fd_close(&m->relay.client.watch.fd);
	free(m);
}

static struct purse_entry *entry_of(const struct mint *m)
{
	return &m->gate->purse->entries[m->which];
}

static void tell(struct mint *m, enum gate_kind kind, enum gate_reason why)
{
	if (m->seq == 0)
		m->seq = names_next_seq(&m->gate->names);
	record_minted(m->gate, &(struct minted){ .seq = m->seq,
	                                         .kind = kind,
	                                         .secret = entry_of(m)->name,
	                                         .name = m->api.host,
	                                         .port = m->api.port,
	                                         .path = m->api.path,
	                                         .status = m->status,
	                                         .reason = why });
}

static void end(struct mint *m, const char *wrong)
{
	struct gate *g = m->gate;

	if (wrong) {
		entry_of(m)->again_ms = timer_now_ms() + AGAIN_MS;
		journal(JOURNAL_WARN, "no token of an app", "sandbox", g->id, "secret",
		        entry_of(m)->name, "reason", wrong, NULL);
	}
	tell(m, GATE_REQUEST, wrong ? GATE_TOKEN : GATE_NONE);
	mint_free(m);
	web_look_again(g);
}

/* ---- the answer ---------------------------------------------------------------------- */

static int64_t read_time(const char *text)
{
	struct tm t = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &t) : NULL;

	return rest && !*rest ? (int64_t)timegm(&t) * 1000 : 0;
}

static const char *take_token(struct mint *m)
{
	json_t *o = json_loadb(str_text(&m->answer), m->answer.len, 0, NULL);
	const char *token = json_string_value(json_object_get(o, "token"));
	int64_t until = read_time(json_string_value(json_object_get(o, "expires_at")));
	int64_t left = until - gate_unix_ms();
	const char *wrong = NULL;

	if (!token || left <= 0 || !purse_token_is(span_of(token)))
		wrong = "the answer has none that is good";
	else
		purse_set_token(m->gate->purse, m->which, span_of(token),
		                until - (left / 2 < EARLY_MS ? left / 2 : EARLY_MS));
	json_decref(o);
	if (!wrong)
		gate_say_marks(m->gate);
	return wrong;
}

/* True: something has moved. */
static bool read_head(struct mint *m)
{
	static struct http_head h;
	struct span in = leg_input(&m->leg);
	int n = http_response_head(in.at, in.len, HTTP_ASKED_BODY, &h);

	if (n < 0) {
		m->leg.is_broken = true;
		return false;
	}
	if (n == 0)
		return leg_fill(&m->leg);
	leg_take(&m->leg, (size_t)n);
	if (h.status < 200)
		return true;
	m->has_head = true;
	m->status = h.status;
	http_body_init(&m->body, &h, ANSWER_MAX);
	m->answer.max = ANSWER_MAX;
	str_room(&m->answer, ANSWER_MAX);
	return true;
}

/* 1: it is whole; 0: more has to come; -1 */
static int read_body(struct mint *m)
{
	struct http_piece piece;
	int r;

	do {
		struct span in = leg_input(&m->leg);

		r = http_body_feed(&m->body, in.at, in.len, &piece);
		str_addn(&m->answer, piece.data.at, piece.data.len);
		leg_take(&m->leg, piece.consumed);
	} while (r == HTTP_BODY_MORE && (leg_input(&m->leg).len > 0 || leg_fill(&m->leg)) &&
	         !m->leg.is_eof);
	if (r == HTTP_BODY_MORE && m->leg.is_eof)
		r = http_body_eof(&m->body);
	return r < 0 ? -1 : r == HTTP_BODY_DONE;
}

static void run(struct mint *m)
{
	char text[64];
	int r = 0;

	(void)leg_flush(&m->leg);
	while (!m->has_head && !m->leg.is_broken && read_head(m))
		;
	if (m->has_head)
		r = read_body(m);
	if (r > 0 && m->status == 201) {
		end(m, take_token(m));
	} else if (r > 0) {
		snprintf(text, sizeof text, "its server says %d", m->status);
		end(m, text);
	} else if (r < 0 || m->leg.is_broken || m->leg.is_deaf || m->leg.is_eof) {
		end(m, m->leg.tls && !m->leg.is_shaken ? "its server does not prove who it is"
		                                       : "its server does not answer");
	} else {
		leg_watch(&m->relay, &m->leg, true);
	}
}

static void ready(struct watch *w, uint32_t events)
{
	struct mint *m = OWNER_OF(w, struct mint, relay.client.watch);

	leg_heard(&m->leg, events);
	run(m);
}

static void too_late(struct timer *t)
{
	end(OWNER_OF(t, struct mint, late), "its server does not answer in time");
}

/* ---- the question -------------------------------------------------------------------- */

/* Only what the binding is for: of a fork in the path the last part is the repository. */
static void print_wish(const struct bind *b, struct str *out)
{
	str_add(out, "{");
	for (size_t i = 0; i < b->git.len; i++) {
		const char *slash = strrchr(b->git.at[i], '/');

		str_addf(out, "%s\"%s\"", i > 0 ? "," : "\"repositories\":[",
		         slash ? slash + 1 : b->git.at[i]);
	}
	str_add(out, b->git.len > 0 ? "]}" : "}");
}

static int print_question(const struct mint *m, struct span proof, struct str *out, struct err *e)
{
	AUTO(str_done) struct str wish = { .max = BIND_TEXT_MAX };
	AUTO(str_done) struct str host = { .max = GATE_NAME_SIZE + 8 };
	struct http_print p = http_print_request(out, span_of("POST"), span_of(m->api.path));

	print_wish(&m->gate->rules.creds.at[m->which].bind, &wish);
	str_addf(&host, m->api.port == 443 ? "%s" : "%s:%u", m->api.host, m->api.port);
	http_print_text(&p, "Host", str_text(&host));
	http_print_text(&p, "User-Agent", "caisson");
	http_print_text(&p, "Accept", "application/vnd.github+json");
	http_print_text(&p, "X-GitHub-Api-Version", "2022-11-28");
	http_print_text(&p, "Content-Type", "application/json");
	AUTO(str_done) struct str bearer = { .max = 2ul * SECRET_VALUE_MAX };

	str_room(&bearer, SECRET_VALUE_MAX + 8);
	str_add(&bearer, "Bearer ");
	str_addn(&bearer, proof.at, proof.len);
	http_print_text(&p, "Authorization", str_text(&bearer));
	explicit_bzero(bearer.data, bearer.cap);
	http_print_framing(&p, HTTP_LENGTH, wish.len);
	http_print_text(&p, "Connection", "close");
	int r = http_print_end(&p, e);

	str_addn(out, str_text(&wish), wish.len);
	return r;
}

/* What the app shows of itself, anew for each question. */
static int ask(struct mint *m, struct err *e)
{
	void *at = NULL;
	int n = os_secret_map(SECRET_VALUE_MAX, false, &at);

	if (n < 0)
		return err_sys(e, -n, "lock memory");
	n = gate_open_secret(m->gate, &m->gate->rules.creds.at[m->which], at, e);
	leg_keep_secret(&m->leg);
	if (n >= 0 && print_question(m, (struct span){ at, (size_t)n }, leg_out(&m->leg), e) < 0)
		n = -1;
	os_secret_unmap(at, SECRET_VALUE_MAX);
	return n < 0 ? -1 : 0;
}

static void dialled(void *owner, int fd, enum gate_reason why, const struct rules_addr *real)
{
	struct mint *m = owner;
	struct gate *g = m->gate;
	struct err e = { 0 };

	(void)real;
	m->dial = NULL;
	if (fd < 0) {
		end(m, gate_reason_name(why));
		return;
	}
	m->relay.client.watch = (struct watch){ .fd = fd, .ready = ready };
	m->meter = (struct meter){ .used = &m->used, .max = UINT64_MAX };
	m->leg = (struct leg){ .end = &m->relay.client,
		               .flow = &m->flow,
		               .meter = &m->meter,
		               .legs = &g->legs,
		               .is_readable = true };
	m->leg.tls = ends_connect(&g->ends, fd, m->api.host);
	if (!m->leg.tls)
		end(m, "no TLS can be spoken");
	else if (ask(m, &e) < 0)
		end(m, e.msg);
	else {
		tell(m, GATE_USE, GATE_NONE);
		run(m);
	}
}

/* Where, of this installation. False: it may not be asked. */
static bool find_api(const struct gate *g, const struct bind *b, struct weburl *out)
{
	AUTO(str_done) struct str path = { .max = TARGET_MAX };
	const char *installation = strchr(b->arg, '/');

	if (weburl_read(span_of(b->api), out) < 0 || !installation || g->rules.is_offline)
		return false;
	size_t n = strlen(out->path);

	str_addf(&path, "%.*s/app/installations/%s/access_tokens",
	         (int)(n > 0 && out->path[n - 1] == '/' ? n - 1 : n), out->path, installation + 1);
	if (path.len >= sizeof out->path)
		return false;
	memcpy(out->path, path.data, path.len + 1);
	/* It need not be allowed to the sandbox, which has nothing to say here; but what is
	 * denied is denied. */
	const struct question q = { .stage = STAGE_CONNECT,
		                    .name = out->host,
		                    .to = { .port = out->port } };

	return out->is_tls && rules_decide(&g->rules, &q).reason != GATE_RULE;
}

enum mint_word mint_ask(struct gate *g, size_t which)
{
	struct purse_entry *entry = &g->purse->entries[which];
	struct weburl api;

	if (entry->said.len > 0 && gate_unix_ms() < entry->until_ms)
		return MINT_READY;
	if (timer_now_ms() < entry->again_ms)
		return MINT_FAILED;
	for (struct mint *m = g->mints; m; m = m->next)
		if (m->which == which)
			return MINT_WAITS;
	if (!find_api(g, &g->rules.creds.at[which].bind, &api))
		return MINT_FAILED;
	struct mint *m = mem_alloc(sizeof *m);

	*m = (struct mint){ .relay = { .client = { .watch = { .fd = -1 } },
		                       .server = { .watch = { .fd = -1 } },
		                       .loop = &g->loop },
		            .gate = g,
		            .next = g->mints,
		            .link = &g->mints,
		            .which = which,
		            .api = api,
		            .late.fired = too_late };
	if (m->next)
		m->next->link = &m->next;
	g->mints = m;
	timer_set(&g->timers, &m->late, WAIT_MS);
	m->dial = dial_start(&g->dialer, &(struct dial_to){ m->api.host, { .port = m->api.port } },
	                     dialled, m);
	return MINT_WAITS;
}

void mints_done(struct gate *g)
{
	for (struct mint *m = g->mints, *next; m; m = next) {
		next = m->next;
		mint_free(m);
	}
}
