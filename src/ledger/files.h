/*
 * files.h - names in the folder of a ledger.
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

struct file_entry {
	uint64_t seq, bytes;
};

struct files {
	struct file_entry *at; /* a VEC(), the oldest first */
	size_t len, cap;
};

int files_list(int dir_fd, struct files *out, struct err *e) MUST_USE;
/* Whole or not at all, and on disk: 0600. */
int file_replace(int dir_fd, const char *name, const void *bytes, size_t n, struct err *e) MUST_USE;
