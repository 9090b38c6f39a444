/*
 * trees.h - folders of files by number; wire/vault.h says what is in one.
 *
 * All of it can be done again after it was cut short: a tree that is half made is made whole by
 * the next trees_make(), one that is half removed is removed by the next trees_remove().
 */
#pragma once

#include "vault/vault-internal.h"

#define TREE_NAME_MAX 32

/* The tree's folder seen from the vault's root; with the ids that it has outside, or as on disk. */
enum trees_ids { TREES_ON_DISK, TREES_OUTSIDE };
const char *trees_place(const struct vault *v, uint64_t number, enum trees_ids ids);
int trees_root(const struct vault *v, bool is_top); /* where new ones are made; borrowed */

void trees_name(uint64_t number, char out[TREE_NAME_MAX]);
int trees_open(const struct vault *v, uint64_t number, struct err *e) MUST_USE;       /* NUM */
int trees_open_files(const struct vault *v, uint64_t number, struct err *e) MUST_USE; /* NUM/d */

/* 1: made now, 0: it was there. */
int trees_make(const struct vault *v, uint64_t number, struct err *e) MUST_USE;
/* As above, with a work folder; its root looks like that of the layer below. */
int trees_make_top(const struct vault *v, uint64_t number, uint64_t below, struct err *e) MUST_USE;
int trees_is_sealed(const struct vault *v, uint64_t number, struct err *e) MUST_USE; /* 1 or 0 */
int trees_seal(const struct vault *v, uint64_t number, struct err *e) MUST_USE;
int trees_unseal(const struct vault *v, uint64_t number, struct err *e) MUST_USE;
int trees_remove(const struct vault *v, uint64_t number, struct err *e) MUST_USE;
/* Of its volume: tops that it had before. The new one may need their room. */
int trees_drop_others(const struct vault *v, const struct vault_open *o, struct err *e) MUST_USE;
int trees_check_empty(const struct vault *v,
                      struct err *e) MUST_USE; /* VAULT_EMPTY_TREE is there */
/* A flat tree says which layers it stands for, those below included: for it these are the same. */
int trees_note_flat(const struct vault *v, uint64_t number, const uint64_t *layers, uint32_t n,
                    struct err *e) MUST_USE;
struct stack_of {
	const uint64_t *layers;
	uint32_t n;
};
/* Do both show the same? */
bool trees_same_stack(const struct vault *v, struct stack_of a, struct stack_of b);
/* Entries, and bytes on disk. */
int trees_usage(const struct vault *v, uint64_t number, uint64_t *files, uint64_t *bytes,
                struct err *e) MUST_USE;
