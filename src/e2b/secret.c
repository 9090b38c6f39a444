/*
 * secret.c - secrets of their API as ours (docs/gate.md): what is stored is sealed to the gate,
 * with what it is bound to, and never comes out.
 *
 * Theirs are bound by whoever uses them; ours when they are stored, so that nobody who may only
 * make sandboxes can have one said elsewhere. So `metadata` is the binding (spec/bind.h), and a
 * header rule that names one, ${e2b.secrets.NAME}, holds where it says what the binding says.
 */
#include <strings.h>

#include <openssl/crypto.h>

#include "core/details.h"
#include "core/secret.h"
#include "e2b/e2b-internal.h"
#include "wire/base64.h"

#define ID_PREFIX "sec_"
#define MARK "${e2b.secrets."
#define PAGE_MOST 100
#define VALUE_LEAST 8 /* what is shorter cannot be looked for in answers and logs */

/* ---- names, and what a secret is for ------------------------------------------------- */

/* Of an id or a name; theirs are in lower case. */
static const char *name_of(struct call *c, const char *text)
{
	char *name = arena_strdup(&c->arena, strncmp(text, ID_PREFIX, strlen(ID_PREFIX)) == 0
	                                         ? text + strlen(ID_PREFIX)
	                                         : text);

	for (char *at = name; *at; at++)
		*at = (char)span_lower(*at);
	return name;
}

static const struct {
	const char *key;
	bool is_list; /* with commas */
} keys[] = { { "hosts", true }, { "inject", false }, { "format", false }, { "methods", true },
	     { "paths", true }, { "env", false },    { "ttl", false },    { "approve", false } };

static json_t *split(const char *text)
{
	json_t *all = json_array();

	while (*text) {
		size_t n = strcspn(text, ", ");

		if (n > 0)
			json_array_append_new(all, json_stringn(text, n));
		text += n + (text[n] ? 1 : 0);
	}
	return all;
}

static json_t *joined(const json_t *list)
{
	AUTO(str_done) struct str text = { .max = BIND_TEXT_MAX };
	size_t i;
	const json_t *v;

	json_array_foreach(list, i, v)
	    str_addf(&text, "%s%s", i > 0 ? "," : "", json_string_value(v));
	return details_text(str_text(&text));
}

/* The binding of their metadata, as one line of JSON. */
static int take_metadata(json_t *metadata, struct str *out, struct fail *f)
{
	json_t *o = json_object(), *v;
	AUTO(bind_done) struct bind b = { 0 };
	struct err e = { 0 };
	const char *k;
	int r = 0;

	json_object_foreach(metadata, k, v)
	{
		size_t i = 0;

		while (i < COUNT(keys) && strcmp(keys[i].key, k) != 0)
			i++;
		if (i == COUNT(keys) || !json_is_string(v))
			r = fail_set(
			    f, FAIL_UNENFORCEABLE,
			    "metadata: \"%.64s\": here it says what a secret is for: hosts, "
			    "inject, format, methods, paths, env, ttl, approve",
			    k);
		else if (keys[i].is_list)
			json_object_set_new(o, k, split(json_string_value(v)));
		else
			json_object_set(o, k, v);
	}
	if (r == 0 && !json_object_get(o, "hosts"))
		r = fail_set(f, FAIL_UNENFORCEABLE,
		             "metadata: a secret is bound to hosts when it is stored: "
		             "{\"hosts\": \"api.example.org\"}");
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (r == 0 && (bind_read(&b, text, strlen(text), &e) < 0 || bind_print(&b, out, &e) < 0))
		r = fail_set(f, FAIL_INVALID, "metadata: %s", e.msg);
	return r;
}

static json_t *print_secret(const struct secret_row *row)
{
	json_t *bind = json_loads(row->bind, 0, NULL), *metadata = json_object();
	json_t *o =
	    json_pack("{ss,sI}", "name", row->name, "currentVersion", (json_int_t)row->version);
	char id[sizeof ID_PREFIX + SECRET_NAME_MAX];

	for (size_t i = 0; i < COUNT(keys); i++) {
		json_t *v = json_object_get(bind, keys[i].key);

		if (json_is_string(v))
			json_object_set(metadata, keys[i].key, v);
		else if (json_array_size(v) > 0)
			json_object_set_new(metadata, keys[i].key, joined(v));
	}
	snprintf(id, sizeof id, ID_PREFIX "%s", row->name);
	json_object_set_new(o, "secretID", json_string(id));
	json_object_set_new(o, "metadata", metadata);
	json_object_set_new(o, "createdAt", e2b_time(row->created_ms));
	json_object_set_new(o, "updatedAt", e2b_time(row->changed_ms));
	json_decref(bind);
	return o;
}

/* ---- look ---------------------------------------------------------------------------- */

static bool is_secret(const struct secret_row *row)
{
	return strcmp(row->sealed, SECRET_NONE) != 0; /* else it is a canary */
}

static int find(struct call *c, const char *name, struct secret_row *row, struct fail *f)
{
	if (secret_find(c->api->core, c->tenant, name, &c->arena, row, f) == 0 && is_secret(row))
		return 0;
	return fail_set(f, FAIL_NOT_FOUND, "secret '%.64s' not found", name);
}

void e2b_secret_get(struct call *c)
{
	struct secret_row row;
	struct fail f = { 0 };

	if (find(c, name_of(c, c->params[0]), &row, &f) < 0)
		answer_fail(c, &f);
	else
		e2b_answer(c, 200, print_secret(&row));
}

/* By name; the last of a page is where the next one begins. */
void e2b_secret_list(struct call *c)
{
	const char *after = call_query(c, "nextToken");
	struct secret_list list = { 0 };
	uint64_t limit = PAGE_MOST;
	struct fail f = { 0 };
	struct err e = { 0 };
	json_t *rows = json_array();
	const char *extra[] = { "X-Next-Token", NULL, NULL };
	int r = query_number(c, "limit", &limit, &f);

	if (r == 0 && (limit < 1 || limit > PAGE_MOST))
		r = fail_set(&f, FAIL_INVALID, "limit: 1 to %d", PAGE_MOST);
	if (r == 0 && store_secret_list(c->api->core->store, c->tenant, &c->arena, &list, &e) < 0)
		r = fail_err(&f, &e);
	for (size_t i = 0; r == 0 && i < list.n && !extra[1]; i++) {
		const struct secret_row *row = &list.rows[i];

		if (!is_secret(row) || (after && strcmp(row->name, after) <= 0))
			continue;
		if (json_array_size(rows) == limit)
			extra[1] = json_string_value(
			    json_object_get(json_array_get(rows, limit - 1), "name"));
		else
			json_array_append_new(rows, print_secret(row));
	}
	if (r < 0) {
		answer_fail(c, &f);
	} else {
		AUTO(freep) char *text = json_dumps(rows, JSON_COMPACT);

		c->is_answered = true;
		reply(c->r, 200, "application/json", text, strlen(text), extra[1] ? extra : NULL);
	}
	json_decref(rows);
}

/* ---- change -------------------------------------------------------------------------- */

struct putting {
	struct call *call;
	const char *name;
	struct str bind, value;
	int status; /* when it worked */
};

static void putting_free(struct putting *p)
{
	str_wipe(&p->value);
	str_done(&p->bind);
	call_unref(p->call);
	free(p);
}

static void note(struct call *c, const char *name, const char *what)
{
	call_note(c, LEDGER_SECRET_CHANGED, NULL,
	          json_pack("{so,ss}", "secret", details_text(name), "what", what));
}

static void stored(void *arg, const struct store_answer *a)
{
	struct putting *p = arg;
	struct call *c = p->call;
	struct secret_row row;
	struct fail f = { 0 };

	if (a->code == STORE_OK) {
		secret_changed(c->api->core, c->tenant, p->name);
		note(c, p->name, "set");
	}
	if (a->code != STORE_OK)
		fail_set(&f, FAIL_BACKEND_ERROR, "the secret could not be stored");
	if (f.code != FAIL_NONE || find(c, p->name, &row, &f) < 0)
		answer_fail(c, &f);
	else
		e2b_answer(c, p->status, print_secret(&row));
	putting_free(p);
}

static int seal(const struct putting *p, const uint8_t *key, struct str *out, struct err *e)
{
	AUTO(str_done) struct str aad = { .max = 2ul * BIND_TEXT_MAX };
	AUTO(str_done) struct str sealed = { .max = 2ul * SECRET_VALUE_MAX };
	struct seal_frame frame = { .info = span_of(SECRET_INFO) };

	secret_aad(p->call->tenant, p->name, str_text(&p->bind), &aad);
	frame.aad = (struct span){ str_text(&aad), aad.len };
	if (seal_close(key, &frame, (struct span){ str_text(&p->value), p->value.len }, &sealed,
	               e) < 0)
		return -1;
	base64_encode(sealed.data, sealed.len, out);
	return 0;
}

static void got_key(void *arg, const uint8_t *key, const struct fail *f)
{
	struct putting *p = arg;
	AUTO(str_done) struct str sealed = { .max = 4ul * SECRET_VALUE_MAX };
	struct secret_ask ask = { .tenant = p->call->tenant,
		                  .name = p->name,
		                  .bind = str_text(&p->bind) };
	struct fail bad = { 0 };
	struct err e = { 0 };
	int r = f ? -1 : 0;

	if (r == 0 && seal(p, key, &sealed, &e) < 0)
		r = fail_err(&bad, &e);
	ask.sealed = str_text(&sealed);
	if (r == 0)
		r = secret_put(p->call->api->core, &ask,
		               (struct store_call){ .done = stored, .arg = p }, &bad);
	if (r == 0)
		return;
	answer_fail(p->call, f ? f : &bad);
	putting_free(p);
}

/* Out of the request, which keeps nothing of it: from here on it is in one place. */
static int take_value(struct putting *p, struct fail *f)
{
	json_t *v = json_object_get(p->call->body, "value");
	size_t n = json_string_length(v);
	char *text = (char *)(uintptr_t)json_string_value(v);

	if (!text || n < VALUE_LEAST || n > SECRET_VALUE_MAX)
		return fail_set(f, FAIL_INVALID, "value: a text of %d to %u bytes", VALUE_LEAST,
		                SECRET_VALUE_MAX);
	str_addn(&p->value, text, n);
	OPENSSL_cleanse(text, n);
	OPENSSL_cleanse((char *)(uintptr_t)p->call->r->body.at, p->call->r->body.len);
	return 0;
}

static void put(struct putting *p, int r, const struct fail *f)
{
	if (r == 0) {
		secret_key(p->call->api->core, got_key, p);
		return;
	}
	answer_fail(p->call, f);
	putting_free(p);
}

static struct putting *putting_new(struct call *c, int status)
{
	struct putting *p = mem_alloc(sizeof *p);

	*p = (struct putting){ .call = call_ref(c),
		               .bind = { .max = BIND_TEXT_MAX },
		               .value = { .max = SECRET_VALUE_MAX + 1 },
		               .status = status };
	return p;
}

void e2b_secret_make(struct call *c)
{
	struct putting *p = putting_new(c, 201);
	const char *name = "";
	struct secret_row row;
	struct fail f = { 0 }, none = { 0 };
	struct err e = { 0 };
	int r = member_text(c->body, "name", &name, &f);

	p->name = name_of(c, name);
	if (r == 0 && (strncmp(name, ID_PREFIX, strlen(ID_PREFIX)) == 0 ||
	               secret_name_check(p->name, &e) < 0))
		r = fail_set(&f, FAIL_INVALID, "name: letters, digits, . _ and -, %d at most",
		             SECRET_NAME_MAX);
	if (r == 0 && secret_find(c->api->core, c->tenant, p->name, &c->arena, &row, &none) == 0)
		r = fail_set(&f, FAIL_EXISTS, "there is a secret of that name");
	if (r == 0)
		r = take_metadata(json_object_get(c->body, "metadata"), &p->bind, &f);
	if (r == 0)
		r = take_value(p, &f);
	put(p, r, &f);
}

/* Another value; what it is for stays, unless metadata says it anew. */
void e2b_secret_update(struct call *c)
{
	struct putting *p = putting_new(c, 200);
	json_t *metadata = json_object_get(c->body, "metadata");
	struct secret_row row;
	struct fail f = { 0 };

	p->name = name_of(c, c->params[0]);
	int r = find(c, p->name, &row, &f);
	if (r == 0 && metadata && !json_is_null(metadata))
		r = take_metadata(metadata, &p->bind, &f);
	else if (r == 0)
		str_add(&p->bind, row.bind);
	if (r == 0)
		r = take_value(p, &f);
	put(p, r, &f);
}

static void dropped(void *call, const struct store_answer *a)
{
	struct call *c = call;
	const char *name = name_of(c, c->params[0]);

	secret_changed(c->api->core, c->tenant, name);
	if (a->code == STORE_OK)
		note(c, name, "removed");
	answer_dropped(c, a);
}

void e2b_secret_delete(struct call *c)
{
	const char *name = name_of(c, c->params[0]);
	struct secret_row row;
	struct fail f = { 0 };

	call_ref(c);
	if (find(c, name, &row, &f) == 0 &&
	    secret_remove(c->api->core, c->tenant, name,
	                  (struct store_call){ .done = dropped, .arg = c }, &f) == 0)
		return;
	answer_fail(c, &f);
	call_unref(c);
}

/* ---- in rules ------------------------------------------------------------------------ */

struct said {
	const char *host, *header, *text;
};

static bool is_for_host(const struct bind *b, const char *host)
{
	size_t n = strcspn(host, ":");

	for (size_t i = 0; i < b->hosts.len; i++)
		if (strcspn(b->hosts.at[i], ":") == n && strncasecmp(b->hosts.at[i], host, n) == 0)
			return true;
	return false;
}

/* Would the gate say the same there? `format` is the rule's text with {} for the value. */
static bool says(const struct bind *b, const struct said *s, const char *format)
{
	if (!is_for_host(b, s->host))
		return false;
	if (b->how == BIND_BEARER)
		return strcasecmp(s->header, "Authorization") == 0 &&
		       strcmp(format, "Bearer {}") == 0;
	return b->how == BIND_HEADER && strcasecmp(s->header, b->arg) == 0 &&
	       strcmp(format, b->format && *b->format ? b->format : "{}") == 0;
}

/* 1: it names a secret, which is among `creds` now. */
static int resolve(struct call *c, const struct said *s, json_t *creds, struct fail *f)
{
	const char *mark = strstr(s->text, MARK), *end = mark ? strchr(mark, '}') : NULL;
	AUTO(str_done) struct str format = { .max = BIND_TEXT_MAX };
	AUTO(bind_done) struct bind b = { 0 };
	struct secret_row row;
	struct err e = { 0 };

	if (!mark)
		return 0;
	if (!end || strstr(end, MARK))
		return fail_set(f, FAIL_UNENFORCEABLE, "rules: %.64s: one secret in a header",
		                s->header);
	mark += strlen(MARK);
	const char *name = name_of(c, arena_strndup(&c->arena, mark, (size_t)(end - mark)));
	str_addn(&format, s->text, (size_t)(mark - strlen(MARK) - s->text));
	str_addf(&format, "{}%s", end + 1);
	if (find(c, name, &row, f) < 0)
		return -1;
	if (bind_read(&b, row.bind, strlen(row.bind), &e) < 0)
		return fail_err(f, &e);
	if (!says(&b, s, str_text(&format)))
		return fail_set(f, FAIL_UNENFORCEABLE,
		                "rules: secret '%.64s' is bound to something else than %.64s of "
		                "%.128s",
		                name, s->header, s->host);
	json_array_append_new(creds, json_string(name));
	return 1;
}

static int resolve_headers(struct call *c, const char *host, json_t *headers, json_t *creds,
                           struct fail *f)
{
	const char *name;
	json_t *v;
	void *next;

	json_object_foreach_safe(headers, next, name, v)
	{
		const char *text = json_string_value(v);
		int r = text ? resolve(c, &(struct said){ host, name, text }, creds, f) : 0;

		if (r < 0)
			return -1;
		if (r > 0)
			json_object_del(headers, name);
	}
	return 0;
}

int secrets_of(struct call *c, json_t *network, json_t *creds, struct fail *f)
{
	const char *host;
	json_t *list, *rule;
	size_t i;

	json_object_foreach(json_object_get(network, "rules"), host, list)
	{
		json_array_foreach(list, i, rule)
		{
			json_t *change = json_object_get(rule, "transform");

			if (resolve_headers(c, host, json_object_get(change, "headers"), creds, f) <
			    0)
				return -1;
		}
	}
	return 0;
}

bool secrets_are_named(const char *text)
{
	return strstr(text, MARK) != NULL;
}
