#include "io/log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/extent.h"
#include "test.h"

static unsigned char buf[LOG_FRAME_DATA_MAX];

static int make_log(struct log_writer *w, uint64_t max)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	CHECK(fd >= 0);
	log_create(w, fd, max);
	return fd;
}

static uint64_t room_of(int fd)
{
	struct stat st;

	CHECK_INT(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Byte number i of a stream that does not repeat soon. */
static unsigned char byte_at(uint64_t i)
{
	return (unsigned char)(i * 7 + i / 251 + i / 65521);
}

/* ---- writing and reading ----------------------------------------------------------- */

/* Copied whole, padding included. */
static bool is_same(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

TEST(frames_come_out_as_they_went_in)
{
	static const struct {
		enum log_stream stream;
		uint64_t ms;
		const char *text;
	} cases[] = {
		{ LOG_OUT, 0, "one\n" },
		{ LOG_ERR, 7, "two" },
		{ LOG_ERR, 7, "\xff\x80" },
		{ LOG_OUT, 1ull << 40, "four" },
	};
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 0);
	uint64_t at = LOG_FRAMES_AT, skipped;
	struct log_frame f;

	CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 0); /* an empty file is an empty log */
	for (size_t i = 0; i < COUNT(cases); i++)
		log_add(&w, cases[i].stream, cases[i].ms, cases[i].text, strlen(cases[i].text));
	for (size_t i = 0; i < COUNT(cases); i++) {
		CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 1);
		CHECK_INT(f.stream, cases[i].stream);
		CHECK_INT(f.ms, cases[i].ms);
		CHECK_INT(f.len, strlen(cases[i].text));
		CHECK_INT(memcmp(buf, cases[i].text, f.len), 0);
		CHECK_INT(skipped, 0);
	}
	CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 0);
	CHECK_INT(at, w.at);
	log_add(&w, LOG_OUT, 1, "more", 4); /* who waits at the end goes on there */
	CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 1);
	CHECK_INT(memcmp(buf, "more", 4), 0);
}

TEST(nothing_is_no_frame)
{
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 0);

	log_add(&w, LOG_OUT, 0, "", 0);
	CHECK_INT(w.at, LOG_FRAMES_AT);
	CHECK(fd >= 0);
}

TEST(the_end_is_there_when_it_was_written)
{
	struct channel_end end = { .state = RUN_SIGNALED,
		                   .exit_code = -1,
		                   .signal = 11,
		                   .n_execs = 2,
		                   .execs = { "a b", "c" } };
	struct channel_end out;
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 0);

	CHECK_INT(log_end(fd, &out), 0);
	log_add(&w, LOG_OUT, 0, "x", 1);
	CHECK_INT(log_end(fd, &out), 0);
	CHECK_INT(log_close(&w, &end), 0);
	CHECK_INT(log_end(fd, &out), 1);
	CHECK(is_same(&out, &end, sizeof end));
	log_add(&w, LOG_OUT, 0, "y", 1); /* what its children write comes after */
	CHECK_INT(log_end(fd, &out), 1);
}

TEST(an_end_that_was_cut_off_is_none)
{
	struct channel_end end = { .state = RUN_EXITED }, out;
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 0);

	/* The magic is written last; without it nothing was said. */
	CHECK_INT(os_pwrite2(fd, &end, sizeof end, NULL, 0, offsetof(struct log_head, end)), 0);
	CHECK_INT(log_end(fd, &out), 0);
}

/* ---- head and tail ----------------------------------------------------------------- */

/* Writes `total` bytes in pieces, then reads: the head, a jump, the tail, each byte where it was.
 */
static void check_kept(uint64_t total, size_t piece, uint64_t max)
{
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, max);
	uint64_t at = LOG_FRAMES_AT, skipped, read_bytes = 0, jumps = 0;
	struct log_frame f;
	struct log_hole hole;
	AUTO(freep) unsigned char *bytes = mem_alloc(piece);

	for (uint64_t done = 0; done < total;) {
		size_t n = total - done < piece ? (size_t)(total - done) : piece;

		for (size_t i = 0; i < n; i++)
			bytes[i] = byte_at(done + i);
		log_add(&w, LOG_OUT, 0, bytes, n);
		done += n;
	}
	CHECK_INT(log_hole(fd, &hole), 0);
	while (log_next(fd, &at, &f, buf, &skipped) == 1) {
		if (skipped) {
			CHECK_INT(skipped, hole.to - hole.from);
			read_bytes += hole.bytes;
			jumps++;
		}
		for (uint32_t i = 0; i < f.len; i++)
			CHECK(buf[i] == byte_at(read_bytes + i));
		read_bytes += f.len;
	}
	CHECK_INT(read_bytes, total);
	CHECK_INT(w.dropped, 0);
	CHECK_INT(jumps, hole.to > hole.from);
	if (max) {
		uint64_t stored = w.at - LOG_FRAMES_AT - (hole.to - hole.from);

		CHECK(stored <= max + max / 8 + 2 * (piece + sizeof f));
		CHECK(room_of(fd) <= stored + LOG_FRAMES_AT + 16384);
	}
}

TEST(past_its_size_head_and_tail_are_kept)
{
	static const size_t pieces[] = { 100, 4096, LOG_FRAME_DATA_MAX };
	static const uint64_t sizes[] = { 0, 100000, 1 << 20 };
	static const uint64_t totals[] = { 1000, 110000, 300000, 5000000 };

	for (size_t p = 0; p < COUNT(pieces); p++)
		for (size_t s = 0; s < COUNT(sizes); s++)
			for (size_t t = 0; t < COUNT(totals); t++)
				check_kept(totals[t], pieces[p], sizes[s]);
}

/* Positions stay what they are: a reader who was in the middle is told how much it missed. */
TEST(a_reader_in_the_hole_jumps_to_its_end)
{
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 200000);
	uint64_t at = LOG_FRAMES_AT, skipped, before;
	struct log_frame f;

	memset(buf, 'x', 1000);
	for (int i = 0; i < 150; i++)
		log_add(&w, LOG_OUT, 0, buf, 1000);
	for (int i = 0; i < 120; i++)
		CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 1);
	before = at;
	for (int i = 0; i < 1000; i++)
		log_add(&w, LOG_OUT, 0, buf, 1000);
	CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 1);
	CHECK_INT(skipped, w.hole.to - before);
	CHECK_INT(at, w.hole.to + sizeof f + 1000);
}

/* A reader at the tail of a log that another process writes: nothing but whole frames, in order. */
TEST(a_reader_beside_a_writer_sees_whole_frames)
{
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 300000);
	uint64_t at = LOG_FRAMES_AT, skipped, last = 0;
	struct log_frame f;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		for (uint64_t i = 1; i <= 30000; i++) {
			memset(buf, (int)(i % 251), 300);
			log_add(&w, LOG_OUT, i, buf, 1 + i % 300);
		}
		_exit(0);
	}
	while (last < 30000) {
		int r = log_next(fd, &at, &f, buf, &skipped);

		CHECK(r >= 0);
		if (r == 0)
			continue;
		CHECK(f.ms > last && (skipped || f.ms == last + 1));
		last = f.ms;
		CHECK_INT(f.len, 1 + last % 300);
		for (uint32_t i = 0; i < f.len; i++)
			CHECK_INT(buf[i], last % 251);
	}
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

/* ---- trouble ----------------------------------------------------------------------- */

TEST(a_full_disk_drops_whole_frames_and_counts)
{
	struct rlimit tight = { LOG_FRAMES_AT + 1000, LOG_FRAMES_AT + 1000 };
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 0);
	uint64_t at = LOG_FRAMES_AT, skipped;
	struct log_frame f;

	signal(SIGXFSZ, SIG_IGN);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &tight), 0);
	log_add(&w, LOG_OUT, 0, buf, 500);
	log_add(&w, LOG_OUT, 1, buf, 5000); /* half of it would fit */
	log_add(&w, LOG_OUT, 2, buf, 100);
	CHECK_INT(w.dropped, 5000);
	CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 1);
	CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 1);
	CHECK_INT(f.ms, 2);
	CHECK_INT(f.len, 100);
	CHECK_INT(log_next(fd, &at, &f, buf, &skipped), 0);
}

TEST(what_no_writer_of_ours_has_written_is_refused)
{
	static const struct {
		struct log_frame frame;
		int want;
	} cases[] = {
		{ { 0, LOG_OUT, 0 }, -EPROTO },
		{ { LOG_FRAME_DATA_MAX + 1, LOG_OUT, 0 }, -EPROTO },
		{ { UINT32_MAX, LOG_OUT, 0 }, -EPROTO },
		{ { 1, LOG_STREAMS, 0 }, -EPROTO },
		{ { 1, UINT32_MAX, 0 }, -EPROTO },
		{ { 9, LOG_OUT, 0 }, 0 }, /* not whole yet: eight bytes follow */
		{ { 8, LOG_OUT, 0 }, 1 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct log_writer w;
		AUTO(fd_close) int fd = make_log(&w, 0);
		uint64_t at = LOG_FRAMES_AT, skipped;
		struct log_frame f;

		printf("# case %zu\n", i);
		CHECK_INT(os_pwrite2(fd, &cases[i].frame, sizeof f, "12345678", 8, LOG_FRAMES_AT),
		          0);
		CHECK_INT(log_next(fd, &at, &f, buf, &skipped), cases[i].want);
	}
}

TEST(a_head_out_of_range_is_refused)
{
	static const struct log_hole holes[] = {
		{ LOG_FRAMES_AT + 9, LOG_FRAMES_AT, 0 },
		{ 1, LOG_FRAMES_AT, 0 },
		{ LOG_FRAMES_AT, UINT64_MAX, 0 },
		{ UINT64_MAX, 0, 0 },
	};

	for (size_t i = 0; i < COUNT(holes); i++) {
		struct log_writer w;
		AUTO(fd_close) int fd = make_log(&w, 0);
		uint64_t at = LOG_FRAMES_AT, skipped;
		struct log_frame f;

		printf("# case %zu\n", i);
		CHECK_INT(os_pwrite2(fd, &holes[i], sizeof holes[i], NULL, 0,
		                     offsetof(struct log_head, hole)),
		          0);
		log_add(&w, LOG_OUT, 0, "x", 1);
		CHECK_INT(log_next(fd, &at, &f, buf, &skipped), -EPROTO);
	}
}

TEST(a_position_outside_the_frames_is_refused_or_at_the_end)
{
	struct log_writer w;
	AUTO(fd_close) int fd = make_log(&w, 0);
	uint64_t skipped;
	struct log_frame f;

	log_add(&w, LOG_OUT, 0, "x", 1);
	for (uint64_t at = 0; at < LOG_FRAMES_AT; at += 4095) {
		uint64_t from = at;

		CHECK_INT(log_next(fd, &from, &f, buf, &skipped), -EPROTO);
	}
	uint64_t far = w.at + 1000;
	CHECK_INT(log_next(fd, &far, &f, buf, &skipped), 0);
	far = UINT64_MAX;
	CHECK_INT(log_next(fd, &far, &f, buf, &skipped), -EPROTO);
}
