#include "base/fd.h"

#include <fcntl.h>

#include "test.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

TEST(scope_closes_what_it_owns)
{
	int number;
	{
		AUTO(fd_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		CHECK(is_open(fd));
		number = fd;
	}
	CHECK(!is_open(number));
}

TEST(take_leaves_nothing_behind)
{
	int kept;
	{
		AUTO(fd_close) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		kept = fd_take(&fd);
		CHECK_INT(fd, -1);
	}
	CHECK(is_open(kept));
	fd_close(&kept);
	CHECK_INT(kept, -1);
}

TEST(close_keeps_errno_and_accepts_none)
{
	int none = -1;
	int wrong = 1 << 20; /* close() sets EBADF */

	errno = EPERM;
	fd_close(&none);
	CHECK_INT(errno, EPERM);
	fd_close(&wrong);
	CHECK_INT(errno, EPERM);
}
