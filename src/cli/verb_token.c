/*
 * verb_token.c - bearer tokens: create, ls, rm.
 */
#include "cli/verbs.h"

#include "cli/table.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (4u << 20)

struct token {
	struct verb_opts common;
	struct flag_list scopes;
	const char *name, *ttl, *tenant;
	bool is_e2b;
};

static int put_text(json_t *o, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(o, key, json_string(text)) < 0)
		return err_new(e, ERR_INVALID, "--%s: not UTF-8", key);
	return 0;
}

static int create_body(const struct token *x, json_t *body, struct err *e)
{
	json_t *scopes = json_array();

	json_object_set_new(body, "scope", scopes);
	if (x->is_e2b)
		json_object_set_new(body, "form", json_string("e2b"));
	if (x->is_e2b && x->scopes.len == 0)
		json_array_append_new(scopes, json_string("manage"));
	else if (x->scopes.len == 0)
		return err_new(e, ERR_INVALID, "--scope is needed: read, exec, manage or admin");
	for (size_t i = 0; i < x->scopes.len; i++)
		if (json_array_append_new(scopes, json_string(x->scopes.at[i])) < 0)
			return err_new(e, ERR_INVALID, "--scope: not UTF-8");
	return put_text(body, "name", x->name, e) < 0 || put_text(body, "ttl", x->ttl, e) < 0
	           ? -1
	           : put_text(body, "tenant", x->tenant, e);
}

static int create(struct verb_call *c, struct err *e)
{
	const struct token *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object();
	AUTO(json_decrefp) json_t *made = NULL;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	if (create_body(x, body, e) < 0 ||
	    client_call(&c->client, "POST", "/v1/tokens", json_incref(body), &made, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(made), e);
	fprintf(stderr, "caisson: %s; its text is shown this once\n", text_of(made, "id"));
	str_addf(&out, "%s\n", text_of(made, "token"));
	return print_text(&out, e);
}

static void add_token(struct table *t, const json_t *token)
{
	int64_t expires = number_of(token, "expires_ms");

	table_cell(t, text_of(token, "id"));
	table_cell(t, text_of(token, "tenant"));
	table_cell(t, text_of(token, "name"));
	table_cell(t, text_of(token, "scope"));
	table_cell(t, brief_age(number_of(token, "created_ms")).text);
	table_cell(t, brief_age(number_of(token, "last_used_ms")).text);
	table_cell(t, number_of(token, "revoked_ms")                ? "revoked"
	              : expires == 0                                ? "valid"
	              : strcmp(brief_age(expires).text, "0ms") != 0 ? "expired"
	                                                            : "valid, expires");
}

static int list(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "ID",  "TENANT", "NAME",  "SCOPE",
		                             "AGE", "USED",   "STATE", NULL };
	const struct token *x = c->opts;
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *token;
	size_t i;

	if (fetch_list(&c->client, "/v1/tokens", "tokens", &all, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "tokens", all), e);
	table_init(&t, heads);
	json_array_foreach(all, i, token) add_token(&t, token);
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int revoke(struct verb_call *c, struct err *e)
{
	for (size_t i = 1; i < c->words.n; i++) {
		const char *texts[] = { c->words.at[i] };
		AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

		client_path(&path, "/v1/tokens/{}", texts);
		if (client_call(&c->client, "DELETE", str_text(&path), NULL, NULL, e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
	}
	return 0;
}

static int token_run(struct verb_call *c, struct err *e)
{
	static const struct {
		const char *name;
		size_t words_min, words_max;
		int (*run)(struct verb_call *c, struct err *e);
	} actions[] = { { "create", 1, 1, create },
		        { "ls", 1, 1, list },
		        { "rm", 2, SIZE_MAX, revoke } };

	for (size_t i = 0; i < COUNT(actions); i++)
		if (strcmp(actions[i].name, c->words.at[0]) == 0 &&
		    c->words.n >= actions[i].words_min && c->words.n <= actions[i].words_max)
			return actions[i].run(c, e);
	return err_new(e, ERR_INVALID, "caisson token %s", c->verb->usage);
}

/* clang-format off */
static const struct flag token_flags[] = {
	{ '\0', FLAG_LIST, "scope",  offsetof(struct token, scopes), "SCOPE", "create: read, exec, manage or admin; each includes those before it", "read exec manage admin" },
	{ '\0', FLAG_TEXT, "name",   offsetof(struct token, name), "TEXT", "create: what it is for", NULL },
	{ '\0', FLAG_TEXT, "ttl",    offsetof(struct token, ttl), "DURATION", "create: valid for this long", NULL },
	{ '\0', FLAG_SWITCH, "e2b",    offsetof(struct token, is_e2b), NULL, "create: a key in the form of E2B's, for their SDKs (E2B_API_KEY)", NULL },
	{ '\0', FLAG_TEXT, "tenant", offsetof(struct token, tenant), "NAME", "create: whose sandboxes it is for", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_token = {
	.name = "token",
	.usage = "create --scope SCOPE | ls | rm TOKEN...",
	.does = "bearer tokens for clients that come by TCP",
	.more =
	    "The text of a token is shown once and stored nowhere. CAISSON_HOST and CAISSON_TOKEN "
	    "tell this program where to go with it.",
	.flags = token_flags,
	.n_flags = COUNT(token_flags),
	.words = "[create ls rm]",
	.opts_size = sizeof(struct token),
	.words_min = 1,
	.words_max = SIZE_MAX,
	.run = token_run
};
