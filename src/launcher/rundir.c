#include "launcher/rundir.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/fd.h"
#include "base/limits.h"
#include "launcher/slot.h"
#include "os/file.h"
#include "os/net.h"
#include "os/sock.h"
#include "os/unix.h"

#define STALE_MS_MAX 10000
#define STATE_MODE 01770 /* root mode; sticky: who owns a name in it keeps it */
#define AWAY_MAX 4096    /* as many as can wait */
#define AWAY                                                                                       \
	"{\"code\":\"sandbox_unavailable\",\"status\":503,\"detail\":\"the daemon was about to "   \
	"end\",\"retry_safe\":true}"
#define AWAY_BYTES 100
#define AWAY_LEN "100"

/* ---- folders ----------------------------------------------------------------------- */

static int make_parents(const char *path, struct err *e)
{
	char part[PATH_TEXT_MAX];
	int n = snprintf(part, sizeof part, "%s", path);

	if (path[0] != '/' || n < 0 || (size_t)n >= sizeof part)
		return err_new(e, ERR_INVALID, "%s: not an absolute path, or too long", path);
	for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		int r = os_mkdirat(AT_FDCWD, part, 0755);
		*at = '/';
		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make a folder above %s", path);
	}
	return 0;
}

static bool is_empty(int fd)
{
	int again = os_openat(fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n == 2; /* . and .. */
}

/* In root mode, as the daemon is to find it. */
static bool is_handed_over(const struct stat *st, const struct rundir_opts *o)
{
	return st->st_uid == 0 && st->st_gid == (gid_t)o->service_id &&
	       (st->st_mode & 07777) == STATE_MODE;
}

/* A folder of root's with something in it is not ours to give away: a slip of the keyboard
 * would hand over /etc. */
static int hand_over(int fd, const struct rundir_opts *o, struct err *e)
{
	struct stat st;
	uid_t owner = o->is_root ? o->service_id : geteuid();
	int r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "stat %s", o->state);
	if (o->is_root && is_handed_over(&st, o))
		return 0;
	if (st.st_uid != owner && !(st.st_uid == geteuid() && is_empty(fd)))
		return err_new(e, ERR_DENIED, "%s belongs to somebody else", o->state);
	if (o->is_root)
		r = os_fchownat(fd, "", 0, (gid_t)o->service_id);
	if (r >= 0)
		r = fchmod(fd, o->is_root ? STATE_MODE : 0700) < 0 ? -errno : 0;
	return r < 0 ? err_sys(e, -r, "hand over %s", o->state) : 0;
}

/* Whoever else could write to it could have files of his own mounted with root's rights, or read as
 * packages. One that was made before and is still empty may be given to whom it is for. */
int rundir_own(int dir_fd, const char *name, uid_t owner, struct err *e)
{
	struct stat st;
	int r = os_mkdirat(dir_fd, name, 0700);

	if (r < 0 && r != -EEXIST)
		return err_sys(e, -r, "make %s", name);
	AUTO(fd_close) int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open %s", name);
	r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "stat %s", name);
	bool is_to_give = st.st_uid != owner && st.st_uid == geteuid() && is_empty(fd);
	if ((st.st_uid != owner && !is_to_give) || st.st_mode & 077)
		return err_new(e, ERR_DENIED, "%s belongs to somebody else or is open to others",
		               name);
	r = is_to_give ? os_fchownat(fd, "", owner, (gid_t)owner) : 0;
	return r < 0 ? err_sys(e, -r, "hand over %s", name) : fd_take(&fd);
}

static int open_stores(struct rundir *d, struct err *e)
{
	const struct {
		int dir_fd;
		const char *name;
		int *fd;
	} stores[] = { { d->state_fd, "trees", &d->trees_fd },
		       { d->state_fd, "blobs", &d->blobs_fd },
		       { d->state_fd, "vol", &d->vol_fd },
		       { d->run_fd, "vt", &d->vt_fd } };

	for (size_t i = 0; i < COUNT(stores); i++) {
		*stores[i].fd = rundir_own(stores[i].dir_fd, stores[i].name, geteuid(), e);
		if (*stores[i].fd < 0)
			return -1;
	}
	return 0;
}

static int open_state(const struct rundir_opts *o, struct err *e)
{
	if (make_parents(o->state, e) < 0)
		return -1;
	int r = os_mkdirat(AT_FDCWD, o->state, 0700);
	if (r < 0 && r != -EEXIST)
		return err_sys(e, -r, "make %s", o->state);
	AUTO(fd_close)
	int fd = os_openat(AT_FDCWD, o->state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open %s", o->state);
	if (hand_over(fd, o, e) < 0)
		return -1;
	return fd_take(&fd);
}

/* Root's: a name in it that the daemon could replace would be chowned by root. */
static int open_sb(const struct rundir *d, const struct rundir_opts *o, struct err *e)
{
	struct stat st;
	int r = os_mkdirat(d->run_fd, "sb", 0700);

	if (r < 0 && r != -EEXIST)
		return err_sys(e, -r, "make sb");
	AUTO(fd_close)
	int fd = os_openat(d->run_fd, "sb", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open sb");
	r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r >= 0 && st.st_uid != geteuid())
		return err_new(e, ERR_DENIED, "sb in %s belongs to somebody else", o->run);
	if (r >= 0 && o->is_root)
		r = os_fchownat(fd, "", 0, (gid_t)o->service_id);
	if (r >= 0)
		r = fchmod(fd, o->is_root ? 0750 : 0700) < 0 ? -errno : 0;
	return r < 0 ? err_sys(e, -r, "prepare sb") : fd_take(&fd);
}

static int take_lock(struct rundir *d, const char *run, struct err *e)
{
	d->lock_fd = os_openat(d->run_fd, "launcher.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (d->lock_fd < 0)
		return err_sys(e, -d->lock_fd, "open launcher.lock");
	int r = os_lock_process(d->lock_fd); /* no child of a dead launcher may have it */
	if (r == -EAGAIN) {
		err_new(e, ERR_DENIED, "another launcher has %s", run);
		err_advise(e, ADVICE_RUNS_ALREADY);
		e->sys = EBUSY;
		return -1;
	}
	return r < 0 ? err_sys(e, -r, "lock %s", run) : 0;
}

/* ---- the socket of the API --------------------------------------------------------- */

static int take_given(struct rundir *d, int fd, struct err *e)
{
	const struct {
		int option, want;
	} must[] = { { SO_DOMAIN, AF_UNIX }, { SO_TYPE, SOCK_STREAM }, { SO_ACCEPTCONN, 1 } };

	for (size_t i = 0; i < COUNT(must); i++)
		if (os_socket_option(fd, must[i].option) != must[i].want)
			return err_new(e, ERR_INVALID,
			               "the socket that was passed is not a listening unix stream");
	d->api_fd = fd;
	return 0;
}

/* The daemon of a launcher that was killed goes when it notices that: it is given a moment. */
static int knock(int run_fd)
{
	const struct timespec tick = { .tv_nsec = 20000000 };
	int r = 0;

	for (int waited = 0; waited <= STALE_MS_MAX && r >= 0; waited += 20) {
		if (waited > 0)
			nanosleep(&tick, NULL);
		r = os_knock_at(run_fd, "api.sock", SOCK_STREAM);
	}
	return r;
}

/* Somebody's file of that name stays; a socket that nobody answers on is a dead daemon's. */
static int remove_stale(int run_fd, struct err *e)
{
	struct stat st;
	int r = os_fstatat(run_fd, "api.sock", &st, AT_SYMLINK_NOFOLLOW);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "stat api.sock");
	if (!S_ISSOCK(st.st_mode))
		return err_new(e, ERR_DENIED, "api.sock is not a socket");
	r = knock(run_fd);
	if (r >= 0)
		return err_new(e, ERR_DENIED, "somebody else answers on api.sock");
	if (r == -ECONNREFUSED)
		r = os_unlinkat(run_fd, "api.sock");
	return r < 0 ? err_sys(e, -r, "remove a stale api.sock") : 0;
}

static int make_socket(struct rundir *d, const struct rundir_opts *o, struct err *e)
{
	if (remove_stale(d->run_fd, e) < 0)
		return -1;
	d->api_fd = os_listen_at(d->run_fd, "api.sock", SOCK_STREAM, 0600);
	if (d->api_fd < 0)
		return err_sys(e, -d->api_fd, "listen on api.sock");
	d->is_api_ours = true;
	int r = o->is_root ? os_fchownat(d->run_fd, "api.sock", o->service_id, (gid_t)o->service_id)
	                   : 0;
	return r < 0 ? err_sys(e, -r, "hand over api.sock") : 0;
}

/* A connection lends its client's rights only if it was accepted here: by this it is known. */
static int note_file(struct rundir *d, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int file = os_bound_file(d->api_fd);
	int r = file < 0 ? file : os_fstatat(file, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "find the file of the API's socket");
	d->api_dev = st.st_dev;
	d->api_ino = st.st_ino;
	return 0;
}

int rundir_open(struct rundir *d, const struct rundir_opts *o, struct err *e)
{
	*d = (struct rundir){ .is_open = true,
		              .state_fd = -1,
		              .run_fd = -1,
		              .sb_fd = -1,
		              .lock_fd = -1,
		              .trees_fd = -1,
		              .blobs_fd = -1,
		              .vol_fd = -1,
		              .vt_fd = -1,
		              .api_fd = -1 };
	if (make_parents(o->run, e) < 0)
		return -1;
	d->run_fd = slot_own_dir(o->run, 0711, e);
	if (d->run_fd < 0 || take_lock(d, o->run, e) < 0)
		return -1;
	d->state_fd = open_state(o, e);
	if (d->state_fd < 0 || open_stores(d, e) < 0)
		return -1;
	d->sb_fd = open_sb(d, o, e);
	if (d->sb_fd < 0)
		return -1;
	int r = o->api_fd >= 0 ? take_given(d, o->api_fd, e) : make_socket(d, o, e);
	if (r < 0)
		return -1;
	return o->is_root ? note_file(d, e) : 0;
}

/* Who came while the daemon left was heard by nobody. They are told so, whatever they said: then
 * they ask the next one. */
static void turn_away(int api_fd)
{
	static const char answer[] =
	    "HTTP/1.1 503 Service Unavailable\r\n"
	    "Content-Type: application/problem+json\r\n"
	    "Content-Length: " AWAY_LEN "\r\nConnection: close\r\n\r\n" AWAY;
	struct pollfd p = { .fd = api_fd, .events = POLLIN };

	_Static_assert(sizeof AWAY - 1 == AWAY_BYTES, "the length of what is said");
	for (int i = 0; i < AWAY_MAX && poll(&p, 1, 0) > 0; i++) {
		AUTO(fd_close) int fd = os_accept(api_fd);

		if (fd >= 0)
			(void)os_send(fd, answer, sizeof answer - 1, NULL, 0); /* or he has left */
	}
}

void rundir_done(struct rundir *d, bool is_orderly)
{
	if (!d->is_open)
		return;
	d->is_open = false;
	if (d->is_api_ours) {
		(void)os_unlinkat(d->run_fd, "api.sock"); /* else the next one finds it stale */
		if (is_orderly)
			turn_away(d->api_fd);
	}
	fd_close(&d->api_fd);
	fd_close(&d->sb_fd);
	fd_close(&d->trees_fd);
	fd_close(&d->blobs_fd);
	fd_close(&d->vol_fd);
	fd_close(&d->vt_fd);
	fd_close(&d->state_fd);
	fd_close(&d->run_fd);
	fd_close(&d->lock_fd);
}
