/*
 * harden.h - what the gate gives up, before it reads the first byte of a sandbox.
 */
#pragma once

#include "base/err.h"

/* The master, at its start. */
int harden_master(struct err *e) MUST_USE;
/* A child of `master`: it dies with it, reads a few files, writes none, starts nothing. */
int harden_child(pid_t master, struct err *e) MUST_USE;
