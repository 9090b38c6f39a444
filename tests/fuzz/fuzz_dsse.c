/*
 * fuzz_dsse.c - whatever comes as an attestation: nothing that we did not sign opens, and any text
 * can be asked whether it is a statement.
 */
#include <assert.h>

#include "wire/attest.h"
#include "wire/dsse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ledger_key k;
	struct span text = { (const char *)data, size };
	AUTO(str_done) struct str got = { .max = DSSE_BYTES_MAX };
	struct err e = { 0 };
	int r = k.pkey ? 0 : ledger_key_make(&k, &e); /* new each time: no input knows it */

	assert(r == 0);
	r = dsse_open(&k, text, &got, &e);
	assert(r == -1);
	json_t *o = attest_read(text);

	json_decref(o);
	return 0;
}
