/*
 * processes.h - the rows of processes: everything that was ever executed.
 *
 *   queued ◁──▷ awaiting_approval
 *     │  ╲         │ ╲
 *     │   ╲────────┤  ╲──▷ denied | killed | expired | lost     (it never ran)
 *     ▽            ▽
 *   running ◁── (approved)
 *     │
 *     └──▷ exited | signaled | timeout | oom | killed | expired | denied | lost
 *
 * The states of the last line are final: such a row never changes again. Exited has an exit code;
 * timeout, killed and expired have one when the command took the hint and ended by itself; nothing
 * else has: the column is NULL then. A process whose end nobody saw is
 * lost, so it is called that only once it is certain that nobody will report it.
 */
#pragma once

#include "store/store.h"

enum process_state {
	PROCESS_QUEUED,
	PROCESS_AWAITING_APPROVAL,
	PROCESS_RUNNING,
	PROCESS_EXITED,
	PROCESS_SIGNALED,
	PROCESS_TIMEOUT,
	PROCESS_OOM,
	PROCESS_KILLED,
	PROCESS_EXPIRED,
	PROCESS_DENIED,
	PROCESS_LOST,
	PROCESS_STATE_COUNT
};

/* What becomes of its sandbox when it has ended. */
enum process_at_end { AT_END_KEEP, AT_END_STOP, AT_END_DELETE };

const char *process_state_name(enum process_state state);
bool process_state_may(enum process_state from, enum process_state to);
bool process_state_is_final(enum process_state state);

struct process_row {
	int64_t seq; /* order of birth; given by the store */
	const char *id, *tenant;
	const char *node; /* NULL at insert: this store's */
	const char *sandbox;
	int64_t generation; /* of the sandbox */
	int64_t num;        /* unique in that generation */
	enum process_state state;
	const char *argv; /* JSON array */
	const char *cwd, *label;
	const char *shell; /* name of the shell that it ran in, or NULL */
	int64_t at_end;    /* enum process_at_end */
	int64_t exit_code; /* 0..255; -1: none */
	int64_t signal;    /* with signaled: > 0; 0 is none */
	const char *reason;
	int64_t created_ms, started_ms, ended_ms;
	int64_t ms, cpu_ms, mem_peak, io_bytes;
	int64_t bytes_out, bytes_err, bytes_dropped;
	const char *log_id;
	const char *details; /* JSON object: children, violations, execs */
};

struct process_query {
	struct store_page page;
	const char *sandbox, *label; /* NULL: any */
	uint32_t states;             /* bits 1 << state; 0: all */
};

struct process_list {
	struct process_row *rows;
	size_t n;
	const char *next; /* cursor, or NULL at the end */
};

/* In a state that is not final. */
int store_process_insert(struct store *s, const struct process_row *row, struct store_call call,
                         struct err *e);

/* To a state that is not final. Reads id, state, reason, started_ms, log_id of the row. */
int store_process_move(struct store *s, const struct process_row *row, struct store_call call,
                       struct err *e);

/* To a final state. Reads id, state, and all that is known at the end: exit_code, signal, reason,
 * cwd, ended_ms (> 0), ms, usage, bytes, details. */
int store_process_finish(struct store *s, const struct process_row *row, struct store_call call,
                         struct err *e);

/* All of one sandbox that have not ended, up to that generation, end as killed, expired or lost. */
struct process_sweep {
	const char *sandbox;
	int64_t generation;
	enum process_state state;
	const char *reason;
	int64_t ended_ms;
};
int store_process_finish_all(struct store *s, const struct process_sweep *sweep,
                             struct store_call call, struct err *e);

int store_process_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                      struct process_row *out, struct err *e);
int store_process_list(struct store *s, const struct process_query *query, struct arena *a,
                       struct process_list *out, struct err *e);

/* Those that have not ended, oldest first; of every sandbox when it is NULL. */
int store_process_running_of(struct store *s, const char *sandbox, struct arena *a,
                             struct process_list *out, struct err *e);

/* Those that ended before that moment, oldest first: what store_purge() removes next. */
int store_process_ended(struct store *s, int64_t before_ms, struct arena *a,
                        struct process_list *out, struct err *e);

/* What became due when a process had ended and was perhaps not done any more: any deletion; a stop
 * if nothing began behind it, for then the sandbox may have been started again. */
int store_process_at_end(struct store *s, const char *sandbox, int64_t generation, int64_t *at_end,
                         struct err *e);
/* The highest num given so far, 0 when there is none. */
int store_process_num_max(struct store *s, const char *sandbox, int64_t generation, int64_t *num,
                          struct err *e);
