/*
 * channel.h - what a monitor and its client say to each other.
 *
 * One message is one packet of a SOCK_SEQPACKET socket: the head, then `len` bytes. The client is
 * the CLI or the daemon. The monitor trusts its client; the client takes nothing from these bytes
 * but numbers in range and text that it escapes.
 *
 * A process has a number that its client chose (never 0, never twice in one sandbox). What it
 * writes is in its log (io/log.h): only doorbells come over the socket. A client that reads slowly
 * costs the monitor no memory: it remembers what is still to be said, not the messages.
 *
 *   client              monitor
 *   EXEC ────────────▷  STARTED or FAIL
 *                 ◁───  GREW: there is more in the log than you were told
 *   ACK ─────────────▷  (rings again when there is more; with a window: goes on reading)
 *                 ◁───  EXIT: the end is in the log and here
 *   FORGET ──────────▷  (it need not be told again)
 *
 * After a new client has connected: READY comes, SYNC asks for everything that it may not know.
 *
 * A command may run in a named shell (EXEC_SHELL), which lives on and serves one after the other.
 * Each has its number, log and end. SHELL tells what the shell will give back to its successor.
 */
#pragma once

#include "wire/gate.h"

#define CHANNEL_DATA_MAX (32u << 10)
#define CHANNEL_INPUT_MAX (64u << 10) /* of one process, sent and not yet said to be TOOK */
#define CHANNEL_CHILDREN_MAX 16
#define CHANNEL_EXECS_MAX 32
#define CHANNEL_EXEC_TEXT 256

/* clang-format off */
enum channel_type {
	/* The launcher, before anybody else. */
	CH_GO,      /* the cgroup is ready; with its keys (engine/cgroup.h) */

	/* The client, about one process (`num`). */
	CH_EXEC,    /* struct channel_exec, text; descriptors: the log, [the text] */
	CH_TREE,    /* starts a worker of ours; its root, an absolute path with its NUL; descriptors: its socket
	             * (3 for it), its program */
	CH_IN,      /* bytes for standard input */
	CH_EOF,     /* end of standard input */
	CH_SIGNAL,  /* struct channel_signal */
	CH_RESIZE,  /* struct channel_size */
	CH_KILL,    /* it and all it started: TERM, and after a while KILL */
	CH_ACK,     /* uint64_t: the log was read up to this position */
	CH_WATCH,   /* uint32_t, 0 or 1: say when it waits for input */
	CH_FORGET,  /* its end is on record */

	/* The client, about the sandbox. */
	CH_STOP,    /* ends every process; pid 1 and the walls stay. Answer: DONE */
	CH_FREEZE,  /* answer: DONE */
	CH_THAW,    /* answer: DONE */
	CH_HOLD,    /* uint32_t: all stand still for so many ms (a minute at most), or until RELEASE; again: from now on. Answer:
	             * DONE when they do. What is said to processes meanwhile is heard afterwards */
	CH_RELEASE, /* answer: DONE; its error is ETIMEDOUT when they went on before */
	CH_USAGE,   /* answer: USAGE */
	CH_SYNC,    /* answer: PROC for all that live, EXIT or FAIL for all that were not forgotten, SYNCED */
	CH_EXTEND,  /* uint64_t: ms from now on until the wall limit; 0: none */
	CH_CLOSE,   /* ends everything, at once. Answer: END */
	CH_DROP,    /* struct channel_shell, the name alone counts: the shell ends and is forgotten */
	CH_GATE,    /* descriptor: the socket of a child of the gate; one too many is closed */
	CH_RULES,   /* struct gate_rules; descriptor: the document. Answer: RULED */
	CH_NET_ACK, /* uint64_t: NET up to this number are on record */
	CH_ANSWER,  /* struct gate_answer: to an ASK */
	CH_TRIP_ANSWER, /* struct gate_answer: to a TRIP */

	/* Both. */
	CH_SHELL,   /* struct channel_shell, text. The client: one that a monitor before had; known already: not
	             * heard. The monitor: what is new about it, and always before the EXIT that it belongs to */

	/* The monitor. */
	CH_READY,   /* struct channel_ready: the walls stand; first message to every client of a kept sandbox */
	CH_STARTED, /* struct channel_started: the command executes. Not for EXEC_FINAL, unless it has commands to hold */
	CH_RAN,     /* struct channel_ran: a program is started inside, by what the command started. Not said again */
	CH_TRIP,    /* struct channel_trip: a program that `num` starts is held. A new client gets those that still wait */
	CH_UNTRIP,  /* struct gate_unask: a TRIP that was told is over, and nobody waits for its answer */
	CH_GREW,    /* uint64_t: the log ends here now. Rings once, and again after an ACK */
	CH_TOOK,    /* uint64_t: bytes of input that were written or dropped since the start */
	CH_WAITING, /* it waits for input and there is none; a guess, after WATCH only */
	CH_EXIT,    /* struct channel_end (channel_end_read) */
	CH_FAIL,    /* struct err: it was never executed. num 0: there is no sandbox; the last message */
	CH_PROC,    /* struct channel_proc */
	CH_SYNCED,
	CH_DONE,    /* struct channel_done */
	CH_GATELESS, /* no child of the gate serves it, a GATE is wanted. After a SYNC too */
	CH_RULED,   /* struct gate_ruled: also when a child begins */
	CH_NET,     /* struct channel_net. A new client gets all again that no ACK has come for */
	CH_ASK,     /* struct gate_ask; a new client gets those that still wait */
	CH_UNASK,   /* struct gate_unask: an ASK that was told is over, and nobody waits for its answer */
	CH_END,     /* struct channel_gone: everything inside is dead; the last message */
	CH_MASKED,  /* struct channel_masked: secrets were found in what it wrote */
	CH_PROVED,  /* uint32_t: a bit for each wall that was proved before it executed (engine/proof.h). Before STARTED
	             * and EXIT; not said again while they are the same */
	CH_TYPES
};
/* clang-format on */

struct channel_head {
	uint32_t type, len;
	uint32_t num; /* of the process, or 0 */
	uint32_t unused;
};

struct channel_packet {
	struct channel_head head;
	unsigned char data[CHANNEL_DATA_MAX];
};

enum channel_exec_flags {
	EXEC_TTY = 1,      /* own pty */
	EXEC_STDIN = 2,    /* input comes; else /dev/null, or with a pty nobody types */
	EXEC_MERGE = 4,    /* standard error goes where standard output goes */
	EXEC_FINAL = 8,    /* the sandbox ends with it */
	EXEC_USAGE = 16,   /* the end says what was used, started and left running */
	EXEC_TEXT_FD = 32, /* the text is too long for a packet: it is in the second descriptor */
	EXEC_SHELL = 64,   /* argv is the name of a shell and a script for it */
	EXEC_ALONE = 128,  /* what it leaves running is ended before its end is told */
	EXEC_GATED =
	    256 /* not executed before its gate has served; not at all if that takes too long */
};

/* Then the text: cwd, argv, env, commands to hold (spec/trip.h), each with its NUL. */
struct channel_exec {
	uint32_t flags;
	uint32_t uid, gid; /* inside */
	uint16_t rows, cols;
	uint32_t argc, envc;
	uint32_t text_len;
	uint32_t tripc;
	uint64_t trip_ms;    /* how long a program is held */
	uint64_t timeout_ms; /* 0: none */
	uint64_t log_max;    /* bytes of the log that are kept; 0: all */
	uint64_t output_max; /* bytes that are taken from it, the rest is dropped; 0: all */
	uint64_t window;     /* pause it when the log is this far ahead of the ACKs; 0: never */
};

enum channel_scope { SCOPE_PROCESS, SCOPE_TREE }; /* its process group; all it ever started */

struct channel_signal {
	int32_t sig;
	uint32_t scope;
};

struct channel_size {
	uint16_t rows, cols;
};

struct channel_ready {
	int32_t init_pid;    /* as the monitor's host sees it */
	uint32_t can_freeze; /* there is a cgroup for it; HOLD needs none */
	uint32_t has_leaves; /* every process has a cgroup: a tree is known exactly */
	uint32_t is_frozen;
	uint32_t has_net; /* it was made with listeners, whatever its rules are now */
};

struct channel_started {
	int32_t pid; /* as the host sees it */
	uint32_t unused;
	int64_t unix_ms;
};

struct channel_proc {
	struct channel_started started; /* pid 0: not executing yet */
	uint64_t position;              /* of the end of its log */
	uint32_t flags;                 /* EXEC_TTY, EXEC_STDIN: whoever asks anew may type */
	uint32_t unused;
};

struct channel_usage {
	uint64_t cpu_ms, mem_now, mem_peak, pids, disk_bytes;
	uint64_t oom_kills, pids_denied;
};

struct channel_done {
	uint32_t type;  /* what was asked for */
	uint32_t error; /* errno, or 0 */
};

/* How a command ended; the words of the API's `state`. */
enum run_state {
	RUN_EXITED,
	RUN_SIGNALED,
	RUN_TIMEOUT,
	RUN_OOM,
	RUN_KILLED,
	RUN_EXPIRED,
	RUN_LOST
};

struct channel_gone {
	uint32_t state; /* enum run_state: RUN_EXITED when its last command ended it */
	uint32_t unused;
	char reason[96];
};

/* `num` of the head: the process that made the connection, when only one could have, else 0. */
struct channel_net {
	uint64_t at; /* grows by one; begins anew with a monitor */
	struct gate_record record;
};

struct channel_child {
	int32_t pid;
	char name[16];
};

struct channel_end {
	uint32_t state;    /* enum run_state */
	int32_t exit_code; /* -1: none */
	int32_t signal;    /* 0: none */
	char reason[96];   /* "" or a sentence that names the limit */
	uint64_t ms, cpu_ms, mem_peak, io_bytes;
	uint64_t out_bytes, err_bytes, dropped_bytes;
	uint64_t oom_kills, pids_denied;
	uint16_t is_disk_full; /* when the command ended */
	uint16_t
	    filters_denied; /* in what were high bits of the former: monitors outlive daemons */
	uint32_t is_inodes_full;      /* when the command ended */
	uint32_t n_children, n_execs; /* in all; the arrays hold the first */
	struct channel_child children[CHANNEL_CHILDREN_MAX];
	char execs[CHANNEL_EXECS_MAX][CHANNEL_EXEC_TEXT]; /* arguments joined by a space */
};
_Static_assert(sizeof(struct channel_end) <= CHANNEL_DATA_MAX, "one packet");

/* Bytes from inside: arguments joined by a space, and cut. */
struct channel_ran {
	uint32_t pid;    /* as the monitor sees it */
	uint32_t missed; /* so many before it could not be told */
	char text[CHANNEL_EXEC_TEXT];
};

enum channel_trip_flags {
	TRIP_OWN = 1,  /* it is the command itself */
	TRIP_CUT = 2,  /* it has more arguments, or longer ones */
	TRIP_FULL = 4, /* too many wait: it was refused, and there is nothing to answer */
	TRIP_LATE = 8, /* the same: nobody answered in time */
};

/* Bytes from inside: the arguments, each with its NUL. */
#define CHANNEL_TRIP_TEXT 4096
struct channel_trip {
	uint64_t ask;
	uint32_t left_ms; /* for an answer; without one it is refused */
	uint32_t flags;
	uint32_t pid;  /* as the monitor sees it */
	uint32_t rule; /* which of the commands to hold */
	uint32_t text_len, zero;
	char text[CHANNEL_TRIP_TEXT];
};

struct channel_masked {
	uint64_t hits;             /* so far */
	char name[MARK_NAME_SIZE]; /* of the last */
};

/* An end is sent and stored without the execs that it does not have; `n` bytes come from outside.
 * False when no monitor of ours has said that. */
size_t channel_end_size(const struct channel_end *end);
bool channel_end_read(struct channel_end *out, const void *bytes, size_t n);

/* 1..64 of [A-Za-z0-9._-] */
#define SHELL_NAME_SIZE 65
bool shell_name_is(const char *name, size_t len);

enum channel_shell_flags {
	SHELL_LIVES = 1,
	SHELL_RESTARTED = 2 /* for the command `num`: the one before had ended */
};

/* Then its state, text_len bytes: kind ("bash" or ""), working directory, exported variables as the
 * shell itself prints them; each with its NUL. Nothing: it has never said. Opaque to everybody but
 * a shell of the same kind in the same sandbox. */
struct channel_shell {
	uint32_t flags;
	uint32_t text_len;
	char name[SHELL_NAME_SIZE];
	char reason[191]; /* why the one before ended, and what could not be given back */
};
#define SHELL_TEXT_MAX (CHANNEL_DATA_MAX - sizeof(struct channel_shell))

/* False when no monitor or daemon of ours has said that. `*text` points into `bytes`. */
bool channel_shell_read(struct channel_shell *out, const char **text, const void *bytes, size_t n);
bool shell_text_is(const char *text, size_t n);
const char *shell_text_cwd(const char *text); /* of one that is */
const char *shell_text_env(const char *text);

const char *run_state_name(enum run_state s);
/* The status with which `caisson run` ends: the command's own, 124, 125, 128+n. */
int run_exit_status(const struct channel_end *end);
