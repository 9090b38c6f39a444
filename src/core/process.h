/*
 * process.h - everything that is executed: a row in the store, a log on disk, and while it lives or
 * somebody waits for it, an object here. The states are in store/processes.h.
 */
#pragma once

#include "core/sandbox.h"
#include "wire/tree.h"

struct px_ask {
	const char *const *argv; /* NULL-terminated */
	const char *script;      /* instead of argv: for bash, or sh where there is none */
	const char *cwd, *user, *label;
	const char *actor; /* who asks; NULL: nobody said */
	const char *shell; /* the name of the one that runs it; NULL: a process of its own */
	const struct pair_list *env; /* on top of the sandbox's */
	bool is_tty, has_stdin, is_merged, is_final;
	bool is_alone; /* what it leaves running is ended with it */
	enum process_at_end at_end;
	uint16_t rows, cols;
	uint64_t timeout_ms, log_max, window;
	bool kill_on_disconnect;
};

/* Told of what happens to a process; embedded in its owner. */
struct px_watch {
	struct px_watch *next;
	void (*grew)(struct px_watch *w);    /* there is more in the log */
	void (*changed)(struct px_watch *w); /* another state; a final one is on record then */
};

struct px {
	struct roster_entry entry; /* first; the key is `id` */
	struct core *core;
	struct sbx *sandbox; /* NULL once it has ended */
	struct px *next;     /* of the same sandbox */
	char id[ID_SIZE], tenant[TENANT_SIZE], sandbox_id[ID_SIZE], actor[ACTOR_SIZE];
	uint32_t num;
	int64_t generation;
	enum process_state state;
	enum process_at_end at_end;     /* what becomes of its sandbox then */
	char *argv, *cwd, *label;       /* argv: JSON */
	char argv_hash[TREE_HASH_TEXT]; /* where that was cut: of all of it, a NUL behind each */
	char *details;                  /* JSON; of one from the store */
	struct json_t *env_names;       /* that it was given; NULL: none */
	struct json_t *denials;         /* connections that were denied while it ran; NULL: none */
	struct json_t *workspace;       /* what it left there; NULL: it has none */
	char *why;                      /* it never ran: end.reason, and more of it; or NULL */
	char *shell;                    /* in which it runs, or NULL */
	char shell_reason[192];         /* why that was started anew */
	bool is_shell_restarted;        /* for it */
	int log_fd;
	int64_t created_ms, started_ms, ended_ms;
	bool is_final, is_tty, has_stdin, is_waiting_for_input;
	bool is_known;  /* its monitor has spoken of it, or we have told it */
	bool is_stored; /* its row is there, or could not be made: is_unrecorded */
	bool is_unrecorded, is_disk_full; /* the latter is why */
	char approval[ID_SIZE];     /* that it, or what it started, last had to wait for; "" */
	char denied[96];            /* why: */
	bool is_denied;             /* a person said no, or nobody yes, and it was not executed */
	bool is_service;            /* its sandbox is: on no record */
	bool is_never_run;          /* there was no such program, or it could not be started */
	uint64_t in_sent, in_taken; /* bytes of input */
	bool has_end;               /* `end` is filled in */
	bool has_birth;             /* its log says who it is: birth.h */
	bool is_in_log;             /* it is in the log too, where the next daemon finds it */
	bool is_over;  /* it is on record: in the log and a row that leads there, or in the row */
	bool is_ended; /* it is in the row: nothing is left to do */
	struct channel_end end;
	struct px_watch *watches;
	unsigned int refs; /* of requests that work with it */
	struct timer late; /* of a service: its end is told in the next turn */
};

/* Told to the monitor, then put on record. Before the sandbox is made, in two steps: one that was
 * not recorded is forgotten by whoever made it. */
struct px *px_start(struct sbx *s, const struct px_ask *ask, struct fail *f);
struct px *px_make(struct sbx *s, const struct px_ask *ask, struct fail *f);
int px_record(struct px *p, struct fail *f) MUST_USE;
void px_forget(struct px *p);
void px_revive(struct core *c, const struct process_row *row); /* it has a log and no row */
/* One that lives, or one from the store with its log; a reference to be given back. */
struct px *px_find(struct core *c, const char *tenant, const char *id, struct fail *f);
void px_unref(struct px *p);
char *px_details(const struct px *p); /* JSON: what a record has beyond numbers; to be freed */

void px_watch_add(struct px *p, struct px_watch *w);
void px_watch_remove(struct px *p, struct px_watch *w);

/* Input: the bytes are taken whole or not at all (busy: ask again; `changed` tells of new room). */
size_t px_input_room(const struct px *p);
void px_watch_input(struct px *p, bool on); /* is_waiting_for_input is kept up */
int px_input(struct px *p, const void *bytes, size_t n, bool is_end, struct fail *f);
int px_signal(struct px *p, int sig, bool is_tree, struct fail *f);
int px_kill(struct px *p, struct fail *f);
int px_resize(struct px *p, uint16_t rows, uint16_t cols, struct fail *f);
void px_ack(struct px *p, uint64_t position); /* flow control: this far was taken */

/* ---- for link.c, core.c ---- */
struct px *px_by_num(struct sbx *s, uint32_t num);
void px_on_started(struct px *p);
void px_on_took(struct px *p, const void *bytes, size_t n);
void px_on_grew(struct px *p);
void px_on_end(struct px *p, const struct channel_end *end);
const char *px_reason(const struct px *p);  /* why it ended; "" */
bool px_is_of_program(const struct err *e); /* the command, and not we, could not be executed */
void px_on_fail(struct px *p, const struct err *e);
void px_on_waiting(struct px *p);
/* Something of it waits for an approval. Its own execve does; goes on; will fail (tripped.h). */
void px_on_asked(struct px *p, const char *approval);
void px_on_held(struct px *p);
void px_on_approved(struct px *p);
void px_on_denied(struct px *p, const char *reason, const char *approval);
void px_lose_all(struct sbx *s, enum process_state state,
                 const char *reason); /* nobody will report them */
void px_lose_unknown(struct sbx *s);  /* after a sync: those of whom nothing was said */
struct px *px_adopt(struct sbx *s, const struct process_row *row);
