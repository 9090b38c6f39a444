/*
 * multipart.h - multipart/form-data (RFC 7578) as it comes, piece by piece; strict.
 *
 * The body begins with the first delimiter: there is no preamble. Lines end with CR LF. A part has
 * a Content-Disposition with a name, and at most MULTIPART_HEAD_MAX bytes of fields; those that
 * mean nothing here are stepped over. Behind the last delimiter nothing follows but CR LF.
 *
 *     while ((r = multipart_next(&m, &in, is_end, &ev)) > 0)    `in` shrinks from its front
 *             take ev
 *     r 0: more bytes are needed (what is left in `in` comes again, with more), or all is done:
 *     m.step == MULTIPART_DONE. -1: it is none.
 */
#pragma once

#include "base/base.h"
#include "wire/span.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046, 5.1.1 */
#define MULTIPART_HEAD_MAX (8u << 10)
#define MULTIPART_TEXT_MAX 4096

enum multipart_step { MULTIPART_FIRST, MULTIPART_HEAD, MULTIPART_BODY, MULTIPART_DONE };
enum multipart_type { MULTIPART_PART, MULTIPART_DATA, MULTIPART_END };

struct multipart {
	enum multipart_step step;
	char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CR LF - - and the boundary */
	size_t len;
};

struct multipart_event {
	enum multipart_type type;
	struct span data;                  /* DATA, in the input */
	char name[256];                    /* PART */
	char filename[MULTIPART_TEXT_MAX]; /* PART; "": none was said */
};

/* Of a Content-Type; false when it is another, or has no boundary that could be one. */
bool multipart_init(struct multipart *m, struct span content_type);
int multipart_next(struct multipart *m, struct span *in, bool is_end, struct multipart_event *out);
