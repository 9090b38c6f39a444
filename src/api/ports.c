/*
 * ports.c - /v1/sandboxes/{id}/ports: who listens inside, which ports are forwarded, and a bare
 * connection for our CLI.
 */
#include <arpa/inet.h>

#include "api/duct.h"
#include "api/forward.h"
#include "api/handlers.h"
#include "store/ports.h"

#define LISTENERS_BYTES (TREE_LISTENERS_MAX * sizeof(struct tree_listener))
#define LOOK_MS 1000 /* for one try to connect */
#define LOOK_EACH_MS 100
#define WAIT_MS_MAX 600000
#define TTL_MS_MAX (365ull * 24 * 3600 * 1000)
#define LOCAL_PORT_LEAST 1024 /* those below are not this daemon's to give */
#define CONNECT_IDLE_MS (24ull * 3600 * 1000)

static int port_of(const char *text, uint16_t *out, struct fail *f)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || n == 0 || n > UINT16_MAX)
		return fail_set(f, FAIL_INVALID, "a port is a number from 1 to 65535");
	*out = (uint16_t)n;
	return 0;
}

/* ---- who listens --------------------------------------------------------------------- */

struct look {
	struct job job; /* first */
	struct call *call;
	struct str bytes;
	bool is_good;
};

static void look_free(struct look *l)
{
	call_unref(l->call);
	str_done(&l->bytes);
	free(l);
}

static void look_data(struct job *j, struct span bytes)
{
	str_addn(&((struct look *)j)->bytes, bytes.at, bytes.len);
}

static void look_answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	(void)is_last;
	((struct look *)j)->is_good = p->answer.code == TREE_OK;
	look_data(j, p->data);
}

static json_t *print_listener(const struct tree_listener *l)
{
	char address[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(l->is_v6 ? AF_INET6 : AF_INET, l->address, address, sizeof address);
	return json_pack("{si,ss}", "port", (int)l->port, "address", address);
}

static void look_over(struct job *j, const struct tree_answer *a)
{
	struct look *l = (struct look *)j;
	struct call *c = l->call;
	struct span bytes = { str_text(&l->bytes), l->bytes.len };
	json_t *list = json_array();
	struct tree_listener one;
	struct fail f = { 0 };

	c->state = NULL;
	for (size_t i = 0; tree_listener_at(bytes, i, &one); i++)
		json_array_append_new(list, print_listener(&one));
	if (a && l->is_good && c->r) {
		/* By key or id: forwards know the id. */
		struct sbx *s = sbx_find(c->api->core, c->tenant, c->params[0], &f);

		answer_json(c, 200,
		            json_pack("{so,so}", "listeners", list, "forwarded",
		                      s ? forward_list(s->id) : json_array()));
	} else {
		json_decref(list);
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
		f.is_retry_safe = true;
		answer_fail(c, &f);
	}
	look_free(l);
}

static void look_left(struct call *c)
{
	struct look *l = c->state;

	if (!l)
		return;
	c->state = NULL;
	files_cancel(&l->job);
	look_free(l);
}

void port_list(struct call *c)
{
	struct fail f = { 0 };
	struct sbx *s = sbx_find(c->api->core, c->tenant, c->params[0], &f);
	struct look *l = mem_alloc(sizeof *l);

	*l = (struct look){ .call = call_ref(c), .bytes = { .max = LISTENERS_BYTES } };
	l->job = (struct job){ .answer = look_answered, .data = look_data, .over = look_over };
	l->job.ask.request.verb = TREE_PORTS;
	if (!s || sbx_check_running(s, &f) < 0 || files_start(s, &l->job, &f) < 0) {
		answer_fail(c, &f);
		look_free(l);
		return;
	}
	c->state = l;
	c->over = look_left;
}

/* ---- a forward ----------------------------------------------------------------------- */

struct making {
	struct call *call;
	char sandbox[ID_SIZE], token[TOKEN_TEXT];
	uint16_t port;
	uint64_t until_ms; /* monotonic: how long its readiness is waited for */
	struct timer timer;
	struct dial *dial;
};

static void making_free(struct making *m)
{
	timer_stop(&m->call->api->core->timers, &m->timer);
	if (m->dial)
		dial_end(m->dial);
	call_unref(m->call);
	free(m);
}

static void making_fail(struct making *m, const struct fail *f)
{
	m->call->state = NULL;
	answer_fail(m->call, f);
	making_free(m);
}

/* The token is in the answer, and nowhere else: the answer is not kept for an Idempotency-Key. Who
 * asks again under it gets a new token, and the first one is void. */
static void answer_secret(struct call *c, json_t *o)
{
	call_forget(c);
	answer_json(c, 201, o);
}

static void making_done(struct making *m, bool is_ready)
{
	struct forward *f = forward_find(m->sandbox, m->port);
	struct fail fail = { 0 };
	char url[160];

	if (!f) {
		fail_set(&fail, FAIL_NOT_FOUND, "the sandbox is gone");
		making_fail(m, &fail);
		return;
	}
	json_t *o = forward_print(f);

	snprintf(url, sizeof url, "http://127.0.0.1:%u/.caisson/open?token=%s",
	         (unsigned int)f->local_port, m->token);
	json_object_set_new(o, "headers", json_pack("{ss}", FORWARD_TOKEN, m->token));
	json_object_set_new(o, "open_url", json_string(url));
	json_object_set_new(o, "ready", json_boolean(is_ready));
	m->call->state = NULL;
	answer_secret(m->call, o);
	making_free(m);
}

/* ---- is it ready? -- */

static void look_again(struct making *m)
{
	if (core_mono_ms() >= m->until_ms)
		making_done(m, false);
	else
		timer_set(&m->call->api->core->timers, &m->timer, LOOK_EACH_MS);
}

static void looked(struct dial *d)
{
	struct making *m = d->owner;

	if (d->is_connected) {
		making_done(m, true);
		return;
	}
	m->dial = NULL;
	dial_end(d);
	look_again(m);
}

static void try_now(struct timer *t)
{
	struct making *m = (struct making *)(void *)((char *)t - offsetof(struct making, timer));
	struct call *c = m->call;
	struct fail f = { 0 };
	struct sbx *s = sbx_find(c->api->core, c->tenant, m->sandbox, &f);

	m->dial = s ? dial_start(s, m->port, LOOK_MS, &f) : NULL;
	if (!m->dial) {
		look_again(m);
		return;
	}
	m->dial->changed = looked;
	m->dial->owner = m;
}

static void making_left(struct call *c)
{
	struct making *m = c->state;

	c->state = NULL;
	if (m)
		making_free(m);
}

static void note_forward(struct call *c, const char *sandbox, uint16_t port, uint16_t local_port)
{
	const struct ledger_who who = { .sandbox = sandbox };
	json_t *data = json_pack("{si}", "port", (int)port);

	if (local_port)
		json_object_set_new(data, "local_port", json_integer(local_port));
	call_note(c, local_port ? LEDGER_PORT_OPENED : LEDGER_PORT_CLOSED, &who, data);
}

static void put_stored(void *arg, const struct store_answer *a)
{
	struct making *m = arg;
	struct forward *f = forward_find(m->sandbox, m->port);
	struct fail fail = { 0 };

	if (a->code != STORE_OK) {
		if (f)
			forward_drop(f);
		fail_set(&fail, FAIL_BACKEND_ERROR, "the port could not be stored");
		making_fail(m, &fail);
		return;
	}
	if (f)
		note_forward(m->call, m->sandbox, m->port, f->local_port);
	if (!m->call->r) { /* the client has left; the forward stands */
		making_free(m);
		return;
	}
	m->call->state = m;
	m->call->over = making_left;
	try_now(&m->timer);
}

static int take_number(const json_t *o, const char *key, long long least, uint16_t *out,
                       struct fail *f)
{
	const json_t *v = json_object_get(o, key);
	long long n = json_integer_value(v);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || n < least || n > UINT16_MAX)
		return fail_set(f, FAIL_INVALID, "%s: a number from %lld to 65535", key, least);
	*out = (uint16_t)n;
	return 0;
}

static int take_ask(const json_t *body, struct forward_ask *ask, uint64_t *wait_ms, struct fail *f)
{
	static const char *const known[] = { "port", "local_port", "ttl", "wait", NULL };

	if (members_known(body, known, f) < 0 || take_number(body, "port", 1, &ask->port, f) < 0 ||
	    take_number(body, "local_port", LOCAL_PORT_LEAST, &ask->local_port, f) < 0 ||
	    member_duration(body, "ttl", &ask->ttl_ms, f) < 0 ||
	    member_duration(body, "wait", wait_ms, f) < 0)
		return -1;
	if (ask->port == 0)
		return fail_set(f, FAIL_INVALID, "port: a number from 1 to 65535");
	if (ask->ttl_ms > TTL_MS_MAX || *wait_ms > WAIT_MS_MAX)
		return fail_set(f, FAIL_INVALID, "%s: too long",
		                *wait_ms > WAIT_MS_MAX ? "wait" : "ttl");
	return 0;
}

/* Ports of the host are the operator's: a token that takes 5432 would be in the way of a program
 * that comes later. */
static int check_local(const struct call *c, uint16_t port, struct fail *f)
{
	const struct config_ports *own = &c->api->ports;

	if (port == 0 || c->is_operator || c->is_admin || (port >= own->first && port <= own->last))
		return 0;
	if (own->first == 0)
		return fail_set(f, FAIL_PERMISSION_DENIED,
		                "local_port: tokens name none here; leave it out");
	return fail_set(f, FAIL_PERMISSION_DENIED,
	                "local_port: a token may name %u to %u (ports of the config); leave it out "
	                "for any that is free",
	                (unsigned int)own->first, (unsigned int)own->last);
}

void port_forward(struct call *c)
{
	struct forward_ask ask = { .port = 0 };
	struct fail f = { 0 };
	uint64_t wait_ms = 0;

	if (take_ask(c->body, &ask, &wait_ms, &f) == 0 && check_local(c, ask.local_port, &f) == 0)
		ask.sandbox = sbx_find(c->api->core, c->tenant, c->params[0], &f);
	if (!ask.sandbox || sbx_check_running(ask.sandbox, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	struct making *m = mem_alloc(sizeof *m);
	*m = (struct making){ .call = call_ref(c), .port = ask.port };
	m->until_ms = core_mono_ms() + wait_ms;
	m->timer.fired = try_now;
	snprintf(m->sandbox, sizeof m->sandbox, "%s", ask.sandbox->id);
	if (!forward_put(&ask, m->token, (struct store_call){ .done = put_stored, .arg = m }, &f))
		making_fail(m, &f);
}

void port_delete(struct call *c)
{
	struct fail f = { 0 };
	struct err e = { 0 };
	uint16_t port = 0;
	struct sbx *s = sbx_find(c->api->core, c->tenant, c->params[0], &f);
	struct forward *found = NULL;

	if (s && port_of(c->params[1], &port, &f) == 0) {
		found = forward_find(s->id, port);
		if (!found)
			fail_set(&f, FAIL_NOT_FOUND, "the port is not forwarded");
	}
	if (!found) {
		answer_fail(c, &f);
		return;
	}
	forward_close(found);
	note_forward(c, s->id, port, 0);
	if (store_port_drop(c->api->core->store, s->id, port,
	                    (struct store_call){ .done = answer_dropped, .arg = call_ref(c) },
	                    &e) < 0)
		answer_dropped(c, &(struct store_answer){ .code = STORE_BROKEN });
}

/* ---- a bare connection --------------------------------------------------------------- */

struct bare {
	struct duct duct; /* first */
	struct call *call;
	bool is_client_done, is_app_done;
};

static void bare_free(struct bare *b)
{
	b->call->state = NULL;
	duct_end(&b->duct);
	call_unref(b->call);
	free(b);
}

static void bare_failed(struct duct *d, const struct fail *f)
{
	struct bare *b = (struct bare *)d;
	struct call *c = b->call;
	struct fail copy = *f;

	b->call->state = NULL;
	answer_fail(c, &copy);
	bare_free(b);
}

static void bare_finish(struct bare *b, bool is_clean)
{
	struct request *r = b->duct.r;

	bare_free(b);
	if (is_clean)
		reply_end(r);
	else
		reply_abort(r);
}

static void bare_ended(struct duct *d, bool is_clean)
{
	struct bare *b = (struct bare *)d;

	b->is_app_done = true;
	if (!is_clean || b->is_client_done)
		bare_finish(b, is_clean);
	else
		reply_shut(d->r);
}

static enum duct_next bare_got(struct duct *d, const char *bytes, size_t n)
{
	return reply_write(d->r, bytes, n) ? DUCT_MORE : DUCT_WAIT;
}

static void bare_data(struct request *r, const void *bytes, size_t n)
{
	struct bare *b = ((struct call *)r->route)->state;

	if (!b)
		return;
	if (n > 0) {
		duct_send(&b->duct, bytes, n);
		return;
	}
	b->is_client_done = true;
	if (b->is_app_done)
		bare_finish(b, true);
	else
		duct_shut(&b->duct);
}

static void bare_room(struct request *r)
{
	struct bare *b = ((struct call *)r->route)->state;

	if (b)
		duct_room(&b->duct);
}

static void bare_opened(struct duct *d)
{
	struct bare *b = (struct bare *)d;

	b->call->is_answered = true;
	d->r->on_data = bare_data;
	d->r->on_room = bare_room;
	reply_upgrade(d->r, FORWARD_PROTOCOL, NULL);
}

static void bare_left(struct call *c)
{
	struct bare *b = c->state;

	if (b)
		bare_free(b);
}

void port_connect(struct call *c)
{
	static const struct duct_ops ops = {
		.opened = bare_opened, .failed = bare_failed, .got = bare_got, .ended = bare_ended
	};
	struct fail f = { 0 };
	uint16_t port = 0;

	if (!request_asks_upgrade(c->r, FORWARD_PROTOCOL))
		fail_set(&f, FAIL_INVALID, "Upgrade: " FORWARD_PROTOCOL " is expected");
	else
		(void)port_of(c->params[1], &port, &f);
	struct sbx *s = port ? sbx_find(c->api->core, c->tenant, c->params[0], &f) : NULL;

	if (!s) {
		answer_fail(c, &f);
		return;
	}
	struct bare *b = mem_alloc(sizeof *b);
	*b = (struct bare){ .duct = { .ops = &ops, .r = c->r, .idle_ms = CONNECT_IDLE_MS },
		            .call = call_ref(c) };
	if (duct_start(&b->duct, s, port, &f) < 0) {
		answer_fail(c, &f);
		bare_free(b);
		return;
	}
	c->state = b;
	c->over = bare_left;
}
