/*
 * life.c - connect, pause, timeout, kill.
 *
 * A pause that keeps memory freezes; one that does not ends the processes, and connect makes new
 * walls around the same home folder. While either lasts no time runs.
 */
#include "core/policy.h"
#include "e2b/e2b-internal.h"

#define TTL_DEFAULT 300
#define TTL_MOST 2592000 /* thirty days */

static int take_timeout(const struct call *c, const char *key, uint64_t *ms, struct fail *f)
{
	const json_t *v = json_object_get(c->body, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > TTL_MOST)
		return fail_set(f, FAIL_INVALID, "%s: 0 to %d seconds", key, TTL_MOST);
	/* A time of nothing is over at once; none at all would have no end. */
	*ms = json_integer_value(v) ? (uint64_t)json_integer_value(v) * 1000 : 1;
	return 0;
}

/* ---- connect ------------------------------------------------------------------------- */

struct connect {
	struct call *call;
	uint64_t ttl_ms;
};

static void connected(void *arg, struct sbx *s, const struct fail *f)
{
	struct connect *o = arg;
	struct fail bad = { 0 };

	if (!f && sbx_extend(s, 0, o->ttl_ms, &bad) < 0)
		f = &bad;
	if (f)
		answer_fail(o->call, f);
	else
		e2b_answer(o->call, 201, e2b_print(s));
	call_unref(o->call);
	free(o);
}

static void wake(struct call *c, struct sbx *s, uint64_t ttl_ms)
{
	struct connect *o = mem_alloc(sizeof *o);
	struct fail f = { 0 };

	*o = (struct connect){ .call = call_ref(c), .ttl_ms = ttl_ms };
	int r = s->state == SANDBOX_PAUSED ? sbx_resume(s, connected, o, &f)
	                                   : sbx_replace(s, -1, connected, o, &f);
	if (r == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
	free(o);
}

static void connect_to(struct call *c, struct sbx *s)
{
	uint64_t ttl_ms = (uint64_t)TTL_DEFAULT * 1000;
	struct fail f = { 0 };

	if (take_timeout(c, "timeout", &ttl_ms, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (s->state != SANDBOX_RUNNING) {
		wake(c, s, ttl_ms);
		return;
	}
	bool is_longer = s->expires_ms && core_now_ms() + (int64_t)ttl_ms > s->expires_ms;
	if (is_longer && sbx_extend(s, 0, ttl_ms, &f) < 0)
		answer_fail(c, &f);
	else
		e2b_answer(c, 200, e2b_print(s));
}

static void settled(struct call *c, struct sbx *s)
{
	s = e2b_sandbox(c); /* whatever it is now */
	if (s)
		connect_to(c, s);
}

/* Several clients may ask for one that rests, at once: the others wait for the first. */
void e2b_connect(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);

	if (s && s->change.is_busy)
		e2b_wake(c, s, settled);
	else if (s)
		connect_to(c, s);
}

/* ---- pause --------------------------------------------------------------------------- */

static void paused(void *arg, struct sbx *s, const struct fail *f)
{
	struct call *c = arg;

	if (f) {
		answer_fail(c, f);
	} else {
		sbx_rest(s);
		answer_empty(c, 204);
	}
	call_unref(c);
}

void e2b_pause(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);
	bool keeps_memory = true;
	struct fail f = { 0 };

	if (!s)
		return;
	if (s->state == SANDBOX_PAUSED || s->state == SANDBOX_STOPPED) {
		e2b_refuse(c, 409, "the sandbox is already paused");
		return;
	}
	int r = member_bool(c->body, "memory", &keeps_memory, &f);
	if (r == 0 && !keeps_memory && !(s->life & LIFE_OWNS_WORK))
		r = fail_set(&f, FAIL_UNENFORCEABLE, "the sandbox has no home folder that is kept");
	call_ref(c);
	if (r == 0)
		r = keeps_memory ? sbx_pause(s, paused, c, &f) : sbx_stop(s, paused, c, &f);
	if (r == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
}

/* ---- time ---------------------------------------------------------------------------- */

static void extend(struct call *c, const char *key, bool may_shorten)
{
	struct sbx *s = e2b_sandbox(c);
	uint64_t ttl_ms = (uint64_t)TTL_DEFAULT * 1000;
	struct fail f = { 0 };

	if (!s)
		return;
	if (take_timeout(c, key, &ttl_ms, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	int64_t ends_ms = core_now_ms() + (int64_t)ttl_ms;
	if ((may_shorten || ends_ms > s->expires_ms) && sbx_extend(s, 0, ttl_ms, &f) < 0)
		answer_fail(c, &f);
	else
		answer_empty(c, 204);
}

void e2b_timeout(struct call *c)
{
	extend(c, "timeout", true);
}

void e2b_refresh(struct call *c)
{
	extend(c, "duration", false);
}

/* ---- kill ---------------------------------------------------------------------------- */

static void killed(void *arg, struct sbx *s, const struct fail *f)
{
	struct call *c = arg;

	(void)s;
	if (f)
		answer_fail(c, f);
	else
		answer_empty(c, 204);
	call_unref(c);
}

void e2b_kill(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);
	struct fail f = { 0 };

	if (!s)
		return;
	call_ref(c);
	if (sbx_delete(s, killed, c, &f) == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
}

/* ---- network ------------------------------------------------------------------------- */

/* What it is told to be is what get says. */
static void remember_network(struct sbx *s, json_t *body)
{
	static const char *const keys[] = { "allowOut", "denyOut", "rules" };
	json_t *door = e2b_door(s), *network = json_object_get(door, "network");
	json_t *internet = json_object_get(body, "allow_internet_access");

	if (!network)
		json_object_set_new(door, "network", network = json_object());
	for (size_t i = 0; i < COUNT(keys); i++) {
		json_t *v = json_object_get(body, keys[i]);

		if (v)
			json_object_set(network, keys[i], v);
		else
			json_object_del(network, keys[i]);
	}
	if (json_is_boolean(internet))
		json_object_set(door, "internet", internet);
	else
		json_object_del(door, "internet");
	AUTO(freep) char *text = json_dumps(door, JSON_COMPACT);
	json_decref(door);
	sbx_set_door(s, text);
}

static void ruled(void *arg, struct sbx *s, const struct policy_changed *r, const struct fail *f)
{
	struct call *c = arg;

	(void)r;
	if (f) {
		answer_fail(c, f);
	} else {
		/* One of another door stays one: the ports of ours are for everybody (host.c). */
		if (s->door)
			remember_network(s, c->body);
		answer_empty(c, 204);
	}
	call_unref(c);
}

/* What is left out is cleared. To take away is anybody's; to loosen takes a token of scope admin,
 * as by the API. */
void e2b_network_put(struct call *c)
{
	struct sbx *s = e2b_sandbox(c);
	struct fail f = { 0 };

	if (!s)
		return;
	json_t *net = netrule_of(c->body, json_object_get(c->body, "allow_internet_access"), &f);
	call_ref(c);
	if (!net || policy_change(s, net, c->is_admin, ruled, c, &f) < 0) {
		answer_fail(c, &f);
		call_unref(c);
	}
	json_decref(net);
}
