#include "core/spool.h"

#include <fcntl.h>

#include "base/fd.h"
#include "os/file.h"
#include "test.h"

static char dir[] = "/tmp/caisson-spool-XXXXXX";

static struct {
	size_t n;
	uint64_t nums[64];
	char lives[64][LEDGER_LIFE_SIZE];
} seen;

static void found(void *arg, const char *life, const struct ledger_append *packet, size_t n)
{
	CHECK(arg == &seen);
	CHECK(ledger_append_check(packet, n));
	CHECK_STR(packet->data, "{\"a\":1}");
	snprintf(seen.lives[seen.n], LEDGER_LIFE_SIZE, "%s", life);
	seen.nums[seen.n++] = packet->num;
}

static void open_it(struct spool *s)
{
	struct err e = { 0 };

	seen.n = 0;
	CHECK_INT(spool_open(s, dir, found, &seen, &e), 0);
}

static bool added(struct spool *s, const char *life, uint64_t num)
{
	union ledger_packet p = {
		.append = { .type = LEDGER_APPEND, .kind = LEDGER_EXEC_STARTED, .num = num }
	};
	size_t n = sizeof p.append + sizeof "{\"a\":1}";

	memcpy(p.append.data, "{\"a\":1}", sizeof "{\"a\":1}");
	return spool_add(s, life, &p.append, n);
}

static void add(struct spool *s, const char *life, uint64_t num)
{
	CHECK(added(s, life, num));
}

static char *path(void)
{
	static char text[64];

	snprintf(text, sizeof text, "%s/ledger.spool", dir);
	return text;
}

static void begin(void)
{
	CHECK(mkdtemp(dir));
}

static void end(void)
{
	(void)unlink(path());
	CHECK_INT(rmdir(dir), 0);
}

TEST(what_was_said_is_found_by_the_next_one_in_order)
{
	struct spool s;

	begin();
	open_it(&s);
	CHECK_INT((long long)seen.n, 0);
	for (uint64_t i = 1; i <= 3; i++)
		add(&s, "aa", i);
	add(&s, "bb", 1);
	spool_close(&s);
	open_it(&s);
	CHECK_INT((long long)seen.n, 4);
	for (size_t i = 0; i < 3; i++) {
		CHECK_INT((long long)seen.nums[i], (long long)i + 1);
		CHECK_STR(seen.lives[i], "aa");
	}
	CHECK_STR(seen.lives[3], "bb");
	add(&s, "cc", 1); /* behind them: they are not acknowledged yet */
	spool_close(&s);
	open_it(&s);
	CHECK_INT((long long)seen.n, 5);
	spool_close(&s);
	end();
}

TEST(what_was_acknowledged_is_said_no_more)
{
	struct spool s;

	begin();
	open_it(&s);
	add(&s, "aa", 1);
	spool_clear(&s); /* little: it stays, and is known by its number */
	CHECK(s.bytes > 0);
	spool_close(&s);
	open_it(&s);
	CHECK_INT((long long)seen.n, 1);
	spool_clear(&s); /* of one before us: once */
	CHECK_INT((long long)s.bytes, 0);
	for (uint64_t i = 1; s.bytes < SPOOL_KEPT; i++)
		add(&s, "bb", i);
	spool_clear(&s);
	CHECK_INT((long long)s.bytes, 0);
	spool_close(&s);
	open_it(&s);
	CHECK_INT((long long)seen.n, 0);
	spool_close(&s);
	end();
}

TEST(a_torn_end_ends_it_wherever_it_was_torn)
{
	struct spool s;

	begin();
	open_it(&s);
	add(&s, "aa", 1);
	uint64_t one = s.bytes;

	add(&s, "aa", 2);
	uint64_t two = s.bytes;

	spool_close(&s);
	for (uint64_t size = two; size-- > one;) {
		CHECK_INT(truncate(path(), (off_t)size), 0);
		open_it(&s);
		CHECK_INT((long long)seen.n, 1);
		spool_close(&s);
	}
	end();
}

TEST(bytes_of_others_are_not_said)
{
	static const char junk[] = "this is not what a daemon wrote, but it is long enough for one";
	AUTO(fd_close) int fd = -1;
	struct spool s;

	begin();
	fd = open(path(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(write(fd, junk, sizeof junk), sizeof junk);
	open_it(&s);
	CHECK_INT((long long)seen.n, 0);
	spool_close(&s);
	end();
}

TEST(it_has_a_bound_and_a_full_disk_is_no_error)
{
	struct spool s;

	begin();
	open_it(&s);
	s.bytes = SPOOL_BYTES_MAX;
	CHECK(!added(&s, "aa", 1)); /* who says it knows that no file has it */
	CHECK_INT((long long)s.bytes, SPOOL_BYTES_MAX);
	s.bytes = 0;
	fd_close(&s.fd); /* there is none any more */
	CHECK(!added(&s, "aa", 1));
	CHECK_INT((long long)s.bytes, 0);
	spool_clear(&s);
	spool_close(&s);
	end();
}
