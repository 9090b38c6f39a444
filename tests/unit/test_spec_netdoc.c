#include "spec/netdoc.h"

#include "spec/rules.h"
#include "test.h"

static void load(struct config *c, struct spec *s, const char *config, const char *spec)
{
	struct err e = { 0 };

	config_init(c);
	spec_init(s);
	if (config_yaml(c, config, strlen(config), &e) < 0)
		CHECK_STR(e.msg, "");
	if (spec_yaml(s, spec, strlen(spec), &e) < 0)
		CHECK_STR(e.msg, "");
}

TEST(names_that_stand_for_hosts_are_expanded)
{
	static const char config[] = "net: {presets: {pip: [a.test, b.test:8443], go: [d.test]}, "
				     "sets: {docs: [c.test, a.test]}}";
	static const struct {
		const char *spec, *net, *message;
	} rows[] = {
		{ "net: allow", "{\"mode\":\"allow\"}", NULL },
		{ "net: preset:pip",
		  "{\"mode\":\"list\",\"allow\":[\"a.test\",\"b.test:8443\"],"
		  "\"cache\":[\"pip:a.test\",\"pip:b.test:8443\"]}",
		  NULL },
		{ "net: {allow: ['preset:pip'], cache: ['pip:a.test']}",
		  "\"cache\":[\"pip:a.test\",\"pip:b.test:8443\"]}", NULL },
		{ "net: preset:go", "{\"mode\":\"list\",\"allow\":[\"d.test\"]}", NULL },
		{ "net: 'allow:x.test,preset:pip,set:docs,a.test'",
		  "{\"mode\":\"list\",\"allow\":[\"x.test\",\"a.test\",\"b.test:8443\",\"c.test\"],"
		  "\"cache\":[\"pip:a.test\",\"pip:b.test:8443\"]}",
		  NULL },
		{ "net: {ask: ['set:docs'], deny: ['preset:pip'], allow: [x.test]}",
		  "{\"mode\":\"list\",\"allow\":[\"x.test\"],\"deny\":[\"a.test\",\"b.test:8443\"],"
		  "\"ask\":[\"c.test\",\"a.test\"]}",
		  NULL },
		{ "net: {publish: ['preset:pip']}",
		  "\"http\":[{\"host\":\"a.test\",\"methods\":[\"POST\",\"PUT\",\"PATCH\","
		  "\"DELETE\"],\"ask\":true},{\"host\":\"a.test\",\"methods\":[\"GET\",\"HEAD\","
		  "\"OPTIONS\"]},{\"host\":\"b.test:8443\"",
		  NULL },
		{ "net: {publish: ['npm:x.test']}",
		  "{\"mode\":\"list\",\"http\":[{\"host\":\"x.test\",\"methods\":[\"PUT\","
		  "\"DELETE\"],\"ask\":true},{\"host\":\"x.test\",\"methods\":[\"GET\",\"HEAD\","
		  "\"POST\",\"PATCH\",\"OPTIONS\"]}]}",
		  NULL },
		{ "net: {publish: ['preset:npm']}", NULL, "preset:npm: the config of this daemon" },
		{ "net: preset:npm", NULL, "preset:npm: the config of this daemon names no hosts" },
		{ "net: set:other", NULL, "set:other: the config of this daemon has no such set" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct config c;
		struct spec s;
		struct err e = { 0 };
		AUTO(str_done) struct str text = { .max = 65536 };

		load(&c, &s, config, rows[i].spec);
		int r = net_expand_config(&s, &c.net, &e);

		CHECK_INT(r, rows[i].message ? -1 : 0);
		if (r < 0) {
			if (!strstr(e.msg, rows[i].message))
				CHECK_STR(e.msg, rows[i].message);
		} else {
			CHECK_INT(spec_print(&s, &text, &e), 0);
			if (!strstr(str_text(&text), rows[i].net))
				CHECK_STR(str_text(&text), rows[i].net);
		}
		spec_done(&s);
		config_done(&c);
	}
}

TEST(special_ranges_are_the_operators)
{
	static const struct {
		const char *cidr, *grant;
		bool is_operator;
		const char *message; /* NULL: admitted */
	} rows[] = {
		{ "8.8.8.0/24", "[]", false, NULL },
		{ "0.0.0.0/0", "[]", false, NULL }, /* what is special in it is not dialled */
		{ "10.1.2.0/24:5432", "[]", false,
		  "is special-purpose (private): only the operator" },
		{ "10.1.2.0/24:5432", "[]", true, NULL },
		{ "10.1.2.0/24:5432", "[10.0.0.0/8]", false, NULL },
		{ "10.1.2.0/24", "[\"10.0.0.0/8:80\"]", false, "is special-purpose" },
		{ "10.1.2.0/24:80", "[\"10.0.0.0/8:80\"]", false, NULL },
		{ "10.0.0.0/8", "[10.1.0.0/16]", false, "is special-purpose" },
		{ "127.0.0.1/32", "[]", false, "(loopback)" },
		{ "169.254.0.0/16", "[]", false, "is special-purpose" },
		{ "169.254.169.254/32", "[]", true, "is a metadata service: nobody" },
		{ "169.254.169.254/32:80", "[169.254.0.0/16]", false, "is a metadata service" },
		{ "fd00:1::/32", "[]", false, "is special-purpose" },
		{ "fd00:ec2::254/128", "[\"fd00::/8\"]", true, "is a metadata service" },
		{ "::1/128", "[]", false, "(loopback)" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str config = { .max = 4096 };
		AUTO(str_done) struct str spec = { .max = 4096 };
		struct config c;
		struct spec s;
		struct err e = { 0 };

		str_addf(&config, "net: {grant: %s}", rows[i].grant);
		str_addf(&spec, "net: {cidr: [\"%s\"]}", rows[i].cidr);
		load(&c, &s, str_text(&config), str_text(&spec));
		int r = net_admit(&s.net, &c.net, rows[i].is_operator, &e);

		if ((r < 0) != (rows[i].message != NULL))
			printf("# %s, grant %s: %s\n", rows[i].cidr, rows[i].grant, e.msg);
		CHECK_INT(r, rows[i].message ? -1 : 0);
		if (r < 0 && !strstr(e.msg, rows[i].message))
			CHECK_STR(e.msg, rows[i].message);
		spec_done(&s);
		config_done(&c);
	}
}

TEST(mocks_are_there_and_are_some)
{
	static const struct {
		const char *spec, *message; /* NULL: admitted */
	} rows[] = {
		{ "net: {mock: {a.test: m.yaml}, mocks: {m.yaml: 'answers: [{body: x}]'}}", NULL },
		{ "net: {mock: {a.test: m.yaml}}", "net.mocks: the text of \"m.yaml\" is missing" },
		{ "net: {mock: {a.test: m.yaml}, mocks: {m.yaml: 'answer: []'}}",
		  "net.mocks: m.yaml: line 1: unknown key \"answer\"" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct config c;
		struct spec s;
		struct err e = { 0 };

		load(&c, &s, "", rows[i].spec);
		CHECK_INT(net_admit(&s.net, &c.net, true, &e), rows[i].message ? -1 : 0);
		if (rows[i].message && !strstr(e.msg, rows[i].message))
			CHECK_STR(e.msg, rows[i].message);
		spec_done(&s);
		config_done(&c);
	}
}

TEST(the_document_is_what_the_gate_reads)
{
	static const struct {
		const char *config, *spec, *want;
	} rows[] = {
		{ "", "net: allow:a.test",
		  "{\"net\":{\"mode\":\"list\",\"allow\":[\"a.test\"]},\"grant\":[]}" },
		{ "net: {grant: [10.0.0.0/8], proxy: \"http://p.test:1\", ask: 2m}",
		  "net: {cidr: [\"127.0.0.1/32:80\", \"8.8.8.8/32\"], ask: [a.test]}",
		  "{\"net\":{\"mode\":\"list\",\"ask\":[\"a.test\"],\"cidr\":[\"127.0.0.1/32:80\","
		  "\"8.8.8.8/32\"]},\"grant\":[\"10.0.0.0/8\",\"127.0.0.1/32:80\"],"
		  "\"proxy\":\"http://p.test:1\",\"ask_ms\":120000}" },
		{ "", "net: {mock: {a.test: m/a.yaml}, mocks: {m/a.yaml: \"status: 200\\n\"}}",
		  "{\"net\":{\"mode\":\"list\",\"mock\":{\"a.test\":\"m/a.yaml\"}},\"grant\":[],"
		  "\"mocks\":{\"m/a.yaml\":\"status: 200\\n\"}}" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str doc = { .max = GATE_RULES_MAX };
		AUTO(rules_done) struct rules rules = { 0 };
		struct config c;
		struct spec s;
		struct err e = { 0 };

		load(&c, &s, rows[i].config, rows[i].spec);
		CHECK_INT(net_document(&s.net, &c.net, NULL, &doc, &e), 0);
		CHECK_STR(str_text(&doc), rows[i].want);
		if (rules_read(&rules, str_text(&doc), doc.len, &e) < 0)
			CHECK_STR(e.msg, "");
		spec_done(&s);
		config_done(&c);
	}
}

TEST(without_a_cache_nothing_is_cached_and_nobody_is_offline)
{
	static const struct {
		const char *config, *spec, *message;
		bool is_cached;
	} rows[] = {
		{ "{}", "net: {allow: [a.test], cache: ['pip:a.test']}", NULL, true },
		{ "net: {cache: 1g}",
		  "net: {allow: [a.test], cache: ['pip:a.test'], offline: true}", NULL, true },
		{ "net: {cache: off}", "net: {allow: [a.test], cache: ['pip:a.test']}", NULL,
		  false },
		{ "net: {cache: off}",
		  "net: {allow: [a.test], cache: ['pip:a.test'], offline: true}",
		  "net.offline: this daemon has no package cache", false },
		{ "{}", "net: {allow: [a.test], offline: true}",
		  "net.offline: no host of net is cached", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(rules_done) struct rules r = { 0 };
		AUTO(str_done) struct str doc = { .max = 65536 };
		struct config c;
		struct spec s;
		struct err e = { 0 };

		load(&c, &s, rows[i].config, rows[i].spec);
		CHECK_INT(net_expand_config(&s, &c.net, &e), 0);
		CHECK_INT(net_admit(&s.net, &c.net, true, &e), rows[i].message ? -1 : 0);
		if (rows[i].message && !strstr(e.msg, rows[i].message))
			CHECK_STR(e.msg, rows[i].message);
		CHECK_INT(net_document(&s.net, &c.net, NULL, &doc, &e), 0);
		CHECK_INT(rules_read(&r, doc.data, doc.len, &e), 0);
		CHECK_INT(rules_cached(&r, "a.test", 443), rows[i].is_cached ? PKG_PIP : PKG_NONE);
		spec_done(&s);
		config_done(&c);
	}
}
