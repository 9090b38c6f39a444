/*
 * rules_creds.c - the secrets of a sandbox in its rules document:
 *   {"name", "tenant", "bind": the text that is sealed beside the value, "sealed": base64,
 *    "placeholder", "until_ms"}
 */
#include "spec/rules-internal.h"

static int until_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	int64_t *field = opt_field(o, into);

	(void)in;
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return wrong_type(o->type->wants, v, e);
	*field = json_integer_value(v);
	return 0;
}

static int check_placeholder(const struct opt *o, struct arena *a, const char *text,
                             const char **out, struct err *e)
{
	(void)o;
	if (strlen(text) != PLACEHOLDER_SIZE - 1 ||
	    strncmp(text, PLACEHOLDER_PREFIX, sizeof PLACEHOLDER_PREFIX - 1) != 0)
		return err_new(e, ERR_INVALID, "is no placeholder");
	*out = arena_strdup(a, text);
	return 0;
}

static const struct opt_type opt_until = { .wants = "milliseconds since 1970", .set = until_set };

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct cred_rule, name)

static const struct opt rows[] = {
	{ .key = "name", .type = &opt_text, .check = check_name, FIELD(name) },
	{ .key = "tenant", .type = &opt_text, .check = check_any, FIELD(tenant) },
	{ .key = "bind", .type = &opt_text, .check = check_any, FIELD(bind_text) },
	{ .key = "sealed", .type = &opt_text, .check = check_any, FIELD(sealed) },
	{ .key = "placeholder", .type = &opt_text, .check = check_placeholder, FIELD(placeholder) },
	{ .key = "until_ms", .type = &opt_until, FIELD(until_ms) },
};
/* clang-format on */

static const struct opt_table table = { rows, COUNT(rows) };

static int cred_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct cred_list *l = opt_field(o, into);

	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	if (list_room(o, l->len, e) < 0)
		return -1;
	vec_push(l, (struct cred_rule){ 0 });
	struct cred_rule *c = &l->at[l->len - 1];

	if (members_apply(in, &table, c, v, e) < 0)
		return -1;
	if (!c->name || !c->tenant || !c->bind_text || !c->sealed)
		return err_new(e, ERR_INVALID, "needs name, tenant, bind and sealed");
	if (strlen(c->name) > SECRET_NAME_MAX)
		return err_new(e, ERR_LIMIT, "its name is too long");
	return bind_read(&c->bind, c->bind_text, strlen(c->bind_text), e);
}

const struct opt_type opt_doc_creds = { .wants = "a list of objects",
	                                .items = true,
	                                .set = cred_set };

void creds_done(struct cred_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		bind_done(&l->at[i].bind);
	vec_done(l);
}

/* ---- what is asked ------------------------------------------------------------------- */

bool cred_has_host(const struct cred_rule *c, const char *name, uint16_t port)
{
	for (size_t i = 0; i < c->n_hosts; i++)
		if (host_covers(&c->hosts[i], name, port))
			return true;
	return false;
}

/* On any port. */
static bool is_bound_to(const struct cred_rule *c, const char *name)
{
	for (size_t i = 0; i < c->n_hosts; i++)
		if (host_covers(&c->hosts[i], name, c->hosts[i].port))
			return true;
	return false;
}

bool rules_is_bound(const struct rules *r, const char *name)
{
	for (size_t i = 0; i < r->creds.len; i++)
		if (is_bound_to(&r->creds.at[i], name))
			return true;
	return false;
}

bool rules_is_only_bound(const struct rules *r, const char *name)
{
	for (size_t i = 0; i < r->creds.len; i++)
		if (r->creds.at[i].bind.is_only_bound && is_bound_to(&r->creds.at[i], name))
			return true;
	return false;
}

bool rules_judges_requests(const struct rules *r, const char *name, uint16_t port)
{
	for (size_t i = 0; i < r->creds.len; i++) {
		const struct bind *b = &r->creds.at[i].bind;

		if (b->methods.len + b->paths.len + b->git.len + b->is_only_bound > 0 &&
		    is_bound_to(&r->creds.at[i], name))
			return true;
	}
	return http_find(r, name, port);
}

static bool has_text(const struct text_list *l, const char *text)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->at[i], text) == 0)
			return true;
	return l->len == 0;
}

static bool has_path(const struct text_list *l, const char *path)
{
	for (size_t i = 0; path && i < l->len; i++)
		if (path_matches(l->at[i], path))
			return true;
	return l->len == 0;
}

bool rules_is_exclusive(const struct rules *r, const char *name, const char *path)
{
	for (size_t i = 0; i < r->creds.len; i++)
		if (is_bound_to(&r->creds.at[i], name) &&
		    (!path || has_path(&r->creds.at[i].bind.paths, path)))
			return true;
	return false;
}

bool cred_has_request(const struct cred_rule *c, const char *method, const char *path,
                      int64_t now_ms)
{
	/* One that could be read in two ways is for those that are for any. */
	return (path || (c->bind.paths.len == 0 && c->bind.git.len == 0)) &&
	       (c->until_ms == 0 || now_ms < c->until_ms) && has_text(&c->bind.methods, method) &&
	       has_path(&c->bind.paths, path);
}
