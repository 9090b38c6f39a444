#include "wire/ws.h"

#include "test.h"

#define BYTES(text) text, sizeof(text) - 1
#define MASK "\x01\x02\x03\x04"

enum { MESSAGE_MAX = 70000, TEXT_MAX = 1 << 20 };

static const char *const names[] = {
	[WS_TEXT] = "text", [WS_BINARY] = "binary", [WS_CLOSE] = "close",
	[WS_PING] = "ping", [WS_PONG] = "pong",
};

/* A message is written down when it ends, so that pieces make no difference. */
struct heard {
	struct str log, message;
};

static void heard_done(struct heard *h)
{
	str_done(&h->log);
	str_done(&h->message);
}

static void hear(struct heard *h, const struct ws_event *ev)
{
	if (ev->type == WS_TEXT || ev->type == WS_BINARY) {
		str_addn(&h->message, ev->data.at, ev->data.len);
		if (!ev->is_final)
			return;
		str_addf(&h->log, "%s(%s)", names[ev->type], str_text(&h->message));
		str_clear(&h->message);
		return;
	}
	str_addf(&h->log, "%s(", names[ev->type]);
	if (ev->type == WS_CLOSE)
		str_addf(&h->log, "%u,", ev->code);
	str_addn(&h->log, ev->data.at, ev->data.len);
	str_add(&h->log, ")");
}

/* Reads exact copies of `step` bytes; returns 0 or the error. */
static int read_all(struct ws_reader *r, const char *bytes, size_t len, size_t step,
                    struct heard *h)
{
	for (size_t at = 0; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;
		AUTO(freep) char *copy = mem_alloc(n);
		struct ws_event ev;

		memcpy(copy, bytes + at, n);
		for (size_t used = 0; used < n; used += ev.consumed) {
			int found = ws_read(r, copy + used, n - used, &ev);

			if (found < 0)
				return found;
			CHECK(ev.consumed > 0 && ev.consumed <= n - used);
			CHECK(found == WS_EVENT || ev.consumed == n - used);
			if (found == WS_EVENT)
				hear(h, &ev);
		}
	}
	return 0;
}

/* What a client hears: no masks, so that the table can be read. */
static const struct talk {
	const char *name, *bytes;
	size_t len;
	const char *want;
	int error;
} talks[] = {
	{ "text", BYTES("\x81\x05hello"), "text(hello)", 0 },
	{ "binary", BYTES("\x82\x02\x01z"), "binary(\x01z)", 0 },
	{ "empty", BYTES("\x81\x00"), "text()", 0 },
	{ "two",
	  BYTES("\x81\x01"
	        "a\x82\x01"
	        "b"),
	  "text(a)binary(b)", 0 },
	{ "fragments",
	  BYTES("\x01\x01"
	        "a\x00\x01"
	        "b\x80\x01"
	        "c"),
	  "text(abc)", 0 },
	{ "empty fragments", BYTES("\x02\x00\x00\x00\x80\x00"), "binary()", 0 },
	{ "ping inside",
	  BYTES("\x01\x01"
	        "a\x89\x01x\x80\x01"
	        "b"),
	  "ping(x)text(ab)", 0 },
	{ "pong", BYTES("\x8a\x00"), "pong()", 0 },
	{ "character over two fragments", BYTES("\x01\x01\xc3\x80\x01\xa4"), "text(\xc3\xa4)", 0 },
	{ "ping inside a character", BYTES("\x01\x01\xc3\x89\x00\x80\x01\xa4"),
	  "ping()text(\xc3\xa4)", 0 },
	{ "close", BYTES("\x88\x00"), "close(1005,)", 0 },
	{ "close with a code", BYTES("\x88\x02\x03\xe8"), "close(1000,)", 0 },
	{ "close with a reason",
	  BYTES("\x88\x05\x03\xe9"
	        "bye"),
	  "close(1001,bye)", 0 },
	{ "after a close",
	  BYTES("\x88\x00\x81\x01"
	        "a\xff\xff"),
	  "close(1005,)", 0 },
	{ "close inside a message",
	  BYTES("\x01\x01"
	        "a\x88\x00"),
	  "close(1005,)", 0 },
	{ "bytes that are no text", BYTES("\x82\x02\xff\xfe"), "binary(\xff\xfe)", 0 },
	{ "half a head", BYTES("\x81"), "", 0 },
	{ "half a message", BYTES("\x81\x05hel"), "", 0 },
	{ "rsv1",
	  BYTES("\xc1\x01"
	        "a"),
	  "", WS_E_PROTOCOL },
	{ "rsv2",
	  BYTES("\xa1\x01"
	        "a"),
	  "", WS_E_PROTOCOL },
	{ "rsv3",
	  BYTES("\x91\x01"
	        "a"),
	  "", WS_E_PROTOCOL },
	{ "opcode 3", BYTES("\x83\x00"), "", WS_E_PROTOCOL },
	{ "opcode 7", BYTES("\x87\x00"), "", WS_E_PROTOCOL },
	{ "opcode 11", BYTES("\x8b\x00"), "", WS_E_PROTOCOL },
	{ "opcode 15", BYTES("\x8f\x00"), "", WS_E_PROTOCOL },
	{ "masked by a server", BYTES("\x81\x81" MASK "a"), "", WS_E_PROTOCOL },
	{ "continuation of nothing",
	  BYTES("\x80\x01"
	        "a"),
	  "", WS_E_PROTOCOL },
	{ "continuation after the end",
	  BYTES("\x81\x01"
	        "a\x80\x01"
	        "b"),
	  "text(a)", WS_E_PROTOCOL },
	{ "message in a message",
	  BYTES("\x01\x01"
	        "a\x81\x01"
	        "b"),
	  "", WS_E_PROTOCOL },
	{ "ping in fragments",
	  BYTES("\x09\x01"
	        "a"),
	  "", WS_E_PROTOCOL },
	{ "close in fragments", BYTES("\x08\x00"), "", WS_E_PROTOCOL },
	{ "ping of 126 bytes", BYTES("\x89\x7e\x00\x7e"), "", WS_E_PROTOCOL },
	{ "ping with a long length", BYTES("\x89\x7f"), "", WS_E_PROTOCOL },
	{ "125 in two bytes", BYTES("\x82\x7e\x00\x7d"), "", WS_E_PROTOCOL },
	{ "65535 in eight bytes", BYTES("\x82\x7f\0\0\0\0\0\0\xff\xff"), "", WS_E_PROTOCOL },
	{ "highest bit", BYTES("\x82\x7f\x80\0\0\0\0\1\0\0"), "", WS_E_PROTOCOL },
	{ "too large", BYTES("\x82\x7f\0\0\0\0\0\1\x11\x71"), "", WS_E_LARGE },
	{ "largest", BYTES("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), "", WS_E_LARGE },
	{ "too large with fragments",
	  BYTES("\x02\x01"
	        "a\x00\x7f\0\0\0\0\0\1\x11\x70"),
	  "", WS_E_LARGE },
	{ "close with half a code", BYTES("\x88\x01\x03"), "", WS_E_PROTOCOL },
	{ "close with half a code behind a ping", BYTES("\x89\x02x\xe8\x88\x01\x03"), "ping(x\xe8)",
	  WS_E_PROTOCOL },
	{ "close 999", BYTES("\x88\x02\x03\xe7"), "", WS_E_PROTOCOL },
	{ "close 1005", BYTES("\x88\x02\x03\xed"), "", WS_E_PROTOCOL },
	{ "close 1006", BYTES("\x88\x02\x03\xee"), "", WS_E_PROTOCOL },
	{ "close with a bad reason", BYTES("\x88\x03\x03\xe8\xff"), "", WS_E_UTF8 },
	{ "close with half a reason", BYTES("\x88\x03\x03\xe8\xc3"), "", WS_E_UTF8 },
	{ "text with a bad byte",
	  BYTES("\x81\x03"
	        "a\xff"
	        "b"),
	  "", WS_E_UTF8 },
	{ "text that ends inside a character", BYTES("\x81\x01\xc3"), "", WS_E_UTF8 },
	{ "surrogate", BYTES("\x81\x03\xed\xa0\x80"), "", WS_E_UTF8 },
	{ "bad byte in a fragment", BYTES("\x01\x01\xc3\x00\x01("), "", WS_E_UTF8 },
};

TEST(frames_are_heard_or_refused_however_they_are_cut)
{
	for (size_t i = 0; i < COUNT(talks); i++) {
		for (size_t step = 1; step <= talks[i].len; step++) {
			AUTO(heard_done)
			struct heard h = { { .max = TEXT_MAX }, { .max = TEXT_MAX } };
			struct ws_reader r = { .role = WS_CLIENT, .message_max = MESSAGE_MAX };
			struct ws_event ev;

			printf("# %s by %zu\n", talks[i].name, step);
			int error = read_all(&r, talks[i].bytes, talks[i].len, step, &h);

			CHECK_INT(error, talks[i].error);
			CHECK_STR(str_text(&h.log), talks[i].want);
			if (error < 0) /* and it stays so */
				CHECK_INT(ws_read(&r, (char[]){ "\x81" }, 1, &ev), error);
		}
	}
}

TEST(a_server_hears_masked_frames_only)
{
	AUTO(heard_done) struct heard h = { { .max = TEXT_MAX }, { .max = TEXT_MAX } };
	struct ws_reader r = { .role = WS_SERVER, .message_max = 100 };

	/* RFC 6455, 5.7 */
	CHECK_INT(read_all(&r, BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), 3, &h), 0);
	CHECK_STR(str_text(&h.log), "text(Hello)");
	CHECK_INT(read_all(&r, BYTES("\x81\x05"), 1, &h), WS_E_PROTOCOL);
}

TEST(what_one_role_prints_the_other_reads)
{
	static const size_t sizes[] = { 0, 1, 125, 126, 127, 65535, 65536, MESSAGE_MAX };
	AUTO(freep) char *payload = mem_alloc(MESSAGE_MAX);

	for (size_t i = 0; i < MESSAGE_MAX; i++)
		payload[i] = (char)('a' + i % 26);
	for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
		AUTO(heard_done) struct heard h = { { .max = TEXT_MAX }, { .max = TEXT_MAX } };
		AUTO(str_done) struct str s = { .max = TEXT_MAX };
		AUTO(str_done) struct str want = { .max = TEXT_MAX };
		struct ws_frame f = {
			.opcode = WS_TEXT,
			.is_final = true,
			.is_masked = i & 1,
			.mask = { 0xde, 0xad, 0xbe, 0xef },
			.len = sizes[i / 2],
		};
		struct ws_reader r = { .role = i & 1 ? WS_SERVER : WS_CLIENT,
			               .message_max = MESSAGE_MAX };

		ws_print(&s, &f, payload);
		CHECK_INT(read_all(&r, s.data, s.len, 1000, &h), 0);
		str_add(&want, "text(");
		str_addn(&want, payload, f.len);
		str_add(&want, ")");
		CHECK(h.message.len == 0);
		CHECK_INT(h.log.len, want.len);
		CHECK(memcmp(h.log.data, want.data, want.len) == 0);
	}
}

TEST(bytes_of_a_frame_are_those_of_the_rfc)
{
	AUTO(str_done) struct str s = { .max = 100 };
	struct ws_frame f = { .opcode = WS_TEXT, .is_final = true, .len = 5 };

	ws_print(&s, &f, "Hello");
	f = (struct ws_frame){ .opcode = WS_TEXT, .len = 3 };
	ws_print(&s, &f, "Hel");
	f = (struct ws_frame){ .opcode = WS_CONTINUATION, .is_final = true, .len = 2 };
	ws_print(&s, &f, "lo");
	f = (struct ws_frame){ .opcode = WS_PONG,
		               .is_final = true,
		               .is_masked = true,
		               .mask = { 0x37, 0xfa, 0x21, 0x3d },
		               .len = 5 };
	ws_print(&s, &f, "Hello");
	CHECK_STR(str_text(&s), "\x81\x05Hello\x01\x03Hel\x80\x02lo"
	                        "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
}

TEST(a_close_is_printed_and_its_reason_cut)
{
	char reason[130] = "";
	AUTO(heard_done) struct heard h = { { .max = TEXT_MAX }, { .max = TEXT_MAX } };
	AUTO(str_done) struct str s = { .max = 1000 };
	struct ws_reader client = { .role = WS_CLIENT };
	struct ws_reader server = { .role = WS_SERVER };

	memset(reason, 'x', 122);
	memcpy(reason + 122, "\xc3\xa4!", 4);
	ws_print_close(&s, WS_CLOSE_AWAY, reason, NULL);
	CHECK_INT(s.len, 2 + 2 + 122);
	CHECK_INT(read_all(&client, s.data, s.len, 7, &h), 0);
	str_clear(&s);
	str_clear(&h.log);
	ws_print_close(&s, WS_CLOSE_NORMAL, "bye", (const uint8_t *)MASK);
	CHECK_INT(s.len, 2 + 4 + 2 + 3);
	CHECK_INT(read_all(&server, s.data, s.len, 7, &h), 0);
	CHECK_STR(str_text(&h.log), "close(1000,bye)");
}

TEST(close_codes_are_those_of_the_registry)
{
	for (unsigned int code = 0; code < 70000; code++) {
		bool want = (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 &&
		             code != 1006) ||
		            (code >= 3000 && code <= 4999);

		CHECK(ws_close_code_ok(code) == want);
	}
}

TEST(a_mask_goes_on_where_it_stopped)
{
	static const uint8_t mask[4] = { 1, 2, 3, 4 };
	char whole[11] = "0123456789";
	char parts[11] = "0123456789";

	ws_mask(mask, 0, whole, 10);
	ws_mask(mask, 0, parts, 3);
	ws_mask(mask, 3, parts + 3, 6);
	ws_mask(mask, 9, parts + 9, 1);
	CHECK(memcmp(whole, parts, 10) == 0);
	ws_mask(mask, 0, whole, 10);
	CHECK_STR(whole, "0123456789");
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

TEST(a_handshake_has_version_and_key_once)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{ GET UPGRADE VERSION KEY "\r\n", 0 },
		{ GET UPGRADE VERSION KEY "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
		  0 },
		{ GET VERSION KEY "\r\n", 400 },
		{ GET UPGRADE KEY "\r\n", 400 },
		{ GET UPGRADE VERSION "\r\n", 400 },
		{ GET UPGRADE VERSION VERSION KEY "\r\n", 400 },
		{ GET UPGRADE VERSION KEY KEY "\r\n", 400 },
		{ GET UPGRADE "Sec-WebSocket-Version: 8\r\n" KEY "\r\n", 426 },
		{ GET UPGRADE "Sec-WebSocket-Version: 013\r\n" KEY "\r\n", 426 },
		{ GET UPGRADE "Sec-WebSocket-Version: 13, 8\r\n" KEY "\r\n", 426 },
		{ GET UPGRADE VERSION "Sec-WebSocket-Key: x\r\n\r\n", 400 },
		{ "POST / HTTP/1.1\r\nHost: a\r\n" UPGRADE VERSION KEY "\r\n", 400 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct http_head h;
		struct span key = { 0 };

		printf("# %s\n", rows[i].text);
		CHECK(http_request_head(rows[i].text, strlen(rows[i].text), &h) > 0);
		CHECK_INT(ws_handshake(&h, &key), rows[i].want);
		CHECK(rows[i].want != 0 || span_is(key, "dGhlIHNhbXBsZSBub25jZQ=="));
	}
}

TEST(a_key_is_sixteen_bytes)
{
	static const struct {
		const char *key;
		bool is_ok;
	} rows[] = {
		{ "dGhlIHNhbXBsZSBub25jZQ==", true },
		{ "AAAAAAAAAAAAAAAAAAAAAA==", true },
		{ "", false },
		{ "dGhlIHNhbXBsZSBub25jZQ=", false },
		{ "dGhlIHNhbXBsZSBub25jZQ", false },
		{ "dGhlIHNhbXBsZSBub25jZQQQ", false },
		{ "dGhlIHNhbXBsZSBub25jZQQ=", false },
		{ "dGhlIHNhbXBsZSBub25jZR==", false },
		{ "dGhlIHNhbXBsZSBub25j!Q==", false },
		{ "dGhlIHNhbXBsZSBub25jZQ==AAAA", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(ws_key_ok(span_of(rows[i].key)), rows[i].is_ok);
}
