/*
 * names.h - which synthetic address stands for which name, in memory that outlives a child.
 *
 * The table lies in a memfd that the monitor keeps. Entry i is 198.18.0.2 + i, forever: entries are
 * only appended, a name is written before the count that makes it one. A child can be killed
 * between any two instructions; the next one reads what is there and checks it, because a child
 * parses hostile bytes. Names are looked up through an index in memory of our own.
 *
 * The monitor makes the memfd, empty (os_memfd); the first child gives it its size.
 */
#pragma once

#include "base/err.h"
#include "wire/gate.h"

#define NAMES_MAX 65536
#define NAMES_RESOLVER ((const uint8_t[4]){ 198, 18, 0, 1 })

struct names {
	struct names_map *map; /* shared */
	uint32_t *slots;       /* index: entry + 1; 0: free */
	size_t n_slots;        /* a power of two */
};

/* Borrows `memfd`. */
int names_open(struct names *t, int memfd, struct err *e) MUST_USE;
void names_done(struct names *t);

/* The address of a canonical name; new names are appended. False: the table is full. */
bool names_give(struct names *t, const char *name, uint8_t out[4]);
bool names_has(const struct names *t, const char *name); /* names_give() would not append */
/* The name of an address, or NULL: never given. Lives as long as the table. */
const char *names_find(const struct names *t, const uint8_t addr[4]);
size_t names_count(const struct names *t);

/* Numbers of connections, from 1 on; a number is never given twice, whoever dies. */
uint64_t names_next_seq(struct names *t);

/* How many bytes have passed in the life of the sandbox: the caller counts. */
uint64_t *names_bytes(struct names *t, bool is_down);
