#include "wire/dsse.h"

#include "test.h"

static const char payload[] = "{\"_type\":\"x\"}";
static const struct span all = { payload, sizeof payload - 1 };

static struct ledger_key key_new(void)
{
	struct ledger_key k = { 0 };
	struct err e = { 0 };

	CHECK_INT(ledger_key_make(&k, &e), 0);
	return k;
}

TEST(what_was_signed_opens_with_that_key_and_no_other)
{
	AUTO(ledger_key_done) struct ledger_key k = key_new(), other = key_new();
	AUTO(str_done) struct str out = { .max = DSSE_BYTES_MAX };
	AUTO(str_done) struct str got = { .max = DSSE_BYTES_MAX };
	AUTO(str_done) struct str none = { .max = DSSE_BYTES_MAX };
	struct err e = { 0 };

	CHECK_INT(dsse_print(&k, all, &out, &e), 0);
	struct span envelope = { out.data, out.len };

	CHECK_INT(dsse_open(&k, envelope, &got, &e), 0);
	CHECK_STR(str_text(&got), payload);
	CHECK_INT(dsse_open(&other, envelope, &none, &e), -1);
	ledger_key_done(&other);
}

TEST(every_changed_byte_is_found)
{
	AUTO(ledger_key_done) struct ledger_key k = key_new();
	AUTO(str_done) struct str out = { .max = DSSE_BYTES_MAX };
	struct err e = { 0 };

	CHECK_INT(dsse_print(&k, all, &out, &e), 0);
	const char *id = strstr(out.data, "\"keyid\":\"") + 9;

	for (size_t i = 0; i + 1 < out.len; i++) {
		AUTO(str_done) struct str got = { .max = DSSE_BYTES_MAX };
		char was = out.data[i];

		if (out.data + i >= id - 9 && out.data + i < id + LEDGER_KEY_SIZE)
			continue; /* the name of the key is a hint, and nobody relies on it */
		out.data[i] = was == 'A' ? 'B' : 'A';
		CHECK_INT(dsse_open(&k, (struct span){ out.data, out.len }, &got, &e), -1);
		out.data[i] = was;
	}
}

TEST(an_envelope_is_no_seal_and_a_seal_no_envelope)
{
	AUTO(ledger_key_done) struct ledger_key k = key_new();
	const struct ledger_seal s = { .kind = "ledger.checkpoint",
		                       .ledger = "ab",
		                       .prev = LEDGER_ZERO,
		                       .seq = 7,
		                       .ts_ms = 8 };
	static const char sealed[] =
	    "caisson-ledger-v1\nledger.checkpoint\nab\n7\n8\n" LEDGER_ZERO "\n";
	AUTO(str_done) struct str out = { .max = DSSE_BYTES_MAX };
	char sig[LEDGER_SIG_SIZE];
	struct err e = { 0 };

	/* The very text of a seal as a payload: its signature is good for an envelope only. */
	CHECK_INT(dsse_print(&k, span_of(sealed), &out, &e), 0);
	const char *at = strstr(out.data, "\"sig\":\"") + 7;

	CHECK(!ledger_sign_holds(&k, &s, (struct span){ at, LEDGER_SIG_SIZE - 1 }));
	CHECK_INT(ledger_sign(&k, &s, sig, &e), 0);
	CHECK(ledger_sign_holds(&k, &s, span_of(sig)));
	CHECK(ledger_key_holds(&k, span_of(sealed), span_of(sig)));
}

TEST(what_is_no_envelope_is_refused)
{
	AUTO(ledger_key_done) struct ledger_key k = key_new();
	static const char *const rows[] = {
		"",
		"{}",
		"[]",
		"{\"payload\":\"e30=\",\"payloadType\":\"text/plain\",\"signatures\":[]}",
		"{\"payload\":\"e30=\",\"payloadType\":\"" DSSE_TYPE "\",\"signatures\":[]}",
		"{\"payload\":\"e30=\",\"payloadType\":\"" DSSE_TYPE "\"}",
		"{\"payload\":\"!\",\"payloadType\":\"" DSSE_TYPE
		"\",\"signatures\":[{\"sig\":\"\"}]}",
		"{\"payload\":7,\"payloadType\":\"" DSSE_TYPE "\",\"signatures\":[{\"sig\":7},3]}",
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str got = { .max = DSSE_BYTES_MAX };
		struct err e = { 0 };

		CHECK_INT(dsse_open(&k, span_of(rows[i]), &got, &e), -1);
	}
}
