#include "gate/names.h"

#include <sys/mman.h>

#include "base/fd.h"
#include "os/extent.h"
#include "test.h"

enum { ENTRY_SIZE = 256, HEAD_SIZE = 64, AT_VERSION = 8, AT_COUNT = 12, AT_SEQ = 16 };

static int new_memfd(void)
{
	int fd = os_memfd("names");

	CHECK(fd >= 0);
	return fd;
}

static void open_names(struct names *t, int fd)
{
	struct err e = { 0 };

	if (names_open(t, fd, &e) < 0)
		CHECK_STR(e.msg, "");
}

static void check_given(struct names *t, const char *name, uint8_t c, uint8_t d)
{
	uint8_t got[4] = { 0 };

	CHECK(names_give(t, name, got));
	CHECK_INT(got[0], 198);
	CHECK_INT(got[1], 18);
	CHECK_INT(got[2], c);
	CHECK_INT(got[3], d);
	CHECK_STR(names_find(t, got), name);
}

TEST(an_address_for_each_name_and_back)
{
	AUTO(fd_close) int fd = new_memfd();
	AUTO(names_done) struct names t;

	open_names(&t, fd);
	CHECK_INT(names_count(&t), 0);
	check_given(&t, "a.test", 0, 2);
	check_given(&t, "b.test", 0, 3);
	check_given(&t, "a.test", 0, 2);
	check_given(&t, "c.test", 0, 4);
	CHECK_INT(names_count(&t), 3);
}

TEST(an_address_that_was_not_given_has_no_name)
{
	static const uint8_t rows[][4] = {
		{ 198, 18, 0, 0 }, { 198, 18, 0, 1 },     { 198, 18, 0, 3 },
		{ 198, 18, 1, 2 }, { 198, 17, 255, 255 }, { 198, 19, 0, 2 },
		{ 127, 0, 0, 1 },  { 0, 0, 0, 0 },        { 255, 255, 255, 255 },
	};
	AUTO(fd_close) int fd = new_memfd();
	AUTO(names_done) struct names t;

	open_names(&t, fd);
	check_given(&t, "a.test", 0, 2);
	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK(!names_find(&t, rows[i]));
	CHECK(memcmp(NAMES_RESOLVER, rows[1], 4) == 0);
}

TEST(the_next_child_means_the_same)
{
	AUTO(fd_close) int fd = new_memfd();
	struct names t;

	open_names(&t, fd);
	check_given(&t, "a.test", 0, 2);
	check_given(&t, "b.test", 0, 3);
	CHECK_INT(names_next_seq(&t), 1);
	CHECK_INT(names_next_seq(&t), 2);
	names_done(&t);
	names_done(&t);
	open_names(&t, fd);
	CHECK_INT(names_count(&t), 2);
	CHECK_INT(names_next_seq(&t), 3);
	check_given(&t, "c.test", 0, 4);
	check_given(&t, "b.test", 0, 3);
	check_given(&t, "a.test", 0, 2);
	names_done(&t);
}

/* As if it had been killed between the name and the count. */
TEST(a_name_without_its_count_is_none)
{
	AUTO(fd_close) int fd = new_memfd();
	struct names t;

	open_names(&t, fd);
	check_given(&t, "a.test", 0, 2);
	names_done(&t);
	CHECK_INT(os_pwrite2(fd, "half.te", 7, NULL, 0, HEAD_SIZE + ENTRY_SIZE), 0);
	open_names(&t, fd);
	CHECK_INT(names_count(&t), 1);
	check_given(&t, "b.test", 0, 3);
	names_done(&t);
	open_names(&t, fd);
	check_given(&t, "c.test", 0, 4);
	check_given(&t, "b.test", 0, 3);
	names_done(&t);
}

/* As if the first child had been killed before it wrote the head. */
TEST(a_table_of_zeros_is_new)
{
	AUTO(fd_close) int fd = new_memfd();
	struct names t;

	open_names(&t, fd);
	names_done(&t);
	CHECK_INT(os_pwrite2(fd, "\0\0\0\0\0\0\0\0", 8, NULL, 0, 0), 0);
	open_names(&t, fd);
	check_given(&t, "a.test", 0, 2);
	names_done(&t);
}

TEST(it_is_full_at_last)
{
	AUTO(fd_close) int fd = new_memfd();
	AUTO(names_done) struct names t;
	uint8_t addr[4] = { 0 };
	char name[32];

	open_names(&t, fd);
	for (int i = 0; i < NAMES_MAX; i++) {
		snprintf(name, sizeof name, "n%d.test", i);
		CHECK(names_give(&t, name, addr));
	}
	CHECK_INT(addr[1], 19); /* 198.18.0.2 + 65535 */
	CHECK_INT(addr[2], 0);
	CHECK_INT(addr[3], 1);
	CHECK(!names_give(&t, "one-more.test", addr));
	CHECK_INT(names_count(&t), NAMES_MAX);
	check_given(&t, "n0.test", 0, 2);
	check_given(&t, "n254.test", 1, 0);
	CHECK(!names_find(&t, (const uint8_t[4]){ 198, 19, 0, 2 }));
	struct names again;

	open_names(&again, fd);
	check_given(&again, "n65000.test", 253, 234);
	CHECK(!names_give(&again, "one-more.test", addr));
	names_done(&again);
}

TEST(too_long_is_refused)
{
	AUTO(fd_close) int fd = new_memfd();
	AUTO(names_done) struct names t;
	char name[GATE_NAME_SIZE + 1];
	uint8_t addr[4];

	memset(name, 'a', sizeof name);
	name[GATE_NAME_SIZE] = '\0';
	open_names(&t, fd);
	CHECK(!names_give(&t, name, addr));
	CHECK_INT(names_count(&t), 0);
}

static void check_damaged(const void *bytes, size_t n, off_t at)
{
	AUTO(fd_close) int fd = new_memfd();
	struct names t, kept = { 0 };
	struct err e = { 0 };

	open_names(&t, fd);
	check_given(&t, "a.test", 0, 2);
	check_given(&t, "b.test", 0, 3);
	names_done(&t);
	CHECK_INT(os_pwrite2(fd, bytes, n, NULL, 0, at), 0);
	CHECK_INT(names_open(&kept, fd, &e), -1);
	printf("# %s\n", e.msg);
	CHECK(!kept.map);
}

/* A child that was taken over can write what it likes; the next one does not follow it. */
TEST(a_damaged_table_is_refused)
{
	char full[ENTRY_SIZE];

	memset(full, 'a', sizeof full);
	check_damaged("x", 1, 0);
	check_damaged("\0\0\0\0\0\0\0\0", 8, 0); /* no magic, but entries */
	check_damaged("\2", 1, AT_VERSION);
	check_damaged("\1\0\1\0", 4, AT_COUNT); /* 65,537 */
	check_damaged("\3", 1, AT_COUNT);       /* the third is empty */
	check_damaged("\xff\xff\xff\xff\xff\xff\xff\xff", 8, AT_SEQ);
	check_damaged("A", 1, HEAD_SIZE);
	check_damaged("\0", 1, HEAD_SIZE);
	check_damaged("a b.te", 6, HEAD_SIZE);
	check_damaged("10.0.0.1", 9, HEAD_SIZE);
	check_damaged("a.test.", 8, HEAD_SIZE);
	check_damaged("a.test", 7, HEAD_SIZE + ENTRY_SIZE); /* twice */
	check_damaged(full, sizeof full, HEAD_SIZE);
}

TEST(a_table_of_another_size_is_refused)
{
	AUTO(fd_close) int fd = new_memfd();
	struct names t = { 0 };
	struct err e = { 0 };

	CHECK_INT(os_ftruncate(fd, 4096), 0);
	CHECK_INT(names_open(&t, fd, &e), -1);
	CHECK(strstr(e.msg, "another size"));
	CHECK_INT(names_open(&t, -1, &e), -1);
}
