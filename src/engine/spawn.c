#include "engine/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/userns.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "os/pulse.h"
#include "os/sock.h"

int spawn_start_ms(void)
{
	return (int)fault_number("CAISSON_START_MS", SPAWN_MS);
}

/* Until there is something to read; ETIME tells that the time is over. */
static int await(const struct spawn_init *init, int fd, struct err *e)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	int ms = spawn_start_ms();

	if (os_poll(&wait, 1, ms) != 0)
		return 0;
	err_new(e, ERR_INTERNAL, "%s: pid 1 is still at that after %d ms",
	        launch_inside_name(init->progress->inside), ms);
	e->sys = ETIME;
	return -1;
}

/* ---- pid 1 ------------------------------------------------------------------------- */

static void take_gift(struct spawn_init *init, char letter, int fds[NET_SOCKETS], size_t n)
{
	if (letter == GIFT_NET && n == NET_SOCKETS) {
		memcpy(init->net_fds, fds, sizeof init->net_fds);
		return;
	}
	if (letter == GIFT_LIVE && init->n_live < COUNT(init->live_fds)) {
		init->live_fds[init->n_live++] = fds[0];
		return;
	}
	*(letter == GIFT_DOOR      ? &init->door_fd
	  : letter == GIFT_SCRATCH ? &init->scratch_fd
	  : letter == GIFT_TRUST   ? &init->trust_fd
	                           : &init->rules_fd) = fds[0];
}

/* Descriptors that come with a letter, then the last word. */
static int read_report(struct spawn_init *init, struct err *e)
{
	union {
		char letter;
		struct proof_word word;
		struct err e;
	} m;
	int n;

	for (;;) {
		int fds[NET_SOCKETS];
		size_t n_fds = COUNT(fds);

		if (await(init, init->report_fd, e) < 0)
			return -1;
		n = os_recv(init->report_fd, &m, sizeof m, fds, &n_fds);
		if (n == (int)sizeof m.word) {
			init->proved |= m.word.proved;
			continue;
		}
		if (n != 1 || n_fds == 0)
			break;
		take_gift(init, m.letter, fds, n_fds);
	}
	if (n != (int)sizeof m.e)
		return err_new(e, ERR_INTERNAL, "pid 1 died while it built the walls");
	if (m.e.kind == ERR_NONE)
		return 0;
	*e = m.e;
	e->msg[sizeof e->msg - 1] = '\0';
	return -1;
}

static void end_child(pid_t pid)
{
	int status;

	(void)kill(pid, SIGKILL); /* an own child, not yet waited for */
	(void)os_wait(pid, &status, NULL);
}

static int let_go(const struct box *box, struct spawn_init *s, int go_fd, struct err *e)
{
	int r;

	/* With root's rights the monitor itself can give birth in there; without, a helper does,
	 * and in a sandbox that stays the nursery, which must not be in there itself. Now: the
	 * child may be looked at only until it changes its ids. */
	if (box->is_root && !box->is_kept) {
		r = os_setns(s->pidfd, CLONE_NEWPID);
		if (r < 0)
			return err_sys(e, -r, "enter the pid namespace");
		s->is_entered = true;
	}
	if (userns_map(box, s->pid, e) < 0)
		return err_wrap(e, "user namespace");
	r = os_write_all(go_fd, "g", 1);
	return r < 0 ? err_sys(e, -r, "start pid 1") : 0;
}

struct pipes {
	int go[2], entered[2], walls[2], report[2];
};

static void pipes_done(struct pipes *p)
{
	int *ends[] = { p->go, p->entered, p->walls, p->report };

	for (size_t i = 0; i < COUNT(ends); i++) {
		fd_close(&ends[i][0]);
		fd_close(&ends[i][1]);
	}
}

static int pipes_open(struct pipes *p, struct err *e)
{
	int r = os_pipe(p->go, 0);

	if (r >= 0)
		r = os_socketpair(p->entered, SOCK_SEQPACKET);
	if (r >= 0)
		r = os_pipe(p->walls, 0);
	if (r >= 0)
		r = os_socketpair(p->report, SOCK_SEQPACKET);
	return r < 0 ? err_sys(e, -r, "pipe") : 0;
}

int spawn_init(const struct box *box, struct spawn_init *out, struct err *e)
{
	AUTO(pipes_done) struct pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	void *page = NULL;
	int pidfd = -1;

	if (pipes_open(&p, e) < 0)
		return -1;
	int r = os_share_zeros(sizeof(struct launch_progress), &page);
	if (r < 0)
		return err_sys(e, -r, "share a page with pid 1");
	struct inside_io io = { .go_fd = p.go[0],
		                .entered_fd = p.entered[0],
		                .walls_fd = p.walls[1],
		                .report_fd = p.report[1],
		                .progress = page };
	int pid = os_clone(
	    (struct clone_opts){ .flags = (uint64_t)box_namespaces(box), .pidfd = &pidfd });
	if (pid < 0)
		return err_sys(e, -pid, "clone into new namespaces");
	if (pid == 0) {
		/* The other ends: or it would never see the monitor, or the command, go. */
		fd_close(&p.go[1]);
		fd_close(&p.entered[1]);
		fd_close(&p.walls[0]);
		fd_close(&p.report[0]);
		launch_inside(box, io);
	}
	os_cpus_leave(&box->cpus, pid); /* until it hears the word to go on */
	*out = (struct spawn_init){ .pid = pid,
		                    .progress = page,
		                    .pidfd = pidfd,
		                    .report_fd = -1,
		                    .go_fd = -1,
		                    .entered_fd = -1,
		                    .walls_fd = -1,
		                    .cgroup_ns_fd = -1,
		                    .door_fd = -1,
		                    .rules_fd = -1,
		                    .scratch_fd = -1,
		                    .net_fds = { -1, -1, -1, -1 },
		                    .known = UINT32_MAX,
		                    .trust_fd = -1 };
	if (let_go(box, out, p.go[1], e) < 0) {
		end_child(pid);
		out->pid = 0;
		return -1;
	}
	out->report_fd = fd_take(&p.report[0]);
	out->go_fd = fd_take(&p.go[1]);
	out->entered_fd = fd_take(&p.entered[1]);
	out->walls_fd = fd_take(&p.walls[0]);
	return 0;
}

int spawn_await_walls(struct spawn_init *init, struct err *e)
{
	fd_close(&init->entered_fd); /* the first process has its own */
	int r = read_report(init, e);

	fd_close(&init->walls_fd);
	return r;
}

/* A name that stays old for a while is no reason to fail: the next call tries again. */
void spawn_follow_host(const struct spawn_init *init)
{
	for (size_t i = 0; i < init->n_live; i++)
		(void)os_fs_forget_names(init->live_fds[i]);
}

int spawn_become_init(struct spawn_init *init)
{
	int r = init->go_fd < 0 ? 0 : os_write_all(init->go_fd, "i", 1);

	fd_close(&init->go_fd);
	return r;
}

/* Its socket closes when it executes caisson-init, and when it dies. */
int spawn_await_init(struct spawn_init *init, struct err *e)
{
	int r = spawn_become_init(init);

	if (r < 0)
		return err_sys(e, -r, "reach pid 1");
	if (init->is_init)
		return 0;
	if (await(init, init->report_fd, e) < 0)
		return -1;
	int n = os_recv(init->report_fd, e, sizeof *e, NULL, NULL);
	if (n == (int)sizeof *e) {
		e->msg[sizeof e->msg - 1] = '\0';
		return -1;
	}
	if (n != 0)
		return err_new(e, ERR_INTERNAL, "pid 1 of the sandbox cannot be reached");
	init->is_init = true;
	return 0;
}

bool spawn_init_error(const struct spawn_init *init, struct err *e)
{
	return recv(init->report_fd, e, sizeof *e, MSG_DONTWAIT) == (ssize_t)sizeof *e &&
	       e->kind != ERR_NONE;
}

/* ---- the keeper -------------------------------------------------------------------- */

static int take_namespace(int report_fd, struct spawn_init *init, struct err *e)
{
	union {
		char letter;
		struct err e;
	} m;
	size_t n_fds = 1;
	int fd = -1;

	if (await(init, report_fd, e) < 0)
		return -1;
	int n = os_recv(report_fd, &m, sizeof m, &fd, &n_fds);

	if (n == 1 && n_fds == 1) {
		init->cgroup_ns_fd = fd;
		return 0;
	}
	if (n != (int)sizeof m.e)
		return err_new(e, ERR_INTERNAL, "the keeper of the cgroup namespace died");
	*e = m.e;
	e->msg[sizeof e->msg - 1] = '\0';
	return -1;
}

int spawn_keeper(const struct box *box, struct spawn_init *init, struct err *e)
{
	int report[2], status;
	int r = os_socketpair(report, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int report_read = report[0];
	AUTO(fd_close) int report_write = report[1];
	int pid = os_clone((struct clone_opts){ .cgroup_fd = box->cgroup.box_fd });
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0)
		launch_keeper(box, (struct payload_io){ .report_fd = report_write,
		                                        .progress = init->progress,
		                                        .init_pidfd = init->pidfd,
		                                        .cgroup_ns_fd = -1,
		                                        .entered_fd = init->entered_fd,
		                                        .walls_fd = init->walls_fd });
	fd_close(&report_write);
	r = take_namespace(report_read, init, e);
	if (r < 0)
		(void)kill(pid, SIGKILL);  /* our child, not waited for */
	(void)os_wait(pid, &status, NULL); /* it has nothing more to do */
	return r;
}

/* ---- a command --------------------------------------------------------------------- */

struct birth {
	const struct box *box;
	const struct command *command;
	struct payload_io io;
};

/* Born in its cgroup. Where the pids of the sandbox are used up v2 refuses that, but lets a process
 * be moved there: so that a full sandbox can still be looked at. */
static int clone_into(const struct box *box, struct payload_io *io, uint64_t flags)
{
	const struct cgroup_leaf *leaf = &io->leaf;
	int box_fd = box->cgroup.box_fd;
	struct clone_opts o = { .flags = flags,
		                .cgroup_fd = box_fd >= 0 && leaf->num ? leaf->fd : box_fd,
		                .is_marked = io->is_nursed };
	int pid = os_clone(o);

	if (pid != -EAGAIN || o.cgroup_fd < 0)
		return pid;
	io->is_to_move = true;
	o.cgroup_fd = 0;
	return os_clone(o);
}

int spawn_born(const struct box *box, struct payload_io *io)
{
	return clone_into(box, io, CLONE_PARENT);
}

/* In a helper: enters the user and pid namespaces and clones the command as the monitor's own
 * child, so that the monitor waits for it. */
static _Noreturn void helper(struct birth *b)
{
	struct payload_io *io = &b->io;
	struct err e = { 0 };
	char byte;
	int r = 0;

	if (io->walls_fd >= 0 && read(io->walls_fd, &byte, 1) != 1)
		_exit(125); /* pid 1 has said why */
	r = os_setns(io->init_pidfd, CLONE_NEWUSER | CLONE_NEWPID);
	if (r >= 0)
		r = spawn_born(b->box, io);
	if (r == 0) {
		io->is_in_userns = true;
		launch_payload(b->box, b->command, *io);
	}
	if (r < 0) {
		err_sys(&e, -r, "enter the namespaces");
		(void)os_send(io->report_fd, &e, sizeof e, NULL, 0);
		_exit(125);
	}
	_exit(os_send(io->report_fd, &r, sizeof r, NULL, 0) < 0 ? 125 : 0);
}

static int clone_command(struct birth *b, const struct spawn_init *init, struct spawn_command *out)
{
	bool is_first = b->io.walls_fd >= 0;
	int pid;

	if (init->is_entered) {
		if (is_first) /* we sleep soon, pid 1 works elsewhere */
			os_cpus_stay(&b->box->cpus);
		pid = clone_into(b->box, &b->io, 0);
		if (is_first)
			os_cpus_take(&b->box->cpus);
		if (pid == 0)
			launch_payload(b->box, b->command, b->io);
		out->pid = pid;
	} else {
		pid = os_clone((struct clone_opts){ 0 });
		if (pid == 0)
			helper(b);
		out->helper = pid;
	}
	return pid;
}

int spawn_command(const struct box *box, const struct spawn_init *init, const struct command *c,
                  struct payload_io io, struct spawn_command *out, struct err *e)
{
	int report[2];
	int r = os_socketpair(report, SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	*out = (struct spawn_command){ .listener_fd = -1, .pty_fd = -1, .report_fd = -1 };
	AUTO(fd_close) int report_read = report[0];
	AUTO(fd_close) int report_write = report[1];
	io.report_fd = report_write;
	io.progress = init->progress;
	io.init_pidfd = init->pidfd;
	io.cgroup_ns_fd = init->cgroup_ns_fd;
	io.rules_fd = init->rules_fd;
	io.known = init->known;
	io.is_in_userns = io.is_to_move = false;
	io.entered_fd = init->entered_fd;
	io.walls_fd = init->walls_fd;
	r = clone_command(&(struct birth){ box, c, io }, init, out);
	if (r < 0) {
		out->pid = out->helper = 0;
		return err_sys(e, -r, "clone");
	}
	out->report_fd = fd_take(&report_read);
	return 0;
}

/* It ends at once, and when well after it has sent the pid. */
static void end_helper(struct spawn_command *c)
{
	int status;

	if (c->helper > 0)
		(void)os_wait(c->helper, &status, NULL);
	c->helper = 0;
}

/* Messages from helper and command, told apart by size: the pid, a descriptor, what was proved, an
 * error. Which of the two speaks first is not known. */
enum spawn_word spawn_hear(struct spawn_command *c, struct err *e)
{
	union {
		int pid;
		char letter;
		struct proof_word word;
		struct err e;
	} m;
	int fd = -1;
	size_t n_fds = 1;
	int n = os_recv(c->report_fd, &m, sizeof m, &fd, &n_fds);

	if (n == -EAGAIN)
		return SPAWN_SILENT;
	if (n == (int)sizeof m.pid) {
		c->pid = m.pid;
		end_helper(c);
		return SPAWN_WORD;
	}
	/* A full descriptor table takes the gift away, not the letter. Every execve behind a
	 * filter without its listener fails: that is our failure, not the program's. */
	if (n == 1 && m.letter != GIFT_NONE && m.letter != GIFT_BARE && n_fds == 0) {
		end_helper(c);
		err_sys(e, EMFILE, "take a descriptor of the command's process");
		return SPAWN_FAILED;
	}
	if (n == 1 && m.letter == GIFT_NONE && !fault_layer_off("proof")) {
		end_helper(c);
		err_new(e, ERR_INTERNAL, "prove the walls: %s: no program start is reported",
		        wall_name(WALL_NOTIFY));
		return SPAWN_FAILED;
	}
	if (n == (int)sizeof m.word) {
		c->word = m.word.proved;
		c->proved |= c->word;
		c->is_proved = true;
		return SPAWN_WORD;
	}
	if (n == 1) {
		c->proved |= m.letter == GIFT_LISTENER ? WALL_BIT(WALL_NOTIFY) : 0;
		*(m.letter == GIFT_PTY ? &c->pty_fd : &c->listener_fd) = fd; /* none: -1 */
		c->gifts++;
		return SPAWN_WORD;
	}
	end_helper(c);
	if (n == (int)sizeof m.e) {
		*e = m.e;
		e->msg[sizeof e->msg - 1] = '\0';
		return SPAWN_FAILED;
	}
	if (n == 0 && c->pid > 0)
		return SPAWN_RUNS;
	if (n < 0)
		err_sys(e, -n, "hear the command's process");
	else
		err_new(e, ERR_INTERNAL,
		        "start the command: the helper that enters the namespaces died");
	return SPAWN_FAILED;
}
