#include "spec/rules.h"

#include "test.h"

static void read_rules(struct rules *r, const char *json)
{
	struct err e = { 0 };

	*r = (struct rules){ 0 };
	if (rules_read(r, json, strlen(json), &e) < 0)
		CHECK_STR(e.msg, json);
}

static bool tightens(const char *now, const char *next)
{
	AUTO(rules_done) struct rules a, b;

	read_rules(&a, now);
	read_rules(&b, next);
	return rules_tightens(&a, &b);
}

#define NET(text) "{\"net\":" text "}"
#define HTTP(host, rest) "{\"http\":[{\"host\":\"" host "\"," rest "}]}"

/* All is allowed there, and the second rule says something about some of it. */
#define TWO(rest)                                                                                  \
	"{\"http\":[{\"host\":\"a.test\",\"paths\":[\"/**\"]},{\"host\":\"a.test\"," rest "}]}"

static const struct row {
	const char *now, *next;
	bool is_tighter;
} rows[] = {
	{ NET("\"allow\""), NET("\"deny\""), true },
	{ NET("\"allow\""), NET("[\"a.test\"]"), true },
	{ NET("\"deny\""), NET("\"allow\""), false },
	{ NET("\"deny\""), NET("[\"a.test\"]"), false },
	{ NET("[\"a.test\"]"), NET("\"allow\""), false },
	{ NET("[\"*\"]"), NET("\"allow\""), false },
	/* patterns */
	{ NET("[\"a.test\",\"b.test\"]"), NET("[\"b.test\"]"), true },
	{ NET("[\"b.test\"]"), NET("[\"a.test\",\"b.test\"]"), false },
	{ NET("[\"*\"]"), NET("[\"**.a.test\",\"*.b.test\",\"c.test\"]"), true },
	{ NET("[\"**.a.test\"]"), NET("[\"*\"]"), false },
	{ NET("[\"**.a.test\"]"), NET("[\"*.a.test\"]"), true },
	{ NET("[\"**.a.test\"]"), NET("[\"*.b.a.test\",\"**.b.a.test\",\"x.y.a.test\"]"), true },
	{ NET("[\"**.a.test\"]"), NET("[\"a.test\"]"), false },
	{ NET("[\"**.a.test\"]"), NET("[\"*.ba.test\"]"), false },
	{ NET("[\"*.a.test\"]"), NET("[\"x.a.test\"]"), true },
	{ NET("[\"*.a.test\"]"), NET("[\"y.x.a.test\"]"), false },
	{ NET("[\"*.a.test\"]"), NET("[\"**.a.test\"]"), false },
	{ NET("[\"*.a.test\"]"), NET("[\"*.b.a.test\"]"), false },
	/* ports */
	{ NET("[\"a.test\"]"), NET("[\"a.test:80\"]"), true },
	{ NET("[\"a.test:80\"]"), NET("[\"a.test\"]"), false },
	{ NET("[\"a.test:80\"]"), NET("[\"a.test:81\"]"), false },
	{ NET("[\"a.test\"]"), NET("[\"a.test:443\"]"), false }, /* not only TLS any more */
	{ NET("[\"a.test:443\"]"), NET("[\"a.test:443\"]"), true },
	{ NET("\"allow\""), NET("[\"a.test:443\"]"), true },
	/* ask */
	{ NET("[\"a.test\"]"), NET("{\"ask\":[\"a.test\"]}"), true },
	{ NET("{\"ask\":[\"*\"]}"), NET("{\"ask\":[\"a.test\"]}"), true },
	{ NET("{\"ask\":[\"a.test\"]}"), NET("[\"a.test\"]"), false },
	{ NET("{\"ask\":[\"a.test\"]}"), NET("{\"ask\":[\"b.test\"]}"), false },
	/* deny */
	{ NET("[\"*\"]"), NET("{\"allow\":[\"*\"],\"deny\":[\"a.test\"]}"), true },
	{ NET("{\"allow\":[\"*\"],\"deny\":[\"a.test\"]}"), NET("[\"*\"]"), false },
	{ NET("{\"allow\":[\"*\"],\"deny\":[\"a.test\"]}"), NET("[\"b.test\"]"), true },
	{ NET("{\"allow\":[\"*\"],\"deny\":[\"**.a.test\"]}"), NET("[\"x.a.test\"]"), false },
	{ NET("{\"allow\":[\"*\"],\"deny\":[\"*.a.test\"]}"),
	  NET("{\"allow\":[\"*\"],\"deny\":[\"**.a.test\"]}"), true },
	{ NET("{\"allow\":[\"*\"],\"deny\":[\"a.test\"]}"),
	  NET("{\"allow\":[\"*\"],\"deny\":[\"a.test:443\"]}"), false },
	{ NET("{\"allow\":[\"*\"],\"cidr\":[\"8.8.8.8/32\"],\"deny\":[\"a.test\"]}"),
	  NET("{\"cidr\":[\"8.8.8.8/32\"]}"), false },
	/* cidr and grants */
	{ NET("{\"cidr\":[\"10.0.0.0/8\"]}"), NET("{\"cidr\":[\"10.1.0.0/16:5432\"]}"), true },
	{ NET("{\"cidr\":[\"10.1.0.0/16\"]}"), NET("{\"cidr\":[\"10.0.0.0/8\"]}"), false },
	{ NET("{\"cidr\":[\"10.1.0.0/16:1\"]}"), NET("{\"cidr\":[\"10.1.0.0/16\"]}"), false },
	{ NET("{\"cidr\":[\"10.1.0.0/16\"]}"), NET("{\"cidr\":[\"fd00::/8\"]}"), false },
	{ NET("\"allow\""), NET("{\"cidr\":[\"8.8.8.8/32\"]}"), true },
	{ "{\"net\":\"allow\",\"grant\":[\"10.0.0.0/8\"]}",
	  "{\"net\":\"allow\",\"grant\":[\"10.1.0.0/16\"]}", true },
	{ "{\"net\":\"allow\",\"grant\":[\"10.1.0.0/16\"]}",
	  "{\"net\":\"allow\",\"grant\":[\"10.0.0.0/8\"]}", false },
	{ NET("\"allow\""), "{\"net\":\"allow\",\"grant\":[\"127.0.0.1/32\"]}", false },
	{ NET("\"allow\""), NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.8/32\"]}"), true },
	{ NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.8/32\"]}"), NET("\"allow\""), false },
	{ NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.8/32\"]}"),
	  NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.0/24\"]}"), true },
	{ NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.0/24\"]}"),
	  NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.8/32\"]}"), false },
	{ NET("{\"mode\":\"allow\",\"deny_cidr\":[\"8.8.8.0/24\"]}"), NET("\"deny\""), true },
	/* headers: neither more nor fewer, and the first is the first */
	{ NET("\"allow\""), NET("{\"mode\":\"allow\",\"headers\":[\"a.test X: y\"]}"), false },
	{ NET("{\"mode\":\"allow\",\"headers\":[\"a.test X: y\"]}"), NET("\"allow\""), false },
	{ NET("{\"mode\":\"allow\",\"headers\":[\"a.test X: y\",\"*.test X: z\"]}"),
	  NET("{\"mode\":\"allow\",\"headers\":[\"*.test X: z\",\"a.test X: y\"]}"), false },
	{ NET("{\"mode\":\"allow\",\"headers\":[\"a.test X: y\"]}"),
	  NET("{\"mode\":\"allow\",\"deny\":[\"b.test\"],\"headers\":[\"a.test X: y\"]}"), true },
	/* http */
	{ NET("[\"a.test\"]"), NET(HTTP("a.test", "\"methods\":[\"GET\"]")), true },
	{ NET(HTTP("a.test", "\"methods\":[\"GET\"]")), NET("[\"a.test\"]"), false },
	{ NET(HTTP("a.test", "\"methods\":[\"GET\",\"PUT\"]")),
	  NET(HTTP("a.test", "\"methods\":[\"GET\"]")), true },
	/* asked for by request */
	{ NET("[\"a.test\"]"), NET(HTTP("a.test", "\"ask\":true")), true },
	{ NET(HTTP("a.test", "\"ask\":true")), NET("[\"a.test\"]"), false },
	{ NET(HTTP("a.test", "\"methods\":[\"PUT\"]")),
	  NET(HTTP("a.test", "\"methods\":[\"PUT\"],\"ask\":true")), true },
	{ NET(HTTP("a.test", "\"methods\":[\"PUT\"],\"ask\":true")),
	  NET(HTTP("a.test", "\"methods\":[\"PUT\"]")), false },
	{ NET(TWO("\"methods\":[\"PUT\"],\"ask\":true")), NET(TWO("\"methods\":[\"GET\"]")),
	  false },
	{ NET(TWO("\"methods\":[\"PUT\"],\"ask\":true")),
	  NET(TWO("\"methods\":[\"PUT\",\"POST\"],\"ask\":true,\"paths\":[\"/**\"]")), false },
	{ NET(TWO("\"ask\":true")), NET(TWO("\"methods\":[\"PUT\"],\"ask\":true")), false },
	{ NET(TWO("\"methods\":[\"PUT\"],\"ask\":true")),
	  NET(TWO("\"methods\":[\"PUT\"],\"ask\":true")), true },
	{ NET(TWO("\"ask\":true")), NET("[\"b.test\"]"), false },
	{ NET(HTTP("a.test", "\"methods\":[\"GET\"]")),
	  NET(HTTP("a.test", "\"methods\":[\"GET\",\"PUT\"]")), false },
	{ NET(HTTP("a.test", "\"paths\":[\"/a\",\"/b\"]")),
	  NET(HTTP("a.test", "\"methods\":[\"GET\"],\"paths\":[\"/b\"]")), true },
	{ NET(HTTP("a.test", "\"paths\":[\"/a\"]")), NET(HTTP("a.test", "\"paths\":[\"/b\"]")),
	  false },
	{ NET(HTTP("a.test", "\"paths\":[\"/a\"]")), NET(HTTP("a.test", "\"methods\":[\"GET\"]")),
	  false },
	{ NET(HTTP("a.test", "\"paths\":[\"/a\"]")), NET(HTTP("b.test", "\"paths\":[\"/a\"]")),
	  false },
	{ NET("{\"allow\":[\"*\"],\"http\":[{\"host\":\"a.test\",\"paths\":[\"/a\"]}]}"),
	  NET("[\"b.test\"]"), true },
	{ NET("{\"allow\":[\"*\"],\"http\":[{\"host\":\"a.test\",\"paths\":[\"/a\"]}]}"),
	  NET("[\"*\"]"), false },
	{ NET("{\"allow\":[\"*\"],\"http\":[{\"host\":\"a.test\",\"paths\":[\"/a\"]}]}"),
	  NET(HTTP("a.test", "\"paths\":[\"/b\"]")), false },
	/* inspect, tls_any, offline */
	{ NET("[\"a.test\"]"), NET("{\"allow\":[\"a.test\"],\"inspect\":[\"a.test\"]}"), true },
	{ NET("{\"allow\":[\"a.test\"],\"inspect\":[\"a.test\"]}"), NET("[\"a.test\"]"), false },
	{ NET("{\"allow\":[\"*\"],\"inspect\":[\"a.test\"]}"), NET("[\"b.test\"]"), true },
	{ NET("[\"a.test\"]"), NET("{\"allow\":[\"a.test\"],\"tls_any\":[\"a.test\"]}"), false },
	{ NET("{\"allow\":[\"a.test\"],\"tls_any\":[\"*\"]}"),
	  NET("{\"allow\":[\"a.test\"],\"tls_any\":[\"a.test\"]}"), true },
	{ NET("[\"a.test\"]"), NET("{\"allow\":[\"a.test\"],\"offline\":true}"), true },
	{ NET("{\"allow\":[\"a.test\"],\"offline\":true}"), NET("[\"a.test\"]"), false },
	{ NET("{\"allow\":[\"a.test\"],\"cache\":[\"pip:a.test\"]}"), NET("[\"a.test\"]"), false },
	{ NET("{\"allow\":[\"a.test\"],\"cache\":[\"pip:a.test\"]}"),
	  NET("{\"allow\":[\"a.test\"],\"inspect\":[\"a.test\"]}"), true },
	{ NET("{\"allow\":[\"a.test\",\"b.test\"],\"cache\":[\"pip:a.test\"]}"),
	  NET("[\"b.test\"]"), true },
	{ NET("[\"a.test\"]"), NET("{\"allow\":[\"a.test\"],\"cache\":[\"pip:a.test\"]}"), true },
	{ NET("{\"allow\":[\"*\"],\"cache\":[\"pip:a.test\",\"pip:b.test\"],\"offline\":true}"),
	  NET("{\"allow\":[\"a.test\"],\"cache\":[\"pip:a.test\"],\"offline\":true}"), true },
	{ NET("{\"allow\":[\"*\"],\"cache\":[\"pip:a.test\"],\"offline\":true}"),
	  NET("{\"allow\":[\"*\"],\"cache\":[\"pip:b.test\"],\"offline\":true}"), false },
	/* mock */
	{ "{\"net\":{\"mock\":{\"a.test\":\"m\"}},\"mocks\":{\"m\":\"1\"}}",
	  "{\"net\":{\"mock\":{\"a.test\":\"n\"}},\"mocks\":{\"n\":\"1\"}}", true },
	{ "{\"net\":{\"mock\":{\"a.test\":\"m\"}},\"mocks\":{\"m\":\"1\"}}",
	  "{\"net\":{\"mock\":{\"a.test\":\"m\"}},\"mocks\":{\"m\":\"2\"}}", false },
	{ NET("[\"a.test\"]"), "{\"net\":{\"mock\":{\"a.test\":\"m\"}},\"mocks\":{\"m\":\"1\"}}",
	  false },
	{ "{\"net\":{\"allow\":[\"a.test\"],\"mock\":{\"a.test\":\"m\"}},\"mocks\":{\"m\":\"1\"}}",
	  NET("[\"a.test\"]"), false },
	/* rates */
	{ NET("[\"a.test\"]"), NET("{\"allow\":[\"a.test\"],\"rate\":{\"bytes_up\":1}}"), true },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"bytes_up\":1}}"), NET("[\"a.test\"]"), false },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"bytes_down\":2}}"),
	  NET("{\"allow\":[\"a.test\"],\"rate\":{\"bytes_down\":1}}"), true },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"bytes_down\":1}}"),
	  NET("{\"allow\":[\"a.test\"],\"rate\":{\"bytes_down\":2}}"), false },
	{ NET("[\"a.test\"]"), NET("{\"allow\":[\"a.test\"],\"rate\":{\"up\":\"1m/s\"}}"), true },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"up\":\"1m/s\"}}"), NET("[\"a.test\"]"), false },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"down\":\"2m/s\"}}"),
	  NET("{\"allow\":[\"a.test\"],\"rate\":{\"down\":\"1m/s\"}}"), true },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"down\":\"1m/s\"}}"),
	  NET("{\"allow\":[\"a.test\"],\"rate\":{\"down\":\"1025k/s\"}}"), false },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"connections\":\"60/m\"}}"),
	  NET("{\"allow\":[\"a.test\"],\"rate\":{\"connections\":\"60/h\"}}"), true },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"connections\":\"60/m\"}}"),
	  NET("{\"allow\":[\"a.test\"],\"rate\":{\"connections\":\"61/h\"}}"), false },
	{ NET("{\"allow\":[\"a.test\"],\"rate\":{\"connections\":\"60/m\"}}"),
	  NET("{\"allow\":[\"a.test\"],\"rate\":{\"connections\":\"2/s\"}}"), false },
	/* the way out */
	{ "{\"net\":\"allow\",\"proxy\":\"http://p.test:1\"}", NET("\"allow\""), false },
	{ NET("\"allow\""), "{\"net\":\"allow\",\"proxy\":\"http://p.test:1\"}", false },
	{ "{\"net\":\"allow\",\"proxy\":\"http://p.test:1\"}",
	  "{\"net\":\"allow\",\"proxy\":\"socks5://p.test:1\"}", false },
	{ "{\"net\":\"allow\",\"proxy\":\"http://p.test:1\"}",
	  "{\"net\":[\"a.test\"],\"proxy\":\"http://p.test:1\",\"ask_ms\":5}", true },
};

TEST(is_it_tighter)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %s -> %s\n", rows[i].now, rows[i].next);
		CHECK_INT(tightens(rows[i].now, rows[i].next), rows[i].is_tighter);
	}
}

TEST(every_document_is_as_tight_as_itself)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %s\n", rows[i].now);
		CHECK(tightens(rows[i].now, rows[i].now));
		CHECK(tightens(rows[i].next, rows[i].next));
	}
}

/* ---- the meaning of it: no question gets more from tighter rules --------------------- */

static const char *const names[] = { "a.test",     "b.test",   "c.test",     "x.a.test",
	                             "y.x.a.test", "x.b.test", "x.b.a.test", "x.ba.test" };
static const uint16_t ports[] = { 22, 80, 81, 443, 8443 };

/* How much: nothing, ask, and with more freedom the more. */
static int freedom(const struct rules *r, const char *name, uint16_t port, enum gate_proto proto)
{
	struct question q = { STAGE_BYTES, .name = name, .to.port = port, .proto = proto };

	if (proto == GATE_PROTO_TLS || proto == GATE_PROTO_HTTP)
		q.said = said_host(span_of(name), 0);
	struct verdict v = rules_decide(r, &q);

	if (v.what == VERDICT_ALLOW)
		return 2 + !v.mock + !v.has_http + !v.is_terminated;
	return v.what == VERDICT_ASK;
}

static void check_pair(const struct rules *now, const struct rules *next)
{
	for (size_t n = 0; n < COUNT(names); n++)
		for (size_t p = 0; p < COUNT(ports); p++)
			for (enum gate_proto proto = GATE_PROTO_TLS; proto <= GATE_PROTO_TCP;
			     proto++)
				if (freedom(next, names[n], ports[p], proto) >
				    freedom(now, names[n], ports[p], proto)) {
					printf("# %s %u %d\n", names[n], ports[p], (int)proto);
					CHECK(!rules_tightens(now, next));
					return;
				}
}

/* Every document of the table against every other. */
TEST(what_is_called_tighter_allows_nothing_more)
{
	static struct rules all[2 * COUNT(rows)];
	size_t n_tighter = 0;

	for (size_t i = 0; i < COUNT(rows); i++) {
		read_rules(&all[2 * i], rows[i].now);
		read_rules(&all[2 * i + 1], rows[i].next);
	}
	for (size_t i = 0; i < COUNT(all); i++)
		for (size_t k = 0; k < COUNT(all); k++) {
			check_pair(&all[i], &all[k]);
			n_tighter += rules_tightens(&all[i], &all[k]);
		}
	printf("# %zu of %zu pairs are tighter\n", n_tighter, COUNT(all) * COUNT(all));
	for (size_t i = 0; i < COUNT(all); i++)
		rules_done(&all[i]);
}
