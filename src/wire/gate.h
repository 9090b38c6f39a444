/*
 * gate.h - what a monitor and the gate's child for its sandbox say to each other.
 *
 * One message is one packet of a SOCK_SEQPACKET socket: the head, then a fixed struct. The monitor
 * keeps everything that has to outlive a child: the listeners, the rules, the table of names, the
 * records that nobody has taken yet. A child can be killed at any instant; the next one is started
 * with the same G_START and means the same by every address.
 *
 *   monitor              child
 *   START ───────────▷   CA: whom clients inside have to trust, if TLS ends at the gate for some
 *                        UP: it serves
 *   RULES ───────────▷   RULED: they hold now, for open connections too; or why the old ones stay
 *                   ◁──  RECORD: one connection, when it is decided and when it is closed
 *   CREDIT ──────────▷   (so many more records may be sent; without credit all are denied)
 *                   ◁──  ASK: a connection is held, or a request of one
 *                   ◁──  UNASK: nobody waits for the answer any more
 *   ANSWER ──────────▷   (the connection goes on or is closed, with all that wait for the same name
 *                        and port; a request is one question of its own)
 *
 * A denied connection is told of before its client can see that it was: the end of a command then
 * finds the record in the socket. When the monitor has no more to say (it shuts its writing side
 * first), the child closes what is open, tells of that, and ends.
 *
 * What a child says comes from a program that parses hostile bytes: gate_check() first. Text in a
 * record is printable ASCII, or it would not have become a name; others escape it all the same.
 */
#pragma once

#include "base/base.h"
#include "base/limits.h"
#include "wire/marks.h"

#define GATE_NAME_SIZE 254 /* of a host, lower case, no trailing dot; with its NUL */
#define GATE_ALPN_SIZE 32
#define GATE_METHOD_SIZE 16
#define GATE_PATH_SIZE 512   /* of a request; longer ones are cut, and say so */
#define GATE_QUERY_SIZE 1024 /* of a question; longer ones are cut, with a hash of the whole */
#define GATE_HASH_SIZE 72    /* SHA-256 in hex, with its NUL */
#define GATE_RULE_SIZE 288   /* the rule that decided, as written: "allow: *.example.org:443" */
#define GATE_RULES_MAX SPEC_BYTES_MAX /* bytes of a rules document */
#define GATE_CREDIT 256               /* records that one child may have under way */
#define GATE_SECRET_SIZE 72           /* the name of one; it is bounded in spec/bind.h */
#define GATE_ID_SIZE 40
#define GATE_KEY_SIZE 32
#define GATE_SEED_SIZE 32
#define GATE_PEM_SIZE 1024

enum gate_type {
	/* the monitor */
	G_START,  /* struct gate_start; descriptors: enum gate_fd, all of them */
	G_RULES,  /* struct gate_rules; descriptor: the document */
	G_CREDIT, /* struct gate_credit */
	G_ANSWER, /* struct gate_answer */
	/* the child */
	G_UP,     /* it serves by the rules of START; those that are no rules: RULED, and it ends */
	G_CA,     /* struct gate_ca; before G_UP, or before the G_RULED of rules that need it */
	G_RULED,  /* struct gate_ruled */
	G_RECORD, /* struct gate_record */
	G_ASK,    /* struct gate_ask */
	G_UNASK,  /* struct gate_unask; its number does not come again */
	/* either */
	G_KEY,   /* struct gate_key, of any bytes, instead of START: answered by the same with the
	            public key that secrets are sealed to (wire/seal.h) */
	G_MARKS, /* struct gate_marks of wire/marks.h, one for each secret, with is_first even when
	            there is none any more: how what is written inside is looked at */
	G_LOOK, /* struct gate_look, instead of START; descriptor: a document with secrets. Answered
	           by their MARKS, made with that key, and UP */
	G_TYPES
};

struct gate_head {
	uint32_t type, len; /* len: of what follows */
};

/* Descriptors of a G_START, in this order. The sockets were made inside, before any command; those
 * of IPv6 may be such as nothing ever comes to. They do not block. */
enum gate_fd {
	GATE_TCP4, /* listens; every TCP connection that is not to true loopback comes here, and
	              getsockname(2) of it is where the client wanted to go */
	GATE_TCP6,
	GATE_UDP4, /* DNS to whatever address, which IP_PKTINFO tells; answered from that one */
	GATE_UDP6,
	GATE_NAMES, /* memfd: gate/names.h; the child writes it, the monitor only keeps it */
	GATE_RULES, /* memfd, sealed: the rules document */
	GATE_FDS
};

/* The rules document is JSON, UTF-8, at most GATE_RULES_MAX bytes:
 *   {"net": {canonical net of the spec, presets and sets expanded},
 *    "grant": ["127.0.0.0/8", ...],  special-purpose ranges that the operator lets names resolve to
 *    "proxy": "http://host:port" | "socks5://host:port",  absent: none; operator only
 *    "mocks": {"file of a mock": "its text"},  one for every file that net.mock names
 *    "creds": [{"name", "tenant", "bind", "sealed", "placeholder", "until_ms"}],  spec/bind.h
 *    "canaries": {"name": "value"},  what may not be in anything that leaves (wire/canary.h)
 *    "ask_ms": 300000}                how long a connection is held
 * It is written by the daemon, carried by the monitor, read by the child. */
struct gate_start {
	char id[GATE_ID_SIZE]; /* of the sandbox; opaque */
	uint32_t generation;   /* of the rules */
	uint32_t credit;
	/* Random, made once by the monitor and the same in every START: the key of the sandbox's CA
	 * is made from it, so that the next child has the same one. Nothing outside of this sandbox
	 * trusts that CA. */
	uint8_t seed[GATE_SEED_SIZE];
};

/* The certificate of the CA as a file has it; the key stays in the child. */
struct gate_ca {
	char pem[GATE_PEM_SIZE];
	uint32_t hash; /* of its subject: OpenSSL looks for a file of that name */
	uint32_t zero;
};

struct gate_key {
	uint8_t key[GATE_KEY_SIZE];
};

struct gate_look {
	uint8_t key[MARKS_KEY];
};

struct gate_rules {
	uint32_t generation, zero;
};

struct gate_ruled {
	uint32_t generation;
	uint32_t is_refused; /* the old ones stay */
	uint32_t closed;     /* open connections that the new ones do not allow */
	uint32_t zero;
	char reason[240];
};

/* One G_RECORD takes one credit. Without credit new connections are denied; the ends of those that
 * are open already are told when there is credit again, or when the child ends. */
struct gate_credit {
	uint32_t n, zero;
};

struct gate_answer {
	uint64_t ask;
	uint32_t is_allowed, zero;
};

enum gate_decision { GATE_ALLOW, GATE_DENY, GATE_ASKED_DENY, GATE_ASKED_ALLOW, GATE_DECISIONS };

/* Why a connection was denied, or how it came to its end. The words of the API: gate_reason_name()
 */
enum gate_reason {
	GATE_NONE,          /* allowed by the rule */
	GATE_NO_RULE,       /* nothing allows it */
	GATE_RULE,          /* a deny rule */
	GATE_LITERAL,       /* an address that no name was given and no cidr rule covers */
	GATE_NAME_MISMATCH, /* SNI or Host is another name than was looked up */
	GATE_NO_SNI,        /* TLS without a name */
	GATE_PROTOCOL,    /* the first bytes are of a protocol that the rule does not allow there */
	GATE_SPECIAL,     /* resolves to special-purpose addresses only */
	GATE_METADATA,    /* of a cloud: never */
	GATE_UNRESOLVED,  /* no address, or no resolver */
	GATE_UNREACHABLE, /* nobody answers there */
	GATE_BUDGET,      /* rate, connections or bytes */
	GATE_SPOOL,       /* nobody takes the records */
	GATE_ASK_TIMEOUT,
	GATE_ASK_DENIED,
	GATE_ASK_FULL,   /* too many are held */
	GATE_RELOADED,   /* closed by new rules */
	GATE_NAME_BAD,   /* not a name */
	GATE_HTTP_RULE,  /* method or path */
	GATE_HTTP_BAD,   /* an ambiguous or malformed request */
	GATE_TLS,        /* a handshake that failed, on either side */
	GATE_SILENT,     /* the client sent nothing in time */
	GATE_OFFLINE,    /* the rules let only the package cache answer, and it has no answer */
	GATE_CREDENTIAL, /* for a host with a bound secret: another credential than that */
	GATE_GIT,        /* a push to a ref that the bound secret is not for */
	GATE_REFLECTED,  /* an answer had a secret in it, which was masked */
	GATE_CANARY,     /* it carried a canary */
	GATE_TOKEN,      /* the token that would go with it cannot be had */
	GATE_REASONS
};

enum gate_proto {
	GATE_UNKNOWN,
	GATE_PROTO_TLS,
	GATE_PROTO_HTTP,
	GATE_PROTO_SSH,
	GATE_PROTO_TCP,
	GATE_PROTO_DNS,
	GATE_PROTOS
};

enum gate_kind {
	GATE_OPENED,  /* allowed and connected; a GATE_CLOSED with the same seq follows, unless the
	                 child dies */
	GATE_CLOSED,  /* final: bytes and time are known. A denied connection has only this one */
	GATE_LOOKUP,  /* a name that was asked for and denied; many alike are one record */
	GATE_REQUEST, /* of a terminated connection: method, path, status */
	GATE_USE, /* a secret is about to go with a request, of which a GATE_REQUEST with the same
	             numbers follows, unless the child dies */
	GATE_KINDS
};

/* What a request carries besides its path, as far as the child has looked at it. */
struct gate_content {
	uint64_t body_bytes;             /* of the body, that were hashed */
	char query_hash[GATE_HASH_SIZE]; /* SHA-256 of the query as written; "": there is none */
	char body_hash[GATE_HASH_SIZE];  /* of these bytes; "": the body was not looked at */
	uint8_t is_partial;              /* more bytes follow that were not looked at */
	uint8_t is_stream;               /* a WebSocket: what is said there is not looked at */
	uint8_t zero[6];
};

/* A record; `seq` counts the connections of a sandbox and survives children. */
struct gate_record {
	uint64_t seq;
	uint64_t request; /* GATE_REQUEST, GATE_USE: which of the connection, from 1 on; else 0 */
	uint64_t ask;     /* the same: of the question that it waited for; 0: none */
	int64_t unix_ms;  /* when the connection came */
	uint64_t bytes_up, bytes_down, ms;
	uint32_t kind, decision, reason, proto;
	uint32_t generation;     /* of the rules that decided */
	uint16_t port, src_port; /* as the client sees them */
	uint8_t is_v6, is_terminated;
	uint8_t close_by; /* 0 open, 1 client, 2 server, 3 gate */
	uint8_t cache;    /* GATE_REQUEST: enum cache_word of wire/cache.h */
	uint8_t dst[16];  /* the address that the client used; an IPv4 one in the first four */
	uint8_t real[16]; /* the address that was dialled; zero: none */
	uint32_t status;  /* of a request */
	uint32_t count; /* GATE_LOOKUP, and denials by GATE_BUDGET and GATE_SPOOL: how many alike */
	char name[GATE_NAME_SIZE];
	char sni[GATE_NAME_SIZE];
	char alpn[GATE_ALPN_SIZE];
	char method[GATE_METHOD_SIZE];
	char path[GATE_PATH_SIZE];
	char rule[GATE_RULE_SIZE];     /* "" when no rule decided */
	char secret[GATE_SECRET_SIZE]; /* GATE_REQUEST: the secret that went with it; GATE_CANARY:
	                                  which */
	struct gate_content content;   /* GATE_REQUEST, GATE_USE */
};

enum gate_ask_kind {
	GATE_ASK_CONNECT, /* a connection; nothing but name, port and rule */
	GATE_ASK_REQUEST, /* a request that a rule of http asks for */
	GATE_ASK_SECRET,  /* that a secret would go with */
	GATE_ASK_PUSH,    /* git: to refs outside of those that the secret is for */
	GATE_ASK_KINDS
};

#define GATE_REFS_SIZE 1024

struct gate_ask {
	uint64_t ask, seq;
	uint32_t timeout_ms;
	uint16_t port;
	uint8_t kind;     /* enum gate_ask_kind */
	uint8_t is_first; /* SECRET: it is not asked again in this sandbox */
	char name[GATE_NAME_SIZE];
	char rule[GATE_RULE_SIZE];
	char method[GATE_METHOD_SIZE];
	char path[GATE_PATH_SIZE];     /* longer ones are cut, and nobody asks the same then */
	char query[GATE_QUERY_SIZE];   /* as written; REQUEST, SECRET unless is_first */
	char secret[GATE_SECRET_SIZE]; /* SECRET, PUSH */
	char refs[GATE_REFS_SIZE];     /* PUSH: with a blank between them */
	struct gate_content content;
};

struct gate_unask {
	uint64_t ask;
};

struct gate_packet {
	struct gate_head head;
	union {
		struct gate_start start;
		struct gate_key key;
		struct gate_rules rules;
		struct gate_ruled ruled;
		struct gate_credit credit;
		struct gate_answer answer;
		struct gate_ca ca;
		struct gate_marks marks;
		struct gate_look look;
		struct gate_record record;
		struct gate_ask ask;
		struct gate_unask unask;
	};
};

/* A packet of `n` bytes that came with `n_fds` descriptors: type, length, ranges, and every text
 * ends with a NUL and is printable ASCII. */
bool gate_check(const struct gate_packet *p, size_t n, size_t n_fds);
size_t gate_size(const struct gate_packet *p); /* of the whole packet, by its type */
void gate_plain(char *text);                   /* what may not be in a text becomes '?' */

const char *gate_reason_name(enum gate_reason r);     /* "no_rule", "name_mismatch", ... */
const char *gate_decision_name(enum gate_decision d); /* "allow", "deny", "ask_deny", "ask_allow" */
const char *gate_proto_name(enum gate_proto p); /* "tls", "http", "ssh", "tcp", "dns", "unknown" */
