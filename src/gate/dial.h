/*
 * dial.h - a connection to a name, or to an address, upstream.
 *
 * The name is resolved, addresses that may not be dialled are dropped, and what was checked is what
 * is connected to: nothing is resolved twice. Addresses are tried one after the other, the next one
 * when the last is silent for a moment (RFC 8305), and the first that answers wins.
 *
 * With a company's proxy nothing is resolved here but the proxy itself: it gets the name, and which
 * address that is, is its choice.
 */
#pragma once

#include "gate/lookup.h"
#include "os/net.h"

struct rules_addr rules_addr_of(const union os_address *a);

struct dialer {
	struct loop *loop;
	struct timers *timers;
	struct lookups *lookups;
	const struct rules *rules;
};

struct dial_to {
	const char *name;     /* NULL: the address */
	struct rules_addr to; /* its port counts for a name too */
};

/* With a connected socket, that is then the owner's, or with fd -1 and why. `real`: what was
 * dialled, also in vain; its port is 0 when nothing was. */
typedef void dial_done(void *owner, int fd, enum gate_reason why, const struct rules_addr *real);

/* done() is called once, from the loop. */
struct dial *dial_start(const struct dialer *x, const struct dial_to *to, dial_done *done,
                        void *owner);
void dial_cancel(struct dial *d); /* NULL is fine */
