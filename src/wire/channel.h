/*
 * channel.h - what a monitor and its client say to each other.
 *
 * One message is one packet of a SOCK_SEQPACKET socket: the head, then `len` bytes. The client
 * is the CLI now and the daemon later. The monitor trusts its client; the client takes nothing
 * from these bytes but numbers in range and text that it escapes.
 */
#pragma once

#include "base/base.h"

#define CHANNEL_DATA_MAX (32u << 10)
#define CHANNEL_CHILDREN_MAX 16
#define CHANNEL_EXECS_MAX 32
#define CHANNEL_EXEC_TEXT 256

enum channel_type {
	CH_STARTED, /* monitor: the command executes */
	CH_OUT,     /* monitor: bytes of standard output, or of the pty */
	CH_ERR,     /* monitor: bytes of standard error */
	CH_EBB,  /* monitor: the command has ended, what it left is dying; a hint, may be absent */
	CH_FAIL, /* monitor: a struct err; nothing was started; the last message */
	CH_END,  /* monitor: a struct channel_end; everything inside is dead; the last message */
	CH_IN,   /* client: bytes for standard input */
	CH_EOF,  /* client: end of standard input */
	CH_SIGNAL, /* client: a number, for the command's process group */
	CH_RESIZE, /* client: rows, columns */
	CH_KILL,   /* client: end it now */
	CH_GO,     /* launcher: the cgroup is ready; the first message of all */
	CH_TYPES
};

struct channel_head {
	uint32_t type, len;
};

struct channel_packet {
	struct channel_head head;
	unsigned char data[CHANNEL_DATA_MAX];
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
	uint32_t is_disk_full, is_inodes_full; /* when the command ended */
	uint32_t n_children, n_execs;          /* in all; the arrays hold the first */
	struct channel_child children[CHANNEL_CHILDREN_MAX];
	char execs[CHANNEL_EXECS_MAX][CHANNEL_EXEC_TEXT]; /* arguments joined by a space */
};
_Static_assert(sizeof(struct channel_end) <= CHANNEL_DATA_MAX, "one packet");

const char *run_state_name(enum run_state s);
/* The status with which `caisson run` ends: the command's own, 124, 125, 128+n. */
int run_exit_status(const struct channel_end *end);
