/*
 * restore.h - the workspace as it was, written through its live mount.
 *
 * Whoever works there keeps his directory, his open files and his watches: files are written where
 * they are, directories that were renamed are renamed back. Only what differs is touched, found by
 * looking at both sides, so a restore that was cut short is finished by the next one.
 */
#pragma once

#include "vault/parent.h"
#include "vault/sides.h"

struct restore {
	struct vault *v;
	struct sides *sides; /* from: now */
	bool is_counting;    /* nothing is written */
	uint64_t needed;     /* counting: bytes that the disk must have for it */
	struct vault_done *done;

	struct arena arena;
	struct parent parent; /* in the live mount */
};

int restore_remove(struct restore *r, struct span path, struct err *e) MUST_USE;

/* restore_renames.c */
int restore_renames(struct restore *r, struct err *e) MUST_USE;
/* restore_write.c: `a` becomes `b`, which is no directory that is there already. */
int restore_write(struct restore *r, struct span path, struct node *a, struct node *b,
                  struct err *e) MUST_USE;
int restore_attributes(struct restore *r, struct span path, struct node *a, struct node *b,
                       struct err *e) MUST_USE;
int restore_links(struct restore *r, struct err *e) MUST_USE;
