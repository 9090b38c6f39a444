/*
 * test_box.h - a kept sandbox for tests of the monitor: what a launcher would make, and a client.
 *
 * Root mode when the test runs as root, else rootless. The ids are those behind the last slot, the
 * cgroup is named after the test's process.
 */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/copytree.h"
#include "engine/skeleton.h"
#include "io/log.h"
#include "monitor/ask.h"
#include "monitor/monitor.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/unix.h"
#include "test.h"
#include "wire/channel.h"

struct test_box {
	struct spec spec;
	struct plan plan;
	struct box box;
	char folder[64];
	int folder_fd;
	pid_t monitor_pid;
	int fd; /* the client's */
	struct channel_packet packet;
};

/* A test that wants another image: gets its root before anybody else. */
static void (*box_image)(int root_fd) __attribute__((unused));

static inline void box_check(int r, const struct err *e)
{
	if (r < 0)
		CHECK_STR(e->msg, "");
}

/* caisson-init lies where the test does. */
static inline int box_init_program(void)
{
	char path[PATH_MAX];

	if (os_readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path - 32) < 0)
		return -1;
	memcpy(strrchr(path, '/'), "/caisson-init", sizeof "/caisson-init");
	return open(path, O_RDONLY | O_CLOEXEC);
}

static inline void box_plan(struct test_box *t, const char *const *flags)
{
	struct err e = { 0 };

	spec_init(&t->spec);
	for (; *flags; flags += 2)
		box_check(spec_flag(&t->spec, flags[0], flags[1], &e), &e);
	box_check(spec_check(&t->spec, &e), &e);
	spec_resolve(&t->spec);
	box_check(plan_make(&t->plan, &t->spec, &e), &e);
	if (t->plan.limits[LIMIT_IDLE] == 0)
		t->plan.limits[LIMIT_IDLE] = 60000; /* a test that fails leaves nobody behind */
}

static bool box_has_no_freezer; /* as where no cgroup was handed to the user */

static inline void box_cgroup(struct test_box *t)
{
	char name[16];
	struct err e = { 0 };

	CHECK_INT(cgroup_find(&t->box.cgroup, t->box.is_root), 0);
	if (t->box.is_kept && !box_has_no_freezer)
		cgroup_keep(&t->box.cgroup);
	snprintf(name, sizeof name, "t%d", getpid());
	int r = cgroup_prepare(&t->box.cgroup, name, &e);
	if (r < 0 && e.sys == EBUSY && !t->box.is_root)
		SKIP("needs a delegated cgroup with nobody else in it");
	box_check(r, &e);
}

static inline void box_go(struct test_box *t)
{
	const struct channel_head go = { .type = CH_GO };
	int keys[CGROUP_KEYS_MAX];
	struct err e = { 0 };

	box_check(cgroup_make(&t->box.cgroup, t->box.uid, &e), &e);
	box_check(cgroup_limit(&t->box.cgroup, t->plan.limits, &e), &e);
	size_t n = cgroup_keys(&t->box.cgroup, keys, COUNT(keys));
	CHECK_INT(os_send(t->fd, &go, sizeof go, keys, n), sizeof go);
}

/* Up to a running monitor; the client has not heard anything yet. `prepare` (or NULL) adds to the
 * plan and the box. */
static inline void box_start_with(struct test_box *t, bool is_kept, const char *const *flags,
                                  void (*prepare)(void))
{
	struct err e = { 0 };
	int fds[2];

	*t = (struct test_box){ .fd = -1 };
	snprintf(t->folder, sizeof t->folder, "/tmp/test-box-XXXXXX");
	CHECK(mkdtemp(t->folder));
	CHECK_INT(chmod(t->folder, 0711), 0);
	t->folder_fd = open(t->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	box_plan(t, flags);
	bool is_root = geteuid() == 0;
	/* Of its own: processes are counted by id, and other tests have hundreds. */
	uint32_t base = 0x40000000u + (uint32_t)(getpid() & 0xfff) * 2 * BOX_IDS;
	t->box = (struct box){ .plan = &t->plan,
		               .is_root = is_root,
		               .is_kept = is_kept,
		               .id = "sb_test",
		               .id_base = is_root ? base : 0,
		               .uid = is_root ? base + BOX_IDS : geteuid(),
		               .gid = is_root ? base + BOX_IDS : getegid(),
		               .listen_fd = -1,
		               .init_exe_fd = box_init_program(),
		               .skeleton_tree_fd = -1,
		               .image_tree_fd = -1,
		               .nodes_tree_fd = -1 };
	if (t->box.init_exe_fd < 0)
		SKIP("needs caisson-init beside the test");
	for (size_t i = 0; i < FS_ENTRIES_MAX; i++)
		t->box.mount_tree_fds[i] = -1;
	if (prepare)
		prepare();
	if (is_kept)
		t->box.listen_fd = os_listen_at(t->folder_fd, "door", SOCK_SEQPACKET, 0600);
	t->box.skeleton_fd = skeleton_open(t->folder_fd, &e);
	box_check(t->box.skeleton_fd, &e);
	if (box_image)
		box_image(t->box.skeleton_fd);
	t->box.is_plain = root_is_plain(&t->plan, t->box.skeleton_fd);
	CHECK(t->box.is_plain);
	if (is_root)
		t->box.skeleton_tree_fd = os_open_tree(t->box.skeleton_fd, "", false);
	box_cgroup(t);
	os_cpus_all(&t->box.cpus);
	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	fflush(NULL);
	t->monitor_pid = cgroup_clone(&t->box.cgroup);
	CHECK(t->monitor_pid >= 0);
	if (t->monitor_pid == 0) {
		close(fds[0]);
		monitor_main(&t->box, fds[1]);
	}
	close(fds[1]);
	t->fd = fds[0];
	box_go(t);
}

static inline void box_start(struct test_box *t, bool is_kept, const char *const *flags)
{
	box_start_with(t, is_kept, flags, NULL);
}

static inline void box_end(struct test_box *t)
{
	int status;

	fd_close(&t->fd);
	fd_close(&t->box.listen_fd);
	if (t->monitor_pid > 0)
		CHECK_INT(waitpid(t->monitor_pid, &status, 0), t->monitor_pid);
	if (cgroup_remove(&t->box.cgroup) > 0)
		CHECK_INT(cgroup_kill(&t->box.cgroup, TEST_WAIT_MS), 0);
	CHECK_INT(cgroup_remove(&t->box.cgroup), 0);
	cgroup_done(&t->box.cgroup);
	fd_close(&t->box.init_exe_fd);
	fd_close(&t->box.skeleton_fd);
	fd_close(&t->box.skeleton_tree_fd);
	fd_close(&t->folder_fd);
	copytree_remove(AT_FDCWD, t->folder);
	plan_done(&t->plan);
	spec_done(&t->spec);
}

/* ---- the client -------------------------------------------------------------------- */

static inline void box_say(struct test_box *t, enum channel_type type, uint32_t num,
                           const void *bytes, size_t n)
{
	struct channel_packet p;

	p.head = (struct channel_head){ .type = type, .len = (uint32_t)n, .num = num };
	if (n > 0)
		memcpy(p.data, bytes, n);
	CHECK_INT(send(t->fd, &p, sizeof p.head + n, MSG_NOSIGNAL), sizeof p.head + n);
}

/* The next message is in t->packet; false at the end of the channel. */
static inline bool box_hear(struct test_box *t, int timeout_ms)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };

	CHECK_INT(poll(&p, 1, timeout_ms), 1);
	ssize_t n = recv(t->fd, &t->packet, sizeof t->packet, 0);
	if (n <= 0)
		return false;
	CHECK_INT(t->packet.head.len, n - (ssize_t)sizeof t->packet.head);
	return true;
}

/* Skips what else is said. */
static inline void box_await(struct test_box *t, enum channel_type type, uint32_t num)
{
	do {
		CHECK(box_hear(t, TEST_WAIT_MS));
		if (t->packet.head.type == CH_FAIL && type != CH_FAIL)
			printf("# failed: %s\n", ((struct err *)(void *)t->packet.data)->msg);
		CHECK(t->packet.head.type != CH_FAIL || type == CH_FAIL);
		if (t->packet.head.type == CH_END && type != CH_END)
			printf("# ended: %s\n",
			       ((struct channel_gone *)(void *)t->packet.data)->reason);
	} while (t->packet.head.type != type || t->packet.head.num != num);
}

static inline struct channel_end box_await_exit(struct test_box *t, uint32_t num)
{
	struct channel_end end;

	box_await(t, CH_EXIT, num);
	CHECK(channel_end_read(&end, t->packet.data, t->packet.head.len));
	return end;
}

static inline void box_connect(struct test_box *t)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	snprintf(to.sun_path, sizeof to.sun_path, "%s/door", t->folder);
	fd_close(&t->fd);
	t->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK_INT(connect(t->fd, (struct sockaddr *)&to, sizeof to), 0);
}

/* Returns the log; the caller closes it. */
static inline int box_exec(struct test_box *t, uint32_t num, struct command_ask ask)
{
	struct command c;
	struct err e = { 0 };
	int log = memfd_create("log", MFD_CLOEXEC);

	if (ask.uid == 0 && ask.gid == 0) {
		ask.uid = t->plan.uid;
		ask.gid = t->plan.gid;
	}
	box_check(command_make(&c, &t->spec, ask, &e), &e);
	box_check(ask_exec(t->fd, num, &c, log, &e), &e);
	command_done(&c);
	return log;
}

#define ARGV(...) ((char *const[]){ __VA_ARGS__, NULL })

static inline int box_sh(struct test_box *t, uint32_t num, const char *script)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
		               (char *)(uintptr_t)script, NULL };

	return box_exec(t, num, (struct command_ask){ .argv = argv, .wants_usage = true });
}

/* All bytes of one stream of a log, as text. */
static inline const char *box_text(int log, enum log_stream which)
{
	static char text[1 << 20];
	static unsigned char bytes[LOG_FRAME_DATA_MAX];
	uint64_t at = LOG_FRAMES_AT, skipped;
	size_t n = 0;
	struct log_frame f;

	while (log_next(log, &at, &f, bytes, &skipped) == 1) {
		if (f.stream != which || n + f.len >= sizeof text)
			continue;
		memcpy(text + n, bytes, f.len);
		n += f.len;
	}
	text[n] = '\0';
	return text;
}
