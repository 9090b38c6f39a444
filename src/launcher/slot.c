#include "launcher/slot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/unix.h"

#define GATE SLOT_COUNT /* the byte after the slots; then those of workspaces */

int slot_own_dir(const char *path, mode_t mode, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int dir = os_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = 0;

	if (dir == -ENOENT) {
		r = os_mkdirat(AT_FDCWD, path, mode);
		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make %s", path);
		if (r == 0)
			(void)chmod(path, mode); /* whatever the umask; it is new and ours */
		dir = os_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	if (dir < 0)
		return err_sys(e, -dir, "open %s", path);
	r = os_fstatat(dir, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "stat %s", path);
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return err_new(e, ERR_DENIED,
		               "%s belongs to somebody else or is writable by others", path);
	char self[32];
	snprintf(self, sizeof self, "/proc/self/fd/%d", dir);
	if ((st.st_mode & 0777) != mode && chmod(self, mode) < 0) /* made by hand, or long ago */
		return err_sys(e, errno, "open %s to those who pass", path);
	return fd_take(&dir);
}

int slot_run_dir(bool is_root, struct err *e)
{
	char path[PATH_TEXT_MAX];
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n = 0;

	if (is_root)
		snprintf(path, sizeof path, "/run/caisson");
	else if (runtime && runtime[0] == '/' && access(runtime, W_OK) == 0)
		n = snprintf(path, sizeof path, "%s/caisson", runtime);
	else
		snprintf(path, sizeof path, "/tmp/caisson-%u", geteuid());
	if (n < 0 || (size_t)n >= sizeof path)
		return err_new(e, ERR_INVALID, "XDG_RUNTIME_DIR is too long a path");
	return slot_own_dir(path, 0711, e); /* others pass, to the skeleton, and see nothing */
}

int slot_open(int run_fd, struct err *e)
{
	int fd = os_openat(run_fd, "slots", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	return fd < 0 ? err_sys(e, -fd, "open the lock file") : fd;
}

int slot_share(int slots_fd, struct err *e)
{
	int r = os_lock_shared(slots_fd, GATE);

	return r < 0 ? err_sys(e, -r, "lock the run folder") : 0;
}

bool slot_alone(int slots_fd)
{
	return os_lock_byte(slots_fd, GATE) == 0;
}

bool slot_take_this(int slots_fd, int slot)
{
	return os_lock_byte(slots_fd, slot) == 0;
}

int slot_take(int slots_fd, struct err *e)
{
	static unsigned int taken; /* a launcher that makes many need not pass by them each time */
	int first = (int)(((unsigned int)getpid() + taken++) % SLOT_COUNT);

	if (slot_share(slots_fd, e) < 0)
		return -1;
	for (int i = 0; i < SLOT_COUNT; i++) {
		int slot = (first + i) % SLOT_COUNT;
		int r = os_lock_byte(slots_fd, slot);

		if (r == 0)
			return slot;
		if (r != -EAGAIN)
			return err_sys(e, -r, "lock a slot");
	}
	return err_new(e, ERR_LIMIT, "all %d slots are in use", SLOT_COUNT);
}

void slot_release(int slots_fd, int slot)
{
	(void)os_unlock_byte(slots_fd, slot); /* closing the file does the same */
}

/* ---- workspaces ---------------------------------------------------------------------- */

uint64_t slot_work_byte(int work)
{
	return (uint64_t)GATE + 1 + (uint64_t)work;
}

uint32_t slot_work_id(int work)
{
	return SLOT_WORK_ID_BASE + (uint32_t)work * SLOT_ID_COUNT;
}

int slot_share_work(int slots_fd, int work, struct err *e)
{
	int r = os_lock_shared(slots_fd, (off_t)slot_work_byte(work));

	return r < 0 ? err_sys(e, -r, "lock the ids of a workspace") : 0;
}

int slot_take_work(int slots_fd, struct err *e)
{
	static unsigned int taken; /* one that was left a moment ago may still be unmounted */
	int first = (int)(((unsigned int)getpid() + taken++) % SLOT_WORK_COUNT);

	for (int i = 0; i < SLOT_WORK_COUNT; i++) {
		int work = (first + i) % SLOT_WORK_COUNT;
		int r = os_lock_byte(slots_fd, (off_t)slot_work_byte(work));

		if (r == 0) /* the kernel turns the one lock into the other; nobody comes between */
			return slot_share_work(slots_fd, work, e) < 0 ? -1 : work;
		if (r != -EAGAIN)
			return err_sys(e, -r, "lock the ids of a workspace");
	}
	return err_new(e, ERR_LIMIT, "%d workspaces are open", SLOT_WORK_COUNT);
}

bool slot_work_is_free(int slots_fd, int work)
{
	return os_byte_locked(slots_fd, (off_t)slot_work_byte(work)) == 0;
}

uint32_t slot_end_wait_ms(int slot)
{
	return (uint32_t)slot / SLOT_ENDS_AT_ONCE * 20; /* 1.3 s at most */
}

bool slot_is_id(uid_t id)
{
	const struct {
		uint32_t base, count;
	} rows[] = { { SLOT_ID_BASE, SLOT_COUNT }, { SLOT_WORK_ID_BASE, SLOT_WORK_COUNT } };

	for (size_t i = 0; i < COUNT(rows); i++)
		if (id >= rows[i].base && (id - rows[i].base) / SLOT_ID_COUNT < rows[i].count)
			return true;
	return false;
}

/* ---- monitors ------------------------------------------------------------------------- */

#define NOTE_NAME_MAX 48 /* wire/launch.h: LAUNCH_NAME_MAX */

struct slot_note {
	int64_t pid;
	uint64_t born; /* in ticks since the boot; the run folder does not outlive that */
	char name[NOTE_NAME_MAX];
};

/* proc(5): the 22nd field of stat, the 20th after the name. 0: no such process. */
static uint64_t born_at(pid_t pid)
{
	char path[32], text[1024];
	unsigned long long born = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at + 2,
	                  "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
	                  "%*d %*d %llu",
	                  &born) != 1)
		return 0;
	return born;
}

static int notes_open(int run_fd)
{
	return os_openat(run_fd, "monitors", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

int slot_note_monitor(int run_fd, int slot, pid_t pid, const char *name)
{
	struct slot_note n = { .pid = pid, .born = born_at(pid) };
	AUTO(fd_close) int fd = notes_open(run_fd);

	if (fd < 0 || n.born == 0)
		return fd < 0 ? fd : -ESRCH;
	snprintf(n.name, sizeof n.name, "%s", name);
	int r = os_pwrite2(fd, &n, sizeof n, NULL, 0, (off_t)slot * (off_t)sizeof n);
	return r < 0 ? r : 0;
}

/* The pidfd first: if what it opened is the one that was noted then, it is that one for ever. */
int slot_find_monitor(int run_fd, int slot, const char *name)
{
	struct slot_note n = { 0 };
	AUTO(fd_close) int fd = notes_open(run_fd);
	int r = fd < 0 ? fd : os_pread(fd, &n, sizeof n, (off_t)slot * (off_t)sizeof n);

	if (r < 0)
		return r;
	if (r != (int)sizeof n || n.pid <= 0 || strncmp(n.name, name, sizeof n.name) != 0)
		return -ESRCH;
	AUTO(fd_close) int pidfd = os_pidfd_open((pid_t)n.pid);
	if (pidfd < 0)
		return pidfd;
	return born_at((pid_t)n.pid) == n.born ? fd_take(&pidfd) : -ESRCH;
}
