/*
 * monitor-internal.h - the structs of a monitor, and who does what with them.
 *
 *   monitor.c  birth and end of the sandbox
 *   talk.c     the client: what it says, what it is still to be told
 *   procs.c    a process: start, signals, exit, the rest of its tree
 *   shells.c   named shells: processes that serve one command after the other
 *   driver.c   the text that makes them do so
 *   rest.c     what a command leaves running, when it is to be ended
 *   streams.c  its output to its log, its input from the client
 *   report.c   what its end says: state, usage, children
 *   execs.c    exec notifications
 *   filters.c  how many filters code inside has loaded
 *   nests.c    who bears commands, and whose a notification is
 *   trips.c    programs that wait for a person
 *   clock.c    the deadlines of the sandbox
 *   freeze.c   pause and resume; a moment in which all stand still
 *   stopper.c  the same where there is no freezer
 *   waiting.c  who waits for input
 *   self.c     the door inside
 *   gate.c     its network: what outlives a child of the gate
 *
 * A process is three things that end at different times: the command that is waited for; its tree,
 * which may live on and write; its end, which is remembered until the client has it on record.
 */
#pragma once

#include "base/vec.h"
#include "engine/spawn.h"
#include "io/log.h"
#include "io/loop.h"
#include "io/timer.h"
#include "monitor/monitor.h"
#include "os/proc.h"
#include "wire/channel.h"

#define PROCS_MAX 1024 /* that live; a limit of descriptors comes first on most hosts */
#define PROCS_ALONE_MAX                                                                            \
	256           /* the same, where each has a filter of its own: FILTERS_MAX says why        \
	               */
#define ENDED_MAX 256 /* ends that no client has taken; the log has them too */
#define WHY_MAX 16
/* Two steps are kept, and one that is longer by a frame than a step. */
#define LOG_TAIL_STEP (80u << 10)
#define LOG_TAIL_MAX (3u * LOG_TAIL_STEP + LOG_FRAME_DATA_MAX)

struct monitor;
struct seccomp_notif;
struct shell;

/* Positions of frames. */
struct log_tail {
	uint64_t from, to;
};

struct stream {
	struct watch watch; /* first: callbacks get it; fd -1: it has ended */
	struct proc *proc;
	enum log_stream which;
	bool is_watched;
	uint64_t bytes;
	struct masking masking;
	struct timer hold;
};

struct proc {
	struct proc *next;
	struct monitor *monitor;
	uint32_t num;
	bool is_tree_killed;
	bool in_eof, has_pty;
	struct command command; /* without its text */
	struct spawn_command spawn;
	uint64_t due_signals; /* a bit each: meant for it before it has executed */
	struct shell *shell;  /* that lives in it; NULL: none */
	struct cgroup_leaf leaf;
	uint64_t denied_before; /* of it */

	struct watch report, child, listener, input;
	int pipe_fd; /* of a shell: the reading end of its input, by which it is opened anew */
	struct stream streams[2]; /* out, err; a pty uses the first */
	int log_fd;               /* -1: a worker has none */
	struct log_writer log;
	uint64_t acked; /* position */
	struct log_tail tail;

	unsigned char *in; /* bytes that wait for the command; NULL: none ever came */
	size_t in_len, in_at;
	uint64_t took, took_own; /* bytes; of them such as the client did not send */

	struct timer timeout, start, grace, drain, rest;
	uint64_t started_ms, resting_ms;
	int64_t started_unix_ms;

	struct {
		char *rules; /* n of them, each with its NUL */
		char *own;   /* the command's own arguments, the same */
		size_t own_len;
		bool is_own_cut;
		uint32_t n;
		uint64_t ms;
	} trips;           /* trips.c */
	struct nest *nest; /* nests.c; NULL: none bore it, or nothing of it lives */
	uint64_t held_id;  /* of the notification of `is_held` */
	uint32_t n_untold; /* programs that nobody took note of */
	bool has_listener; /* it gave us one, or its nest has one */
	bool is_held;      /* its own execve waits for the gate */
	bool is_announced; /* the command's own execve was */
	bool is_running;   /* it has executed */
	bool has_exited;   /* it was waited for */
	bool is_counted;   /* what it used */
	bool is_resting;   /* what it left running is being ended */
	bool is_rest_told; /* it got a TERM */
	bool is_over;      /* its end is written; its tree, and a shell, may live on */
	int status;
	enum run_state cause; /* RUN_EXITED unless a deadline or the client ended it */
	char reason[96];
	uint64_t cpu_ms, mem_peak, io_bytes; /* by rusage */
	uint64_t oom_before;
	struct cgroup_usage used; /* the final one: of the sandbox */
	struct channel_end end;

	/* What the client is still to be told. */
	bool is_rung; /* GREW was said, and no ACK has come */
	bool due_started, due_grew, due_took, due_waiting, due_proc, due_masked, due_proved;
	struct channel_masked masked;
	/* waiting.c */
	bool is_watched, was_waiting, is_said;
	uint64_t quiet_at; /* the log's position and the input taken, when it was last looked at */
	uint64_t look_ms, look_at_ms;
};

struct ended {
	uint32_t num;
	bool is_told, is_forgotten, is_failed;
	bool due_masked; /* before its end */
	int log_fd;      /* for self.sock; -1: none, or too long ago */
	struct channel_masked masked;
	struct log_tail tail;
	union {
		unsigned char end[offsetof(struct channel_end, execs)];
		struct err fail;
	};
};

struct why {
	uint32_t num;       /* 0: nobody knows which process it was */
	const char *target; /* of a limit; NULL: a connection */
	uint64_t count;
	enum gate_reason reason; /* of a connection */
	char peer[104];          /* "example.org:443"; of a longer one the end */
};

/* filters.c: as many programs as may live in a sandbox. A browser has about two for each process.
 */
#define FILTERS_MAX 256
struct filter_load {
	pid_t pid; /* the process that loaded it; 0: not known */
	uint64_t born;
	pid_t tid; /* while it is open: its thread has neither asked again nor ended */
};
struct filter_holder {
	pid_t pid;
	uint64_t born;
	uint64_t in_all;    /* of its threads, together */
	uint64_t inherited; /* at most */
};
struct filters {
	struct filter_load loads[FILTERS_MAX];
	size_t n;
	size_t n_orphans; /* that only processes have which inherited them, at most */
	uint64_t next_census_ms;
};

struct self;
struct gatekeep;
struct nest;
struct trip;

struct monitor {
	struct loop loop;
	struct timers timers;
	struct box *box;
	struct spawn_init init;
	uint32_t proved; /* walls, as the client was told; UINT32_MAX: not yet */

	struct watch control; /* fd -1: no client */
	struct watch door;    /* clients that come */
	struct watch init_watch;
	struct proc *procs;
	size_t n_procs;
	struct shell *shells;
	struct marker *marker;        /* NULL: nothing that is written has to be masked */
	VEC(struct ended) ended;      /* oldest first */
	struct cgroup_leaf leaves[8]; /* empty ones */
	size_t n_leaves;
	uint32_t last_leaf; /* number of the last that was made */
	int oom_fd;         /* kept: of the memory controller; -1: none */

	bool is_blocked; /* the client's socket has no room */
	bool is_ending;  /* the last messages are sent */
	bool due_ready, due_synced, due_usage;
	int due_done[CH_TYPES]; /* errno + 1; 0: nothing */

	struct timer wall, idle, live, stop, sweep, freeze, lease, look, become, trip_sweep, leave;
	struct filters filters;
	struct nest *nests; /* the first is the one that works */
	struct trip *trips; /* trips.c */
	size_t n_trips;
	uint64_t last_trip;
	uint64_t last_io_ms, idle_cpu_ms;
	bool has_started;            /* the wall limit counts */
	bool is_stopping;            /* CH_STOP is under way */
	uint64_t stop_ms;            /* since when all are being ended */
	bool is_paused, is_held;     /* what is wanted: freeze.c */
	bool is_frozen, is_freezing; /* what is */
	bool asks_pause, asks_hold;  /* the client waits for an answer */
	bool is_lease_over;          /* the moment was longer than it was said to be */
	int freeze_tries;
	pid_t stopper_pid;                 /* stopper.c; 0: none */
	struct later *later, **later_last; /* heard after that */
	struct watch stopper;              /* stopper.c */

	bool is_init_lost; /* pid 1 died before it was told to */
	enum run_state cause;
	char reason[96];
	uint64_t cpu_ms, mem_peak, io_bytes; /* by rusage, of all that have ended */
	uint64_t oom_kills;                  /* as far as seen */
	struct why why[WHY_MAX];
	size_t n_why; /* in all */
	struct self *self;
	struct gatekeep *gate; /* NULL: net is denied */
};

/* container_of for the members that are embedded one by one */
#define OWNER_OF(member_ptr, type, member)                                                         \
	((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))

/* monitor.c */
/* Everything inside ends: TERM, grace, kill. */
void monitor_stop(struct monitor *m, enum run_state cause, const char *reason);
void monitor_finish(struct monitor *m) __attribute__((noreturn)); /* kills all, reports, exits */
/* There never was a sandbox, or its one command was never executed. */
void monitor_give_up(struct monitor *m, const struct err *e) __attribute__((noreturn));
/* The first command does: pid 1 becomes caisson-init, unless the command is over before that. */
void monitor_executes(struct monitor *m);
void monitor_watch(struct monitor *m, struct watch *w, uint32_t events); /* or the end */

/* talk.c */
/* What a client said. */
struct message {
	struct channel_packet packet;
	int fds[2];
	size_t n_fds;
};
int talk_open(struct monitor *m, struct err *e) MUST_USE;
void talk_proc(struct proc *p);     /* what is due of it */
void talk_flush(struct monitor *m); /* what is due of all */
void talk_done(struct monitor *m, enum channel_type asked, int error);
void talk_hear(struct monitor *m, struct message *msg); /* leaves what descriptors nobody took */
/* Its end is told, now or later, and remembered. */
void talk_exit(struct proc *p);
void talk_fail(struct monitor *m, uint32_t num, const struct err *e);
/* False: no room, or nobody there: to be said again. */
bool talk_shell(struct monitor *m, uint32_t num, const struct channel_shell *s, const char *text);
void talk_last(struct monitor *m);         /* from now on saying waits for room */
void talk_await_forget(struct monitor *m); /* for a moment: who waits for the end comes first */
void talk_say(struct monitor *m, enum channel_type type, const void *bytes, size_t n);
/* False: no room, or nobody there: to be said again. */
bool talk_about(struct monitor *m, enum channel_type type, uint32_t num, const void *bytes,
                size_t n);
/* CH_EXEC of the one command, while pid 1 works: the client's first message. */
int talk_await_exec(struct monitor *m, struct err *e) MUST_USE;

/* procs.c */
struct proc_start {
	uint32_t num;
	struct command command;
	int log_fd, extra_fd, program_fd; /* -1: none */
};
void procs_start_done(struct proc_start *s); /* closes what is left in it */
/* May there be another one now? */
int procs_check(const struct monitor *m, const struct proc_start *s, struct err *e) MUST_USE;
/* Takes the log over. -1: it was not started, and *e has why. */
int procs_start(struct monitor *m, struct proc_start *s, struct err *e) MUST_USE;
/* It was never executed, and will not be. It may be gone afterwards. */
void procs_fail(struct proc *p, const struct err *e);
/* The next command of a shell that waits for one. */
void procs_renew(struct proc *p, struct proc_start *s);
struct proc *procs_find(const struct monitor *m, uint32_t num); /* NULL: none such lives */
void procs_stop(struct proc *p, enum run_state cause, const char *reason); /* TERM, grace, kill */
void procs_kill(struct proc *p); /* all of its tree, at once */
void procs_look(struct proc *p); /* has it ended? It may be gone afterwards */
void procs_signal(struct proc *p, int sig, enum channel_scope scope);
void procs_note_exit(struct proc *p, int status, const struct rusage *usage);
void procs_drained(struct proc *p); /* its streams have ended */
void procs_close(struct proc *p);   /* writes and tells its end */
void procs_settle(struct proc *p);  /* frees it if nothing of it is left */
size_t procs_tree(const struct proc *p, pid_t *out, size_t max);
size_t procs_all(const struct monitor *m, pid_t *out, size_t max); /* inside, without pid 1 */
/* Everything that the monitor or the sandbox has started, helpers included; `max`: and more. */
size_t procs_living(const struct monitor *m, pid_t *out, size_t max);
bool procs_failure(struct proc *p, struct err *e); /* what it said, if it never executed */

/* shells.c */
/* A command for a shell, which is started when it does not live. As procs_start(). */
int shells_exec(struct monitor *m, struct proc_start *s, struct err *e) MUST_USE;
void shells_seed(struct monitor *m, const struct channel_shell *s, const char *text);
void shells_drop(struct monitor *m, const char *name);
void shells_stopped(struct proc *p, const char *reason); /* it is being ended, and works no more */
void shells_ended(struct proc *p);                       /* its process is dead, or never lived */
void shells_tell(struct monitor *m, bool is_all);        /* what is new; or all there is */
/* Without the shell itself and what earlier commands left. Returns how many are kept. */
size_t shells_only_new(const struct proc *p, pid_t *pids, size_t n);
void shells_note_left(struct proc *p, const pid_t *pids, size_t n);

/* rest.c */
void rest_end(struct proc *p); /* procs_close() follows */

/* streams.c */
int streams_open(struct proc *p, struct payload_io *io, struct err *e) MUST_USE;
int streams_take_pty(struct proc *p, struct err *e) MUST_USE;
void streams_read(struct proc *p); /* what there is now */
bool streams_ended(const struct proc *p);
void streams_drain(struct proc *p); /* everything inside is dead: read to the end */
void streams_keep(struct stream *s, const void *bytes, size_t n); /* in the log */

/* ---- masks.c ---- */
void masks_take(struct monitor *m, const struct gate_marks *from);
void masks_begin(struct proc *p);
void masks_pass(struct stream *s, const void *bytes, size_t n);
void masks_end(struct proc *p);
void streams_ack(struct proc *p, uint64_t position);
void streams_input(struct proc *p, const void *bytes, size_t n);
void streams_input_end(struct proc *p);
void streams_resize(struct proc *p, const struct channel_size *size);
int streams_renew(struct proc *p, struct err *e) MUST_USE; /* for the next command of a shell */
void streams_rest(struct proc *p); /* it has ended: input for it is dropped */
void streams_close(struct proc *p);

/* report.c */
void report_look(struct proc *p);  /* what is seen only while the sandbox lives */
void report_count(struct proc *p); /* what was used; once */
void report_fill(struct proc *p);
uint64_t report_cpu_of_all(pid_t pid); /* of it and of all it has waited for */
bool report_is_tree_gone(const struct proc *p);
bool report_is_oom(struct proc *p); /* one that was never executed */
void report_usage(struct monitor *m, struct channel_usage *out);
uint64_t report_cpu_ms(struct monitor *m); /* of all that live */

/* clock.c */
int clock_open(struct monitor *m, struct err *e) MUST_USE;
void clock_follow(struct monitor *m);  /* looks at shown folders again, while commands live */
void clock_started(struct monitor *m); /* a command was */
void clock_extend(struct monitor *m, uint64_t wall_ms); /* from now on; 0: none */
void clock_active(struct monitor *m);                   /* something was read or written */

/* execs.c */
int execs_watch(struct proc *p, struct err *e) MUST_USE;
void execs_close(struct proc *p);
void execs_go_on(struct monitor *m);                       /* those that were held */
void execs_refuse(struct monitor *m, const struct err *e); /* the same: none of them runs */

ssize_t execs_peek(pid_t pid, uint64_t at, void *buf, size_t n);
/* Text up to its NUL, or as far as there is room; its length. */
size_t execs_peek_text(pid_t pid, uint64_t at, char *out, size_t size);
void execs_resume(struct proc *p, const struct seccomp_notif *n);
void execs_hear(struct proc *p, const struct seccomp_notif *n); /* of a process of its tree */
int execs_listener(const struct proc *p);                       /* where its answers go; -1: none */

/* nests.c */
bool nests_serve(const struct proc *p); /* else it loads a filter of its own */
/* As spawn_command(). */
int nests_order(struct proc *p, const struct command *c, struct payload_io io,
                struct err *e) MUST_USE;
int nests_listener(const struct nest *n);
void nests_end(struct monitor *m); /* all nurseries */

/* filters.c */
bool filters_is_load(const struct seccomp_notif *n);
void filters_answer(struct proc *p, const struct seccomp_notif *n);
bool filters_add(struct filters *f, struct filter_load load); /* false: there are too many */
/* The thread asks again: what it asked for before is loaded, or has failed. */
void filters_settle(struct filters *f, pid_t tid);
/* Whether this kernel keeps programs of a process that ended until somebody has waited for it. */
bool filters_outlive(const char *release);
/* Forgets what cannot be alive any more, with all that live. */
void filters_census(struct filters *f, const struct filter_holder *holders, size_t n);

/* trips.c */
void trips_learn(struct proc *p, const struct command *c);      /* what is to be held of it */
bool trips_hold(struct proc *p, const struct seccomp_notif *n); /* true: it does not go on now */
void trips_answer(struct monitor *m, const struct gate_answer *a);
void trips_tell(struct monitor *m); /* what the client does not know yet */
void trips_new_client(struct monitor *m);
/* The i-th that waits, the command that it matches, the time that is left; NULL: there are no more.
 */
const struct channel_trip *trips_at(const struct monitor *m, size_t i, const char **rule,
                                    uint64_t *left_ms);
void trips_leave(struct proc *p); /* nobody of its tree waits any more */

/* freeze.c */
void freeze_set(struct monitor *m, bool on); /* answers when it is done */
void freeze_hold(struct monitor *m, uint32_t lease_ms);
void freeze_release(struct monitor *m);
bool freeze_defer(struct monitor *m, struct message *msg); /* true: it is heard later */
void freeze_forget(struct monitor *m);                     /* what would be: who said it is gone */
void freeze_answer(struct monitor *m, int error);
void freeze_end(struct monitor *m); /* thaws: what is frozen does not die */

/* stopper.c, without a freezer; freeze_answer() is called when all stand. 0 or -errno. */
int stopper_start(struct monitor *m);
void stopper_end(struct monitor *m);

/* waiting.c */
void waiting_watch(struct proc *p, bool on);

/* self.c */
int self_open(struct monitor *m, struct err *e) MUST_USE;
void self_note(struct proc *p); /* what it was refused, for `why` */
void self_note_denied(struct monitor *m, uint32_t num, const struct gate_record *r);

/* gate.c; without a network none of them does anything */
int gatekeep_open(struct monitor *m, struct err *e) MUST_USE;
void gatekeep_hear(struct monitor *m); /* all that the child has said: before an end is written */
/* Has none served yet? Then execs_go_on() or execs_refuse() follow. */
bool gatekeep_holds(struct monitor *m);
void gatekeep_tell(struct monitor *m); /* what the client does not know yet */
void gatekeep_new_client(struct monitor *m);
void gatekeep_sync(struct monitor *m);
void gatekeep_take(struct monitor *m, int *fd); /* or leaves it; the same below */
void gatekeep_rules(struct monitor *m, uint32_t generation, int *fd);
void gatekeep_ack(struct monitor *m, uint64_t at);
/* The i-th that waits for a person, and how long it will; NULL: there are no more. */
const struct gate_ask *gatekeep_ask_at(const struct monitor *m, size_t i, uint64_t *left_ms);
void gatekeep_answer(struct monitor *m, const struct gate_answer *a);
void gatekeep_end(struct monitor *m); /* the last records */
