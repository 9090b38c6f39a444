#include "wire/dns.h"

#include "wire/hostname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* What was asked comes back as it was, and is read as the same question. */
static void expect_answer(const struct dns_query *q)
{
	static const uint8_t address[4] = { 198, 18, 0, 2 };
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query again;

	for (int has_address = 0; has_address < 2; has_address++) {
		size_t n = dns_print(out, q, DNS_NOERROR, has_address ? address : NULL, 60);

		expect(n >= 12 + (size_t)q->question_len && n <= sizeof out);
		expect(memcmp(out + 12, q->question, q->question_len) == 0);
		expect(dns_parse(out, n, &again) == DNS_DROP);
	}
	size_t n = dns_print(out, q, DNS_NXDOMAIN, NULL, 0);

	out[2] &= 0x7f; /* as a question again */
	expect(dns_parse(out, n, &again) == DNS_OK);
	expect(again.id == q->id && again.type == q->type && again.class == q->class);
	expect(again.is_name_ok == q->is_name_ok && strcmp(again.name, q->name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query q;
	char name[GATE_NAME_SIZE];
	enum dns_result r = dns_parse(data, size, &q);

	expect(q.udp_size >= 512 && q.question_len <= sizeof q.question);
	expect(memchr(q.name, '\0', sizeof q.name));
	expect(q.is_name_ok == (q.name[0] != '\0'));
	if (q.is_name_ok)
		expect(hostname_read(q.name, strlen(q.name), name) && strcmp(name, q.name) == 0);
	expect((r == DNS_OK) == (q.question_len > 0));
	if (r == DNS_OK)
		expect_answer(&q);
	return 0;
}
