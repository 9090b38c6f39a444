/*
 * verbs.h - what a client can ask for; one function for each type of wire/vault.h.
 *
 * `fd` is the descriptor that came with the request, or -1; it stays the caller's.
 */
#pragma once

#include "vault/vault-internal.h"

typedef int verb(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                 struct err *e);

verb verb_make_tree, verb_seal_tree, verb_remove_tree, verb_remove_volume;
verb verb_checkpoint, verb_restore, verb_changes, verb_relayer;
verb verb_flatten, verb_remove_points, verb_sweep, verb_usage, verb_sync;
verb verb_verify, verb_mend, verb_census;
verb verb_reserve;

/* What is to be opened is not; the top is made when it is not there: out->is_new. */
int open_workspace(struct vault *v, const struct vault_open *o, int userns_fd,
                   struct vault_opened *out, struct err *e) MUST_USE;
