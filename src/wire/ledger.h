/*
 * ledger.h - what crossed the wall, as lines that nobody can change unseen.
 *
 * A record is one line of JSON in ASCII, its members in this order, those without a value left out:
 *
 *   {"seq":7,"ts":1763259999123,"kind":"exec.started","tenant":"uid:0","sandbox":"sb_…",
 *    "link":{"seq":2,"prev":HASH},"workspace":"ws_…","process":"px_…","actor":"uid:0",
 *    "src":"9f86d081-41","data":{…},"prev":HASH,"hash":HASH}
 *
 * `hash` is the SHA-256 of all bytes of the line before `,"hash":`; `prev` is the hash of the line
 * before, and zeros in the first. `link` is the same for the records of one sandbox, so that they
 * can be shown alone. `src` is who said it and the how manieth word of his it is: what is said
 * twice is recorded once. Nothing in a line can end it, or move a terminal: what is not printable
 * ASCII is escaped.
 *
 * Files of a ledger, in one folder:
 *   00000000000000000001.jsonl  a segment: records, named after its first
 *   head                        the last signed record, as a line
 *   key.pub                     Ed25519, PEM: whoever has it can verify all of the above
 *   key                         the other half, nobody's but the writer's
 *   lock                        held by the writer
 *   00000000000000000001.torn   what a loss of power left of a last line
 *
 * ledger_chain.h checks lines, ledger_sign.h signs.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

#define LEDGER_HASH_SIZE 65 /* hex and NUL */
#define LEDGER_LINE_MAX (48u << 10)
#define LEDGER_DATA_MAX (32u << 10)
#define LEDGER_NAME_SIZE 96 /* of an id, a tenant, an actor */
#define LEDGER_KIND_SIZE 32
#define LEDGER_ZERO "0000000000000000000000000000000000000000000000000000000000000000"

enum ledger_kind {
	/* the ledger's own */
	LEDGER_SEGMENT,    /* a file begins; signed */
	LEDGER_CHECKPOINT, /* signed */
	LEDGER_HEADS,      /* of sandboxes, as a file begins */
	LEDGER_SEALED,     /* a torn line was found and taken out */
	LEDGER_DAMAGED,    /* more than that was wrong with the last file */
	LEDGER_PRUNED,     /* old files are removed */
	LEDGER_SUM,        /* so many of one kind and one sandbox, in one second */
	LEDGER_LOST,       /* so many could not be said */
	/* the daemon's */
	LEDGER_DAEMON_STARTED,
	LEDGER_DAEMON_RECOVERED,
	LEDGER_DAEMON_STOPPED,
	LEDGER_SANDBOX_CREATED,
	LEDGER_SANDBOX_STATE,
	LEDGER_SANDBOX_GONE,
	LEDGER_EXEC_STARTED,
	LEDGER_EXEC_ENDED,
	LEDGER_EXEC_OUTPUT,
	LEDGER_PROCESS_STARTED, /* inside, by a command */
	LEDGER_NET_CONNECTION,
	LEDGER_NET_REQUEST,
	LEDGER_NET_LOOKUP,
	LEDGER_POLICY_CHANGED,
	LEDGER_WORKSPACE_CREATED,
	LEDGER_WORKSPACE_FORKED,
	LEDGER_WORKSPACE_CHANGED, /* a point of its history */
	LEDGER_WORKSPACE_FILES,   /* which files that changed */
	LEDGER_WORKSPACE_MOVED,   /* undo, redo, restore */
	LEDGER_WORKSPACE_REMOVED,
	LEDGER_GIT_COMMITTED,
	LEDGER_GIT_MERGED,
	LEDGER_GIT_PUSHED,
	LEDGER_GIT_PROPOSED, /* a pull request was opened */
	LEDGER_APPLIED,
	LEDGER_EXPORTED,
	LEDGER_COLLECTED, /* files that a run left went to its client */
	LEDGER_SECRET_USED,
	LEDGER_SECRET_CHANGED,
	LEDGER_SECRET_CANARY, /* one was found on its way out */
	LEDGER_SECRET_MASKED, /* a value was found in what a command wrote, or in a diff */
	LEDGER_APPROVAL_ASKED,
	LEDGER_APPROVAL_DECIDED,
	LEDGER_IMAGE_ADDED,
	LEDGER_IMAGE_REMOVED,
	LEDGER_REPO_ADDED,
	LEDGER_REPO_REFRESHED,
	LEDGER_REPO_REMOVED,
	LEDGER_TOKEN_MADE,
	LEDGER_TOKEN_REVOKED,
	LEDGER_PORT_OPENED, /* into a sandbox */
	LEDGER_PORT_CLOSED,
	LEDGER_KINDS
};

const char *ledger_kind_name(enum ledger_kind kind); /* "exec.started" */
/* LEDGER_KINDS: there is none of that name. */
enum ledger_kind ledger_kind_of(struct span name);
bool ledger_is_own(enum ledger_kind kind);    /* only the ledger itself says it */
bool ledger_is_synced(enum ledger_kind kind); /* on disk before it is acknowledged */

/* What is to be recorded; a text is "" or NULL where there is none. */
struct ledger_event {
	enum ledger_kind kind;
	const char *tenant, *sandbox, *workspace, *process, *actor, *src;
	const char *data; /* a JSON object in printable ASCII, without spaces around it */
};

/* Where. */
struct ledger_place {
	uint64_t seq;
	int64_t ts_ms;
	const char *prev;
	uint64_t link_seq; /* of a sandbox; 0: there is no link */
	const char *link_prev;
};

/* False: a text has bytes that no line may have, or is too long; nothing was added. With its
 * newline. */
bool ledger_print(struct str *out, const struct ledger_event *ev, const struct ledger_place *at,
                  char hash[LEDGER_HASH_SIZE]) MUST_USE;

/* A line, taken apart; spans lie in it. What it does not have is at NULL. */
struct ledger_line {
	uint64_t seq, link_seq;
	int64_t ts_ms;
	struct span kind, tenant, sandbox, workspace, process, actor, src, data;
	struct span link_prev, prev, hash;
	size_t hashed; /* this many bytes are */
};

/* `line` is without its newline. -1: it is none that ledger_print() makes. Whether the hash is
 * right is another question. */
int ledger_parse(struct span line, struct ledger_line *out) MUST_USE;
bool ledger_hash_holds(struct span line, const struct ledger_line *l);

/* "00000000000000000001.jsonl" */
#define LEDGER_FILE_SIZE 32
void ledger_file_name(uint64_t first_seq, char out[LEDGER_FILE_SIZE]);
uint64_t ledger_file_seq(const char *name); /* 0: not a segment's name */

/* ---- between the daemon and the process that writes --------------------------------------- */

/* SOCK_SEQPACKET. The daemon: LEDGER_HELLO, then records, numbered without a hole from 1 on.
 * The writer: LEDGER_ACK whenever that changes. After a new connection the daemon says again what
 * was not acknowledged, with the same numbers. Who reads has a socket of its own, and says no
 * hello. */
#define LEDGER_VERSION 1
#define LEDGER_PACKET_MAX (40u << 10)
#define LEDGER_LIFE_SIZE 16

enum ledger_packet_type {
	LEDGER_HELLO = 1, /* to the writer */
	LEDGER_APPEND,
	LEDGER_READ,
	LEDGER_ACK, /* from it */
	LEDGER_FILE,
	LEDGER_ATTEST, /* to it */
};

struct ledger_hello {
	uint32_t type, version;
	char life[LEDGER_LIFE_SIZE]; /* of this daemon: [0-9a-f] */
};

struct ledger_append {
	uint32_t type, kind;
	uint64_t num;
	char tenant[LEDGER_NAME_SIZE], sandbox[LEDGER_NAME_SIZE], workspace[LEDGER_NAME_SIZE],
	    process[LEDGER_NAME_SIZE], actor[LEDGER_NAME_SIZE];
	char data[]; /* JSON, with its NUL as the last byte of the packet */
};

struct ledger_ack {
	uint32_t type, is_full;   /* nothing can be written now: try later */
	uint64_t written, synced; /* numbers: all up to these survive our death, that of the host */
	uint64_t seq;             /* of the last record that can be read */
	char life[LEDGER_LIFE_SIZE]; /* whose numbers these are */
};

/* Which file has this record, or those behind it? */
struct ledger_read {
	uint32_t type, tag;
	uint64_t seq;
};

/* What was promoted of a workspace, signed (wire/attest.h, wire/dsse.h)? The answer is a
 * ledger_file: the envelope, and `first` is the record of the promotion; without a descriptor
 * `first` is 0 when there is no such promotion, and 1 when it could not be made. */
struct ledger_attest {
	uint32_t type, tag;
	uint64_t record; /* 0: the last */
	char tenant[LEDGER_NAME_SIZE], workspace[LEDGER_NAME_SIZE];
};

/* With a descriptor of it, to read; none came: it could not be opened. */
struct ledger_file {
	uint32_t type, tag;
	uint64_t first,
	    next; /* records that it and the file after it begin with; 0: there is none */
};

union ledger_packet {
	uint32_t type;
	struct ledger_hello hello;
	struct ledger_append append;
	struct ledger_read read;
	struct ledger_attest attest;
	struct ledger_ack ack;
	struct ledger_file file;
	char bytes[LEDGER_PACKET_MAX];
};

bool ledger_hello_check(const struct ledger_hello *h, size_t n);
bool ledger_append_check(const struct ledger_append *a,
                         size_t n); /* its form; data may be no JSON */
bool ledger_read_check(const struct ledger_read *r, size_t n);
bool ledger_attest_check(const struct ledger_attest *a, size_t n);
bool ledger_ack_check(const struct ledger_ack *a, size_t n);
bool ledger_file_check(const struct ledger_file *f, size_t n, size_t n_fds);
