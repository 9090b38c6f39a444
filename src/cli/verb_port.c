/*
 * verb_port.c - ports of a sandbox: which there are, one of them here.
 *
 * A bare forward carries each connection over a request of its own, so that it works with any
 * daemon that can be reached, and with the caller's own rights. A connection is two processes that
 * copy, one for each way: nothing that is slow holds up anything else.
 */
#include "cli/verbs.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/table.h"
#include "wire/escape.h"
#include "wire/forward.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (1u << 20)
#define COPY_BYTES (64u << 10)
#define CONNECTIONS_MAX 256
#define LOOK_EACH_MS 100

/* ---- ports --------------------------------------------------------------------------- */

/* Where it is forwarded to, or "". */
static const char *url_of(const json_t *forwarded, int64_t port)
{
	json_t *f;
	size_t i;

	json_array_foreach(forwarded, i, f) if (number_of(f, "port") == port) return text_of(f,
	                                                                                     "url");
	return "";
}

static bool has_listener(const json_t *listeners, int64_t port)
{
	json_t *l;
	size_t i;

	json_array_foreach(listeners, i, l) if (number_of(l, "port") == port) return true;
	return false;
}

static void add_row(struct table *t, int64_t port, const char *address, const char *url)
{
	table_cellf(t, "%lld", (long long)port);
	table_cell(t, address);
	table_cell(t, url);
}

static int ports_run(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "PORT", "ADDRESS", "FORWARDED", NULL };
	const struct verb_opts *opts = c->opts;
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;
	json_t *row;
	size_t i;

	if (sandbox_call(c, "GET", "/v1/sandboxes/{}/ports", NULL, &answer, e) < 0)
		return -1;
	if (opts->is_json)
		return print_json(json_incref(answer), e);
	const json_t *listeners = json_object_get(answer, "listeners");
	const json_t *forwarded = json_object_get(answer, "forwarded");

	table_init(&t, heads);
	json_array_foreach(listeners, i, row)
	    add_row(&t, number_of(row, "port"), text_of(row, "address"),
	            url_of(forwarded, number_of(row, "port")));
	json_array_foreach(forwarded, i, row) if (!has_listener(listeners, number_of(row, "port")))
	    add_row(&t, number_of(row, "port"), "", text_of(row, "url"));
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static const struct flag ports_flags[] = { FLAG_JSON };

const struct verb cmd_ports = { .name = "ports",
	                        .usage = "SANDBOX [--json]",
	                        .does = "who listens inside, and which ports are forwarded",
	                        .flags = ports_flags,
	                        .n_flags = COUNT(ports_flags),
	                        .words = "sandbox",
	                        .opts_size = sizeof(struct verb_opts),
	                        .words_min = 1,
	                        .words_max = 1,
	                        .run = ports_run };

/* ---- port: what is asked ------------------------------------------------------------- */

struct port {
	struct verb_opts common;
	bool is_url, is_removed;
	struct flag_number ttl, wait;
	/* PORT[:LOCAL] */
	unsigned long port, local;
	bool is_local_named;
};

static int take_port(const char *text, char end, unsigned long *out, const char **rest)
{
	char *stop;

	*out = strtoul(text, &stop, 10);
	*rest = stop;
	return text[0] >= '0' && text[0] <= '9' && *out <= UINT16_MAX && (*stop == end || !*stop)
	           ? 0
	           : -1;
}

static int take_ports(struct port *x, const char *text, struct err *e)
{
	const char *rest;

	if (take_port(text, ':', &x->port, &rest) < 0 || x->port == 0 ||
	    (*rest && take_port(rest + 1, '\0', &x->local, &rest) < 0))
		return err_new(e, ERR_INVALID, "%.32s is not PORT or PORT:LOCAL", text);
	x->is_local_named = x->local > 0;
	return 0;
}

static void path_of(const struct verb_call *c, const char *pattern, struct str *out)
{
	const struct port *x = c->opts;
	char port[8];
	const char *texts[] = { c->words.at[0], port };

	snprintf(port, sizeof port, "%lu", x->port);
	client_path(out, pattern, texts);
}

/* ---- port: by HTTP ------------------------------------------------------------------- */

static void put_ms(json_t *body, const char *key, const struct flag_number *n)
{
	char text[32];

	if (!n->is_set)
		return;
	snprintf(text, sizeof text, "%llums", (unsigned long long)n->value);
	json_object_set_new(body, key, json_string(text));
}

static int forward(struct verb_call *c, struct err *e)
{
	const struct port *x = c->opts;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *made = NULL;
	json_t *body = json_pack("{sI}", "port", (json_int_t)x->port);

	if (x->is_local_named)
		json_object_set_new(body, "local_port", json_integer((json_int_t)x->local));
	put_ms(body, "ttl", &x->ttl);
	put_ms(body, "wait", &x->wait);
	c->client.doing = "waiting for the port";
	if (sandbox_call(c, "POST", "/v1/sandboxes/{}/ports", body, &made, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(made), e);
	if (!json_is_true(json_object_get(made, "ready")))
		fprintf(stderr, "caisson: nothing listens on port %lu yet\n", x->port);
	str_addf(&out, "%s\n" FORWARD_TOKEN ": %s\n", text_of(made, "url"),
	         text_of(json_object_get(made, "headers"), FORWARD_TOKEN));
	str_addf(&out, "%s\n", text_of(made, "open_url"));
	return print_text(&out, e);
}

static int unforward(struct verb_call *c, struct err *e)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	path_of(c, "/v1/sandboxes/{}/ports/{}", &path);
	return client_call(&c->client, "DELETE", str_text(&path), NULL, NULL, e);
}

/* ---- port: bare connections ---------------------------------------------------------- */

static int send_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -1;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Until one side ends; the other is told. What breaks, breaks both ways. */
static void copy(int from, int to)
{
	static char buf[COPY_BYTES];
	ssize_t n;

	do {
		n = recv(from, buf, sizeof buf, 0);
	} while ((n < 0 && errno == EINTR) || (n > 0 && send_all(to, buf, (size_t)n) == 0));
	if (n == 0) {
		(void)shutdown(to, SHUT_WR);
		return;
	}
	(void)shutdown(from, SHUT_RDWR);
	(void)shutdown(to, SHUT_RDWR);
}

static int dial(struct client *client, const char *path, struct err *e)
{
	struct client_ask ask = { .method = "GET", .path = path, .protocol = FORWARD_PROTOCOL };

	return client_upgrade(client, &ask, e);
}

/* In a process of its own, which ends here. */
static _Noreturn void serve_one(const struct verb_call *c, const char *path, int local_fd)
{
	struct client client;
	struct err e = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	client_init(&client);
	client.address = c->client.address;
	if (dial(&client, path, &e) < 0) {
		fprintf(stderr, "caisson: %s\n", escape_brief(e.msg));
		_exit(1);
	}
	int r = send_all(local_fd, str_text(&client.in) + client.in_from,
	                 client.in.len - client.in_from);
	pid_t back = r < 0 ? -1 : fork();

	if (back == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		copy(client.fd, local_fd);
		_exit(0);
	}
	if (back > 0) {
		copy(local_fd, client.fd);
		(void)waitpid(back, NULL, 0);
	}
	_exit(0);
}

/* The same number when it is free and none was named. */
static int listen_on(const struct port *x, unsigned long port, struct err *e)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		                 .sin_port = htons((uint16_t)port),
		                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, SOMAXCONN) < 0) {
		if (port > 0 && !x->is_local_named)
			return listen_on(x, 0, e);
		return err_sys(e, errno, "listen on 127.0.0.1:%lu", port);
	}
	return fd_take(&fd);
}

static int await_port(struct verb_call *c, const char *path, struct err *e)
{
	const struct port *x = c->opts;

	for (uint64_t waited_ms = 0;; waited_ms += LOOK_EACH_MS) {
		struct client client;

		client_init(&client);
		client.address = c->client.address;
		int r = dial(&client, path, e);

		if (r < 0 && waited_ms >= x->wait.value) {
			json_decref(c->client.problem);
			c->client.problem = json_incref(client.problem);
		}
		client_done(&client);
		if (r == 0 || waited_ms >= x->wait.value)
			return r;
		(void)poll(NULL, 0, LOOK_EACH_MS);
	}
}

static int announce(const struct verb_call *c, int fd, struct err *e)
{
	const struct port *x = c->opts;
	struct sockaddr_in a = { .sin_port = 0 };
	socklen_t n = sizeof a;
	AUTO(str_done) struct str out = { .max = 256 };

	if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return err_sys(e, errno, "ask for the port");
	if (x->common.is_json)
		return print_json(json_pack("{sI,si}", "port", (json_int_t)x->port, "local_port",
		                            (int)ntohs(a.sin_port)),
		                  e);
	str_addf(&out, "127.0.0.1:%u\n", (unsigned int)ntohs(a.sin_port));
	return print_text(&out, e);
}

/* Until a signal ends it, and its connections with it. */
static int serve(const struct verb_call *c, const char *path, int listen_fd, struct err *e)
{
	int n = 0;

	for (;;) {
		AUTO(fd_close) int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return err_sys(e, errno, "accept");
		while (n > 0 && waitpid(-1, NULL, n < CONNECTIONS_MAX ? WNOHANG : 0) > 0)
			n--;
		pid_t pid = fork();

		if (pid == 0)
			serve_one(c, path, fd);
		if (pid < 0)
			return err_sys(e, errno, "fork");
		n++;
	}
}

static int connect_run(struct verb_call *c, struct err *e)
{
	const struct port *x = c->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	path_of(c, "/v1/sandboxes/{}/ports/{}/connect", &path);
	/* A wrong name is told now, and a daemon started, if none runs. */
	if (sandbox_call(c, "GET", "/v1/sandboxes/{}", NULL, NULL, e) < 0 ||
	    (x->wait.is_set && await_port(c, str_text(&path), e) < 0))
		return -1;
	AUTO(fd_close)
	int fd = listen_on(x, x->is_local_named ? x->local : x->port, e);
	if (fd < 0 || announce(c, fd, e) < 0)
		return -1;
	return serve(c, str_text(&path), fd, e);
}

static int port_run(struct verb_call *c, struct err *e)
{
	struct port *x = c->opts;

	if (take_ports(x, c->words.at[1], e) < 0)
		return -1;
	if (x->is_removed && (x->is_url || x->ttl.is_set || x->wait.is_set || x->is_local_named))
		return err_new(e, ERR_INVALID, "--rm goes with nothing else");
	if (x->ttl.is_set && !x->is_url)
		return err_new(e, ERR_INVALID, "--ttl goes with --url");
	if (x->is_removed)
		return unforward(c, e);
	return x->is_url ? forward(c, e) : connect_run(c, e);
}

/* clang-format off */
static const struct flag port_flags[] = {
	{ '\0', FLAG_SWITCH,   "url",  offsetof(struct port, is_url), NULL, "by the daemon: HTTP and WebSocket, on an origin of its own, with a token", NULL },
	{ '\0', FLAG_DURATION, "ttl",  offsetof(struct port, ttl), "DURATION", "with --url: for this long; with the sandbox unless given", NULL },
	{ '\0', FLAG_DURATION, "wait", offsetof(struct port, wait), "DURATION", "for somebody to listen inside", NULL },
	{ '\0', FLAG_SWITCH,   "rm",   offsetof(struct port, is_removed), NULL, "what --url made ends", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_port = {
	.name = "port",
	.usage = "SANDBOX PORT[:LOCAL] [--url [--ttl DURATION] | --rm] [--wait DURATION] [--json]",
	.does = "forward a port of a sandbox",
	.more =
	    "Without --url it listens on 127.0.0.1, prints where, and carries TCP connections "
	    "until it is ended: on the port of the same number when that is free. With --url the "
	    "daemon forwards HTTP; printed are the URL, the header that every request needs, and "
	    "an address for a browser.",
	.flags = port_flags,
	.n_flags = COUNT(port_flags),
	.words = "sandbox",
	.opts_size = sizeof(struct port),
	.words_min = 2,
	.words_max = 2,
	.run = port_run
};
