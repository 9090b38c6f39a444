/*
 * sandboxes.h - the rows of sandboxes, and the life of one.
 *
 *   creating ──▷ running ◁──▷ paused
 *      │            │            │
 *      │            ├── stopping ┤        stopping ──▷ stopped
 *      ▽            ▽            ▽
 *    failed       stopped (by itself)     stopped, failed ──▷ creating   (start)
 *
 *   running, paused, stopped, failed ──▷ replacing ──▷ running | stopped
 *   creating, running, paused, stopping, replacing ──▷ failed       over, and not by request
 *                                                  ──▷ unreachable  nobody answers, nobody knows
 *   unreachable ──▷ running | paused | stopping | stopped | failed, once it is known
 *   every one of these ──▷ deleting ──▷ gone, which is final
 *
 * It begins as creating; one that dies with its maker, so that nobody need find it again, may begin
 * as running.
 *
 * Never from unreachable to replacing or creating: a sandbox is not replaced on doubt. There is
 * one writer, and every change of state is compare-and-set: one that sandbox_state_may() does
 * not allow is answered with STORE_CONFLICT, and the row stays as it was.
 */
#pragma once

#include "spec/spec.h"
#include "store/store.h"

enum sandbox_state {
	SANDBOX_CREATING,
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,
	SANDBOX_STOPPING,
	SANDBOX_STOPPED,
	SANDBOX_REPLACING,
	SANDBOX_DELETING,
	SANDBOX_GONE,
	SANDBOX_FAILED,
	SANDBOX_UNREACHABLE,
	SANDBOX_STATE_COUNT
};

const char *sandbox_state_name(enum sandbox_state state);
bool sandbox_state_may(enum sandbox_state from, enum sandbox_state to);
bool sandbox_state_is_live(enum sandbox_state state); /* it has, or may have, cpu and memory */

/* Beyond an end by time that removes it. */
enum sandbox_life {
	LIFE_PAUSE = 1 << 0,     /* when its time is over it is frozen instead */
	LIFE_STOP = 1 << 1,      /* or its processes end, and its files stay */
	LIFE_OWNS_WORK = 1 << 2, /* its workspace is nobody else's, and goes with it */
	LIFE_WAKES = 1 << 3,     /* frozen, and somebody connects to a port of it: it goes on */
};

struct sandbox_row {
	int64_t seq; /* order of birth; given by the store */
	const char *id, *tenant;
	const char *node; /* NULL at insert: this store's */
	const char *key;  /* the caller's name for it; unique in the tenant until it is gone */
	int64_t generation;
	enum sandbox_state state;
	const char *state_reason;
	const char *spec;     /* canonical JSON */
	const char *labels;   /* JSON object of texts; NULL is {} */
	const char *enforced; /* JSON: what enforces each field */
	const char *backend;
	const char *boot_id; /* of the host, when it was started */
	const char *socket;  /* name of its monitor's */
	int64_t slot;        /* -1: none */
	int64_t created_ms, started_ms, ended_ms, expires_ms, idle_ms, last_active_ms;
	int64_t mem_bytes, cpu_milli, pids, disk_bytes; /* what it counts against the quota */
	const char *workspace; /* the id of the one that it works on, or NULL */
	int64_t image_tree;    /* of the image that was below it when it was made; 0: none */
	int64_t life;          /* enum sandbox_life */
	const char *door;      /* what a door was told of it, JSON; or NULL */
};

/* What an update writes: the fields of the row that its bits name. */
enum sandbox_field {
	SANDBOX_SET_STATE = 1 << 0, /* and state_reason */
	SANDBOX_SET_GENERATION = 1 << 1,
	SANDBOX_SET_SPEC = 1 << 2, /* and the four of the quota */
	SANDBOX_SET_LABELS = 1 << 3,
	SANDBOX_SET_ENFORCED = 1 << 4, /* and backend */
	SANDBOX_SET_SLOT = 1 << 5,     /* and boot_id, socket, image_tree */
	SANDBOX_SET_STARTED = 1 << 6,
	SANDBOX_SET_ENDED = 1 << 7,
	SANDBOX_SET_EXPIRES = 1 << 8,
	SANDBOX_SET_IDLE = 1 << 9,
	SANDBOX_SET_ACTIVE = 1 << 10, /* last_active_ms */
	SANDBOX_SET_DOOR = 1 << 11,
};

struct sandbox_query {
	struct store_page page;
	uint32_t states;                /* bits 1 << state; 0: all but gone */
	const struct text_pair *labels; /* all of them, exactly */
	size_t n_labels;
};

struct sandbox_list {
	struct sandbox_row *rows;
	size_t n;
	const char *next; /* cursor, or NULL at the end */
};

/* In state creating. */
int store_sandbox_insert(struct store *s, const struct sandbox_row *row, struct store_call call,
                         struct err *e);

/* Changes `fields` of the row with row->id. The end of all, gone, comes with ended_ms; after it
 * nothing changes any more. */
int store_sandbox_update(struct store *s, const struct sandbox_row *row, uint32_t fields,
                         struct store_call call, struct err *e);

int store_sandbox_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                      struct sandbox_row *out, struct err *e);
/* The one that is not gone. */
int store_sandbox_by_key(struct store *s, const char *tenant, const char *key, struct arena *a,
                         struct sandbox_row *out, struct err *e);
int store_sandbox_list(struct store *s, const struct sandbox_query *query, struct arena *a,
                       struct sandbox_list *out, struct err *e);
