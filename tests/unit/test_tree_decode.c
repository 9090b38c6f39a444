#include "test_image.h"

struct drops {
	struct span left;
	size_t size;
};

static int drop(void *arg, struct span *out, struct err *e)
{
	struct drops *d = arg;
	size_t n = d->left.len < d->size ? d->left.len : d->size;

	(void)e;
	*out = (struct span){ d->left.at, n };
	d->left = span_after(d->left, n);
	return n > 0;
}

TEST(whatever_the_pieces_the_same_comes_out)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 100, 1 << 20 };
	AUTO(str_done) struct str text = { .max = 1 << 20 };

	for (int i = 0; i < 5000; i++)
		str_addf(&text, "%d ", i * i);
	for (int kind = DECODE_PLAIN; kind < DECODE_KINDS; kind++) {
		AUTO(str_done) struct str packed;

		pack(&packed, text_of(&text), (enum decode_kind)kind);
		for (size_t i = 0; i < COUNT(sizes); i++) {
			AUTO(str_done) struct str out = { .max = 1 << 20 };
			struct drops drops = { text_of(&packed), sizes[i] };
			struct decode d;
			struct err e = { 0 };
			struct span piece;
			int r;

			decode_open(&d, DECODE_AUTO, drop, &drops);
			while ((r = decode_next(&d, &piece, &e)) > 0)
				str_addn(&out, piece.at, piece.len);
			CHECK_INT(r, 0);
			CHECK_STR(str_text(&out), str_text(&text));
			decode_done(&d);
		}
	}
}

TEST(members_of_gzip_follow_each_other)
{
	AUTO(str_done) struct str first, both = { .max = 1 << 16 };
	struct drops drops;
	struct decode d;
	struct err e = { 0 };
	struct span piece;
	size_t n = 0;
	int r;

	pack(&first, span_of("hello "), DECODE_GZIP);
	str_addn(&both, first.data, first.len);
	str_addn(&both, first.data, first.len);
	drops = (struct drops){ text_of(&both), 7 };
	decode_open(&d, DECODE_GZIP, drop, &drops);
	while ((r = decode_next(&d, &piece, &e)) > 0)
		n += piece.len;
	CHECK_INT(r, 0);
	CHECK_INT(n, 12);
	decode_done(&d);
	drops = (struct drops){ span_of("plain text"), 100 };
	decode_open(&d, DECODE_GZIP, drop, &drops);
	CHECK_INT(decode_next(&d, &piece, &e), -1);
	decode_done(&d);
}
