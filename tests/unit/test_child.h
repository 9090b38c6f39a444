/*
 * test_child.h - both sides of a monitor that has a network: its client, and a child of the gate.
 */
#pragma once

#include <sys/stat.h>

#include "test_box.h"
#include "wire/gate.h"

static struct test_box t;
static int child; /* the gate's end of the socket */
static struct gate_packet p;
static int fds[GATE_FDS];
static size_t n_fds;

#define FLAGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* ---- the client -------------------------------------------------------------------- */

static inline void say_fd(enum channel_type type, const void *bytes, size_t n, int fd)
{
	struct channel_packet m = { .head = { .type = type, .len = (uint32_t)n } };

	memcpy(m.data, bytes, n);
	CHECK_INT(os_send(t.fd, &m, sizeof m.head + n, &fd, 1), (int)(sizeof m.head + n));
}

static inline void give_gate(void)
{
	int pair[2];

	fd_close(&child);
	CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET), 0);
	child = pair[0];
	say_fd(CH_GATE, "", 0, pair[1]);
	close(pair[1]);
}

/* The child ends, and the monitor knows: only then does it take another. */
static inline void lose_child(void)
{
	fd_close(&child);
	box_await(&t, CH_GATELESS, 0);
}

static inline void give_rules(uint32_t generation, const char *text)
{
	const struct gate_rules r = { .generation = generation };
	AUTO(fd_close) int fd = memfd_create("rules", MFD_CLOEXEC);

	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	say_fd(CH_RULES, &r, sizeof r, fd);
}

static inline struct gate_ruled await_ruled(void)
{
	struct gate_ruled r;

	box_await(&t, CH_RULED, 0);
	CHECK_INT(t.packet.head.len, sizeof r);
	memcpy(&r, t.packet.data, sizeof r);
	return r;
}

static inline struct channel_net await_net(uint32_t num)
{
	struct channel_net net;

	box_await(&t, CH_NET, num);
	CHECK_INT(t.packet.head.len, sizeof net);
	memcpy(&net, t.packet.data, sizeof net);
	return net;
}

static inline void acknowledge(uint64_t at)
{
	box_say(&t, CH_NET_ACK, 0, &at, sizeof at);
}

/* ---- the child --------------------------------------------------------------------- */

static inline bool hear(int timeout_ms)
{
	struct pollfd ready = { .fd = child, .events = POLLIN };

	for (size_t i = 0; i < n_fds; i++)
		fd_close(&fds[i]);
	n_fds = 0;
	if (poll(&ready, 1, timeout_ms) == 0)
		return false;
	n_fds = GATE_FDS;
	int n = os_recv(child, &p, sizeof p, fds, &n_fds);
	if (n == 0)
		return false;
	CHECK(gate_check(&p, (size_t)n, n_fds));
	return true;
}

static inline void await(enum gate_type type)
{
	CHECK(hear(TEST_WAIT_MS));
	CHECK_INT(p.head.type, type);
}

static inline void say(enum gate_type type)
{
	p.head.type = type;
	p.head.len = (uint32_t)(gate_size(&p) - sizeof p.head);
	CHECK_INT(send(child, &p, gate_size(&p), MSG_NOSIGNAL), (ssize_t)gate_size(&p));
}

static inline void say_record(uint64_t seq, enum gate_decision d)
{
	p = (struct gate_packet){ .record = { .seq = seq,
		                              .kind = GATE_CLOSED,
		                              .decision = d,
		                              .reason = d == GATE_DENY ? GATE_NO_RULE : GATE_NONE,
		                              .port = 443,
		                              .name = "example.org" } };
	say(G_RECORD);
}

static inline const char *rules_text(int fd)
{
	static char text[64];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static inline void start(void)
{
	child = -1;
	n_fds = 0;
	box_start(&t, true, FLAGS("net", "allow:example.org"));
	box_await(&t, CH_READY, 0);
}

static inline void serve(void)
{
	start();
	give_rules(7, "seven");
	give_gate();
	await(G_START);
	say(G_UP);
	CHECK_INT(await_ruled().generation, 7);
}

static inline void stop(void)
{
	fd_close(&child);
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}
