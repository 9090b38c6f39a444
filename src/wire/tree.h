/*
 * tree.h - what the daemon and a tree worker say to each other about files.
 *
 * One SOCK_SEQPACKET connection, one request at a time; numbers in host order, because both ends
 * are on one machine. Every packet is a struct tree_head, then the struct of its type if it has
 * one, then `len` bytes; it has at most TREE_PACKET_MAX bytes in all.
 *
 *   requester                                    worker
 *   REQUEST request, path, match, body…    ──▷
 *   BODY    more of the body …             ──▷            until a packet with TREE_LAST
 *                                          ◁──   ANSWER  answer, bytes…
 *                                          ◁──   DATA    bytes …
 *                                          ◁──   END     answer       unless ANSWER had TREE_LAST
 *   CANCEL                                 ──▷            whenever; the answer still ends
 *
 * The next request follows the end of the answer. An answer may end before all of the body was
 * taken; the requester then stops sending it, and BODY or CANCEL of an old request is ignored.
 * With TREE_FD a descriptor travels with the REQUEST and belongs to the worker from then on (which
 * makes it non-blocking): verbs that have a body read it from there, to its end; the others write
 * the bytes of their answer to it instead of sending DATA, after the ANSWER.
 *
 * An answer whose code is not TREE_OK holds one JSON object, the error as the API shows it
 * (RFC 9457 with `code`). When a stream breaks after its ANSWER, the END says so: what was sent
 * is then not whole. All text comes finished from the worker; the daemon carries it.
 *
 * Paths are bytes without NUL. A path is taken from the root of the worker, with or without a
 * leading '/'. In JSON a name that is not UTF-8 appears twice: `path` with U+FFFD for what cannot
 * be shown, and `path_base64` with the bytes; a request may use `path_base64` instead of `path`.
 * So do `text` and `diff`.
 *
 * For verbs whose names are in the body, `path` is the directory that names without a leading '/'
 * are taken from.
 */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "wire/code.h"
#include "wire/span.h"

#define TREE_PACKET_MAX (64u << 10)
#define TREE_UNKNOWN UINT64_MAX /* a size nobody knows yet */
#define TREE_HASH_TEXT 65       /* SHA-256 in hex, NUL-terminated */
/* Names that begin so are a worker's own, for the moment until it is done: no point has them, and
 * no undo takes them away. */
#define TREE_TEMP_PREFIX ".caisson-tree."

enum tree_type { TREE_REQUEST, TREE_BODY, TREE_CANCEL, TREE_ANSWER, TREE_DATA, TREE_END };
enum { TREE_TYPES = TREE_END + 1 };

/* What each takes from struct tree_request beside `path`, and its body → what it answers. */
enum tree_verb {
	TREE_STAT,    /* HASH, DETAIL → {path,type,bytes,mode,mtime_ms,uid,gid,target?,hash?,
	               * attributes?,behind?} */
	TREE_LIST,    /* depth, max, HIDDEN, DETAIL → {entries:[stat…],truncated,unreadable} */
	TREE_READ,    /* from, count: a range of bytes → RAW */
	TREE_LINES,   /* from, count: lines, the first is 1; max: bytes shown of one line →
	               * {path,text|base64,encoding,hash,first,lines,total_lines,next,bytes,eol,bom,
	               * cut} */
	TREE_WRITE,   /* mode, match, ONLY_NEW; raw bytes → {path,hash,bytes,created} */
	TREE_EDIT,    /* match; {edits|insert|unified} → {path,hash,bytes,replaced,match,diff} */
	TREE_DELETE,  /* match, RECURSIVE → {path,deleted} */
	TREE_MOVE,    /* {from,to,overwrite?} → {from,to} */
	TREE_COPY,    /* {from,to,overwrite?} → {from,to,files,bytes,skipped} */
	TREE_MKDIR,   /* {path,mode?} → {path,created} */
	TREE_BATCH,   /* ATOMIC; [{op,path,…}] → [{ok}|{error}], in the same order */
	TREE_PATCH,   /* a unified diff or *** Begin Patch → {format,files:[{path,status,…}]} */
	TREE_GREP,    /* {pattern,literal?,path?,glob?,ignore_case?,context?,max?,multiline?,
	               * ignored?} → {matches:[{path,line,col,text,cut?,before?,after?}],truncated,
	               * why,scanned,scanned_bytes,skipped} */
	TREE_GLOB,    /* {pattern,path?,max?,sort?,ignored?} → {paths,truncated} */
	TREE_WATCH,   /* RECURSIVE, time_ms → NDJSON {event,path?,dir?,why?}, until cancelled;
	               * a BODY packet meanwhile asks for {event:"settled"} */
	TREE_TAR_OUT, /* → TAR */
	TREE_TAR_IN,  /* a tar archive → {path,files,bytes} */
	TREE_IMAGE, /* OCI, OWNERS, path: the name of the image in a layout, or "", count: bytes at
	             * most, from: bytes that the disk keeps free; a tar of a root file system or
	             * of an OCI layout → {files,bytes,layers,digest,dropped,passwd?,settings?}, in
	             * the worker's root, which is empty; when it fails all is the asker's to remove
	             */
	TREE_PORTS, /* max → RAW, struct tree_listener after struct tree_listener */
	TREE_DIAL, /* from: a port, FD: one end of a stream → the ANSWER when it is connected; then
	            * bytes are carried between both until both have ended. A DATA of one byte:
	            * the far end has closed its side, in good order */
	TREE_MARK,  /* {prefix,set:{name:text}}: the attributes of a file whose names begin with the
	             * prefix, which begins with "user.", are these and no others → as STAT */
	TREE_UNZIP, /* {from}: a zip archive that lies there → as TAR_IN */
	TREE_VERBS
};

enum tree_flag {
	TREE_LAST = 1 << 0,      /* of a packet: the body or the answer ends with it */
	TREE_FD = 1 << 1,        /* of a request: a descriptor comes along */
	TREE_HIDDEN = 1 << 2,    /* also names that begin with a dot */
	TREE_RECURSIVE = 1 << 3, /* whole directories */
	TREE_ONLY_NEW = 1 << 4,  /* If-None-Match: * */
	TREE_HAS_MODE = 1 << 5,  /* `mode` counts; the worker masks it to 0777 */
	TREE_HAS_RANGE = 1 << 6, /* `from` and `count` count */
	TREE_ATOMIC = 1 << 7,    /* all or nothing */
	TREE_HASH = 1 << 8,      /* the hash is wanted where it costs a read */
	TREE_OCI = 1 << 9,       /* a layout, not a root file system */
	TREE_OWNERS = 1 << 10,   /* ids of an archive are those of its files; else all are ours */
	TREE_DETAIL = 1 << 11,   /* also attributes, and {type,mode} of what a link leads to */
	TREE_FLAGS = (1 << 12) - 1
};

/* The part of the API's closed list that a file verb can end with. */
enum tree_code {
	TREE_OK,
	TREE_INVALID,
	TREE_NOT_FOUND,
	TREE_EXISTS,
	TREE_STALE,
	TREE_IS_DIRECTORY,
	TREE_NOT_DIRECTORY,
	TREE_PERMISSION_DENIED,
	TREE_NOT_TEXT,
	TREE_TOO_LARGE,
	TREE_NO_MATCH,
	TREE_AMBIGUOUS_MATCH,
	TREE_CONFLICT,
	TREE_BUSY,
	TREE_QUOTA,
	TREE_EXPIRED, /* cancelled, or the requester's time is over */
	TREE_BACKEND_ERROR,
	TREE_CODES
};

/* What the bytes of an answer are. */
enum tree_content { TREE_JSON, TREE_NDJSON, TREE_RAW, TREE_TAR, TREE_CONTENTS };

struct tree_head {
	uint32_t type, flags, id, len; /* len: bytes after all structs */
};

struct tree_request {
	uint32_t verb, mode, depth, max;
	uint32_t time_ms; /* 0: the verb's own ceiling; more than that is cut to it */
	uint32_t path_len, match_len, unused;
	uint64_t from, count;
};

struct tree_answer {
	uint32_t code, content;
	uint32_t mode;        /* READ: of the file */
	uint32_t is_cut;      /* END: a ceiling ended the stream early */
	uint64_t size;        /* READ: of the whole file */
	uint64_t from, count; /* READ: the range that comes; count is TREE_UNKNOWN elsewhere */
	int64_t mtime_ns;     /* READ */
	char hash[TREE_HASH_TEXT + 7]; /* "" when it is not known (yet: the END may know it) */
};

/* Where somebody waits for connections inside. */
struct tree_listener {
	uint32_t port, is_v6;
	uint8_t address[16]; /* of IPv4 the first four */
};
#define TREE_LISTENERS_MAX 256

/* A packet taken apart; everything points into the packet. */
struct tree_packet {
	struct tree_head head;
	struct tree_request request; /* REQUEST; its numbers are in range */
	struct tree_answer answer;   /* ANSWER, END; code, content and hash are in range */
	struct span path, match, data;
};

/* Takes apart what came from the other end, refusing whatever does not fit exactly. */
int tree_packet_parse(const void *bytes, size_t n, struct tree_packet *out, struct err *e) MUST_USE;

/* The listener at `i`: false when there is none, or its numbers are out of range. */
bool tree_listener_at(struct span data, size_t i, struct tree_listener *out);

/* A request to be sent. */
struct tree_ask {
	uint32_t id, flags;
	struct tree_request request; /* path_len and match_len are filled in */
	struct span path, match;
	struct span body; /* all of it, or what is at hand */
	bool has_more;    /* the caller sends the rest of the body as BODY packets */
};

/* Makes its first packet in `buf` and returns the length; *taken bytes of the body found room in
 * it. When that is not all, the caller sends the rest as BODY packets. */
int tree_ask_build(const struct tree_ask *ask, void *buf, size_t *taken, struct err *e) MUST_USE;

/* Makes a BODY or DATA packet, or a CANCEL; returns its length. `n` fits: TREE_PIECE_MAX. */
#define TREE_PIECE_MAX (TREE_PACKET_MAX - sizeof(struct tree_head))
size_t tree_piece_build(struct tree_head head, const void *bytes, void *buf);

const char *tree_verb_name(enum tree_verb verb);
const char *tree_code_name(enum tree_code code);
int tree_code_status(enum tree_code code); /* of HTTP */
enum fail_code tree_code_fail(enum tree_code code);
const char *tree_content_type(enum tree_content content);
