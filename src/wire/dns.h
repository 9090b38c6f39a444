/*
 * dns.h - the questions of a resolver inside and our answers (RFC 1035, 6891).
 *
 * Only what a stub resolver sends is taken: a query with one question, no compression, at most one
 * OPT record behind it and not a byte more. An answer is the question as it came (resolvers mix the
 * case of letters and compare), and one A record or none.
 */
#pragma once

#include "wire/gate.h"

#define DNS_QUESTION_MAX (255 + 4) /* name, type, class */
#define DNS_ANSWER_MAX 512         /* what every client takes by UDP */
#define DNS_QUERY_MAX 4096         /* longer ones are no questions */

enum { DNS_A = 1, DNS_AAAA = 28, DNS_OPT = 41, DNS_SVCB = 64, DNS_HTTPS = 65, DNS_ANY = 255 };
enum { DNS_IN = 1 }; /* class */
enum dns_rcode {
	DNS_NOERROR,
	DNS_FORMERR,
	DNS_SERVFAIL,
	DNS_NXDOMAIN,
	DNS_NOTIMP,
	DNS_REFUSED,
};

enum dns_result {
	DNS_OK,
	DNS_DROP,      /* no query at all: say nothing */
	DNS_MALFORMED, /* *out has the id: answer DNS_FORMERR */
	DNS_UNKNOWN,   /* *out has the id: another opcode, answer DNS_NOTIMP */
};

struct dns_query {
	uint16_t id, type, class;
	bool is_rd;
	bool is_name_ok;           /* the name is that of a host, and no address */
	char name[GATE_NAME_SIZE]; /* canonical; "" when it is not */
	uint16_t udp_size;         /* what the client takes: at least 512 */
	bool has_opt;
	uint16_t question_len; /* 0 unless DNS_OK */
	uint8_t question[DNS_QUESTION_MAX];
};

/* *out is filled as far as it was read. */
enum dns_result dns_parse(const uint8_t *msg, size_t n, struct dns_query *out);

/* Returns the length of the answer. `a`: the address, NULL for none (NODATA, or an error). */
size_t dns_print(uint8_t out[DNS_ANSWER_MAX], const struct dns_query *q, int rcode,
                 const uint8_t a[4], uint32_t ttl_s);
