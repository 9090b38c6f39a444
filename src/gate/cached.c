/*
 * cached.c - what of a connection goes to the package cache.
 *
 * Only what everybody would get the same answer to: GET and HEAD of a plain path, with nothing that
 * says who asks. Everything else goes to the server, and so does what the cache does not want.
 */
#include <fcntl.h>

#include "base/fd.h"
#include "gate/gate-internal.h"
#include "os/sock.h"
#include "wire/http.h"

bool cached_is(const struct conn *c, const struct http_head *h)
{
	static const char *const personal[] = { "Authorization", "Proxy-Authorization", "Cookie",
		                                "X-Api-Key", "Npm-Otp" };
	struct question q = conn_question(c, STAGE_CONNECT);

	if (c->gate->cache_fd < 0 || !c->name ||
	    rules_decide(&c->gate->rules, &q).cache == PKG_NONE)
		return false;
	if ((!span_is(h->method, "GET") && !span_is(h->method, "HEAD")) ||
	    h->body != HTTP_NO_BODY || h->expect_continue || h->is_upgrade_websocket ||
	    h->minor == 0 || memchr(h->path.at, '?', h->path.len))
		return false;
	for (size_t i = 0; i < COUNT(personal); i++)
		if (http_header(h, personal[i]))
			return false;
	return true;
}

enum cache_word cached_word(const struct http_head *h)
{
	const struct span *said = http_header(h, CACHE_FIELD);
	enum cache_word word = said ? cache_word_read(*said) : CACHE_NONE;

	return word == CACHE_NONE ? CACHE_PASS : word;
}

int cached_open(const struct conn *c, bool is_tls)
{
	struct cache_hello h = { .version = CACHE_VERSION, .port = c->to.port, .is_tls = is_tls };
	int fds[2];
	int r = os_socketpair(fds, SOCK_STREAM | SOCK_NONBLOCK);

	if (r < 0)
		return r;
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	const int given[CACHE_FDS] = { [CACHE_STREAM] = theirs, [CACHE_RULES] = c->gate->rules_fd };

	snprintf(h.name, sizeof h.name, "%s", c->name);
	r = os_send(c->gate->cache_fd, &h, sizeof h, given, CACHE_FDS);
	return r < 0 ? r : fd_take(&ours);
}
