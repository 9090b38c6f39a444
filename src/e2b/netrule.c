/*
 * netrule.c - what their clients call network, as the rules of a spec (docs/gate.md).
 *
 *   nothing, or a denyOut of addresses      everything but these: mode allow, deny_cidr
 *   allow_internet_access false             nothing
 *   denyOut with 0.0.0.0/0                  only allowOut: names, and addresses as ranges
 *
 *   rules                                   headers, as they are said in each request
 *
 * Their allow wins over their deny; ours is the other way round, so a deny that an allow covers is
 * left out, and one that an allow lies in cannot be said.
 */
#include <arpa/inet.h>

#include "base/limits.h"
#include "e2b/e2b-internal.h"

#define EVERYTHING "0.0.0.0/0"

static bool is_prefix(const char *text, unsigned long most)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 3 && !text[n] && strtoul(text, NULL, 10) <= most;
}

static bool is_address(const char *text)
{
	char host[INET6_ADDRSTRLEN] = "";
	unsigned char buf[16];
	size_t n = strcspn(text, "/");

	if (n >= sizeof host)
		return false;
	memcpy(host, text, n);
	unsigned long bits = inet_pton(AF_INET, host, buf) == 1    ? 32
	                     : inet_pton(AF_INET6, host, buf) == 1 ? 128
	                                                           : 0;
	return bits && (!text[n] || is_prefix(text + n + 1, bits));
}

static bool has(const json_t *list, const char *text)
{
	size_t i;
	const json_t *v;

	json_array_foreach(list, i, v) if (strcmp(json_string_value(v), text) == 0) return true;
	return false;
}

static int check_texts(const json_t *list, const char *key, struct fail *f)
{
	size_t i;
	const json_t *v;

	if (list && !json_is_null(list) && !json_is_array(list))
		return fail_set(f, FAIL_INVALID, "%s: a list of texts is expected", key);
	json_array_foreach(list, i, v) if (!json_is_string(v)) return fail_set(
	    f, FAIL_INVALID, "%s: a list of texts is expected", key);
	return 0;
}

static void add_range(json_t *to, const char *text)
{
	char range[INET6_ADDRSTRLEN + 8];

	snprintf(range, sizeof range, "%s%s", text,
	         strchr(text, '/')   ? ""
	         : strchr(text, ':') ? "/128"
	                             : "/32");
	json_array_append_new(to, json_string(range));
}

static void split(const json_t *list, json_t *hosts, json_t *ranges)
{
	size_t i;
	const json_t *v;

	json_array_foreach(list, i, v)
	{
		const char *text = json_string_value(v);

		if (is_address(text))
			add_range(ranges, text);
		else
			json_array_append_new(hosts, json_string(text));
	}
}

static json_t *only_these(const json_t *allow)
{
	json_t *hosts = json_array(), *ranges = json_array();
	json_t *net = json_pack("{ss}", "mode", "list");

	split(allow, hosts, ranges);
	json_object_set_new(net, "allow", hosts);
	json_object_set_new(net, "cidr", ranges);
	return net;
}

/* ---- ranges -------------------------------------------------------------------------- */

struct range {
	unsigned char at[16];
	unsigned int bits; /* of 128; an IPv4 one lies behind its own prefix */
};

static void range_of(const char *text, struct range *out)
{
	char host[INET6_ADDRSTRLEN] = "";
	size_t n = strcspn(text, "/");
	bool is_v4 = !memchr(text, ':', n);

	*out = (struct range){ .at = { [10] = 0xff, [11] = 0xff } };
	snprintf(host, sizeof host, "%.*s", (int)n, text);
	(void)inet_pton(is_v4 ? AF_INET : AF_INET6, host, out->at + (is_v4 ? 12 : 0));
	out->bits = text[n] ? (unsigned int)strtoul(text + n + 1, NULL, 10) : is_v4 ? 32 : 128;
	out->bits += is_v4 ? 96 : 0;
}

static bool lies_in(const struct range *inner, const struct range *outer)
{
	unsigned int whole = outer->bits / 8, rest = outer->bits % 8;

	return inner->bits >= outer->bits && outer->bits <= 128 &&
	       memcmp(inner->at, outer->at, whole) == 0 &&
	       (rest == 0 || ((unsigned int)(inner->at[whole] ^ outer->at[whole]) &
	                      (0xff00u >> rest) & 0xffu) == 0);
}

/* The first of these that has all of the range in it, or with `is_inner` lies in it; or NULL. */
static const char *related(const json_t *list, const struct range *to, bool is_inner)
{
	size_t i;
	const json_t *v;

	json_array_foreach(list, i, v)
	{
		struct range one;

		if (!is_address(json_string_value(v)))
			continue;
		range_of(json_string_value(v), &one);
		if (is_inner ? lies_in(&one, to) : lies_in(to, &one))
			return json_string_value(v);
	}
	return NULL;
}

/* Everything but these. */
static int all_but(const json_t *allow, const json_t *deny, json_t *net, struct fail *f)
{
	json_t *ranges = json_array();
	size_t i;
	const json_t *v;

	json_object_set_new(net, "deny_cidr", ranges);
	json_array_foreach(deny, i, v)
	{
		struct range denied;

		range_of(json_string_value(v), &denied);
		if (related(allow, &denied, false))
			continue;
		const char *inner = related(allow, &denied, true);
		if (inner)
			return fail_set(f, FAIL_UNENFORCEABLE,
			                "allowOut: %.64s lies in %.64s of denyOut: here what is "
			                "denied is denied whole",
			                inner, json_string_value(v));
		add_range(ranges, json_string_value(v));
	}
	if (json_array_size(ranges) == 0)
		json_object_del(net, "deny_cidr");
	return 0;
}

/* ---- headers ------------------------------------------------------------------------- */

static int add_headers(json_t *to, const char *host, json_t *headers, struct fail *f)
{
	const char *name;
	json_t *v;

	json_object_foreach(headers, name, v)
	{
		AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };

		if (!json_is_string(v))
			return fail_set(f, FAIL_INVALID, "rules: %.64s: a text is expected", name);
		if (secrets_are_named(json_string_value(v)))
			return fail_set(
			    f, FAIL_UNENFORCEABLE,
			    "rules: %.64s: a secret is given to a sandbox when it is made", name);
		str_addf(&text, "%s %s: %s", host, name, json_string_value(v));
		json_array_append_new(to, json_string(str_text(&text)));
	}
	return 0;
}

static int add_rules(json_t *to, const char *host, const json_t *list, struct fail *f)
{
	size_t n = strcspn(host, ":"), i; /* a port says nothing there */
	char name[NAME_TEXT_MAX];
	const json_t *rule;

	snprintf(name, sizeof name, "%.*s", (int)n, host);
	if (n >= sizeof name || !json_is_array(list))
		return fail_set(f, FAIL_INVALID, "rules: %.64s: a list is expected", name);
	json_array_foreach(list, i, rule)
	{
		const json_t *change = json_object_get(rule, "transform");

		if (json_object_size(rule) != (change ? 1 : 0))
			return fail_set(f, FAIL_UNENFORCEABLE,
			                "rules: transform.headers is what is offered here");
		if (add_headers(to, name, json_object_get(change, "headers"), f) < 0)
			return -1;
	}
	return 0;
}

/* {"api.example.org": [{"transform": {"headers": {"X-Name": "text"}}}]} */
static int take_rules(json_t *rules, json_t *net, struct fail *f)
{
	json_t *out = json_array(), *list;
	const char *host;
	int r = 0;

	if (rules && !json_is_null(rules) && !json_is_object(rules))
		r = fail_set(f, FAIL_INVALID, "rules: an object is expected");
	json_object_foreach(rules, host, list) r = r == 0 ? add_rules(out, host, list, f) : r;
	if (json_array_size(out) > 0)
		json_object_set(net, "headers", out);
	json_decref(out);
	return r;
}

/* ---- all of it ----------------------------------------------------------------------- */

/* What is not understood is refused: taken for what it is not it would open something. */
static int check_members(const json_t *network, const json_t *internet, struct fail *f)
{
	bool is_public;
	const char *mask = "";

	if (network && !json_is_null(network) && !json_is_object(network))
		return fail_set(f, FAIL_INVALID, "network: an object is expected");
	if (internet && !json_is_null(internet) && !json_is_boolean(internet))
		return fail_set(f, FAIL_INVALID,
		                "allow_internet_access: true or false is expected");
	if (member_bool(network, "allowPublicTraffic", &is_public, f) < 0 ||
	    member_text(network, "maskRequestHost", &mask, f) < 0)
		return -1;
	if (strlen(mask) >= NAME_TEXT_MAX)
		return fail_set(f, FAIL_INVALID, "maskRequestHost: too long");
	return 0;
}

static int check(const json_t *network, const json_t *internet, struct fail *f)
{
	const json_t *deny = json_object_get(network, "denyOut");
	static const char *const others[] = { "egressProxy", "httpsPorts" };
	size_t i;
	const json_t *v;

	if (check_members(network, internet, f) < 0 ||
	    check_texts(json_object_get(network, "allowOut"), "allowOut", f) < 0 ||
	    check_texts(deny, "denyOut", f) < 0)
		return -1;
	json_array_foreach(deny, i, v) if (!is_address(json_string_value(v))) return fail_set(
	    f, FAIL_INVALID, "denyOut: %.64s is not an address or a range", json_string_value(v));
	json_array_foreach(json_object_get(network, "allowOut"), i,
	                   v) if (strchr(json_string_value(v), '/') &&
	                          !is_address(json_string_value(
				      v))) return fail_set(f, FAIL_INVALID,
	                                                   "allowOut: %.64s is not a range",
	                                                   json_string_value(v));
	for (i = 0; i < COUNT(others); i++) {
		v = json_object_get(network, others[i]);
		if (json_array_size(v) > 0 || json_object_size(v) > 0)
			return fail_set(f, FAIL_UNENFORCEABLE, "network.%s is not offered here",
			                others[i]);
	}
	return 0;
}

json_t *netrule_of(const json_t *network, const json_t *internet, struct fail *f)
{
	const json_t *allow = json_object_get(network, "allowOut");
	const json_t *deny = json_object_get(network, "denyOut");
	json_t *net = NULL;
	int r = check(network, internet, f);

	if (r == 0 && (json_is_false(internet) || has(deny, EVERYTHING)))
		net = json_array_size(allow) > 0 ? only_these(allow)
		                                 : json_pack("{ss}", "mode", "deny");
	else if (r == 0) {
		net = json_pack("{ss}", "mode", "allow");
		r = all_but(allow, deny, net, f);
	}
	/* Where nothing is reached there is nothing to say. */
	if (r == 0 && strcmp(json_string_value(json_object_get(net, "mode")), "deny") != 0)
		r = take_rules(json_object_get(network, "rules"), net, f);
	if (r == 0)
		return net;
	json_decref(net);
	return NULL;
}
