/*
 * store.h - what the cache keeps, in a folder that nobody else writes.
 *
 *   blobs/SHA256  a file of a package, as it came; its name is its digest
 *   urls/ID       where it lies, which digest its index gave it, which blob that is
 *   meta/ID       an index page with what it claims about files
 *
 * ID is the digest of what is asked for. A file of urls and meta is [body][claims][json][footer]:
 * the footer has the lengths, and how often it was used; when last is the file's own time. The file
 * system is the truth: each file is made under another name, synced and renamed, so that a crash
 * leaves it whole or not at all, and what has another name is removed at the start. All of it is
 * read once, and then known.
 *
 * Of an index only what it claims is believed, and only about the digest of a file: which of two
 * digests counts is up to whoever asks (store_claim).
 */
#pragma once

#include "base/vec.h"
#include "spec/rules.h"
#include "wire/pkgmeta.h"

#define STORE_ID_SIZE 32
#define STORE_SHA_SIZE 32
#define STORE_KEY_SIZE 16
#define STORE_NAME_SIZE (2 * STORE_ID_SIZE + 1)
#define STORE_TABLE (1u << 16)
#define STORE_ENTRIES_MAX 200000
#define STORE_CLAIMS_MAX 2000000
#define STORE_CLAIMS_OF_ONE_MAX 200000
#define STORE_INDEX_MAX (64ul << 20)

enum store_folder { STORE_BLOBS, STORE_URLS, STORE_META, STORE_FOLDERS };

/* What one index says about one file. */
struct claim {
	struct claim *next; /* with the same place in the table */
	struct entry *by;
	uint8_t key[STORE_KEY_SIZE];
	struct digest digest;
};

struct entry {
	struct entry *next;          /* with the same place in the table */
	struct entry *older, *newer; /* by their last use */
	bool is_index;
	enum pkg_kind kind;
	uint8_t id[STORE_ID_SIZE];
	uint8_t sha256[STORE_SHA_SIZE]; /* of the blob; of an index and its claims */
	struct rules_addr real;         /* where it came from; port 0: not known (a proxy) */
	uint64_t bytes;                 /* of the body */
	uint64_t size;                  /* of what it takes, roughly */
	uint64_t hits;
	int64_t used_ms;
	char *url, *type;
	char *etag, *modified, *control; /* of an index; NULL: not said */
	char *host;                      /* that said it */
	uint16_t port;
	bool is_tls;
	struct claim *claims;
	size_t n_claims;
};

struct blob;

struct store {
	int fds[STORE_FOLDERS];
	uint64_t max, used;
	uint64_t promised; /* to what is on its way; whoever adds to it takes it back */
	struct entry *entries[STORE_TABLE];
	struct blob *blobs[STORE_TABLE];
	struct claim *claims[STORE_TABLE];
	struct entry *oldest, *newest;
	size_t n_entries, n_claims;
	uint64_t n_temps;
};

/* `dir_fd` is borrowed. Removes what a crash has left. */
int store_open(struct store *s, int dir_fd, uint64_t max, struct err *e) MUST_USE;
void store_done(struct store *s);

/* ---- what is there ---- */

void store_index_id(const char *url, const char *accept, uint8_t out[STORE_ID_SIZE]);
void store_file_id(const char *key, const struct digest *d, uint8_t out[STORE_ID_SIZE]);
struct entry *store_find(const struct store *s, const uint8_t id[STORE_ID_SIZE]);
/* The next claim about what lies there (weburl_key), after `last`; NULL: no more. */
const struct claim *store_claim(const struct store *s, const char *key, const struct claim *last);
/* Open for reading; the body begins at 0. -errno when it is not there: then the entry is gone. */
int store_read(struct store *s, struct entry *n);
void store_use(struct store *s, struct entry *n);
void store_drop(struct store *s, struct entry *n);

/* ---- what comes ---- */

struct temp {
	enum store_folder folder;
	int fd; /* -1: none */
	char name[32];
};

int temp_open(struct store *s, enum store_folder folder, struct temp *t); /* 0 or -errno */
void temp_drop(struct store *s, struct temp *t); /* removes it; fine when there is none */

/* Room for so many bytes more: drops what was not used for the longest time, so that the host keeps
 * a reserve and the cache its size. False: there is none. */
bool store_make_room(struct store *s, uint64_t bytes);

struct store_new {
	const uint8_t *id;
	enum pkg_kind kind;
	const char *url, *type;
	const char *etag, *modified, *control; /* NULL: not said */
	uint64_t bytes;
	struct rules_addr real;
};

/* The temp becomes the blob `sha256`, or is dropped when that is there. */
int store_add_file(struct store *s, struct temp *t, const struct store_new *n,
                   const uint8_t sha256[STORE_SHA_SIZE], struct err *e) MUST_USE;

struct store_claim {
	uint8_t key[STORE_KEY_SIZE];
	struct digest digest;
};
typedef VEC(struct store_claim) store_claims;

void store_claim_add(store_claims *l, const struct weburl *url, const struct digest *d);
/* The temp has the body; it becomes the index, with its claims, in place of the old one. */
int store_add_index(struct store *s, struct temp *t, const struct store_new *n,
                    const store_claims *claims, struct err *e) MUST_USE;

/* ---- for its operator ---- */

/* Removes what was not used since, then the oldest until all take no more than `max`. How many
 * bytes that freed. */
uint64_t store_gc(struct store *s, int64_t before_ms, uint64_t max);

/* Whether a file is what its name says. One piece of it a call: 1 when there is more, 0 when it is
 * good, -1 when it is not. */
struct check {
	const struct entry *entry;
	struct evp_md_ctx_st *hash;
	int fd;
	uint64_t at;
};
int check_step(struct store *s, struct check *c);
void check_done(struct check *c);

int64_t store_now_ms(void);
