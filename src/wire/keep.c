#include "wire/keep.h"

#include "wire/utf8.h"

#define DROPPED_LINE "\n[... %llu bytes dropped ...]\n"
#define SEQUENCE_MAX 4 /* bytes of one code point */

void keep_init(struct keep *k, size_t max)
{
	*k = (struct keep){ .half = max < 2 ? 1 : max / 2 };
}

void keep_done(struct keep *k)
{
	free(k->head);
	free(k->tail);
	k->head = k->tail = NULL;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void add_tail(struct keep *k, const unsigned char *p, size_t n)
{
	uint64_t at = k->bytes - k->half; /* of the first of them, in the tail's own count */

	if (n > k->half) { /* only the last of them can stay */
		at += n - k->half;
		p += n - k->half;
		n = k->half;
	}
	size_t from = (size_t)(at % k->half), first = least(n, k->half - from);

	memcpy(k->tail + from, p, first);
	memcpy(k->tail, p + first, n - first);
}

void keep_add(struct keep *k, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	size_t room = k->bytes < k->half ? k->half - (size_t)k->bytes : 0, first = least(n, room);

	if (!k->head && n > 0)
		k->head = mem_alloc(k->half);
	if (first > 0)
		memcpy(k->head + k->bytes, p, first);
	k->bytes += first;
	if (n == first)
		return;
	if (!k->tail)
		k->tail = mem_alloc(k->half);
	add_tail(k, p + first, n - first);
	k->bytes += n - first;
}

void keep_skip(struct keep *k, uint64_t n)
{
	k->skipped += n;
}

static bool is_text(const void *p, size_t n)
{
	return !memchr(p, '\0', n) && utf8_is(p, n);
}

/* How many bytes at the beginning of p belong to a code point that began before it. */
static size_t open_begin(const unsigned char *p, size_t n)
{
	size_t i = 0;

	while (i < SEQUENCE_MAX - 1 && i < n && (p[i] & 0xc0) == 0x80)
		i++;
	return i;
}

struct parts {
	const unsigned char *head, *tail;
	size_t head_len, tail_len;
	uint64_t missing;
};

static struct parts take_apart(const struct keep *k, unsigned char *unrolled)
{
	uint64_t behind = k->bytes > k->half ? k->bytes - k->half : 0;
	struct parts p = { .head = k->head,
		           .tail = unrolled,
		           .head_len = (size_t)(k->bytes - behind),
		           .tail_len = (size_t)(behind < k->half ? behind : k->half) };

	p.missing = behind - p.tail_len + k->skipped;
	size_t from = behind > k->half ? (size_t)(behind % k->half) : 0;
	for (size_t i = 0; i < p.tail_len; i++)
		unrolled[i] = k->tail[(from + i) % k->half];
	return p;
}

/* Nothing is cut unless something is missing between the two. */
static bool cut(struct parts *p)
{
	struct parts c = *p;

	if (c.missing > 0) {
		size_t open = open_begin(c.tail, c.tail_len);

		c.head_len -= utf8_open_end(c.head, c.head_len);
		c.tail += open;
		c.tail_len -= open;
		c.missing += open + (p->head_len - c.head_len);
	}
	if (!is_text(c.head, c.head_len) || !is_text(c.tail, c.tail_len))
		return false;
	*p = c;
	return true;
}

/* Without a gap the two are one text: a code point may lie across. */
static bool whole_text(const struct parts *p, struct str *out)
{
	str_addn(out, p->head, p->head_len);
	str_addn(out, p->tail, p->tail_len);
	return is_text(str_text(out), out->len);
}

bool keep_text(const struct keep *k, struct str *out)
{
	AUTO(freep) unsigned char *unrolled = mem_alloc(k->half);
	struct parts p = take_apart(k, unrolled);

	if (p.missing == 0)
		return whole_text(&p, out);
	bool is_utf8 = cut(&p);
	str_addn(out, p.head, p.head_len);
	str_addf(out, DROPPED_LINE, (unsigned long long)p.missing);
	str_addn(out, p.tail, p.tail_len);
	return is_utf8;
}

uint64_t keep_dropped(const struct keep *k)
{
	AUTO(freep) unsigned char *unrolled = mem_alloc(k->half);
	struct parts p = take_apart(k, unrolled);

	if (p.missing > 0)
		(void)cut(&p); /* what is not text is not cut */
	return p.missing;
}
