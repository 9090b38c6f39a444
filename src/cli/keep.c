#include "cli/keep.h"

#define DROPPED_LINE "\n[... %llu bytes dropped ...]\n"

static void keep_byte(struct keep *k, unsigned char byte)
{
	if (k->bytes < KEEP_HALF)
		k->head[k->bytes] = byte;
	else
		k->tail[(k->bytes - KEEP_HALF) % KEEP_HALF] = byte;
	k->bytes++;
}

void keep_add(struct keep *k, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		keep_byte(k, p[i]);
}

uint64_t keep_dropped(const struct keep *k)
{
	return k->bytes > 2 * KEEP_HALF ? k->bytes - 2 * KEEP_HALF : 0;
}

/* Length of the sequence that begins at p, or 0 when it is none (RFC 3629). */
static size_t sequence(const unsigned char *p, size_t n)
{
	static const struct {
		unsigned char first, last, low, high;
		size_t len;
	} forms[] = {
		{ 0x01, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t f = 0; f < COUNT(forms); f++) {
		size_t len = forms[f].len;

		if (p[0] < forms[f].first || p[0] > forms[f].last || len > n)
			continue;
		if (len > 1 && (p[1] < forms[f].low || p[1] > forms[f].high))
			return 0;
		for (size_t i = 2; i < len; i++)
			if ((p[i] & 0xc0) != 0x80)
				return 0;
		return len;
	}
	return 0;
}

/* Bytes of p that are whole, valid sequences; NUL is refused: JSON text cannot carry it. */
static size_t valid_prefix(const unsigned char *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		size_t len = sequence(p + at, n - at);

		if (len == 0)
			break;
		at += len;
	}
	return at;
}

/* The beginning of a sequence whose rest was cut off. */
static bool is_truncated(const unsigned char *p, size_t n)
{
	size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

	if (p[0] < 0xc2 || p[0] > 0xf4 || n >= len)
		return false;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return false;
	return true;
}

uint64_t keep_cut(const struct keep *k)
{
	AUTO(str_done) struct str text = { .max = 4 * KEEP_HALF };
	uint64_t dropped = keep_dropped(k);
	char line[64];
	int n = snprintf(line, sizeof line, DROPPED_LINE, (unsigned long long)dropped);

	if (dropped == 0 || !keep_text(k, &text))
		return 0;
	return 2 * KEEP_HALF + (uint64_t)n - text.len;
}

bool keep_text(const struct keep *k, struct str *out)
{
	size_t head = k->bytes < KEEP_HALF ? (size_t)k->bytes : KEEP_HALF;
	uint64_t dropped = keep_dropped(k);
	AUTO(freep) unsigned char *tail = mem_alloc(KEEP_HALF);
	size_t n =
	    k->bytes <= KEEP_HALF
		? 0
		: (size_t)(k->bytes - KEEP_HALF < KEEP_HALF ? k->bytes - KEEP_HALF : KEEP_HALF);
	size_t from = dropped ? (size_t)((k->bytes - KEEP_HALF) % KEEP_HALF) : 0;

	for (size_t i = 0; i < n; i++)
		tail[i] = k->tail[(from + i) % KEEP_HALF];
	if (dropped == 0) {
		str_addn(out, k->head, head);
		str_addn(out, tail, n);
		return valid_prefix((const unsigned char *)str_text(out), out->len) == out->len;
	}
	size_t cut = valid_prefix(k->head, head);
	size_t skip = 0;
	while (skip < 3 && skip < n && (tail[skip] & 0xc0) == 0x80)
		skip++;
	size_t tail_len = valid_prefix(tail + skip, n - skip);
	bool is_text =
	    (cut == head || is_truncated(k->head + cut, head - cut)) && tail_len == n - skip;

	str_addn(out, k->head, is_text ? cut : head);
	str_addf(out, DROPPED_LINE, (unsigned long long)dropped);
	str_addn(out, tail + (is_text ? skip : 0), is_text ? tail_len : n);
	return is_text;
}
