/*
 * ledger_text.h - what a record says, as text that can stand in a line.
 */
#pragma once

#include <jansson.h>

#include "wire/ledger.h"

/* Canonical: keys in order, no spaces, printable ASCII and no other byte. Sets out->overflow beyond
 * its ceiling. `o` is an object. */
void ledger_text(const json_t *o, struct str *out);
