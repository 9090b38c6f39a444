#include "wire/dns.h"

#include "wire/hostname.h"

enum {
	HEAD_SIZE = 12,
	NAME_MAX_WIRE = 255,
	LABEL_MAX = 63,
	OPT_SIZE = 11, /* root, type, class, ttl, length */
	UDP_SIZE_MIN = 512,
	UDP_SIZE_OURS = 1232,
	FLAG_ANSWER = 0x8000,
	FLAG_RD = 0x0100,
	FLAG_RA = 0x0080,
	OPCODE_MASK = 0x7800,
	POINTER_TO_QUESTION = 0xc000 | HEAD_SIZE,
};

struct reader {
	const uint8_t *p;
	size_t left;
};

static bool take16(struct reader *r, uint16_t *out)
{
	if (r->left < 2)
		return false;
	*out = (uint16_t)(r->p[0] << 8 | r->p[1]);
	r->p += 2;
	r->left -= 2;
	return true;
}

static bool skip(struct reader *r, size_t n)
{
	if (r->left < n)
		return false;
	r->p += n;
	r->left -= n;
	return true;
}

/* The labels of a question, joined by dots. A label with a dot inside is none of a host: it would
 * read as two. */
static bool take_name(struct reader *r, struct dns_query *q)
{
	char text[NAME_MAX_WIRE];
	size_t n = 0;
	bool is_odd = false;

	for (;;) {
		if (r->left == 0 || r->p[0] > LABEL_MAX)
			return false; /* cut, or a pointer */
		size_t len = r->p[0];

		(void)skip(r, 1); /* it is there */
		if (len == 0)
			break;
		if (r->left < len || n + len + 1 > NAME_MAX_WIRE - 1)
			return false;
		is_odd |= memchr(r->p, '.', len) != NULL;
		memcpy(text + n, r->p, len);
		text[n + len] = '.';
		n += len + 1;
		(void)skip(r, len); /* there are as many */
	}
	q->is_name_ok = !is_odd && hostname_read(text, n, q->name);
	return true;
}

static bool take_question(struct reader *r, struct dns_query *q)
{
	const uint8_t *start = r->p;

	if (!take_name(r, q) || !take16(r, &q->type) || !take16(r, &q->class))
		return false;
	q->question_len = (uint16_t)(r->p - start);
	memcpy(q->question, start, q->question_len);
	return true;
}

/* RFC 6891: the class is the size. Its options (cookies, padding) are passed over. */
static bool take_opt(struct reader *r, struct dns_query *q)
{
	uint16_t type = 0, size = 0, len = 0;

	if (r->left == 0 || r->p[0] != 0 || !skip(r, 1) || !take16(r, &type) || type != DNS_OPT ||
	    !take16(r, &size) || !skip(r, 4) || !take16(r, &len) || !skip(r, len))
		return false;
	q->has_opt = true;
	q->udp_size = size > UDP_SIZE_MIN ? size : UDP_SIZE_MIN;
	return true;
}

enum dns_result dns_parse(const uint8_t *msg, size_t n, struct dns_query *out)
{
	struct reader r = { msg, n };
	uint16_t flags = 0, questions = 0, answers = 0, authorities = 0, more = 0;

	*out = (struct dns_query){ .udp_size = UDP_SIZE_MIN };
	if (!take16(&r, &out->id) || !take16(&r, &flags) || !take16(&r, &questions) ||
	    !take16(&r, &answers) || !take16(&r, &authorities) || !take16(&r, &more))
		return DNS_DROP;
	if (flags & FLAG_ANSWER)
		return DNS_DROP;
	out->is_rd = flags & FLAG_RD;
	if (flags & OPCODE_MASK)
		return DNS_UNKNOWN;
	struct dns_query q = *out;

	if (n > DNS_QUERY_MAX || questions != 1 || answers || authorities || more > 1)
		return DNS_MALFORMED;
	if (!take_question(&r, &q) || (more && !take_opt(&r, &q)) || r.left > 0)
		return DNS_MALFORMED;
	*out = q;
	return DNS_OK;
}

/* ---- answers ---- */

struct writer {
	uint8_t *p;
	size_t len;
};

static void put16(struct writer *w, unsigned v)
{
	w->p[w->len++] = (uint8_t)(v >> 8);
	w->p[w->len++] = (uint8_t)v;
}

static void put_bytes(struct writer *w, const uint8_t *bytes, size_t n)
{
	memcpy(w->p + w->len, bytes, n);
	w->len += n;
}

static void put_address(struct writer *w, const uint8_t a[4], uint32_t ttl_s)
{
	put16(w, POINTER_TO_QUESTION);
	put16(w, DNS_A);
	put16(w, DNS_IN);
	put16(w, ttl_s >> 16);
	put16(w, ttl_s & 0xffff);
	put16(w, 4);
	put_bytes(w, a, 4);
}

static void put_opt(struct writer *w)
{
	static const uint8_t opt[OPT_SIZE] = { 0, 0, DNS_OPT, UDP_SIZE_OURS >> 8,
		                               UDP_SIZE_OURS & 0xff };

	put_bytes(w, opt, sizeof opt);
}

size_t dns_print(uint8_t out[DNS_ANSWER_MAX], const struct dns_query *q, int rcode,
                 const uint8_t a[4], uint32_t ttl_s)
{
	struct writer w = { out, 0 };
	bool has_question = q->question_len > 0;
	bool has_address = has_question && a;

	put16(&w, q->id);
	put16(&w, (unsigned)(FLAG_ANSWER | FLAG_RA | (q->is_rd ? FLAG_RD : 0) | (rcode & 15)));
	put16(&w, has_question);
	put16(&w, has_address);
	put16(&w, 0);
	put16(&w, q->has_opt);
	put_bytes(&w, q->question, q->question_len);
	if (has_address)
		put_address(&w, a, ttl_s);
	if (q->has_opt)
		put_opt(&w);
	return w.len;
}
