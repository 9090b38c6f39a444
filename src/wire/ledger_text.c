#include "wire/ledger_text.h"

#define DELETE '\x7f' /* the one control character that the library leaves as it is */

static int add_piece(const char *bytes, size_t n, void *arg)
{
	struct str *out = arg;

	while (n > 0) {
		const char *at = memchr(bytes, DELETE, n);
		size_t plain = at ? (size_t)(at - bytes) : n;

		str_addn(out, bytes, plain);
		if (at)
			str_add(out, "\\u007f");
		bytes += plain + (at ? 1 : 0);
		n -= plain + (at ? 1 : 0);
	}
	return 0;
}

void ledger_text(const json_t *o, struct str *out)
{
	if (json_dump_callback(o, add_piece, out,
	                       JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII) < 0)
		out->overflow = true;
}
