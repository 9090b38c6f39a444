/*
 * connect.h - the Connect protocol as far as the SDKs of E2B speak it: JSON, without compression.
 *
 * One call is a POST. A unary one has a JSON body both ways, and says no by its status. In a stream
 * each message is an envelope: a byte of flags, its length in four bytes (big endian), JSON. The
 * answer is 200 in any case and ends with exactly one envelope flagged CONNECT_END, which is {} or
 * {"error":{"code","message"}}.
 */
#pragma once

#include "base/str.h"
#include "wire/code.h"
#include "wire/span.h"

#define CONNECT_HEAD 5
#define CONNECT_END 0x02

enum connect_code {
	CONNECT_UNKNOWN,
	CONNECT_INVALID_ARGUMENT,
	CONNECT_DEADLINE_EXCEEDED,
	CONNECT_NOT_FOUND,
	CONNECT_ALREADY_EXISTS,
	CONNECT_PERMISSION_DENIED,
	CONNECT_RESOURCE_EXHAUSTED,
	CONNECT_FAILED_PRECONDITION,
	CONNECT_UNIMPLEMENTED,
	CONNECT_INTERNAL,
	CONNECT_UNAVAILABLE,
	CONNECT_UNAUTHENTICATED,
	CONNECT_CODES
};

const char *connect_name(enum connect_code code);
int connect_status(enum connect_code code); /* of HTTP, for a unary call */
enum connect_code connect_of(enum fail_code code);

/* The one message of a request for a stream: all of the body is its envelope, and it is plain. */
bool connect_message(struct span body, struct span *out);
/* An envelope, behind what is in `out`. */
void connect_print(struct str *out, unsigned int flags, struct span message);
