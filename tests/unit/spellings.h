/* spellings.h - one value, and texts that spell it: each has to be masked, wherever it is cut. */
#pragma once

#include "wire/spelling.h"

#define SPELLED_VALUE "S3cret/va+ue-\"<_&0"

/* clang-format off */
static const char *const spelled_texts[] = {
	"S3cret/va+ue-\"<_&0",
	"s3CRET/VA+UE-\"<_&0",                                              /* another case */
	"S3cret%2Fva%2Bue-%22%3C_%260",                                     /* percent */
	"S3cret%2fva%2bue-%22%3c_%260",
	"%53%33%63%72%65%74%2f%76%61%2b%75%65%2d%22%3c%5f%26%30",
	"S3cret\\/va+ue-\\\"<_&0",                                          /* JSON */
	"S3cret/va\\u002bue-\\u0022\\u003c_\\u00260",
	"S3cret\\/va\\u002Bue-\\u0022\\u003C_\\u00260",
	"\\u0053\\u0033\\u0063\\u0072\\u0065\\u0074/va+ue-\\\"<_&0",
	"S3cret\\x2fva+ue-\\\"\\x3c_&0",
	"S3cret&#x2F;va&#43;ue-&quot;&lt;_&amp;0",                          /* HTML */
	"S3cret&#47;va&plus;ue-&#34;&#x3c;_&#38;0",
	"5333637265742f76612b75652d223c5f2630",                             /* hex */
	"5333637265742F76612B75652D223C5F2630",
	"UzNjcmV0L3ZhK3VlLSI8XyYw",                                         /* base64 */
	"UzNjcmV0L3Zh\r\nK3VlLSI8XyYw",                                     /* in lines */
	"S3cret/v\na+ue-\"<_&0",
	"\\u0055zNjcmV0L3ZhK3VlLSI8XyYw",
	"S3c\033[1;31mret/va\033[0m+ue-\"<_&0",                             /* colours */
	"S3c\033]8;;http://x\033\\ret/va\033]8;;\007+ue-\033(B\"<_\033M&0",
};
/* clang-format on */

/* Nothing that says something is left: stars, and what is no character. */
static inline bool spelled_is_masked(struct span out)
{
	for (size_t used; out.len > 0; out = span_after(out, used)) {
		int c = spelling_next(out, SPELLING_LITERAL, &used);

		if (c != SPELLING_NONE && c != '*')
			return false;
	}
	return true;
}
