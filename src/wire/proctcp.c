#include "wire/proctcp.h"

/* The next word; false at the end. */
static bool next_word(struct span *rest, struct span *out)
{
	size_t n = 0;

	while (rest->len > 0 && *rest->at == ' ')
		*rest = span_after(*rest, 1);
	while (n < rest->len && rest->at[n] != ' ' && rest->at[n] != '\n')
		n++;
	*out = (struct span){ rest->at, n };
	*rest = span_after(*rest, n);
	return n > 0;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* All of it, and not too much of it. */
static bool hex_number(struct span text, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;

	if (text.len == 0)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int digit = digit_of(text.at[i]);

		if (digit < 0 || n > (max - (unsigned int)digit) / 16)
			return false;
		n = n * 16 + (unsigned int)digit;
	}
	*out = n;
	return true;
}

/* The kernel prints the address as words of the machine, which hold bytes in network order. */
static bool read_address(struct span text, struct proctcp *out)
{
	size_t words = text.len / 8;

	if (text.len != 8 && text.len != 32)
		return false;
	for (size_t i = 0; i < words; i++) {
		uint64_t n;

		if (!hex_number((struct span){ text.at + i * 8, 8 }, UINT32_MAX, &n))
			return false;
		uint32_t word = (uint32_t)n;

		memcpy(out->address + i * 4, &word, sizeof word);
	}
	out->is_v6 = words == 4;
	return true;
}

static bool read_local(struct span text, struct proctcp *out)
{
	const char *colon = memchr(text.at, ':', text.len);
	uint64_t port;

	if (!colon)
		return false;
	size_t n = (size_t)(colon - text.at);

	if (!hex_number(span_after(text, n + 1), UINT16_MAX, &port))
		return false;
	out->port = (uint16_t)port;
	return read_address((struct span){ text.at, n }, out);
}

bool proctcp_line(struct span line, struct proctcp *out)
{
	struct proctcp found = { .port = 0 };
	struct span word;
	uint64_t state;

	if (!next_word(&line, &word) || word.at[word.len - 1] != ':' || !next_word(&line, &word) ||
	    !read_local(word, &found))
		return false;
	if (!next_word(&line, &word) || !next_word(&line, &word) ||
	    !hex_number(word, UINT8_MAX, &state))
		return false;
	found.state = (unsigned int)state;
	*out = found;
	return true;
}
