/*
 * played_worker.h - a sandbox whose monitor and file workers are played by the test.
 */
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "core/files.h"
#include "os/sock.h"
#include "test.h"

static struct core core;
static struct loop loop;
static struct sbx sandbox;
static int monitor_fd;

static inline void enough(struct timer *t)
{
	(void)t;
	loop.is_done = true;
}

static inline void turn(uint64_t ms)
{
	struct timer end = { .fired = enough };

	loop.is_done = false;
	timer_set(&core.timers, &end, ms);
	CHECK_INT(loop_run(&loop), 0);
}

static inline void open_all(void)
{
	int ends[2];

	CHECK_INT(loop_init(&loop), 0);
	core = (struct core){ .loop = &loop, .tree_fd = open("/dev/null", O_RDONLY | O_CLOEXEC) };
	CHECK_INT(timers_init(&core.timers, &loop), 0);
	sandbox = (struct sbx){ .core = &core, .state = SANDBOX_RUNNING };
	link_init(&sandbox.link, &sandbox);
	CHECK_INT(os_socketpair(ends, SOCK_SEQPACKET), 0);
	CHECK_INT(link_open(&sandbox.link, &ends[0]), 0);
	monitor_fd = ends[1];
}

static inline void close_all(void)
{
	files_close(&sandbox);
	link_close(&sandbox.link);
	timers_done(&core.timers, &loop);
	loop_close(&loop);
	fd_close(&core.tree_fd);
	fd_close(&monitor_fd);
}

/* The next worker that the daemon asks the monitor for: our end of it. */
static inline int take_worker(void)
{
	static unsigned char buf[TREE_PACKET_MAX];
	int fds[2];
	size_t n = 2;

	CHECK(os_recv(monitor_fd, buf, sizeof buf, fds, &n) > 0); /* CH_TREE */
	CHECK_INT((long long)n, 2);
	fd_close(&fds[1]);
	return fds[0];
}

/* What a worker says of a job; descriptors that it has no business to send may go along. */
struct said {
	struct tree_head head;
	enum tree_code code;
	const int *fds;
	size_t n_fds;
};
static inline void worker_says(int fd, struct said s)
{
	unsigned char buf[256];
	struct tree_answer a = { .code = s.code };
	size_t len = sizeof s.head;

	s.head.len = s.head.type == TREE_DATA;
	memcpy(buf, &s.head, len);
	if (s.head.type == TREE_DATA) {
		buf[len++] = '.';
	} else {
		memcpy(buf + len, &a, sizeof a);
		len += sizeof a;
	}
	CHECK(os_send(fd, buf, len, s.fds, s.n_fds) > 0);
}
