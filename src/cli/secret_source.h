/*
 * secret_source.h - a command that prints the value of a secret. Only the config of whoever sets it
 * names one: a flag, or a request, cannot make anybody run something.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

struct secret_source {
	int fd; /* what it prints */
	pid_t pid;
};

int secret_source_begin(struct secret_source *s, const char *name, struct err *e) MUST_USE;
/* It has ended well. Fine when it never began. */
int secret_source_end(struct secret_source *s, struct err *e) MUST_USE;
