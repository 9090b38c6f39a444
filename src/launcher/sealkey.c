#include "launcher/sealkey.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/node.h"
#include "os/secret.h"

#define FILE_NAME "gate.key"
#define NEW FILE_NAME ".new"
#define KEY_BYTES 32
#define ENV "env:"
#define TEXT_MAX 256 /* more is no key */

/* ---- the file ------------------------------------------------------------------------ */

static int write_new(int fd, struct err *e)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t key[KEY_BYTES];
	char text[2 * KEY_BYTES + 1];
	int r = getrandom(key, sizeof key, 0) == (ssize_t)sizeof key ? 0 : -errno;

	for (size_t i = 0; i < sizeof key; i++) {
		text[2 * i] = digits[key[i] >> 4];
		text[2 * i + 1] = digits[key[i] & 15];
	}
	text[2 * sizeof key] = '\n';
	if (r >= 0)
		r = os_write_all(fd, text, sizeof text);
	if (r >= 0)
		r = os_fsync(fd);
	explicit_bzero(key, sizeof key);
	explicit_bzero(text, sizeof text);
	return r < 0 ? err_sys(e, -r, "write " FILE_NAME) : 0;
}

/* Under another name first: half a key would be one that nobody can open anything with. */
static int make_file(int state_fd, struct err *e)
{
	int r = os_unlinkat(state_fd, NEW); /* of one that died here */

	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "remove " NEW);
	AUTO(fd_close)
	int fd = os_openat(state_fd, NEW, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, -fd, "make " NEW);
	if (write_new(fd, e) < 0)
		return -1;
	r = os_renameat2((struct os_names){ state_fd, NEW, state_fd, FILE_NAME }, RENAME_NOREPLACE);
	if (r >= 0)
		r = os_fsync(state_fd);
	return r < 0 ? err_sys(e, -r, "make " FILE_NAME) : 0;
}

/* Somebody else's file, or one that others can read, is no secret. */
static int check_file(int fd, struct err *e)
{
	struct stat st;
	int r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "stat " FILE_NAME);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077 || st.st_nlink != 1)
		return err_new(e, ERR_DENIED,
		               FILE_NAME " in the state folder is another's, or open to others");
	return 0;
}

static int open_file(int state_fd, struct err *e)
{
	int fd = os_openat(state_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW, 0);

	if (fd == -ENOENT && make_file(state_fd, e) < 0)
		return -1;
	if (fd == -ENOENT)
		fd = os_openat(state_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open " FILE_NAME);
	AUTO(fd_close) int own = fd;

	return check_file(own, e) < 0 ? -1 : fd_take(&own);
}

/* ---- elsewhere ----------------------------------------------------------------------- */

static int hold(const void *text, size_t n, struct err *e)
{
	AUTO(fd_close) int fd = os_memfd("seal key");
	int r = fd < 0 ? fd : os_pwrite2(fd, text, n, NULL, 0, 0);

	return r < 0 ? err_sys(e, -r, "hold the key") : fd_take(&fd);
}

static int taken_fd = -1; /* what a variable held */

static int open_env(const char *name, struct err *e)
{
	if (taken_fd < 0)
		return err_new(e, ERR_NOT_FOUND, "the key of the gate: there is no variable %s",
		               name);
	int fd = fcntl(taken_fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? err_sys(e, errno, "the key of the gate") : fd;
}

int sealkey_take(const char *source, struct err *e)
{
	const char *name = source && strncmp(source, ENV, strlen(ENV)) == 0 ? source + 4 : NULL;
	char *text = name ? getenv(name) : NULL;

	if (!text)
		return 0; /* who needs it says so */
	taken_fd = hold(text, strlen(text), e);
	explicit_bzero(text, strlen(text)); /* it is shown by /proc, too */
	unsetenv(name);
	return taken_fd < 0 ? -1 : 0;
}

static int open_keyring(const char *name, struct err *e)
{
	char text[TEXT_MAX];
	int n = os_keyring_read(name, text, sizeof text);

	if (n < 0)
		return err_sys(e, -n, "the key of the gate: read %s of the keyring", name);
	int fd = hold(text, (size_t)n < sizeof text ? (size_t)n : sizeof text, e);

	explicit_bzero(text, sizeof text);
	return fd;
}

int sealkey_open(int state_fd, const char *source, struct err *e)
{
	static const struct {
		const char *prefix;
		int (*open)(const char *name, struct err *e);
	} sources[] = { { ENV, open_env }, { "keyring:", open_keyring } };

	if (!source)
		return open_file(state_fd, e);
	for (size_t i = 0; i < COUNT(sources); i++) {
		size_t n = strlen(sources[i].prefix);

		if (strncmp(source, sources[i].prefix, n) == 0)
			return sources[i].open(source + n, e);
	}
	return err_new(e, ERR_INVALID, "the key of the gate: wants env:NAME or keyring:NAME");
}
