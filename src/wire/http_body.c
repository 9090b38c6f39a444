/*
 * http_body.c - where a body ends.
 *
 * A chunked body is read byte by byte between the chunks, so that no input has to be kept.
 */
#include "wire/http-internal.h"

enum step {
	SIZE, /* digits of a chunk's size */
	EXTENSION,
	SIZE_LF, /* its CR was there */
	DATA,    /* payload */
	DATA_CR, /* behind a chunk */
	DATA_LF,
	LAST_CR, /* behind the chunk of size 0 */
	LAST_LF,
	TRAILER, /* inside of a line */
	TRAILER_LF,
	TRAILER_NEXT, /* at the first byte of a line */
	END
};

static int on_size(struct http_body *b, char c)
{
	int digit = http_hex(c);

	if (c == '\r' && b->digits > 0) {
		b->step = SIZE_LF;
		return 0;
	}
	if ((c == ';' || c == ' ' || c == '\t') && b->digits > 0 && b->skips_extensions) {
		b->step = EXTENSION;
		b->extension = 0;
		return 0;
	}
	if (digit < 0 || b->digits == HTTP_CHUNK_DIGITS_MAX)
		return HTTP_E_CHUNK;
	b->left = b->left << 4 | (uint64_t)digit;
	b->digits++;
	return 0;
}

static int on_extension(struct http_body *b, char c)
{
	if (c == '\r')
		b->step = SIZE_LF;
	else if (!http_is(c, C_VALUE) || ++b->extension > HTTP_EXTENSION_MAX)
		return HTTP_E_CHUNK;
	return 0;
}

/* Where lines end is all that matters here; what they say, http_trailers() reads. */
static int on_trailer(struct http_body *b, char c)
{
	if (b->trailers->len >= HTTP_TRAILERS_MAX)
		return HTTP_E_HEAD_LARGE;
	str_addn(b->trailers, &c, 1);
	if (b->step == TRAILER_LF && c != '\n')
		return HTTP_E_NEWLINE;
	if (b->step == TRAILER_LF)
		b->step = TRAILER_NEXT;
	else if (b->step == TRAILER_NEXT && c == '\r')
		b->step = LAST_LF;
	else
		b->step = c == '\r' ? TRAILER_LF : TRAILER;
	return b->trailers->overflow ? HTTP_E_HEAD_LARGE : 0;
}

static int on_size_end(struct http_body *b, char c)
{
	if (c != '\n')
		return HTTP_E_CHUNK;
	if (b->left > b->max - b->seen)
		return HTTP_E_BODY_LARGE;
	b->step = b->left > 0 ? DATA : LAST_CR;
	return 0;
}

static int on_fixed(struct http_body *b, char c)
{
	static const struct {
		char wanted;
		int otherwise, next;
	} rows[] = {
		[DATA_CR] = { '\r', HTTP_E_CHUNK, DATA_LF },
		[DATA_LF] = { '\n', HTTP_E_CHUNK, SIZE },
		[LAST_CR] = { '\r', HTTP_E_TRAILER, LAST_LF },
		[LAST_LF] = { '\n', HTTP_E_CHUNK, END },
	};

	if (c != rows[b->step].wanted)
		return rows[b->step].otherwise;
	b->step = rows[b->step].next;
	b->left = 0;
	b->digits = 0;
	return 0;
}

static int step_over(struct http_body *b, char c)
{
	if (b->step == SIZE)
		return on_size(b, c);
	if (b->step == EXTENSION)
		return on_extension(b, c);
	if (b->step == LAST_CR && c != '\r' && b->trailers)
		b->step = TRAILER_NEXT;
	if (b->step >= TRAILER)
		return on_trailer(b, c);
	return b->step == SIZE_LF ? on_size_end(b, c) : on_fixed(b, c);
}

/* Without a length the ceiling is met on the way: what fits is given out, one byte more is not. */
static size_t take_data(struct http_body *b, const char *buf, size_t len, struct span *out)
{
	uint64_t room = b->kind == HTTP_UNTIL_CLOSE ? b->max - b->seen : b->left;
	size_t n = len < room ? len : (size_t)room;

	if (n == 0) {
		b->error = HTTP_E_BODY_LARGE;
		return 0;
	}
	*out = (struct span){ buf, n };
	b->seen += n;
	if (b->kind == HTTP_UNTIL_CLOSE)
		return n;
	b->left -= n;
	if (b->left == 0)
		b->step = b->kind == HTTP_CHUNKED ? DATA_CR : END;
	return n;
}

void http_body_init(struct http_body *b, const struct http_head *h, uint64_t max)
{
	*b = (struct http_body){ .kind = h->body, .max = max };
	switch (h->body) {
	case HTTP_NO_BODY:
		b->step = END;
		break;
	case HTTP_LENGTH:
		b->left = h->length;
		b->step = h->length > 0 ? DATA : END;
		b->error = h->length > max ? HTTP_E_BODY_LARGE : 0;
		break;
	case HTTP_CHUNKED:
		b->step = SIZE;
		break;
	case HTTP_UNTIL_CLOSE:
		b->step = DATA;
		break;
	}
}

int http_body_feed(struct http_body *b, const char *buf, size_t len, struct http_piece *out)
{
	size_t i = 0;

	*out = (struct http_piece){ 0 };
	while (b->error == 0 && b->step != DATA && b->step != END && i < len)
		b->error = step_over(b, buf[i++]);
	if (b->error == 0 && b->step == DATA && i < len)
		i += take_data(b, buf + i, len - i, &out->data);
	out->consumed = i;
	if (b->error < 0)
		return b->error;
	return b->step == END ? HTTP_BODY_DONE : HTTP_BODY_MORE;
}

int http_body_eof(const struct http_body *b)
{
	if (b->error < 0)
		return b->error;
	return b->step == END || b->kind == HTTP_UNTIL_CLOSE ? HTTP_BODY_DONE : HTTP_E_CUT;
}
