/*
 * link.h - the daemon's end of the channel to one sandbox's monitor (wire/channel.h).
 *
 * The monitor is a process without rights, but what it carries comes from inside: lengths and
 * numbers are checked here, and text only goes on escaped.
 */
#pragma once

#include "io/loop.h"
#include "wire/channel.h"

struct sbx;
struct link_waiting;

struct link {
	struct watch watch; /* first; fd -1: none */
	struct sbx *sandbox;
	struct link_waiting *first, **last; /* messages that found no room */
	size_t n_waiting;
	struct channel_ready ready; /* once it has come */
	bool is_ready;
	bool is_expected; /* link_open() comes: what is said waits for it */
};

#define LINK_WAITING_MAX 256 /* a monitor that takes nothing for so long is in trouble */

void link_init(struct link *l, struct sbx *s);
void link_expect(struct link *l);
int link_open(struct link *l, int *fd); /* takes it, unless it fails; 0 or -errno */
int link_connect(struct link *l, int dir_fd,
                 const char *name); /* to one that runs already; 0 or -errno */
void link_close(struct link *l);
/* Tells a monitor that is nobody's to end. */
void link_dismiss(int dir_fd, const char *name);
void link_refuse(int fd); /* the same, by a channel that was not opened */

/* Queued when there is no room. -ENOBUFS when too much waits, -ENOTCONN without a channel. The
 * descriptors are borrowed. */
struct link_fds {
	int fd[2];
	size_t n;
};
int link_hold(struct link *l, uint32_t lease_ms); /* CH_HOLD; CH_RELEASE ends it */
int link_send(struct link *l, enum channel_type type, uint32_t num, const void *bytes, size_t n);
int link_send_fds(struct link *l, struct channel_head head, const void *bytes, struct link_fds fds);
