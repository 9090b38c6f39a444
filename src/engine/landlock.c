#include "engine/landlock.h"

#include <fcntl.h>

#include "base/fd.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/landlock.h"

#define READ                                                                                       \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

#define SCOPES_ABI 6

static const char *const writable[] = { "/tmp", "/run", "/home", "/root", "/var", "/work" };

static int allow(int ruleset, const char *path, uint64_t access, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_PATH, 0);

	if (fd == -ENOENT)
		return 0;
	int r = fd < 0 ? fd : os_landlock_allow(ruleset, fd, access);
	return r < 0 ? err_sys(e, -r, "allow %s", path) : 0;
}

/* A workspace that is only read lies where one would be written to. */
static bool is_shown_only(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		if (plan_is_read_only(&p->mounts[i]) &&
		    strcmp(plan_text(p, p->mounts[i].at), path) == 0)
			return true;
	return false;
}

static int allow_writable(int ruleset, const struct plan *p, uint64_t all, struct err *e)
{
	const uint64_t files = all & ~OS_LANDLOCK_IOCTL_DEV; /* devices lie in /dev only */

	for (size_t i = 0; i < COUNT(writable); i++)
		if (!is_shown_only(p, writable[i]) && allow(ruleset, writable[i], files, e) < 0)
			return -1;
	for (size_t i = 0; i < p->n_mounts; i++)
		if (!plan_is_read_only(&p->mounts[i]) &&
		    allow(ruleset, plan_text(p, p->mounts[i].at), files, e) < 0)
			return -1;
	return is_shown_only(p, "/dev") ? 0 : allow(ruleset, "/dev", all, e);
}

int landlock_abi(void)
{
	int abi = os_landlock_abi();

	return abi < 0 ? 0 : abi;
}

/* A worker's program lies outside of everything that is mounted inside. */
static int allow_program(int ruleset, int fd, struct err *e)
{
	int r = fd < 0
	            ? 0
	            : os_landlock_allow(ruleset, fd,
	                                LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE);

	return r < 0 ? err_sys(e, -r, "allow the worker") : 0;
}

struct rules_for {
	bool is_installer;
	bool is_only; /* there is no other command, nor will be */
};

static int make_rules(const struct plan *p, struct rules_for f, struct err *e)
{
	int abi = os_landlock_abi();
	bool is_installer = f.is_installer;

	if (abi < 0)
		return err_sys(e, -abi, "landlock");
	AUTO(fd_close)
	int ruleset = os_landlock_ruleset(os_landlock_all(abi),
	                                  f.is_only && abi >= SCOPES_ABI ? OS_LANDLOCK_SCOPES : 0);
	if (ruleset < 0)
		return err_sys(e, -ruleset, "make the ruleset");
	if (allow(ruleset, "/", is_installer ? os_landlock_all(abi) : READ, e) < 0 ||
	    (!is_installer && allow_writable(ruleset, p, os_landlock_all(abi), e) < 0))
		return -1;
	return fd_take(&ruleset);
}

int landlock_rules(const struct plan *p, struct err *e)
{
	e->kind = ERR_NONE;
	return fault_layer_off("landlock") ? -1 : make_rules(p, (struct rules_for){ 0 }, e);
}

int landlock_enter(const struct plan *p, const struct command *c, struct landlock_fds fds,
                   struct err *e)
{
	bool is_installer = p->rootful && c->uid == 0; /* packages: the mounts decide alone */
	AUTO(fd_close) int own = -1;

	if (fault_layer_off("landlock"))
		return 0;
	if (fds.rules < 0 || fds.program >= 0 || is_installer) {
		own = make_rules(p, (struct rules_for){ is_installer, fds.rules < 0 }, e);
		if (own < 0 || allow_program(own, fds.program, e) < 0)
			return -1;
	}
	int r = os_landlock_restrict(own < 0 ? fds.rules : own);
	return r < 0 ? err_sys(e, -r, "restrict") : 0;
}
