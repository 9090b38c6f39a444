/*
 * listeners.c - who waits for TCP connections in this network namespace, and which process of the
 * user's that is. /proc shows only processes of the same user: others have no pid.
 */
#include <dirent.h>
#include <fcntl.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/sys.h"
#include "tree/verbs.h"
#include "wire/proctcp.h"

#define LINE_MAX_BYTES 512
#define TABLE_BYTES_MAX (8u << 20) /* 50,000 connections; listeners come first */
#define FDS_MAX 65536              /* links that are read in all */

struct found {
	struct tree_listener at[TREE_LISTENERS_MAX];
	uint64_t inodes[TREE_LISTENERS_MAX];
	size_t n, max;
	size_t n_links;
};

/* ---- the tables ---------------------------------------------------------------------- */

static void take_line(struct found *f, struct span line)
{
	struct proctcp t;

	if (f->n == f->max || !proctcp_line(line, &t) || t.state != PROCTCP_LISTEN || t.port == 0)
		return;
	f->inodes[f->n] = t.inode;
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
		ssize_t n = sys_read(fd, buf + left, TREE_PACKET_MAX - left);

		if (n < 0)
			return err_sys(e, (int)-n, "read the table of connections");
		if (n == 0 || call_check(c, e) < 0)
			return n == 0 ? 0 : -1;
		total += (size_t)n;
		left = take_lines(f, buf, left + (size_t)n);
	}
	return 0;
}

/* ---- whose they are ------------------------------------------------------------------ */

static void name_process(struct found *f, uint64_t inode, int proc_fd, uint32_t pid)
{
	for (size_t i = 0; i < f->n; i++) {
		struct tree_listener *l = &f->at[i];

		if (f->inodes[i] != inode || l->pid)
			continue;
		l->pid = pid;
		int n = os_read_file(proc_fd, "comm", l->name, sizeof l->name);
		l->name[n > 0 ? strcspn(l->name, "\n") : 0] = '\0';
	}
}

static void look_at_links(struct found *f, int proc_fd, int dir_fd, uint32_t pid)
{
	DIR *dir = fdopendir(dir_fd);
	char text[64];

	for (struct dirent *d = dir ? readdir(dir) : NULL; d && f->n_links < FDS_MAX;
	     d = readdir(dir)) {
		unsigned long long inode;

		f->n_links++;
		if (d->d_name[0] == '.' || os_readlinkat(dir_fd, d->d_name, text, sizeof text) < 0)
			continue;
		if (sscanf(text, "socket:[%llu]", &inode) == 1)
			name_process(f, inode, proc_fd, pid);
	}
	if (dir)
		closedir(dir); /* and dir_fd */
}

/* What cannot be looked at stays without a pid. */
static void look_at_process(struct found *f, int all_fd, const char *name)
{
	char *end;
	unsigned long pid = strtoul(name, &end, 10);

	if (*end || pid == 0 || pid > INT32_MAX)
		return;
	AUTO(fd_close) int proc_fd = os_openat(all_fd, name, O_RDONLY | O_DIRECTORY, 0);
	int dir_fd = proc_fd < 0 ? -1 : os_openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY, 0);
	if (dir_fd >= 0)
		look_at_links(f, proc_fd, dir_fd, (uint32_t)pid);
}

static void name_processes(struct call *c, struct found *f)
{
	DIR *all = f->n > 0 ? opendir("/proc") : NULL;

	for (struct dirent *d = all ? readdir(all) : NULL; d && call_stopped(c) == STOP_NONE;
	     d = readdir(all))
		look_at_process(f, dirfd(all), d->d_name);
	if (all)
		closedir(all);
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
	name_processes(c, &f);
	call_forgive(c);
	c->answer.content = TREE_RAW;
	return call_add(c, (struct span){ (char *)f.at, f.n * sizeof f.at[0] }, e);
}
