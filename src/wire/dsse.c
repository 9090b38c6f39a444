#include "wire/dsse.h"

#include <jansson.h>

#include "wire/base64.h"
#include "wire/ledger_text.h"

#define SIGNATURES_MAX 16

static void add_signed(struct str *out, struct span payload)
{
	str_addf(out, "DSSEv1 %zu %s %zu ", strlen(DSSE_TYPE), DSSE_TYPE, payload.len);
	str_addn(out, payload.at, payload.len);
}

int dsse_print(const struct ledger_key *k, struct span payload, struct str *out, struct err *e)
{
	AUTO(str_done) struct str text = { .max = DSSE_BYTES_MAX };
	AUTO(str_done) struct str coded = { .max = DSSE_BYTES_MAX };
	char sig[LEDGER_SIG_SIZE];

	add_signed(&text, payload);
	base64_encode(payload.at, payload.len, &coded);
	if (text.overflow || coded.overflow)
		return err_new(e, ERR_LIMIT, "too much to be signed");
	if (ledger_key_sign(k, (struct span){ text.data, text.len }, sig, e) < 0)
		return -1;
	AUTO(json_decrefp)
	json_t *o = json_pack("{ss,ss,s[{ss,ss}]}", "payload", str_text(&coded), "payloadType",
	                      DSSE_TYPE, "signatures", "keyid", k->name, "sig", sig);

	ledger_text(o, out);
	str_add(out, "\n");
	return out->overflow ? err_new(e, ERR_LIMIT, "too much to be signed") : 0;
}

static bool is_signed(const struct ledger_key *k, const json_t *signatures, struct span text)
{
	const json_t *one;
	size_t i;

	json_array_foreach(signatures, i, one)
	{
		const json_t *sig = json_object_get(one, "sig");
		struct span coded = { json_string_value(sig), json_string_length(sig) };

		if (i < SIGNATURES_MAX && coded.at && ledger_key_holds(k, text, coded))
			return true;
	}
	return false;
}

int dsse_open(const struct ledger_key *k, struct span envelope, struct str *payload, struct err *e)
{
	AUTO(json_decrefp) json_t *o = NULL;
	AUTO(str_done) struct str text = { .max = DSSE_BYTES_MAX };

	if (envelope.len <= DSSE_BYTES_MAX)
		o = json_loadb(envelope.at, envelope.len, JSON_REJECT_DUPLICATES, NULL);
	const char *type = json_string_value(json_object_get(o, "payloadType"));
	const json_t *coded = json_object_get(o, "payload");

	if (!type || strcmp(type, DSSE_TYPE) != 0 || !json_is_string(coded) ||
	    !base64_decode(json_string_value(coded), json_string_length(coded), payload))
		return err_new(e, ERR_INVALID, "not an envelope of an in-toto statement");
	add_signed(&text, (struct span){ str_text(payload), payload->len });
	if (!is_signed(k, json_object_get(o, "signatures"), (struct span){ text.data, text.len }))
		return err_new(e, ERR_DENIED, "it was not signed by key %s, or changed since",
		               k->name);
	return 0;
}
