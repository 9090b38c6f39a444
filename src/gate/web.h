/*
 * web.h - a connection that speaks HTTP/1: every request is parsed, judged and printed anew.
 *
 * One connection upstream for one of a client, never shared, opened for the first request that is
 * allowed. Bodies pass as they come, in both directions, with at most one read of each in memory.
 * An answer that comes early is passed on; behind 101 bytes are bytes.
 */
#pragma once

#include "gate/gate-internal.h"
#include "io/tls.h"

/* The client's socket is the connection's; `tls` is taken (NULL: plain). When a server is connected
 * already, that is it. */
void web_start(struct conn *c, struct tls *tls);
void web_free(struct web *w);        /* NULL is fine */
void web_look_again(struct gate *g); /* requests that wait for a token look again */
void web_dialled(struct conn *c, int fd, enum gate_reason why);
/* What came of asks_hold_request(). */
void web_asked(struct conn *c, bool is_allowed, enum gate_reason why);
