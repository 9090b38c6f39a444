#include "api/forward.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/fd.h"
#include "core/sandbox.h"
#include "io/journal.h"
#include "os/net.h"
#include "store/ports.h"

#define BIND_TRIES 16 /* for a port that is free for IPv4 and IPv6 */
#define CONNECTIONS_MAX 2048
#define STALL_MS 120000 /* of a client that neither sends nor takes anything */
#define HELD_MAX ((size_t)64 << 20)

static struct forwards {
	struct core *core;
	struct server *server;
	struct forward *first;
	size_t n;
} all; /* a process has one API */

/* ---- listening ----------------------------------------------------------------------- */

static int listen_at(bool is_v6, uint16_t port)
{
	union os_address a = os_loopback(is_v6, port);

	return os_listen_tcp(&a);
}

/* Both families, so that nobody else is `localhost` with this port. fds[1] is -1 without IPv6.
 * 0 or -errno. */
static int listen_both(uint16_t port, int fds[2])
{
	AUTO(fd_close) int four = listen_at(false, port);

	if (four < 0)
		return four;
	int six = listen_at(true, port ? port : (uint16_t)os_port(four));

	if (six < 0 && six != -EADDRNOTAVAIL && six != -EAFNOSUPPORT)
		return six;
	fds[0] = fd_take(&four);
	fds[1] = six < 0 ? -1 : six;
	return 0;
}

/* Sets local_port. */
static int open_listeners(struct forward *f, uint16_t port, struct err *e)
{
	int fds[2] = { -1, -1 }, r = -EADDRINUSE;

	for (int i = 0; r == -EADDRINUSE && i < (port ? 1 : BIND_TRIES); i++)
		r = listen_both(port, fds);
	if (r < 0)
		return err_sys(e, -r, "listen on port %u", (unsigned int)port);
	f->local_port = (uint16_t)os_port(fds[0]);
	r = server_listen_tagged(all.server, fds[0], f, e);
	if (r < 0)
		fd_close(&fds[1]);
	if (r == 0 && fds[1] >= 0)
		r = server_listen_tagged(all.server, fds[1], f, e);
	if (r < 0)
		server_unlisten(all.server, f);
	return r;
}

/* ---- the list ------------------------------------------------------------------------ */

struct forward *forward_find(const char *sandbox, uint16_t port)
{
	struct forward *f = all.first;

	while (f && (f->port != port || strcmp(f->sandbox, sandbox) != 0))
		f = f->next;
	return f;
}

static size_t count_of(const char *sandbox)
{
	size_t n = 0;

	for (const struct forward *f = all.first; f; f = f->next)
		n += strcmp(f->sandbox, sandbox) == 0;
	return n;
}

void forward_close(struct forward *f)
{
	struct forward **at = &all.first;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	all.n--;
	timer_stop(&f->core->timers, &f->expiry);
	server_unlisten(all.server, f);
	f->is_closed = true;
	f->n_requests++;
	forward_release(f);
}

void forward_release(struct forward *f)
{
	if (--f->n_requests == 0 && f->is_closed)
		free(f);
}

void forward_drop(struct forward *f)
{
	struct err e = { 0 };

	if (store_port_drop(f->core->store, f->sandbox, f->port, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", f->sandbox, NULL);
	forward_close(f);
}

static void expired(struct timer *t)
{
	forward_drop((struct forward *)(void *)((char *)t - offsetof(struct forward, expiry)));
}

static void set_expiry(struct forward *f)
{
	int64_t left = f->expires_ms - core_now_ms();

	timer_stop(&f->core->timers, &f->expiry);
	if (f->expires_ms)
		timer_set(&f->core->timers, &f->expiry, left > 0 ? (uint64_t)left : 0);
}

static void sandbox_gone(void *arg, const char *sandbox)
{
	(void)arg;
	for (struct forward *f = all.first, *next; f; f = next) {
		next = f->next;
		if (strcmp(f->sandbox, sandbox) == 0)
			forward_close(f);
	}
}

/* ---- made and renewed ---------------------------------------------------------------- */

static void hash_text(const char *text, size_t n, uint8_t out[STORE_HASH_BYTES])
{
	if (EVP_Digest(text, n, out, NULL, EVP_sha256(), NULL) != 1)
		abort(); /* a built-in digest does not fail */
}

bool forward_takes(const struct forward *f, struct span token)
{
	uint8_t hash[STORE_HASH_BYTES];

	hash_text(token.at, token.len, hash);
	return CRYPTO_memcmp(hash, f->hash, sizeof hash) == 0 &&
	       (f->expires_ms == 0 || core_now_ms() < f->expires_ms);
}

/* No other sandbox knows the id, and so no page can guess what cookies of another are called. */
static void set_tag(struct forward *f)
{
	char text[ID_SIZE + 8];
	uint8_t hash[STORE_HASH_BYTES];
	int n = snprintf(text, sizeof text, "%s:%u", f->sandbox, (unsigned int)f->port);

	hash_text(text, (size_t)n, hash);
	snprintf(f->tag, sizeof f->tag, "%02x%02x%02x%02x", hash[0], hash[1], hash[2], hash[3]);
}

static struct forward *forward_new(const struct sbx *s, uint16_t port, uint16_t local_port,
                                   struct err *e)
{
	struct forward *f = mem_alloc(sizeof *f);

	*f = (struct forward){ .core = all.core, .port = port, .created_ms = core_now_ms() };
	f->expiry.fired = expired;
	snprintf(f->sandbox, sizeof f->sandbox, "%s", s->id);
	snprintf(f->tenant, sizeof f->tenant, "%s", s->tenant);
	set_tag(f);
	if (open_listeners(f, local_port, e) < 0) {
		free(f);
		return NULL;
	}
	f->next = all.first;
	all.first = f;
	all.n++;
	return f;
}

static struct forward *make(const struct forward_ask *ask, struct fail *fail)
{
	struct err e = { 0 };

	if (all.n >= FORWARDS_MAX || count_of(ask->sandbox->id) >= FORWARDS_OF_ONE) {
		fail_set(fail, FAIL_QUOTA, "too many forwarded ports");
		return NULL;
	}
	struct forward *f = forward_new(ask->sandbox, ask->port, ask->local_port, &e);
	if (f)
		return f;
	fail_set(fail, e.sys == EADDRINUSE ? FAIL_CONFLICT : FAIL_BACKEND_ERROR, "local_port: %s",
	         e.msg);
	return NULL;
}

struct forward *forward_put(const struct forward_ask *ask, char token[TOKEN_TEXT],
                            struct store_call call, struct fail *fail)
{
	struct forward *f = forward_find(ask->sandbox->id, ask->port);
	struct err e = { 0 };

	if (f && ask->local_port && ask->local_port != f->local_port) {
		fail_set(fail, FAIL_CONFLICT, "the port is forwarded already, to local port %u",
		         (unsigned int)f->local_port);
		return NULL;
	}
	bool is_new = !f;

	if (is_new)
		f = make(ask, fail);
	if (!f)
		return NULL;
	int r = auth_token(PORT_TOKEN_PREFIX, token);
	hash_text(token, r < 0 ? 0 : strlen(token), f->hash);
	f->expires_ms = ask->ttl_ms ? core_now_ms() + (int64_t)ask->ttl_ms : 0;
	set_expiry(f);
	ask->sandbox->has_ports = true;
	struct port_row row = { .sandbox = f->sandbox,
		                .tenant = f->tenant,
		                .port = f->port,
		                .local_port = f->local_port,
		                .created_ms = f->created_ms,
		                .expires_ms = f->expires_ms };
	memcpy(row.token_hash, f->hash, sizeof row.token_hash);
	if (r == 0)
		r = store_port_put(f->core->store, &row, call, &e);
	if (r == 0)
		return f;
	forward_drop(f);
	fail_set(fail, FAIL_BACKEND_ERROR, "the port could not be stored");
	return NULL;
}

/* ---- as JSON ------------------------------------------------------------------------- */

json_t *forward_print(const struct forward *f)
{
	char url[48];

	snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned int)f->local_port);
	json_t *o =
	    json_pack("{si,si,ss,sI}", "port", (int)f->port, "local_port", (int)f->local_port,
	              "url", url, "created_ms", (json_int_t)f->created_ms);
	json_object_set_new(o, "expires_ms",
	                    f->expires_ms ? json_integer(f->expires_ms) : json_null());
	return o;
}

json_t *forward_list(const char *sandbox)
{
	json_t *list = json_array();

	for (const struct forward *f = all.first; f; f = f->next)
		if (strcmp(f->sandbox, sandbox) == 0)
			json_array_append_new(list, forward_print(f));
	return list;
}

/* ---- life ---------------------------------------------------------------------------- */

static void explain_lost(const struct sbx *s, const struct port_row *row, const char *why)
{
	char words[64];

	snprintf(words, sizeof words, "port %lld is no longer forwarded", (long long)row->port);
	journal(JOURNAL_WARN, words, "sandbox", s->id, "reason", why, NULL);
}

/* The same local port again: who has the URL and the token still gets there. */
static void restore(const struct sbx *s, const struct port_row *row)
{
	struct err e = { 0 };
	bool is_late = row->expires_ms && row->expires_ms <= core_now_ms();
	struct forward *f =
	    is_late ? NULL : forward_new(s, (uint16_t)row->port, (uint16_t)row->local_port, &e);

	if (f) {
		memcpy(f->hash, row->token_hash, sizeof f->hash);
		f->created_ms = row->created_ms;
		f->expires_ms = row->expires_ms;
		set_expiry(f);
		return;
	}
	if (!is_late)
		explain_lost(s, row, e.msg);
	if (store_port_drop(s->core->store, s->id, row->port, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", s->id, NULL);
}

static void restore_all(void *entry, void *arg)
{
	struct sbx *s = entry;
	AUTO(arena_done) struct arena a = { 0 };
	struct port_list list;
	struct err e = { 0 };

	(void)arg;
	if (store_port_list(s->core->store, s->tenant, s->id, &a, &list, &e) < 0) {
		journal(JOURNAL_ERROR, e.msg, "sandbox", s->id, NULL);
		return;
	}
	for (size_t i = 0; i < list.n; i++)
		restore(s, &list.rows[i]);
}

int forwards_open(struct api *a, struct err *e)
{
	all = (struct forwards){ .core = a->core };
	all.server = server_new(a->core->loop, &relay_ops,
	                        (struct server_limits){ .connections_max = CONNECTIONS_MAX,
	                                                .body_idle_ms = STALL_MS,
	                                                .send_idle_ms = STALL_MS,
	                                                .memory_max = HELD_MAX,
	                                                .is_single = true },
	                        e);
	if (!all.server)
		return -1;
	roster_each(&a->core->sandboxes, restore_all, NULL);
	a->core->on_gone.tell = sandbox_gone;
	return 0;
}

void forwards_close(void)
{
	while (all.first)
		forward_close(all.first);
	server_free(all.server);
	all.server = NULL;
}
