/*
 * shells.c - named shells: a process that serves one command after the other.
 *
 *                 ┌──────────────────────── next command ────────────────────────┐
 *                 ▽                                                              │
 *   born ─▷ variables ─▷ folder ─▷ busy ─▷ idle ────────────────────────────────┘
 *              (given back, if there was one before)       any of them ─▷ ended
 *
 * The process is an ordinary one (procs.c); what is a command's own in it changes with every
 * command: number, log, deadline, end. A command is over when the shell reports, over a socket
 * that no command has; what it wrote is in the pipes by then. Whatever ends the process ends the
 * command, and its exit status is the command's; the shell is remembered, and the next command
 * starts another that gets back what the last report said.
 *
 * Whoever finds the socket from inside can lie about this shell and nothing else: what comes is
 * bounded, only a report is understood and only when one is due, anything else ends the shell.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/driver.h"
#include "monitor/monitor-internal.h"
#include "os/net.h"
#include "os/pulse.h"
#include "os/sock.h"

#define SHELLS_MAX 64
#define READ_BYTES 4096
#define LEFT_MAX 1024
#define SENT_MAX (8u << 20) /* with a dash before each line, and what is given back */

enum stage { STAGE_BORN, STAGE_ENV, STAGE_CWD, STAGE_BUSY, STAGE_IDLE };

struct shell {
	struct shell *next;
	struct monitor *monitor;
	char name[SHELL_NAME_SIZE];
	uint32_t num;      /* of its last command */
	struct proc *proc; /* NULL: it does not live */
	enum stage stage;
	struct watch channel; /* fd -1: closed */
	struct str out;       /* that waits for the shell, from out_at on */
	size_t out_at;
	char *script, *env; /* of the command that waits until it is born; env: n_env strings */
	size_t n_env;
	struct driver_report report;
	struct str state;                        /* as of the last report */
	bool has_lived, is_restarted, is_partly; /* partly: there were too many variables to keep */
	bool is_due;                             /* the client is to be told */
	char ended[96], reason[191];             /* why the last one did; what the client is told */
	pid_t left[LEFT_MAX];                    /* what its commands left running */
	size_t n_left;
	uint64_t cpu_ms; /* of all its commands so far */
};

static struct shell *find(const struct monitor *m, const char *name)
{
	for (struct shell *sh = m->shells; sh; sh = sh->next)
		if (strcmp(sh->name, name) == 0)
			return sh;
	return NULL;
}

static void channel_ready(struct watch *w, uint32_t events);

static struct shell *add(struct monitor *m, const char *name)
{
	struct shell *sh = mem_alloc(sizeof *sh);
	size_t n = 0;

	for (const struct shell *other = m->shells; other; other = other->next)
		n++;
	if (n >= SHELLS_MAX) {
		free(sh);
		return NULL;
	}
	*sh = (struct shell){ .next = m->shells,
		              .monitor = m,
		              .channel = { .fd = -1, .ready = channel_ready } };
	snprintf(sh->name, sizeof sh->name, "%s", name);
	m->shells = sh;
	return sh;
}

/* ---- what the client is told ------------------------------------------------------- */

void shells_tell(struct monitor *m, bool is_all)
{
	for (struct shell *sh = m->shells; sh; sh = sh->next) {
		struct channel_shell s = { .flags = (sh->channel.fd >= 0 ? SHELL_LIVES : 0u) |
			                            (sh->is_restarted ? SHELL_RESTARTED : 0u),
			                   .text_len = (uint32_t)sh->state.len };

		sh->is_due |= is_all;
		if (!sh->is_due)
			continue;
		memcpy(s.name, sh->name, sizeof s.name);
		memcpy(s.reason, sh->reason, sizeof s.reason);
		sh->is_due = !talk_shell(m, sh->num, &s, str_text(&sh->state));
	}
}

static void add_reason(struct shell *sh, const char *more)
{
	size_t n = strlen(sh->reason);

	snprintf(sh->reason + n, sizeof sh->reason - n, "%s%s", n > 0 ? "; " : "", more);
	sh->is_due = true;
}

/* ---- the socket -------------------------------------------------------------------- */

static void close_channel(struct shell *sh)
{
	if (sh->channel.fd >= 0)
		loop_remove(&sh->monitor->loop, &sh->channel);
	fd_close(&sh->channel.fd);
	str_done(&sh->out);
	sh->out_at = 0;
	driver_report_done(&sh->report);
}

/* What it does not take now waits until there is room. */
static void flush(struct shell *sh)
{
	while (sh->channel.fd >= 0 && sh->out_at < sh->out.len) {
		ssize_t n = send(sh->channel.fd, sh->out.data + sh->out_at,
		                 sh->out.len - sh->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			break; /* no room; or it is gone, which its process tells */
		sh->out_at += (size_t)n;
	}
	bool is_left = sh->out_at < sh->out.len;
	if (!is_left) {
		str_done(&sh->out);
		sh->out_at = 0;
	}
	if (sh->channel.fd >= 0 &&
	    loop_change(&sh->monitor->loop, &sh->channel, EPOLLIN | (is_left ? EPOLLOUT : 0)) < 0)
		procs_stop(sh->proc, RUN_LOST, "the shell cannot be watched");
}

static struct str *to_send(struct shell *sh)
{
	sh->out.max = SENT_MAX;
	return &sh->out;
}

/* ---- what it reports --------------------------------------------------------------- */

static void run_script(struct shell *sh)
{
	const struct command *c = &sh->proc->command;

	driver_script(to_send(sh),
	              (struct driver_mode){ .has_stdin = c->has_stdin, .is_merged = c->is_merged },
	              sh->script);
	freep(&sh->script);
	freep(&sh->env);
	sh->stage = STAGE_BUSY;
	sh->proc->end = (struct channel_end){ 0 }; /* its own start is no program of the command */
	sh->proc->is_counted = false;
}

static void give_cwd(struct shell *sh)
{
	sh->stage = STAGE_CWD;
	driver_restore_cwd(to_send(sh), sh->state.data);
}

static void born(struct shell *sh)
{
	bool is_whole;

	if (sh->state.len == 0) {
		(void)driver_read(&sh->report, &sh->state, &is_whole);
		sh->is_due = true;
		run_script(sh);
	} else if (shell_text_env(sh->state.data)[0]) {
		sh->stage = STAGE_ENV;
		driver_restore_env(to_send(sh), sh->state.data, sh->env, sh->n_env);
	} else {
		give_cwd(sh);
	}
}

/* Its usage is the difference to the commands before: nobody waits for a shell that lives. */
static void over(struct shell *sh, int status)
{
	struct proc *p = sh->proc;
	uint64_t cpu_ms = p->command.wants_usage ? report_cpu_of_all(p->spawn.pid) : sh->cpu_ms;

	p->status = status << 8; /* as wait(2) has it */
	p->cpu_ms = cpu_ms - sh->cpu_ms;
	sh->cpu_ms = cpu_ms;
	sh->stage = STAGE_IDLE;
	streams_read(p); /* what it wrote is there already */
	streams_rest(p);
	if (p->command.is_alone)
		rest_end(p);
	else
		procs_close(p);
}

static void take_report(struct shell *sh)
{
	AUTO(str_done) struct str before = { .max = SHELL_TEXT_MAX };
	int status = (int)strtoul(str_text(&sh->report.text), NULL, 10);
	bool is_whole = true;

	switch (sh->stage) {
	case STAGE_BORN:
		born(sh);
		break;
	case STAGE_ENV:
		if (status != 0)
			add_reason(sh, "its variables could not be given back");
		give_cwd(sh);
		break;
	case STAGE_CWD:
		if (status != 0)
			add_reason(sh, "its folder is not there any more");
		run_script(sh);
		break;
	case STAGE_BUSY:
		str_addn(&before, str_text(&sh->state), sh->state.len);
		(void)driver_read(&sh->report, &sh->state, &is_whole);
		sh->is_partly = !is_whole;
		sh->is_due |= before.len != sh->state.len ||
		              memcmp(str_text(&before), str_text(&sh->state), before.len) != 0;
		driver_report_done(&sh->report);
		over(sh, status);
		return;
	case STAGE_IDLE:
		break; /* not heard */
	}
	driver_report_done(&sh->report);
	shells_tell(sh->monitor, false);
	flush(sh);
}

/* It is heard no more; its process tells how it ends. */
static void end_misused(struct shell *sh)
{
	struct proc *p = sh->proc;

	close_channel(sh);
	snprintf(sh->ended, sizeof sh->ended, "somebody wrote to its private descriptor");
	if (p->is_over)
		procs_kill(p);
	else
		procs_stop(p, RUN_LOST, "somebody wrote to the shell's private descriptor");
}

/* A little at a time, however much there is. */
static void channel_ready(struct watch *w, uint32_t events)
{
	struct shell *sh = OWNER_OF(w, struct shell, channel);
	char bytes[READ_BYTES];

	if (events & EPOLLOUT)
		flush(sh);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	int n = os_recv_some(w->fd, bytes, sizeof bytes);
	if (n == -EAGAIN)
		return;
	if (n == -EBADMSG) {
		end_misused(sh);
		return;
	}
	if (n <= 0) { /* `exec program`: what runs there now is no shell any more */
		close_channel(sh);
		if (sh->proc->is_over) /* else it is the command, and its process tells */
			procs_kill(sh->proc);
		return;
	}
	enum driver_word word =
	    sh->stage == STAGE_IDLE ? DRIVER_GARBAGE : driver_hear(&sh->report, bytes, (size_t)n);
	if (word == DRIVER_GARBAGE)
		end_misused(sh);
	else if (word == DRIVER_WHOLE && sh->proc->cause != RUN_EXITED)
		procs_kill(sh->proc); /* it was to end, and did not heed the hint */
	else if (word == DRIVER_WHOLE)
		take_report(sh);
}

/* ---- life -------------------------------------------------------------------------- */

static void note_end(struct shell *sh, const struct proc *p)
{
	if (sh->ended[0]) /* known already */
		return;
	if (p->cause != RUN_EXITED && !p->is_over)
		snprintf(sh->ended, sizeof sh->ended, "its last command was ended: %.60s",
		         p->reason);
	else if (!p->has_exited)
		snprintf(sh->ended, sizeof sh->ended, "it closed its private descriptor");
	else if (WIFSIGNALED(p->status))
		snprintf(sh->ended, sizeof sh->ended, "it was ended by signal %d",
		         WTERMSIG(p->status));
	else
		snprintf(sh->ended, sizeof sh->ended, "it ended with exit status %d",
		         WEXITSTATUS(p->status));
}

void shells_stopped(struct proc *p, const char *reason)
{
	close_channel(p->shell);
	snprintf(p->shell->ended, sizeof p->shell->ended, "%s", reason);
	p->shell->is_due = true;
	shells_tell(p->monitor, false);
}

/* What broke the new shell is not given to the next one. */
static void forget_env(struct shell *sh)
{
	size_t n = (size_t)(shell_text_env(sh->state.data) - sh->state.data);

	sh->state.data[n] = '\0';
	sh->state.len = n + 1;
}

void shells_ended(struct proc *p)
{
	struct shell *sh = p->shell;

	if (sh->stage < STAGE_BUSY && p->has_exited && p->cause == RUN_EXITED) {
		p->cause = RUN_LOST;
		snprintf(p->reason, sizeof p->reason, "the shell ended before it ran the command");
		if (sh->stage == STAGE_ENV)
			forget_env(sh);
	}
	note_end(sh, p);
	sh->has_lived |= p->is_running;
	if (p->has_exited) /* rusage is of all its commands */
		p->cpu_ms = p->cpu_ms > sh->cpu_ms ? p->cpu_ms - sh->cpu_ms : 0;
	sh->proc = NULL;
	p->shell = NULL;
	sh->is_due = true;
	freep(&sh->script);
	freep(&sh->env);
	close_channel(sh);
	streams_rest(p);
	shells_tell(sh->monitor, false);
}

static void remove_shell(struct shell *sh)
{
	struct shell **at = &sh->monitor->shells;

	while (*at != sh)
		at = &(*at)->next;
	*at = sh->next;
	close_channel(sh);
	str_done(&sh->state);
	free(sh->script);
	free(sh->env);
	free(sh);
}

void shells_drop(struct monitor *m, const char *name)
{
	struct shell *sh = find(m, name);
	struct proc *p = sh ? sh->proc : NULL;

	if (p)
		p->shell = NULL;
	if (sh)
		remove_shell(sh);
	if (p)
		procs_stop(p, RUN_KILLED, "its shell was deleted");
}

void shells_seed(struct monitor *m, const struct channel_shell *s, const char *text)
{
	struct shell *sh = find(m, s->name) ? NULL : add(m, s->name);

	if (!sh)
		return; /* its own memory is younger; or there is no room, which the command is told
		         */
	sh->state.max = SHELL_TEXT_MAX;
	str_addn(&sh->state, text, s->text_len);
	memcpy(sh->ended, s->reason, sizeof sh->ended);
	sh->ended[sizeof sh->ended - 1] = '\0';
	sh->has_lived = true;
}

/* ---- its commands ------------------------------------------------------------------ */

static void add_string(struct str *s, const char *text)
{
	str_addn(s, text, strlen(text) + 1);
}

/* The shell's own arguments in place of the command's; folder and variables as they are. */
static void start_text(const struct command *c, const char *env, struct str *out)
{
	const char *end = c->text + c->text_len;

	add_string(out, c->text);
	for (size_t i = 0; i < DRIVER_ARGC; i++)
		add_string(out, driver_argv[i]);
	str_addn(out, env, (size_t)(end - env));
}

static int open_channel(struct shell *sh, struct proc_start *s, struct err *e)
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_STREAM);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	(void)os_refuse_fds(fds[0]);
	sh->channel.fd = fds[0];
	s->extra_fd = fds[1];
	r = loop_add(&sh->monitor->loop, &sh->channel, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch the shell") : 0;
}

static void say_restart(struct shell *sh)
{
	sh->is_restarted = sh->has_lived;
	snprintf(sh->reason, sizeof sh->reason, "%s", sh->has_lived ? sh->ended : "");
	if (sh->is_restarted && sh->is_partly)
		add_reason(sh, "it had too many variables to keep the last changes");
	sh->ended[0] = '\0';
	sh->is_due = true;
}

static int start(struct shell *sh, struct proc_start *s, const char *script, struct err *e)
{
	AUTO(str_done) struct str text = { .max = ARGV_BYTES_MAX };
	const char *env = script + strlen(script) + 1;
	size_t env_len = (size_t)(s->command.text + s->command.text_len - env);

	start_text(&s->command, env, &text);
	if (text.overflow)
		return err_new(e, ERR_LIMIT, "command and environment exceed %u bytes",
		               ARGV_BYTES_MAX);
	if (open_channel(sh, s, e) < 0)
		return -1;
	freep(&sh->script);
	freep(&sh->env);
	sh->script = mem_strdup(script);
	sh->env = mem_alloc(env_len + 1);
	memcpy(sh->env, env, env_len);
	sh->n_env = s->command.envc;
	s->command.argc = DRIVER_ARGC;
	s->command.text = text.data;
	s->command.text_len = text.len;
	int r = procs_start(sh->monitor, s, e);
	s->command.text = NULL;
	sh->proc = r < 0 ? NULL : procs_find(sh->monitor, s->num);
	if (!sh->proc) /* that was told */
		return r;
	sh->proc->shell = sh;
	sh->num = s->num;
	sh->stage = STAGE_BORN;
	sh->n_left = 0;
	sh->cpu_ms = 0;
	say_restart(sh);
	shells_tell(sh->monitor, false);
	return 0;
}

/* What was written since the last command belongs to that one. */
static int go_on(struct shell *sh, struct proc_start *s, const char *script, struct err *e)
{
	struct proc *p = sh->proc;

	streams_read(p);
	procs_renew(p, s);
	if (streams_renew(p, e) < 0) {
		procs_stop(p, RUN_LOST, e->msg);
		return 0;
	}
	sh->num = p->num;
	sh->is_restarted = false;
	sh->script = mem_strdup(script);
	run_script(sh);
	flush(sh);
	talk_proc(p);
	return 0;
}

int shells_exec(struct monitor *m, struct proc_start *s, struct err *e)
{
	const char *name = s->command.text + strlen(s->command.text) + 1;
	const char *script = name + strlen(name) + 1;

	if (s->command.argc != 2 || !shell_name_is(name, strlen(name)) || s->command.is_tty ||
	    s->command.is_final)
		return err_new(e, ERR_INVALID, "the command is malformed");
	if (procs_check(m, s, e) < 0)
		return -1;
	struct shell *sh = find(m, name);
	if (!sh)
		sh = add(m, name);
	if (sh && sh->proc && sh->proc->is_over)
		procs_look(sh->proc); /* it may be dead, and we have not heard yet */
	if (!sh)
		return err_new(e, ERR_LIMIT, "%d shells are in this sandbox", SHELLS_MAX);
	if (sh->proc && !sh->proc->is_over)
		return err_new(e, ERR_INVALID, "the shell %s is busy", name);
	if (sh->proc && sh->channel.fd < 0) /* it is being ended, and would not hear us */
		shells_ended(sh->proc);
	if (sh->proc)
		return go_on(sh, s, script, e);
	int r = start(sh, s, script, e);
	if (!sh->proc)
		close_channel(sh);
	return r;
}

/* ---- what its commands left running ------------------------------------------------ */

static bool is_old(const struct shell *sh, pid_t pid)
{
	for (size_t i = 0; i < sh->n_left; i++)
		if (sh->left[i] == pid)
			return true;
	return false;
}

size_t shells_only_new(const struct proc *p, pid_t *pids, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		pid_t pid = pids[i];

		if (pid == p->spawn.pid || is_old(p->shell, pid))
			continue;
		pids[i] = pids[kept];
		pids[kept++] = pid; /* the others stay behind them */
	}
	return kept;
}

void shells_note_left(struct proc *p, const pid_t *pids, size_t n)
{
	struct shell *sh = p->shell;

	sh->n_left = n < LEFT_MAX ? n : LEFT_MAX;
	memcpy(sh->left, pids, sh->n_left * sizeof *pids);
}
