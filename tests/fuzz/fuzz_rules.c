#include "spec/rules.h"

#include <arpa/inet.h>

#include "spec/special.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES_ASKED = 64 };

static const uint16_t ports[] = { 22, 80, 443, 8443 };
static const char *const addresses[] = {
	"8.8.8.8",       "10.1.2.3",      "127.0.0.1",          "198.18.0.9", "169.254.169.254",
	"168.63.129.16", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "::1",        "2606:4700::1",
};

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static struct rules_addr addr_of(const char *text, uint16_t port)
{
	struct rules_addr a = { .is_v6 = strchr(text, ':'), .port = port };

	expect(inet_pton(a.is_v6 ? AF_INET6 : AF_INET, text, a.at) == 1);
	return a;
}

/* A name that the pattern covers, by a way of our own. */
static bool covers(const struct host_rule *h, const char *name, uint16_t port)
{
	char pattern[GATE_NAME_SIZE + 8];
	size_t n = strcspn(h->text, ":");
	const char *colon = strchr(h->text, ':');

	if (colon && (uint16_t)strtoul(colon + 1, NULL, 10) != port)
		return false;
	snprintf(pattern, sizeof pattern, "%.*s", (int)n, h->text);
	if (strcmp(pattern, "*") == 0 || strcmp(pattern, "**") == 0)
		return true;
	if (pattern[0] != '*')
		return strcmp(pattern, name) == 0;
	const char *rest = strchr(pattern, '.');
	size_t k = strlen(name), m = strlen(rest);

	if (k <= m || strcmp(name + k - m, rest) != 0)
		return false;
	return pattern[1] == '*' || (size_t)(strchr(name, '.') - name) == k - m;
}

static void expect_name(const struct rules *r, const char *name, uint16_t port)
{
	struct question q = { STAGE_CONNECT, .name = name, .to.port = port };
	struct verdict v = rules_decide(r, &q);
	bool is_denied = false;

	for (size_t i = 0; i < r->deny.len; i++)
		is_denied |= covers(&r->deny.at[i], name, port);
	expect(!is_denied || v.what == VERDICT_DENY);
	expect(r->mode != NET_DENY || v.what == VERDICT_DENY);
	expect((v.what == VERDICT_DENY) == (v.reason != GATE_NONE));
	expect(v.what == VERDICT_DENY || rules_resolves(r, name));
	expect(memchr(v.rule, '\0', sizeof v.rule));
	if (v.what == VERDICT_DENY)
		return;
	/* What the connection may be, its bytes are not more. */
	q.stage = STAGE_BYTES;
	q.proto = GATE_PROTO_TLS;
	q.said = said_sni("another.name.invalid", 20);
	expect(strcmp(name, "another.name.invalid") == 0 ||
	       rules_decide(r, &q).what == VERDICT_DENY);
}

static void expect_address(const struct rules *r, const char *text, uint16_t port)
{
	struct rules_addr to = addr_of(text, port);
	struct question q = { STAGE_CONNECT, .to = to };
	struct verdict v = rules_decide(r, &q);
	enum gate_reason why = GATE_NONE;

	if (special_never(to.at, to.is_v6))
		expect(v.what == VERDICT_DENY && !rules_may_dial(r, &to, &why));
	expect(v.what != VERDICT_ASK);
	expect(v.what == VERDICT_DENY || rules_may_dial(r, &to, &why));
	expect(v.what == VERDICT_DENY || r->mode == NET_ALLOW || r->cidr.len > 0);
}

/* The names of a list, with something in place of the star. */
static void expect_list(const struct rules *r, const struct host_rules *l)
{
	for (size_t i = 0; i < l->len && i < NAMES_ASKED; i++)
		for (size_t p = 0; p < COUNT(ports); p++) {
			char name[2 * GATE_NAME_SIZE], canonical[GATE_NAME_SIZE];
			const struct host_rule *h = &l->at[i];

			snprintf(name, sizeof name, "%s%s", h->kind == HOST_EXACT ? "" : "x.",
			         h->kind == HOST_EVERY ? "test" : h->name);
			if (!hostname_read(name, strlen(name), canonical))
				continue; /* one byte too long */
			expect_name(r, canonical, ports[p]);
			expect_name(r, canonical, h->port ? h->port : 1);
		}
}

static void expect_same(const struct rules *a, const struct rules *b)
{
	const struct host_rules *lists[] = { &a->allow, &a->deny, &a->ask };

	for (size_t k = 0; k < COUNT(lists); k++)
		for (size_t i = 0; i < lists[k]->len && i < NAMES_ASKED; i++) {
			struct question q = { STAGE_CONNECT, .name = lists[k]->at[i].name,
				              .to.port = 443 };
			struct verdict x = rules_decide(a, &q), y = rules_decide(b, &q);

			expect(x.what == y.what && x.reason == y.reason &&
			       strcmp(x.rule, y.rule) == 0);
		}
	expect(rules_tightens(a, b) && rules_tightens(b, a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(rules_done) struct rules r = { 0 };
	AUTO(rules_done) struct rules again = { 0 };
	struct err e = { 0 };

	if (rules_read(&r, (const char *)data, size, &e) < 0) {
		expect(e.kind == ERR_INVALID || e.kind == ERR_LIMIT);
		return 0;
	}
	expect_list(&r, &r.allow);
	expect_list(&r, &r.deny);
	expect_list(&r, &r.ask);
	expect_name(&r, "never.mentioned.invalid", 443);
	for (size_t i = 0; i < COUNT(addresses); i++)
		for (size_t p = 0; p < COUNT(ports); p++)
			expect_address(&r, addresses[i], ports[p]);
	expect(rules_read(&again, (const char *)data, size, &e) == 0);
	expect_same(&r, &again);
	return 0;
}
