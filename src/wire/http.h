/*
 * http.h - HTTP/1.1 (RFC 9112), both directions, strict.
 *
 * What two programs could read in two ways is refused: a proxy and its origin, or the daemon and
 * a browser, must never disagree about where a message ends. So lines end with CR LF and nothing
 * else, a length is said once, `chunked` is the only coding, and there are neither folded lines
 * nor, unless a relay asks for them, chunk extensions and trailers. Nothing is copied: a head is
 * spans into the caller's buffer, good as long as the buffer is. Nothing is kept between two calls
 * of a head parser, so that a prefix gives 0 or the error of the whole.
 *
 *     n = http_request_head(buf, len, &head);     0: read more; < 0: http_error_status(n)
 *     http_body_init(&body, &head, max);
 *     do {                                        with the bytes behind the head, and then more
 *             r = http_body_feed(&body, p, left, &piece);
 *             ...                                 take piece.data, then step over piece.consumed
 *     } while (r == HTTP_BODY_MORE);
 *
 * Sending is the reverse: http_print_*() into a struct str. Send only what was checked: a relay
 * prints the fields that it knows and writes framing, Host and Connection by itself.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

/* clang-format off */
#define HTTP_HEAD_MAX (16u << 10)  /* browsers and origins stay below 8 KiB; cookies are long */
#define HTTP_TARGET_MAX (8u << 10) /* RFC 9112, 3: at least 8000 */
#define HTTP_METHOD_MAX 32         /* the longest registered one has 17 */
#define HTTP_FIELDS_MAX 64         /* a browser sends about 20 */
#define HTTP_LENGTH_DIGITS_MAX 18  /* any such number fits 63 bits */
#define HTTP_CHUNK_DIGITS_MAX 15   /* the same, in base 16 */
#define HTTP_EXTENSION_MAX 256     /* bytes behind the size of a chunk */
#define HTTP_TRAILERS_MAX (8u << 10)
/* clang-format on */

/* What a parser refuses. http_error_status() says it to a client, http_error_text() to a person. */
enum http_error {
	HTTP_E_LINE = -1,
	HTTP_E_METHOD_LONG = -2,
	HTTP_E_TARGET = -3,
	HTTP_E_TARGET_LONG = -4,
	HTTP_E_FORM = -5,
	HTTP_E_VERSION = -6,
	HTTP_E_STATUS = -7,
	HTTP_E_NEWLINE = -8,
	HTTP_E_FOLD = -9,
	HTTP_E_NAME = -10,
	HTTP_E_VALUE = -11,
	HTTP_E_FIELDS = -12,
	HTTP_E_HEAD_LARGE = -13,
	HTTP_E_HOST = -14,
	HTTP_E_LENGTH = -15,
	HTTP_E_LENGTH_HUGE = -16,
	HTTP_E_CODING = -17,
	HTTP_E_FRAMING = -18,
	HTTP_E_CONNECTION = -19,
	HTTP_E_EXPECT = -20,
	HTTP_E_CHUNK = -21,
	HTTP_E_TRAILER = -22,
	HTTP_E_BODY_LARGE = -23,
	HTTP_E_CUT = -24,
	HTTP_E_LAST = HTTP_E_CUT
};

/* What a server answers; for an answer that a client or a relay refuses, that is 502. */
int http_error_status(int error);
const char *http_error_text(int error);

struct http_field {
	struct span name, value; /* the value without the white space around it */
};

enum http_form { HTTP_ORIGIN, HTTP_ABSOLUTE, HTTP_AUTHORITY, HTTP_ASTERISK };

enum http_body_kind {
	HTTP_NO_BODY,
	HTTP_LENGTH, /* `length` bytes, perhaps 0 */
	HTTP_CHUNKED,
	HTTP_UNTIL_CLOSE /* responses only */
};

/* Complete only when the parser returned > 0. */
struct http_head {
	struct span method, target; /* requests */
	struct span path;           /* the target from its path on; of http://a it is "/" */
	struct span host;           /* of an absolute target or a CONNECT, else of Host; without the
	                             * port; HTTP/1.0 may have none; IPv6 has its brackets */
	struct span reason;         /* responses */
	int status;                 /* responses */
	int minor;                  /* HTTP/1.minor */
	enum http_form form;
	enum http_body_kind body;
	uint64_t length; /* what Content-Length says, also of a body that is not sent (HEAD, 304) */
	uint16_t port;   /* 0: none said */
	bool has_length;
	bool keep_alive;           /* never in HTTP/1.0 */
	bool expect_continue;      /* the client waits for 100 before it sends its body */
	bool is_upgrade_websocket; /* asked for, or granted; ws_handshake() checks the rest */
	size_t n_fields;
	struct http_field fields[HTTP_FIELDS_MAX];
};

/* The bytes of the head, 0 when it is not whole yet, or an http_error. The request is one for a
 * server: its target is a path, or `*` for OPTIONS. */
int http_request_head(const char *buf, size_t len, struct http_head *out);
/* The same for a proxy: also absolute targets (http, https), and host:port for CONNECT. */
int http_proxy_head(const char *buf, size_t len, struct http_head *out);

/* A response means different things to different requests. */
enum http_asked { HTTP_ASKED_BODY, HTTP_ASKED_HEAD, HTTP_ASKED_CONNECT };

/* 1xx heads, except 101, are followed by another head. 101 to anything but a WebSocket is
 * refused. */
int http_response_head(const char *buf, size_t len, enum http_asked asked, struct http_head *out);

/* The value of the first field with that name, or NULL. */
const struct span *http_header(const struct http_head *h, const char *name);
/* For fields that mean nothing when there are two: Authorization, Origin ... */
size_t http_header_count(const struct http_head *h, const char *name);
/* Is the token an element of this comma-separated list (Connection, Upgrade)? */
bool http_list_has(struct span list, const char *token);
/* host or host:port of a Host field; the name is a DNS name, an IPv4 or a [IPv6] address. */
bool http_host_split(struct span text, struct span *host, uint16_t *port);

struct http_body {
	enum http_body_kind kind;
	uint64_t max;  /* payload bytes */
	uint64_t seen; /* payload bytes so far */
	uint64_t left; /* of the length or of this chunk */
	int step;
	int digits; /* of this chunk's size */
	int error;
	/* For a relay, which prints the chunks anew. Set after http_body_init(). */
	bool skips_extensions;
	int extension;        /* bytes of it */
	struct str *trailers; /* gets the fields behind the body, as they are; NULL: refused */
};

struct http_piece {
	struct span data; /* payload, inside the bytes given; may be empty */
	size_t consumed;
};

enum { HTTP_BODY_MORE, HTTP_BODY_DONE };

void http_body_init(struct http_body *b, const struct http_head *h, uint64_t max);
/* Takes bytes up to the end of one piece: HTTP_BODY_MORE, HTTP_BODY_DONE or an http_error. When
 * all was consumed and there is more to come, read; bytes that are left after the end belong to
 * the next message. Also to be called with no bytes: a body may be empty. */
int http_body_feed(struct http_body *b, const char *buf, size_t len, struct http_piece *out);
/* The fields that were collected in http_body.trailers: only `fields` are filled. 0 or an error. */
int http_trailers(const struct str *raw, struct http_head *out);
/* The peer has closed: HTTP_BODY_DONE, or HTTP_E_CUT. */
int http_body_eof(const struct http_body *b);

/* A head under construction. What cannot be said in a head (a line break in a value) is
 * remembered, and http_print_end() then takes all of it back. */
struct http_print {
	struct str *out;
	size_t from;
	const char *wrong;
};

struct http_print http_print_request(struct str *out, struct span method, struct span target);
struct http_print http_print_response(struct str *out, int status);
void http_print_field(struct http_print *p, struct span name, struct span value);
void http_print_text(struct http_print *p, const char *name, const char *value);
/* The only way to print Content-Length (HTTP_LENGTH) and Transfer-Encoding (HTTP_CHUNKED). */
void http_print_framing(struct http_print *p, enum http_body_kind kind, uint64_t length);
int http_print_end(struct http_print *p, struct err *e) MUST_USE;
/* For a relay: the field is not about this connection or how the message is framed. */
bool http_goes_on(const struct http_head *h, struct span name);

/* No bytes: prints nothing, since an empty chunk would end the body. */
void http_print_chunk(struct str *out, const void *bytes, size_t n);
void http_print_last_chunk(struct str *out);
struct http_print http_print_trailers(struct str *out); /* the last chunk with fields behind it */
const char *http_reason(int status);                    /* "" when we have no words */
