/*
 * net.h - what became of the connections of a sandbox: from the records of its gate to rows of the
 * store, to whoever follows them, and to the `violations` of commands.
 *
 * Records come by the monitor (core/gate.c), which keeps each until it is said to be taken. They
 * are stored in order, many in one request, one request of a sandbox at a time: what the store
 * cannot take waits in the monitor, whose spool fills, and then the gate denies. Nothing is on its
 * way that nobody would find afterwards.
 */
#pragma once

#include "core/sandbox.h"
#include "wire/gate.h"

struct connection_row;

/* A record as a row, but for whose it is; texts lie in the record and in the arena. */
void net_row(const struct gate_record *r, struct arena *a, struct connection_row *out);
bool net_is_denied(const struct gate_record *r);

/* Told when there are rows that changed after what it has read; embedded in its owner. */
struct net_watch {
	struct net_watch *next;
	void (*grew)(struct net_watch *w); /* or the sandbox is gone: sandbox is NULL then */
	struct sbx *sandbox;
};

/* From gate.c. `at` is the record's number in the monitor's spool, growing; `num` the process that
 * made it when the monitor knows, else 0. Once all up to `at` are on record, gate_took(s, at) of
 * gate.h is called. */
void core_on_record(struct sbx *s, uint64_t at, uint32_t num, const struct gate_record *r);
/* The child of the gate died, or the sandbox did: what was open has no end that anybody saw. */
void net_on_lost(struct sbx *s);

void net_watch_add(struct sbx *s, struct net_watch *w);
void net_watch_remove(struct net_watch *w);
void net_done(struct sbx *s); /* the sandbox is freed; what it told is still stored */
