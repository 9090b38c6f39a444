#include "launcher/slot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/file.h"

/* A folder of ours in a place where others may write: it counts only if nobody else owns it. */
static int open_run_dir(const char *path, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int dir = os_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = 0;

	if (dir == -ENOENT) {
		r = os_mkdirat(AT_FDCWD, path,
		               0711); /* others pass, to the skeleton, and see nothing */
		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make %s", path);
		if (r == 0)
			(void)chmod(path,
			            0711); /* whatever the caller's umask; it is new and ours */
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
	return fd_take(&dir);
}

int slot_run_dir(bool is_root, struct err *e)
{
	char path[256];
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (is_root)
		snprintf(path, sizeof path, "/run/caisson");
	else if (runtime && runtime[0] == '/' && access(runtime, W_OK) == 0)
		snprintf(path, sizeof path, "%s/caisson", runtime);
	else
		snprintf(path, sizeof path, "/tmp/caisson-%u", geteuid());
	return open_run_dir(path, e);
}

int slot_open(int run_fd, struct err *e)
{
	int fd = os_openat(run_fd, "slots", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	return fd < 0 ? err_sys(e, -fd, "open the lock file") : fd;
}

bool slot_any_taken(int slots_fd)
{
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		if (os_byte_locked(slots_fd, slot) != 0)
			return true;
	return false;
}

bool slot_take_this(int slots_fd, int slot)
{
	return os_lock_byte(slots_fd, slot) == 0;
}

int slot_take(int slots_fd, struct err *e)
{
	int first = (int)((unsigned int)getpid() % SLOT_COUNT);

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
