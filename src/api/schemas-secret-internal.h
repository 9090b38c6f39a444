/*
 * schemas-secret-internal.h - a part of the tables of schemas.c: secrets.
 */
#pragma once

#include "api/schemas.h"

/* clang-format off */
static const struct member sealing_members[] = {
	{ "key",    NEEDED, "text", "the public key (X25519), base64" },
	{ "tenant", NEEDED, "text", "whose secrets the caller's are" },
	{ "info",   NEEDED, "text", "`info` of the seal" },
};
static const struct member secret_ask_members[] = {
	{ "bind",   NEEDED, "text", "what it is for, as JSON (docs/gate.md): the text that was sealed beside the value, byte for byte" },
	{ "sealed", 0,      "text", "the value, sealed; base64 of the ephemeral key, the ciphertext and its tag. Not of a canary, whose value is in `bind`" },
};
static const struct member secret_members[] = {
	{ "name",         NEEDED, "text",      "for `creds` of a spec" },
	{ "bind",         NEEDED, "{any}",     "what it is for" },
	{ "version",      NEEDED, "count",     "how often it was set" },
	{ "created_ms",   NEEDED, "time",      "when it was first set" },
	{ "changed_ms",   NEEDED, "time",      "and last" },
	{ "last_used_ms", NEEDED, "time|null", "when a request went out with it; or was stopped, of a canary" },
	{ "uses",         NEEDED, "count",     "how many did" },
};
static const struct member secret_list_members[] = {
	{ "secrets", NEEDED, "[Secret]", "by name" },
};
/* clang-format on */
