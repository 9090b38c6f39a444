#include "core/id.h"

#include <sys/random.h>

#define LETTERS 26
#define KEY_MAX 128

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_make(char out[ID_SIZE], const char *prefix)
{
	uint8_t random[LETTERS];
	size_t len = strlen(prefix);

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		abort(); /* the kernel's generator does not fail once it is up */
	memcpy(out, prefix, len);
	out[len++] = '_';
	for (size_t i = 0; i < LETTERS; i++)
		out[len++] = alphabet[random[i] % 32];
	out[len] = '\0';
}

bool id_is(const char *text, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	if (len != n + 1 + LETTERS || memcmp(text, prefix, n) != 0 || text[n] != '_')
		return false;
	for (size_t i = n + 1; i < len; i++)
		if (!text[i] || !strchr(alphabet, text[i]))
			return false;
	return true;
}

bool key_is(const char *text, size_t len)
{
	static const char others[] = "._:@-";

	if (len == 0 || len > KEY_MAX || text[0] == '.' || text[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!is_letter && !(c >= '0' && c <= '9') && (!c || !strchr(others, c)))
			return false;
	}
	return len < 3 || text[2] != '_';
}
