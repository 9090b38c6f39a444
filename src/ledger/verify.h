/*
 * verify.h - verifies a ledger (wire/ledger.h) with nothing but its files and a public key.
 */
#pragma once

#include "wire/ledger_chain.h"

#define VERIFY_FOUND_MAX 100 /* told one by one; the rest is counted */

struct verify_look {
	const char *dir,
	    *key;      /* key NULL: DIR/key.pub, which whoever changed the files may have too */
	uint64_t from; /* records before it are not needed; 0: all */
	const char *expect; /* "SEQ:HASH" that was true once; or NULL */
};

struct verify_found {
	struct ledger_finding what;
	char file[64];
	uint64_t line, offset;
};

struct verify_seen {
	struct verify_found found[VERIFY_FOUND_MAX];
	size_t n_found; /* may be more */
	size_t n_files;
	uint64_t n, first, last, n_unsigned, n_signatures, pruned_until;
	char hash[LEDGER_HASH_SIZE], ledger[LEDGER_ID_SIZE], key[LEDGER_KEY_SIZE];
};

/* 0: all was read, and `out` says what it is; -1: it cannot be read. */
int verify_files(const struct verify_look *look, struct verify_seen *out, struct err *e) MUST_USE;

/* What `caisson events --verify` says. */
void verify_print(const struct verify_seen *s, bool is_own_key, struct str *out);
void verify_print_json(const struct verify_seen *s, struct str *out);
