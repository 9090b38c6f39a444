#include "launcher/server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/hostcheck.h"
#include "engine/landlock.h"
#include "launcher/server-internal.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

#define OF(w, member) ((struct server *)((char *)(w)-offsetof(struct server, member)))

uint64_t server_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* One timer for all; after every event it is set for what comes first. */
static void set_timer(struct server *s)
{
	const uint64_t all[] = { ending_due(s),          supervise_due(s),
		                 making_due(s),          vaults_due(&s->vaults),
		                 standby_due(&s->cache), standby_due(&s->ledger),
		                 standby_due(&s->hook) };
	uint64_t due = UINT64_MAX;

	for (size_t i = 0; i < COUNT(all); i++)
		due = all[i] < due ? all[i] : due;
	for (const struct job *j = s->jobs; j; j = j->next)
		if (j->deadline_ms < due)
			due = j->deadline_ms;
	struct itimerspec t = { 0 };
	if (due != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(due / 1000);
		t.it_value.tv_nsec = (long)(due % 1000 * 1000000) + 1; /* 0 would disarm it */
	}
	(void)timerfd_settime(s->timer.fd, TFD_TIMER_ABSTIME, &t, NULL);
}

/* ---- to the daemon --------------------------------------------------------------------- */

static void out_free(struct out *o)
{
	fd_close(&o->fd);
	free(o);
}

/* A sandbox that nobody was told of is nobody's to end. */
static void end_untold(const struct server *s, const struct out *o)
{
	struct launch_made made;

	if (o->head.type != L_MADE)
		return;
	memcpy(&made, o->bytes, sizeof made);
	if (s->live[made.slot] && s->live[made.slot]->pid == made.pid)
		(void)kill(made.pid, SIGKILL); /* our child, not yet waited for */
}

/* An answer that cannot be sent at all (too many descriptors are on their way, ...): who asked
 * waits for it, and is told that much. */
static void out_lost(struct server *s, const struct out *o, int error)
{
	struct {
		struct launch_head head;
		struct err err;
	} said = { .head = { .type = L_FAILED, .len = sizeof said.err, .tag = o->head.tag } };

	end_untold(s, o);
	err_sys(&said.err, error, "launcher: hand over what was asked for");
	(void)os_send(s->channel.fd, &said, sizeof said, NULL, 0);
}

/* Whether it is settled: sent, or given up, or the daemon is about to be found dead. */
static bool out_try(struct server *s, const struct out *o)
{
	int r = os_send(s->channel.fd, &o->head, o->n, &o->fd, o->fd < 0 ? 0 : 1);

	if (r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM)
		return false;
	if (r < 0 && r != -EPIPE && r != -ECONNRESET && o->head.tag != 0)
		out_lost(s, o, -r);
	return true;
}

/* While something waits to be taken nothing new is read: what waits has a bound. */
static void flush(struct server *s)
{
	while (s->out_first && s->channel.fd >= 0 && out_try(s, s->out_first)) {
		struct out *o = s->out_first;

		s->out_first = o->next;
		if (!s->out_first)
			s->out_last = &s->out_first;
		out_free(o);
	}
	if (s->channel.fd >= 0 && s->is_blocked != (s->out_first != NULL)) {
		s->is_blocked = s->out_first != NULL;
		(void)loop_change(&s->loop, &s->channel, s->is_blocked ? EPOLLOUT : EPOLLIN);
	}
}

void server_send(struct server *s, struct launch_head head, const void *body, int fd)
{
	struct out *o = mem_alloc(sizeof *o);

	*o = (struct out){ .fd = fd, .n = sizeof head + head.len, .head = head };
	if (head.len > 0)
		memcpy(o->bytes, body, head.len);
	*s->out_last = o;
	s->out_last = &o->next;
	if (s->out_first == o)
		flush(s);
}

void server_fail(struct server *s, uint32_t tag, const struct err *e)
{
	server_send(s, (struct launch_head){ .type = L_FAILED, .len = sizeof *e, .tag = tag }, e,
	            -1);
}

/* ---- open ---------------------------------------------------------------------------- */

static void job_free(struct job *j)
{
	struct server *s = j->server;

	s->n_jobs--;
	loop_remove(&s->loop, &j->watch);
	fd_close(&j->watch.fd);
	if (j->pid > 0)
		(void)kill(j->pid, SIGKILL); /* our child, not yet waited for */
	free(j);
}

static void job_end(struct job *j)
{
	struct job **at = &j->server->jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	job_free(j);
}

/* Whose files are the command's user's inside: the owner's only for those who could be him. */
static struct ticket make_ticket(const struct job *j, const struct opener_answer *a, int fd)
{
	const struct os_peer *peer = &j->caller.peer;
	bool is_all = j->caller.is_operator || peer->uid == 0;

	return (struct ticket){ .fd = fd,
		                .is_dir = a->is_dir,
		                .is_all = is_all,
		                .uid = is_all ? a->uid : peer->uid,
		                .gid =
		                    is_all || opener_in_groups(peer, a->gid) ? a->gid : peer->gid };
}

static int check_want(const struct job *j, const struct opener_answer *a, struct err *e)
{
	if (j->want == LAUNCH_DIR && !a->is_dir)
		return err_new(e, ERR_INVALID, "not a folder");
	if (j->want == LAUNCH_FILE && a->is_dir)
		return err_new(e, ERR_INVALID, "a folder");
	return 0;
}

static void job_ready(struct watch *w, uint32_t events)
{
	struct job *j = (struct job *)((char *)w - offsetof(struct job, watch));
	struct server *s = j->server;
	struct opener_answer a;
	int got = -1;
	size_t n_fds = 1;

	(void)events;
	int n = os_recv(w->fd, &a, sizeof a, &got, &n_fds);
	AUTO(fd_close) int fd = n_fds > 0 ? got : -1;
	if (n != (int)sizeof a)
		err_new(&a.e, ERR_INTERNAL, "the process that opens died");
	else if (a.e.kind == ERR_NONE && fd < 0)
		err_new(&a.e, ERR_INTERNAL, "no descriptor came");
	else if (a.e.kind == ERR_NONE)
		(void)check_want(j, &a, &a.e);
	AUTO(fd_close) int ours = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (a.e.kind == ERR_NONE && ours < 0)
		err_sys(&a.e, errno, "keep the descriptor");
	if (a.e.kind != ERR_NONE) {
		server_fail(s, j->tag, &a.e);
	} else {
		uint32_t ticket = tickets_add(&s->tickets, make_ticket(j, &a, fd_take(&ours)));
		struct launch_opened o = { ticket, a.uid, a.gid, a.is_dir };
		struct launch_head head = { .type = L_OPENED, .len = sizeof o, .tag = j->tag };

		server_send(s, head, &o, fd_take(&fd));
	}
	job_end(j);
	set_timer(s);
}

static size_t count_jobs(const struct server *s, const struct opener_caller *c)
{
	size_t n = 0;

	for (const struct job *j = s->jobs; j; j = j->next)
		n += j->caller.is_operator == c->is_operator && j->caller.peer.uid == c->peer.uid;
	return n;
}

static int job_start(struct server *s, struct job *j, const char *path, int client_fd,
                     struct err *e)
{
	if (opener_ask(&s->opener, client_fd, &j->caller, e) < 0)
		return -1;
	if (!j->caller.is_operator && lends_check(&s->lends, j->caller.peer.uid, path, e) < 0)
		return -1;
	if (s->n_jobs >= JOBS_MAX || count_jobs(s, &j->caller) >= JOBS_OF_ONE_MAX)
		return err_new(e, ERR_LIMIT, "too many paths are being opened");
	int fd = opener_start(&s->opener, &j->caller, path, &j->pid, e);
	if (fd < 0)
		return -1;
	j->watch = (struct watch){ .fd = fd, .ready = job_ready };
	int r = loop_add(&s->loop, &j->watch, EPOLLIN);
	if (r >= 0)
		return 0;
	fd_close(&j->watch.fd); /* its child ends by itself, and is waited for as any other */
	return err_sys(e, -r, "watch");
}

static void on_open(struct server *s, const struct launch_packet *p, int fd)
{
	struct job *j = mem_alloc(sizeof *j);
	struct err e = { 0 };

	j->server = s;
	j->tag = p->head.tag;
	j->want = p->open.want;
	j->deadline_ms = server_now() + OPENER_MS_MAX;
	if (job_start(s, j, launch_path(p), fd, &e) < 0) {
		server_fail(s, j->tag, &e);
		free(j);
		return;
	}
	j->next = s->jobs;
	s->jobs = j;
	s->n_jobs++;
}

static void jobs_tick(struct server *s, uint64_t now_ms)
{
	struct err e;

	err_new(&e, ERR_INTERNAL, "the file system does not answer");
	for (struct job *j = s->jobs, *next; j; j = next) {
		next = j->next;
		if (j->deadline_ms > now_ms)
			continue;
		server_fail(s, j->tag, &e);
		job_end(j);
	}
}

/* ---- the rest -------------------------------------------------------------------------- */

static uint32_t mechanism(const struct cgroup *cg, enum cgroup_controller c)
{
	const char *by = cgroup_mechanism(cg, c);

	return !by ? 0 : strcmp(by, "cgroup2") == 0 ? 2 : 1;
}

/* v2 freezes every group of its own that it has; v1 has a hierarchy for it. */
static uint32_t freezer(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->n_trees; i++) {
		const struct cgroup_tree *t = &cg->trees[i];

		if (t->is_v2 && !t->is_shared)
			return 2;
		if (t->is_freezer)
			return 1;
	}
	return 0;
}

static void on_host(struct server *s, const struct launch_packet *p, int fd)
{
	const struct cgroup *cg = &s->kit.host.cgroup;
	int abi = landlock_abi();
	struct utsname name = { 0 };
	/* io: the scratch is memory, there is no device to bound. */
	struct launch_host host = { .is_root = s->kit.host.is_root,
		                    .landlock_abi = abi > 0 ? (uint32_t)abi : 0,
		                    .net_error = (uint32_t)hostcheck_net(s->kit.host.is_root),
		                    .by = { [LAUNCH_CPU] = mechanism(cg, CG_CPU),
		                            [LAUNCH_MEMORY] = mechanism(cg, CG_MEMORY),
		                            [LAUNCH_PIDS] = mechanism(cg, CG_PIDS),
		                            [LAUNCH_FREEZER] = freezer(cg) } };
	struct launch_head head = { .type = L_HOSTED, .len = sizeof host, .tag = p->head.tag };

	(void)fd;
	(void)uname(&name); /* fails for a bad pointer only */
	snprintf(host.release, sizeof host.release, "%s", name.release);
	server_send(s, head, &host, -1);
}

static void on_gate(struct server *s, const struct launch_packet *p, int fd)
{
	const struct launch_head head = { .type = L_GATED, .tag = p->head.tag };
	struct err e = { 0 };
	int ours = gates_ask(&s->gates, server_now(), &e);

	(void)fd;
	if (ours < 0)
		server_fail(s, p->head.tag, &e);
	else
		server_send(s, head, NULL, ours);
}

static void on_make(struct server *s, const struct launch_packet *p, int fd)
{
	(void)fd;
	making_begin(s, p);
}

static void on_vault(struct server *s, const struct launch_packet *p, int fd)
{
	(void)fd;
	opening_begin(s, p);
}

static void stand_by(struct server *s, struct standby *who, const struct launch_packet *p,
                     enum launch_type answer)
{
	const struct launch_head head = { .type = answer, .tag = p->head.tag };
	struct err e = { 0 };
	int ours = standby_ask(who, &e);

	if (ours < 0)
		server_fail(s, p->head.tag, &e);
	else
		server_send(s, head, NULL, ours);
}

static void on_cache(struct server *s, const struct launch_packet *p, int fd)
{
	(void)fd;
	stand_by(s, &s->cache, p, L_CACHED);
}

static void on_ledger(struct server *s, const struct launch_packet *p, int fd)
{
	(void)fd;
	stand_by(s, &s->ledger, p, L_LEDGERED);
}

static void on_hook(struct server *s, const struct launch_packet *p, int fd)
{
	struct err e = { 0 };

	(void)fd;
	if (s->opts->hook_args) {
		stand_by(s, &s->hook, p, L_HOOKED);
		return;
	}
	err_new(&e, ERR_INVALID, "the config names no webhook");
	server_fail(s, p->head.tag, &e);
}

static void on_ready(struct server *s, const struct launch_packet *p, int fd)
{
	(void)p;
	(void)fd;
	if (!s->daemon.was_ready && s->opts->notify)
		(void)os_notify(s->opts->notify, "READY=1"); /* whoever waits for it gives up */
	s->daemon.is_ready = s->daemon.was_ready = true;
}

/* `fd` is borrowed; -1: none came. */
static void (*const orders[])(struct server *s, const struct launch_packet *p, int fd) = {
	[L_MAKE] = on_make,          [L_OPEN] = on_open,        [L_CLEAN] = ending_on_clean,
	[L_SWEEP] = ending_on_sweep, [L_KILL] = ending_on_kill, [L_HOST] = on_host,
	[L_GATE] = on_gate,          [L_CACHE] = on_cache,      [L_VAULT] = on_vault,
	[L_LEDGER] = on_ledger,      [L_HOOK] = on_hook,        [L_READY] = on_ready,
};
_Static_assert(COUNT(orders) == L_READY + 1, "an order has no function");

/* ---- events -------------------------------------------------------------------------- */

static void channel_ready(struct watch *w, uint32_t events)
{
	static struct launch_packet p; /* 130 KiB: not on the stack */
	struct server *s = OF(w, channel);
	int fds[2] = { -1, -1 };
	size_t n_fds = COUNT(fds);
	struct err e = { 0 };

	if (events & EPOLLOUT)
		flush(s);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	int n = os_recv(w->fd, &p, sizeof p, fds, &n_fds);
	if (n == -EAGAIN)
		return;
	AUTO(fd_close) int first = n > 0 && n_fds > 0 ? fds[0] : -1;
	AUTO(fd_close) int second = n > 0 && n_fds > 1 ? fds[1] : -1;
	if (n <= 0) { /* it died, or will when it sees that we hang up */
		server_drop_daemon(s);
		return;
	}
	if (launch_check_order(&p, (size_t)n, n_fds, &e) < 0) {
		bool has_tag = (size_t)n >= sizeof p.head;

		server_fail(s, has_tag ? p.head.tag : 0, &e);
		return;
	}
	orders[p.head.type](s, &p, first);
	set_timer(s);
}

int server_take_channel(struct server *s, int fd)
{
	s->channel = (struct watch){ .fd = fd, .ready = channel_ready };
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	int r = loop_add(&s->loop, &s->channel, EPOLLIN);
	s->is_blocked = false;
	flush(s);
	return r;
}

void server_drop_daemon(struct server *s)
{
	struct out *kept = NULL, **last = &kept;

	if (s->channel.fd >= 0) {
		loop_remove(&s->loop, &s->channel);
		fd_close(&s->channel.fd);
	}
	while (s->jobs) {
		struct job *j = s->jobs;

		s->jobs = j->next;
		job_free(j);
	}
	tickets_done(&s->tickets);
	making_drop(s);
	while (s->out_first) {
		struct out *o = s->out_first;

		s->out_first = o->next;
		o->next = NULL;
		if (o->head.type == L_GONE) {
			*last = o;
			last = &o->next;
		} else {
			out_free(o);
		}
	}
	s->out_first = kept;
	s->out_last = kept ? last : &s->out_first;
	for (size_t i = 0; i < COUNT(s->live); i++) /* nobody waits for these answers any more */
		if (s->live[i] && s->live[i]->tell == TELL_DONE)
			s->live[i]->tell = TELL_NONE;
}

static void child_ended(struct server *s, pid_t pid, int status)
{
	if (pid == s->daemon.pid) {
		supervise_ended(s, status);
		return;
	}
	if (pid == s->gates.pid) {
		gates_ended(&s->gates, server_now());
		return;
	}
	if (pid == s->cache.pid) {
		standby_ended(&s->cache, server_now());
		return;
	}
	if (pid == s->ledger.pid) {
		standby_ended(&s->ledger, server_now());
		return;
	}
	if (pid == s->hook.pid && pid > 0) {
		standby_ended(&s->hook, server_now());
		return;
	}
	for (struct job *j = s->jobs; j; j = j->next)
		if (j->pid == pid)
			j->pid = 0; /* its answer is in the socket, or none comes */
	for (size_t i = 0; i < COUNT(s->live); i++) {
		struct live *l = s->live[i];

		if (l && l->hold.pid == pid) {
			l->hold.pid = 0;
			l->status = status;
			ending_begin(s, l);
			return;
		}
	}
}

static void signals_ready(struct watch *w, uint32_t events)
{
	struct server *s = OF(w, signals);
	struct signalfd_siginfo info;
	int status;

	(void)events;
	if (read(w->fd, &info, sizeof info) != (ssize_t)sizeof info)
		return;
	if (info.ssi_signo == SIGCHLD) {
		for (int pid; (pid = os_try_wait(-1, &status, NULL)) > 0;)
			child_ended(s, pid, status);
	} else {
		supervise_signal(s, (int)info.ssi_signo);
	}
	set_timer(s);
}

static void timer_ready(struct watch *w, uint32_t events)
{
	struct server *s = OF(w, timer);
	uint64_t count;

	(void)events;
	if (read(w->fd, &count, sizeof count) < 0)
		return;
	uint64_t now = server_now();
	ending_tick(s, now);
	jobs_tick(s, now);
	vaults_tick(&s->vaults, now);
	making_tick(s, now);
	supervise_tick(s, now);
	standby_tick(&s->cache, now);
	standby_tick(&s->ledger, now);
	standby_tick(&s->hook, now);
	set_timer(s);
}

/* ---- birth ----------------------------------------------------------------------------- */

static int watch_events(struct server *s, struct err *e)
{
	static const int signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COUNT(signals); i++)
		sigaddset(&set, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN); /* an answer, not an end */
	s->signals = (struct watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		                     .ready = signals_ready };
	s->timer =
	    (struct watch){ .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		            .ready = timer_ready };
	if (s->signals.fd < 0 || s->timer.fd < 0)
		return err_sys(e, errno, "watch signals and time");
	int r = loop_init(&s->loop);
	if (r >= 0)
		r = loop_pulse(&s->loop);
	if (r >= 0)
		r = loop_add(&s->loop, &s->signals, EPOLLIN);
	if (r >= 0)
		r = loop_add(&s->loop, &s->timer, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch signals and time") : 0;
}

/* FSX-12: what no sandbox is shown, whoever asks. */
static int set_rules(struct server *s, struct err *e)
{
	static const char *const kernels[] = { "/proc", "/sys", "/dev" };
	struct hostpath_rules *rules = &s->opener.rules;
	const int ours[] = { s->kit.common.run_fd, s->dirs.run_fd, s->dirs.state_fd };

	for (size_t i = 0; i < COUNT(ours); i++)
		if (hostpath_forbid(rules, ours[i], true, e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(kernels); i++) {
		AUTO(fd_close) int fd = os_openat(AT_FDCWD, kernels[i], O_PATH | O_DIRECTORY, 0);

		if (fd >= 0 && hostpath_forbid(rules, fd, false, e) < 0)
			return -1;
	}
	return 0;
}

static int open_tops(struct server *s, struct err *e)
{
	for (size_t i = 0; i < s->opts->n_host_paths; i++) {
		const char *path = s->opts->host_paths[i];
		int fd =
		    path[0] != '/' ? -EINVAL : os_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);

		if (fd < 0)
			return err_sys(e, -fd, "host path %s", path);
		s->top_fds[i] = fd;
		s->opener.n_tops++;
	}
	s->opener.top_paths = s->opts->host_paths;
	s->opener.top_fds = s->top_fds;
	return 0;
}

/* Every sandbox costs us a descriptor. */
static void raise_limits(void)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) == 0)
		(void)os_setrlimit(RLIMIT_NOFILE, now.rlim_max, now.rlim_max);
}

static void vaults_changed(struct vaults *all)
{
	set_timer(OF(all, vaults));
}

static int open_standbys(struct server *s, struct err *e)
{
	s->cache = (struct standby){ .program = "caisson-cache",
		                     .folder = "cache",
		                     .title = "the package cache",
		                     .socket_type = SOCK_STREAM,
		                     .n_pairs = 2,
		                     .id = s->opts->service_id + 2,
		                     .args = s->opts->cache_args };
	s->ledger = (struct standby){ .program = "caisson-ledger",
		                      .folder = "ledger",
		                      .title = "the ledger",
		                      .socket_type = SOCK_SEQPACKET,
		                      .n_pairs = 1,
		                      .outlives = true,
		                      .id = s->opts->service_id + 3,
		                      .args = s->opts->ledger_args };
	s->hook = (struct standby){ .program = "caisson-hook",
		                    .folder = "hook",
		                    .title = "the sender of webhooks",
		                    .socket_type = SOCK_SEQPACKET,
		                    .n_pairs = 1,
		                    .id = s->opts->service_id + 4,
		                    .key = s->opts->hook_key,
		                    .args = s->opts->hook_args };
	struct standby *const all[] = { &s->cache, &s->ledger, &s->hook };

	for (size_t i = 0; i < COUNT(all); i++) {
		all[i]->is_root = s->kit.host.is_root;
		all[i]->cgroup = &s->kit.host.cgroup;
		all[i]->state_fd = s->dirs.state_fd;
		all[i]->loop = &s->loop;
		if (standby_open(all[i], e) < 0)
			return -1;
	}
	s->gates.cache_fd = s->cache.pairs[STANDBY_GATE].near_fd;
	return 0;
}

static int open_all(struct server *s, struct err *e)
{
	if (kit_open(&s->kit, e) < 0)
		return -1;
	const struct rundir_opts dirs = { .state = s->opts->state,
		                          .run = s->opts->run,
		                          .is_root = s->kit.host.is_root,
		                          .service_id = s->opts->service_id,
		                          .api_fd = s->opts->api_fd };

	if (rundir_open(&s->dirs, &dirs, e) < 0)
		return -1;
	s->opener.is_root = s->gates.is_root = s->kit.host.is_root;
	s->gates.id = s->opts->service_id + 1;
	s->gates.ca = s->opts->gate_ca;
	s->gates.key_source = s->opts->gate_key;
	s->gates.state_fd = s->dirs.state_fd;
	s->gates.cgroup = &s->kit.host.cgroup;
	s->opener.api_dev = s->dirs.api_dev;
	s->opener.api_ino = s->dirs.api_ino;
	if (set_rules(s, e) < 0 || open_tops(s, e) < 0 || watch_events(s, e) < 0)
		return -1;
	if (open_standbys(s, e) < 0)
		return -1;
	s->lends.loop = &s->loop;
	s->lends.run_fd = s->dirs.run_fd;
	s->lends.state_fd = s->dirs.state_fd;
	if (s->kit.host.is_root && lends_open(&s->lends, s->dirs.api_fd, e) < 0)
		return -1;
	s->vaults = (struct vaults){ .loop = &s->loop,
		                     .changed = vaults_changed,
		                     .is_root = s->kit.host.is_root,
		                     .cgroup = &s->kit.host.cgroup,
		                     .slots_fd = s->kit.common.slots_fd,
		                     .vt_fd = s->dirs.vt_fd,
		                     .trees_fd = s->dirs.trees_fd,
		                     .blobs_fd = s->dirs.blobs_fd,
		                     .vol_fd = s->dirs.vol_fd };
	return vaults_init(&s->vaults, e);
}

static void close_all(struct server *s)
{
	server_drop_daemon(s);
	while (s->out_first) {
		struct out *o = s->out_first;

		s->out_first = o->next;
		out_free(o);
	}
	for (size_t i = 0; i < COUNT(s->live); i++)
		if (s->live[i]) { /* its monitor has its own locks */
			slot_locks_done(&s->live[i]->hold.locks);
			free(s->live[i]);
		}
	for (size_t i = 0; i < s->opener.n_tops; i++)
		fd_close(&s->top_fds[i]);
	lends_done(&s->lends);
	vaults_done(&s->vaults);
	fd_close(&s->signals.fd);
	fd_close(&s->timer.fd);
	loop_close(&s->loop);
	gates_done(&s->gates);
	standby_done(&s->cache);
	standby_done(&s->ledger);
	standby_done(&s->hook);
	rundir_done(&s->dirs, s->daemon.was_ready && s->status == 0);
	kit_done(&s->kit);
}

int server_run(const struct server_opts *o, monitor_fn *monitor, struct err *e)
{
	struct server *s = mem_alloc(sizeof *s);

	s->opts = o;
	s->monitor = monitor;
	s->loop.epoll_fd = s->channel.fd = s->signals.fd = s->timer.fd = -1;
	s->gates.channel_fd = s->gates.cache_fd = s->lends.door.fd = -1;
	standby_init(&s->cache);
	standby_init(&s->ledger);
	standby_init(&s->hook);
	s->out_last = &s->out_first;
	raise_limits();
	int r = open_all(s, e);
	if (r == 0) {
		(void)ending_sweep(s);
		r = supervise_start(s, e);
	}
	if (r == 0) {
		set_timer(s);
		r = loop_run(&s->loop);
		r = r < 0 ? err_sys(e, -r, "wait for events") : s->status;
	}
	close_all(s);
	free(s);
	return r;
}
