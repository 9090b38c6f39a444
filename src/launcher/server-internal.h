/*
 * server-internal.h - the state of the launcher program, shared by its files.
 *
 *   server.c     the loop, the channel, what is asked for
 *   making.c     sandboxes that are to be made, and workspaces that are to be opened
 *   supervise.c  the daemon: start, death, restart, end
 *   ending.c     sandboxes: from their monitor's death until nothing is left
 */
#pragma once

#include "io/loop.h"
#include "launcher/gates.h"
#include "launcher/kit.h"
#include "launcher/lends.h"
#include "launcher/opener.h"
#include "launcher/order.h"
#include "launcher/rundir.h"
#include "launcher/server.h"
#include "launcher/slot.h"
#include "launcher/standby.h"
#include "launcher/vaults.h"

#define JOBS_MAX 256
#define JOBS_OF_ONE_MAX 64 /* whose file system does not answer must not keep others out */

enum live_tell { TELL_NONE, TELL_GONE, TELL_DONE };

/* One sandbox, from its making until nothing is left of it. */
struct live {
	struct live *next; /* in the list of those that end */
	struct launcher_hold hold;
	int slot;
	pid_t pid;
	int status;
	bool is_kept;
	bool is_ending;
	enum live_tell tell;
	uint32_t tag; /* TELL_DONE */
	uint64_t due_ms;
	unsigned int delay_ms;
	char name[LAUNCH_NAME_MAX];
};

/* A path that is being opened. */
struct job {
	struct watch watch;
	struct server *server;
	struct job *next;
	struct opener_caller caller;
	uint32_t tag, want;
	pid_t pid; /* 0: waited for */
	uint64_t deadline_ms;
};

/* A sandbox that waits for the mount of its workspace; a workspace that is being opened. */
struct making;
struct opening;

struct out {
	struct out *next;
	int fd;
	size_t n;
	struct launch_head head;
	unsigned char bytes[sizeof(struct err)];
};

struct daemon {
	pid_t pid; /* 0: not running */
	uint64_t restart_ms;
	unsigned int backoff_ms;
	bool is_ready, was_ready; /* in this life; ever */
	bool is_told;             /* to end */
};

struct server {
	const struct server_opts *opts;
	monitor_fn *monitor;
	struct loop loop;
	struct watch signals, timer, channel; /* channel.fd -1: no daemon */
	struct kit kit;
	struct rundir dirs;
	struct opener opener;
	struct lends lends;
	int top_fds[SERVER_HOST_PATHS_MAX];
	struct tickets tickets;
	struct live *live[SLOT_COUNT];
	struct live *ending;
	struct job *jobs;
	size_t n_jobs;
	struct out *out_first, **out_last;
	bool is_blocked; /* the daemon takes nothing now, and is not read from */
	struct daemon daemon;
	struct gates gates;
	struct vaults vaults;
	struct making *makings;
	struct opening *openings;
	struct standby cache, ledger, hook;
	bool is_leaving;
	uint64_t leave_ms; /* the latest */
	int status;        /* to exit with */
};

uint64_t server_now(void);

/* To the daemon: now, or when it can take it. Takes over fd. */
void server_send(struct server *s, struct launch_head head, const void *body, int fd);
void server_fail(struct server *s, uint32_t tag, const struct err *e);
/* The daemon is gone: so is what it asked for. News of ended sandboxes waits for the next. */
void server_drop_daemon(struct server *s);
int server_take_channel(struct server *s, int fd); /* 0 or -errno */

void making_begin(struct server *s, const struct launch_packet *p);
void opening_begin(struct server *s, const struct launch_packet *p);
void making_tick(struct server *s, uint64_t now_ms);
uint64_t making_due(const struct server *s);
void making_drop(struct server *s); /* of both: nobody waits for them any more */

int supervise_start(struct server *s, struct err *e) MUST_USE;
void supervise_ended(struct server *s, int status);
void supervise_signal(struct server *s, int sig);
void supervise_tick(struct server *s, uint64_t now_ms);
uint64_t supervise_due(const struct server *s);

/* The sandbox's monitor is dead, or never was. */
void ending_begin(struct server *s, struct live *l);
void ending_tick(struct server *s, uint64_t now_ms);
uint64_t ending_due(const struct server *s);
bool ending_is_idle(const struct server *s); /* nothing ends, and only kept ones live */
/* Ends what dead launchers left in this slot; false when it lives. */
bool ending_take_dead(struct server *s, int slot, enum live_tell tell, uint32_t tag);
/* SIGKILL for a monitor that does not answer, ours or that of a launcher before us; its end is
 * told as any other. False: there is no such. */
bool ending_kill(struct server *s, int slot, const char *name);
/* L_CLEAN, L_KILL and L_SWEEP; each is answered by L_DONE. */
void ending_on_clean(struct server *s, const struct launch_packet *p, int fd);
void ending_on_kill(struct server *s, const struct launch_packet *p, int fd);
void ending_on_sweep(struct server *s, const struct launch_packet *p, int fd);
size_t ending_sweep(struct server *s); /* all slots; returns how many were found dead */
