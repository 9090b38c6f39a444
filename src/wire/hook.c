#include "wire/hook.h"

#include <string.h>

/* It goes into a header. */
static bool is_id(const char *text)
{
	static const char others[] = "_.";
	size_t n = strnlen(text, HOOK_ID_SIZE);

	for (size_t i = 0; i < n; i++) {
		char c = text[i];
		bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!is_letter && !(c >= '0' && c <= '9') && !strchr(others, c))
			return false;
	}
	return n > 0 && n < HOOK_ID_SIZE;
}

bool hook_send_check(const struct hook_send *s, size_t n)
{
	if (n <= sizeof *s || n > sizeof *s + HOOK_BODY_MAX || s->type != HOOK_SEND || s->zero)
		return false;
	return is_id(s->id) && strnlen(s->body, n - sizeof *s) == n - sizeof *s - 1;
}

bool hook_end_check(const struct hook_end *e, size_t n)
{
	return n == sizeof *e && e->type == HOOK_END && e->is_given_up <= 1 && e->status < 1000;
}
