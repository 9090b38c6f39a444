#include "core/secret.h"

#include <fcntl.h>

#include "base/fd.h"
#include "core/canary.h"
#include "core/gate.h"
#include "core/maker.h"
#include "core/sandbox-internal.h"
#include "core/workspace.h"
#include "io/journal.h"
#include "os/net.h"
#include "os/pulse.h"
#include "os/sock.h"
#include "spec/bind.h"
#include "wire/base64.h"
#include "wire/hash.h"

#define KEY_MS 10000
#define PLACEHOLDER_BYTES 16

/* ---- the key that they are sealed to ------------------------------------------------- */

struct key_ask {
	struct watch watch; /* to a child of the gate; fd -1: the launcher was asked for one */
	struct core *core;
	struct key_ask *next, **link;
	secret_key_fn *done;
	void *arg;
	struct timer late;
};

static void ask_end(struct key_ask *a, const uint8_t *key, const char *why)
{
	struct fail f = { 0 };

	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	if (a->watch.fd >= 0)
		loop_remove(a->core->loop, &a->watch);
	else
		maker_cancel(a->core, a);
	fd_close(&a->watch.fd);
	timer_stop(&a->core->timers, &a->late);
	if (!key)
		fail_set(&f, FAIL_BACKEND_ERROR, "the gate, which has the key: %s", why);
	a->done(a->arg, key, key ? NULL : &f);
	free(a);
}

static void key_ready(struct watch *w, uint32_t events)
{
	struct key_ask *a = (struct key_ask *)(void *)w;
	struct gate_packet p;
	int n = os_recv_some(w->fd, &p, sizeof p);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n > 0 && gate_check(&p, (size_t)n, 0) && p.head.type == G_KEY)
		ask_end(a, p.key.key, NULL);
	else
		ask_end(a, NULL, "it has none; see the launcher's log");
}

static void key_late(struct timer *t)
{
	ask_end((struct key_ask *)(void *)((char *)t - offsetof(struct key_ask, late)), NULL,
	        "it does not answer");
}

static void key_opened(void *arg, int child_fd, const struct err *e)
{
	const struct gate_packet ask = { .head = { G_KEY, sizeof ask.key } };
	struct key_ask *a = arg;
	AUTO(fd_close) int fd = child_fd;

	if (e) {
		ask_end(a, NULL, e->msg);
		return;
	}
	int r = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;

	(void)os_refuse_fds(fd);
	if (r >= 0)
		r = os_send(fd, &ask, gate_size(&ask), NULL, 0);
	if (r >= 0) {
		a->watch.fd = fd_take(&fd);
		r = loop_add(a->core->loop, &a->watch, EPOLLIN);
	}
	if (r < 0)
		ask_end(a, NULL, strerror(-r));
}

void secret_key(struct core *c, secret_key_fn *done, void *arg)
{
	struct key_ask *a = mem_alloc(sizeof *a);

	*a = (struct key_ask){ .watch = { .fd = -1, .ready = key_ready },
		               .core = c,
		               .next = c->key_asks,
		               .link = &c->key_asks,
		               .done = done,
		               .arg = arg,
		               .late.fired = key_late };
	if (a->next)
		a->next->link = &a->next;
	c->key_asks = a;
	timer_set(&c->timers, &a->late, KEY_MS);
	maker_gate(c, key_opened, a);
}

void secrets_close(struct core *c)
{
	for (struct key_ask *a = c->key_asks, *next; a; a = next) {
		next = a->next;
		ask_end(a, NULL, "the daemon ends");
	}
}

/* ---- rows ---------------------------------------------------------------------------- */

static int check_sealed(const char *sealed, struct fail *f)
{
	AUTO(str_done) struct str bytes = { .max = SECRET_VALUE_MAX + SEAL_OVERHEAD };

	if (!base64_decode(sealed, strlen(sealed), &bytes) || bytes.len <= SEAL_OVERHEAD)
		return fail_set(f, FAIL_INVALID,
		                "sealed: base64 of a value of 1 to %u bytes, sealed to the key of "
		                "GET /v1/sealing; a value in clear is never sent",
		                SECRET_VALUE_MAX);
	return 0;
}

/* Somebody may have put the value where a host belongs: nothing that was said is repeated. */
static int refuse_bind(const struct err *e, struct fail *f)
{
	const char *first = strchr(e->msg, '"'), *last = strrchr(e->msg, '"');

	if (!first || first == last)
		return fail_err(f, e);
	return fail_set(f, FAIL_INVALID, "bind: %.*s\"...%s", (int)(first - e->msg), e->msg, last);
}

int secret_find(struct core *c, const char *tenant, const char *name, struct arena *a,
                struct secret_row *out, struct fail *f)
{
	struct err e = { 0 };

	if (store_secret_get(c->store, tenant, name, a, out, &e) == 0)
		return 0;
	if (e.kind != ERR_NOT_FOUND)
		return fail_err(f, &e);
	/* A token where a name belongs is not repeated. */
	if (secret_name_check(name, &e) < 0)
		return fail_set(f, FAIL_NOT_FOUND, "there is no secret of that name");
	return fail_set(f, FAIL_NOT_FOUND, "there is no secret \"%.64s\"", name);
}

static bool has_name(const struct secret_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->rows[i].name, name) == 0)
			return true;
	return false;
}

int secret_put(struct core *c, const struct secret_ask *ask, struct store_call call, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	AUTO(bind_done) struct bind b = { 0 };
	struct secret_row row = { .tenant = ask->tenant,
		                  .name = ask->name,
		                  .bind = ask->bind,
		                  .sealed = ask->sealed,
		                  .changed_ms = core_now_ms() };
	struct secret_list all;
	struct err e = { 0 };

	if (secret_name_check(ask->name, &e) < 0)
		return fail_err(f, &e);
	if (bind_read(&b, ask->bind, strlen(ask->bind), &e) < 0)
		return refuse_bind(&e, f);
	if (b.canary && ask->sealed[0])
		return fail_set(f, FAIL_INVALID, "sealed: a canary is no secret");
	if (!b.canary && check_sealed(ask->sealed, f) < 0)
		return -1;
	if (b.canary)
		row.sealed = SECRET_NONE;
	if (store_secret_list(c->store, ask->tenant, &a, &all, &e) < 0)
		return fail_err(f, &e);
	if (all.n >= SECRETS_MAX && !has_name(&all, ask->name))
		return fail_set(f, FAIL_QUOTA, "there are %d secrets, the most", SECRETS_MAX);
	if (store_secret_put(c->store, &row, call, &e) < 0)
		return fail_unsent(f, &e);
	return 0;
}

int secret_remove(struct core *c, const char *tenant, const char *name, struct store_call call,
                  struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct secret_row row;
	struct err e = { 0 };

	if (secret_find(c, tenant, name, &a, &row, f) < 0)
		return -1;
	if (store_secret_drop(c->store, tenant, name, call, &e) < 0)
		return fail_unsent(f, &e);
	return 0;
}

/* ---- sandboxes ----------------------------------------------------------------------- */

/* Of "github" or github=vault:NAME. */
static const char *source_of(const struct text_pair *cred)
{
	const char *colon = strchr(cred->value, ':');

	return colon ? colon + 1 : cred->key;
}

/* The same in every life of the sandbox; that others could compute it is no harm, since it means
 * nothing but at its own gate. */
static void placeholder_of(const struct sbx *s, const char *name, char out[PLACEHOLDER_SIZE])
{
	AUTO(str_done) struct str text = { .max = 1024 };
	char sum[TREE_HASH_TEXT];

	str_addf(&text, "placeholder %s %s", s->id, name);
	hash_of((struct span){ str_text(&text), text.len }, sum);
	snprintf(out, PLACEHOLDER_SIZE, PLACEHOLDER_PREFIX "%.*s", 2 * PLACEHOLDER_BYTES, sum);
}

static bool is_for(const struct bind *b, const struct sbx *s)
{
	const struct wsx *w = s->workspace;

	for (size_t i = 0; w && i < b->workspaces.len; i++)
		if (strcmp(b->workspaces.at[i], w->row.id) == 0 ||
		    (w->row.key && strcmp(b->workspaces.at[i], w->row.key) == 0))
			return true;
	return b->workspaces.len == 0;
}

struct held {
	struct secret_row row;
	struct bind bind;
};

static void held_done(struct held *h)
{
	bind_done(&h->bind);
}

static int read_held(const struct sbx *s, size_t i, struct arena *a, struct held *out,
                     struct fail *f)
{
	struct err e = { 0 };

	if (secret_find(s->core, s->tenant, source_of(&s->spec.creds.at[i]), a, &out->row, f) < 0)
		return -1;
	if (bind_read(&out->bind, out->row.bind, strlen(out->row.bind), &e) < 0)
		return fail_err(f, &e);
	if (!is_for(&out->bind, s))
		return fail_set(f, FAIL_FORBIDDEN, "secret \"%s\" is for other workspaces",
		                out->row.name);
	return 0;
}

int secret_bind(const struct sbx *s, size_t i, struct arena *a, struct bind *out)
{
	struct held h = { 0 };
	struct fail unused = { 0 };

	if (read_held(s, i, a, &h, &unused) < 0) {
		held_done(&h);
		return -1;
	}
	*out = h.bind;
	return 0;
}

int secret_admit(struct sbx *s, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };

	for (size_t i = 0; i < s->spec.creds.len; i++) {
		AUTO(held_done) struct held h = { 0 };
		struct fail why = { 0 };

		int r = read_held(s, i, &a, &h, &why);

		if (h.bind.hosts.len > 0 && s->spec.net.mode == NET_DENY)
			return fail_set(f, FAIL_INVALID,
			                "creds: a sandbox without a network can use no secret");
		if (r < 0)
			return fail_set(f, why.code, "creds: %s", why.detail);
		if (canary_admit(s, &h.bind, f) < 0)
			return -1;
	}
	secret_fill_env(s, &s->spec);
	return 0;
}

static bool has_variable(const struct spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->env.len; i++)
		if (strcmp(spec->env.at[i].key, name) == 0)
			return true;
	return false;
}

static void set_variable(struct spec *spec, const char *name, const char *value)
{
	const struct text_pair pair = { arena_strdup(&spec->arena, name),
		                        arena_strdup(&spec->arena, value) };

	vec_push(&spec->env, pair);
}

/* Where clients look for it. A variable that the caller has set stays his. */
static void name_it(struct spec *spec, const struct bind *b, const char *placeholder)
{
	size_t region = strcspn(b->arg, "/");
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)region, b->arg);
	const struct text_pair all[] = {
		{ b->env, placeholder },
		{ b->how == BIND_AWS ? "AWS_ACCESS_KEY_ID" : NULL, placeholder },
		{ b->how == BIND_AWS ? "AWS_SECRET_ACCESS_KEY" : NULL, placeholder },
		{ b->how == BIND_AWS && region > 0 ? "AWS_DEFAULT_REGION" : NULL, name },
	};

	for (size_t i = 0; i < COUNT(all); i++)
		if (all[i].key && !has_variable(spec, all[i].key))
			set_variable(spec, all[i].key, all[i].value);
}

/* git reaches a host with a bound secret by https and by nothing else: what is said in SSH's way
 * is said in that. Settings in variables need no file, and come on top of all others. */
static void set_git(struct spec *spec, const char *key, const char *value, size_t *n)
{
	char name[64];

	snprintf(name, sizeof name, "GIT_CONFIG_KEY_%zu", *n);
	set_variable(spec, name, key);
	snprintf(name, sizeof name, "GIT_CONFIG_VALUE_%zu", *n);
	set_variable(spec, name, value);
	(*n)++;
}

static void rewrite_host(struct spec *spec, const char *host, size_t *n)
{
	char key[GATE_NAME_SIZE + 64], value[GATE_NAME_SIZE + 64];
	int len = (int)strcspn(host, ":");

	snprintf(key, sizeof key, "url.https://%s/.insteadOf", host);
	snprintf(value, sizeof value, "git@%.*s:", len, host);
	set_git(spec, key, value, n);
	snprintf(value, sizeof value, "ssh://git@%.*s/", len, host);
	set_git(spec, key, value, n);
}

static void rewrite_all(const struct sbx *s, struct spec *spec)
{
	AUTO(arena_done) struct arena a = { 0 };
	char count[16];
	size_t n = 0;

	if (has_variable(spec, "GIT_CONFIG_COUNT"))
		return;
	for (size_t i = 0; i < s->spec.creds.len; i++) {
		AUTO(held_done) struct held h = { 0 };
		struct fail unused = { 0 };

		if (read_held(s, i, &a, &h, &unused) < 0 || h.bind.how == BIND_AWS)
			continue;
		for (size_t k = 0; k < h.bind.hosts.len; k++)
			rewrite_host(spec, h.bind.hosts.at[k], &n);
	}
	snprintf(count, sizeof count, "%zu", n);
	if (n > 0)
		set_variable(spec, "GIT_CONFIG_COUNT", count);
}

void secret_fill_env(const struct sbx *s, struct spec *spec)
{
	AUTO(arena_done) struct arena a = { 0 };

	for (size_t i = 0; i < s->spec.creds.len; i++) {
		AUTO(held_done) struct held h = { 0 };
		struct fail unused = { 0 };
		char text[PLACEHOLDER_SIZE];

		if (read_held(s, i, &a, &h, &unused) < 0)
			continue;
		placeholder_of(s, h.row.name, text);
		name_it(spec, &h.bind, h.bind.canary ? h.bind.canary : text);
	}
	rewrite_all(s, spec);
}

json_t *secret_rules(const struct sbx *s)
{
	AUTO(arena_done) struct arena a = { 0 };
	json_t *list = json_array(), *canaries = json_object();

	for (size_t i = 0; i < s->spec.creds.len; i++) {
		AUTO(held_done) struct held h = { 0 };
		struct fail f = { 0 };
		char text[PLACEHOLDER_SIZE];

		if (read_held(s, i, &a, &h, &f) < 0) {
			journal(JOURNAL_WARN, "a sandbox has lost a secret", "sandbox", s->id,
			        "reason", f.detail, NULL);
			continue;
		}
		if (h.bind.canary) {
			json_object_set_new(canaries, h.row.name, json_string(h.bind.canary));
			continue;
		}
		placeholder_of(s, h.row.name, text);
		int64_t until = h.bind.ttl_ms ? s->created_ms + (int64_t)h.bind.ttl_ms : 0;

		json_array_append_new(list, json_pack("{ss,ss,ss,ss,ss,sI}", "name", h.row.name,
		                                      "tenant", s->tenant, "bind", h.row.bind,
		                                      "sealed", h.row.sealed, "placeholder", text,
		                                      "until_ms", (json_int_t)until));
	}
	return json_pack("{so,so}", "creds", list, "canaries", canaries);
}

/* ---- changes and uses ---------------------------------------------------------------- */

struct change {
	const char *tenant, *name;
};

static void tell_gate(void *entry, void *arg)
{
	struct sbx *s = entry;
	const struct change *change = arg;
	bool has_it = false;

	for (size_t i = 0; i < s->spec.creds.len; i++)
		has_it |= strcmp(source_of(&s->spec.creds.at[i]), change->name) == 0;
	if (!has_it || strcmp(s->tenant, change->tenant) != 0)
		return;
	secret_fill_env(s, &s->spec);
	gate_renew(s);
}

void secret_changed(struct core *c, const char *tenant, const char *name)
{
	struct change change = { tenant, name };

	roster_each(&c->sandboxes, tell_gate, &change);
}

void secret_note_use(struct sbx *s, const struct gate_record *r)
{
	struct secret_row row = {
		.tenant = s->tenant, .name = r->secret, .uses = 1, .last_used_ms = r->unix_ms
	};
	struct err e = { 0 };

	bool is_canary = r->reason == GATE_CANARY && r->kind != GATE_REQUEST;

	if (!r->secret[0] || (r->kind != GATE_USE && !is_canary))
		return;
	if (store_secret_used(s->core->store, &row, (struct store_call){ .is_lazy = true }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", s->id, NULL);
}
