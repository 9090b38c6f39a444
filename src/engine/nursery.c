#include "engine/nursery.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/seccomp.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

/* Descriptors of an order; those that are there come in this order. */
enum order_fd {
	ORDER_STDIN,
	ORDER_STDOUT,
	ORDER_STDERR,
	ORDER_EXTRA,
	ORDER_PROGRAM,
	ORDER_REPORT,
	ORDER_LEAF,
	ORDER_TEXT,
	ORDER_FDS
};

struct order {
	struct command command;
	uint32_t leaf_num;
	uint32_t known; /* struct payload_io's */
	bool has[ORDER_FDS];
};

/* ---- in the nursery ---------------------------------------------------------------- */

struct nurse {
	const struct box *box;
	const struct spawn_init *init;
	int order_fd;
};

static void sort_fds(int *fds, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && fds[k] < fds[k - 1]; k--) {
			int fd = fds[k];

			fds[k] = fds[k - 1];
			fds[k - 1] = fd;
		}
}

/* So that a list of processes tells it from a monitor. */
static int step_name(struct nurse *n, struct err *e)
{
	static const char name[] = "caisson-nurse";
	int r = os_prctl(PR_SET_NAME, (unsigned long)(uintptr_t)name);

	(void)n;
	return r < 0 ? err_sys(e, -r, "prctl") : 0;
}

/* The monitor's own, of clients, logs and other commands: whoever waits for their end would wait
 * for us too. */
static int step_close(struct nurse *n, struct err *e)
{
	const struct cgroup *cg = &n->box->cgroup;
	int kept[8 + CGROUP_KEYS_MAX] = { n->order_fd, n->init->pidfd, n->init->cgroup_ns_fd,
		                          n->init->rules_fd, cg->box_fd };
	size_t n_kept = 5;
	unsigned int from = 3;
	int r = 0;

	for (size_t i = 0; i < cg->n_trees && n_kept < COUNT(kept); i++)
		kept[n_kept++] = cg->trees[i].tasks_fd;
	sort_fds(kept, n_kept);
	for (size_t i = 0; i < n_kept && r >= 0; i++) {
		if (kept[i] < (int)from)
			continue;
		if (kept[i] > (int)from)
			r = os_close_range(from, (unsigned int)kept[i] - 1, 0);
		from = (unsigned int)kept[i] + 1;
	}
	if (r >= 0)
		r = os_close_range(from, ~0u, 0);
	return r < 0 ? err_sys(e, -r, "close what was inherited") : 0;
}

/* All but that of the cgroup, in which nobody could be born from outside of it. */
static int step_enter(struct nurse *n, struct err *e)
{
	int r = os_setns(n->init->pidfd, box_namespaces(n->box));

	if (r >= 0) /* entering has opened us */
		r = os_prctl(PR_SET_DUMPABLE, 0);
	return r < 0 ? err_sys(e, -r, "setns") : 0;
}

/* As every command has it: the filter lets nobody set it. */
static int step_core(struct nurse *n, struct err *e)
{
	int r = os_setrlimit(RLIMIT_CORE, 1, 1);

	(void)n;
	return r < 0 ? err_sys(e, -r, "setrlimit") : 0;
}

static int step_filter(struct nurse *n, struct err *e)
{
	static const char letter = GIFT_LISTENER;
	int r = os_prctl(PR_SET_NO_NEW_PRIVS, 1);

	if (r < 0)
		return err_sys(e, -r, "set no_new_privs");
	AUTO(fd_close) int listener = seccomp_payload(e);
	if (listener < 0)
		return e->kind == ERR_NONE ? err_new(e, ERR_INTERNAL, "there is no listener") : -1;
	r = os_send(n->order_fd, &letter, 1, &listener, 1);
	return r < 0 ? err_sys(e, -r, "hand the listener over") : 0;
}

/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct nurse *n, struct err *e);
} nursery_steps[] = {
	{ "take a name",              step_name },
	{ "close what was inherited", step_close },
	{ "enter the namespaces",     step_enter },
	{ "bound its cores",          step_core },
	{ "load the filter",          step_filter },
};
/* clang-format on */

static bool read_text(int fd, struct command *c)
{
	c->text = mem_alloc(c->text_len + 1);
	for (size_t at = 0; at < c->text_len;) {
		ssize_t n = pread(fd, c->text + at, c->text_len - at, (off_t)at);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static void bear(const struct nurse *n, struct order *o, const int fds[ORDER_FDS])
{
	struct payload_io io = { .stdin_fd = fds[ORDER_STDIN],
		                 .stdout_fd = fds[ORDER_STDOUT],
		                 .stderr_fd = fds[ORDER_STDERR],
		                 .extra_fd = fds[ORDER_EXTRA],
		                 .program_fd = fds[ORDER_PROGRAM],
		                 .rules_fd = n->init->rules_fd,
		                 .report_fd = fds[ORDER_REPORT],
		                 .progress = n->init->progress,
		                 .init_pidfd = n->init->pidfd,
		                 .cgroup_ns_fd = n->init->cgroup_ns_fd,
		                 .known = o->known,
		                 .is_in_userns = true,
		                 .is_nursed = true,
		                 .entered_fd = -1,
		                 .walls_fd = -1,
		                 .leaf = {
				     .num = o->leaf_num, .fd = fds[ORDER_LEAF], .events_fd = -1 } };
	struct err e = { 0 };
	int pid = read_text(fds[ORDER_TEXT], &o->command) ? spawn_born(n->box, &io) : -EIO;

	if (pid == 0)
		launch_payload(n->box, &o->command, io);
	if (pid < 0) {
		err_sys(&e, -pid, "clone");
		(void)os_send(io.report_fd, &e, sizeof e, NULL, 0); /* or the monitor is gone */
	} else {
		(void)os_send(io.report_fd, &pid, sizeof pid, NULL, 0);
	}
	freep(&o->command.text);
}

/* In a child of the monitor, with its ids: all namespaces of the sandbox but that of the cgroup,
 * and the pid namespace for its children only. */
static _Noreturn void nurse(struct nurse n)
{
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(nursery_steps); i++) {
		if (nursery_steps[i].run(&n, &e) < 0) {
			err_wrap(&e, "%s", nursery_steps[i].name);
			(void)os_send(n.order_fd, &e, sizeof e, NULL, 0);
			_exit(125);
		}
	}
	for (;;) {
		struct order o;
		int came[ORDER_FDS], fds[ORDER_FDS];
		size_t n_came = COUNT(came), at = 0;

		if (os_recv(n.order_fd, &o, sizeof o, came, &n_came) != (int)sizeof o)
			_exit(0); /* the monitor has gone, or wants us no more */
		for (size_t i = 0; i < COUNT(fds); i++)
			fds[i] = o.has[i] && at < n_came ? came[at++] : -1;
		bear(&n, &o, fds);
		for (size_t i = 0; i < COUNT(fds); i++)
			fd_close(&fds[i]);
	}
}

/* ---- in the monitor ---------------------------------------------------------------- */

static int take_listener(int fd, int *listener_fd, struct err *e)
{
	union {
		char letter;
		struct err e;
	} m;
	size_t n_fds = 1;
	int n = os_recv(fd, &m, sizeof m, listener_fd, &n_fds);

	if (n == 1 && n_fds == 1)
		return 0;
	if (n != (int)sizeof m.e)
		return err_new(e, ERR_INTERNAL, "it died");
	*e = m.e;
	e->msg[sizeof e->msg - 1] = '\0';
	return -1;
}

int nursery_start(const struct box *box, const struct spawn_init *init, struct nursery *out,
                  int *listener_fd, struct err *e)
{
	int pair[2];
	int r = os_socketpair(pair, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = pair[0];
	AUTO(fd_close) int theirs = pair[1];
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0)
		nurse((struct nurse){ box, init, theirs });
	fd_close(&theirs);
	struct nursery made = { .pid = pid, .order_fd = fd_take(&ours) };
	r = take_listener(made.order_fd, listener_fd, e);
	/* It waits for the monitor's answer while it bears: an order must never wait for it. */
	if (r == 0 && fcntl(made.order_fd, F_SETFL, O_NONBLOCK) < 0) {
		fd_close(listener_fd);
		r = err_sys(e, errno, "fcntl");
	}
	if (r < 0) {
		nursery_end(&made);
		return err_wrap(e, "start the process that bears commands");
	}
	*out = made;
	return 0;
}

/* The text as a file of its own: it may be longer than a packet. */
static int text_file(const struct command *c)
{
	AUTO(fd_close) int fd = os_memfd("command");

	if (fd < 0)
		return fd;
	int r = os_write_all(fd, c->text, c->text_len);
	return r < 0 ? r : fd_take(&fd);
}

int nursery_order(const struct nursery *n, const struct command *c, struct payload_io io,
                  struct spawn_command *out, struct err *e)
{
	struct order o = { .command = *c, .leaf_num = io.leaf.num, .known = io.known };
	int report[2], send[ORDER_FDS];
	size_t n_send = 0;
	AUTO(fd_close) int text = text_file(c);

	if (text < 0)
		return err_sys(e, -text, "write its text");
	int r = os_socketpair(report, SOCK_SEQPACKET | SOCK_NONBLOCK);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int report_read = report[0];
	AUTO(fd_close) int report_write = report[1];
	const int fds[ORDER_FDS] = { io.stdin_fd,   io.stdout_fd, io.stderr_fd, io.extra_fd,
		                     io.program_fd, report_write, io.leaf.fd,   text };

	for (size_t i = 0; i < COUNT(fds); i++) {
		o.has[i] = fds[i] >= 0;
		if (o.has[i])
			send[n_send++] = fds[i];
	}
	o.command.text = NULL;
	r = os_send(n->order_fd, &o, sizeof o, send, n_send);
	if (r < 0)
		return err_sys(e, -r, "order the command");
	*out = (struct spawn_command){
		.listener_fd = -1, .pty_fd = -1, .report_fd = fd_take(&report_read), .gifts = 1
	};
	return 0;
}

void nursery_end(struct nursery *n)
{
	int status;

	fd_close(&n->order_fd);
	if (n->pid > 0) {
		(void)kill(n->pid, SIGKILL); /* our child, not waited for */
		(void)os_wait(n->pid, &status, NULL);
	}
	n->pid = 0;
}
