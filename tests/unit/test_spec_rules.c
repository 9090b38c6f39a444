#include "spec/rules.h"

#include <arpa/inet.h>

#include "test.h"

static void read_rules(struct rules *r, const char *json)
{
	struct err e = { 0 };

	*r = (struct rules){ 0 };
	if (rules_read(r, json, strlen(json), &e) < 0)
		CHECK_STR(e.msg, json);
}

static struct rules_addr addr_of(const char *text, uint16_t port)
{
	struct rules_addr a = { .is_v6 = strchr(text, ':'), .port = port };

	if (inet_pton(a.is_v6 ? AF_INET6 : AF_INET, text, a.at) != 1)
		CHECK_STR(text, "an address");
	return a;
}

static const char *const whats[] = { "deny", "allow", "ask" };

static void check_verdict(const struct verdict *v, enum verdict_what what, enum gate_reason why,
                          const char *rule)
{
	CHECK_STR(whats[v->what], whats[what]);
	CHECK_STR(gate_reason_name(v->reason), gate_reason_name(why));
	CHECK_STR(v->rule, rule);
	if (v->what == VERDICT_DENY)
		CHECK(!v->mock && !v->is_terminated);
}

/* ---- reading ----------------------------------------------------------------------- */

TEST(a_document_in_full)
{
	static const char json[] =
	    "{\"net\":{\"mode\":\"list\",\"allow\":[\"a.test\",\"*.b.test:443\"],"
	    "\"deny\":[\"**.c.test\"],\"ask\":[\"*\"],\"cidr\":[\"10.1.2.0/24:5432\",\"fd00::/8\"],"
	    "\"mock\":{\"m.test\":\"mocks/m.yaml\"},"
	    "\"http\":[{\"host\":\"api.test\",\"methods\":[\"GET\"],\"paths\":[\"/b\xc3\xbc/"
	    "**\"]}],"
	    "\"inspect\":[\"i.test\"],\"tls_any\":[\"t.test\"],\"offline\":true,"
	    "\"rate\":{\"connections\":\"200/m\",\"bytes_up\":\"1g\",\"bytes_down\":\"4096\"}},"
	    "\"grant\":[\"127.0.0.0/8\",\"::1/128:80\"],\"proxy\":\"http://proxy.test:3128\","
	    "\"mocks\":{\"mocks/m.yaml\":\"- path: /\\n\"},\"ask_ms\":1000}";
	AUTO(rules_done) struct rules r;

	read_rules(&r, json);
	CHECK_INT(r.mode, NET_LIST);
	CHECK_INT(r.allow.len, 2);
	CHECK_INT(r.allow.at[0].kind, HOST_EXACT);
	CHECK_STR(r.allow.at[0].name, "a.test");
	CHECK_INT(r.allow.at[0].port, 0);
	CHECK_INT(r.allow.at[1].kind, HOST_ONE);
	CHECK_STR(r.allow.at[1].name, "b.test");
	CHECK_INT(r.allow.at[1].port, 443);
	CHECK_STR(r.allow.at[1].text, "*.b.test:443");
	CHECK_INT(r.deny.at[0].kind, HOST_DEEP);
	CHECK_INT(r.ask.at[0].kind, HOST_EVERY);
	CHECK_INT(r.cidr.at[0].bits, 24);
	CHECK_INT(r.cidr.at[0].port, 5432);
	CHECK_INT(r.cidr.at[1].port, 0);
	CHECK(r.cidr.at[1].is_v6);
	CHECK_INT(r.grant.at[1].port, 80);
	CHECK_STR(r.mock.at[0].content, "- path: /\n");
	CHECK_STR(r.http.at[0].paths.at[0], "/b%C3%BC/**");
	CHECK(r.is_offline);
	CHECK_INT(r.rates.connections, 200);
	CHECK_INT(r.rates.connections_ms, 60000);
	CHECK_INT(r.rates.bytes_up, 1 << 30);
	CHECK_INT(r.rates.bytes_down, 4096);
	CHECK_INT(r.proxy, PROXY_HTTP);
	CHECK_STR(r.proxy_host, "proxy.test");
	CHECK_INT(r.proxy_port, 3128);
	CHECK_INT(r.ask_ms, 1000);
}

TEST(what_a_document_leaves_out)
{
	AUTO(rules_done) struct rules r;

	read_rules(&r, "{\"net\":{\"mode\":\"allow\"}}");
	CHECK_INT(r.ask_ms, 300000);
	CHECK_INT(r.proxy, PROXY_NONE);
	CHECK(!r.proxy_host && !r.is_offline);
	CHECK_INT(r.rates.connections, 0);
}

TEST(proxies)
{
	static const struct {
		const char *text;
		enum rules_proxy kind;
		const char *host;
		int port;
	} rows[] = {
		{ "http://proxy.test:3128", PROXY_HTTP, "proxy.test", 3128 },
		{ "socks5://10.0.0.1:1080", PROXY_SOCKS5, "10.0.0.1", 1080 },
		{ "http://[::1]:1", PROXY_HTTP, "::1", 1 },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(rules_done) struct rules r;
		char json[256];

		snprintf(json, sizeof json, "{\"net\":\"allow\",\"proxy\":\"%s\"}", rows[i].text);
		read_rules(&r, json);
		CHECK_INT(r.proxy, rows[i].kind);
		CHECK_STR(r.proxy_host, rows[i].host);
		CHECK_INT(r.proxy_port, rows[i].port);
	}
}

TEST(a_bad_document_says_why_and_keeps_the_old_rules)
{
	static const struct {
		const char *json, *want;
	} rows[] = {
		{ "", "is empty" },
		{ "{}", "has no net" },
		{ "[]", "wants an object" },
		{ "{\"net\":", "line 1" },
		{ "{\"net\":\"allow\",\"net\":\"deny\"}", "given twice" },
		{ "{\"net\":\"allow\",\"nets\":1}", "unknown key \"nets\"" },
		{ "{\"net\":\"denny\"}", "net: \"denny\" is not valid" },
		{ "{\"net\":{\"allow\":[\"10.0.0.1\"]}}",
		  "net.allow[0]: \"10.0.0.1\" is an address" },
		{ "{\"net\":{\"allow\":[\"preset:pip\"]}}", "\"preset:pip\" is not expanded" },
		{ "{\"net\":{\"ask\":[\"a.test\",\"set:x\"]}}", "\"set:x\" is not expanded" },
		{ "{\"net\":{\"mode\":\"allow\",\"deny\":[\"set:x\"]}}", "is not expanded" },
		{ "{\"net\":{\"mock\":{\"a.test\":\"m.yaml\"}}}", "mocks: \"m.yaml\" is missing" },
		{ "{\"net\":{\"mock\":{\"a.test\":\"m.yaml\"}},\"mocks\":{\"n.yaml\":\"\"}}",
		  "mocks: \"m.yaml\" is missing" },
		{ "{\"net\":\"allow\",\"grant\":[\"10.0.0.1\"]}", "grant[0]: \"10.0.0.1\"" },
		{ "{\"net\":\"allow\",\"proxy\":\"proxy.test:3128\"}", "proxy: wants http://" },
		{ "{\"net\":\"allow\",\"proxy\":\"http://proxy.test\"}", "proxy: wants http://" },
		{ "{\"net\":\"allow\",\"proxy\":\"http://u:p@proxy.test:1\"}", "proxy: wants" },
		{ "{\"net\":\"allow\",\"proxy\":\"http://proxy.test:1/\"}", "proxy: wants" },
		{ "{\"net\":\"allow\",\"proxy\":\"\"}", "proxy: is empty" },
		{ "{\"net\":\"allow\",\"ask_ms\":0}", "ask_ms: wants milliseconds" },
		{ "{\"net\":\"allow\",\"ask_ms\":86400001}", "ask_ms: wants milliseconds" },
		{ "{\"net\":\"allow\",\"ask_ms\":\"1\"}", "ask_ms: wants milliseconds" },
	};
	AUTO(rules_done) struct rules r;

	read_rules(&r, "{\"net\":{\"allow\":[\"old.test\"]}}");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		printf("# %s\n", rows[i].json);
		CHECK_INT(rules_read(&r, rows[i].json, strlen(rows[i].json), &e), -1);
		if (!strstr(e.msg, rows[i].want))
			CHECK_STR(e.msg, rows[i].want);
		CHECK(rules_resolves(&r, "old.test"));
	}
	struct err e = { 0 };
	AUTO(freep) char *large = mem_alloc(GATE_RULES_MAX + 1);

	memset(large, ' ', GATE_RULES_MAX + 1);
	CHECK_INT(rules_read(&r, large, GATE_RULES_MAX + 1, &e), -1);
	CHECK_STR(err_kind_name(e.kind), err_kind_name(ERR_LIMIT));
	CHECK(rules_resolves(&r, "old.test"));
}

/* ---- names and ports --------------------------------------------------------------- */

static const char mixed[] =
    "{\"net\":{\"allow\":[\"a.test\",\"*.one.test\",\"**.deep.test\",\"port.test:8443\","
    "\"both.test\",\"both.test:443\",\"two.test:443\",\"two.test:80\",\"denied.test\",\"half."
    "test\"],"
    "\"deny\":[\"denied.test\",\"bad.deep.test\",\"half.test:80\",\"**.never.test\","
    "\"only.test:443\",\"two.test:443\"],"
    "\"ask\":[\"ask.test\",\"*.ask.test:443\",\"a.test\",\"only.test:443\",\"x.never.test\"]}}";

TEST(which_rule_decides)
{
	/* clang-format off */
	static const struct {
		const char *name;
		uint16_t port;
		enum verdict_what what;
		enum gate_reason why;
		const char *rule;
	} rows[] = {
		{ "a.test", 1, VERDICT_ALLOW, GATE_NONE, "allow: a.test" },
		{ "a.test", 65535, VERDICT_ALLOW, GATE_NONE, "allow: a.test" },
		{ "b.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "x.a.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "xa.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "a.test.evil", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "x.one.test", 443, VERDICT_ALLOW, GATE_NONE, "allow: *.one.test" },
		{ "one.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "y.x.one.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "xone.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "evilone.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "x.deep.test", 443, VERDICT_ALLOW, GATE_NONE, "allow: **.deep.test" },
		{ "z.y.x.deep.test", 443, VERDICT_ALLOW, GATE_NONE, "allow: **.deep.test" },
		{ "deep.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "xdeep.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "evildeep.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "a.evildeep.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "bad.deep.test", 443, VERDICT_DENY, GATE_RULE, "deny: bad.deep.test" },
		{ "x.bad.deep.test", 443, VERDICT_ALLOW, GATE_NONE, "allow: **.deep.test" },
		{ "port.test", 8443, VERDICT_ALLOW, GATE_NONE, "allow: port.test:8443" },
		{ "port.test", 443, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "both.test", 443, VERDICT_ALLOW, GATE_NONE, "allow: both.test:443" },
		{ "both.test", 80, VERDICT_ALLOW, GATE_NONE, "allow: both.test" },
		{ "denied.test", 443, VERDICT_DENY, GATE_RULE, "deny: denied.test" },
		{ "half.test", 443, VERDICT_ALLOW, GATE_NONE, "allow: half.test" },
		{ "half.test", 80, VERDICT_DENY, GATE_RULE, "deny: half.test:80" },
		{ "ask.test", 80, VERDICT_ASK, GATE_NONE, "ask: ask.test" },
		{ "x.ask.test", 443, VERDICT_ASK, GATE_NONE, "ask: *.ask.test:443" },
		{ "x.ask.test", 80, VERDICT_DENY, GATE_NO_RULE, "" },
		{ "x.never.test", 80, VERDICT_DENY, GATE_RULE, "deny: **.never.test" },
		{ "only.test", 443, VERDICT_DENY, GATE_RULE, "deny: only.test:443" },
	};
	/* clang-format on */
	AUTO(rules_done) struct rules r;

	read_rules(&r, mixed);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_CONNECT, .name = rows[i].name,
			              .to.port = rows[i].port };
		struct verdict v = rules_decide(&r, &q);

		printf("# %s:%u\n", rows[i].name, rows[i].port);
		check_verdict(&v, rows[i].what, rows[i].why, rows[i].rule);
		q.is_answered = true;
		v = rules_decide(&r, &q);
		CHECK_INT(v.what == VERDICT_DENY, rows[i].what == VERDICT_DENY);
		CHECK(v.what != VERDICT_ASK);
	}
}

TEST(which_names_have_an_address)
{
	static const struct {
		const char *name;
		bool is_there;
	} rows[] = {
		{ "a.test", true },          { "x.one.test", true }, { "one.test", false },
		{ "y.deep.test", true },     { "port.test", true },  { "denied.test", false },
		{ "bad.deep.test", false },  { "half.test", true },  { "ask.test", true },
		{ "x.ask.test", true },      { "only.test", false }, { "x.never.test", false },
		{ "elsewhere.test", false }, { "two.test", true },
	};
	AUTO(rules_done) struct rules r;

	read_rules(&r, mixed);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_LOOKUP, .name = rows[i].name };

		printf("# %s\n", rows[i].name);
		CHECK_INT(rules_resolves(&r, rows[i].name), rows[i].is_there);
		CHECK_INT(rules_decide(&r, &q).what != VERDICT_DENY, rows[i].is_there);
	}
	struct question q = { STAGE_LOOKUP };

	CHECK_INT(rules_decide(&r, &q).reason, GATE_NAME_BAD);
}

/* A name resolves exactly when there is a port where it is not denied. */
TEST(lookup_and_connect_agree)
{
	static const char *const names[] = { "a.test",      "x.one.test",   "port.test",
		                             "denied.test", "half.test",    "only.test",
		                             "ask.test",    "x.ask.test",   "x.never.test",
		                             "q.test",      "bad.deep.test" };
	AUTO(rules_done) struct rules r;

	read_rules(&r, mixed);
	for (size_t i = 0; i < COUNT(names); i++) {
		bool is_somewhere = false;

		for (unsigned port = 1; port <= UINT16_MAX; port++) {
			struct question q = { STAGE_CONNECT, .name = names[i],
				              .to.port = (uint16_t)port };

			is_somewhere |= rules_decide(&r, &q).what != VERDICT_DENY;
		}
		CHECK_INT(rules_resolves(&r, names[i]), is_somewhere);
	}
}

TEST(modes)
{
	static const struct {
		const char *net;
		enum verdict_what named, literal;
		const char *rule;
	} rows[] = {
		{ "\"deny\"", VERDICT_DENY, VERDICT_DENY, "" },
		{ "\"allow\"", VERDICT_ALLOW, VERDICT_ALLOW, "mode: allow" },
		{ "{\"allow\":[\"*\"]}", VERDICT_ALLOW, VERDICT_DENY, "allow: *" },
		{ "{\"allow\":[\"**\"]}", VERDICT_ALLOW, VERDICT_DENY, "allow: **" },
		{ "{\"allow\":[\"*:443\"]}", VERDICT_ALLOW, VERDICT_DENY, "allow: *:443" },
		{ "{\"ask\":[\"*\"]}", VERDICT_ASK, VERDICT_DENY, "ask: *" },
		{ "{\"cidr\":[\"8.8.8.0/24\"]}", VERDICT_DENY, VERDICT_ALLOW, "" },
		{ "{\"mode\":\"allow\",\"deny\":[\"*\"]}", VERDICT_DENY, VERDICT_ALLOW, "deny: *" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(rules_done) struct rules r;
		struct question named = { STAGE_CONNECT, .name = "a.b.example.org",
			                  .to.port = 443 };
		struct question literal = { STAGE_CONNECT, .to = addr_of("8.8.8.8", 443) };
		char json[256];

		snprintf(json, sizeof json, "{\"net\":%s}", rows[i].net);
		printf("# %s\n", json);
		read_rules(&r, json);
		struct verdict v = rules_decide(&r, &named);

		CHECK_STR(whats[v.what], whats[rows[i].named]);
		CHECK_STR(v.rule, rows[i].rule);
		CHECK_INT(rules_decide(&r, &literal).what, rows[i].literal);
		CHECK_INT(rules_resolves(&r, named.name), rows[i].named != VERDICT_DENY);
	}
}

/* ---- first bytes ------------------------------------------------------------------- */

static const char protocols[] =
    "{\"net\":{\"allow\":[\"a.test\",\"ssh.test:443\",\"any.test\",\"i.test\"],"
    "\"ask\":[\"ask.test\"],\"tls_any\":[\"any.test:443\"],\"inspect\":[\"i.test\"],"
    "\"mock\":{\"m.test\":\"m.yaml\"},"
    "\"http\":[{\"host\":\"h.test\",\"methods\":[\"GET\"]}]},\"mocks\":{\"m.yaml\":\"x\"}}";

TEST(the_client_says_the_name_that_it_looked_up)
{
	/* clang-format off */
	static const struct {
		const char *name;
		uint16_t port;
		enum gate_proto proto;
		const char *said; /* NULL: nothing */
		uint16_t said_port;
		enum gate_reason why;
	} rows[] = {
		{ "a.test", 443, GATE_PROTO_TLS, "a.test", 0, GATE_NONE },
		{ "a.test", 443, GATE_PROTO_TLS, "A.TEST.", 0, GATE_NONE },
		{ "a.test", 8443, GATE_PROTO_TLS, "a.test", 0, GATE_NONE },
		{ "a.test", 443, GATE_PROTO_TLS, "b.test", 0, GATE_NAME_MISMATCH },
		{ "a.test", 443, GATE_PROTO_TLS, "i.test", 0, GATE_NAME_MISMATCH },
		{ "a.test", 443, GATE_PROTO_TLS, "x.a.test", 0, GATE_NAME_MISMATCH },
		{ "a.test", 443, GATE_PROTO_TLS, "10.0.0.1", 0, GATE_NAME_MISMATCH },
		{ "a.test", 443, GATE_PROTO_TLS, "a.test b", 0, GATE_NAME_BAD },
		{ "a.test", 443, GATE_PROTO_TLS, NULL, 0, GATE_NO_SNI },
		{ "a.test", 993, GATE_PROTO_TLS, NULL, 0, GATE_NO_SNI },
		{ "any.test", 443, GATE_PROTO_TLS, NULL, 0, GATE_NONE },
		{ "any.test", 8443, GATE_PROTO_TLS, NULL, 0, GATE_NO_SNI },
		{ "any.test", 443, GATE_PROTO_TLS, "b.test", 0, GATE_NAME_MISMATCH },
		{ "a.test", 80, GATE_PROTO_HTTP, "a.test", 0, GATE_NONE },
		{ "a.test", 80, GATE_PROTO_HTTP, "a.test", 80, GATE_NONE },
		{ "a.test", 80, GATE_PROTO_HTTP, "a.test", 81, GATE_NAME_MISMATCH },
		{ "a.test", 80, GATE_PROTO_HTTP, "b.test", 0, GATE_NAME_MISMATCH },
		{ "a.test", 80, GATE_PROTO_HTTP, "10.0.0.1", 0, GATE_NAME_MISMATCH },
		{ "a.test", 80, GATE_PROTO_HTTP, NULL, 0, GATE_NAME_MISMATCH },
		{ "a.test", 443, GATE_PROTO_HTTP, "a.test", 0, GATE_PROTOCOL },
		{ "ssh.test", 443, GATE_PROTO_HTTP, "ssh.test", 443, GATE_NONE },
		{ "a.test", 22, GATE_PROTO_SSH, NULL, 0, GATE_NONE },
		{ "a.test", 443, GATE_PROTO_SSH, NULL, 0, GATE_PROTOCOL },
		{ "ssh.test", 443, GATE_PROTO_SSH, NULL, 0, GATE_NONE },
		{ "ssh.test", 443, GATE_PROTO_TLS, NULL, 0, GATE_NO_SNI },
		{ "a.test", 5432, GATE_PROTO_TCP, NULL, 0, GATE_NONE },
		{ "a.test", 443, GATE_PROTO_TCP, NULL, 0, GATE_PROTOCOL },
		{ "a.test", 80, GATE_UNKNOWN, NULL, 0, GATE_PROTOCOL },
		{ "a.test", 80, GATE_PROTO_DNS, NULL, 0, GATE_PROTOCOL },
		/* what is terminated is HTTP or nothing */
		{ "i.test", 22, GATE_PROTO_SSH, NULL, 0, GATE_PROTOCOL },
		{ "i.test", 5432, GATE_PROTO_TCP, NULL, 0, GATE_PROTOCOL },
		{ "i.test", 443, GATE_PROTO_TLS, "i.test", 0, GATE_NONE },
		{ "h.test", 22, GATE_PROTO_SSH, NULL, 0, GATE_PROTOCOL },
		{ "h.test", 80, GATE_PROTO_HTTP, "h.test", 0, GATE_NONE },
		{ "m.test", 22, GATE_PROTO_TCP, NULL, 0, GATE_PROTOCOL },
		{ "m.test", 443, GATE_PROTO_TLS, "m.test", 0, GATE_NONE },
		{ "nobody.test", 443, GATE_PROTO_TLS, "nobody.test", 0, GATE_NO_RULE },
	};
	/* clang-format on */
	AUTO(rules_done) struct rules r;

	read_rules(&r, protocols);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_BYTES, .name = rows[i].name, .to.port = rows[i].port,
			              .proto = rows[i].proto };

		if (rows[i].said)
			q.said = said_host(span_of(rows[i].said), rows[i].said_port);
		struct verdict v = rules_decide(&r, &q);

		printf("# row %zu: %s %u\n", i, rows[i].name, rows[i].port);
		CHECK_STR(gate_reason_name(v.reason), gate_reason_name(rows[i].why));
		CHECK_INT(v.what, rows[i].why == GATE_NONE ? VERDICT_ALLOW : VERDICT_DENY);
	}
}

TEST(what_is_terminated)
{
	static const struct {
		const char *name;
		bool is_terminated, has_http, is_mock;
	} rows[] = {
		{ "a.test", false, false, false },   { "i.test", true, false, false },
		{ "h.test", true, true, false },     { "m.test", true, false, true },
		{ "ask.test", false, false, false },
	};
	AUTO(rules_done) struct rules r;

	read_rules(&r, protocols);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_CONNECT, .name = rows[i].name, .to.port = 443 };
		struct verdict v = rules_decide(&r, &q);

		CHECK_INT(v.is_terminated, rows[i].is_terminated);
		CHECK_INT(v.has_http, rows[i].has_http);
		CHECK_INT(v.mock != NULL, rows[i].is_mock);
	}
}

TEST(mode_allow_takes_every_protocol_but_no_false_name)
{
	static const struct {
		const char *name, *said;
		enum gate_proto proto;
		enum gate_reason why;
	} rows[] = {
		{ "a.test", NULL, GATE_PROTO_SSH, GATE_NONE },
		{ "a.test", NULL, GATE_PROTO_TLS, GATE_NONE },
		{ "a.test", "a.test", GATE_PROTO_TLS, GATE_NONE },
		{ "a.test", "bad.test", GATE_PROTO_TLS, GATE_NAME_MISMATCH },
		{ "a.test", "bad.test", GATE_PROTO_HTTP, GATE_NAME_MISMATCH },
		{ "bad.test", "bad.test", GATE_PROTO_TLS, GATE_RULE },
		{ "h.test", NULL, GATE_PROTO_TLS, GATE_NO_SNI },
		{ NULL, NULL, GATE_PROTO_TLS, GATE_NONE },
		{ NULL, "a.test", GATE_PROTO_TLS, GATE_NONE },
		{ NULL, "bad.test", GATE_PROTO_TLS, GATE_RULE },
		{ NULL, "bad.test", GATE_PROTO_HTTP, GATE_RULE },
		{ NULL, "h.test", GATE_PROTO_TLS, GATE_NAME_MISMATCH },
		{ NULL, "i.test", GATE_PROTO_HTTP, GATE_NAME_MISMATCH },
		{ NULL, "m.test", GATE_PROTO_HTTP, GATE_NAME_MISMATCH },
		{ NULL, "8.8.8.8", GATE_PROTO_HTTP, GATE_NONE },
		{ NULL, "a b", GATE_PROTO_HTTP, GATE_NAME_BAD },
		{ NULL, NULL, GATE_PROTO_TCP, GATE_NONE },
	};
	AUTO(rules_done) struct rules r;

	read_rules(&r,
	           "{\"net\":{\"mode\":\"allow\",\"deny\":[\"bad.test\"],\"inspect\":[\"i.test\"],"
	           "\"mock\":{\"m.test\":\"m\"},"
	           "\"http\":[{\"host\":\"h.test\",\"paths\":[\"/\"]}]},\"mocks\":{\"m\":\"\"}}");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_BYTES, .name = rows[i].name,
			              .to = addr_of("8.8.8.8", 443), .proto = rows[i].proto };

		if (rows[i].said)
			q.said = said_host(span_of(rows[i].said), 0);
		struct verdict v = rules_decide(&r, &q);

		printf("# row %zu\n", i);
		/* HTTP on 443 is refused only where a rule decides by name. */
		CHECK_STR(gate_reason_name(v.reason), gate_reason_name(rows[i].why));
	}
}

/* ---- addresses --------------------------------------------------------------------- */

TEST(literals)
{
	static const struct {
		const char *addr;
		uint16_t port;
		enum verdict_what what;
		enum gate_reason why;
		const char *rule;
	} rows[] = {
		{ "8.8.8.8", 53, VERDICT_ALLOW, GATE_NONE, "cidr: 8.8.8.8/32:53" },
		{ "8.8.8.8", 443, VERDICT_DENY, GATE_LITERAL, "" },
		{ "8.8.8.9", 53, VERDICT_DENY, GATE_LITERAL, "" },
		{ "10.1.2.255", 5432, VERDICT_ALLOW, GATE_NONE, "cidr: 10.0.0.0/8" },
		{ "10.2.0.1", 5432, VERDICT_DENY, GATE_SPECIAL, "cidr: 10.0.0.0/8" },
		{ "127.0.0.1", 80, VERDICT_DENY, GATE_LITERAL, "" },
		{ "169.254.169.254", 80, VERDICT_DENY, GATE_METADATA, "" },
		{ "100.100.100.200", 80, VERDICT_DENY, GATE_METADATA, "" },
		{ "168.63.129.16", 80, VERDICT_DENY, GATE_METADATA, "" },
		{ "198.18.0.77", 80, VERDICT_DENY, GATE_LITERAL, "" },
		{ "fd00:ec2::254", 80, VERDICT_DENY, GATE_METADATA, "" },
		{ "::ffff:169.254.169.254", 80, VERDICT_DENY, GATE_METADATA, "" },
		{ "::ffff:8.8.8.8", 53, VERDICT_DENY, GATE_LITERAL, "" },
		{ "fd00::1", 80, VERDICT_DENY, GATE_SPECIAL, "cidr: fd00::/8" },
		{ "2606:4700::1", 80, VERDICT_DENY, GATE_LITERAL, "" },
		{ "::1", 80, VERDICT_DENY, GATE_LITERAL, "" },
	};
	AUTO(rules_done) struct rules r;

	read_rules(&r, "{\"net\":{\"cidr\":[\"8.8.8.8/32:53\",\"10.0.0.0/8\",\"169.254.0.0/16\","
	               "\"fd00::/8\",\"168.63.129.16/32\"]},"
	               "\"grant\":[\"10.1.0.0/16\",\"0.0.0.0/1:1\",\"169.254.0.0/16\"]}");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_CONNECT, .to = addr_of(rows[i].addr, rows[i].port) };
		struct verdict v = rules_decide(&r, &q);

		printf("# %s %u\n", rows[i].addr, rows[i].port);
		check_verdict(&v, rows[i].what, rows[i].why, rows[i].rule);
	}
}

TEST(denied_ranges_hold_for_addresses_and_for_what_names_lead_to)
{
	static const struct {
		const char *addr;
		uint16_t port;
		enum verdict_what what;
		enum gate_reason why;
		const char *rule;
	} rows[] = {
		{ "8.8.8.8", 443, VERDICT_DENY, GATE_RULE, "deny_cidr: 8.8.8.0/24" },
		{ "8.8.9.8", 443, VERDICT_ALLOW, GATE_NONE, "mode: allow" },
		{ "1.1.1.1", 53, VERDICT_DENY, GATE_RULE, "deny_cidr: 1.1.1.1/32:53" },
		{ "1.1.1.1", 443, VERDICT_ALLOW, GATE_NONE, "mode: allow" },
		{ "2606:4700::1", 443, VERDICT_DENY, GATE_RULE, "deny_cidr: 2606:4700::/32" },
		{ "::ffff:8.8.8.8", 443, VERDICT_DENY, GATE_SPECIAL, "mode: allow" },
		{ "169.254.169.254", 80, VERDICT_DENY, GATE_METADATA, "" },
	};
	AUTO(rules_done) struct rules r;

	read_rules(&r, "{\"net\":{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.0/24\","
	               "\"1.1.1.1/32:53\",\"2606:4700::/32\"]}}");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rules_addr to = addr_of(rows[i].addr, rows[i].port);
		struct question q = { STAGE_CONNECT, .to = to };
		struct verdict v = rules_decide(&r, &q);
		enum gate_reason why = GATE_NONE;

		printf("# %s %u\n", rows[i].addr, rows[i].port);
		check_verdict(&v, rows[i].what, rows[i].why, rows[i].rule);
		CHECK(rules_may_dial(&r, &to, &why) == (rows[i].what == VERDICT_ALLOW));
		CHECK(rows[i].what == VERDICT_ALLOW || why == rows[i].why);
	}
}

TEST(headers_are_of_a_host_and_a_port_and_end_tls)
{
	struct question q = { STAGE_CONNECT, .name = "api.test", .to.port = 443 };
	AUTO(rules_done) struct rules r;

	read_rules(&r, "{\"net\":{\"mode\":\"allow\",\"headers\":[\"api.test:443 X-One: 1\","
	               "\"*.test X-Two: 2 3\"]}}");
	CHECK(rules_decide(&r, &q).is_terminated);
	CHECK_STR(rules_header(&r, "api.test", 443, span_of("x-one"))->value, "1");
	CHECK_STR(rules_header(&r, "api.test", 443, span_of("X-TWO"))->value, "2 3");
	CHECK(!rules_header(&r, "api.test", 80, span_of("X-One")));
	CHECK(!rules_header(&r, "api.test", 443, span_of("X-Three")));
	CHECK(!rules_has_headers(&r, "example.org", 443));
	q.name = "example.org";
	CHECK(!rules_decide(&r, &q).is_terminated);
	/* nor around them by the address */
	q = (struct question){ STAGE_BYTES, .to = addr_of("8.8.8.8", 443),
		               .proto = GATE_PROTO_TLS };
	q.said = (struct said){ .kind = SAID_NAME };
	snprintf(q.said.name, sizeof q.said.name, "api.test");
	CHECK_INT(rules_decide(&r, &q).reason, GATE_NAME_MISMATCH);
}

TEST(what_may_be_dialled)
{
	static const struct {
		const char *addr;
		uint16_t port;
		enum gate_reason why;
	} rows[] = {
		{ "8.8.8.8", 443, GATE_NONE },
		{ "2606:4700::1", 443, GATE_NONE },
		{ "10.0.0.1", 443, GATE_SPECIAL },
		{ "127.0.0.1", 5432, GATE_NONE },
		{ "127.0.0.1", 5433, GATE_SPECIAL },
		{ "192.168.1.1", 443, GATE_NONE },
		{ "192.168.2.1", 443, GATE_SPECIAL },
		{ "::1", 443, GATE_NONE },
		{ "::", 443, GATE_SPECIAL },
		{ "0.0.0.0", 443, GATE_SPECIAL },
		{ "198.18.0.2", 443, GATE_SPECIAL },
		{ "100.64.0.1", 443, GATE_SPECIAL },
		{ "fd12::1", 443, GATE_SPECIAL },
		{ "fe80::1", 443, GATE_SPECIAL },
		{ "::ffff:8.8.8.8", 443, GATE_SPECIAL },
		{ "::ffff:192.168.1.1", 443, GATE_SPECIAL },
		{ "::192.168.1.1", 443, GATE_SPECIAL },
		{ "2002:808:808::1", 443, GATE_SPECIAL },
		/* NAT64 is granted, and what is behind it must be allowed too */
		{ "64:ff9b::808:808", 443, GATE_NONE },
		{ "64:ff9b::c0a8:101", 443, GATE_NONE },
		{ "64:ff9b::a00:1", 443, GATE_SPECIAL },
		{ "64:ff9b::a9fe:a9fe", 443, GATE_METADATA },
		{ "64:ff9b:1::808:808", 443, GATE_SPECIAL },
		/* own interfaces */
		{ "93.184.216.34", 443, GATE_SPECIAL },
		{ "2606:4700::2", 443, GATE_SPECIAL },
		{ "93.184.216.35", 443, GATE_NONE },
		/* never */
		{ "169.254.169.254", 80, GATE_METADATA },
		{ "169.254.170.2", 80, GATE_METADATA },
		{ "100.100.100.200", 80, GATE_METADATA },
		{ "168.63.129.16", 80, GATE_METADATA },
		{ "fd00:ec2::254", 80, GATE_METADATA },
		{ "fe80::a9fe:a9fe", 80, GATE_METADATA },
	};
	const struct rules_addr own[] = { addr_of("93.184.216.34", 0), addr_of("2606:4700::2", 0) };
	AUTO(rules_done) struct rules r;

	read_rules(&r, "{\"net\":\"allow\",\"grant\":[\"127.0.0.1/32:5432\",\"192.168.1.0/24\","
	               "\"::1/128\",\"64:ff9b::/96\"]}");
	rules_own(&r, own, COUNT(own));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rules_addr to = addr_of(rows[i].addr, rows[i].port);
		enum gate_reason why = GATE_NONE;
		bool may = rules_may_dial(&r, &to, &why);

		printf("# %s %u\n", rows[i].addr, rows[i].port);
		CHECK_INT(may, rows[i].why == GATE_NONE);
		if (!may)
			CHECK_STR(gate_reason_name(why), gate_reason_name(rows[i].why));
	}
	rules_own(&r, NULL, 0);
	struct rules_addr free_again = addr_of("93.184.216.34", 443);
	enum gate_reason why = GATE_NONE;

	CHECK(rules_may_dial(&r, &free_again, &why));
}

/* Whatever the operator writes. */
TEST(nobody_grants_metadata)
{
	static const char *const addrs[] = {
		"169.254.169.254",
		"169.254.170.2",
		"169.254.170.23",
		"169.254.0.23",
		"169.254.42.42",
		"100.100.100.200",
		"100.96.0.96",
		"192.0.0.192",
		"168.63.129.16",
		"fd00:ec2::254",
		"fd00:ec2::23",
		"fd20:ce::254",
		"fd00:42::42",
		"fe80::a9fe:a9fe",
		"fd00:c1::a9fe:a9fe",
		"fd00:a9fe:a9fe::1",
		"::ffff:169.254.169.254",
		"64:ff9b::a9fe:a9fe",
		"2002:a9fe:a9fe::",
		"64:ff9b:1::a9fe:a9fe",
		"::169.254.169.254",
		"2001::5601:5601",
	};
	for (size_t i = 0; i < COUNT(addrs); i++) {
		AUTO(rules_done) struct rules r;
		struct question q = { STAGE_CONNECT, .to = addr_of(addrs[i], 80) };
		enum gate_reason why = GATE_NONE;
		char json[512];

		snprintf(json, sizeof json,
		         "{\"net\":{\"mode\":\"allow\",\"cidr\":[\"0.0.0.0/0\",\"::/0\"]},"
		         "\"grant\":[\"0.0.0.0/0\",\"::/0\"%s%s%s]}",
		         q.to.is_v6 ? "" : ",\"", q.to.is_v6 ? "" : addrs[i],
		         q.to.is_v6 ? "" : "/32\"");
		read_rules(&r, json);
		printf("# %s\n", addrs[i]);
		CHECK(!rules_may_dial(&r, &q.to, &why));
		CHECK_STR(gate_reason_name(why), "metadata");
		CHECK_INT(rules_decide(&r, &q).what, VERDICT_DENY);
		CHECK_INT(rules_decide(&r, &q).reason, GATE_METADATA);
	}
}

TEST(cached_hosts_are_read_and_offline_they_are_all_there_is)
{
	static const char online[] =
	    "{\"net\":{\"allow\":[\"a.test\",\"b.test\"],\"cidr\":[\"5.0.0.0/"
	    "8\"],\"deny\":[\"d.test\"],"
	    "\"cache\":[\"pip:a.test\",\"npm:c.test\",\"npm:b.test:8443\",\"pip:d.test\"]}}";
	static const char offline[] =
	    "{\"net\":{\"allow\":[\"a.test\",\"b.test\"],\"cidr\":[\"5.0.0.0/"
	    "8\"],\"deny\":[\"d.test\"],"
	    "\"cache\":[\"pip:a.test\",\"npm:c.test\",\"npm:b.test:8443\",\"pip:d.test\"],"
	    "\"offline\":true}}";
	static const struct {
		const char *json, *name;
		uint16_t port;
		enum verdict_what what;
		enum gate_reason reason;
		enum pkg_kind kind;
	} rows[] = {
		{ online, "a.test", 443, VERDICT_ALLOW, GATE_NONE, PKG_PIP },
		{ online, "b.test", 443, VERDICT_ALLOW, GATE_NONE, PKG_NONE },
		{ online, "b.test", 8443, VERDICT_ALLOW, GATE_NONE, PKG_NPM },
		{ online, "c.test", 443, VERDICT_DENY, GATE_NO_RULE, PKG_NONE },
		{ online, "d.test", 443, VERDICT_DENY, GATE_RULE, PKG_NONE },
		{ offline, "a.test", 443, VERDICT_ALLOW, GATE_NONE, PKG_PIP },
		{ offline, "b.test", 443, VERDICT_DENY, GATE_OFFLINE, PKG_NONE },
		{ offline, "b.test", 8443, VERDICT_ALLOW, GATE_NONE, PKG_NPM },
		{ offline, "c.test", 443, VERDICT_DENY, GATE_NO_RULE, PKG_NONE },
		{ offline, "d.test", 443, VERDICT_DENY, GATE_RULE, PKG_NONE },
		{ offline, NULL, 443, VERDICT_DENY, GATE_OFFLINE, PKG_NONE },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(rules_done) struct rules r;
		struct question q = { .stage = STAGE_CONNECT,
			              .name = rows[i].name,
			              .to = { .at = { 5, 6, 7, 8 }, .port = rows[i].port } };

		printf("# row %zu\n", i);
		read_rules(&r, rows[i].json);
		struct verdict v = rules_decide(&r, &q);

		CHECK_INT(v.what, rows[i].what);
		CHECK_INT(v.reason, rows[i].reason);
		CHECK_INT(v.cache, rows[i].kind);
		CHECK_INT(v.is_terminated, rows[i].kind != PKG_NONE);
	}
	AUTO(rules_done) struct rules r;

	read_rules(&r, offline);
	CHECK(rules_resolves(&r, "a.test") && rules_resolves(&r, "b.test"));
	CHECK(!rules_resolves(&r, "c.test") && !rules_resolves(&r, "d.test"));
	rules_proxy_by(&r, "http://p.test:1");
	CHECK_INT(r.proxy, PROXY_HTTP);
	rules_proxy_by(&r, NULL);
	CHECK_INT(r.proxy, PROXY_NONE);
}
