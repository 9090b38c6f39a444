/*
 * ws.h - WebSocket frames (RFC 6455), both roles, strict, without extensions.
 *
 * A reader takes bytes in pieces of any size and gives out events; it keeps a frame's head, the
 * payload of one control frame and numbers, never a message. Refusing a frame is answering with
 * a close code: every error is the negative of that code, and after it the connection ends.
 *
 *     struct ws_reader r = { .role = WS_SERVER, .message_max = 64 << 10 };
 *     while (left > 0 && (n = ws_read(&r, p, left, &event)) >= 0) {
 *             if (n == WS_EVENT) ...
 *             step over event.consumed;
 *     }
 *
 * The accept key of the handshake needs SHA-1 and is made where there is cryptography.
 */
#pragma once

#include "base/str.h"
#include "wire/http.h"
#include "wire/utf8.h"

#define WS_HEAD_MAX 14     /* flags, length in 8 bytes, mask */
#define WS_CONTROL_MAX 125 /* RFC 6455, 5.5 */

enum ws_role { WS_SERVER, WS_CLIENT }; /* ours; a client's frames are masked, a server's not */

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10
};

enum ws_error {
	WS_E_PROTOCOL = -1002,
	WS_E_UTF8 = -1007,
	WS_E_LARGE = -1009,
};

enum { WS_CLOSE_NORMAL = 1000, WS_CLOSE_AWAY = 1001, WS_CLOSE_NONE = 1005 };

struct ws_frame {
	enum ws_opcode opcode;
	bool is_final;
	bool is_masked;
	uint8_t mask[4];
	uint64_t len;
};

/* Decodes the head of a frame that the other side sent: its bytes, 0 when it is not whole yet, or
 * a ws_error. */
int ws_frame_head(enum ws_role role, const void *buf, size_t len, struct ws_frame *out);
/* Masks or unmasks; `offset` is where in the payload the bytes stand. */
void ws_mask(const uint8_t mask[4], uint64_t offset, void *bytes, size_t n);
/* May this code stand in a close frame? */
bool ws_close_code_ok(unsigned int code);

struct ws_reader {
	enum ws_role role;
	uint64_t message_max; /* payload of all fragments */
	/* The rest starts as zeros. */
	uint8_t head[WS_HEAD_MAX];
	size_t head_len;
	bool has_frame;         /* the head is whole, the payload is not */
	struct ws_frame frame;  /* the one being read */
	uint64_t done;          /* of its payload */
	enum ws_opcode message; /* the one being read; WS_CONTINUATION: none */
	uint64_t message_len;
	struct utf8 utf8;
	uint8_t control[WS_CONTROL_MAX];
	bool is_closed; /* what follows a close frame is dropped */
	int error;
};

struct ws_event {
	enum ws_opcode type; /* never WS_CONTINUATION */
	struct span data;    /* bytes of a message, all of a ping or pong, the reason of a close */
	bool is_final;       /* the message ends here */
	unsigned int code;   /* of a close; WS_CLOSE_NONE when it has none */
	size_t consumed;     /* also set without an event */
};

enum { WS_NOTHING, WS_EVENT };

/* WS_NOTHING when all is consumed, WS_EVENT, or a ws_error. Unmasks in place. Data of control
 * frames is in the reader and good until the next call. */
int ws_read(struct ws_reader *r, void *buf, size_t len, struct ws_event *out);

/* One frame with f->len bytes of payload; a client sets a mask that cannot be guessed. */
void ws_print(struct str *out, const struct ws_frame *f, const void *payload);
/* `mask` is NULL for a server. A reason that is too long is cut between two characters. */
void ws_print_close(struct str *out, unsigned int code, const char *reason, const uint8_t *mask);

/* The opening handshake, seen by a server: 0 and the key to answer with, or a status: 400, or 426
 * with "Sec-WebSocket-Version: 13". */
int ws_handshake(const struct http_head *h, struct span *key);
bool ws_key_ok(struct span key); /* 16 bytes in base64 */
