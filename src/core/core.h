/*
 * core.h - the life of sandboxes and processes. The routes of the API (src/api) call what is in
 * here.
 *
 *   core.c      the one struct, start, end, recovery
 *   maker.c     the channel to the launcher: make, open, clean
 *   sandbox.c   sandboxes: objects in memory, their states, their rows
 *   link.c      the channel to one sandbox's monitor
 *   process.c   processes: start, end, who waits for them; process_verbs.c: what is asked of one
 *   shells.c    named shells: what the next one gets back
 *   output.c    what a process wrote, read from its log
 *   birth.c     a log that speaks for a row that is not there yet
 *   quota.c     what one tenant has, and may have
 *   gate.c      the gate of a sandbox: its child, its rules; gate_ask.c what it holds
 *   approval.c  what waits for a person, approval_text.c in words; loosen.c: what we do then
 *   hook.c      who is told of that by HTTP
 *   ledger.c    what happened, on its way to the ledger; notes.c: in which words
 *   service.c   one command of ours in a throw-away sandbox
 *   repo.c      repositories: their mirrors
 *   checkout.c  a commit as trees of a workspace
 *   trees.c     folders of the store; vault.c: the link to who keeps them
 *   census.c    what lies there; evict.c who goes when it is too much; fsck.c
 *               whether all fits; flatten.c long stacks
 *   workspace.c and its siblings: durable trees, their points, who works with them
 *   files.c     the tree worker of a sandbox: requests and answers about files
 *   dial.c      connections to ports inside
 *   secret.c    sealed values, and which sandbox has which
 *   image.c     names of imported root file systems; image_import.c how they come
 *   template.c  what sandboxes can be made from; template_build.c how it is built by steps,
 *               template_end.c how that ends
 *   runner.c    one command in a sandbox that somebody else has
 *   expire.c    what ends by itself: time to live, idle ones, old records
 *
 * One thread, one loop. Truth is in three places, and each knows what the others may not: a monitor
 * knows what runs, a log says how a process ended, the store says what was ever asked for. The
 * memory of this process is a cache of them: it may die at any instant.
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "core/fail.h"
#include "core/id.h"
#include "core/pace.h"
#include "core/roster.h"
#include "io/loop.h"
#include "io/timer.h"
#include "spec/config.h"
#include "store/processes.h"
#include "store/sandboxes.h"
#include "store/store.h"
#include "wire/channel.h"
#include "wire/launch.h"

#define TENANT_SIZE 64
#define ACTOR_SIZE 48 /* "uid:0", "token:tk_…" */
#define NUM_GAP                                                                                    \
	1000 /* after a restart: numbers that a monitor may know and the store does not;           \
	      */
#define NUM_GAP_RANDOM 0xffff /* and how many lives without a row there were nobody knows */

struct sbx;

struct core_config {
	const char *state_dir, *run_dir;
	struct quota quota;                                    /* per tenant; 0: none */
	struct config_store disk;                              /* of workspaces */
	const struct config_net *net;                          /* the operator's, for all */
	struct limit defaults[LIMIT_COUNT], most[LIMIT_COUNT]; /* the operator's, for specs */
	uint64_t ttl_ms;          /* of a sandbox that names none; 0: for ever */
	uint64_t keep_records_ms; /* ended processes and their logs */
	uint64_t keep_trash_ms;   /* workspaces that were removed */
	bool has_webhook;         /* somebody is told of approvals */
	bool has_process_events;  /* programs that commands start are in the ledger */
	uint64_t idle_exit_ms;    /* on demand: end when nothing is left to do; 0: never */
};

struct core {
	struct loop *loop;
	struct timers timers;
	struct store *store;
	struct core_config config;
	struct launch_host host; /* what it can enforce, as the launcher says */
	int logs_fd;             /* the folder of logs */
	int sb_fd;               /* the folder of the monitors' sockets */
	int tree_fd;             /* the program of the file workers */
	char boot_id[40];

	struct maker *maker;
	struct ledger *ledger;        /* ledger.h */
	struct approvals *approvals;  /* approval.h */
	struct hook *hook;            /* hook.h; NULL: nobody wants to hear of them */
	struct cache_ask *cache_asks; /* that are under way */
	struct key_ask *key_asks;     /* secret.h */
	struct scanner_ask *scanner_asks;
	struct trees *trees;          /* trees.h */
	struct census *census;        /* the last one; NULL: none yet (census.h) */
	struct census_op *census_ops; /* under way */
	struct gc_job *gc_jobs;       /* gc.h */
	struct reserve *reserve;      /* reserve.h; NULL: no workspace was used yet */
	struct fsck *fscks;           /* fsck.h */
	struct flatten *flatten;      /* the one under way, or NULL (flatten.h) */
	struct image_import *imports; /* image.h */
	struct image_taking *takings;
	struct template_build *builds; /* template.h */
	struct repo_job *repo_jobs;    /* clones and fetches that are under way */
	struct layer_job *layer_jobs;  /* checkouts that are being made */
	struct asking *askings;        /* who waits for one */
	/* Whose request is being worked on, "uid:0" or "token:tk_…": what begins meanwhile is on
	 * record as begun by him. NULL: nobody's. */
	const char *actor;
	/* Told of the id of what that request makes, before it is on its way to the store; NULL:
	 * nobody asks (core_made()). */
	void (*made)(void *arg, const char *id);
	void *made_arg;
	struct roster sandboxes;  /* by id: every one that is not gone */
	struct pace pace;         /* how many of them end at once */
	struct roster processes;  /* by id: those that live, or that somebody waits for */
	struct roster workspaces; /* by id: those that somebody works with */
	struct watch store_watch;
	struct timer expire;
	struct timer nudge;    /* lazy records go now */
	size_t n_clients;      /* connections, as the server counts them */
	uint64_t purged_ms;    /* when old records were last looked for; monotonic */
	uint64_t swept_ms;     /* and points of workspaces */
	uint64_t busy_ms;      /* when there was last something to do; monotonic */
	uint64_t gc_looked_ms; /* and whether the store is too full */
	uint64_t flattened_ms; /* and stacks that are too long */
	bool is_evicting;      /* a checkout is about to go: nobody may be given one */
	bool is_open;          /* requests are answered */
	bool is_closing;       /* nothing new is begun */
	struct {               /* NULL, or: is told of a sandbox of which nothing is left */
		void (*tell)(void *arg, const char *sandbox);
		void *arg;
	} on_gone;
	struct core_stats {
		uint64_t creates, execs, failures, bytes_out;
	} stats;
};

int core_open(struct core *c, struct loop *l, const struct core_config *config, int launcher_fd,
              struct err *e) MUST_USE;
void core_ready(struct core *c); /* requests are answered from now on */
/* It has heard of every sandbox that it found again; one that does not answer is not waited for. */
bool core_is_ready(struct core *c);
void core_close(struct core *c);

void core_nudge_soon(struct core *c); /* what is lazy goes on record in a moment */
int64_t core_now_ms(void);            /* wall clock, for records */
uint64_t core_mono_ms(void);          /* for deadlines */

static inline void core_made(const struct core *c, const char *id)
{
	if (c->made)
		c->made(c->made_arg, id);
}
