#include "launcher/slot.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/unix.h"

#define GATE "gate"
#define NAME_BYTES sizeof((struct slot_lock *)0)->name
#define TRIES 8 /* against others who remove what is opened here */

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

/* ---- the folder of lock files --------------------------------------------------------- */

/* Versions before had a file of that name, with a lock on a byte for each number: whoever held
 * one still has the number, and this version would not see it. */
static int remove_old(int run_fd, struct err *e)
{
	char self[32], path[PATH_TEXT_MAX];
	AUTO(fd_close) int file = os_openat(run_fd, "slots", O_RDWR | O_NOFOLLOW, 0);

	if (file == -ENOENT || file == -EISDIR) /* another launcher was here before us */
		return 0;
	int r = file < 0 ? file : os_any_locked(file);
	if (r == 1) {
		snprintf(self, sizeof self, "/proc/self/fd/%d", run_fd);
		if (os_readlinkat(AT_FDCWD, self, path, sizeof path) < 0)
			snprintf(path, sizeof path, "the run folder");
		return err_new(e, ERR_DENIED,
		               "sandboxes of an older version live and hold %s/slots; end them, "
		               "or: fuser -k %s/slots",
		               path, path);
	}
	if (r >= 0)
		r = os_unlinkat(run_fd, "slots");
	return r < 0 && r != -ENOENT && r != -EISDIR ? err_sys(e, -r, "replace the lock file") : 0;
}

int slot_open(int run_fd, struct err *e)
{
	int fd = -ENOTDIR;

	for (int i = 0; i < TRIES && fd == -ENOTDIR; i++) {
		int r = os_mkdirat(run_fd, "slots", 0700);

		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make the folder of lock files");
		fd = os_openat(run_fd, "slots", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd == -ENOTDIR && remove_old(run_fd, e) < 0)
			return -1;
	}
	return fd < 0 ? err_sys(e, -fd, "open the folder of lock files") : fd;
}

static bool is_number(const char *name)
{
	const char *digits = name[0] == 'w' ? name + 1 : name;

	return digits[0] && strspn(digits, "0123456789") == strlen(digits);
}

/* False as soon as `look` says so, or when the folder cannot be opened. */
static bool each_number(int slots_fd, bool (*look)(int slots_fd, const char *name))
{
	int again = os_openat(slots_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	bool is_good = dir != NULL;

	for (struct dirent *d = dir ? readdir(dir) : NULL; d && is_good; d = readdir(dir))
		is_good = !is_number(d->d_name) || look(slots_fd, d->d_name);
	if (dir)
		closedir(dir);
	return is_good;
}

static bool is_free(int slots_fd, const char *name)
{
	AUTO(fd_close) int fd = os_openat(slots_fd, name, O_RDONLY | O_NOFOLLOW, 0);

	return fd == -ENOENT || (fd >= 0 && os_any_locked(fd) == 0);
}

/* ---- the gate -------------------------------------------------------------------------- */

int slot_share(int slots_fd, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(slots_fd, GATE, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_lock_shared(fd, 0);

	return r < 0 ? err_sys(e, -r, "lock the run folder") : fd_take(&fd);
}

/* The share goes first: of two launchers that ask at once, one is to be alone. */
bool slot_alone(int slots_fd, int gate_fd)
{
	(void)os_unlock_byte(gate_fd, 0);
	if (os_lock_byte(gate_fd, 0) < 0)
		return false;
	if (each_number(slots_fd, is_free))
		return true;
	(void)os_unlock_byte(gate_fd, 0); /* closing it does the same */
	return false;
}

/* ---- numbers --------------------------------------------------------------------------- */

static void slot_name(int slot, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%d", slot);
}

static void work_name(int work, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "w%d", work);
}

static bool has_name(int fd)
{
	struct stat st;

	return os_fstatat(fd, "", &st, AT_EMPTY_PATH) >= 0 && st.st_nlink > 0;
}

/* A description with an exclusive lock; -EAGAIN: somebody has the number. */
static int lock_file(int slots_fd, const char *name, int how)
{
	for (int i = 0; i < TRIES; i++) {
		AUTO(fd_close)
		int fd = os_openat(slots_fd, name, O_RDWR | O_NOFOLLOW | how, 0600);
		int r = fd < 0 ? fd : os_lock_byte(fd, 0);

		if (r < 0)
			return r;
		if (has_name(fd)) /* else whoever had it removed it before we had the lock */
			return fd_take(&fd);
	}
	return -EAGAIN;
}

/* A description with a shared lock, and no right to more. */
static int share_file(int slots_fd, const char *name)
{
	AUTO(fd_close) int fd = os_openat(slots_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	int r = fd < 0 ? fd : os_lock_shared(fd, 0);

	return r < 0 ? r : fd_take(&fd);
}

static void add_lock(struct slot_locks *l, const char *name, int own_fd, int given_fd)
{
	struct slot_lock *lock = &l->at[l->n++];

	assert(l->n <= SLOT_LOCKS_MAX);
	*lock = (struct slot_lock){ .own_fd = own_fd, .given_fd = given_fd };
	snprintf(lock->name, sizeof lock->name, "%s", name);
}

/* 0 or -errno; -EAGAIN: somebody has it. */
static int take_number(int slots_fd, const char *name, struct slot_locks *l)
{
	AUTO(fd_close) int own = lock_file(slots_fd, name, O_CREAT);
	/* The kernel turns the one lock into the other: nobody comes between. */
	int r = own < 0 ? own : os_lock_shared(own, 0);
	int given = r < 0 ? r : share_file(slots_fd, name);

	if (given < 0)
		return given;
	add_lock(l, name, fd_take(&own), given);
	return 0;
}

/* True when nobody has the number, and nobody made the file anew. */
static bool remove_file(int slots_fd, const char *name)
{
	AUTO(fd_close) int fd = lock_file(slots_fd, name, 0);

	if (fd >= 0)
		(void)os_unlinkat(slots_fd, name); /* or it stays: free all the same */
	return fd >= 0 || fd == -ENOENT;
}

static bool remove_if_free(int slots_fd, const char *name)
{
	(void)remove_file(slots_fd, name);
	return true;
}

void slot_remove_free(int slots_fd)
{
	(void)each_number(slots_fd, remove_if_free);
}

bool slot_take_this(int slots_fd, int slot, struct slot_locks *l)
{
	char name[NAME_BYTES];

	slot_name(slot, name);
	int fd = lock_file(slots_fd, name, O_CREAT);
	if (fd >= 0)
		add_lock(l, name, fd, -1);
	return fd >= 0;
}

int slot_take(int slots_fd, struct slot_locks *l, struct err *e)
{
	static unsigned int taken; /* a launcher that makes many need not pass by them each time */
	int first = (int)(((unsigned int)getpid() + taken++) % SLOT_COUNT);

	for (int i = 0; i < SLOT_COUNT; i++) {
		int slot = (first + i) % SLOT_COUNT;
		char name[NAME_BYTES];

		slot_name(slot, name);
		int r = take_number(slots_fd, name, l);
		if (r == 0)
			return slot;
		if (r != -EAGAIN)
			return err_sys(e, -r, "lock a slot");
	}
	return err_new(e, ERR_LIMIT, "all %d slots are in use", SLOT_COUNT);
}

void slot_locks_give(struct slot_locks *l)
{
	for (size_t i = 0; i < l->n; i++)
		fd_close(&l->at[i].given_fd);
}

void slot_locks_done(struct slot_locks *l)
{
	slot_locks_give(l);
	while (l->n > 0)
		fd_close(&l->at[--l->n].own_fd);
}

void slot_locks_end(int slots_fd, struct slot_locks *l)
{
	slot_locks_give(l);
	for (size_t i = 0; i < l->n; i++) /* of a workspace that others have, the lock fails */
		if (os_lock_byte(l->at[i].own_fd, 0) >= 0)
			(void)os_unlinkat(slots_fd, l->at[i].name);
	slot_locks_done(l);
}

/* ---- workspaces ---------------------------------------------------------------------- */

uint32_t slot_work_id(int work)
{
	return SLOT_WORK_ID_BASE + (uint32_t)work * SLOT_ID_COUNT;
}

int slot_share_work(int slots_fd, int work, struct slot_locks *l, struct err *e)
{
	char name[NAME_BYTES];

	work_name(work, name);
	AUTO(fd_close) int own = share_file(slots_fd, name);
	int given = own < 0 ? own : share_file(slots_fd, name);
	if (given < 0)
		return err_sys(e, -given, "lock the ids of a workspace");
	add_lock(l, name, fd_take(&own), given);
	return 0;
}

int slot_take_work(int slots_fd, struct slot_locks *l, struct err *e)
{
	static unsigned int taken; /* one that was left a moment ago may still be unmounted */
	int first = (int)(((unsigned int)getpid() + taken++) % SLOT_WORK_COUNT);

	for (int i = 0; i < SLOT_WORK_COUNT; i++) {
		int work = (first + i) % SLOT_WORK_COUNT;
		char name[NAME_BYTES];

		work_name(work, name);
		int r = take_number(slots_fd, name, l);
		if (r == 0)
			return work;
		if (r != -EAGAIN)
			return err_sys(e, -r, "lock the ids of a workspace");
	}
	return err_new(e, ERR_LIMIT, "%d workspaces are open", SLOT_WORK_COUNT);
}

bool slot_work_is_free(int slots_fd, int work)
{
	char name[NAME_BYTES];

	work_name(work, name);
	return is_free(slots_fd, name);
}

bool slot_work_clear(int slots_fd, int work)
{
	char name[NAME_BYTES];

	work_name(work, name);
	return remove_file(slots_fd, name);
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
