/*
 * listeners.c - where somebody waits for TCP connections in this network namespace. Which process
 * that is cannot be seen from here: its Landlock domain is another one, which hides its
 * descriptors.
 */
#include <fcntl.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/netpolicy.h"
#include "tree/fail.h"
#include "tree/sys.h"
#include "tree/verbs.h"
#include "wire/proctcp.h"

#define LINE_MAX_BYTES 512
#define TABLE_BYTES_MAX (8u << 20) /* 50,000 connections; listeners come first */

struct found {
	struct tree_listener at[TREE_LISTENERS_MAX];
	size_t n, max;
};

/* It was there before anything inside. */
static bool is_gates(const struct proctcp *t)
{
	static const uint8_t addr4[] = NET_ADDR4, addr6[] = NET_ADDR6;

	return t->port == NET_TCP_PORT &&
	       memcmp(t->address, t->is_v6 ? addr6 : addr4, t->is_v6 ? 16 : 4) == 0;
}

static void take_line(struct found *f, struct span line)
{
	struct proctcp t;

	if (f->n == f->max || !proctcp_line(line, &t) || t.state != PROCTCP_LISTEN || t.port == 0 ||
	    is_gates(&t))
		return;
	f->at[f->n] = (struct tree_listener){ .port = t.port, .is_v6 = t.is_v6 };
	memcpy(f->at[f->n].address, t.address, sizeof t.address);
	f->n++;
}

/* Takes whole lines; returns the bytes of the one that is not whole. */
static size_t take_lines(struct found *f, char *buf, size_t n)
{
	size_t from = 0;

	for (char *end; (end = memchr(buf + from, '\n', n - from));) {
		size_t len = (size_t)(end - buf) - from;

		take_line(f, (struct span){ buf + from, len });
		from += len + 1;
	}
	if (n - from > LINE_MAX_BYTES)
		from = n; /* no line of the kernel's */
	memmove(buf, buf + from, n - from);
	return n - from;
}

static int read_table(struct call *c, struct found *f, const char *path, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
	char *buf = (char *)c->conn->in;
	size_t left = 0;

	if (fd == -ENOENT)
		return 0; /* no IPv6 here */
	if (fd < 0)
		return err_sys(e, -fd, "read the table of connections");
	for (size_t total = 0; total < TABLE_BYTES_MAX;) {
		ssize_t n = os_read(fd, buf + left, TREE_PACKET_MAX - left);

		if (n < 0)
			return err_sys(e, (int)-n, "read the table of connections");
		if (n == 0 || call_check(c, e) < 0)
			return n == 0 ? 0 : -1;
		total += (size_t)n;
		left = take_lines(f, buf, left + (size_t)n);
	}
	return 0;
}

int verb_ports(struct call *c, struct err *e)
{
	static struct found f;

	f = (struct found){ .max = TREE_LISTENERS_MAX };
	if (c->req.max > 0 && c->req.max < f.max)
		f.max = c->req.max;
	if (read_table(c, &f, "/proc/self/net/tcp", e) < 0 ||
	    read_table(c, &f, "/proc/self/net/tcp6", e) < 0)
		return -1;
	c->answer.content = TREE_RAW;
	return call_add(c, (struct span){ (char *)f.at, f.n * sizeof f.at[0] }, e);
}
