#include "ledger/harden.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "filters.h"
#include "os/landlock.h"
#include "os/proc.h"
#include "os/seccomp.h"

/* Rights of Landlock's first version; those of later ones are about paths that cannot be opened. */
#define EVERY_RIGHT ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define OWN_RIGHTS                                                                                 \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                            \
	 LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG)

static int give_up_files(int dir_fd)
{
	AUTO(fd_close) int ruleset = os_landlock_ruleset(EVERY_RIGHT, 0);
	int r = ruleset < 0 ? ruleset : os_landlock_allow(ruleset, dir_fd, OWN_RIGHTS);

	return r < 0 ? r : os_landlock_restrict(ruleset);
}

int harden_ledger(int dir_fd, struct err *e)
{
	int r = os_prctl(PR_SET_DUMPABLE, 0); /* it has a key */

	if (r >= 0)
		r = os_prctl(PR_SET_NO_NEW_PRIVS, 1);
	if (r >= 0)
		r = os_setrlimit(RLIMIT_CORE, 0, 0);
	if (r >= 0)
		r = give_up_files(dir_fd);
	if (r >= 0)
		r = os_seccomp_load(filter_ledger, COUNT(filter_ledger), false);
	return r < 0 ? err_sys(e, -r, "give up rights") : 0;
}
