#include "wire/gate.h"

#include "wire/cache.h"

#include "test.h"

#define PEM(text) "-----BEGIN CERTIFICATE-----\n" text "-----END CERTIFICATE-----\n"

static struct gate_packet good(enum gate_type type)
{
	struct gate_packet p;

	memset(&p, 0, sizeof p);
	p.head.type = type;
	p.head.len = (uint32_t)(gate_size(&p) - sizeof p.head);
	if (type == G_START)
		memcpy(p.start.id, "sb_1", 5);
	if (type == G_RECORD) {
		p.record.seq = 1;
		memcpy(p.record.name, "example.org", 12);
	}
	if (type == G_ASK)
		p.ask.seq = 1;
	if (type == G_MARKS)
		p.marks.is_first = 1;
	if (type == G_CA)
		memcpy(p.ca.pem, PEM("AQID\n"), sizeof PEM("AQID\n"));
	return p;
}

static size_t fds_of(enum gate_type type)
{
	return type == G_START ? GATE_FDS : type == G_RULES || type == G_LOOK ? 1 : 0;
}

static bool check(const struct gate_packet *p)
{
	return gate_check(p, gate_size(p), fds_of(p->head.type));
}

TEST(every_type_is_taken_in_its_own_size_only)
{
	for (enum gate_type t = 0; t < G_TYPES; t++) {
		struct gate_packet p = good(t);
		size_t n = gate_size(&p), fds = fds_of(t);

		printf("# type %d\n", (int)t);
		CHECK(gate_check(&p, n, fds));
		CHECK(!gate_check(&p, n - 1, fds));
		CHECK(!gate_check(&p, n + 1, fds));
		CHECK(!gate_check(&p, n, fds + 1));
		CHECK(fds == 0 || !gate_check(&p, n, fds - 1));
		p.head.len++;
		CHECK(!gate_check(&p, n, fds));
		CHECK(!gate_check(&p, n + 1, fds));
	}
}

TEST(a_ca_is_one_certificate)
{
	static const char *const bad[] = {
		"",
		"-----BEGIN CERTIFICATE-----\n",
		"x" PEM("AQID\n"),
		PEM("AQID\n") "x",
		PEM("AQID\n") PEM("AQID\n"),
		PEM("AQ\x1b[0m\n"),
		"-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----\n",
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct gate_packet p = good(G_CA);

		memset(p.ca.pem, 0, sizeof p.ca.pem);
		memcpy(p.ca.pem, bad[i], strlen(bad[i]));
		printf("# row %zu\n", i);
		CHECK(!check(&p));
	}
}

TEST(a_text_from_anywhere_can_be_made_one_of_a_packet)
{
	char text[] = "open a\x1b[0m\xc3\xa4\n~ !";
	struct gate_packet p = good(G_RULED);

	gate_plain(text);
	CHECK_STR(text, "open a?[0m???~ !");
	memcpy(p.ruled.reason, text, sizeof text);
	CHECK(check(&p));
}

TEST(what_is_no_packet)
{
	struct gate_packet p = good(G_UP);

	for (size_t n = 0; n < sizeof p.head; n++)
		CHECK(!gate_check(&p, n, 0));
	p.head.type = G_TYPES;
	CHECK(!gate_check(&p, sizeof p.head, 0));
	CHECK_INT(gate_size(&p), sizeof p.head);
	p.head.type = UINT32_MAX;
	CHECK(!gate_check(&p, sizeof p.head, 0));
}

TEST(ranges_of_a_record)
{
	/* clang-format off */
	static const struct {
		size_t at;
		uint8_t size;
		uint64_t last; /* that is taken */
	} rows[] = {
		{ offsetof(struct gate_record, decision), 4, GATE_DECISIONS - 1 },
		{ offsetof(struct gate_record, reason), 4, GATE_REASONS - 1 },
		{ offsetof(struct gate_record, proto), 4, GATE_PROTOS - 1 },
		{ offsetof(struct gate_record, is_v6), 1, 1 },
		{ offsetof(struct gate_record, is_terminated), 1, 1 },
		{ offsetof(struct gate_record, close_by), 1, 3 },
		{ offsetof(struct gate_record, cache), 1, CACHE_WORDS - 1 },
		{ offsetof(struct gate_record, unix_ms), 8, INT64_MAX },
	};
	/* clang-format on */
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct gate_packet p = good(G_RECORD);
		char *field = (char *)&p.record + rows[i].at;
		uint64_t over = rows[i].last + 1;

		printf("# row %zu\n", i);
		memcpy(field, &rows[i].last, rows[i].size);
		CHECK(check(&p));
		memcpy(field, &over, rows[i].size);
		CHECK(!check(&p));
	}
}

TEST(kinds_of_records)
{
	static const struct {
		uint64_t kind, seq, request;
		bool is_taken;
	} rows[] = {
		{ GATE_OPENED, 1, 0, true },  { GATE_OPENED, 0, 0, false },
		{ GATE_OPENED, 1, 1, false }, { GATE_CLOSED, 1, 0, true },
		{ GATE_LOOKUP, 0, 0, true },  { GATE_LOOKUP, 7, 0, true },
		{ GATE_REQUEST, 1, 1, true }, { GATE_REQUEST, 1, 0, false },
		{ GATE_USE, 1, 1, true },     { GATE_USE, 1, 0, false },
		{ GATE_KINDS, 1, 0, false },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct gate_packet p = good(G_RECORD);

		p.record.kind = (uint32_t)rows[i].kind;
		p.record.seq = rows[i].seq;
		p.record.request = rows[i].request;
		printf("# row %zu\n", i);
		CHECK_INT(check(&p), rows[i].is_taken);
	}
}

/* Every text field: full without a NUL, a control byte, DEL, a byte of UTF-8. */
TEST(texts_end_and_are_printable)
{
	/* clang-format off */
	static const struct {
		enum gate_type type;
		size_t at, size;
	} rows[] = {
		{ G_START, offsetof(struct gate_start, id), GATE_ID_SIZE },
		{ G_RULED, offsetof(struct gate_ruled, reason), sizeof(((struct gate_ruled *)0)->reason) },
		{ G_RECORD, offsetof(struct gate_record, name), GATE_NAME_SIZE },
		{ G_RECORD, offsetof(struct gate_record, sni), GATE_NAME_SIZE },
		{ G_RECORD, offsetof(struct gate_record, alpn), GATE_ALPN_SIZE },
		{ G_RECORD, offsetof(struct gate_record, method), GATE_METHOD_SIZE },
		{ G_RECORD, offsetof(struct gate_record, path), GATE_PATH_SIZE },
		{ G_RECORD, offsetof(struct gate_record, rule), GATE_RULE_SIZE },
		{ G_ASK, offsetof(struct gate_ask, name), GATE_NAME_SIZE },
		{ G_ASK, offsetof(struct gate_ask, rule), GATE_RULE_SIZE },
	};
	/* clang-format on */
	static const char odd[] = { 0x01, 0x1f, '\n', 0x1b, 0x7f, (char)0x80, (char)0xff };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct gate_packet p = good(rows[i].type);
		char *text = (char *)&p + sizeof p.head + rows[i].at;

		printf("# row %zu\n", i);
		memset(text, 'a', rows[i].size);
		CHECK(!check(&p));
		text[rows[i].size - 1] = '\0';
		CHECK(check(&p));
		for (size_t k = 0; k < COUNT(odd); k++) {
			text[1] = odd[k];
			CHECK(!check(&p));
		}
		text[1] = '\0'; /* what follows is nobody's text */
		CHECK(check(&p));
	}
}

TEST(other_fields)
{
	struct gate_packet p = good(G_START);

	p.start.id[0] = '\0';
	CHECK(!check(&p));
	p = good(G_RULES);
	p.rules.zero = 1;
	CHECK(!check(&p));
	p = good(G_CREDIT);
	p.credit.zero = 1;
	CHECK(!check(&p));
	p = good(G_ANSWER);
	p.answer.is_allowed = 2;
	CHECK(!check(&p));
	p.answer = (struct gate_answer){ .zero = 1 };
	CHECK(!check(&p));
	p = good(G_RULED);
	p.ruled.is_refused = 2;
	CHECK(!check(&p));
	p.ruled = (struct gate_ruled){ .zero = 1 };
	CHECK(!check(&p));
	p = good(G_ASK);
	p.ask.seq = 0;
	CHECK(!check(&p));
	p.ask = (struct gate_ask){ .seq = 1, .kind = GATE_ASK_KINDS };
	CHECK(!check(&p));
}

TEST(all_have_names_of_their_own)
{
	for (int i = 0; i < GATE_REASONS; i++)
		for (int k = 0; k < i; k++)
			CHECK(strcmp(gate_reason_name(i), gate_reason_name(k)) != 0);
	CHECK_STR(gate_reason_name(GATE_NO_RULE), "no_rule");
	CHECK_STR(gate_reason_name(GATE_NAME_MISMATCH), "name_mismatch");
	CHECK_STR(gate_reason_name(GATE_REASONS), "unknown");
	CHECK_STR(gate_decision_name(GATE_ALLOW), "allow");
	CHECK_STR(gate_decision_name(GATE_ASKED_DENY), "ask_deny");
	CHECK_STR(gate_decision_name(GATE_DECISIONS), "unknown");
	CHECK_STR(gate_proto_name(GATE_PROTO_TLS), "tls");
	CHECK_STR(gate_proto_name(GATE_PROTOS), "unknown");
}
