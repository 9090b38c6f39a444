#include "wire/stream.h"

#include "test.h"

TEST(a_frame_comes_back_as_it_was)
{
	unsigned char buf[STREAM_HEAD + 300];
	struct stream_frame f;

	stream_head(buf, STREAM_OUT, 300);
	memset(buf + STREAM_HEAD, 'x', 300);
	for (size_t n = 0; n < sizeof buf; n++)
		CHECK_INT(stream_parse(buf, n, &f), 0);
	CHECK_INT(stream_parse(buf, sizeof buf, &f), sizeof buf);
	CHECK(f.type == STREAM_OUT && f.len == 300 && f.data == buf + STREAM_HEAD);
}

TEST(nonsense_is_known_at_its_first_byte)
{
	static const unsigned char wrong[][STREAM_HEAD] = {
		{ 0 },
		{ 'q' },
		{ 'O', 1 },
		{ 'O', 0, 0, 1 },
		{ 'O', 0, 0, 0, 0xff, 0xff, 0xff, 0xff },
		{ 'O', 0, 0, 0, 0, 1, 0, 1 },
	};
	struct stream_frame f;

	for (size_t i = 0; i < COUNT(wrong); i++)
		CHECK_INT(stream_parse(wrong[i], STREAM_HEAD, &f), -1);
	CHECK_INT(stream_parse("G", 1, &f), 0);
	CHECK_INT(stream_parse("H", 1, &f), -1);
}
