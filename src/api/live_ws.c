/*
 * live_ws.c - WebSocket: binary messages are output and input, text messages are JSON:
 * {"resize":{"rows":24,"cols":80}} and {"eof":true} from the client, the process object at the end.
 */
#include <openssl/evp.h>

#include "api/live-internal.h"
#include "wire/base64.h"

static bool put(struct live *l, enum ws_opcode opcode, const void *bytes, size_t n)
{
	AUTO(str_done) struct str out = { .max = n + WS_HEAD_MAX + 1 };
	struct ws_frame f = { .opcode = opcode, .is_final = true, .len = n };

	ws_print(&out, &f, bytes);
	return reply_write(l->call->r, out.data, out.len);
}

static bool piece(struct live *l, const struct scan_piece *p)
{
	return put(l, WS_BINARY, p->bytes, p->len);
}

static void json(struct live *l, enum stream_type type, const char *text)
{
	(void)type;
	(void)put(l, WS_TEXT, text, strlen(text));
}

static void say_close(struct live *l, unsigned int code)
{
	AUTO(str_done) struct str out = { .max = 256 };

	ws_print_close(&out, code, "", NULL);
	(void)reply_write(l->call->r, out.data, out.len);
}

static void end(struct live *l)
{
	say_close(l, WS_CLOSE_NORMAL);
}

static void take_text(struct live *l, struct span text)
{
	json_t *o = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
	json_t *size = json_object_get(o, "resize");

	if (size)
		live_resize(l, (long)json_integer_value(json_object_get(size, "rows")),
		            (long)json_integer_value(json_object_get(size, "cols")));
	if (json_is_true(json_object_get(o, "eof")))
		live_eof(l);
	json_decref(o);
}

/* False: there is no room for it now. */
static bool take_event(struct live *l, const struct ws_event *e)
{
	if (e->type == WS_BINARY)
		return live_input(l, e->data.at, e->data.len);
	if (e->type == WS_TEXT && e->is_final)
		take_text(l, e->data);
	if (e->type == WS_PING)
		(void)put(l, WS_PONG, e->data.at, e->data.len);
	if (e->type == WS_CLOSE) {
		say_close(l, WS_CLOSE_NORMAL);
		reply_end(l->call->r);
	}
	return true;
}

/* What was taken apart is unmasked and cannot be read twice: input that finds no room is put back
 * as it is, in front of the rest, and is known by ws_held. */
static bool take(struct live *l)
{
	size_t at = 0;

	if (l->ws_held > 0) {
		if (!live_input(l, l->in, l->ws_held))
			return true;
		at = l->ws_held;
		l->ws_held = 0;
	}
	while (at < l->in_len && l->call->r) {
		struct ws_event e;
		int r = ws_read(&l->ws, l->in + at, l->in_len - at, &e);

		if (r < 0) {
			say_close(l, (unsigned int)-r);
			reply_end(l->call->r);
			return true;
		}
		at += e.consumed;
		if (r == WS_EVENT && !take_event(l, &e)) {
			memmove(l->in, e.data.at, e.data.len);
			memmove(l->in + e.data.len, l->in + at, l->in_len - at);
			l->in_len = e.data.len + (l->in_len - at);
			l->ws_held = e.data.len;
			return true;
		}
	}
	memmove(l->in, l->in + at, l->in_len - at);
	l->in_len -= at;
	return true;
}

/* RFC 6455, 1.3 */
void ws_accept(struct span key, char out[32])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	AUTO(str_done) struct str text = { .max = 128 };
	AUTO(str_done) struct str coded = { .max = 64 };
	unsigned char hash[20];

	str_addn(&text, key.at, key.len);
	str_add(&text, guid);
	if (EVP_Digest(text.data, text.len, hash, NULL, EVP_sha1(), NULL) != 1)
		abort(); /* a built-in digest does not fail */
	base64_encode(hash, sizeof hash, &coded);
	snprintf(out, 32, "%s", str_text(&coded));
}

const struct dialect dialect_ws = { piece, json, end, take };
