/*
 * gen-netlink.c - turns src/os/netpolicy.h into the messages that the kernel gets.
 *
 *     gen-netlink OUT.h
 *
 * A launch has no time to build them, and they are always the same: libnftnl stays on this side,
 * and a launch sends bytes. Of each list the last message asks for an answer. `netlink_routes4` and
 * `netlink_routes6` go to NETLINK_ROUTE; `netlink_walls`, a batch that holds as a whole or not at
 * all, goes to NETLINK_NETFILTER.
 */
#include <netinet/in.h> /* first: the kernel's own header makes way for it */

#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/if.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>

#include "base/base.h"
#include "os/netpolicy.h"

#define BYTES_MAX 16384
#define TABLE "caisson"
#define LO 1 /* the index of it, in every network namespace */
#define MANGLE (-150)
#define TCP_SYN 0x02
#define TCP_ACK 0x10

static const uint8_t addr4[4] = NET_ADDR4, addr6[16] = NET_ADDR6;
static const uint8_t loopback4[4] = { 127, 0, 0, 1 }, loopback6[16] = { [15] = 1 };

struct messages {
	const char *name;
	char bytes[BYTES_MAX];
	size_t len;
	uint32_t seq;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "gen-netlink: %s\n", what);
	exit(1);
}

static void *need(void *p)
{
	return p ? p : (die("out of memory"), NULL);
}

static void put(struct messages *m, const struct nlmsghdr *h)
{
	m->len += NLMSG_ALIGN(h->nlmsg_len);
	if (m->len > sizeof m->bytes - 2048)
		die("too many messages");
}

/* ---- routes -------------------------------------------------------------------------- */

static void put_up(struct messages *m)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(m->bytes + m->len);

	h->nlmsg_type = RTM_NEWLINK;
	h->nlmsg_flags = NLM_F_REQUEST;
	h->nlmsg_seq = ++m->seq;
	struct ifinfomsg *i = mnl_nlmsg_put_extra_header(h, sizeof *i);
	i->ifi_index = LO;
	i->ifi_flags = i->ifi_change = IFF_UP;
	put(m, h);
}

/* The C library asks for IPv4 addresses of names (AI_ADDRCONFIG, getaddrinfo(3)) only where some
 * interface has one that is not exactly 127.0.0.1. */
static void put_second(struct messages *m)
{
	static const uint8_t second[4] = { 127, 0, 0, 2 };
	struct nlmsghdr *h = mnl_nlmsg_put_header(m->bytes + m->len);

	h->nlmsg_type = RTM_NEWADDR;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE;
	h->nlmsg_seq = ++m->seq;
	struct ifaddrmsg *a = mnl_nlmsg_put_extra_header(h, sizeof *a);
	a->ifa_family = AF_INET;
	a->ifa_prefixlen = 8;
	a->ifa_scope = RT_SCOPE_HOST;
	a->ifa_index = LO;
	mnl_attr_put(h, IFA_LOCAL, sizeof second, second);
	mnl_attr_put(h, IFA_ADDRESS, sizeof second, second);
	put(m, h);
}

/* local 0.0.0.0/0 dev lo src 127.0.0.1. Without the source a connection would come from the address
 * that it goes to, and could meet itself; IPv6 takes ::1 as it is. */
static void put_route(struct messages *m, int family)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(m->bytes + m->len);

	h->nlmsg_type = RTM_NEWROUTE;
	h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
	h->nlmsg_seq = ++m->seq;
	struct rtmsg *r = mnl_nlmsg_put_extra_header(h, sizeof *r);
	r->rtm_family = (unsigned char)family;
	r->rtm_table = RT_TABLE_LOCAL;
	r->rtm_protocol = RTPROT_BOOT;
	r->rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	r->rtm_type = RTN_LOCAL;
	mnl_attr_put_u32(h, RTA_OIF, LO);
	if (family == AF_INET)
		mnl_attr_put(h, RTA_PREFSRC, sizeof loopback4, loopback4);
	put(m, h);
}

/* ---- rules --------------------------------------------------------------------------- */

static struct nftnl_rule *rule_of(const char *chain)
{
	struct nftnl_rule *r = need(nftnl_rule_alloc());

	nftnl_rule_set_str(r, NFTNL_RULE_TABLE, TABLE);
	nftnl_rule_set_str(r, NFTNL_RULE_CHAIN, chain);
	nftnl_rule_set_u32(r, NFTNL_RULE_FAMILY, NFPROTO_INET);
	return r;
}

static void put_rule(struct messages *m, struct nftnl_rule *r, int flags)
{
	struct nlmsghdr *h =
	    nftnl_nlmsg_build_hdr(m->bytes + m->len, NFT_MSG_NEWRULE, NFPROTO_INET,
	                          (uint16_t)(NLM_F_CREATE | NLM_F_APPEND | flags), ++m->seq);

	nftnl_rule_nlmsg_build_payload(h, r);
	nftnl_rule_free(r);
	put(m, h);
}

static void compare(struct nftnl_rule *r, enum nft_cmp_ops op, const void *with, uint32_t n)
{
	struct nftnl_expr *e = need(nftnl_expr_alloc("cmp"));

	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, with, n);
	nftnl_rule_add_expr(r, e);
}

static void if_meta(struct nftnl_rule *r, enum nft_meta_keys key, const void *is, uint32_t n)
{
	struct nftnl_expr *e = need(nftnl_expr_alloc("meta"));

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
	nftnl_rule_add_expr(r, e);
	compare(r, NFT_CMP_EQ, is, n);
}

static void if_family(struct nftnl_rule *r, uint8_t family)
{
	if_meta(r, NFT_META_NFPROTO, &family, sizeof family);
}

static void if_protocol(struct nftnl_rule *r, uint8_t protocol)
{
	if_meta(r, NFT_META_L4PROTO, &protocol, sizeof protocol);
}

struct field {
	enum nft_payload_bases base;
	uint32_t offset, size;
};

static void load(struct nftnl_rule *r, struct field f)
{
	struct nftnl_expr *e = need(nftnl_expr_alloc("payload"));

	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, f.base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, f.offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, f.size);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_rule_add_expr(r, e);
}

static void mask(struct nftnl_rule *r, const void *bits, uint32_t n)
{
	static const uint8_t none[4];
	struct nftnl_expr *e = need(nftnl_expr_alloc("bitwise"));

	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_BITWISE_LEN, n);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_MASK, bits, n);
	nftnl_expr_set(e, NFTNL_EXPR_BITWISE_XOR, none, n);
	nftnl_rule_add_expr(r, e);
}

static void if_to_loopback4(struct nftnl_rule *r)
{
	if_family(r, NFPROTO_IPV4);
	load(r, (struct field){ NFT_PAYLOAD_NETWORK_HEADER, 16, 1 }); /* 127.0.0.0/8 */
	compare(r, NFT_CMP_EQ, loopback4, 1);
}

static void if_to_loopback6(struct nftnl_rule *r)
{
	if_family(r, NFPROTO_IPV6);
	load(r, (struct field){ NFT_PAYLOAD_NETWORK_HEADER, 24, sizeof loopback6 });
	compare(r, NFT_CMP_EQ, loopback6, sizeof loopback6);
}

static void if_query(struct nftnl_rule *r)
{
	const uint16_t port = htons(NET_DNS_PORT);

	if_protocol(r, IPPROTO_UDP);
	load(r, (struct field){ NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof port });
	compare(r, NFT_CMP_EQ, &port, sizeof port);
}

/* Anything but the first packet of a connection: its socket is known. */
static void if_goes_on(struct nftnl_rule *r)
{
	static const uint8_t flags = TCP_SYN | TCP_ACK, first = TCP_SYN;

	if_protocol(r, IPPROTO_TCP);
	load(r, (struct field){ NFT_PAYLOAD_TRANSPORT_HEADER, 13, sizeof flags });
	mask(r, &flags, sizeof flags);
	compare(r, NFT_CMP_NEQ, &first, sizeof first);
}

static void set_register(struct nftnl_rule *r, uint32_t reg, const void *bytes, uint32_t n)
{
	struct nftnl_expr *e = need(nftnl_expr_alloc("immediate"));

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, reg);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, bytes, n);
	nftnl_rule_add_expr(r, e);
}

static void accept_it(struct nftnl_rule *r)
{
	struct nftnl_expr *e = need(nftnl_expr_alloc("immediate"));

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
	nftnl_rule_add_expr(r, e);
}

/* Without that socket the rule ends here, and the chain's own verdict holds: dropped. */
static void give_to_gate(struct nftnl_rule *r, uint8_t family, uint16_t to_port)
{
	const uint16_t port = htons(to_port);
	const bool is_v4 = family == NFPROTO_IPV4;
	struct nftnl_expr *e = need(nftnl_expr_alloc("tproxy"));

	if_family(r, family);
	set_register(r, NFT_REG_1, is_v4 ? addr4 : addr6, is_v4 ? sizeof addr4 : sizeof addr6);
	set_register(r, NFT_REG_2, &port, sizeof port);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, family);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_ADDR, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_2);
	nftnl_rule_add_expr(r, e);
	accept_it(r);
}

struct pass {
	const char *chain;
	void (*is)(struct nftnl_rule *r);
	int flags;
};

static void accept_if(struct messages *m, struct pass p)
{
	struct nftnl_rule *r = rule_of(p.chain);

	p.is(r);
	accept_it(r);
	put_rule(m, r, p.flags);
}

static void put_capture(struct messages *m)
{
	static const uint8_t families[] = { NFPROTO_IPV4, NFPROTO_IPV6 };

	accept_if(m, (struct pass){ "in", if_goes_on, 0 });
	accept_if(m, (struct pass){ "in", if_to_loopback4, 0 });
	accept_if(m, (struct pass){ "in", if_to_loopback6, 0 });
	for (size_t i = 0; i < COUNT(families); i++) {
		struct nftnl_rule *tcp = rule_of("in"), *dns = rule_of("in");

		if_protocol(tcp, IPPROTO_TCP);
		give_to_gate(tcp, families[i], NET_TCP_PORT);
		put_rule(m, tcp, 0);
		if_query(dns);
		give_to_gate(dns, families[i], NET_DNS_PORT);
		put_rule(m, dns, 0);
	}
}

static void if_tcp(struct nftnl_rule *r)
{
	if_protocol(r, IPPROTO_TCP);
}

static void put_output(struct messages *m)
{
	accept_if(m, (struct pass){ "out", if_tcp, 0 });
	accept_if(m, (struct pass){ "out", if_to_loopback4, 0 });
	accept_if(m, (struct pass){ "out", if_to_loopback6, 0 }); /* and what the gate answers */
	accept_if(m, (struct pass){ "out", if_query, NLM_F_ACK });
}

static void put_table(struct messages *m)
{
	struct nftnl_table *t = need(nftnl_table_alloc());
	struct nlmsghdr *h = nftnl_nlmsg_build_hdr(m->bytes + m->len, NFT_MSG_NEWTABLE,
	                                           NFPROTO_INET, NLM_F_CREATE, ++m->seq);

	nftnl_table_set_str(t, NFTNL_TABLE_NAME, TABLE);
	nftnl_table_set_u32(t, NFTNL_TABLE_FAMILY, NFPROTO_INET);
	nftnl_table_nlmsg_build_payload(h, t);
	nftnl_table_free(t);
	put(m, h);
}

static void put_chain(struct messages *m, const char *name, uint32_t hook, int32_t priority)
{
	struct nftnl_chain *c = need(nftnl_chain_alloc());
	struct nlmsghdr *h = nftnl_nlmsg_build_hdr(m->bytes + m->len, NFT_MSG_NEWCHAIN,
	                                           NFPROTO_INET, NLM_F_CREATE, ++m->seq);

	nftnl_chain_set_str(c, NFTNL_CHAIN_TABLE, TABLE);
	nftnl_chain_set_str(c, NFTNL_CHAIN_NAME, name);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_FAMILY, NFPROTO_INET);
	nftnl_chain_set_str(c, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(c, NFTNL_CHAIN_HOOKNUM, hook);
	nftnl_chain_set_s32(c, NFTNL_CHAIN_PRIO, priority);
	nftnl_chain_set_u32(c, NFTNL_CHAIN_POLICY, NF_DROP);
	nftnl_chain_nlmsg_build_payload(h, c);
	nftnl_chain_free(c);
	put(m, h);
}

static void put_walls(struct messages *m)
{
	put(m, nftnl_batch_begin(m->bytes + m->len, ++m->seq));
	put_table(m);
	put_chain(m, "in", NF_INET_PRE_ROUTING, MANGLE);
	put_chain(m, "out", NF_INET_LOCAL_OUT, 0);
	put_capture(m);
	put_output(m);
	put(m, nftnl_batch_end(m->bytes + m->len, ++m->seq));
}

/* ---- out ----------------------------------------------------------------------------- */

static void print(FILE *out, const struct messages *m)
{
	fprintf(out, "\nstatic const unsigned char %s[] __attribute__((aligned(4))) = {", m->name);
	for (size_t i = 0; i < m->len; i++)
		fprintf(out, "%s0x%02x,", i % 16 ? " " : "\n\t", (unsigned char)m->bytes[i]);
	fprintf(out, "\n};\n");
}

int main(int argc, char **argv)
{
	static struct messages routes4 = { .name = "netlink_routes4" };
	static struct messages routes6 = { .name = "netlink_routes6" };
	static struct messages walls = { .name = "netlink_walls" };
	FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;

	if (!out)
		die("one file to write");
	put_up(&routes4);
	put_second(&routes4);
	put_route(&routes4, AF_INET);
	put_route(&routes6, AF_INET6);
	put_walls(&walls);
	fputs("/* Made from src/os/netpolicy.h by tools/gen-netlink.c: edit those. */\n#pragma "
	      "once\n",
	      out);
	print(out, &routes4);
	print(out, &routes6);
	print(out, &walls);
	return fclose(out) == 0 ? 0 : 1;
}
