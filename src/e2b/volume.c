/*
 * volume.c - a volume is a workspace under a key by which it is known; it is nobody's own and stays
 * until it is deleted. Its content: content.c. A sandbox has at most one, in the place of the
 * workspace that its home folder would be (make.c).
 *
 * A token for its content says whose it is, and is made from that and the id: ident.c.
 */
#include <openssl/crypto.h>

#include "core/details.h"
#include "core/workspace.h"
#include "e2b/e2b-internal.h"

#define KEY_PREFIX "e2b.volume."
#define KEY_SIZE 192
#define PAGE 100
#define TOKEN_SIZE (E2B_TOKEN_SIZE + TENANT_SIZE)

/* ---- names and tokens ---------------------------------------------------------------- */

static bool key_of(const char *name, char out[KEY_SIZE])
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	int n = snprintf(out, KEY_SIZE, KEY_PREFIX "%s", name);

	return *name && !name[strspn(name, letters)] && n < KEY_SIZE && key_is(out, (size_t)n);
}

static bool is_volume(const struct workspace_row *row)
{
	return row->key && strncmp(row->key, KEY_PREFIX, strlen(KEY_PREFIX)) == 0;
}

/* HMAC "." TENANT */
static void token_of(const char *tenant, const char *id, char out[TOKEN_SIZE])
{
	char mac[E2B_TOKEN_SIZE];

	ident_sign((const char *[]){ "volume", id, tenant, NULL }, mac);
	snprintf(out, TOKEN_SIZE, "%s.%s", mac, tenant);
}

static json_t *print_volume(const struct workspace_row *row, const char *tenant)
{
	json_t *o =
	    json_pack("{ss,ss}", "volumeID", row->id, "name", row->key + strlen(KEY_PREFIX));
	char token[TOKEN_SIZE];

	if (!tenant)
		return o;
	token_of(tenant, row->id, token);
	json_object_set_new(o, "token", json_string(token));
	if (e2b_domain())
		json_object_set_new(o, "domain", json_string(e2b_domain()));
	return o;
}

struct wsx *volume_find(struct call *c, const char *name)
{
	char key[KEY_SIZE];
	struct fail f;

	return key_of(name, key) ? wsx_find(c->api->core, c->tenant, key, &f) : NULL;
}

static struct wsx *by_id(struct call *c)
{
	struct fail f;
	struct wsx *w = wsx_find(c->api->core, c->tenant, c->params[0], &f);

	return w && is_volume(&w->row) ? w : NULL;
}

int volume_check(struct call *c, struct fail *f)
{
	static const char bearer[] = "Bearer ";
	size_t skip = strlen(bearer);
	const char *said = call_header(c, "Authorization");
	const char *dot = said ? strchr(said, '.') : NULL;
	char token[TOKEN_SIZE];

	if (!dot || strncmp(said, bearer, skip) != 0 || strlen(dot + 1) >= sizeof c->tenant ||
	    strlen(c->params[0]) >= ID_SIZE)
		return fail_set(f, FAIL_UNAUTHORIZED, "the token of the volume is needed");
	token_of(dot + 1, c->params[0], token);
	if (strlen(said + skip) != strlen(token) ||
	    CRYPTO_memcmp(said + skip, token, strlen(token)) != 0)
		return fail_set(f, FAIL_UNAUTHORIZED, "the token is not this volume's");
	snprintf(c->tenant, sizeof c->tenant, "%s", dot + 1);
	return 0;
}

struct wsx *volume_meant(struct call *c)
{
	struct wsx *w = by_id(c);

	if (!w)
		e2b_refuse(c, 404, "the volume was not found");
	return w;
}

/* ---- the calls ----------------------------------------------------------------------- */

static void made(void *arg, struct wsx *w, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		e2b_answer(c, 201, print_volume(&w->row, c->tenant));
	call_unref(c);
}

void e2b_volume_make(struct call *c)
{
	const char *name = "";
	char key[KEY_SIZE];
	struct fail f = { 0 };
	int r = member_text(c->body, "name", &name, &f);

	if (r == 0 && !key_of(name, key))
		r = fail_set(&f, FAIL_INVALID, "name: letters, digits, _ and -");
	call_ref(c);
	if (r == 0)
		r = wsx_create(
		    c->api->core,
		    &(struct wsx_ask){ .tenant = c->tenant, .key = key, .is_pinned = true }, made,
		    c, &f);
	if (r == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
}

void e2b_volume_get(struct call *c)
{
	const struct wsx *w = volume_meant(c);

	if (w)
		e2b_answer(c, 200, print_volume(&w->row, c->tenant));
}

void e2b_volume_list(struct call *c)
{
	struct workspace_query q = { .page = { .tenant = c->tenant, .limit = PAGE } };
	struct workspace_list list = { 0 };
	json_t *rows = json_array();
	struct fail f = { 0 };
	struct err e = { 0 };
	int r;

	do {
		r = store_workspace_list(c->api->core->store, &q, &c->arena, &list, &e);
		for (size_t i = 0; r == 0 && i < list.n; i++)
			if (is_volume(&list.rows[i]))
				json_array_append_new(rows, print_volume(&list.rows[i], NULL));
		q.page.cursor = list.next;
	} while (r == 0 && list.next);
	if (r == 0) {
		e2b_answer(c, 200, rows);
		return;
	}
	json_decref(rows);
	fail_err(&f, &e);
	answer_fail(c, &f);
}

static bool is_mounted(const struct wsx *w)
{
	const struct sbx *s = w->attached;

	while (s && s->is_service)
		s = s->next_attached;
	return s;
}

void e2b_volume_delete(struct call *c)
{
	struct wsx *w = volume_meant(c);
	struct fail f = { 0 };

	if (!w)
		return;
	call_ref(c);
	int r = is_mounted(w)
	            ? fail_set(&f, FAIL_CONFLICT, "a sandbox has the volume: it has to end first")
	            : wsx_delete(w, true, workspace_gone, c, &f);
	if (r == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
}
