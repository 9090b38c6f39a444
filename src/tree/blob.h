/*
 * blob.h - the bytes of a file in memory.
 */
#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "wire/span.h"

struct blob {
	char *at;
	size_t len;
};

/* Reads a regular file of at most `max` bytes from its beginning; *st is of it. What /proc makes
 * up has size 0 and is read to its end. */
int blob_read(struct blob *b, int fd, struct stat *st, size_t max, struct err *e);
void blob_done(struct blob *b);

static inline struct span blob_span(const struct blob *b)
{
	return (struct span){ b->at ? b->at : "", b->len };
}
