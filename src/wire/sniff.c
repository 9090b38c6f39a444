#include "wire/sniff.h"

#include "wire/http-internal.h"

enum { TOKEN_MAX = SNIFF_MAX / 2, RECORD_FIRST = 0x14, RECORD_LAST = 0x17 };

/* Their targets need not look like one: CONNECT has host:port, PRI is the preface of HTTP/2. */
static const char *const methods[] = { "GET",    "HEAD",    "POST",    "PUT",   "PATCH",
	                               "DELETE", "OPTIONS", "CONNECT", "TRACE", "PRI" };

/* A record of TLS or SSLv3, or the hello of SSLv2 that offers one of these. */
static enum sniff sniff_tls(const uint8_t *p, size_t n)
{
	if (p[0] >= RECORD_FIRST && p[0] <= RECORD_LAST)
		return n < 2 ? SNIFF_MORE : p[1] == 3 ? SNIFF_TLS : SNIFF_OTHER;
	if (p[0] < 0x80)
		return SNIFF_OTHER;
	if (n < 4)
		return n == 3 && p[2] != 1 ? SNIFF_OTHER : SNIFF_MORE;
	return p[2] == 1 && p[3] <= 3 ? SNIFF_TLS : SNIFF_OTHER;
}

static bool is_ssh(struct span s)
{
	static const char banner[] = "SSH-";

	return s.len >= sizeof banner - 1 && memcmp(s.at, banner, sizeof banner - 1) == 0;
}

static bool is_method(struct span token)
{
	for (size_t i = 0; i < COUNT(methods); i++)
		if (span_is(token, methods[i]))
			return true;
	return false;
}

/* What follows the word and the space behind it: a target? */
static enum sniff sniff_target(struct span s)
{
	static const char *const starts[] = { "/", "*", "http:", "https:" };
	bool is_open = s.len == 0;

	for (size_t i = 0; i < COUNT(starts); i++) {
		size_t want = strlen(starts[i]);
		size_t n = s.len < want ? s.len : want;

		if (!span_same_nocase((struct span){ s.at, n }, (struct span){ starts[i], n }))
			continue;
		if (n == want)
			return SNIFF_HTTP;
		is_open = true;
	}
	return is_open ? SNIFF_MORE : SNIFF_OTHER;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A word, space, a target. Servers skip blanks before it, and some take more than one behind. */
static enum sniff sniff_http(struct span s)
{
	size_t n = 0;

	if (is_space(s.at[0]))
		return SNIFF_HTTP;
	while (n < s.len && n <= TOKEN_MAX && http_is(s.at[n], C_TOKEN))
		n++;
	if (n == s.len && n <= TOKEN_MAX)
		return SNIFF_MORE;
	if (n == 0 || n > TOKEN_MAX || !is_space(s.at[n]) || s.at[n] == '\r' || s.at[n] == '\n')
		return SNIFF_OTHER;
	if (is_method((struct span){ s.at, n }))
		return SNIFF_HTTP;
	while (n < s.len && is_space(s.at[n]))
		n++;
	return sniff_target(span_after(s, n));
}

enum sniff sniff(const uint8_t *p, size_t n)
{
	struct span s = { (const char *)p, n < SNIFF_MAX ? n : SNIFF_MAX };

	if (n == 0)
		return SNIFF_MORE;
	if (is_ssh(s))
		return SNIFF_SSH;
	enum sniff found = sniff_tls(p, n);

	if (found == SNIFF_OTHER)
		found = sniff_http(s);
	return found == SNIFF_MORE && n >= SNIFF_MAX ? SNIFF_HTTP : found;
}
