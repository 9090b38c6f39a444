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

/* At w; every layer is sealed, and nobody else has the top mounted (-EBUSY in e->sys). */
int overlay_mount(struct vault *v, struct stack s, struct err *e) MUST_USE;
/* A detached clone of w. */
int overlay_clone(const struct vault *v, struct err *e) MUST_USE;
/* The layers of what is open; v->lower_fd is a descriptor of it from then on. */
int overlay_mount_lower(struct vault *v, struct err *e) MUST_USE;
void overlay_unmount(struct vault *v);
