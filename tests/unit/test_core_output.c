#include "core/output.h"

#include <sys/mman.h>

#include "test.h"

static int make_log(struct log_writer *w, uint64_t max)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	CHECK(fd >= 0);
	log_create(w, fd, max);
	return fd;
}

TEST(pieces_come_as_they_were_written_and_more_follow)
{
	struct log_writer w;
	int fd = make_log(&w, 0);
	struct scan s;
	struct scan_piece p;

	scan_init(&s, fd, 0);
	CHECK_INT(scan_next(&s, &p), 0);
	log_add(&w, LOG_OUT, 5, "one", 3);
	log_add(&w, LOG_ERR, 6, "zwei", 4);
	CHECK_INT(scan_next(&s, &p), 1);
	CHECK(p.stream == LOG_OUT && p.ms == 5 && p.len == 3 && memcmp(p.bytes, "one", 3) == 0);
	uint64_t after = p.seq;
	CHECK_INT(scan_next(&s, &p), 1);
	CHECK(p.stream == LOG_ERR && p.len == 4);
	CHECK_INT(scan_next(&s, &p), 0);
	log_add(&w, LOG_OUT, 7, "three", 5);
	CHECK_INT(scan_next(&s, &p), 1);
	CHECK(p.len == 5);
	scan_done(&s);

	/* Who has a position goes on from there. */
	scan_init(&s, fd, after);
	CHECK_INT(scan_next(&s, &p), 1);
	CHECK(memcmp(p.bytes, "zwei", 4) == 0);
	scan_done(&s);
}

TEST(the_hole_of_a_long_log_is_stepped_over_and_counted)
{
	static unsigned char block[LOG_FRAME_DATA_MAX];
	struct log_writer w;
	int fd = make_log(&w, 1u << 20);
	uint64_t got = 0, skipped = 0;
	struct scan s;
	struct scan_piece p;

	memset(block, 'x', sizeof block);
	for (int i = 0; i < 64; i++)
		log_add(&w, LOG_OUT, 0, block, sizeof block);
	scan_init(&s, fd, 0);
	while (scan_next(&s, &p) > 0) {
		got += p.len;
		skipped += s.skipped;
	}
	scan_done(&s);
	CHECK_INT(got + skipped, 64 * sizeof block);
	CHECK(got <= 1u << 20);
	CHECK(skipped > 0);
}

TEST(what_no_writer_wrote_is_refused)
{
	static const struct log_frame wrong[] = {
		{ .len = LOG_FRAME_DATA_MAX + 1, .stream = LOG_OUT },
		{ .len = 1, .stream = LOG_STREAMS },
		{ .len = UINT32_MAX, .stream = UINT32_MAX },
	};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct log_writer w;
		int fd = make_log(&w, 0);
		struct scan s;
		struct scan_piece p;

		CHECK_INT(pwrite(fd, &wrong[i], sizeof wrong[i], LOG_FRAMES_AT), sizeof wrong[i]);
		scan_init(&s, fd, 0);
		CHECK_INT(scan_next(&s, &p), -EPROTO);
		scan_done(&s);
	}
}

TEST(head_and_tail_are_kept_a_turn_at_a_time)
{
	static unsigned char block[LOG_FRAME_DATA_MAX];
	struct log_writer w;
	int fd = make_log(&w, 0);
	struct keep kept[LOG_STREAMS];
	struct scan s;
	size_t turns = 1;

	for (int i = 0; i < 200; i++) /* 12.5 MiB */
		log_add(&w, LOG_OUT, 0, block, sizeof block);
	log_add(&w, LOG_ERR, 0, "last", 4);
	keep_init(&kept[LOG_OUT], 1000);
	keep_init(&kept[LOG_ERR], 1000);
	scan_init(&s, fd, 0);
	while (!output_keep(&s, kept))
		turns++;
	CHECK(turns >= 3);
	CHECK_INT(kept[LOG_OUT].bytes, 200 * sizeof block);
	CHECK_INT(kept[LOG_ERR].bytes, 4);
	CHECK_INT(keep_dropped(&kept[LOG_OUT]), 200 * sizeof block - 1000);
	keep_done(&kept[LOG_OUT]);
	keep_done(&kept[LOG_ERR]);
	scan_done(&s);
}
