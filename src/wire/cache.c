#include "wire/cache.h"

#include "wire/hostname.h"

bool cache_hello_check(const struct cache_hello *h, size_t n, size_t n_fds)
{
	char canonical[GATE_NAME_SIZE];

	return n == sizeof *h && n_fds == CACHE_FDS && h->version == CACHE_VERSION && h->port > 0 &&
	       h->is_tls <= 1 && h->zero == 0 && memchr(h->name, '\0', sizeof h->name) &&
	       hostname_read(h->name, strlen(h->name), canonical) &&
	       strcmp(canonical, h->name) == 0;
}

static const char *const words[] = {
	[CACHE_NONE] = "",     [CACHE_HIT] = "hit",   [CACHE_REVALIDATED] = "revalidated",
	[CACHE_MISS] = "miss", [CACHE_PASS] = "pass", [CACHE_ABSENT] = "absent",
};
_Static_assert(COUNT(words) == CACHE_WORDS, "a word is missing");

const char *cache_word_name(enum cache_word w)
{
	return words[w];
}

enum cache_word cache_word_read(struct span text)
{
	for (enum cache_word w = CACHE_NONE + 1; w < CACHE_WORDS; w++)
		if (span_is(text, words[w]))
			return w;
	return CACHE_NONE;
}
