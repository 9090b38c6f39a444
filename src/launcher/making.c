/*
 * making.c - L_MAKE and L_VAULT. A sandbox without a workspace is made at once. The mount of a
 * workspace comes from its keeper, who may be busy: nobody else waits for it meanwhile. The
 * number of the workspace's ids is shared before the keeper is asked, so that it knows of us.
 */
#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "launcher/server-internal.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/unix.h"

#define MOUNT_MS_MAX 60000 /* a keeper that writes a large tree back is no dead one */

struct making {
	struct vault_ask ask; /* first */
	struct making *next;
	struct server *server;
	struct plan plan;
	struct launcher_order order;
	struct launcher_hold hold;
	uint32_t tag;
	uint64_t deadline_ms;
};

struct opening {
	struct vault_ask ask; /* first */
	struct opening *next;
	struct server *server;
	struct vault_open open;
	uint32_t tag;
};

/* ---- make ---------------------------------------------------------------------------- */

/* No other sandbox ever had it: slots are used again. */
static int make_name(char out[LAUNCH_NAME_MAX], int slot, struct err *e)
{
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		return err_sys(e, errno, "getrandom");
	snprintf(out, LAUNCH_NAME_MAX, "%d-%016llx.sock", slot, (unsigned long long)random);
	return 0;
}

static int listen_for_clients(struct server *s, const char *name, struct err *e)
{
	AUTO(fd_close) int fd = os_listen_at(s->dirs.sb_fd, name, SOCK_SEQPACKET, 0600);

	if (fd < 0)
		return err_sys(e, -fd, "listen on %s", name);
	uid_t id = s->opts->service_id;
	int r = s->kit.host.is_root ? os_fchownat(s->dirs.sb_fd, name, id, (gid_t)id) : 0;
	return r < 0 ? err_sys(e, -r, "hand over %s", name) : fd_take(&fd);
}

static int build(struct server *s, struct launcher_order *o, struct live *l, struct err *e)
{
	AUTO(fd_close) int listen_fd = -1;

	if (make_name(l->name, l->slot, e) < 0)
		return -1;
	if (o->is_kept) {
		listen_fd = listen_for_clients(s, l->name, e);
		if (listen_fd < 0)
			return -1;
	}
	o->listen_fd = listen_fd;
	if (launcher_build(o, &l->hold, e) < 0)
		return -1;
	/* Without it a launcher that comes later cannot end this monitor; that is not worth the
	 * sandbox. */
	(void)slot_note_monitor(s->kit.common.run_fd, l->slot, l->hold.pid, l->name);
	return 0;
}

/* Without what it holds: that is somebody else's by now, or closed. */
static void making_free(struct making *m)
{
	plan_done(&m->plan);
	free(m);
}

static void making_fail(struct making *m, const struct err *e)
{
	server_fail(m->server, m->tag, e);
	/* Nothing was built in its slot. */
	slot_locks_end(m->server->kit.common.slots_fd, &m->hold.locks);
	making_free(m);
}

/* Takes over m. */
static void make_now(struct making *m)
{
	struct server *s = m->server;
	struct live *l = mem_alloc(sizeof *l);
	struct err e = { 0 };

	*l = (struct live){ .hold = m->hold, .slot = m->hold.slot, .is_kept = m->order.is_kept };
	s->live[l->slot] = l;
	int r = build(s, &m->order, l, &e);
	l->pid = l->hold.pid;
	if (r < 0) {
		server_fail(s, m->tag, &e);
		if (l->pid == 0)
			ending_begin(s, l); /* else when it was waited for */
	} else {
		struct launch_made made = { .slot = l->slot, .pid = l->pid };
		struct launch_head head = { .type = L_MADE, .len = sizeof made, .tag = m->tag };

		l->tell = TELL_GONE;
		memcpy(made.name, l->name, sizeof made.name);
		server_send(s, head, &made, fd_take(&l->hold.control_fd));
	}
	making_free(m);
}

static void unlink_making(struct making *m)
{
	struct making **at = &m->server->makings;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
}

/* Returns the number of that one, which is shared from then on. */
static int ask_for_mount(struct making *m, uint64_t workspace,
                         void (*done)(struct vault_ask *a, int fd, const struct err *e),
                         struct err *e)
{
	struct server *s = m->server;
	uint64_t now = server_now();
	int work = vaults_work(&s->vaults, workspace);

	if (work < 0) {
		err_new(e, ERR_NOT_FOUND, "fs: workspace %llu is not open",
		        (unsigned long long)workspace);
		e->sys = EPIPE; /* it was, a moment ago: its keeper died */
		return -1;
	}
	if (slot_share_work(s->kit.common.slots_fd, work, &m->hold.locks, e) < 0)
		return -1;
	m->ask = (struct vault_ask){ .done = done };
	m->deadline_ms = now + MOUNT_MS_MAX;
	if (vaults_ask(&s->vaults, workspace, &m->ask, now, e) < 0)
		return err_wrap(e, "fs");
	m->next = s->makings;
	s->makings = m;
	return work;
}

static void root_mounted(struct vault_ask *a, int fd, const struct err *e)
{
	struct making *m = (struct making *)a;

	unlink_making(m);
	if (e) {
		making_fail(m, e);
		return;
	}
	order_give_root(&m->plan, fd);
	make_now(m);
}

static void mounted(struct vault_ask *a, int fd, const struct err *e)
{
	struct making *m = (struct making *)a;
	struct err failure = { 0 };

	unlink_making(m);
	if (e) {
		making_fail(m, e);
		return;
	}
	order_give_work(&m->plan, fd);
	if (!m->order.root)
		make_now(m);
	else if (ask_for_mount(m, m->order.root, root_mounted, &failure) < 0)
		making_fail(m, &failure);
}

static int ask_for_work(struct making *m, struct err *e)
{
	int work = ask_for_mount(m, m->order.workspace, mounted, e);

	m->order.work = work;
	return work < 0 ? -1 : 0;
}

void making_begin(struct server *s, const struct launch_packet *p)
{
	const struct order_from from = { .tickets = &s->tickets, .trees_fd = s->dirs.trees_fd };
	struct making *m = mem_alloc(sizeof *m);
	struct err e = { 0 };

	fault_begin();
	m->server = s;
	m->tag = p->head.tag;
	m->order = (struct launcher_order){
		.host = &s->kit.host, .kit = &s->kit.common, .monitor = s->monitor, .listen_fd = -1
	};
	if (order_read(p, &from, &m->plan, &m->order, &e) < 0 ||
	    kit_refresh(&s->kit, server_now(), &e) < 0 ||
	    launcher_take_slot(&s->kit.common, &m->hold, &e) < 0 ||
	    (m->order.workspace && ask_for_work(m, &e) < 0))
		making_fail(m, &e);
	else if (!m->order.workspace)
		make_now(m);
}

/* ---- open a workspace ------------------------------------------------------------------ */

static void opening_end(struct opening *o)
{
	struct opening **at = &o->server->openings;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	free(o);
}

static void opened(struct vault_ask *a, int fd, const struct err *e)
{
	struct opening *o = (struct opening *)a;
	const struct launch_head head = { .type = L_VAULTED, .tag = o->tag };

	if (e)
		server_fail(o->server, o->tag, e);
	else
		server_send(o->server, head, NULL, fd);
	opening_end(o);
}

void opening_begin(struct server *s, const struct launch_packet *p)
{
	struct opening *o = mem_alloc(sizeof *o);
	struct err e = { 0 };

	*o = (struct opening){ .next = s->openings,
		               .server = s,
		               .open = p->vault,
		               .tag = p->head.tag,
		               .ask.done = opened };
	o->ask.open = &o->open;
	s->openings = o;
	if (vaults_ask(&s->vaults, o->open.workspace, &o->ask, server_now(), &e) < 0)
		opened(&o->ask, -1, &e);
}

/* ---- time ------------------------------------------------------------------------------ */

void making_tick(struct server *s, uint64_t now_ms)
{
	struct err e = { 0 };

	err_new(&e, ERR_INTERNAL, "fs: the keeper of the workspace does not answer");
	for (struct making *m = s->makings, *next; m; m = next) {
		next = m->next;
		if (m->deadline_ms > now_ms)
			continue;
		vaults_cancel(&s->vaults, &m->ask);
		unlink_making(m);
		making_fail(m, &e);
	}
}

uint64_t making_due(const struct server *s)
{
	uint64_t due = UINT64_MAX;

	for (const struct making *m = s->makings; m; m = m->next)
		if (m->deadline_ms < due)
			due = m->deadline_ms;
	return due;
}

void making_drop(struct server *s)
{
	while (s->makings) {
		struct making *m = s->makings;

		s->makings = m->next;
		vaults_cancel(&s->vaults, &m->ask);
		slot_locks_end(s->kit.common.slots_fd, &m->hold.locks);
		making_free(m);
	}
	while (s->openings) {
		struct opening *o = s->openings;

		vaults_cancel(&s->vaults, &o->ask);
		opening_end(o);
	}
}
