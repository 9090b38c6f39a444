/*
 * context.c - what the COPY steps of a template copy: an archive, by a hash that the client makes
 * of it. It is unpacked behind walls into a tree of its own, as an image is (core/image.h), and the
 * build sees that. Who sends it has no key but a signed URL.
 *
 * The hash is a name and proves nothing about the bytes: clients make it of the COPY line and of
 * names, modes and contents of the files, not of the archive, and each version in a way of its own.
 * An upload is bound to its tenant, template and hash by the signature instead.
 */
#include <openssl/crypto.h>

#include "core/image.h"
#include "core/template.h"
#include "e2b/e2b-internal.h"
#include "wire/tree.h"

#define URL_MS (3600ll * 1000)
#define WAIT_MS 100 /* when as many come already as can */
#define HASH_MAX 128
#define UNTIL_MAX 20 /* digits */

static bool hash_is(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= HASH_MAX && strspn(text, "0123456789abcdef") == n;
}

/* `template` is an id: a name may be another template's tomorrow. */
static void sign(const struct call *c, const char *template, const char *until,
                 char out[E2B_TOKEN_SIZE])
{
	ident_sign((const char *[]){ "files", c->tenant, template, c->params[1], until, NULL },
	           out);
}

/* ---- where it goes ------------------------------------------------------------------- */

static const char *url_of(struct call *c, const char *template)
{
	const struct span host = c->r->head->host;
	char until[24], port[8] = "", signature[E2B_TOKEN_SIZE];
	const size_t size = 1024;
	char *url = arena_alloc(&c->arena, size);

	snprintf(until, sizeof until, "%lld", (long long)(core_now_ms() + URL_MS));
	sign(c, template, until, signature);
	if (c->r->head->port)
		snprintf(port, sizeof port, ":%u", c->r->head->port);
	snprintf(url, size, "%s://%.*s%s/templates/%s/files/%s?tenant=%s&until=%s&signature=%s",
	         c->r->is_tls ? "https" : "http", (int)host.len, host.at, port, template,
	         c->params[1], c->tenant, until, signature);
	return url;
}

void e2b_context_get(struct call *c)
{
	char name[NAME_TEXT_MAX];
	struct template_row template;
	struct image_row row;
	struct fail f = { 0 };
	struct err e;

	if (template_find(c->api->core, c->tenant, c->params[0], &c->arena, &template, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (!hash_is(c->params[1])) {
		e2b_refuse(c, 400, "the hash is not one");
		return;
	}
	snprintf(name, sizeof name, TEMPLATE_FILES "%s", c->params[1]);
	bool is_there =
	    store_image_get(c->api->core->store, c->tenant, name, &c->arena, &row, &e) == 0;
	e2b_answer(c, 201,
	           json_pack("{sb,ss}", "present", is_there, "url", url_of(c, template.id)));
}

int context_check(struct call *c, struct fail *f)
{
	const char *tenant = call_query(c, "tenant"), *until = call_query(c, "until");
	const char *signature = call_query(c, "signature");
	char expected[E2B_TOKEN_SIZE];

	if (!tenant || !until || !signature || strlen(tenant) >= sizeof c->tenant ||
	    !hash_is(c->params[1]) || !id_is(c->params[0], strlen(c->params[0]), "tp") ||
	    strlen(until) > UNTIL_MAX)
		return fail_set(f, FAIL_UNAUTHORIZED, "the URL is not signed");
	snprintf(c->tenant, sizeof c->tenant, "%s", tenant);
	sign(c, c->params[0], until, expected);
	if (strlen(signature) != strlen(expected) ||
	    CRYPTO_memcmp(signature, expected, strlen(expected)) != 0 ||
	    strtoll(until, NULL, 10) < core_now_ms())
		return fail_set(f, FAIL_UNAUTHORIZED, "the URL is not valid, or no longer");
	return 0;
}

/* ---- it comes ------------------------------------------------------------------------ */

struct arrival {
	struct call *call;
	struct image_import *import; /* NULL: there is no room for one yet */
	struct timer again;
	struct str waiting; /* bytes that found no room */
	bool is_last_due;
};

static void arrival_free(struct arrival *u)
{
	timer_stop(&u->call->api->core->timers, &u->again);
	u->call->state = NULL;
	str_done(&u->waiting);
	call_unref(u->call);
	free(u);
}

static void push(struct arrival *u)
{
	size_t at = 0;

	while (u->import && at < u->waiting.len) {
		size_t left = u->waiting.len - at;
		size_t n = left < TREE_PIECE_MAX ? left : TREE_PIECE_MAX;

		if (!image_import_body(u->import, u->waiting.data + at, n, false))
			break;
		at += n;
	}
	if (at > 0) {
		memmove(u->waiting.data, u->waiting.data + at, u->waiting.len - at);
		u->waiting.len -= at;
	}
	if (u->import && u->waiting.len == 0 && u->is_last_due)
		u->is_last_due = !image_import_body(u->import, NULL, 0, true);
	if (u->call->r && !u->is_last_due)
		reply_pause(u->call->r, u->waiting.len > 0);
}

static void room(void *arg)
{
	push(arg);
}

static void done(void *arg, const struct image_row *row, const struct fail *f)
{
	struct arrival *u = arg;

	(void)row;
	u->call->state = NULL; /* an answer may end the request at once */
	if (f)
		answer_fail(u->call, f);
	else
		answer_empty(u->call, 200);
	arrival_free(u);
}

static void begin(struct arrival *u)
{
	struct call *c = u->call;
	struct fail f = { 0 };
	char name[NAME_TEXT_MAX];
	const struct image_ask ask = { .tenant = c->tenant, .name = name, .is_replace = true };

	snprintf(name, sizeof name, TEMPLATE_FILES "%s", c->params[1]);
	u->import = image_import(c->api->core, &ask,
	                         (struct image_owner){ .room = room, .done = done, .arg = u }, &f);
	if (u->import)
		return;
	if (f.code == FAIL_BUSY) {
		timer_set(&c->api->core->timers, &u->again, WAIT_MS);
		return;
	}
	c->state = NULL;
	answer_fail(c, &f);
	arrival_free(u);
}

static void begin_again(struct timer *t)
{
	begin((struct arrival *)(void *)((char *)t - offsetof(struct arrival, again)));
}

static void left(struct call *c)
{
	struct arrival *u = c->state;

	if (!u)
		return;
	if (u->import)
		image_import_cancel(u->import);
	arrival_free(u);
}

static void on_data(struct request *r, const void *bytes, size_t n)
{
	struct call *c = r->route;
	struct arrival *u = c->state;

	if (!u)
		return;
	str_addn(&u->waiting, bytes, n); /* at most what a few reads bring: then it is paused */
	u->is_last_due |= n == 0;
	push(u);
}

void e2b_context_put(struct call *c)
{
	struct arrival *u = mem_alloc(sizeof *u);

	*u = (struct arrival){ .call = call_ref(c),
		               .again.fired = begin_again,
		               .waiting = { .max = 4u << 20 } };
	c->state = u;
	c->over = left;
	c->r->on_data = on_data;
	begin(u);
}
