/*
 * probe.h - one attack primitive per attempt, one JSON line per attempt.
 *
 * A row is a function; most rows are a table of attempts. Each attempt of a table runs in a
 * child of its own, so that what one changes (a namespace, a uid, a limit) never helps or
 * hinders the next. The probe only reports; whether that is right is decided on the host
 * (rows.py holds the expected errno, oracle.py the canaries).
 *
 * "open" means that an attacker would have got through: the call worked, or it failed with
 * an errno that the kernel only returns after its permission check (struct try, pass).
 */
#pragma once

#include "base/base.h"

struct
try {
	const char *op;
	long (*fn)(void); /* as syscall(2): -1 and errno, or >= 0 */
	int pass[6];      /* errnos that come after the permission check, 0-terminated */
};

/* The same for a bare system call. */
struct raw {
	const char *op;
	long nr;
	uintptr_t args[6];
	int pass[6];
};

struct row {
	const char *id;
	int (*run)(void); /* 0 or -1: the probe itself failed */
};

extern const struct row cap_rows[], sys_rows[], census_rows[], nsp_rows[], prc_rows[], dev_rows[],
    fds_rows[], cgr_rows[], net_rows[], verb_rows[];

/* Arguments of the row, after its id: arg(0) ... NULL. */
const char *arg(int n);
long arg_number(int n, long otherwise);
/* Writes until it is full, or there are so many; returns how many whole ones went in, with errno. A
 * write that is cut at the limit is no error yet. */
long fill_file(int fd, long mib);

/* One line. err is an errno or 0; negative is a signal that ended the attempt. */
void report(const char *op, int err, bool open, const char *fmt, ...) PRINTF(4, 5);
/* r as from a system call; reads errno. pass may be NULL. */
void attempt(const char *op, long r, const int *pass);
void attempt_forked(const struct try *t);
int attempt_all(const struct try *t, size_t n);
int attempt_raw(const struct raw *t, size_t n);

/* Whole small file as text, at most size - 1 bytes: the length, or -1 and errno. */
long slurp(const char *path, char *buf, size_t size);
/* Opens for writing and closes again: nothing is ever written. */
long open_for_write(const char *path);
/* Reads one line from stdin (or its end): the host says "go on". */
void wait_for_host(void);
/* Runs this program again with the given words; its exit code, or -1 and errno. */
int run_self(const char *path, const char *const *words);

/* In memory of every probe at one fixed address (the program is not position independent). */
extern char memory_canary[32];
