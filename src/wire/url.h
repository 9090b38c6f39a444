/*
 * url.h - the path and the query of a target (RFC 3986), as bytes.
 *
 * Nothing is normalised: `.`, `..`, empty segments and an escaped slash are seen by the caller,
 * who knows what they would mean. What is escaped wrongly, or is an escaped NUL, is refused; so
 * every text that is decoded here is a C string and exact, whatever bytes a file name has.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

struct url {
	struct span path, query; /* still escaped; without the question mark */
	bool has_query;
};

/* `target` begins with a slash. */
int url_split(struct span target, struct url *out, struct err *e);

/* The next segment of a path, still escaped; `rest` keeps what follows. False at the end. A path
 * that ends with a slash ends with an empty segment. */
bool url_segment(struct span *rest, struct span *out);

enum url_part { URL_SEGMENT, URL_QUERY /* here a plus is a space */ };

/* Writes the text and a NUL into `buf`; returns its length without the NUL. */
int url_decode(enum url_part part, struct span in, char *buf, size_t cap, struct err *e);

struct url_param {
	const char *name, *value; /* decoded, in the caller's buffer; never NULL */
	size_t name_len, value_len;
	bool has_value; /* "a=" has one, "a" has none */
};

struct url_buf {
	char *at;
	size_t cap;
};

/* The next parameter of a query: 1, 0 at the end, -1. It must have a name; `buf` is for this one
 * only. */
int url_param(struct span *rest, struct url_buf buf, struct url_param *out, struct err *e);

/* Any bytes as one segment or as a name or value of a query. */
void url_encode(const void *bytes, size_t n, struct str *out);
