/*
 * server.c - the life of a server: listening, accepting, and what happens when there are too many.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "api/server-internal.h"
#include "base/advice.h"
#include "base/fd.h"
#include "base/limits.h"
#include "os/file.h"
#include "os/pulse.h"
#include "os/unix.h"

#define ACCEPTS_MAX 64 /* of one event; others wait */
#define PAUSE_MS 100

/* ---- accepting --------------------------------------------------------------------- */

/* The oldest idle connection ends. Returns false when all are busy. */
static bool make_room(struct server *s)
{
	if (s->idle.next == &s->idle)
		return false;
	conn_free(CONN_OF(s->idle.next, ring));
	return true;
}

static void refuse(struct listener *l, int fd)
{
	if (!l->tls)
		reply_refuse(l->server, fd);
	fd_close(&fd);
}

static void open_reserve(struct server *s)
{
	int r = os_openat(AT_FDCWD, "/dev/null", O_RDONLY, 0);

	s->reserve_fd = r < 0 ? -1 : r;
}

/* The kernel has no memory, or somebody took the reserve: to look again at once would only burn
 * time. */
static void pause_listening(struct server *s)
{
	for (struct listener *l = s->listeners; l; l = l->next)
		(void)loop_change(s->loop, &l->watch, 0); /* else it wakes us */
	timer_set(&s->timers, &s->pause, PAUSE_MS);
}

static void resume_listening(struct timer *t)
{
	struct server *s = (struct server *)(void *)((char *)t - offsetof(struct server, pause));
	bool is_whole = true;

	if (s->reserve_fd < 0)
		open_reserve(s);
	for (struct listener *l = s->listeners; l; l = l->next)
		is_whole &= loop_change(s->loop, &l->watch, EPOLLIN) == 0;
	if (!is_whole)
		timer_set(&s->timers, &s->pause, PAUSE_MS);
}

/* No descriptor is left. One that waits is taken with the reserve, and told so: left in the queue
 * it would keep the listener ready, and wait for nothing. Returns false to stop for now. */
static bool shed(struct listener *l)
{
	struct server *s = l->server;

	if (make_room(s))
		return true;
	fd_close(&s->reserve_fd);
	int fd = os_accept(l->watch.fd);

	if (fd >= 0)
		refuse(l, fd);
	open_reserve(s);
	if (s->reserve_fd < 0)
		pause_listening(s);
	return fd >= 0 && s->reserve_fd >= 0;
}

/* Returns false to stop for now. */
static bool on_accepted(struct listener *l, int r)
{
	struct server *s = l->server;

	switch (-r) {
	case EAGAIN:
		return false;
	case EMFILE:
	case ENFILE:
		return shed(l);
	case ENOBUFS:
	case ENOMEM:
		pause_listening(s);
		return false;
	default:
		break;
	}
	if (r < 0)
		return true; /* accept(2): errors of a connection that is over already */
	if (s->n_conns >= s->connections_max && !make_room(s))
		refuse(l, r);
	else
		conn_new(l, r);
	return true;
}

static void ready(struct watch *w, uint32_t events)
{
	struct listener *l = (struct listener *)(void *)w;
	struct server *s = l->server;

	(void)events;
	/* A request may be served in there, and that may end the listening. */
	for (int i = 0; i < ACCEPTS_MAX && !s->is_draining; i++)
		if (!on_accepted(l, os_accept(w->fd)))
			break;
}

/* ---- listening --------------------------------------------------------------------- */

/* Takes `fd`. */
static int listen_on(struct server *s, int fd, struct listener how, struct err *e)
{
	struct listener *l = mem_alloc(sizeof *l);
	int r = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);

	*l = how;
	l->watch = (struct watch){ .fd = fd, .ready = ready };
	l->server = s;
	r = r < 0 ? -errno : loop_add(s->loop, &l->watch, EPOLLIN);
	if (r < 0) {
		fd_close(&fd);
		free(l);
		return err_sys(e, -r, "watch a listening socket");
	}
	l->next = s->listeners;
	s->listeners = l;
	return 0;
}

int server_listen_unix(struct server *s, int fd, struct err *e)
{
	(void)os_refuse_fds(fd); /* a request is bytes */
	return listen_on(s, fd, (struct listener){ .door = DOOR_UNIX }, e);
}

/* Somebody's file of that name stays, and so does a socket that somebody answers on. */
static int remove_stale(int dir_fd, const char *name, struct err *e)
{
	struct stat st;
	int r = os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r == -ENOENT)
		return 0;
	if (r == 0 && !S_ISSOCK(st.st_mode))
		return err_new(e, ERR_DENIED, "%s is not a socket", name);
	if (r == 0)
		r = os_knock_at(dir_fd, name, SOCK_STREAM);
	if (r == 0)
		return err_new(e, ERR_DENIED, "somebody else answers there");
	r = r == -ECONNREFUSED ? os_unlinkat(dir_fd, name) : r;
	return r < 0 ? err_sys(e, -r, "remove a stale %s", name) : 0;
}

int server_listen_path(struct server *s, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_TEXT_MAX];

	if (!slash || !slash[1])
		return err_new(e, ERR_INVALID, "not a path of a socket");
	snprintf(dir, sizeof dir, "%.*s/", (int)(slash - path), path);
	AUTO(fd_close) int dir_fd = os_openat(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	if (dir_fd < 0)
		return err_sys(e, -dir_fd, "open %s", dir);
	if (remove_stale(dir_fd, slash + 1, e) < 0)
		return -1;
	int fd = os_listen_at(dir_fd, slash + 1, SOCK_STREAM, 0600);
	return fd < 0 ? err_sys(e, -fd, "make the socket") : server_listen_unix(s, fd, e);
}

int server_listen_tagged(struct server *s, int fd, void *tag, struct err *e)
{
	return listen_on(s, fd, (struct listener){ .door = DOOR_TCP, .tag = tag }, e);
}

int server_adopt(struct server *s, int fd, const struct server_peer *as)
{
	int peer_fd = as->socket_fd < 0 ? -1 : fcntl(as->socket_fd, F_DUPFD_CLOEXEC, 3);

	if (s->is_draining || (as->socket_fd >= 0 && peer_fd < 0)) {
		fd_close(&peer_fd);
		fd_close(&fd);
		return -1;
	}
	return conn_adopt(s, fd, as, peer_fd) ? 0 : -1;
}

static void cut_tagged(struct ring *list, const void *tag)
{
	for (struct ring *r = list->next; r != list; r = r->next) {
		struct conn *c = CONN_OF(r, ring);

		if (c->tag != tag)
			continue;
		c->is_broken = c->is_reset = true;
		conn_soon(c);
	}
}

static void listener_free(struct listener *l)
{
	loop_remove(l->server->loop, &l->watch);
	fd_close(&l->watch.fd);
	free(l);
}

void server_unlisten(struct server *s, const void *tag)
{
	for (struct listener **at = &s->listeners; *at;) {
		struct listener *l = *at;

		if (l->tag != tag) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		listener_free(l);
	}
	cut_tagged(&s->idle, tag);
	cut_tagged(&s->busy, tag);
}

static int port_parse(const char *text, uint16_t *out)
{
	unsigned long n = 0;
	size_t i = 0;

	for (; text[i] >= '0' && text[i] <= '9' && i < 6; i++)
		n = n * 10 + (unsigned long)(text[i] - '0');
	if (i == 0 || text[i] || n > UINT16_MAX)
		return -1;
	*out = htons((uint16_t)n);
	return 0;
}

/* Up to two addresses; a name other than localhost would need a resolver. */
static int address_parse(const char *text, union os_address out[2], struct err *e)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2] = "";
	size_t n = colon ? (size_t)(colon - text) : sizeof host;
	uint16_t port;

	if (n >= sizeof host || port_parse(colon + 1, &port) < 0)
		return err_new(e, ERR_INVALID, "\"%.64s\" is not ADDRESS:PORT", text);
	memcpy(host, text, n);
	out[0].v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	out[1].v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port };
	if (strcmp(host, "localhost") == 0) {
		out[0].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		out[1].v6.sin6_addr = in6addr_loopback;
		return 2;
	}
	if (inet_pton(AF_INET, host, &out[0].v4.sin_addr) == 1)
		return 1;
	if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		out[0] = out[1];
		if (inet_pton(AF_INET6, host + 1, &out[0].v6.sin6_addr) == 1)
			return 1;
	}
	return err_new(e, ERR_INVALID,
	               "\"%.64s\" is neither 1.2.3.4:PORT, [::1]:PORT nor "
	               "localhost:PORT",
	               text);
}

static enum advice advice_of_listen(int error)
{
	static const struct {
		int error;
		enum advice advice;
	} rows[] = { { EADDRINUSE, ADVICE_PORT_TAKEN },
		     { EACCES, ADVICE_PORT_LOW },
		     { EADDRNOTAVAIL, ADVICE_NO_ADDRESS } };

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].error == error)
			return rows[i].advice;
	return ADVICE_NONE;
}

static int bind_one(struct server *s, const union os_address *a, struct tls_context *tls,
                    struct err *e)
{
	int fd = os_listen_tcp(a);

	if (fd < 0) {
		err_sys(e, -fd, "listen");
		return err_advise(e, advice_of_listen(-fd));
	}
	int port = os_port(fd);

	if (listen_on(s, fd, (struct listener){ .door = DOOR_TCP, .tls = tls }, e) < 0)
		return -1;
	return port < 0 ? err_sys(e, -port, "ask for the port") : port;
}

/* To all of them; returns the port. */
static int bind_all(struct server *s, union os_address a[2], int n, struct tls_context *tls,
                    struct err *e)
{
	int port = bind_one(s, &a[0], tls, e);

	if (port < 0 || n == 1)
		return port;
	a[1].v6.sin6_port = htons((uint16_t)port);
	/* A host may have no IPv6, also not for itself. */
	if (bind_one(s, &a[1], tls, e) < 0 && e->sys != EADDRNOTAVAIL && e->sys != EAFNOSUPPORT)
		return -1;
	return port;
}

int server_listen_tcp(struct server *s, const char *address, const char *cert, const char *key,
                      struct err *e)
{
	union os_address a[2];
	int n = address_parse(address, a, e);

	if (n < 0)
		return -1;
	if (!cert != !key)
		return err_new(e, ERR_INVALID, "TLS needs a certificate and its key");
	if (cert && tls_context_add(&s->contexts, cert, key, e) < 0)
		return -1;
	int port = bind_all(s, a, n, cert ? s->contexts : NULL, e);

	return port < 0 ? err_wrap(e, "%.64s", address) : port;
}

/* ---- life -------------------------------------------------------------------------- */

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

struct server *server_new(struct loop *l, const struct server_ops *ops, struct server_limits limits,
                          struct err *e)
{
	struct server *s = mem_alloc(sizeof *s);
	int r = timers_init(&s->timers, l);

	if (r < 0) {
		free(s);
		(void)err_sys(e, -r, "make a timer");
		return NULL;
	}
	s->loop = l;
	s->ops = *ops;
	s->connections_max = or_default(limits.connections_max, 16384);
	s->memory_max = or_default(limits.memory_max, (size_t)256 << 20);
	s->wait_ms[WAIT_HEAD] = or_default(limits.head_ms, 10000);
	s->wait_ms[WAIT_IDLE] = or_default(limits.keep_alive_ms, 75000);
	s->wait_ms[WAIT_BODY] = or_default(limits.body_idle_ms, 30000);
	s->body_ms = or_default(limits.body_ms, 120000);
	s->wait_ms[WAIT_SEND] = or_default(limits.send_idle_ms, 30000) / 2; /* looked at twice */
	s->wait_ms[WAIT_LINGER] = 2000;
	s->is_single = limits.is_single;
	s->pause.fired = resume_listening;
	s->head_text.max = HEAD_TEXT_MAX;
	s->scratch = mem_alloc(READ_BYTES);
	ring_init(&s->idle);
	ring_init(&s->busy);
	open_reserve(s);
	return s;
}

static void stop_listening(struct server *s)
{
	while (s->listeners) {
		struct listener *l = s->listeners;

		s->listeners = l->next;
		listener_free(l);
	}
	timer_stop(&s->timers, &s->pause);
}

bool server_drain(struct server *s)
{
	void (*on_drained)(struct server * s) = s->ops.on_drained;

	stop_listening(s);
	s->is_draining = true;
	s->ops.on_drained = NULL; /* our answer says it */
	while (make_room(s))
		continue;
	s->ops.on_drained = on_drained;
	return s->n_conns == 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	s->ops.on_drained = NULL;
	(void)server_drain(s);
	while (s->busy.next != &s->busy)
		conn_free(CONN_OF(s->busy.next, ring));
	timers_done(&s->timers, s->loop);
	tls_contexts_free(s->contexts);
	fd_close(&s->reserve_fd);
	str_done(&s->head_text);
	free(s->scratch);
	free(s);
}

size_t server_connections(const struct server *s)
{
	return s->n_conns;
}

bool server_is_full(const struct server *s)
{
	return s->held > s->memory_max / 2;
}
