/*
 * trees.h - what lies in the store, opened by its number (wire/vault.h says what is there).
 *
 * The folder is root's, and the daemon names nothing in it but numbers. What is below d/ was
 * written by sandboxes: it is mounted, never read.
 */
#pragma once

#include "base/err.h"

struct trees_want {
	bool is_writable; /* refused when it is sealed */
	bool is_image;    /* refused when it is not: others build on it */
};

/* The files of tree `number`, as O_PATH. e->kind is ERR_NOT_FOUND when there is no such tree. */
int trees_open(int trees_fd, uint64_t number, struct trees_want want, struct err *e) MUST_USE;
