/*
 * book.h - the files of a ledger (wire/ledger.h), and the one who writes them.
 *
 * Records are added in memory, written together, synced together: who acknowledges what is the
 * caller's. What could not be written stays in memory and is written again, at the same place; what
 * could not be synced too, because after a failed fdatasync(2) the kernel may have forgotten it.
 *
 * Nothing is ever changed. What is left of a last line after a loss of power is put aside, and a
 * record says so; if more than that is wrong, the file stays as it is, a record says that, and the
 * next file begins. The same is told of records that a signed head knows and that are gone: numbers
 * go on behind the head, so that the gap stays visible.
 */
#pragma once

#include <jansson.h>

#include "wire/ledger_chain.h"
#include "wire/ledger_heads.h"
#include "wire/ledger_sign.h"

#define BOOK_TAIL_MAX (8u << 20)      /* not yet synced; who has more waits */
#define BOOK_FILE_BYTES (16ull << 20) /* then the next one begins */
#define BOOK_KEEP_BYTES (4ull << 30)  /* of all; the oldest go */

struct book_opts {
	int dir_fd;                      /* borrowed */
	uint64_t file_bytes, keep_bytes; /* 0: as above */
};

#define BOOK_LIVES 8

/* The last words of daemons that are on record, the latest first. */
struct book_src {
	char life[LEDGER_LIFE_SIZE]; /* "": nobody's */
	uint64_t num;
};

void book_src_note(struct book_src of[BOOK_LIVES], struct span src);           /* "LIFE-NUM" */
uint64_t book_src_num(const struct book_src of[BOOK_LIVES], const char *life); /* 0: none */

struct book {
	struct book_opts opts;
	int lock_fd, file_fd;
	struct ledger_key key;
	char id[LEDGER_ID_SIZE];
	uint64_t seen;     /* the last that is in a file */
	uint64_t seq;      /* of the last record */
	uint64_t sealed;   /* the last that is signed */
	uint64_t file_seq; /* of the first of this file */
	char hash[LEDGER_HASH_SIZE];
	struct ledger_heads heads;
	struct book_src src[BOOK_LIVES];
	struct str tail;          /* bytes of the file from `synced` on */
	uint64_t synced, written; /* sizes of the file */
	struct str head; /* the last seal, as a line; "" once the file of that name says it */
	uint64_t head_seq;
	/* of opening */
	bool is_damaged;                  /* the last file was */
	struct ledger_finding head_fault; /* between the signed head and the records */
};

/* Makes what is missing. e->sys is EBUSY when another writer has it. */
int book_open(struct book *b, const struct book_opts *o, int64_t now_ms, struct err *e) MUST_USE;
/* Signs, writes and syncs as well as it can. */
void book_close(struct book *b, int64_t now_ms);

bool book_has_room(const struct book *b);
/* In memory. -1: the event is none that can be recorded. */
int book_add(struct book *b, const struct ledger_event *ev, int64_t now_ms, struct err *e) MUST_USE;
int book_write(struct book *b, struct err *e) MUST_USE;
int book_sync(struct book *b, struct err *e) MUST_USE; /* what was written */
/* A signed record, when there is something to sign; and the next file, when this one is long. */
int book_seal(struct book *b, int64_t now_ms, struct err *e) MUST_USE;

/* The file that has record `seq`, or the first one behind it, to read; *next is the first record
 * of the file after it, 0: there is none yet. */
int book_file(const struct book *b, uint64_t seq, uint64_t *first, uint64_t *next,
              struct err *e) MUST_USE;

/* ---- between the files of this folder ---- */
int book_say(struct book *b, enum ledger_kind kind, json_t *data /* taken */, int64_t now_ms,
             struct err *e) MUST_USE;
int book_seal_kind(struct book *b, enum ledger_kind kind, int64_t now_ms, struct err *e) MUST_USE;
int book_begin_file(struct book *b, int64_t now_ms, struct err *e) MUST_USE;
