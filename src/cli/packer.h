/*
 * packer.h - bodies of requests that come from files of the caller's (cli/client.h).
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* A child packs a folder (cli/pack.h) while we send. */
struct packer {
	int fd; /* -1: not yet, or no more */
	pid_t pid;
	const char *path;
	const char *const *names; /* NULL: all of it */
};

int packer_start(struct packer *p, struct err *e) MUST_USE;
int packer_wait(struct packer *p); /* its status; the child ends when nobody reads */

/* For client_ask.source: of a packer, and of a descriptor (int *). */
ssize_t packer_read(void *packer, char *buf, size_t size, struct err *e);
ssize_t file_read(void *fd, char *buf, size_t size, struct err *e);
