/*
 * pack.h - folders of the caller's as tar archives, and back.
 */
#pragma once

#include "cli/client.h"

/* A folder's content, written to `fd`. What is no file, folder or link is left out. */
int pack_folder(const char *path, int fd, struct err *e) MUST_USE;

/* These files of it, in this order; links are not followed. */
int pack_files(const char *path, const char *const *names, int fd, struct err *e) MUST_USE;

/* Either as the body of a request, of the type that it says, else tar. */
struct pack_what {
	const char *path;
	const char *const *names; /* NULL: all of it */
};
int pack_send(struct client *c, const struct client_ask *ask, struct pack_what what, json_t **out,
              struct err *e) MUST_USE;
client_source file_source; /* of an open file, int * */

/* More of an archive: bytes at *bytes, 0 at its end, -1 with the error in `e`. */
typedef long unpack_source(void *arg, const void **bytes, struct err *e);

struct unpacked {
	uint64_t files, bytes;
	uint64_t left_out; /* links that lead out of the folder, devices and other oddities */
};

/* Into the folder `dir_fd`. The archive is not trusted: no name and no link of it leads out of
 * the folder, no link is followed, nothing keeps an owner or a setuid bit. */
int unpack_folder(int dir_fd, unpack_source *source, void *arg, struct unpacked *out,
                  struct err *e) MUST_USE;
