/*
 * lend.h - what a client says to the launcher itself: which paths of the host it lends.
 *
 * The daemon asks the launcher to open host paths with a client's rights (wire/launch.h, L_OPEN),
 * and the daemon may have been taken over. So the launcher opens only what the client has named
 * here, on a socket of the launcher's own, `lend.sock` beside the API's.
 *
 * The client sends one message: struct lend_head, then paths, each absolute and with its NUL. One
 * byte comes back. The paths are lent while the connection is open; those of LEND_KEEP also later,
 * on other connections of the same user: what a sandbox that is started again needs.
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"

#define LEND_SOCKET "lend.sock"
#define LEND_PATHS_MAX (FS_ENTRIES_MAX + 1) /* of a spec: its fs entries and its image */
#define LEND_BYTES_MAX (64u << 10)

#define LEND_ONCE 'o'
#define LEND_KEEP 'k'
#define LEND_OK '+' /* the answer; anything else, or the end of the connection: refused */

struct lend_head {
	unsigned char kind;
	unsigned char len[4]; /* of what follows; little endian */
};

/* The length of a whole message that begins like this; 0: it is none. */
size_t lend_size(const struct lend_head *h);
/* Whether `n` bytes behind a head are paths. */
int lend_check(const char *paths, size_t n, struct err *e) MUST_USE;
/* The same path, but for empty and "." names: the daemon leaves those out. */
bool lend_is_same(const char *a, const char *b);
