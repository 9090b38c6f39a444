#include "wire/ws.h"

#include <assert.h>

#include "wire/base64.h"

enum { BIT_FINAL = 0x80, BITS_RESERVED = 0x70, BIT_MASK = 0x80, KEY_BYTES = 16, KEY_TEXT = 24 };

static bool is_control(enum ws_opcode opcode)
{
	return opcode & 8;
}

static bool is_opcode(unsigned int n)
{
	return n <= WS_BINARY || (n >= WS_CLOSE && n <= WS_PONG);
}

static uint64_t big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* What the first two bytes say. */
static int check_flags(enum ws_role role, const uint8_t *p, size_t len)
{
	if (p[0] & BITS_RESERVED || !is_opcode(p[0] & 15))
		return WS_E_PROTOCOL;
	bool is_ctl = is_control(p[0] & 15);

	if (is_ctl && !(p[0] & BIT_FINAL))
		return WS_E_PROTOCOL;
	if (len < 2)
		return 0;
	if (!(p[1] & BIT_MASK) != (role == WS_CLIENT))
		return WS_E_PROTOCOL;
	return is_ctl && (p[1] & 127) > WS_CONTROL_MAX ? WS_E_PROTOCOL : 1;
}

int ws_frame_head(enum ws_role role, const void *buf, size_t len, struct ws_frame *out)
{
	const uint8_t *p = buf;
	int r = len > 0 ? check_flags(role, p, len) : 0;

	if (r <= 0)
		return r;
	unsigned int first = p[1] & 127;
	size_t size = first == 127 ? 8 : first == 126 ? 2 : 0;
	size_t mask = p[1] & BIT_MASK ? 4 : 0;

	if (len < 2 + size)
		return 0;
	uint64_t n = size > 0 ? big_endian(p + 2, size) : first;

	/* RFC 6455, 5.2: the shortest form, and the highest bit is 0. */
	if ((size == 2 && n < 126) || (size == 8 && (n <= UINT16_MAX || n >> 63)))
		return WS_E_PROTOCOL;
	if (len < 2 + size + mask)
		return 0;
	*out = (struct ws_frame){
		.opcode = p[0] & 15,
		.is_final = p[0] & BIT_FINAL,
		.is_masked = mask > 0,
		.len = n,
	};
	memcpy(out->mask, p + 2 + size, mask);
	return (int)(2 + size + mask);
}

void ws_mask(const uint8_t mask[4], uint64_t offset, void *bytes, size_t n)
{
	uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		p[i] ^= mask[(offset + i) & 3];
}

/* RFC 6455, 7.4, and the registry it started: 1012 to 1014. */
bool ws_close_code_ok(unsigned int code)
{
	static const struct {
		unsigned int from, to;
	} ranges[] = { { 1000, 1003 }, { 1007, 1014 }, { 3000, 4999 } };

	for (size_t i = 0; i < COUNT(ranges); i++)
		if (code >= ranges[i].from && code <= ranges[i].to)
			return true;
	return false;
}

/* A head is whole: does the frame fit here? */
static int begin_frame(struct ws_reader *r)
{
	const struct ws_frame *f = &r->frame;

	r->has_frame = true;
	r->done = 0;
	r->head_len = 0;
	if (is_control(f->opcode))
		return 0;
	bool is_first = f->opcode != WS_CONTINUATION;

	if (is_first != (r->message == WS_CONTINUATION))
		return WS_E_PROTOCOL;
	if (is_first) {
		r->message = f->opcode;
		r->message_len = 0;
		r->utf8 = (struct utf8){ 0 };
	}
	if (f->len > r->message_max - r->message_len)
		return WS_E_LARGE;
	r->message_len += f->len;
	return 0;
}

static size_t read_head(struct ws_reader *r, const uint8_t *p, size_t len)
{
	size_t i = 0;

	while (i < len && !r->has_frame && r->error == 0) {
		r->head[r->head_len++] = p[i++];
		int n = ws_frame_head(r->role, r->head, r->head_len, &r->frame);

		if (n != 0)
			r->error = n > 0 ? begin_frame(r) : n;
	}
	return i;
}

static int data_event(struct ws_reader *r, struct ws_event *out)
{
	bool is_end = r->done == r->frame.len;

	out->type = r->message;
	out->is_final = is_end && r->frame.is_final;
	if (r->message == WS_TEXT && !utf8_feed(&r->utf8, out->data.at, out->data.len))
		return WS_E_UTF8;
	if (out->is_final && !utf8_is_whole(&r->utf8))
		return WS_E_UTF8;
	r->has_frame = !is_end;
	if (out->is_final)
		r->message = WS_CONTINUATION;
	return WS_EVENT;
}

static int close_event(struct ws_reader *r, struct ws_event *out)
{
	out->code = WS_CLOSE_NONE;
	r->is_closed = true;
	if (out->data.len == 0)
		return WS_EVENT;
	if (out->data.len == 1)
		return WS_E_PROTOCOL;
	out->code = (unsigned int)big_endian(r->control, 2);
	out->data = span_after(out->data, 2);
	if (!ws_close_code_ok(out->code))
		return WS_E_PROTOCOL;
	if (!utf8_is(out->data.at, out->data.len))
		return WS_E_UTF8;
	return WS_EVENT;
}

/* `out->data` is a part of the payload of a control frame. */
static int control_event(struct ws_reader *r, struct ws_event *out)
{
	size_t n = out->data.len;

	if (n > 0)
		memcpy(r->control + (r->done - n), out->data.at, n);
	out->data = (struct span){ 0 };
	if (r->done < r->frame.len)
		return WS_NOTHING;
	r->has_frame = false;
	out->type = r->frame.opcode;
	out->is_final = true;
	out->data = (struct span){ (const char *)r->control, (size_t)r->done };
	return out->type == WS_CLOSE ? close_event(r, out) : WS_EVENT;
}

static int read_payload(struct ws_reader *r, uint8_t *p, size_t len, struct ws_event *out)
{
	uint64_t left = r->frame.len - r->done;
	size_t n = len < left ? len : (size_t)left;

	if (n == 0 && left > 0)
		return WS_NOTHING;
	if (r->frame.is_masked)
		ws_mask(r->frame.mask, r->done, p, n);
	out->data = (struct span){ (const char *)p, n };
	r->done += n;
	out->consumed += n;
	return is_control(r->frame.opcode) ? control_event(r, out) : data_event(r, out);
}

int ws_read(struct ws_reader *r, void *buf, size_t len, struct ws_event *out)
{
	uint8_t *p = buf;
	int found = WS_NOTHING;

	*out = (struct ws_event){ 0 };
	if (r->is_closed && r->error == 0) {
		out->consumed = len;
		return WS_NOTHING;
	}
	while (r->error == 0 && found == WS_NOTHING && out->consumed < len) {
		if (!r->has_frame)
			out->consumed += read_head(r, p + out->consumed, len - out->consumed);
		if (r->error == 0 && r->has_frame)
			found = read_payload(r, p + out->consumed, len - out->consumed, out);
		if (found < 0)
			r->error = found;
	}
	return r->error < 0 ? r->error : found;
}

static size_t put_length(uint8_t *p, uint64_t n)
{
	size_t size = n > UINT16_MAX ? 8 : n > 125 ? 2 : 0;

	p[0] = (uint8_t)(size == 8 ? 127 : size == 2 ? 126 : n);
	for (size_t i = 0; i < size; i++)
		p[1 + i] = (uint8_t)(n >> 8 * (size - 1 - i));
	return 1 + size;
}

void ws_print(struct str *out, const struct ws_frame *f, const void *payload)
{
	uint8_t head[WS_HEAD_MAX] = { (uint8_t)(f->opcode | (f->is_final ? BIT_FINAL : 0)) };
	size_t n = 1 + put_length(head + 1, f->len);

	assert(!is_control(f->opcode) || (f->is_final && f->len <= WS_CONTROL_MAX));
	if (f->is_masked) {
		head[1] |= BIT_MASK;
		memcpy(head + n, f->mask, sizeof f->mask);
		n += sizeof f->mask;
	}
	str_addn(out, head, n);
	size_t from = out->len;

	str_addn(out, payload, f->len);
	if (f->is_masked && !out->overflow)
		ws_mask(f->mask, 0, out->data + from, f->len);
}

void ws_print_close(struct str *out, unsigned int code, const char *reason, const uint8_t *mask)
{
	uint8_t payload[WS_CONTROL_MAX] = { (uint8_t)(code >> 8), (uint8_t)code };
	struct span text = span_of(reason);

	assert(ws_close_code_ok(code));
	if (text.len > sizeof payload - 2) {
		text.len = sizeof payload - 2;
		while (text.len > 0 && ((uint8_t)text.at[text.len] & 0xc0) == 0x80)
			text.len--;
	}
	memcpy(payload + 2, text.at, text.len);
	struct ws_frame f = {
		.opcode = WS_CLOSE,
		.is_final = true,
		.is_masked = mask,
		.len = text.len + 2,
	};

	if (mask)
		memcpy(f.mask, mask, sizeof f.mask);
	ws_print(out, &f, payload);
}

bool ws_key_ok(struct span key)
{
	AUTO(str_done) struct str bytes = { .max = KEY_TEXT };

	return key.len == KEY_TEXT && base64_decode(key.at, key.len, &bytes) &&
	       bytes.len == KEY_BYTES;
}

int ws_handshake(const struct http_head *h, struct span *key)
{
	const struct span *version = http_header(h, "Sec-WebSocket-Version");
	const struct span *sent = http_header(h, "Sec-WebSocket-Key");

	if (!h->is_upgrade_websocket || http_header_count(h, "Sec-WebSocket-Version") != 1 ||
	    http_header_count(h, "Sec-WebSocket-Key") != 1)
		return 400;
	if (!span_is(*version, "13"))
		return 426;
	if (!ws_key_ok(*sent))
		return 400;
	*key = *sent;
	return 0;
}
