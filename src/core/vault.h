/*
 * vault.h - the daemon's end of the socket to one keeper of storage (wire/vault.h).
 *
 * The launcher starts the keeper, or finds the one that runs. What is asked before it is there
 * waits; then one request at a time, in order. A keeper that dies fails all of them.
 */
#pragma once

#include "core/core.h"
#include "wire/vault.h"

struct vault;

#define VAULT_DIED EPIPE /* err.sys: what was asked may be done, or not, or half */

/* One of d and e is NULL. It may ask again, and close the vault. */
typedef void vault_done_fn(void *arg, const struct vault_done *d, const struct err *e);

/* NULL, or: is told that there is none (any more), after whoever waited. It closes it. */
struct vault_owner {
	void (*opened)(void *arg);
	void (*gone)(void *arg, const struct err *e);
	void *arg;
};

struct vault *vault_open(struct core *c, const struct vault_open *open, struct vault_owner owner);
/* `p`: the type and its struct. `fd` (-1: none) goes along, borrowed. */
void vault_ask(struct vault *v, const struct vault_packet *p, int fd, vault_done_fn *done,
               void *arg);
bool vault_is_there(const struct vault *v); /* false: not yet, or it died */
bool vault_is_idle(const struct vault *v);  /* nothing is asked */
/* Whoever waits is told nothing. NULL is fine. */
void vault_close(struct vault *v);
/* The same, and it ends if nobody has its mount; what becomes of that is not waited for. */
void vault_dismiss(struct vault *v);
