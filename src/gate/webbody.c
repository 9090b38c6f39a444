#include "gate/webbody.h"

#include "gate/gate-internal.h"
#include "gate/webhead.h"

void webbody_begin(struct http_body *b, const struct http_head *h, struct str *trailers)
{
	http_body_init(b, h, UINT64_MAX);
	str_done(trailers);
	trailers->max = HTTP_TRAILERS_MAX + 1;
	b->trailers = trailers;
	b->skips_extensions = true;
}

static void print(const struct http_body *b, bool is_raw, struct span data, struct str *out)
{
	if (b->kind == HTTP_CHUNKED && !is_raw)
		http_print_chunk(out, data.at, data.len);
	else
		str_addn(out, data.at, data.len);
}

/* What the mask lets go on: of `data`, or all that it held. */
static void pass_masked(const struct http_body *b, struct webbody_way way, const struct span *data,
                        struct str *out)
{
	AUTO(str_done) struct str clean = { .max = out->max };

	if (data)
		mask_feed(way.mask, *data, &clean);
	else
		mask_flush(way.mask, &clean);
	print(b, way.is_raw, (struct span){ str_text(&clean), clean.len }, out);
}

static bool pass_push(const struct http_body *b, struct webbody_way way, struct span data,
                      struct str *out)
{
	AUTO(str_done) struct str some = { .max = out->max };
	bool was_judged = way.push->is_judged;
	bool may = gitpush_feed(way.push, data, &some);

	if (!was_judged && way.push->is_judged)
		gitpush_take_head(way.push, out);
	if (may)
		print(b, way.is_raw, (struct span){ str_text(&some), some.len }, out);
	return may;
}

void webbody_go_on(const struct http_body *b, struct gitpush *push, struct str *out)
{
	AUTO(str_done) struct str some = { .max = out->max };

	gitpush_take_head(push, out);
	gitpush_go_on(push, &some);
	print(b, false, (struct span){ str_text(&some), some.len }, out);
}

static int sign_error(int r)
{
	return r == SIGV4_LARGE ? WEBBODY_LARGE : r < 0 ? HTTP_E_CHUNK : 0;
}

static int pass_signed(const struct http_body *b, struct webbody_way way, struct span data,
                       struct str *out)
{
	AUTO(str_done) struct str some = { .max = out->max };
	int r = sigv4_feed(way.sign, data, &some);

	print(b, way.is_raw, (struct span){ str_text(&some), some.len }, out);
	return sign_error(r);
}

static int end_signed(const struct http_body *b, struct webbody_way way, struct str *out)
{
	AUTO(str_done) struct str some = { .max = out->max };
	int r = sigv4_end(way.sign, out, &some);

	print(b, way.is_raw, (struct span){ str_text(&some), some.len }, out);
	return sign_error(r);
}

/* One piece, as the next hop gets it: 0 or an error. */
static int pass(const struct http_body *b, struct webbody_way way, struct span data,
                struct str *out)
{
	if (way.push && way.push->is_on)
		return pass_push(b, way, data, out) ? 0 : WEBBODY_PUSH;
	if (way.sign && way.sign->is_on)
		return pass_signed(b, way, data, out);
	if (way.mask && way.mask->purse)
		pass_masked(b, way, &data, out);
	else
		print(b, way.is_raw, data, out);
	return 0;
}

int webbody_move(struct http_body *b, struct leg *from, struct leg *to, struct webbody_way way)
{
	int r = HTTP_BODY_MORE;
	struct span in;

	do {
		struct http_piece piece;

		in = leg_input(from);
		r = http_body_feed(b, in.at, in.len, &piece);
		if (way.push && way.push->head.len > 0)
			leg_keep_secret(to); /* it may go on with this piece */
		if (way.canary && conn_sings(way.canary, way.scan, piece.data))
			return WEBBODY_CANARY;
		int wrong = piece.data.len > 0 ? pass(b, way, piece.data, leg_out(to)) : 0;

		if (wrong < 0)
			return wrong;
		leg_take(from, piece.consumed);
		in = leg_input(from);
	} while (r == HTTP_BODY_MORE && in.len > 0 && !leg_is_full(to) &&
	         !(way.push && way.push->is_waiting));
	return r;
}

int webbody_end(const struct http_body *b, struct str *trailers, struct webbody_way way,
                struct leg *to)
{
	struct err e;

	if (way.push && !gitpush_end(way.push))
		return WEBBODY_PUSH;
	if (way.canary &&
	    conn_sings(way.canary, way.scan, (struct span){ str_text(trailers), trailers->len }))
		return WEBBODY_CANARY;
	int r = way.sign && way.sign->is_on ? end_signed(b, way, leg_out(to)) : 0;

	if (r < 0)
		return r;
	if (way.mask && way.mask->purse) {
		pass_masked(b, way, NULL, leg_out(to));
		mask_text(way.mask, trailers->data, trailers->len);
	}
	return b->kind == HTTP_CHUNKED && !way.is_raw
	           ? webhead_last_chunk(trailers, way.to, leg_out(to), &e)
	           : 0;
}

/* A server that waits for an answer to its last byte must not wait for the next one of its own: a
 * few bytes that could begin a secret go on, and more than these a moment later. */
#define RAW_LITTLE 4

bool webbody_pass_masked(struct leg *from, struct leg *to, struct mask *m)
{
	struct span in = leg_input(from);
	bool has_moved = in.len > 0;

	if (!m->purse)
		return webbody_pass(from, to);
	if (leg_is_full(to))
		return false;
	if (in.len > 0) {
		mask_feed(m, in, leg_out(to));
		leg_take(from, in.len);
	}
	has_moved |= leg_fill(from);
	if (mask_waiting(m) < RAW_LITTLE || (from->is_eof && leg_input(from).len == 0))
		mask_let_go(m, leg_out(to));
	if (from->is_eof && leg_unsent(to) == 0 && leg_input(from).len == 0)
		leg_shut(to);
	return has_moved;
}

bool webbody_pass(struct leg *from, struct leg *to)
{
	struct span in = leg_input(from);
	bool has_moved = in.len > 0;

	if (leg_is_full(to))
		return false;
	if (in.len > 0) {
		str_addn(leg_out(to), in.at, in.len);
		leg_take(from, in.len);
	}
	has_moved |= leg_fill(from);
	if (from->is_eof && leg_unsent(to) == 0 && leg_input(from).len == 0)
		leg_shut(to);
	return has_moved;
}
