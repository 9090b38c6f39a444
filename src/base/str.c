#include "base/str.h"

void str_room(struct str *s, size_t n)
{
	if (s->len + n + 1 > s->cap) {
		size_t cap = s->cap ? s->cap : 128;

		while (cap < s->len + n + 1)
			cap *= 2;
		s->data = mem_grow(s->data, cap);
		s->cap = cap;
	}
}

void str_addn(struct str *s, const void *bytes, size_t n)
{
	if (s->overflow || n > s->max - s->len) {
		s->overflow = true;
		return;
	}
	str_room(s, n);
	if (n > 0)
		memcpy(s->data + s->len, bytes, n);
	s->len += n;
	s->data[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
	str_addn(s, text, strlen(text));
}

void str_addf(struct str *s, const char *fmt, ...)
{
	char small[256];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	if (n < 0) {
		s->overflow = true;
		return;
	}
	if ((size_t)n < sizeof small) {
		str_addn(s, small, (size_t)n);
		return;
	}
	AUTO(freep) char *big = mem_alloc((size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(big, (size_t)n + 1, fmt, ap);
	va_end(ap);
	str_addn(s, big, (size_t)n);
}

void str_clear(struct str *s)
{
	s->len = 0;
	s->overflow = false;
	if (s->data)
		s->data[0] = '\0';
}

void str_done(struct str *s)
{
	free(s->data);
	s->data = NULL;
	s->len = s->cap = 0;
	s->overflow = false;
}

void str_wipe(struct str *s)
{
	if (s->data)
		explicit_bzero(s->data, s->cap);
	str_done(s);
}
