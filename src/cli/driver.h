/*
 * driver.h - the seam between the CLI and whoever runs sandboxes.
 *
 * The CLI knows specs and channels, nothing of engines. main() passes it a driver: today the
 * one that launches in this process (bin/oneshot.c), with the daemon a client of its API.
 */
#pragma once

#include "base/err.h"
#include "spec/spec.h"

#define ENFORCED_MAX 24

struct run_setup {
	const struct spec *spec; /* resolved */
	char *const *argv;
	const char *cwd; /* NULL: the default */
	bool is_tty, has_stdin;
	bool wants_usage; /* what was used and started inside, in the end report */
	uint64_t timeout_ms;
	uint16_t rows, cols;
};

/* What enforces a field of the spec; `by` is NULL when nothing does. */
struct enforced {
	const char *field, *by;
	const char *reason; /* why not */
};

struct run_session {
	int channel_fd; /* wire/channel.h; the driver's to close */
	struct enforced enforced[ENFORCED_MAX];
	size_t n_enforced;
	const char *cwd; /* of the command, inside */

	void *driver_data;
};

struct doctor_report;

struct driver {
	int (*start)(const struct run_setup *setup, struct run_session *out, struct err *e);
	/* The command has ended: what can be taken down already may be. */
	void (*ebb)(struct run_session *s);
	/* Everything of the sandbox is gone when it returns; texts of the session stay. */
	void (*end)(struct run_session *s);
	/* Names of what dead sandboxes left, removed unless dry_run. */
	int (*sweep)(bool dry_run, void (*found)(const char *what, bool is_gone));
	/* What the host can enforce (cli/doctor.h); the texts live until the program ends or the
	 * report's arena is released. */
	void (*inspect)(struct doctor_report *out);
};
