/*
 * sandbox.h - one sandbox in the daemon's memory.
 *
 * Its states and their order are in store/sandboxes.h. This object is the only writer of its row:
 * every change goes through sbx_set_state(), and what the store refuses did not happen.
 *
 *   create   row ─▷ host paths opened ─▷ launcher makes it ─▷ monitor says ready ─▷ running
 *   stop     every process ends, the walls stay; start makes it usable again
 *   replace  new walls, new generation, same id; what was ephemeral is new
 *   delete   everything ends, the row says gone
 *
 * One change at a time: who comes meanwhile is told `busy`.
 */
#pragma once

#include "core/core.h"
#include "core/link.h"
#include "core/maker.h"

struct px;
struct files;
struct gate;
struct net;
struct policy_pending;
struct shl;
struct wsx;

/* A moment in which nothing of it runs, for its workspace. */
enum sbx_hold { SBX_HOLD_NONE, SBX_HOLD_ASKED, SBX_HOLD_FROZEN };

typedef void sbx_done_fn(void *arg, struct sbx *s, const struct fail *f); /* f NULL: it worked */

struct sbx {
	struct roster_entry entry; /* first; the key is `id` */
	struct core *core;
	char id[ID_SIZE], tenant[TENANT_SIZE];
	char *key, *labels; /* labels: JSON object */
	char *door;         /* what a door was told of it, JSON; or NULL */
	int64_t generation, created_ms, started_ms;
	enum sandbox_state state;
	uint32_t life; /* enum sandbox_life */
	int at_end;    /* enum process_at_end: a process has ended that it was to end with */
	char reason[128];
	struct spec spec;   /* resolved */
	char *spec_text;    /* canonical, as the caller said it */
	char *enforced;     /* JSON object */
	char *note;         /* lines about defaults without a mechanism; NULL: not known */
	struct quota needs; /* what it counts for: limits as they were when it was made */
	uint32_t uid, gid;  /* of its user, inside */
	char boot_id[40];
	bool is_unsettled;        /* after a restart: its monitor has not told yet what happened */
	bool is_killed;           /* the launcher was told to end its monitor */
	bool has_ports;           /* it has had rows of forwarded ports */
	bool is_one_shot;         /* made by /v1/run: dies with its command and with its client */
	bool is_spent;            /* and its command has ended: nobody finds it any more */
	bool is_service;          /* ours (service.h): nobody finds it, and no row tells of it */
	bool is_work_read_only;   /* whatever the mode of its workspace */
	struct maker_tree *trees; /* mounted besides what its spec says */
	size_t n_trees;
	uint64_t image_tree; /* of an imported image that is below it (image.h); 0: none */

	struct wsx *workspace; /* what fs workspace:AT shows (workspace.h); a reference, or NULL */
	struct sbx *next_attached;   /* with the same one */
	struct attach_op *attaching; /* it waits for the mount */
	bool is_attached;
	enum sbx_hold hold;

	struct link link; /* to the monitor */
	int slot;
	bool is_adopted; /* its monitor may be no child of our launcher: we say when it is over */
	char socket_name[64];
	uint32_t next_num;
	struct px *processes;   /* that live */
	struct files *files;    /* the tree worker, or NULL */
	struct gate *gate;      /* of one with a network (gate.h), or NULL */
	struct gate_held *held; /* connections that wait for a person (gate_ask.c) */
	struct {                /* the process that ended last: what it did may be told after it */
		char id[ID_SIZE];
		int64_t created_ms, ended_ms;
	} last;
	struct tripped *tripped; /* programs that wait for a person (tripped.h) */
	struct net *net;         /* records of its gate on their way (net.h), or NULL */
	struct policy_pending
	    *pending;       /* rules that the gate has not judged yet (policy.h), or NULL */
	struct shl *shells; /* named shells (shells.h); */
	bool has_shells;    /* they were read from the store */

	struct sbx_asker *askers; /* who waits for its usage */

	struct paced paced;           /* its end: sandbox_end.c */
	enum channel_type end_type;   /* CH_CLOSE or CH_STOP */
	struct sbx_deleter *deleters; /* who wants it deleted besides the one who asked first */
	uint64_t probed_ms;           /* its monitor was asked for a sign of life; 0: it gave one */
	uint64_t overdue_ms;          /* when that was last done because its wall time is over */

	uint64_t ttl_ms, idle_ms; /* 0: none */
	int64_t expires_ms;       /* wall clock; 0: never */
	uint64_t active_ms;       /* last use; monotonic */

	/* The change that is under way, and who waits for it. */
	struct {
		sbx_done_fn *done;
		void *arg;
		uint32_t tickets[FS_ENTRIES_MAX + 1]; /* of the sources, the image first */
		size_t next_source;                   /* the one that is being opened */
		int client_fd;                        /* a duplicate */
		struct fail fail;                     /* why it came to nothing */
		char actor[ACTOR_SIZE];               /* whose request it was, or "" */
		bool is_busy;
		bool is_recorded_last; /* all is done but the record: sbx_state_on_record() */
		enum sandbox_state before;
		bool is_ready; /* but for its gate */
		bool is_kept;  /* what its walls wrote to the workspace's root is a point */
	} change;
	struct timer timer; /* a change that does not come to an end */
};

struct sbx_ask {
	const char *tenant, *key;
	const char *spec_text; /* canonical JSON of what was asked */
	struct spec *spec;     /* checked and resolved; moved into the sandbox */
	const char *labels, *door;
	uint32_t life; /* enum sandbox_life */
	uint64_t ttl_ms, idle_ms;
	int client_fd; /* whose host paths; -1: nobody's */
	bool is_one_shot, is_service, is_work_read_only;
	const struct maker_tree *trees; /* copied */
	size_t n_trees;
};

/* The answer comes later, unless NULL is returned. With a key that exists: that one, when the spec
 * is the same, else `exists`. A one-shot whose link is expected may be told its command already. */
struct sbx *sbx_create(struct core *c, const struct sbx_ask *ask, sbx_done_fn *done, void *arg,
                       struct fail *f) MUST_USE;

/* By id or key; of another tenant is not found. */
struct sbx *sbx_find(struct core *c, const char *tenant, const char *name, struct fail *f);

int sbx_stop(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f) MUST_USE;
int sbx_start(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f) MUST_USE;
int sbx_pause(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f) MUST_USE;
int sbx_resume(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f) MUST_USE;
int sbx_replace(struct sbx *s, int client_fd, sbx_done_fn *done, void *arg,
                struct fail *f) MUST_USE;
int sbx_delete(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f);
int sbx_extend(struct sbx *s, uint64_t wall_ms, uint64_t ttl_ms, struct fail *f) MUST_USE;
/* Its monitor has a few seconds to say anything, or the launcher ends it. */
void sbx_probe(struct sbx *s);
void sbx_probe_all(struct core *c);
/* More wall time for who may not just take it: a person is asked (approval.h). */
int sbx_ask_wall(struct sbx *s, uint64_t wall_ms, const char *why, char id[ID_SIZE],
                 struct fail *f) MUST_USE;
struct approval_row;
void sbx_wall_allowed(struct core *c, const struct approval_row *row);
/* A process has ended that it was to end with; done at once, or as soon as nothing else is under
 * way (expire.c). */
void sbx_end_after(struct sbx *s, int at_end);
bool sbx_end_due(struct sbx *s); /* true: it was done, and it may be gone */
void sbx_rest(struct sbx *s);    /* no time runs for it until sbx_extend() */
void sbx_set_door(struct sbx *s, const char *door);

/* What it uses now; a sandbox that ends first answers with NULL. */
typedef void sbx_usage_fn(void *arg, const struct channel_usage *u);
int sbx_usage(struct sbx *s, sbx_usage_fn *done, void *arg, struct fail *f) MUST_USE;

/* Usable for a command or a file? Else the reason, as the API says it. */
int sbx_check_running(struct sbx *s, struct fail *f) MUST_USE;
bool sbx_is_there(const struct sbx *s); /* somebody's, and neither failed nor about to go */
void sbx_touch(struct sbx *s);

/* ---- for core.c, link.c, expire.c ---- */
struct sbx *sbx_adopt(struct core *c, const struct sandbox_row *row); /* at start, from the store */
/* The state that clients are shown. While a change waits for its record, the state before: whoever
 * saw the new one would be told that the sandbox is busy. */
enum sandbox_state sbx_state_on_record(const struct sbx *s);
void sbx_set_state(struct sbx *s, enum sandbox_state state, const char *reason);
void sbx_end_begin(struct paced *p);                       /* of core->pace */
void sbx_end_order(struct sbx *s, enum channel_type type); /* CH_CLOSE, CH_STOP: in its turn */
void sbx_heard(struct sbx *s);                             /* its monitor said something */
void sbx_look_alive(struct sbx *s);                        /* now and then */
void sbx_on_ready(struct sbx *s); /* the monitor: the walls stand, or it was found again */
void sbx_on_gated(struct sbx *s); /* its gate has taken its rules */
void sbx_on_gate_failed(struct sbx *s, const struct fail *f); /* before it ever did */
void sbx_on_settled(struct sbx *s); /* the monitor has told of all its processes */
void sbx_on_stopped(struct sbx *s);
void sbx_on_frozen(struct sbx *s, bool is_frozen, int error);
void sbx_on_lost(struct sbx *s);                      /* the channel ended without a word */
void sbx_on_fail(struct sbx *s, const struct err *e); /* the walls could not be built */
void sbx_on_end(struct sbx *s, bool is_expired, const char *reason); /* everything inside is dead */
void sbx_on_usage(struct sbx *s, const void *bytes, size_t n);
void sbx_on_proved(struct sbx *s, const void *bytes, size_t n); /* walls of its first command */
void sbx_on_gone(struct core *c, const char *socket_name); /* the launcher: nothing is left of it */
void sbx_await(struct sbx *s); /* at start: connected, and not heard yet */
void sbx_settle_dead(struct sbx *s, const char *reason); /* at start: its monitor is no more */
void sbx_free(struct sbx *s);
