/*
 * ledger_sign.h - signatures of a ledger: Ed25519, by OpenSSL.
 *
 * What is signed, for the record `seq` of the kinds ledger.segment and ledger.checkpoint:
 *   "caisson-ledger-v1\n" KIND "\n" LEDGER "\n" SEQ "\n" TS "\n" PREV "\n"
 * LEDGER is the ledger's own id, PREV the hash of the record before: so a signature stands for all
 * that came before it, in this ledger and at this place.
 */
#pragma once

#include "wire/ledger.h"

#define LEDGER_ID_SIZE 33  /* 128 bits, hex, NUL */
#define LEDGER_KEY_SIZE 17 /* what a key is called: 64 bits of its hash */
#define LEDGER_SIG_SIZE 89 /* base64 of 64 bytes, NUL */
#define LEDGER_PEM_MAX 512

struct evp_pkey_st;

struct ledger_key {
	struct evp_pkey_st *pkey; /* NULL: none */
	char name[LEDGER_KEY_SIZE];
};

struct ledger_seal {
	const char *kind, *ledger, *prev;
	uint64_t seq;
	int64_t ts_ms;
};

int ledger_key_make(struct ledger_key *k, struct err *e) MUST_USE;
/* Of a PEM: the private one, or only the public one. */
int ledger_key_read(struct ledger_key *k, struct span pem, bool is_private, struct err *e) MUST_USE;
int ledger_key_print(const struct ledger_key *k, bool is_private, struct str *pem,
                     struct err *e) MUST_USE;
void ledger_key_done(struct ledger_key *k);

int ledger_sign(const struct ledger_key *k, const struct ledger_seal *s, char sig[LEDGER_SIG_SIZE],
                struct err *e) MUST_USE;
bool ledger_sign_holds(const struct ledger_key *k, const struct ledger_seal *s, struct span sig);

/* For texts whose first bytes say what they are: those above, and dsse.h. Nobody else signs. */
int ledger_key_sign(const struct ledger_key *k, struct span text, char sig[LEDGER_SIG_SIZE],
                    struct err *e) MUST_USE;
bool ledger_key_holds(const struct ledger_key *k, struct span text, struct span sig);
