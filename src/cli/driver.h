/*
 * driver.h - the seam between the CLI and whoever runs commands.
 *
 * The CLI knows specs and events, nothing of engines. main() passes it a driver: the one that asks
 * the daemon (cli/daemon.c), or the one that launches in this process (bin/oneshot.c).
 *
 *   start ──▷ next, next, ... (wait for poll_fd when there is nothing) ──▷ end
 *               input, signal, resize, kill: whenever
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "spec/spec.h"

#define DRIVER_INPUT_MAX (32u << 10) /* of one call of input() */

struct run_setup {
	const struct spec *spec; /* resolved */
	const char *spec_text;   /* canonical, before that */
	char *const *argv;
	const char *cwd; /* NULL: the default */
	bool is_tty, has_stdin;
	bool is_inline; /* output comes with the object at the end, not as events */
	uint64_t timeout_ms;
	uint16_t rows, cols;
};

struct run_session {
	int poll_fd;       /* ready for poll_events: next() has something to do */
	short poll_events; /* next() and the others may change it */
	bool has_room;     /* input() takes DRIVER_INPUT_MAX bytes now; so may this */
	void *driver_data;
};

enum run_event_kind {
	RUN_STARTED, /* {"process", "enforced"}: it is there, and behind which walls */
	RUN_NOTE,    /* a line for standard error about the walls */
	RUN_OUT,     /* bytes of standard output, or of the terminal */
	RUN_ERR,     /* bytes of standard error */
	RUN_DROPPED, /* a number as text: so many bytes were not kept */
	RUN_ENDED    /* the process object of the API; the last */
};

struct run_event {
	enum run_event_kind kind;
	const unsigned char *bytes; /* until the next call; they count as taken then */
	size_t n;
	json_t *object; /* the taker's to release */
};

struct doctor_report;

struct driver {
	int (*start)(const struct run_setup *setup, struct run_session *out, struct err *e);
	/* 1 with an event; 0 when there is none for now; -1 when nothing was executed, or nobody
	 * knows how it ended. Never waits. */
	int (*next)(struct run_session *s, struct run_event *out, struct err *e);
	void (*input)(struct run_session *s, const void *bytes, size_t n); /* n 0: its end */
	void (*signal)(struct run_session *s, int sig);
	void (*resize)(struct run_session *s, uint16_t rows, uint16_t cols);
	void (*kill)(struct run_session *s); /* everything inside: TERM, and after a while KILL */
	/* Everything of the sandbox is gone when it returns. */
	void (*end)(struct run_session *s);
	/* Names of what dead sandboxes left, removed unless dry_run. */
	int (*sweep)(bool dry_run, void (*found)(const char *what, bool is_gone));
	/* What the host can enforce (cli/doctor.h); the texts live until the program ends or the
	 * report's arena is released. */
	void (*inspect)(struct doctor_report *out);
};
