/*
 * overlay.h - the mounts of a workspace: itself, and its layers without the top.
 */
#pragma once

#include "vault/vault-internal.h"

struct stack {
	uint64_t top; /* 0: none, read-only */
	const uint64_t *layers;
	uint32_t n_layers;
};

/* At w or u; every layer is sealed, and nobody else has the top mounted (-EBUSY in e->sys). */
int overlay_mount(struct vault *v, struct stack s, struct err *e) MUST_USE;
/* A detached clone of that. */
int overlay_clone(const struct vault *v, struct err *e) MUST_USE;
/* The layers alone, read-only and with ids as on disk, at `place` of the vault's root. */
int overlay_mount_layers(const struct vault *v, const uint64_t *layers, uint32_t n,
                         const char *place, struct err *e) MUST_USE;
void overlay_unmount(struct vault *v); /* all */

/* What is mounted makes room for another one. It goes with overlay_settle(), or comes back. */
void overlay_set_aside(struct vault *v);
void overlay_take_back(struct vault *v);
void overlay_settle(struct vault *v);
