/*
 * host.h - a folder of the host, looked at without following a link.
 *
 * Every name is resolved by openat2(2) below the folder: no link on the way, no `..`, no other file
 * system. What is there belongs to the caller, and may change at any time.
 */
#pragma once

#include <sys/stat.h>

#include "apply/plan.h"
#include "base/err.h"
#include "base/str.h"

/* The folder that `path` lies in, or -errno; *name is the last part of it. */
int host_parent(int root_fd, const char *path, const char **name) MUST_USE;
/* host and was of it. Texts go to the arena. */
int host_look(int root_fd, struct apply_entry *e, struct arena *arena, struct err *err) MUST_USE;
void host_ident(const struct stat *st, struct apply_ident *out);
/* It is still that file, and nobody has written to it. */
bool host_is_same(const struct apply_ident *a, const struct stat *st);
/* Folders that are there need not be made. */
int host_trim(int root_fd, struct apply_ops *ops, struct err *e) MUST_USE;

/* A file of the host, compared with bytes that come piece by piece. */
struct host_compare {
	int fd;    /* -1: it has already turned out to be another one */
	int error; /* -errno: it could not be read, and nobody knows */
	bool is_same;
};
void host_compare_begin(int root_fd, const struct apply_entry *e, struct host_compare *c);
void host_compare_feed(struct host_compare *c, const void *bytes, size_t n);
/* 1: they were all the bytes that it has; 0; -errno. */
int host_compare_end(struct host_compare *c) MUST_USE;

/* All of a file, if it is not longer than out->max: else out->overflow. */
int host_read(int root_fd, const char *path, struct str *out, struct err *e) MUST_USE;
