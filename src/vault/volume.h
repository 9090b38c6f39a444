/*
 * volume.h - the room of one workspace: a sparse file with an ext4 of its own, in which its tops
 * lie.
 *
 * Bytes and inodes end there and not on the host; a sync is about this workspace alone. The file is
 * the copy of a template, so that it is there within a millisecond. A device of a vault that died
 * lives as long as a sandbox has the mount: it is found and used again, because two devices on one
 * file would destroy it.
 */
#pragma once

#include "vault/vault-internal.h"

/* A detached mount of the volume of o->workspace, made when it is not there. On the host's files,
 * before den_enter(). */
int volume_mount(struct vault *v, const struct vault_open *o, struct err *e) MUST_USE;
/* Of a workspace that nobody has; fine when there is none. */
int volume_remove(const struct vault *v, uint64_t workspace, struct err *e) MUST_USE;
