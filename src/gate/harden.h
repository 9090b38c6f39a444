/*
 * harden.h - what the gate gives up, before it reads the first byte of a sandbox.
 */
#pragma once

#include "base/err.h"

/* Of any program of ours that has no rights: no core, not dumpable, nothing gained by execve. */
/* What libraries free is overwritten: they have keys and tokens too. Before the first use of any.
 */
void harden_memory(void);
int harden_process(struct err *e) MUST_USE;
/* From now on a few files of the host can be read, and nothing written but what lies in the folder
 * `own_fd` (-1: none). */
int harden_files(int own_fd, struct err *e) MUST_USE;

/* Of a program of ours that only calls out: it reads a few files, writes none, starts nothing. */
int harden_caller(struct err *e) MUST_USE;
/* The master, at its start. */
int harden_master(struct err *e) MUST_USE;
/* A child of `master`: it dies with it, reads a few files, writes none, starts nothing. */
int harden_child(pid_t master, struct err *e) MUST_USE;
