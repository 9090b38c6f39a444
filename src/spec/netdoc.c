#include "spec/netdoc.h"

#include "spec/mock.h"
#include "spec/opts.h"
#include "spec/rules-internal.h"
#include "spec/special.h"
#include "wire/pkgmeta.h"

/* ---- names that stand for several hosts ---- */

static void add_once(struct text_list *l, struct arena *a, const char *text)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->at[i], text) == 0)
			return;
	vec_push(l, arena_strdup(a, text));
}

struct expander {
	struct arena *arena;
	net_hosts_fn *hosts;
	void *arg;
	struct text_list *cache; /* gets the hosts of presets whose registries it understands */
};

static void cache_host(const struct expander *x, const char *preset, const char *host)
{
	AUTO(str_done) struct str text = { .max = 2ul * NAME_TEXT_MAX };

	str_addf(&text, "%s:%s", preset, host);
	add_once(x->cache, x->arena, str_text(&text));
}

/* One entry, as itself or as what it stands for. */
static int expand_entry(const struct expander *x, const char *entry, struct text_list *out,
                        struct err *e)
{
	const char *name = NULL;
	enum net_entry kind = net_entry_kind(entry, &name);
	struct text_list found = { 0 };
	int r = kind == NET_HOST ? 0 : x->hosts(x->arg, kind, name, &found, e);
	bool is_cached = kind == NET_PRESET && pkg_find(name, strlen(name)) != PKG_NONE;

	if (r == 0)
		add_once(out, x->arena, entry);
	for (size_t i = 0; i < found.len && r > 0; i++) {
		add_once(out, x->arena, found.at[i]);
		if (is_cached && x->cache)
			cache_host(x, name, found.at[i]);
	}
	vec_done(&found);
	return r < 0 ? err_wrap(e, "%s", entry) : 0;
}

static int expand_list(const struct expander *x, struct text_list *list, struct err *e)
{
	struct text_list out = { 0 };
	int r = 0;

	for (size_t i = 0; i < list->len && r == 0; i++)
		r = expand_entry(x, list->at[i], &out, e);
	if (r < 0) {
		vec_done(&out);
		return -1;
	}
	vec_done(list);
	*list = out;
	return 0;
}

/* ---- what publishes a package ---- */

/* The rest of the methods is for clients that only take. */
static const struct {
	const char *preset;
	const char *const *asked, *const *free;
} publishing[] = {
	{ "npm", (const char *const[]){ "PUT", "DELETE", NULL },
	  (const char *const[]){ "GET", "HEAD", "POST", "PATCH", "OPTIONS", NULL } },
	{ "pip", (const char *const[]){ "POST", "PUT", "PATCH", "DELETE", NULL },
	  (const char *const[]){ "GET", "HEAD", "OPTIONS", NULL } },
	{ "cargo", (const char *const[]){ "PUT", "DELETE", NULL },
	  (const char *const[]){ "GET", "HEAD", "POST", "PATCH", "OPTIONS", NULL } },
};

static void add_http(struct net_spec *net, const char *host, const char *const *methods,
                     bool is_ask)
{
	struct http_rule rule = { .host = host, .is_ask = is_ask };

	for (; *methods; methods++)
		vec_push(&rule.methods, *methods);
	vec_push(&net->http, rule);
}

static void add_publishing(struct net_spec *net, struct span preset, const char *host)
{
	for (size_t i = 0; i < COUNT(publishing); i++) {
		if (!span_is(preset, publishing[i].preset))
			continue;
		add_http(net, host, publishing[i].asked, true);
		add_http(net, host, publishing[i].free, false);
	}
}

/* "npm:HOST", or "preset:npm" for the hosts that it stands for. 0: somebody else may know them. */
static int expand_published(const struct expander *x, struct net_spec *net, const char *entry,
                            struct err *e)
{
	const char *name = NULL;
	struct text_list found = { 0 };
	struct span preset = { entry, strcspn(entry, ":") };

	if (net_entry_kind(entry, &name) != NET_PRESET) {
		add_publishing(net, preset, entry + preset.len + 1);
		return 1;
	}
	int r = x->hosts(x->arg, NET_PRESET, name, &found, e);

	for (size_t i = 0; i < found.len && r > 0; i++)
		add_publishing(net, span_of(name), arena_strdup(x->arena, found.at[i]));
	vec_done(&found);
	return r < 0 ? err_wrap(e, "%s", entry) : r;
}

static int expand_publish(const struct expander *x, struct net_spec *net, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < net->publish.len; i++) {
		int r = expand_published(x, net, net->publish.at[i], e);

		if (r < 0)
			return -1;
		if (r == 0)
			net->publish.at[kept++] = net->publish.at[i];
	}
	net->publish.len = kept;
	return 0;
}

int net_expand(struct spec *s, net_hosts_fn *hosts, void *arg, struct err *e)
{
	struct text_list *lists[] = { &s->net.deny, &s->net.allow, &s->net.ask };
	struct expander x = { &s->arena, hosts, arg, NULL };

	for (size_t i = 0; i < COUNT(lists); i++) {
		x.cache = lists[i] == &s->net.deny ? NULL : &s->net.cache;
		if (expand_list(&x, lists[i], e) < 0)
			return -1;
	}
	return expand_publish(&x, &s->net, e);
}

struct by_config {
	const struct config_net *config;
	struct arena *arena;
};

static const char *value_of(const struct pair_list *l, const char *key)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->at[i].key, key) == 0)
			return l->at[i].value;
	return NULL;
}

static int hosts_of_config(void *arg, enum net_entry kind, const char *name, struct text_list *out,
                           struct err *e)
{
	const struct by_config *by = arg;
	const char *hosts =
	    value_of(kind == NET_PRESET ? &by->config->presets : &by->config->sets, name);
	char *rest = hosts ? arena_strdup(by->arena, hosts) : NULL;

	while (rest)
		add_once(out, by->arena, strsep(&rest, ","));
	if (hosts)
		return 1;
	if (kind == NET_PRESET)
		return err_new(e, ERR_INVALID,
		               "the config of this daemon names no hosts for it (net.presets); the "
		               "CLI reads them from the client's own configuration");
	return err_new(e, ERR_INVALID, "the config of this daemon has no such set (net.sets)");
}

int net_expand_config(struct spec *s, const struct config_net *c, struct err *e)
{
	struct by_config by = { c, &s->arena };

	if (net_expand(s, hosts_of_config, &by, e) < 0)
		return -1;
	if (config_cache_bytes(c) == 0)
		vec_done(&s->net.cache); /* there is none: TLS has no reason to end at the gate */
	return 0;
}

/* ---- ranges that are not everybody's to open ---- */

/* The class of all its addresses; SPECIAL_NONE when it has others too: those that are special are
 * left out when they are dialled. */
static enum special class_of(const struct range_rule *r)
{
	uint8_t last[16];
	size_t bytes = r->is_v6 ? 16 : 4;

	memcpy(last, r->addr, sizeof last);
	for (size_t bit = r->bits; bit < 8 * bytes; bit++)
		last[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
	enum special first = special_class(r->addr, r->is_v6);

	return first == special_class(last, r->is_v6) ? first : SPECIAL_NONE;
}

static bool is_granted(const struct range_rule *r, const struct text_list *grant)
{
	for (size_t i = 0; i < grant->len; i++) {
		struct range_rule g = range_compile(grant->at[i]);

		if (range_contains(&g, r))
			return true;
	}
	return false;
}

/* A rules file that is wrong would be a host that answers nothing. */
static int check_mocks(const struct net_spec *net, struct err *e)
{
	for (size_t i = 0; i < net->mock.len; i++) {
		const char *file = net->mock.at[i].value, *text = value_of(&net->mocks, file);
		AUTO(mock_done) struct mock m = { 0 };

		if (!text)
			return err_new(e, ERR_INVALID, "net.mocks: the text of \"%s\" is missing",
			               quote(file).text);
		if (mock_read(&m, text, strlen(text), e) < 0)
			return err_wrap(e, "net.mocks: %s", quote(file).text);
	}
	return 0;
}

/* Without a cache nothing could be reached. */
static int check_offline(const struct net_spec *net, const struct config_net *c, struct err *e)
{
	if (!net->is_offline)
		return 0;
	if (config_cache_bytes(c) == 0)
		return err_new(e, ERR_INVALID,
		               "net.offline: this daemon has no package cache (net.cache of its "
		               "config is off)");
	if (net->cache.len == 0)
		return err_new(e, ERR_INVALID,
		               "net.offline: no host of net is cached; allow preset:pip, "
		               "preset:npm or preset:cargo");
	return 0;
}

int net_admit(const struct net_spec *net, const struct config_net *c, bool is_operator,
              struct err *e)
{
	for (size_t i = 0; i < net->cidr.len; i++) {
		struct range_rule r = range_compile(net->cidr.at[i]);
		enum special class = class_of(&r);

		if (class == SPECIAL_METADATA)
			return err_new(
			    e, ERR_INVALID,
			    "net.cidr[%zu]: \"%s\" is a metadata service: nobody opens that", i,
			    quote(r.text).text);
		if (class != SPECIAL_NONE && !is_operator && !is_granted(&r, &c->grant))
			return err_new(e, ERR_DENIED,
			               "net.cidr[%zu]: \"%s\" is special-purpose (%s): only the "
			               "operator opens it, or net.grant of the config",
			               i, quote(r.text).text, special_name(class));
	}
	return check_offline(net, c, e) < 0 ? -1 : check_mocks(net, e);
}

/* ---- the document ---- */

static json_t *texts(const struct text_list *l)
{
	json_t *array = json_array();

	for (size_t i = 0; i < l->len; i++)
		json_array_append_new(array, json_string(l->at[i]));
	return array;
}

static json_t *grants_of(const struct net_spec *net, const struct config_net *c)
{
	json_t *array = texts(&c->grant);

	for (size_t i = 0; i < net->cidr.len; i++) {
		struct range_rule r = range_compile(net->cidr.at[i]);

		if (class_of(&r) != SPECIAL_NONE)
			json_array_append_new(array, json_string(r.text));
	}
	return array;
}

static int json_write(const char *bytes, size_t n, void *out)
{
	str_addn(out, bytes, n);
	return 0;
}

int net_document(const struct net_spec *net, const struct config_net *c, struct json_t *held,
                 struct str *out, struct err *e)
{
	json_t *rules = members_get(&net_table, net);
	json_t *mocks = json_incref(json_object_get(rules, "mocks"));
	AUTO(json_decrefp) json_t *doc = json_object();

	json_object_del(rules, "mocks");
	if (config_cache_bytes(c) == 0)
		json_object_del(rules, "cache");
	json_object_set_new(doc, "net", rules);
	json_object_set_new(doc, "grant", grants_of(net, c));
	if (c->proxy)
		json_object_set_new(doc, "proxy", json_string(c->proxy));
	if (mocks)
		json_object_set_new(doc, "mocks", mocks);
	if (held)
		json_object_update(doc, held);
	json_decref(held);
	if (c->ask_ms > 0)
		json_object_set_new(doc, "ask_ms", json_integer((json_int_t)c->ask_ms));
	if (json_dump_callback(doc, json_write, out, JSON_COMPACT) < 0)
		return err_new(e, ERR_INTERNAL, "print the rules");
	if (out->overflow || out->len > GATE_RULES_MAX)
		return err_new(e, ERR_LIMIT, "net: the rules have more than %u bytes",
		               GATE_RULES_MAX);
	return 0;
}
