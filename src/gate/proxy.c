#include "gate/proxy.h"

#include <arpa/inet.h>

#include "base/fd.h"
#include "os/net.h"
#include "wire/http.h"

enum step { HTTP_ASKED, SOCKS_GREETED, SOCKS_ASKED };

/* clang-format off */
enum { SOCKS_VERSION = 5, SOCKS_NO_AUTH = 0, SOCKS_CONNECT = 1,
       SOCKS_V4 = 1, SOCKS_NAME = 3, SOCKS_V6 = 4 };
/* clang-format on */

#define PROXY_OF(w) ((struct proxy *)(void *)((char *)(w)-offsetof(struct proxy, watch)))

void proxy_stop(struct proxy *p)
{
	if (p->watch.fd >= 0)
		loop_remove(p->loop, &p->watch);
	fd_close(&p->watch.fd);
}

static void finish(struct proxy *p, bool is_open)
{
	int fd = -1;

	if (is_open) {
		loop_remove(p->loop, &p->watch);
		fd = fd_take(&p->watch.fd);
	}
	proxy_stop(p);
	p->done(p->owner, fd);
}

/* ---- what is said -------------------------------------------------------------------- */

static void say_connect(struct proxy *p)
{
	char host[INET6_ADDRSTRLEN + 2] = "";
	const char *to = p->name;

	if (!to) {
		char text[INET6_ADDRSTRLEN];

		inet_ntop(p->to.is_v6 ? AF_INET6 : AF_INET, p->to.at, text, sizeof text);
		snprintf(host, sizeof host, p->to.is_v6 ? "[%s]" : "%s", text);
		to = host;
	}
	int n =
	    snprintf((char *)p->out, sizeof p->out, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n",
	             to, p->to.port, to, p->to.port);

	p->out_len = n > 0 && (size_t)n < sizeof p->out ? (size_t)n : 0;
}

static void say_socks(struct proxy *p)
{
	uint8_t *o = p->out;
	size_t n = p->name ? strlen(p->name) : p->to.is_v6 ? 16 : 4;
	const void *at = p->name ? (const void *)p->name : p->to.at;

	*o++ = SOCKS_VERSION;
	*o++ = SOCKS_CONNECT;
	*o++ = 0;
	*o++ = p->name ? SOCKS_NAME : p->to.is_v6 ? SOCKS_V6 : SOCKS_V4;
	if (p->name)
		*o++ = (uint8_t)n;
	memcpy(o, at, n);
	o += n;
	*o++ = (uint8_t)(p->to.port >> 8);
	*o++ = (uint8_t)p->to.port;
	p->out_len = (size_t)(o - p->out);
}

/* ---- what is answered: its length, 0 for more, -1 for no ------------------------------- */

static int read_connect(const uint8_t *in, size_t n)
{
	static struct http_head h;
	int r = http_response_head((const char *)in, n, HTTP_ASKED_CONNECT, &h);

	if (r > 0 && (h.status < 200 || h.status > 299))
		return -1;
	return r < 0 ? -1 : r;
}

static int read_greeting(const uint8_t *in, size_t n)
{
	if (n < 2)
		return 0;
	return in[0] == SOCKS_VERSION && in[1] == SOCKS_NO_AUTH ? 2 : -1;
}

static int read_socks(const uint8_t *in, size_t n)
{
	size_t bound;

	if (n < 5)
		return 0;
	if (in[0] != SOCKS_VERSION || in[1] != 0)
		return -1;
	if (in[3] == SOCKS_NAME)
		bound = 1u + in[4];
	else
		bound = in[3] == SOCKS_V6 ? 16 : 4;
	if (in[3] != SOCKS_NAME && in[3] != SOCKS_V6 && in[3] != SOCKS_V4)
		return -1;
	return n < 4 + bound + 2 ? 0 : (int)(4 + bound + 2);
}

/* ---- the loop ------------------------------------------------------------------------ */

static void advance(struct proxy *p);

static void say(struct proxy *p)
{
	struct iovec iov = { p->out + p->out_sent, p->out_len - p->out_sent };
	int n = os_sendv(p->watch.fd, &iov, 1);

	if (n < 0 && n != -EAGAIN) {
		finish(p, false);
		return;
	}
	p->out_sent += n > 0 ? (size_t)n : 0;
	if (loop_change(p->loop, &p->watch,
	                p->out_sent < p->out_len ? EPOLLOUT : EPOLLIN | EPOLLET) < 0)
		finish(p, false);
}

/* Looked at first, and then exactly the answer is taken. */
static void hear(struct proxy *p)
{
	static int (*const readers[])(const uint8_t *in, size_t n) = {
		[HTTP_ASKED] = read_connect,
		[SOCKS_GREETED] = read_greeting,
		[SOCKS_ASKED] = read_socks,
	};
	static uint8_t in[PROXY_ANSWER_MAX];
	int n = os_peek(p->watch.fd, in, sizeof in);

	if (n == -EAGAIN)
		return;
	int used = n <= 0 ? -1 : readers[p->step](in, (size_t)n);

	if (used == 0 && n == PROXY_ANSWER_MAX)
		used = -1;
	if (used > 0 && os_recv_some(p->watch.fd, in, (size_t)used) != used)
		used = -1;
	if (used < 0)
		finish(p, false);
	else if (used > 0)
		advance(p);
}

static void advance(struct proxy *p)
{
	if (p->step != SOCKS_GREETED) {
		finish(p, true);
		return;
	}
	p->step = SOCKS_ASKED;
	p->out_sent = 0;
	say_socks(p);
	say(p);
}

static void ready(struct watch *w, uint32_t events)
{
	struct proxy *p = PROXY_OF(w);

	(void)events;
	if (p->out_sent < p->out_len)
		say(p);
	else
		hear(p);
}

void proxy_start(struct proxy *p, int fd)
{
	static const uint8_t greeting[] = { SOCKS_VERSION, 1, SOCKS_NO_AUTH };

	p->watch = (struct watch){ .fd = fd, .ready = ready };
	p->out_sent = 0;
	if (p->is_socks) {
		p->step = SOCKS_GREETED;
		p->out_len = sizeof greeting;
		memcpy(p->out, greeting, sizeof greeting);
	} else {
		p->step = HTTP_ASKED;
		say_connect(p);
	}
	if (p->out_len == 0 || loop_add(p->loop, &p->watch, EPOLLOUT) < 0)
		finish(p, false);
}
