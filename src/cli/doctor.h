/*
 * doctor.h - `caisson doctor [--json]`: what this host can enforce, what it lacks, what adds it.
 */
#pragma once

#include "base/arena.h"
#include "cli/driver.h"

#define DOCTOR_ROWS_MAX 96

enum doctor_area {
	DOCTOR_WALLS,
	DOCTOR_ROOT,
	DOCTOR_ROOTLESS,
	DOCTOR_SETTINGS,
	DOCTOR_SETUP,
	DOCTOR_AREAS
};
enum doctor_state { DOCTOR_OK, DOCTOR_WEAK, DOCTOR_MISSING, DOCTOR_UNKNOWN, DOCTOR_STATES };

struct doctor_row {
	enum doctor_area area;
	enum doctor_state state;
	const char *name;
	const char *by;     /* the mechanism, or the value of a setting; NULL: nothing */
	const char *detail; /* why it matters; NULL: ok, or another row says it */
	const char *fix;    /* a command, or what to change; NULL: none */
};

struct doctor_report {
	struct arena arena; /* owns the texts; the CLI's to release */
	const char *kernel, *cgroup;
	enum doctor_area mode; /* DOCTOR_ROOT or DOCTOR_ROOTLESS: the one that we run in */
	bool is_enforceable;   /* the default spec, as far as looking tells */
	struct doctor_row rows[DOCTOR_ROWS_MAX];
	size_t n_rows;
};

void doctor_setup(struct doctor_report *r); /* adds rows: doctor_setup.c */
/* 0; 1 when the default spec cannot be enforced here; 125 for bad usage or lost output. */
int doctor_main(int argc, char **argv, const struct driver *driver);
