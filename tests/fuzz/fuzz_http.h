/*
 * fuzz_http.h - what must hold for every head and every body, of a request or a response.
 */
#pragma once

#include "wire/http.h"

enum { FUZZ_TEXT_MAX = 1 << 20, FUZZ_BODY_MAX = 1000, FUZZ_PREFIXES = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* `kind` is an enum http_asked, or one of the two below. */
enum { FUZZ_SERVER = 10, FUZZ_PROXY };

static inline void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static inline int parse(int kind, const char *buf, size_t len, struct http_head *h)
{
	if (kind == FUZZ_SERVER)
		return http_request_head(buf, len, h);
	if (kind == FUZZ_PROXY)
		return http_proxy_head(buf, len, h);
	return http_response_head(buf, len, (enum http_asked)kind, h);
}

static inline bool same(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline void expect_inside(struct span s, const char *buf, size_t len)
{
	expect(s.at >= buf && s.at + s.len <= buf + len);
	for (size_t i = 0; i < s.len; i++)
		expect(s.at[i] != '\r' && s.at[i] != '\n' && s.at[i] != '\0');
}

/* A prefix gives 0 or what the whole gives. Not all prefixes of a long input: that is slow. */
static inline void expect_prefixes(int kind, const char *buf, size_t len, int whole)
{
	size_t stride = len / FUZZ_PREFIXES + 1;
	struct http_head h;

	for (size_t n = len % stride; n < len; n += stride) {
		int r = parse(kind, buf, n, &h);

		expect(r == 0 || r == whole);
	}
}

static inline bool is_framing(struct span name)
{
	return span_is_nocase(name, "Content-Length") || span_is_nocase(name, "Transfer-Encoding");
}

static inline void print_fields(struct http_print *p, const struct http_head *h)
{
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (!is_framing(f->name))
			http_print_field(p, f->name, f->value);
		else
			http_print_framing(p, h->has_length ? HTTP_LENGTH : HTTP_CHUNKED,
			                   h->length);
	}
}

static inline void expect_same_head(const struct http_head *a, const struct http_head *b)
{
	expect(same(a->method, b->method) && same(a->target, b->target) && same(a->path, b->path));
	expect(same(a->host, b->host) && a->port == b->port && a->form == b->form);
	expect(a->status == b->status && a->body == b->body && a->length == b->length);
	expect(a->has_length == b->has_length && a->keep_alive == b->keep_alive);
	expect(a->expect_continue == b->expect_continue);
	expect(a->is_upgrade_websocket == b->is_upgrade_websocket);
	expect(a->n_fields == b->n_fields);
	for (size_t i = 0; i < a->n_fields; i++) {
		const struct http_field *f = &a->fields[i];

		expect(span_same_nocase(f->name, b->fields[i].name));
		expect(is_framing(f->name) || same(f->value, b->fields[i].value));
	}
}

/* Printing what was read and reading that changes nothing. We print HTTP/1.1 only, and white
 * space behind a colon, which may be too much for a head of the largest size. */
static inline void expect_fixpoint(int kind, const struct http_head *h)
{
	AUTO(str_done) struct str s = { .max = FUZZ_TEXT_MAX };
	struct http_head again;
	struct err e = { 0 };

	if (h->minor == 0)
		return;
	struct http_print p = h->status > 0 ? http_print_response(&s, h->status)
	                                    : http_print_request(&s, h->method, h->target);

	print_fields(&p, h);
	expect(http_print_end(&p, &e) == 0);
	int n = parse(kind, s.data, s.len, &again);

	expect(n == (int)s.len || (n == HTTP_E_HEAD_LARGE && s.len > HTTP_HEAD_MAX));
	if (n > 0)
		expect_same_head(h, &again);
}

/* Feeds `step` bytes at a time. Returns what the last call said; `used` counts the bytes. */
static inline int drain(const struct http_head *h, struct span in, size_t step, struct str *out,
                        size_t *used)
{
	struct http_piece piece;
	struct http_body b;
	int r = HTTP_BODY_MORE;

	http_body_init(&b, h, FUZZ_BODY_MAX);
	*used = 0;
	do {
		size_t left = in.len - *used;
		size_t n = left < step ? left : step;

		r = http_body_feed(&b, in.at + *used, n, &piece);
		expect(piece.consumed <= n && piece.data.len <= piece.consumed);
		expect(piece.consumed > 0 || n == 0 || r != HTTP_BODY_MORE);
		str_addn(out, piece.data.at, piece.data.len);
		*used += piece.consumed;
	} while (r == HTTP_BODY_MORE && *used < in.len);
	expect(b.seen == out->len && b.seen <= FUZZ_BODY_MAX);
	return r;
}

/* The same end and the same bytes, however the input was cut. */
static inline void expect_body(const struct http_head *h, struct span in)
{
	AUTO(str_done) struct str whole = { .max = FUZZ_TEXT_MAX };
	size_t whole_used = 0;
	int r = drain(h, in, in.len + 1, &whole, &whole_used);

	for (size_t step = 1; step <= 7; step += 3) {
		AUTO(str_done) struct str cut = { .max = FUZZ_TEXT_MAX };
		size_t used = 0;

		expect(drain(h, in, step, &cut, &used) == r && used == whole_used);
		expect(cut.len == whole.len && strcmp(str_text(&cut), str_text(&whole)) == 0);
	}
	/* What came out of any framing goes through our own. */
	static const struct http_head chunked = { .body = HTTP_CHUNKED };
	AUTO(str_done) struct str printed = { .max = FUZZ_TEXT_MAX };
	AUTO(str_done) struct str back = { .max = FUZZ_TEXT_MAX };
	size_t used = 0;

	http_print_chunk(&printed, str_text(&whole), whole.len);
	http_print_last_chunk(&printed);
	expect(drain(&chunked, (struct span){ printed.data, printed.len }, 5, &back, &used) ==
	       HTTP_BODY_DONE);
	expect(used == printed.len && back.len == whole.len);
}

static inline int expect_message(int kind, const char *buf, size_t len)
{
	struct http_head h;
	int n = parse(kind, buf, len, &h);

	expect(n <= (int)len && n <= (int)HTTP_HEAD_MAX);
	expect(n >= 0 || http_error_status(n) != 500);
	expect_prefixes(kind, buf, len, n);
	if (n <= 0)
		return n;
	for (size_t i = 0; i < h.n_fields; i++) {
		expect_inside(h.fields[i].name, buf, len);
		expect_inside(h.fields[i].value, buf, len);
	}
	expect(h.body != HTTP_UNTIL_CLOSE || (h.status > 0 && !h.keep_alive));
	expect_fixpoint(kind, &h);
	expect_body(&h, (struct span){ buf + n, len - (size_t)n });
	return n;
}
