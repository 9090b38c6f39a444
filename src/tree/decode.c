#include "tree/decode.h"

#include "tree/fail.h"
#include "tree/limits.h"

#define OUT_BYTES (128u << 10)

void decode_open(struct decode *d, enum decode_kind kind, decode_source_fn *source, void *arg)
{
	*d = (struct decode){ .kind = kind, .source = source, .arg = arg, .is_between = true };
}

void decode_done(struct decode *d)
{
	if (d->is_begun && d->kind == DECODE_GZIP)
		(void)inflateEnd(&d->gzip);
	ZSTD_freeDStream(d->zstd);
	free(d->out);
	*d = (struct decode){ 0 };
}

/* Until there are bytes, or the source has ended. */
static int fill(struct decode *d, struct err *e)
{
	while (d->in.len == 0 && !d->is_source_done) {
		int r = d->source(d->arg, &d->in, e);

		if (r < 0)
			return -1;
		d->is_source_done = r == 0;
		if (r == 0)
			d->in.len = 0;
		d->n_in += d->in.len;
	}
	return 0;
}

/* ---- what it is ---------------------------------------------------------------------- */

/* clang-format off */
static const struct {
	enum decode_kind kind;
	const char *name, *magic;
	size_t n;
} magics[] = {
	{ DECODE_GZIP, "gzip", "\x1f\x8b",         2 },
	{ DECODE_ZSTD, "zstd", "\x28\xb5\x2f\xfd", 4 },
};
/* clang-format on */

static int read_head(struct decode *d, struct err *e)
{
	while (d->head_len < sizeof d->head) {
		if (fill(d, e) < 0)
			return -1;
		if (d->in.len == 0)
			return 0;
		d->head[d->head_len++] = d->in.at[0];
		d->in = span_after(d->in, 1);
	}
	return 0;
}

static int find_kind(struct decode *d, struct err *e)
{
	enum decode_kind found = DECODE_PLAIN;

	if (read_head(d, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(magics); i++)
		if (d->head_len >= magics[i].n &&
		    memcmp(d->head, magics[i].magic, magics[i].n) == 0)
			found = magics[i].kind;
	if (d->kind == DECODE_AUTO)
		d->kind = found;
	if (d->kind != found)
		return fail(e, TREE_INVALID, "it is not packed as it says");
	return 0;
}

static int begin(struct decode *d, struct err *e)
{
	if (find_kind(d, e) < 0)
		return -1;
	d->out = mem_alloc(OUT_BYTES);
	if (d->kind == DECODE_GZIP && inflateInit2(&d->gzip, 15 + 16) != Z_OK)
		abort(); /* no memory */
	if (d->kind == DECODE_ZSTD && !(d->zstd = ZSTD_createDStream()))
		abort();
	d->is_begun = true;
	return 0;
}

/* ---- pieces -------------------------------------------------------------------------- */

/* The first bytes again, then the rest. */
static int take_input(struct decode *d, struct span *in, struct err *e)
{
	if (d->head_len > 0) {
		*in = (struct span){ d->head, d->head_len };
		return 0;
	}
	if (fill(d, e) < 0)
		return -1;
	*in = d->in;
	return 0;
}

static void used(struct decode *d, struct span in, size_t n)
{
	if (d->head_len == 0) {
		d->in = span_after(d->in, n);
		return;
	}
	memmove(d->head, d->head + n, in.len - n);
	d->head_len -= n;
}

static int gunzip(struct decode *d, struct span *in, size_t *n_out, struct err *e)
{
	if (d->is_between && in->len > 0 && d->n_out > 0 && inflateReset(&d->gzip) != Z_OK)
		abort();
	d->gzip.next_in = (unsigned char *)(uintptr_t)in->at;
	d->gzip.avail_in = (unsigned int)in->len;
	d->gzip.next_out = (unsigned char *)d->out;
	d->gzip.avail_out = OUT_BYTES;
	int r = inflate(&d->gzip, Z_NO_FLUSH);
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return fail(e, TREE_INVALID, "gzip: %s", d->gzip.msg ? d->gzip.msg : "damaged");
	d->is_between = r == Z_STREAM_END;
	in->len -= d->gzip.avail_in;
	*n_out = OUT_BYTES - d->gzip.avail_out;
	return 0;
}

static int unzstd(struct decode *d, struct span *in, size_t *n_out, struct err *e)
{
	ZSTD_inBuffer from = { in->at, in->len, 0 };
	ZSTD_outBuffer to = { d->out, OUT_BYTES, 0 };
	size_t r = ZSTD_decompressStream(d->zstd, &to, &from);

	if (ZSTD_isError(r))
		return fail(e, TREE_INVALID, "zstd: %s", ZSTD_getErrorName(r));
	d->is_between = r == 0;
	in->len = from.pos;
	*n_out = to.pos;
	return 0;
}

/* A little input that becomes much, for longer than any real file does. */
static int check_ratio(const struct decode *d, struct err *e)
{
	if (d->n_out > TREE_RATIO_FREE && d->n_out / TREE_RATIO_MAX > d->n_in)
		return fail(e, TREE_TOO_LARGE, "more than %d bytes from one: refused",
		            TREE_RATIO_MAX);
	return 0;
}

static int plain(struct decode *d, struct span *out, struct err *e)
{
	static char head[sizeof d->head];
	struct span in;

	if (take_input(d, &in, e) < 0)
		return -1;
	if (d->head_len > 0) {
		memcpy(head, in.at, in.len);
		*out = (struct span){ head, in.len };
	} else {
		*out = in;
	}
	used(d, in, in.len);
	d->n_out += out->len;
	return out->len > 0;
}

int decode_next(struct decode *d, struct span *out, struct err *e)
{
	size_t n_out = 0;

	if (!d->is_begun && begin(d, e) < 0)
		return -1;
	if (d->kind == DECODE_PLAIN)
		return plain(d, out, e);
	while (n_out == 0) {
		struct span in, all;

		if (take_input(d, &in, e) < 0)
			return -1;
		if (in.len == 0 && d->is_between)
			return 0;
		all = in;
		if ((d->kind == DECODE_GZIP ? gunzip : unzstd)(d, &in, &n_out, e) < 0)
			return -1;
		used(d, all, in.len);
		if (n_out == 0 && in.len == 0 && all.len == 0)
			return fail(e, TREE_INVALID, "the packed bytes end early");
		d->n_out += n_out;
	}
	*out = (struct span){ d->out, n_out };
	return check_ratio(d, e) < 0 ? -1 : 1;
}
