/*
 * remove.h - an entry of a directory and all that is below it.
 */
#pragma once

#include "base/err.h"

struct call;

struct remove_how {
	struct call *call; /* NULL: nobody stops it */
	uint64_t *removed; /* NULL, or counts entries */
};
int remove_tree(int dir_fd, const char *name, struct remove_how how, struct err *e);
