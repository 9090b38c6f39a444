#include "io/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/fd.h"
#include "os/file.h"

/* ---- who could have written it ------------------------------------------------------- */

/* The code of whoever owns the program that runs, or a folder above it, runs already if he wants:
 * he could have replaced it. The owner of / is among them. In a container that may be a root that
 * has no number there: then the kernel shows root's files and those of all others alike, and what
 * remains to be judged is who may write. */
static bool owns_what_runs(uid_t uid)
{
	char path[PATH_TEXT_MAX] = "";
	struct stat st;

	if (os_fstatat(AT_FDCWD, "/proc/self/exe", &st, 0) == 0 && st.st_uid == uid)
		return true;
	if (os_readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path) < 0)
		return false;
	for (char *end = strrchr(path, '/'); end; end = strrchr(path, '/')) {
		end[end == path] = '\0';
		if (os_fstatat(AT_FDCWD, path, &st, 0) == 0 && st.st_uid == uid)
			return true;
		if (end == path)
			break;
	}
	return false;
}

static bool is_trusted_owner(uid_t uid)
{
	return uid == 0 || uid == geteuid() || owns_what_runs(uid);
}

/* Nobody renames or removes what is another's in a sticky folder. */
static bool is_closed(const struct stat *st)
{
	bool is_sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);
	bool is_own_group = st->st_gid == 0 || st->st_gid == st->st_uid;

	return is_sticky ||
	       (!(st->st_mode & S_IWOTH) && (is_own_group || !(st->st_mode & S_IWGRP)));
}

static int judge(const struct stat *st, const char *path, struct err *e)
{
	if (!is_trusted_owner(st->st_uid))
		return err_new(e, ERR_DENIED,
		               "%s belongs to user %u: it must be root's or your own", path,
		               (unsigned int)st->st_uid);
	if (!is_closed(st))
		return err_new(e, ERR_DENIED,
		               "%s may be written by others (mode %04o): chmod go-w it", path,
		               (unsigned int)st->st_mode & 07777);
	return 0;
}

/* The next name on the way down, judged; `path` is cut behind it for the message. */
static int step_down(int *dir, char *path, char *name, char *end, struct err *e)
{
	struct stat st;
	char after = *end;

	*end = '\0';
	AUTO(fd_close) int fd = os_openat(*dir, name, O_PATH | O_NOFOLLOW, 0);
	int r = fd < 0 ? fd : os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	r = r < 0 ? err_sys(e, -r, "look at %s", path) : judge(&st, path, e);
	*end = after;
	if (r < 0)
		return -1;
	fd_close(dir);
	*dir = fd_take(&fd);
	return 0;
}

/* From the root to the end of a path without links; returns what is there. */
static int walk_down(char *path, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int at = os_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	int r = at < 0 ? at : os_fstatat(at, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "look at /");
	if (judge(&st, "/", e) < 0)
		return -1;
	for (char *name = path + 1; *name;) {
		char *end = name + strcspn(name, "/");

		if (step_down(&at, path, name, end, e) < 0)
			return -1;
		name = *end ? end + 1 : end;
	}
	return fd_take(&at);
}

static int check(const char *path, char out[PATH_TEXT_MAX], struct stat *st, struct err *e)
{
	char link[32];
	struct stat then;
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_PATH, 0);

	if (fd == -ENOENT || fd == -ENOTDIR)
		return err_new(e, ERR_NOT_FOUND, "there is no %s", path);
	int r = fd < 0 ? fd : os_fstatat(fd, "", &then, AT_EMPTY_PATH);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (r >= 0)
		r = os_readlinkat(AT_FDCWD, link, out, PATH_TEXT_MAX);
	if (r < 0)
		return err_sys(e, -r, "look at %s", path);
	AUTO(fd_close) int again = walk_down(out, e);
	if (again < 0)
		return -1;
	r = os_fstatat(again, "", st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "look at %s", path);
	if (st->st_dev != then.st_dev || st->st_ino != then.st_ino)
		return err_new(e, ERR_DENIED, "%s was replaced meanwhile", path);
	return 0;
}

int program_check(const char *path, char out[PATH_TEXT_MAX], struct err *e)
{
	struct stat st;

	if (check(path, out, &st, e) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || access(out, X_OK) < 0)
		return err_new(e, ERR_NOT_FOUND, "%s cannot be executed", path);
	return 0;
}

bool program_is_safe_dir(const char *path)
{
	char real[PATH_TEXT_MAX];
	struct stat st;
	struct err e;

	return path[0] == '/' && check(path, real, &st, &e) == 0 && S_ISDIR(st.st_mode);
}

/* ---- ours ---------------------------------------------------------------------------- */

int program_find(const char *name, char out[PATH_TEXT_MAX], struct err *e)
{
	static const char *const places[] = { "", "../libexec/caisson/" };
	char self[PATH_TEXT_MAX], path[PATH_TEXT_MAX + 64];
	int r = os_readlinkat(AT_FDCWD, "/proc/self/exe", self, sizeof self);

	if (r < 0)
		return err_sys(e, -r, "find our own program");
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < COUNT(places); i++) {
		int n = snprintf(path, sizeof path, "%s/%s%s", self, places[i], name);

		if (n <= 0 || n >= PATH_TEXT_MAX)
			continue;
		if (program_check(path, out, e) == 0)
			return 0;
		if (e->kind != ERR_NOT_FOUND)
			return err_wrap(e, "%s is not started", name);
	}
	err_new(e, ERR_NOT_FOUND,
	        "%s is neither beside this program nor in ../libexec/caisson (seen from %s)", name,
	        self);
	return err_advise(e, ADVICE_PROGRAMS);
}

/* ---- the environment ----------------------------------------------------------------- */

/* A name that ends in `*` stands for all that begin so. Tokens and keys have names of their own:
 * nothing that could be one is here. */
static const char *const kept[] = {
	"HOME", "LANG", "LANGUAGE", "LC_*", "LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID",
	"NOTIFY_SOCKET", "PATH", "TMPDIR", "TZ", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
	"XDG_RUNTIME_DIR", "XDG_STATE_HOME",
	/* builds with sanitizers */
	"ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS",
#ifdef CAISSON_TEST
	"CAISSON_*", /* os/fault.h */
#endif
};

static bool is_kept(const char *name, size_t n)
{
	for (size_t i = 0; i < COUNT(kept); i++) {
		size_t len = strlen(kept[i]);

		if (kept[i][len - 1] == '*' ? n >= len && strncmp(kept[i], name, len - 1) == 0
		                            : n == len && strncmp(kept[i], name, n) == 0)
			return true;
	}
	return false;
}

void program_clean_environment(const char *but)
{
	char **to = environ;

	for (char **from = environ; from && *from; from++) {
		size_t n = strcspn(*from, "=");

		if (is_kept(*from, n) || (but && strlen(but) == n && strncmp(but, *from, n) == 0))
			*to++ = *from;
		else
			explicit_bzero(*from, strlen(*from));
	}
	if (to)
		*to = NULL;
}
