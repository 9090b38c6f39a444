#include "launcher/standby.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "io/program.h"
#include "launcher/launcher.h"
#include "launcher/server.h"
#include "test.h"

static struct standby c;
static struct loop loop;
static char state[] = "/tmp/caisson-test-XXXXXX";

static void begin(void)
{
	char path[PATH_MAX];
	struct err e = { 0 };

	if (program_find("caisson-cache", path, &e) < 0)
		SKIP("needs caisson-cache beside the test");
	CHECK(mkdtemp(state));
	CHECK_INT(loop_init(&loop), 0);
	c = (struct standby){ .program = "caisson-cache",
		              .folder = "cache",
		              .title = "the package cache",
		              .socket_type = SOCK_STREAM,
		              .n_pairs = 2,
		              .is_root = geteuid() == 0,
		              .id = SERVER_ID + 2,
		              .state_fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		              .loop = &loop };
	CHECK_INT(standby_open(&c, &e), 0);
}

/* One turn of the loop. */
static void turn(void)
{
	struct epoll_event ev[4];
	int n = epoll_wait(loop.epoll_fd, ev, COUNT(ev), 1000);

	for (int i = 0; i < n && c.pid == 0; i++)
		((struct watch *)ev[i].data.ptr)->ready(ev[i].data.ptr, ev[i].events);
}

/* What it answers to a question. */
static const char *ask(const char *question)
{
	static char text[4096];
	struct err e = { 0 };
	AUTO(fd_close) int fd = standby_ask(&c, &e);
	size_t n = 0;
	ssize_t r;

	CHECK(fd >= 0);
	if (c.pid == 0)
		turn();
	CHECK(c.pid > 0);
	CHECK_INT(send(fd, question, strlen(question), MSG_NOSIGNAL), (long)strlen(question));
	while ((r = recv(fd, text + n, sizeof text - 1 - n, 0)) > 0)
		n += (size_t)r;
	text[n] = '\0';
	return text;
}

static void kill_cache(uint64_t now_ms)
{
	int status;

	CHECK_INT(kill(c.pid, SIGKILL), 0);
	CHECK_INT(waitpid(c.pid, &status, 0), c.pid);
	standby_ended(&c, now_ms);
}

static void end(void)
{
	char path[64];
	pid_t pid = c.pid;

	standby_done(&c);
	if (pid > 0)
		CHECK_INT(waitpid(pid, NULL, 0), pid); /* it ends with us */
	for (const char *const *f =
	         (const char *const[]){ "cache/blobs", "cache/urls", "cache/meta", "cache", NULL };
	     *f; f++) {
		snprintf(path, sizeof path, "%s/%s", state, *f);
		CHECK_INT(rmdir(path), 0);
	}
	CHECK_INT(rmdir(state), 0);
	loop_close(&loop);
	fd_close(&c.state_fd);
}

TEST(it_starts_when_it_is_wanted_and_comes_back)
{
	begin();
	CHECK_INT(c.pid, 0);
	CHECK(strstr(ask("{\"op\":\"list\",\"limit\":10}\n"), "\"entries\":[]"));
	pid_t first = c.pid;

	CHECK(strstr(ask("{\"op\":\"gc\",\"max\":0}\n"), "\"removed\":0"));
	CHECK(strstr(ask("{\"op\":\"verify\"}\n"), "\"checked\":0"));
	CHECK(strstr(ask("{\"op\":\"dance\"}\n"), "\"error\""));
	CHECK(strstr(ask("nonsense\n"), "\"error\""));
	CHECK_INT(c.pid, first);
	uint64_t now = c.started_ms + 10;

	kill_cache(now);
	CHECK(standby_due(&c) > now && standby_due(&c) < now + 1000);
	standby_tick(&c, now); /* not yet */
	CHECK(standby_due(&c) != UINT64_MAX);
	standby_tick(&c, standby_due(&c));
	CHECK(standby_due(&c) == UINT64_MAX);
	CHECK(strstr(ask("{\"op\":\"list\",\"limit\":10}\n"), "\"entries\":[]"));
	CHECK(c.pid != first);
	end();
}

TEST(what_comes_while_it_is_dead_waits)
{
	struct err e = { 0 };
	char text[256] = "";

	begin();
	(void)ask("{\"op\":\"list\",\"limit\":1}\n");
	kill_cache(c.started_ms + 5000);
	AUTO(fd_close) int fd = standby_ask(&c, &e);
	CHECK(fd >= 0);
	CHECK_INT(send(fd, "{\"op\":\"list\"}\n", 14, MSG_NOSIGNAL), 14);
	standby_tick(&c, standby_due(&c));
	turn();
	CHECK(recv(fd, text, sizeof text - 1, 0) > 0);
	CHECK(strstr(text, "entries"));
	end();
}

TEST(its_folder_is_its_own)
{
	char path[64];
	struct stat st;

	begin();
	(void)ask("{\"op\":\"list\"}\n");
	snprintf(path, sizeof path, "%s/cache", state);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0700);
	CHECK_INT(st.st_uid, geteuid() == 0 ? SERVER_ID + 2 : geteuid());
	end();
}

TEST(a_folder_of_somebody_else_is_left_alone)
{
	char path[64];
	struct err e = { 0 };

	begin();
	snprintf(path, sizeof path, "%s/cache", state);
	CHECK_INT(symlink("/etc", path), 0);
	AUTO(fd_close) int fd = standby_ask(&c, &e);
	turn();
	CHECK_INT(c.pid, 0);
	CHECK(standby_due(&c) != UINT64_MAX);
	CHECK_INT(unlink(path), 0);
	standby_done(&c);
	CHECK_INT(rmdir(state), 0);
}
