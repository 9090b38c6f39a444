/*
 * known.h - what was looked up in the layers.
 *
 * Sealed trees never change, so what was once read of them holds as long as they are mounted: an
 * undo looks at the same names twice, and what it wrote back is compared with the layers again and
 * again. Names that the layers do not have are known as well.
 */
#pragma once

#include "vault/manifest.h"

struct known {
	struct known *next;
	struct span path;  /* in the layers */
	struct entry seen; /* without a path; ENTRY_TYPES: there is nothing */
	bool is_looked;    /* as stat(2) says */
	bool is_read;      /* target and xattrs too */
	bool is_hashed;
};

#define KNOWN_SLOTS 4096
#define KNOWN_MAX 20000 /* 10 MB; the next request begins anew */

struct known_table {
	struct arena arena;
	struct known *slots[KNOWN_SLOTS];
	size_t n;
};

/* Made when it is not there: then nothing of it is known. */
struct known *known_at(struct known_table *t, struct span path);
struct span known_keep(struct known_table *t, struct span s); /* a copy that lives as long */
void known_trim(struct known_table *t);                       /* between two requests */
void known_forget(struct known_table *t);                     /* they are not the layers any more */
