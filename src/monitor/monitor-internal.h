/*
 * monitor-internal.h - the one struct of a monitor, and who does what with it.
 *
 *   monitor.c  birth, the command's exit, the end
 *   streams.c  output to the client, input from it, with back-pressure
 *   clock.c    the deadlines
 *   execs.c    exec notifications
 */
#pragma once

#include "engine/spawn.h"
#include "io/loop.h"
#include "monitor/monitor.h"
#include "wire/channel.h"

enum deadline { AT_TIMEOUT, AT_WALL, AT_IDLE, AT_GRACE, AT_DRAIN, DEADLINES };

struct stream {
	struct watch watch; /* first: callbacks get it */
	struct monitor *monitor;
	enum channel_type type;
	uint64_t bytes;
};

struct monitor {
	struct loop loop;
	struct box *box;
	struct spawn_init init;
	struct spawn_command command;

	struct watch control, child, timer, listener, input;
	struct stream streams[2];     /* out, err; a pty uses the first */
	struct channel_packet packet; /* the message that waits for room in the socket */
	bool is_blocked;              /* packet is waiting */

	unsigned char input_buf[CHANNEL_DATA_MAX];
	size_t input_len, input_at;
	bool input_eof;

	uint64_t deadline_ms[DEADLINES]; /* monotonic; 0: none */
	uint64_t started_ms, last_io_ms, idle_cpu_ms;

	bool is_init_lost;    /* pid 1 died before it was told to */
	bool is_started;      /* the command's own execve was announced */
	bool has_exited;      /* the command was waited for */
	int status;           /* of it */
	enum run_state cause; /* RUN_EXITED unless a deadline or the client ended it */
	char reason[96];
	uint64_t user_cpu_ms; /* by rusage, where there is no cgroup */
	uint64_t user_mem_peak, user_io_bytes;
	struct channel_end end;
};

/* container_of for the watches that are embedded one by one */
#define MONITOR_OF(w, member)                                                                      \
	((struct monitor *)(void *)((char *)(w)-offsetof(struct monitor, member)))

/* monitor.c */
void monitor_stop(struct monitor *m, enum run_state cause,
                  const char *reason);                            /* TERM, grace, kill */
void monitor_finish(struct monitor *m) __attribute__((noreturn)); /* kills all, reports, exits */
void monitor_drained(
    struct monitor *m); /* the streams have ended; the end, if the command has too */

/* streams.c */
int streams_open(struct monitor *m, struct payload_io *io, struct err *e) MUST_USE;
int streams_watch(struct monitor *m, struct err *e) MUST_USE;
void streams_client(struct monitor *m, const struct channel_packet *p);
void streams_unblock(struct monitor *m);
void streams_read(struct monitor *m); /* what there is now */
bool streams_ended(const struct monitor *m);
void streams_drain(struct monitor *m); /* everything inside is dead: read to the end */
void channel_send(struct monitor *m, enum channel_type type, const void *bytes, size_t n);

/* clock.c */
uint64_t clock_ms(void);
int clock_open(struct monitor *m, struct err *e) MUST_USE;
void clock_set(struct monitor *m, enum deadline d, uint64_t in_ms); /* 0: off */
void clock_active(struct monitor *m); /* something was read or written */

/* execs.c */
int execs_watch(struct monitor *m, struct err *e) MUST_USE;
