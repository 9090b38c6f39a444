#include "gate/harden.h"

#include <fcntl.h>
#include <jansson.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "filters.h"
#include "os/file.h"
#include "os/landlock.h"
#include "os/proc.h"
#include "os/seccomp.h"

/* Rights of Landlock's first version; those of later ones are about paths that cannot be opened. */
#define EVERY_RIGHT ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

/* Files and folders, nothing that is executed or is another kind of file. */
#define OWN_RIGHTS                                                                                 \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                            \
	 LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR)

/* Folders are for what replaces files by others: a rule is about a file and not about its name. */
static const char *const readable[] = {
	"/etc/resolv.conf",     "/etc/hosts",      "/etc/ssl/certs", "/etc/pki/tls",
	"/run/systemd/resolve", "/run/resolvconf", "/dev/urandom", /* c-ares numbers its questions
	                                                              by it */
};

static void wiping_free(void *at)
{
	if (at)
		explicit_bzero(at, malloc_usable_size(at));
	free(at);
}

static void *library_alloc(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return malloc(n);
}

static void library_free(void *at, const char *file, int line)
{
	(void)file;
	(void)line;
	wiping_free(at);
}

static void *library_grow(void *at, size_t n, const char *file, int line)
{
	size_t had = at ? malloc_usable_size(at) : 0;
	void *more = malloc(n);

	(void)file;
	(void)line;
	if (!more)
		return NULL;
	if (at)
		memcpy(more, at, had < n ? had : n);
	wiping_free(at);
	return more;
}

void harden_memory(void)
{
	(void)CRYPTO_set_mem_functions(library_alloc, library_grow, library_free);
	json_set_alloc_funcs(malloc, wiping_free);
}

int harden_process(struct err *e)
{
	int r = os_prctl(PR_SET_DUMPABLE, 0);

	if (r >= 0)
		r = os_prctl(PR_SET_NO_NEW_PRIVS, 1);
	if (r >= 0)
		r = os_setrlimit(RLIMIT_CORE, 0, 0);
	if (r >= 0)
		r = os_setrlimit(RLIMIT_NOFILE, RLIM_INFINITY, RLIM_INFINITY);
	return r < 0 ? err_sys(e, -r, "give up rights") : 0;
}

int harden_master(struct err *e)
{
	if (harden_process(e) < 0)
		return -1;
	int r = os_seccomp_load(filter_gate_master, COUNT(filter_gate_master), false);

	return r < 0 ? err_sys(e, -r, "seccomp") : 0;
}

static int allow(int ruleset, const char *path)
{
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_PATH, 0);
	struct stat st;

	if (fd == -ENOENT)
		return 0;
	int r = fd < 0 ? fd : os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	uint64_t rights = LANDLOCK_ACCESS_FS_READ_FILE;

	if (r >= 0 && S_ISDIR(st.st_mode))
		rights |= LANDLOCK_ACCESS_FS_READ_DIR;
	return r < 0 ? r : os_landlock_allow(ruleset, fd, rights);
}

int harden_files(int own_fd, struct err *e)
{
	AUTO(fd_close) int ruleset = os_landlock_ruleset(EVERY_RIGHT, 0);

	if (ruleset < 0)
		return err_sys(e, -ruleset, "landlock");
	for (size_t i = 0; i < COUNT(readable); i++) {
		int r = allow(ruleset, readable[i]);

		if (r < 0)
			return err_sys(e, -r, "allow %s", readable[i]);
	}
	int r = own_fd < 0 ? 0 : os_landlock_allow(ruleset, own_fd, OWN_RIGHTS);

	if (r >= 0)
		r = os_landlock_restrict(ruleset);
	return r < 0 ? err_sys(e, -r, "landlock") : 0;
}

int harden_caller(struct err *e)
{
	if (harden_process(e) < 0 || harden_files(-1, e) < 0)
		return -1;
	int r = os_seccomp_load(filter_gate_child, COUNT(filter_gate_child), false);

	return r < 0 ? err_sys(e, -r, "seccomp") : 0;
}

int harden_child(pid_t master, struct err *e)
{
	int r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);

	if (r < 0)
		return err_sys(e, -r, "end with the master");
	if (getppid() != master) /* it ended before that: so do we, and nobody need be told */
		_exit(0);
	if (harden_files(-1, e) < 0)
		return -1;
	r = os_seccomp_load(filter_gate_child, COUNT(filter_gate_child), false);
	return r < 0 ? err_sys(e, -r, "seccomp") : 0;
}
