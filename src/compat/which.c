/*
 * which.c - the sandbox of a request: the one that the path names; else the token's own, whose key
 * is made of the door's name and of who asks. That one is made when it is first needed.
 */
#include "compat/compat-internal.h"
#include "engine/command.h"

#define OWN_IDLE_MS (3600ull * 1000) /* nobody may ever say `close`, */
#define OWN_TTL_MS (86400ull * 1000) /* or end his sessions */
#define AGAIN_MS 10                  /* while somebody else's request makes it */
#define TRIES 3000

bool compat_is_own(const struct call *c)
{
	return !strchr(c->route->pattern, '{');
}

/* "swerex:token:tk_…" */
static const char *own_key(struct call *c)
{
	AUTO(str_done) struct str key = { .max = 128 };

	str_addf(&key, "%s:%s", c->annex == &rex_annex ? "swerex" : "openhands", c->actor);
	return arena_strdup(&c->arena, str_text(&key));
}

struct sbx *compat_find(struct call *c, struct fail *f)
{
	const char *name = compat_is_own(c) ? own_key(c) : c->params[0];
	struct sbx *s = sbx_find(c->api->core, c->tenant, name, f);

	if (s && sbx_is_there(s))
		return s;
	fail_set(f, FAIL_NOT_FOUND, "no such sandbox");
	return NULL;
}

/* ---- to enter ------------------------------------------------------------------------ */

struct entering {
	struct call *call;
	compat_fn *then;
	struct timer again;
	int tries;
};

static void finish(struct entering *x, struct sbx *s, const struct fail *f)
{
	struct call *c = x->call;
	compat_fn *then = x->then;
	struct fail bad = { 0 };

	timer_stop(&c->api->core->timers, &x->again);
	free(x);
	if (!c->r && !c->idem_key) { /* it was made for nobody, and waits for the next request */
		call_unref(c);
		return;
	}
	if (s && sbx_check_running(s, &bad) == 0) {
		c->api->core->actor = c->actor;
		then(c, s);
		c->api->core->actor = NULL;
	} else {
		answer_fail(c, f ? f : &bad);
	}
	call_unref(c);
}

static void made(void *arg, struct sbx *s, const struct fail *f)
{
	finish(arg, f ? NULL : s, f);
}

static void make(struct entering *x)
{
	struct call *c = x->call;
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	AUTO(spec_done) struct spec spec;
	struct sbx_ask ask = { .tenant = c->tenant,
		               .key = own_key(c),
		               .spec = &spec,
		               .idle_ms = OWN_IDLE_MS,
		               .ttl_ms = OWN_TTL_MS,
		               .client_fd = -1 };
	struct fail f = { 0 };
	json_t *wishes = json_pack(
	    "{s[s]}", "fs", c->annex == &rex_annex ? "ephemeral:/work" : "ephemeral:/workspace");

	spec_init(&spec);
	int r = spec_of(c, wishes, &spec, &text, &f);
	json_decref(wishes);
	ask.spec_text = str_text(&text);
	if (r < 0 || !sbx_create(c->api->core, &ask, made, x, &f))
		finish(x, NULL, &f);
}

static void look(struct entering *x)
{
	struct fail f = { 0 };
	struct sbx *s = compat_find(x->call, &f);

	if (s && s->state == SANDBOX_CREATING && ++x->tries < TRIES)
		timer_set(&x->call->api->core->timers, &x->again, AGAIN_MS);
	else if (!s && compat_is_own(x->call))
		make(x);
	else
		finish(x, s, &f);
}

static void fired(struct timer *t)
{
	look((struct entering *)(void *)((char *)t - offsetof(struct entering, again)));
}

void compat_enter(struct call *c, compat_fn *then)
{
	struct entering *x = mem_alloc(sizeof *x);

	*x = (struct entering){ .call = call_ref(c), .then = then };
	x->again.fired = fired;
	look(x);
}

const char *compat_path(struct call *c, const struct sbx *s, const char *path)
{
	AUTO(str_done) struct str text = { .max = (size_t)2 * PATH_TEXT_MAX };

	if (path[0] == '/')
		return path;
	str_addf(&text, "%s/%s", command_cwd(&s->spec), path);
	if (text.overflow) /* no path is so long: whoever takes it says so */
		return path;
	return arena_strdup(&c->arena, str_text(&text));
}
