/*
 * docker_id.c - ids of containers. A sandbox's id has 26 letters of base 32, 130 bits: these are 33
 * digits of base 16, and zeros make them 64. So an id leads to its sandbox without a search.
 */
#include "cli/docker-internal.h"

#define LETTERS 26
#define DIGITS 33 /* 132 bits: two of them are zero */
#define PREFIX "sb_"

static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* core/id.c */
static const char digits16[] = "0123456789abcdef";

static int index_in(const char *set, char c)
{
	const char *at = c ? strchr(set, c) : NULL;

	return at ? (int)(at - set) : -1;
}

bool docker_is_digits(const char *text)
{
	size_t n = strspn(text, digits16);

	return n > 0 && n < DOCKER_ID_SIZE && !text[n];
}

void docker_id_of(const char *id, char out[DOCKER_ID_SIZE])
{
	uint32_t bits = 0;
	size_t n_bits = 0, n = 0;

	out[0] = '\0';
	if (strncmp(id, PREFIX, strlen(PREFIX)) != 0 || strlen(id) != strlen(PREFIX) + LETTERS)
		return;
	for (const char *c = id + strlen(PREFIX); *c; c++) {
		int value = index_in(letters, *c);

		if (value < 0) {
			out[0] = '\0';
			return;
		}
		bits = bits << 5 | (uint32_t)value;
		for (n_bits += 5; n_bits >= 4; n_bits -= 4)
			out[n++] = digits16[bits >> (n_bits - 4) & 15];
	}
	out[n++] = digits16[bits << 2 & 15]; /* the last two bits */
	while (n < DOCKER_ID_SIZE - 1)
		out[n++] = '0';
	out[n] = '\0';
}

bool docker_id_back(const char *digits, char out[NAME_TEXT_MAX])
{
	size_t n = (size_t)snprintf(out, NAME_TEXT_MAX, PREFIX), n_bits = 0;
	uint32_t bits = 0;
	char again[DOCKER_ID_SIZE];

	if (!docker_is_digits(digits) || strlen(digits) != DOCKER_ID_SIZE - 1)
		return false;
	for (size_t i = 0; i < DIGITS; i++) {
		bits = bits << 4 | (uint32_t)index_in(digits16, digits[i]);
		for (n_bits += 4; n_bits >= 5; n_bits -= 5)
			out[n++] = letters[bits >> (n_bits - 5) & 31];
	}
	out[n] = '\0';
	docker_id_of(out, again); /* only what we would print */
	return strcmp(again, digits) == 0;
}
