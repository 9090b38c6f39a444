#include "gate/inject.h"

#include "wire/base64.h"
#include "wire/url.h"

#define VALUE_MAX (16u << 10)

/* Fields that say who asks, whatever they are called where. Servers behind CGI read `_` as `-`, and
 * so do we. It is a list: what is on none of them goes. */
static const char *const carriers[] = {
	"Authorization",
	"Proxy-Authorization",
	"Cookie",
	"X-Api-Key",
	"Api-Key",
	"Apikey",
	"X-Apikey",
	"X-Auth-Token",
	"Auth-Token",
	"X-Access-Token",
	"Access-Token",
	"Private-Token",
	"Job-Token",
	"Deploy-Token",
	"X-Goog-Api-Key",
	"X-Amz-Security-Token",
	"X-Functions-Key",
	"Ocp-Apim-Subscription-Key",
	"X-Api-Secret",
	"X-Auth",
	"X-Auth-Key",
	"X-User-Token",
	"X-Session-Token",
	"X-Session-Id",
	"DD-Application-Key",
	"X-Consul-Token",
	"X-Nomad-Token",
	"X-Master-Key",
	"X-Secret-Key",
	"X-Access-Key",
	"X-Ms-Authorization-Auxiliary",
};
/* And all that end so. */
static const char *const carrier_ends[] = { "-Authorization", "-Api-Key",      "-Access-Token",
	                                    "-Api-Token",     "-Auth-Token",   "-Secret",
	                                    "-Vault-Token",   "-Github-Token", "-Gitlab-Token",
	                                    "-Bearer-Token" };
/* Keys of a query, the same. */
static const char *const query_carriers[] = {
	"access_token",
	"private_token",
	"job_token",
	"api_key",
	"apikey",
	"api_token",
	"token",
	"key",
	"sig",
	"signature",
	"auth",
	"auth_token",
	"oauth_token",
	"id_token",
	"refresh_token",
	"client_secret",
	"session_token",
	"secret",
	"password",
	"jwt",
	"AWSAccessKeyId",
	"X-Amz-Signature",
	"X-Amz-Credential",
	"X-Amz-Security-Token",
	"X-Goog-Signature",
	"X-Goog-Credential",
	"GoogleAccessId",
};

static char dashed(char c)
{
	return (char)(c == '_' ? '-' : span_lower(c));
}

/* In whatever case, and with either line between words. */
static bool is_alike(struct span name, struct span word)
{
	if (name.len != word.len)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (dashed(name.at[i]) != dashed(word.at[i]))
			return false;
	return true;
}

static bool ends_alike(struct span name, struct span end)
{
	return name.len > end.len && is_alike(span_after(name, name.len - end.len), end);
}

static bool is_bound_here(const struct cred_rule *c, const char *name)
{
	for (size_t i = 0; i < c->n_hosts; i++)
		if (strcmp(c->hosts[i].name, name) == 0)
			return true;
	return false;
}

/* ---- what stands for a secret -------------------------------------------------------- */

/* "PLACEHOLDER", "Bearer PLACEHOLDER", "user:PLACEHOLDER", "PLACEHOLDER:": alone or as one word. */
static bool has_word(struct span text, const char *word)
{
	size_t n = strlen(word);
	const char *at = text.len >= n ? memmem(text.at, text.len, word, n) : NULL;

	return at && (at == text.at || strchr(" :", at[-1])) &&
	       (at + n == text.at + text.len || at[n] == ':');
}

static bool has_word_in_code(struct span text, const char *word)
{
	AUTO(str_done) struct str plain = { .max = VALUE_MAX };
	static const char basic[] = "Basic ";

	if (text.len < sizeof basic || !span_is_nocase((struct span){ text.at, 6 }, basic) ||
	    !base64_decode(text.at + 6, text.len - 6, &plain))
		return false;
	return has_word((struct span){ str_text(&plain), plain.len }, word);
}

static bool is_said(struct span value, const struct cred_rule *c)
{
	return has_word(value, c->placeholder) || has_word_in_code(value, c->placeholder) ||
	       (c->bind.how == BIND_AWS && sigv4_is_by(value, c->placeholder));
}

/* Which one it stands for; INJECT_NONE: it is something else. */
static size_t stands_for(const struct inject_ask *q, struct span value)
{
	for (size_t i = 0; i < q->rules->creds.len; i++) {
		const struct cred_rule *c = &q->rules->creds.at[i];

		if (c->placeholder && is_bound_here(c, q->name) && is_said(value, c))
			return i;
	}
	return INJECT_NONE;
}

bool inject_is_carrier(const struct rules *r, struct span field)
{
	for (size_t i = 0; i < COUNT(carriers); i++)
		if (is_alike(field, span_of(carriers[i])))
			return true;
	for (size_t i = 0; i < COUNT(carrier_ends); i++)
		if (ends_alike(field, span_of(carrier_ends[i])))
			return true;
	for (size_t i = 0; i < r->creds.len; i++)
		if (r->creds.at[i].bind.how == BIND_HEADER &&
		    is_alike(field, span_of(r->creds.at[i].bind.arg)))
			return true;
	return false;
}

/* ---- queries ------------------------------------------------------------------------- */

struct part {
	struct span key, value; /* as written */
};

/* The next of "a=b&c": false at the end. `rest` begins behind the last one. */
static bool next_part(struct span *rest, struct part *out)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->at, '&', rest->len);
	size_t n = end ? (size_t)(end - rest->at) : rest->len;
	const char *equals = memchr(rest->at, '=', n);
	size_t key = equals ? (size_t)(equals - rest->at) : n;

	out->key = (struct span){ rest->at, key };
	out->value = (struct span){ rest->at + key + (equals != NULL), n - key - (equals != NULL) };
	*rest = span_after(*rest, n + (end != NULL));
	return true;
}

static struct span query_of(struct span target)
{
	const char *mark = memchr(target.at, '?', target.len);

	return mark ? span_after(target, (size_t)(mark - target.at) + 1)
	            : (struct span){ target.at + target.len, 0 };
}

/* What cannot be read is taken for one: nobody needs it. */
static bool key_is(struct span key, const char *word)
{
	char text[256];
	struct err unused;
	int n = url_decode(URL_QUERY, key, text, sizeof text, &unused);

	return n < 0 || is_alike((struct span){ text, (size_t)n }, span_of(word));
}

static bool is_query_carrier(const struct rules *r, struct span key)
{
	for (size_t i = 0; i < COUNT(query_carriers); i++)
		if (key_is(key, query_carriers[i]))
			return true;
	for (size_t i = 0; i < r->creds.len; i++)
		if (r->creds.at[i].bind.how == BIND_QUERY && key_is(key, r->creds.at[i].bind.arg))
			return true;
	return false;
}

/* ---- the choice ---------------------------------------------------------------------- */

/* What it carries: none, one of ours, or (false) another. */
static bool look(const struct inject_ask *q, size_t *found)
{
	struct span rest = query_of(q->head->path);
	struct part part;

	*found = INJECT_NONE;
	for (size_t i = 0; i < q->head->n_fields; i++) {
		const struct http_field *f = &q->head->fields[i];

		if (!inject_is_carrier(q->rules, f->name))
			continue;
		if ((*found = stands_for(q, f->value)) == INJECT_NONE)
			return false;
	}
	while (next_part(&rest, &part))
		if (is_query_carrier(q->rules, part.key) &&
		    (*found = stands_for(q, part.value)) == INJECT_NONE)
			return false;
	return true;
}

enum git_verb inject_git(const struct inject_ask *q, const struct bind *b)
{
	const struct git_request r = { q->method, q->path ? q->path : "", query_of(q->head->path) };

	return git_verb_of(b, &r);
}

static bool fits_git(const struct inject_ask *q, const struct bind *b)
{
	enum git_verb verb = inject_git(q, b);

	return b->git.len == 0 || verb == GIT_FETCH ||
	       (b->push.len + b->push_ask.len > 0 && (verb == GIT_PUSH_ASK || verb == GIT_PUSH));
}

static bool fits(const struct inject_ask *q, const struct cred_rule *c)
{
	return q->is_tls && cred_has_host(c, q->name, q->port) &&
	       cred_has_request(c, q->method, q->path, q->now_ms) && fits_git(q, &c->bind);
}

enum gate_reason inject_choose(const struct inject_ask *q, size_t *which)
{
	size_t found = INJECT_NONE;

	*which = INJECT_NONE;
	if (!q->name || !rules_is_bound(q->rules, q->name))
		return GATE_NONE;
	const bool is_foreign = !look(q, &found);

	if (is_foreign && rules_is_exclusive(q->rules, q->name, q->path))
		return GATE_CREDENTIAL;
	for (size_t i = 0; !is_foreign && i < q->rules->creds.len && *which == INJECT_NONE; i++)
		if ((found == INJECT_NONE || found == i) && fits(q, &q->rules->creds.at[i]))
			*which = i;
	return *which == INJECT_NONE && rules_is_only_bound(q->rules, q->name) ? GATE_CREDENTIAL
	                                                                       : GATE_NONE;
}

/* ---- what is said -------------------------------------------------------------------- */

/* Parts of an answer, one by one, could spell what nobody finds in any of them. Of a signature
 * there is nothing to find. */
static bool asks_for_parts(struct span field)
{
	return span_is_nocase(field, "Range") || span_is_nocase(field, "If-Range");
}

bool inject_replaces(const struct injection *j, struct span field)
{
	return inject_is_carrier(j->rules, field) || span_is_nocase(field, "Accept-Encoding") ||
	       (j->sign ? sigv4_replaces(field) : asks_for_parts(field));
}

const char *inject_field(const struct injection *j)
{
	switch (j->rule->bind.how) {
	case BIND_BEARER:
	case BIND_BASIC:
	case BIND_AWS:
	case BIND_APP:
		return "Authorization";
	case BIND_HEADER:
		return j->rule->bind.arg;
	case BIND_QUERY:
	case BIND_HOWS:
		break;
	}
	return NULL;
}

void inject_target(const struct injection *j, struct span target, struct str *out)
{
	struct span rest = query_of(target);
	struct part part;
	const char *mark = memchr(target.at, '?', target.len);

	str_addn(out, target.at, mark ? (size_t)(mark - target.at) : target.len);
	str_addf(out, "?%s=", j->rule->bind.arg);
	str_addn(out, j->said.at, j->said.len);
	while (next_part(&rest, &part)) {
		if (is_query_carrier(j->rules, part.key))
			continue;
		str_add(out, "&");
		str_addn(out, part.key.at, (size_t)(part.value.at + part.value.len - part.key.at));
	}
}
