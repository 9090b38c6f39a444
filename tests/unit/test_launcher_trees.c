#include "launcher/trees.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "engine/copytree.h"
#include "os/file.h"
#include "test.h"

static char top[64];

/* trees/ as the store has it: what a name ends with is a file, or a folder with a slash. */
static int store_with(const char *const *names)
{
	snprintf(top, sizeof top, "/tmp/test-trees-XXXXXX");
	CHECK(mkdtemp(top));
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	for (; *names; names++) {
		char name[64];
		size_t n = strlen(*names);

		snprintf(name, sizeof name, "%s", *names);
		if (name[n - 1] == '/') {
			name[n - 1] = '\0';
			CHECK_INT(mkdirat(fd, name, 0755), 0);
		} else {
			CHECK_INT(os_make_file(fd, name, "", 0, 0600), 0);
		}
	}
	return fd;
}

#define STORE(...) store_with((const char *const[]){ __VA_ARGS__, NULL })

static void clear(void)
{
	copytree_remove(AT_FDCWD, top);
}

static void check(int trees, uint64_t number, struct trees_want want, const char *message)
{
	struct err e = { 0 };
	AUTO(fd_close) int fd = trees_open(trees, number, want, &e);

	CHECK_STR(e.msg, message);
	CHECK_INT(fd >= 0, message[0] == '\0');
	if (fd >= 0)
		CHECK_INT(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
}

TEST(a_tree_is_opened_for_what_it_is)
{
	const struct trees_want read = { 0 }, write = { .is_writable = true },
				image = { .is_image = true };
	AUTO(fd_close)
	int trees =
	    STORE("7/", "7/d/", "8/", "8/d/", "8/sealed", "9/", "9/d/", "9/w/", "10/", "10/d/",
	          "10/w/", "10/sealed", "18446744073709551615/", "18446744073709551615/d/");
	const struct {
		uint64_t number;
		struct trees_want want;
		const char *message;
	} rows[] = {
		{ 7, read, "" },
		{ 7, write, "" },
		{ 7, image, "tree 7 is not sealed: it is no image yet" },
		{ 8, read, "" },
		{ 8, write, "tree 8 is sealed: it can only be read" },
		{ 8, image, "" },
		{ 9, read, "tree 9 is the top of a workspace" },
		{ 9, write, "tree 9 is the top of a workspace" },
		{ 10, read, "" },
		{ 10, write, "tree 10 is sealed: it can only be read" },
		{ UINT64_MAX, write, "" },
		{ 11, read, "tree 11 does not exist" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		check(trees, rows[i].number, rows[i].want, rows[i].message);
	clear();
}

TEST(what_is_not_a_tree_is_not_opened)
{
	AUTO(fd_close) int trees = STORE("1", "2/", "3/", "3/d", "real/", "real/d/", "5/");
	struct err e = { 0 };

	CHECK_INT(symlinkat("real", trees, "4"), 0);
	CHECK_INT(symlinkat("../real/d", trees, "5/d"), 0);
	check(trees, 2, (struct trees_want){ 0 }, "tree 2 does not exist"); /* half made */
	for (uint64_t i = 1; i <= 5; i++) {
		CHECK_INT(trees_open(trees, i, (struct trees_want){ 0 }, &e), -1);
		printf("# %s\n", e.msg);
	}
	clear();
}
