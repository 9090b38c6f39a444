/*
 * roster.h - things by their id. Intrusive: a struct roster_entry is the first member of its owner,
 * and the key belongs to the owner too.
 */
#pragma once

#include "base/base.h"

struct roster_entry {
	struct roster_entry *next;
	const char *key;
};

struct roster {
	struct roster_entry **buckets;
	size_t n_buckets, n;
};

void roster_add(struct roster *t, struct roster_entry *e);    /* the key is not in there yet */
void roster_remove(struct roster *t, struct roster_entry *e); /* fine when it is not in there */
void *roster_find(const struct roster *t, const char *key);
void roster_done(struct roster *t); /* the entries belong to their owners */

/* Calls back for each; the callback may remove the entry that it is given, and no other. */
void roster_each(const struct roster *t, void (*found)(void *entry, void *arg), void *arg);
