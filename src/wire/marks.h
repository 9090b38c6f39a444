/*
 * marks.h - secrets that somebody looks for without knowing them. Pure.
 *
 * Who has a value makes marks of it: of every form by which it would be known (wire/spelling.h) its
 * length, a keyed sum (HMAC-SHA256, cut to 16 bytes), and 16
 * bits of a keyed sum of its first 8 bytes, by which most of a text is passed over. Who has the
 * marks and the key can tell whether bytes are that value, and nothing else about it but by
 * guessing: a value that can be guessed is found so.
 *
 * What matches becomes stars, byte for byte. A match may lie across two pieces: what may be the
 * beginning of one is held back, and so are the last 7 characters, of which nobody can say. Whoever
 * feeds lets go of that when nothing more comes for a moment (MARKS_TAIL_MS, MARKS_HELD_MS); a
 * match that is completed afterwards is still told of, and what was not passed on of it is masked.
 */
#pragma once

#include "base/str.h"
#include "wire/span.h"

#define MARKS_KEY 32
#define MARKS_SUM 16
#define MARKS_HEAD 8       /* bytes that every mark begins with: the shortest value */
#define MARKS_EACH 16      /* forms of one secret */
#define MARKS_MAX 512      /* 32 secrets */
#define MARK_LEN_MAX 12288 /* the longest value, escaped */
#define MARK_NAME_SIZE 72
#define MARKS_NAMES 32
#define MARKS_TAIL_MS 5
#define MARKS_HELD_MS 200

/* As it travels. */
struct mark {
	uint8_t sum[MARKS_SUM];
	uint32_t len;
	uint16_t head; /* of the first MARKS_HEAD bytes */
	uint16_t name;
};

struct marks {
	uint8_t key[MARKS_KEY];
	uint32_t n, n_names;
	struct mark at[MARKS_MAX];
	char names[MARKS_NAMES][MARK_NAME_SIZE]; /* of the secrets */
};

/* Those of one secret, as the gate tells of them one by one. */
struct gate_marks {
	uint8_t key[MARKS_KEY];
	uint32_t is_first; /* what was told before does not count any more */
	uint32_t n;        /* 0: there is none, with is_first */
	char name[MARK_NAME_SIZE];
	struct mark at[MARKS_EACH];
};

void marks_begin(struct marks *m, const uint8_t key[MARKS_KEY]);
/* False: there is no room. All forms of a secret one after the other. */
bool marks_add(struct marks *m, const char *name, struct span form) MUST_USE;
bool marks_check(const struct gate_marks *m); /* came from outside */
/* One of them for the way, and those of one that has come, which were checked. */
void marks_tell(const struct marks *m, uint32_t name, struct gate_marks *out);
void marks_take(struct marks *m, const struct gate_marks *from);

/* ---- looking ---- */

struct marker; /* marks, and a table by which to look */
struct marker *marker_new(const struct marks *m);
void marker_free(struct marker *k); /* NULL is fine */

/* One text, as it comes in pieces; begins as { 0 }. */
struct masking {
	struct str held;  /* from the first byte that a match may begin with */
	size_t passed;    /* of these have gone on */
	bool is_likely;   /* a match may have begun in what is held */
	struct str read;  /* the characters of it (wire/spelling.h), and where they begin */
	struct str from;  /* uint32_t */
	uint64_t hits;    /* so far */
	const char *name; /* of the last, in the marker */
};
void masking_done(struct masking *x);
/* What can go on is added to `out`, whose max is the caller's. Without a marker all of it. */
void masking_feed(struct masking *x, const struct marker *k, struct span in, struct str *out);
/* All of it can: there is no more, or none for now. */
void masking_flush(struct masking *x, const struct marker *k, struct str *out);
/* For how long what is held may be; 0: nothing is. */
uint32_t masking_wait_ms(const struct masking *x);
