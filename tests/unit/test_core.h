/*
 * test_core.h - a core with a store of its own, and a launcher and keepers of storage that the test
 * plays, in the same loop.
 *
 * A keeper writes down what it is asked and says that it was done; or it dies, when the test said
 * so. Nothing is on any disk but rows. Another boot is another `rig_boot`.
 */
#pragma once

#include "core/maker.h"
#include "core/trees.h"
#include "core/vault.h"
#include "core/workspace-internal.h"
#include "os/sock.h"
#include "unit/store_fixture.h"
#include "wire/vault.h"

#include <sys/socket.h>

#define RIG_KEEPERS 32
#define RIG_ASKED_MAX 256

/* One that is asked, and what for. */
struct rig_asked {
	uint64_t workspace;
	enum vault_type type;
	uint64_t to; /* V_RESTORE, V_CHECKPOINT: the number */
};

static struct rig_keeper {
	struct watch watch; /* first; fd -1: free */
	uint64_t workspace;
} rig_keepers[RIG_KEEPERS];

static struct loop rig_loop;
static struct core rig_core;
static struct watch rig_launcher;
static const char *rig_boot = "boot-1";
static struct rig_asked rig_list[RIG_ASKED_MAX];
static size_t rig_n;
static int rig_opened; /* how often a keeper was asked for */
static bool rig_is_full;
static uint64_t rig_files = 1; /* that changed, says whoever looks */

/* The next `times` who are asked for `type` die: before they have done it, or without a word. */
static struct {
	enum vault_type type;
	int times;
} rig_deadly;
/* Or they say no, with this. */
static struct {
	enum vault_type type;
	int sys;
} rig_refused;

/* ---- a keeper ----------------------------------------------------------------------------- */

static inline void rig_end_keeper(struct rig_keeper *k)
{
	if (k->watch.fd < 0)
		return;
	loop_remove(&rig_loop, &k->watch);
	fd_close(&k->watch.fd);
}

static inline void rig_answer(struct rig_keeper *k, const struct vault_packet *ask)
{
	struct vault_packet p = { .head = { .type = V_DONE, .tag = ask->head.tag } };

	p.done.files = rig_files;
	if (rig_refused.sys && ask->head.type == rig_refused.type) {
		p.head.type = V_FAILED;
		p.err = (struct err){ .kind = ERR_INTERNAL, .sys = rig_refused.sys, .msg = "no" };
	}
	p.head.len = (uint32_t)(vault_size(&p) - sizeof p.head);
	(void)os_send(k->watch.fd, &p, vault_size(&p), NULL, 0); /* or nobody is there any more */
	if (ask->head.type == V_CLOSE)
		rig_end_keeper(k);
}

static inline void rig_on_keeper(struct watch *w, uint32_t events)
{
	struct rig_keeper *k = (struct rig_keeper *)w;
	static struct vault_packet p;
	int fd = -1;
	size_t n_fds = 1;
	int n = os_recv(w->fd, &p, sizeof p, &fd, &n_fds);

	(void)events;
	if (n == -EAGAIN)
		return;
	if (n_fds > 0)
		close(fd);
	if (n <= 0) {
		rig_end_keeper(k);
		return;
	}
	CHECK(vault_check(&p, (size_t)n, n_fds));
	CHECK(rig_n < RIG_ASKED_MAX);
	rig_list[rig_n++] = (struct rig_asked){ k->workspace, p.head.type,
		                                p.head.type == V_RESTORE      ? p.restore.to
		                                : p.head.type == V_CHECKPOINT ? p.point.number
		                                                              : 0 };
	bool is_count = p.head.type == V_RESTORE && p.restore.flags & VAULT_COUNT;
	if (rig_deadly.times > 0 && rig_deadly.type == p.head.type && !is_count) {
		rig_deadly.times--;
		rig_end_keeper(k);
		rig_loop.is_done = true; /* before anybody has noticed */
		return;
	}
	rig_answer(k, &p);
}

static inline int rig_add_keeper(uint64_t workspace)
{
	int fds[2];
	size_t i = 0;

	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	while (i < RIG_KEEPERS && rig_keepers[i].watch.fd >= 0)
		i++;
	CHECK(i < RIG_KEEPERS);
	rig_keepers[i] = (struct rig_keeper){ { .fd = fds[1], .ready = rig_on_keeper }, workspace };
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	CHECK_INT(loop_add(&rig_loop, &rig_keepers[i].watch, EPOLLIN), 0);
	return fds[0];
}

/* ---- the launcher ------------------------------------------------------------------------- */

static inline void rig_say(struct launch_packet *p, size_t len, int fd)
{
	p->head.len = (uint32_t)len;
	CHECK(os_send(rig_launcher.fd, p, sizeof p->head + len, &fd, fd >= 0) > 0);
}

static inline void rig_on_launcher(struct watch *w, uint32_t events)
{
	static struct launch_packet p;
	size_t n_fds = 0;
	int n = os_recv(w->fd, &p, sizeof p, NULL, &n_fds);

	(void)events;
	if (n <= 0 || p.head.type != L_VAULT)
		return;
	rig_opened++;
	AUTO(fd_close) int fd = rig_is_full ? -1 : rig_add_keeper(p.vault.workspace);
	if (rig_is_full) {
		p.head.type = L_FAILED;
		p.err = (struct err){ .kind = ERR_LIMIT, .msg = "no more keepers" };
		rig_say(&p, sizeof p.err, -1);
		return;
	}
	p.head.type = L_VAULTED;
	rig_say(&p, 0, fd);
}

/* ---- life --------------------------------------------------------------------------------- */

static inline void rig_store_ready(struct watch *w, uint32_t events)
{
	(void)w;
	(void)events;
	store_dispatch(rig_core.store);
}

/* A daemon begins, on what the one before has left in the store. */
static inline void rig_start(void)
{
	struct core *c = &rig_core;
	static struct launch_packet p;
	struct err e = { 0 };
	int fds[2];

	for (size_t i = 0; i < RIG_KEEPERS; i++)
		rig_keepers[i].watch.fd = -1;
	CHECK_INT(loop_init(&rig_loop), 0);
	*c = (struct core){ .loop = &rig_loop, .logs_fd = -1, .sb_fd = -1, .tree_fd = -1 };
	c->pace.begin = sbx_end_begin;
	snprintf(c->boot_id, sizeof c->boot_id, "%s", rig_boot);
	CHECK_INT(timers_init(&c->timers, &rig_loop), 0);
	c->store = must_open();
	c->store_watch = (struct watch){ .fd = store_fd(c->store), .ready = rig_store_ready };
	CHECK_INT(loop_add(&rig_loop, &c->store_watch, EPOLLIN), 0);
	CHECK_INT(trees_open(c, &e), 0);
	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	rig_launcher = (struct watch){ .fd = fds[1], .ready = rig_on_launcher };
	p.head = (struct launch_head){ .type = L_HOSTED };
	p.host = (struct launch_host){ .is_root = 1, .release = "6.1" };
	rig_say(&p, sizeof p.host, -1);
	if (maker_open(c, fds[0], &e) < 0)
		CHECK_STR(e.msg, "");
	CHECK_INT(loop_add(&rig_loop, &rig_launcher, EPOLLIN), 0);
	rig_n = 0;
	rig_opened = 0;
	wsx_recover(c);
}

/* kill -9, nearly: nothing is said to anybody. */
static inline void rig_stop(void)
{
	struct core *c = &rig_core;

	c->is_closing = true;
	store_close(c->store);
	wsx_close_all(c);
	trees_close(c);
	maker_close(c);
	for (size_t i = 0; i < RIG_KEEPERS; i++)
		rig_end_keeper(&rig_keepers[i]);
	loop_remove(&rig_loop, &rig_launcher);
	fd_close(&rig_launcher.fd);
	timers_done(&c->timers, &rig_loop);
	loop_close(&rig_loop);
}

static inline void rig_again(void)
{
	rig_stop();
	rig_start();
}

/* ---- time --------------------------------------------------------------------------------- */

static inline void rig_late(struct timer *t)
{
	(void)t;
	rig_loop.is_done = true;
}

/* What happens within so many milliseconds. */
static inline void rig_pass(uint64_t ms)
{
	struct timer t = { .fired = rig_late };

	timer_set(&rig_core.timers, &t, ms);
	rig_loop.is_done = false;
	CHECK_INT(loop_run(&rig_loop), 0);
	timer_stop(&rig_core.timers, &t);
}

#define RIG_UNTIL(is)                                                                              \
	do {                                                                                       \
		for (int i_ = 0; i_ < 10000 && !(is); i_++)                                        \
			rig_pass(1);                                                               \
		CHECK(is);                                                                         \
	} while (0)

/* Until the flag is set, by a callback. */
static inline void rig_await(const bool *flag)
{
	RIG_UNTIL(*flag);
}

/* How often any keeper of the workspace was asked for it. */
static inline int rig_count(uint64_t workspace, enum vault_type type)
{
	int n = 0;

	for (size_t i = 0; i < rig_n; i++)
		n += rig_list[i].workspace == workspace && rig_list[i].type == type;
	return n;
}
