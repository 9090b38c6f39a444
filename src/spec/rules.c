/*
 * rules.c - a rules document becomes lists that can be asked.
 *
 * The document is read by the tables of the spec, so that whatever was taken at create is taken
 * here, and nothing else.
 */
#include "spec/rules-internal.h"

#include <arpa/inet.h>

#include "spec/opts.h"
#include "wire/http.h"
#include "wire/target.h"

#define ASK_MS_MAX (24ll * 3600 * 1000)
#define ASK_MS_DEFAULT 300000
#define CREDS_MAX 32
#define PORT_HTTPS 443

struct doc {
	struct net_spec net;
	bool has_net;
	struct text_list grant;
	struct pair_list mocks;
	struct cred_list creds;
	struct pair_list canaries;
	const char *proxy;
	uint32_t ask_ms;
};

static int net_once(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct doc *doc = into;

	doc->has_net = true;
	return opt_net.set(in, o, into, v, e);
}

static int ask_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	uint32_t *field = opt_field(o, into);

	(void)in;
	if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > ASK_MS_MAX)
		return wrong_type(o->type->wants, v, e);
	*field = (uint32_t)json_integer_value(v);
	return 0;
}

/* "http://proxy.example.org:3128": nothing before the host, nothing behind the port. */
static enum rules_proxy proxy_read(const char *text, struct span *host, uint16_t *port)
{
	static const struct {
		const char *prefix;
		enum rules_proxy kind;
	} schemes[] = { { "http://", PROXY_HTTP }, { "socks5://", PROXY_SOCKS5 } };

	for (size_t i = 0; i < COUNT(schemes); i++) {
		size_t n = strlen(schemes[i].prefix);

		if (strncmp(text, schemes[i].prefix, n) == 0 &&
		    http_host_split(span_of(text + n), host, port) && *port > 0)
			return schemes[i].kind;
	}
	return PROXY_NONE;
}

/* Not quoted when it is wrong: it may have a password. */
int check_proxy(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e)
{
	struct span host = { 0 };
	uint16_t port = 0;

	(void)o;
	if (text_plain(text, NAME_TEXT_MAX + sizeof "socks5://:65535" - 1, e) < 0)
		return -1;
	if (proxy_read(text, &host, &port) == PROXY_NONE)
		return err_new(e, ERR_INVALID, "wants http://HOST:PORT or socks5://HOST:PORT");
	*out = arena_strdup(a, text);
	return 0;
}

static const struct opt_type opt_net_once = {
	.wants = "an object",
	.set = net_once,
};
static const struct opt_type opt_ask = { .wants = "milliseconds, at most a day", .set = ask_set };

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct doc, name)

static const struct opt rows[] = {
	{ .key = "net", .type = &opt_net_once, .members = &net_table, FIELD(net) },
	{ .key = "grant", .type = &opt_list, .check = check_cidr, FIELD(grant) },
	{ .key = "proxy", .type = &opt_text, .check = check_proxy, FIELD(proxy) },
	{ .key = "mocks", .type = &opt_map, .check_key = check_rules_file, .check = check_any,
	  FIELD(mocks) },
	{ .key = "creds", .type = &opt_doc_creds, FIELD(creds), .max = CREDS_MAX },
	{ .key = "canaries", .type = &opt_map, .check_key = check_name, .check = check_any, FIELD(canaries), .max = CREDS_MAX },
	{ .key = "ask_ms", .type = &opt_ask, FIELD(ask_ms) },
};
/* clang-format on */

static const struct opt_table table = { rows, COUNT(rows) };
static const struct doc_kind kind = {
	.table = &table,
	.noun = "the rules document",
	.keys = "net, grant",
	.when_empty = "a net",
};

static void doc_done(struct doc *doc)
{
	net_clear(&doc->net);
	vec_done(&doc->grant);
	vec_done(&doc->mocks);
	creds_done(&doc->creds);
	vec_done(&doc->canaries);
}

/* ---- hosts and ranges; the text was checked by check_host and check_cidr ---- */

static uint16_t port_of(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

struct host_rule host_compile(struct arena *a, const char *text)
{
	struct host_rule h = { .kind = HOST_EXACT, .text = text, .port = port_of(text) };
	size_t n = strcspn(text, ":");
	size_t stars = strspn(text, "*");

	if (stars > 0)
		h.kind = stars == n ? HOST_EVERY : stars == 1 ? HOST_ONE : HOST_DEEP;
	size_t skip = stars + (stars > 0 && stars < n); /* the dot too */

	h.name = arena_strndup(a, text + skip, n - skip);
	h.len = n - skip;
	return h;
}

static void host_add(struct host_rules *l, struct host_rule h)
{
	vec_push(l, h);
}

static int hosts_compile(struct rules *r, struct host_rules *out, const struct text_list *in,
                         struct err *e)
{
	for (size_t i = 0; i < in->len; i++) {
		const char *name = NULL;

		if (net_entry_kind(in->at[i], &name) != NET_HOST)
			return err_new(e, ERR_INVALID, "\"%s\" is not expanded",
			               quote(in->at[i]).text);
		host_add(out, host_compile(&r->arena, in->at[i]));
	}
	return 0;
}

struct range_rule range_compile(const char *text)
{
	char ip[INET6_ADDRSTRLEN] = "";
	size_t n = strcspn(text, "/");
	struct range_rule range = {
		.is_v6 = memchr(text, ':', n),
		.bits = (uint8_t)strtoul(text + n + 1, NULL, 10),
		.port = strchr(text + n, ':') ? port_of(text) : 0,
		.text = text,
	};

	snprintf(ip, sizeof ip, "%.*s", (int)n, text);
	(void)inet_pton(range.is_v6 ? AF_INET6 : AF_INET, ip, range.addr);
	return range;
}

static void range_add(struct range_rules *l, struct range_rule range)
{
	vec_push(l, range);
}

static void ranges_compile(struct range_rules *out, const struct text_list *in)
{
	for (size_t i = 0; i < in->len; i++)
		range_add(out, range_compile(in->at[i]));
}

/* ---- http ---- */

const char *path_compile(struct arena *a, const char *path)
{
	AUTO(str_done) struct str out = { .max = 3ul * PATH_TEXT_MAX };

	http_target_escape(path, &out);
	return arena_strdup(a, str_text(&out));
}

static void text_add(struct text_list *l, const char *text)
{
	vec_push(l, text);
}

static void http_compile(struct rules *r, const struct http_rule *in)
{
	struct request_rule rule = { .host = host_compile(&r->arena, in->host),
		                     .is_ask = in->is_ask };

	for (size_t i = 0; i < in->methods.len; i++)
		text_add(&rule.methods, in->methods.at[i]);
	for (size_t i = 0; i < in->paths.len; i++)
		text_add(&rule.paths, path_compile(&r->arena, in->paths.at[i]));
	vec_push(&r->http, rule);
}

static int mock_compile(struct rules *r, const struct doc *doc, const struct text_pair *in,
                        struct err *e)
{
	struct mock_rule rule = { host_compile(&r->arena, in->key), in->value, NULL };

	for (size_t i = 0; i < doc->mocks.len; i++)
		if (strcmp(doc->mocks.at[i].key, in->value) == 0)
			rule.content = doc->mocks.at[i].value;
	if (!rule.content)
		return err_new(e, ERR_INVALID, "mocks: \"%s\" is missing", quote(in->value).text);
	vec_push(&r->mock, rule);
	return 0;
}

/* "example.org X-Name: text" */
static void header_compile(struct rules *r, const char *text)
{
	size_t n = strcspn(text, " "), len = strcspn(text + n + 1, ":");
	struct header_rule rule = {
		.host = host_compile(&r->arena, arena_strndup(&r->arena, text, n)),
		.name = arena_strndup(&r->arena, text + n + 1, len),
		.value = text + n + 1 + len + 2,
		.text = text,
	};

	vec_push(&r->headers, rule);
}

/* "pip:example.org" */
static void cache_compile(struct rules *r, const char *text)
{
	size_t n = strcspn(text, ":");
	struct cache_rule rule = { host_compile(&r->arena, text + n + 1), pkg_find(text, n) };

	vec_push(&r->cache, rule);
}

/* ---- rates and proxy ---- */

static uint32_t period_ms(char unit)
{
	return unit == 's' ? 1000 : unit == 'm' ? 60 * 1000 : 3600 * 1000;
}

/* "200/m" */
static int connections_compile(struct rules *r, const char *text, struct err *e)
{
	size_t n = strcspn(text, "/");
	uint64_t count = 0;

	if (unit_count.parse(arena_strndup(&r->arena, text, n), &count, e) < 0)
		return -1;
	r->rates.connections = (uint32_t)count;
	r->rates.connections_ms = period_ms(text[n + 1]);
	return 0;
}

static int rates_compile(struct rules *r, const struct pair_list *rate, struct err *e)
{
	const struct {
		const char *key;
		int (*parse)(const char *text, uint64_t *out, struct err *e);
		uint64_t *field;
	} sizes[] = { { "bytes_up", size_parse, &r->rates.bytes_up },
		      { "bytes_down", size_parse, &r->rates.bytes_down },
		      { "up", speed_parse, &r->rates.up },
		      { "down", speed_parse, &r->rates.down } };

	for (size_t i = 0; i < rate->len; i++) {
		const struct text_pair *p = &rate->at[i];

		if (strcmp(p->key, "connections") == 0 && connections_compile(r, p->value, e) < 0)
			return -1;
		for (size_t k = 0; k < COUNT(sizes); k++)
			if (strcmp(p->key, sizes[k].key) == 0 &&
			    sizes[k].parse(p->value, sizes[k].field, e) < 0)
				return -1;
	}
	return 0;
}

/* The text was checked. */
static void proxy_compile(struct rules *r, const char *text)
{
	struct span host = { 0 };

	if (!text)
		return;
	r->proxy = proxy_read(text, &host, &r->proxy_port);
	if (host.len > 0 && host.at[0] == '[')
		host = (struct span){ host.at + 1, host.len - 2 };
	r->proxy_host = arena_strndup(&r->arena, host.at, host.len);
}

void rules_proxy_by(struct rules *r, const char *text)
{
	r->proxy = PROXY_NONE;
	r->proxy_host = NULL;
	proxy_compile(r, text);
}

/* ---- the whole ---- */

/* They are the rules' from now on. */
static void creds_compile(struct rules *r, struct cred_list *in)
{
	r->creds = *in;
	*in = (struct cred_list){ 0 };
	for (size_t i = 0; i < r->creds.len; i++) {
		struct cred_rule *c = &r->creds.at[i];

		for (size_t k = 0; k < c->bind.hosts.len && k < BIND_HOSTS_MAX; k++) {
			c->hosts[k] = host_compile(&r->arena, c->bind.hosts.at[k]);
			if (c->hosts[k].port == 0)
				c->hosts[k].port = PORT_HTTPS;
			c->n_hosts = k + 1;
		}
		for (size_t k = 0; k < c->bind.paths.len; k++)
			c->bind.paths.at[k] = path_compile(&r->arena, c->bind.paths.at[k]);
	}
}

static void canaries_compile(struct rules *r, const struct pair_list *in)
{
	if (in->len > 0)
		r->canaries = canaries_new();
	for (size_t i = 0; i < in->len; i++)
		canaries_add(r->canaries, in->at[i].key, in->at[i].value);
}

static int compile(struct rules *r, struct doc *doc, struct err *e)
{
	const struct net_spec *net = &doc->net;

	if (!doc->has_net)
		return err_new(e, ERR_INVALID, "the rules document has no net");
	r->mode = net->mode;
	r->is_offline = net->is_offline;
	r->ask_ms = doc->ask_ms;
	if (hosts_compile(r, &r->allow, &net->allow, e) < 0 ||
	    hosts_compile(r, &r->deny, &net->deny, e) < 0 ||
	    hosts_compile(r, &r->ask, &net->ask, e) < 0 ||
	    hosts_compile(r, &r->inspect, &net->inspect, e) < 0 ||
	    hosts_compile(r, &r->tls_any, &net->tls_any, e) < 0)
		return -1;
	ranges_compile(&r->cidr, &net->cidr);
	ranges_compile(&r->deny_cidr, &net->deny_cidr);
	for (size_t i = 0; i < net->headers.len; i++)
		header_compile(r, net->headers.at[i]);
	ranges_compile(&r->grant, &doc->grant);
	for (size_t i = 0; i < net->http.len; i++)
		http_compile(r, &net->http.at[i]);
	for (size_t i = 0; i < net->mock.len; i++)
		if (mock_compile(r, doc, &net->mock.at[i], e) < 0)
			return -1;
	for (size_t i = 0; i < net->cache.len; i++)
		cache_compile(r, net->cache.at[i]);
	proxy_compile(r, doc->proxy);
	creds_compile(r, &doc->creds);
	canaries_compile(r, &doc->canaries);
	return rates_compile(r, &net->rate, e);
}

int rules_read(struct rules *r, const char *json, size_t n, struct err *e)
{
	AUTO(doc_done) struct doc doc = { .ask_ms = ASK_MS_DEFAULT };
	AUTO(rules_done) struct rules next = { 0 };

	json_set_alloc_funcs(mem_alloc, free);
	if (n > GATE_RULES_MAX)
		return err_new(e, ERR_LIMIT, "the rules document has more than %u bytes",
		               GATE_RULES_MAX);
	if (doc_json(&kind, &next.arena, &doc, (struct span){ json, n }, e) < 0 ||
	    compile(&next, &doc, e) < 0)
		return -1;
	rules_done(r);
	*r = next;
	next = (struct rules){ 0 };
	return 0;
}

void rules_done(struct rules *r)
{
	struct host_rules *hosts[] = { &r->allow, &r->deny, &r->ask, &r->inspect, &r->tls_any };
	struct range_rules *ranges[] = { &r->cidr, &r->deny_cidr, &r->grant, &r->own };

	for (size_t i = 0; i < COUNT(hosts); i++)
		vec_done(hosts[i]);
	for (size_t i = 0; i < COUNT(ranges); i++)
		vec_done(ranges[i]);
	for (size_t i = 0; i < r->http.len; i++) {
		vec_done(&r->http.at[i].methods);
		vec_done(&r->http.at[i].paths);
	}
	vec_done(&r->http);
	vec_done(&r->mock);
	vec_done(&r->headers);
	vec_done(&r->cache);
	creds_done(&r->creds);
	canaries_free(r->canaries);
	arena_done(&r->arena);
	*r = (struct rules){ 0 };
}

void rules_own(struct rules *r, const struct rules_addr *at, size_t n)
{
	r->own.len = 0;
	for (size_t i = 0; i < n; i++) {
		struct range_rule one = { .is_v6 = at[i].is_v6,
			                  .bits = at[i].is_v6 ? 128 : 32,
			                  .text = "own interface" };

		memcpy(one.addr, at[i].at, at[i].is_v6 ? 16 : 4);
		range_add(&r->own, one);
	}
}
