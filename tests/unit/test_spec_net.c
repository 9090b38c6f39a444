#include "unit/test_spec.h"

#include <arpa/inet.h>

struct row {
	const char *text, *want;
};

TEST(every_form_of_net)
{
	static const struct row rows[] = {
		{ "{\"net\":\"deny\"}", WITH_NET(DENY) },
		{ "{\"net\":\"allow\"}", WITH_NET("{\"mode\":\"allow\"}") },
		{ "{\"net\":\"allow:example.org,*.example.net\"}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"example.org\",\"*.example.net\"]}") },
		{ "{\"net\":[\"example.org\"]}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"example.org\"]}") },
		{ "{\"net\":[]}", WITH_NET(DENY) },
		{ "{\"net\":{}}", WITH_NET(DENY) },
		{ "{\"net\":{\"mode\":\"deny\"}}", WITH_NET(DENY) },
		{ "{\"net\":{\"mode\":\"list\"}}", WITH_NET(DENY) },
		{ "{\"net\":{\"allow\":[]}}", WITH_NET(DENY) },
		{ "{\"net\":{\"allow\":\"example.org\"}}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"example.org\"]}") },
		{ "{\"net\":{\"mode\":\"allow\",\"deny\":[\"telemetry.example.com\"]}}",
		  WITH_NET("{\"mode\":\"allow\",\"deny\":[\"telemetry.example.com\"]}") },
		{ "{\"net\":{\"ask\":[\"*\"]}}", WITH_NET("{\"mode\":\"list\",\"ask\":[\"*\"]}") },
		{ "{\"net\":{\"cidr\":[\"10.1.2.0/24:5432\"]}}",
		  WITH_NET("{\"mode\":\"list\",\"cidr\":[\"10.1.2.0/24:5432\"]}") },
		{ "{\"net\":{\"mock\":{\"API.example.com\":\"mocks//a.yaml\"}}}",
		  WITH_NET("{\"mode\":\"list\",\"mock\":{\"api.example.com\":\"mocks/a.yaml\"}}") },
		{ "{\"net\":{\"http\":[{\"host\":\"api.example.com\",\"methods\":[\"GET\"],"
		  "\"paths\":[\"/repos/acme/app/**\"]}]}}",
		  WITH_NET("{\"mode\":\"list\",\"http\":[{\"host\":\"api.example.com\","
		           "\"methods\":[\"GET\"],\"paths\":[\"/repos/acme/app/**\"]}]}") },
		{ "{\"net\":{\"http\":{\"host\":\"api.example.com\",\"methods\":\"PUT\"}}}",
		  WITH_NET("{\"mode\":\"list\",\"http\":[{\"host\":\"api.example.com\","
		           "\"methods\":[\"PUT\"]}]}") },
		{ "{\"net\":{\"allow\":[\"preset:pip\",\"set:Mirrors\"],\"ask\":[\"preset:npm\"],"
		  "\"deny\":[\"set:a-b_c.d\"]}}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"preset:pip\",\"set:Mirrors\"],"
		           "\"deny\":[\"set:a-b_c.d\"],\"ask\":[\"preset:npm\"]}") },
		{ "{\"net\":\"allow:preset:go,set:x,example.org:443\"}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"preset:go\",\"set:x\","
		           "\"example.org:443\"]}") },
		{ "{\"net\":{\"allow\":[\"example.org\"],\"tls_any\":[\"Example.org:8443\"],"
		  "\"inspect\":[\"*.example.org\"],\"offline\":true}}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"example.org\"],\"inspect\":"
		           "[\"*.example.org\"],\"tls_any\":[\"example.org:8443\"],"
		           "\"offline\":true}") },
		{ "{\"net\":{\"allow\":[\"example.org\"],\"offline\":false}}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"example.org\"]}") },
		{ "{\"net\":{\"allow\":[\"example.org\"],\"cache\":[\"pip:Example.org\","
		  "\"npm:*.example.org:8443\"]}}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"example.org\"],\"cache\":"
		           "[\"pip:example.org\",\"npm:*.example.org:8443\"]}") },
		{ "{\"net\":{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.8/32\"],"
		  "\"headers\":[\"API.example.org X-Client:  a b\",\"a.test X: ::1\"]}}",
		  WITH_NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.8/32\"],"
		           "\"headers\":[\"api.example.org X-Client: a b\",\"a.test X: ::1\"]}") },
		{ "{\"net\":{\"mode\":\"allow\",\"inspect\":[\"example.org\"]}}",
		  WITH_NET("{\"mode\":\"allow\",\"inspect\":[\"example.org\"]}") },
		{ "{\"net\":{\"http\":{\"host\":\"api.example.com\",\"paths\":"
		  "[\"/a/\",\"/\",\"/**\",\"/**/x\",\"/v*/x*y\",\"/*\"]}}}",
		  WITH_NET("{\"mode\":\"list\",\"http\":[{\"host\":\"api.example.com\",\"paths\":"
		           "[\"/a/\",\"/\",\"/**\",\"/**/x\",\"/v*/x*y\",\"/*\"]}]}") },
		{ "{\"net\":{\"allow\":[\"a.example.org\"],"
		  "\"rate\":{\"connections\":\"200/"
		  "m\",\"bytes_up\":\"1g\",\"bytes_down\":4096,\"up\":\"1m/s\",\"down\":\"500k/"
		  "s\"}}}",
		  WITH_NET("{\"mode\":\"list\",\"allow\":[\"a.example.org\"],\"rate\":"
		           "{\"connections\":\"200/"
		           "m\",\"bytes_up\":\"1g\",\"bytes_down\":\"4096\",\"up\":\"1m/"
		           "s\",\"down\":\"500k/s\"}}") },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		takes(rows[i].text, rows[i].want);
}

TEST(a_slip_in_net_never_becomes_a_rule)
{
	static const struct row rows[] = {
		{ "{\"net\":\"denny\"}", "net: \"denny\" is not valid; did you mean \"deny\"?" },
		{ "{\"net\":\"Deny\"}", "did you mean \"deny\"?" },
		{ "{\"net\":\"alow\"}", "did you mean \"allow\"?" },
		{ "{\"net\":\"alow:example.org\"}", "did you mean \"allow:example.org\"?" },
		{ "{\"net\":\"example.org\"}", "needs the prefix: \"allow:example.org\"" },
		{ "{\"net\":\"example.org:443\"}", "needs the prefix: \"allow:example.org:443\"" },
		{ "{\"net\":\"pip\"}", "valid: deny, allow, allow:HOST,HOST" },
		{ "{\"net\":\"list\"}", "valid: deny, allow, allow:HOST,HOST" },
		{ "{\"net\":\"\"}", "is not valid" },
		{ "{\"net\":\"allow:\"}", "is empty" },
		{ "{\"net\":\"allow:a.example.org,\"}", "is empty" },
		{ "{\"net\":\"allow:a.example.org, b.example.org\"}", "is not a host name" },
		{ "{\"net\":[\"deny\"]}", "net[0]: \"deny\" is not a host name" },
		{ "{\"net\":[\"allow:example.org\"]}", "is not a port" },
		{ "{\"net\":[\"ok.example.org\",[\"x\"]]}", "net[1]: wants text, not a list" },
		{ "{\"net\":null}", "not null" },
		{ "{\"net\":true}", "not true" },
		{ "{\"net\":1}", "not a number" },
		{ "{\"net\":{\"mode\":\"denny\"}}",
		  "net.mode: \"denny\" is not valid; did you mean \"deny\"?" },
		{ "{\"net\":{\"mode\":1}}", "net.mode: wants text, not a number" },
		{ "{\"net\":{\"alow\":[]}}", "net: unknown key \"alow\"; did you mean \"allow\"?" },
		{ "{\"net\":{\"mode\":\"deny\",\"allow\":[\"example.org\"]}}",
		  "did you mean \"list\"?" },
		{ "{\"net\":{\"mode\":\"deny\",\"rate\":{\"bytes_up\":1}}}",
		  "did you mean \"list\"?" },
		{ "{\"net\":{\"mode\":\"allow\",\"allow\":[\"example.org\"]}}",
		  "for allow use mode \"list\"" },
		{ "{\"net\":{\"mode\":\"allow\",\"ask\":[\"example.org\"]}}",
		  "for ask use mode \"list\"" },
		{ "{\"net\":{\"deny\":[\"example.org\"]}}", "nothing is allowed" },
		{ "{\"net\":{\"inspect\":[\"example.org\"]}}", "nothing is allowed" },
		{ "{\"net\":{\"tls_any\":[\"example.org\"]}}", "nothing is allowed" },
		{ "{\"net\":{\"offline\":true}}", "nothing is allowed" },
		{ "{\"net\":{\"mode\":\"deny\",\"offline\":true}}", "did you mean \"list\"?" },
		{ "{\"net\":[\"cargO\"]}", "net[0]: \"cargo\" would be a host of that name; did "
		                           "you mean \"preset:cargo\"?" },
		{ "{\"net\":[\"pip\"]}",
		  "net[0]: \"pip\" would be a host of that name; did you mean "
		  "\"preset:pip\"?" },
		{ "{\"net\":\"allow:npm\"}", "did you mean \"preset:npm\"?" },
		{ "{\"net\":{\"deny\":[\"preset:pipp\"]}}",
		  "net.deny[0]: \"pipp\" is not valid; did you mean \"pip\"?" },
		{ "{\"net\":{\"ask\":[\"preset:\"]}}", "is not valid" },
		{ "{\"net\":{\"ask\":[\"preset:pip:443\"]}}", "is not valid" },
		{ "{\"net\":{\"ask\":[\"Preset:pip\"]}}", "is not a port" },
		{ "{\"net\":{\"allow\":[\"set:\"]}}", "is empty" },
		{ "{\"net\":{\"allow\":[\"set:a/b\"]}}", "is not a name" },
		{ "{\"net\":{\"allow\":[\"set:.a\"]}}", "is not a name" },
		{ "{\"net\":{\"inspect\":[\"preset:pip\"]}}", "is not a port" },
		{ "{\"net\":{\"mock\":{\"set:a\":\"x\"}}}", "is not a port" },
		{ "{\"net\":{\"rate\":{\"bytes_up\":1}}}", "nothing is allowed" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		refuses(rows[i].text, rows[i].want);
}

static const struct row leaves[] = {
	{ "{\"net\":{\"allow\":{\"a\":1}}}", "net.allow: wants a list of texts" },
	{ "{\"net\":{\"cidr\":[\"10.1.2.3\"]}}", "net.cidr[0]: \"10.1.2.3\" is not a range" },
	{ "{\"net\":{\"mock\":[]}}", "net.mock: wants an object" },
	{ "{\"net\":{\"mock\":{\"10.0.0.1\":\"a\"}}}", "use cidr" },
	{ "{\"net\":{\"mock\":{\"example.org\":1.5}}}", "net.mock.example.org: wants text" },
	{ "{\"net\":{\"mock\":{\"example.org\":\"\"}}}", "is empty" },
	{ "{\"net\":{\"mock\":{\"example.org\":\"/etc/x\"}}}", "is absolute" },
	{ "{\"net\":{\"mock\":{\"example.org\":\"socket:x\"}}}",
	  "sockets of the host are not carried" },
	{ "{\"net\":{\"mock\":{\"example.org\":\"../x\"}}}", "\"..\" is not allowed" },
	{ "{\"net\":{\"mock\":{\"example.org\":\"a\",\"EXAMPLE.org\":\"b\"}}}", "given twice" },
	{ "{\"net\":{\"http\":[1]}}", "net.http[0]: wants a list of objects" },
	{ "{\"net\":{\"http\":[{\"methods\":[\"GET\"]}]}}", "needs a host" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\"}]}}", "needs methods, paths or ask" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"methods\":[\"get\"]}]}}",
	  "net.http[0].methods[0]: \"get\" is not valid; did you mean \"GET\"?" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"methods\":[\"TRACE\"]}]}}",
	  "is not valid" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"methods\":[\"CONNECT\"]}]}}",
	  "is not valid" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"paths\":[\"x\"]}]}}", "is relative" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"paths\":[\"/a/../b\"]}]}}",
	  "not allowed" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"paths\":[\"/a%2e\"]}]}}",
	  "is not a path" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"path\":[\"/a\"]}]}}",
	  "did you mean \"paths\"?" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"paths\":[\"/a//b\"]}]}}",
	  "has an empty segment" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"paths\":[\"/a/./b\"]}]}}",
	  "has an empty segment, a dot" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"paths\":[\"/a**\"]}]}}",
	  "a ** beside other text" },
	{ "{\"net\":{\"http\":[{\"host\":\"example.org\",\"paths\":[\"/***\"]}]}}",
	  "a ** beside other text" },
	{ "{\"net\":{\"allow\":[\"example.org\"],\"cache\":[\"example.org\"]}}",
	  "net.cache[0]: \"example.org\" is none of pip:HOST" },
	{ "{\"net\":{\"allow\":[\"example.org\"],\"cache\":[\"go:example.org\"]}}",
	  "is none of pip:HOST" },
	{ "{\"net\":{\"allow\":[\"example.org\"],\"cache\":[\"pip:10.0.0.1\"]}}", "is an address" },
	{ "{\"net\":{\"allow\":[\"example.org\"],\"offline\":\"on\"}}",
	  "net.offline: wants true or false, not text" },
	{ "{\"net\":{\"allow\":[\"example.org\"],\"tls_any\":[\"10.0.0.1\"]}}",
	  "net.tls_any[0]: \"10.0.0.1\" is an address; use cidr" },
	{ "{\"net\":{\"rate\":[]}}", "net.rate: wants an object" },
	{ "{\"net\":{\"rate\":{\"connection\":\"1/s\"}}}", "did you mean \"connections\"?" },
	{ "{\"net\":{\"rate\":{\"connections\":200}}}", "is not a rate" },
	{ "{\"net\":{\"rate\":{\"connections\":\"0/s\"}}}", "is not a rate" },
	{ "{\"net\":{\"rate\":{\"connections\":\"1/d\"}}}", "is not a rate" },
	{ "{\"net\":{\"rate\":{\"connections\":\"1/\"}}}", "is not a rate" },
	{ "{\"net\":{\"rate\":{\"connections\":\"1/ms\"}}}", "is not a rate" },
	{ "{\"net\":{\"rate\":{\"connections\":\"4294967296/s\"}}}", "is not a rate" },
	{ "{\"net\":{\"rate\":{\"up\":\"1m\"}}}", "not a speed" },
	{ "{\"net\":{\"rate\":{\"up\":\"1m/m\"}}}", "not a speed" },
	{ "{\"net\":{\"rate\":{\"down\":\"100/s\"}}}", "not a speed" },
	{ "{\"net\":{\"rate\":{\"down\":\"fast/s\"}}}", "not a speed" },
	{ "{\"net\":{\"rate\":{\"bytes_up\":0}}}", "too small" },
	{ "{\"net\":{\"rate\":{\"bytes_up\":\"8388608t\"}}}", "too large" },
	{ "{\"net\":{\"rate\":{\"bytes_up\":[]}}}", "net.rate.bytes_up: wants text" },
};

TEST(net_objects_are_checked_to_the_leaf)
{
	for (size_t i = 0; i < COUNT(leaves); i++)
		refuses(leaves[i].text, leaves[i].want);
}

TEST(denied_addresses_and_headers_are_checked)
{
	static const struct row rows[] = {
		{ "{\"net\":{\"deny_cidr\":[\"8.8.8.8/32\"]}}", "nothing is allowed" },
		{ "{\"net\":{\"mode\":\"allow\",\"deny_cidr\":[\"example.org\"]}}",
		  "net.deny_cidr[0]: " },
		{ "{\"net\":{\"mode\":\"allow\",\"headers\":[\"example.org X\"]}}",
		  "wants HOST NAME: TEXT" },
		{ "{\"net\":{\"mode\":\"allow\",\"headers\":[\"example.org Host: a\"]}}",
		  "no field that the gate says itself" },
		{ "{\"net\":{\"mode\":\"allow\",\"headers\":[\"example.org Proxy-X: a\"]}}",
		  "no field that the gate says itself" },
		{ "{\"net\":{\"mode\":\"allow\",\"headers\":[\"example.org X: \"]}}",
		  "the text of a header is missing" },
		{ "{\"net\":{\"mode\":\"allow\",\"headers\":[\"example.org X: a\\nY: b\"]}}",
		  "plain letters only" },
		{ "{\"net\":{\"mode\":\"allow\",\"headers\":[\"10.0.0.1 X: a\"]}}",
		  "is an address" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		refuses(rows[i].text, rows[i].want);
}

TEST(repeated_flags_add_and_a_mode_starts_anew)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	CHECK_INT(spec_flag(&s, "net", "allow:a.example.org", &e), 0);
	CHECK_INT(spec_flag(&s, "net", "allow:b.example.org,c.example.org", &e), 0);
	check_printed(&s, WITH_NET("{\"mode\":\"list\",\"allow\":"
	                           "[\"a.example.org\",\"b.example.org\",\"c.example.org\"]}"));
	CHECK_INT(spec_flag(&s, "net", "deny", &e), 0);
	check_printed(&s, WITH_NET(DENY));
	CHECK_INT(spec_flag(&s, "net", "allow:a.example.org", &e), 0);
	CHECK_INT(spec_flag(&s, "net", "allow", &e), 0);
	check_printed(&s, WITH_NET("{\"mode\":\"allow\"}"));
}

TEST(what_an_entry_stands_for)
{
	static const struct {
		const char *text;
		enum net_entry kind;
		const char *name;
	} rows[] = {
		{ "example.org:443", NET_HOST, "example.org:443" },
		{ "preset:pip", NET_PRESET, "pip" },
		{ "set:Mirrors", NET_SET, "Mirrors" },
		{ "preset", NET_HOST, "preset" },
		{ "set", NET_HOST, "set" },
	};
	const char *name = NULL;

	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_INT(net_entry_kind(rows[i].text, &name), rows[i].kind);
		CHECK_STR(name, rows[i].name);
	}
}

#define L61 "a234567890123456789012345678901234567890123456789012345678901"
static const char label_of_63[] = L61 "23.example.org";
static const char label_of_64[] = L61 "234.example.org";
static const char name_of_253[] = L61 "23." L61 "23." L61 "23." L61;
static const char name_of_254[] = L61 "23." L61 "23." L61 "23." L61 "2";

TEST(host_names)
{
	static const char *const good[] = {
		"example.org",
		"localhost",
		"pip",
		"a-b.example.org",
		"_dmarc.example.org",
		"xn--bcher-kva.example",
		"*.example.org",
		"**.example.org",
		"*",
		"**",
		"example.org:1",
		"example.org:65535",
		"*.example.org:443",
		"1.example.org",
		"123.example",
		"0x7f.example",
		"1e3",
		"0xfg",
		label_of_63,
		name_of_253,
	};
	AUTO(arena_done) struct arena a = { 0 };

	for (size_t i = 0; i < COUNT(good); i++) {
		const char *out = NULL;
		struct err e = { 0 };

		printf("# %s\n", good[i]);
		CHECK_INT(check_host(NULL, &a, good[i], &out, &e), 0);
		CHECK_STR(out, good[i]);
	}
}

TEST(host_names_refused)
{
	static const char *const bad[] = {
		"",
		".",
		"example..org",
		".example.org",
		"example.org.",
		"-a.example.org",
		"a-.example.org",
		"a b.example.org",
		"a\nb.example.org",
		"exa*mple.org",
		"a.*.example.org",
		"example.*",
		"*.*.example.org",
		"***.example.org",
		"*a.example.org",
		"b\xc3\xbc\x63her.example",
		"example.org/path",
		"https://example.org",
		"user@example.org",
		"example.org:",
		"example.org:0",
		"example.org:65536",
		"example.org:080",
		"example.org:http",
		"example.org:443:443",
		"example.org:99999999999",
		"deny",
		"Allow",
		"none",
		label_of_64,
		name_of_254,
	};
	AUTO(arena_done) struct arena a = { 0 };

	for (size_t i = 0; i < COUNT(bad); i++) {
		const char *out = NULL;
		struct err e = { 0 };

		printf("# row %zu\n", i);
		CHECK_INT(check_host(NULL, &a, bad[i], &out, &e), -1);
		CHECK(!out);
	}
}

TEST(a_refused_host_name_says_why)
{
	static const struct row rows[] = {
		{ "https://example.org", "is a URL or a range, not a host name" },
		{ "10.0.0.0/8", "is a URL or a range, not a host name" },
		{ "a.*.example.org", "has a * that is not the left-most label" },
		{ "exa mple.org", "is not a host name (letters, digits, - and _;" },
		{ "deny", "\"deny\" is not a host name" },
		{ "example.org:0", "\"0\" is not a port" },
		{ name_of_254, "at most 253 bytes" },
	};
	AUTO(arena_done) struct arena a = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *out = NULL;
		struct err e = { 0 };

		CHECK_INT(check_host(NULL, &a, rows[i].text, &out, &e), -1);
		if (!strstr(e.msg, rows[i].want))
			CHECK_STR(e.msg, rows[i].want);
	}
}

TEST(lists_of_rules_have_a_ceiling)
{
	static const struct row rows[] = {
		{ "allow", "\"example.org\"" },
		{ "http", "{\"host\":\"example.org\",\"paths\":\"/\"}" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str text = { .max = TEXT_MAX };

		str_addf(&text, "{\"net\":{\"%s\":[%s", rows[i].text, rows[i].want);
		for (int k = 0; k < SPEC_LIST_MAX; k++)
			str_addf(&text, ",%s", rows[i].want);
		str_add(&text, "]}}");
		refuses(str_text(&text), "[4096]: has more than 4096 entries");
	}
	AUTO(str_done) struct str flag = { .max = TEXT_MAX };

	str_add(&flag, "allow:example.org");
	for (int k = 0; k < SPEC_LIST_MAX; k++)
		str_add(&flag, ",example.org");
	flag_refuses("net", str_text(&flag), "has more than 4096 entries");
}

/* Whatever some C library takes for an address is sent to cidr. */
TEST(every_spelling_of_an_address_is_no_host)
{
	static const char *const rows[] = {
		"127.0.0.1",  "127.1",        "127.0.1",    "2130706433",
		"0x7f000001", "0x7f.1",       "0177.0.0.1", "0",
		"1",          "0X7F.0.0.1",   "0x7f.0x1",   "169.254.169.254",
		"0xA9FEA9FE", "017700000001", "1.2.3.4:80", "127.0.0.0x1",
		"0x",         "1.0x",
	};
	static const char *const v6[] = {
		"::1", "[::1]", "[::1]:443", "fe80::1", "::ffff:127.0.0.1", "2001:db8::1",
	};
	AUTO(arena_done) struct arena a = { 0 };
	const char *out = NULL;
	struct in_addr addr;
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *host = arena_strndup(&a, rows[i], strcspn(rows[i], ":"));

		printf("# %s, inet_aton says %d\n", rows[i], inet_aton(host, &addr));
		CHECK_INT(check_host(NULL, &a, rows[i], &out, &e), -1);
		CHECK(strstr(e.msg, "is an address; use cidr"));
	}
	for (size_t i = 0; i < COUNT(v6); i++) {
		CHECK_INT(check_host(NULL, &a, v6[i], &out, &e), -1);
		CHECK(strstr(e.msg, "is an address; use cidr"));
	}
}

/* The same as a property: what inet_aton() takes, check_host() does not. */
TEST(no_text_is_both_an_address_and_a_host)
{
	static const char alphabet[] = "0127f8xX.";
	uint32_t seed = 1;
	size_t addresses = 0;

	for (int i = 0; i < 200000; i++) {
		AUTO(arena_done) struct arena a = { 0 };
		char text[12] = "";
		const char *out = NULL;
		struct in_addr addr;
		struct err e;

		for (size_t k = 0; k < 1 + (size_t)i % (sizeof text - 1); k++) {
			seed = seed * 1664525 + 1013904223;
			text[k] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
		}
		if (inet_aton(text, &addr) == 0)
			continue;
		addresses++;
		if (check_host(NULL, &a, text, &out, &e) == 0)
			CHECK_STR(text, "no host");
	}
	printf("# %zu addresses\n", addresses);
	CHECK(addresses > 1000);
}

TEST(ranges)
{
	static const struct row good[] = {
		{ "10.1.2.0/24", "10.1.2.0/24" },        { "10.1.2.0/24:5432", "10.1.2.0/24:5432" },
		{ "10.1.2.3/32", "10.1.2.3/32" },        { "0.0.0.0/0", "0.0.0.0/0" },
		{ "10.128.0.0/9", "10.128.0.0/9" },      { "fd00::/8", "fd00::/8" },
		{ "FD00:0:0::0/8:443", "fd00::/8:443" }, { "2001:db8::1/128", "2001:db8::1/128" },
	};
	static const char *const bad[] = {
		"",
		"10.1.2.3",
		"10.1.2.0/",
		"10.1.2.0/33",
		"10.1.2.0/-1",
		"10.1.2.0/024",
		"10.1.2.0/24x",
		"10.1.2.1/24",
		"10.1.2.0/23:0",
		"10.1.0.0/16:",
		"10.1.0.0/16:70000",
		"10.1/16",
		"010.0.0.0/8",
		"0x0a.0.0.0/8",
		"10.0.0.0/8/8",
		"fd00::/129",
		"fd00::1/8",
		"::ffff:10.0.0.0/104",
		"[fd00::]/8",
		"fe80::%eth0/64",
		"example.org/24",
		"/24",
		"10.1.2.0 /24",
		"10.64.0.0/9",
		"10.1.2.0/9999",
	};
	AUTO(arena_done) struct arena a = { 0 };
	const char *out = NULL;
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(good); i++) {
		printf("# %s\n", good[i].text);
		CHECK_INT(check_cidr(NULL, &a, good[i].text, &out, &e), 0);
		CHECK_STR(out, good[i].want);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		printf("# %s\n", bad[i]);
		CHECK_INT(check_cidr(NULL, &a, bad[i], &out, &e), -1);
	}
}
