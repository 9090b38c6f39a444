#include "wire/fold.h"

#include <assert.h>

#include "wire/fold_table.inc"
#include "wire/utf8.h"

/* One character at the beginning of a text: its code and its length; length 1 for a byte that is no
 * UTF-8. */
static uint32_t fold_read(struct span s, size_t *n)
{
	unsigned char lead = (unsigned char)s.at[0];
	size_t len = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	*n = 1;
	if (len == 1 || len > s.len || !utf8_is(s.at, len))
		return lead;
	uint32_t code = lead & (0xffu >> (len + 1));

	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((unsigned char)s.at[i] & 0x3fu);
	*n = len;
	return code;
}

static bool fold_is_ignored(uint32_t code)
{
	for (size_t i = 0; i < COUNT(ignored) && ignored[i].first <= code; i++)
		if (code <= ignored[i].last)
			return true;
	return false;
}

static bool fold_run(uint32_t code, struct fold_name *out)
{
	for (size_t i = 0; i < COUNT(runs) && runs[i].first <= code; i++) {
		if (code > runs[i].last)
			continue;
		out->text[out->n++] = (char)(runs[i].letter + (char)(code - runs[i].first));
		return true;
	}
	return false;
}

static bool fold_spelled(uint32_t code, struct fold_name *out)
{
	for (size_t i = 0; i < COUNT(spelled) && spelled[i].code <= code; i++) {
		if (spelled[i].code != code)
			continue;
		for (const char *p = spelled[i].text; *p; p++)
			out->text[out->n++] = *p;
		return true;
	}
	return false;
}

/* NTFS: what is behind a colon is a stream of the same file, and dots and spaces at the end are cut
 * off. */
static void fold_end(struct fold_name *out)
{
	const char *stream = memchr(out->text, ':', out->n);

	if (stream && stream > out->text)
		out->n = (size_t)(stream - out->text);
	while (out->n > 0 && (out->text[out->n - 1] == ' ' || out->text[out->n - 1] == '.'))
		out->n--;
	out->text[out->n] = '\0';
}

void fold_name(struct span name, struct fold_name *out)
{
	size_t n;

	assert(name.len <= FOLD_NAME_MAX);
	out->n = 0;
	for (struct span rest = name; rest.len > 0; rest = span_after(rest, n)) {
		uint32_t code = fold_read(rest, &n);

		if (n == 1) {
			out->text[out->n++] = (char)span_lower(rest.at[0]);
			continue;
		}
		if (fold_is_ignored(code) || fold_run(code, out) || fold_spelled(code, out))
			continue;
		memcpy(out->text + out->n, rest.at, n);
		out->n += n;
	}
	fold_end(out);
}
