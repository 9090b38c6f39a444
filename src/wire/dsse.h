/*
 * dsse.h - a text with a signature, as DSSE v1 has it (Dead Simple Signing Envelope).
 *
 *   {"payload":BASE64,"payloadType":"application/vnd.in-toto+json","signatures":[{"keyid":…,"sig":…}]}
 *
 * What is signed is "DSSEv1 LEN TYPE LEN PAYLOAD". The ledger's key signs two things only: this,
 * and what begins with "caisson-ledger-v1\n" (ledger_sign.h). Neither can be taken for the other,
 * because their first bytes differ whatever is in them.
 */
#pragma once

#include "wire/ledger_sign.h"

#define DSSE_TYPE "application/vnd.in-toto+json"
#define DSSE_BYTES_MAX (2u << 20) /* of an envelope */

int dsse_print(const struct ledger_key *k, struct span payload, struct str *out,
               struct err *e) MUST_USE;
/* The payload of an envelope that this key has signed. -1: it is none, and `e` says why. */
int dsse_open(const struct ledger_key *k, struct span envelope, struct str *payload,
              struct err *e) MUST_USE;
