/*
 * proc.h - processes, identities and what they inherit. Value or -errno.
 */
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "base/base.h"

struct clone_opts {
	uint64_t flags; /* CLONE_*; the exit signal is SIGCHLD unless CLONE_PARENT is set */
	int cgroup_fd;  /* 0: stay in the caller's cgroup */
	int *pidfd;     /* NULL: none wanted */
	bool is_marked; /* the caller is behind our filter: it asks the monitor about such a call */
};
#define CLONE_MARK 128 /* bytes that a marked call says it has; the kernel knows fewer */

/* fork() with options: returns 0 in the child. */
int os_clone(struct clone_opts o);
int os_pidfd_open(pid_t pid);

/* Where a child begins. Left alone it may wait for a busy processor while another one idles;
 * whoever knows which of the two goes on working knows better. Hints: with one processor, or too
 * many for a set, nothing happens. Whoever was sent away, or was born to one that stays, has to
 * take all processors back, after the word that let it go on. */
void os_cpus_all(cpu_set_t *all);
void os_cpus_stay(const cpu_set_t *all);               /* the caller and its next child, here */
void os_cpus_leave(const cpu_set_t *all, pid_t child); /* anywhere but here */
void os_cpus_take(const cpu_set_t *all);

int os_pidfd_signal(int pidfd, int sig);
int os_kill(pid_t pid, int sig);
int os_setns(int pidfd, int flags);
int os_unshare(int flags);
int os_setsid(void);
int os_wait(pid_t pid, int *status, struct rusage *usage);     /* blocks */
int os_try_wait(pid_t pid, int *status, struct rusage *usage); /* 0: still running */

/* Becomes the tracer of this thread and waits until it stands still; it goes on when we end. The
 * thread does not notice. -ESRCH: it has ended. */
int os_trace_stop(pid_t tid);

int os_set_ids(uid_t uid, gid_t gid); /* real, effective, saved: gid first */
/* The saved user id stays: v1 lets whoever has opened a cgroup move processes that have his id as
 * theirs or saved. */
int os_set_ids_but_saved(uid_t uid, gid_t gid);
/* Who makes files. Capabilities stay only with SECBIT_NO_SETUID_FIXUP. */
int os_set_fsids(uid_t uid, gid_t gid);
int os_drop_groups(void);
int os_set_hostname(const char *name);
int os_share_zeros(size_t n, void **out); /* zeros, the same in children */

int os_prctl(int option, unsigned long arg);
int os_prctl_get(int option);
int os_setrlimit(int resource, uint64_t soft, uint64_t hard);
int os_execveat(int fd, const char *path, char *const argv[], char *const env[], int flags);
int os_new_session_keyring(void);
int os_reset_signals(void); /* default actions, empty mask */
/* Every signal that somebody may send by mistake or in anger does nothing from now on, and
 * interrupts nothing; neither do children inherit that over an execve. Left are those of faults,
 * SIGCHLD, SIGPIPE, SIGALRM (os/pulse.h), and SIGTERM, which means an end. */
int os_shrug_signals(void);
int os_reset_limits(void);   /* none is the caller's; hard ones only go down */
int os_reset_schedule(void); /* nice 0, SCHED_OTHER, best effort: a lower nice needs rights */
