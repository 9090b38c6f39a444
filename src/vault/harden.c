#include "vault/harden.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "filters.h"
#include "os/caps.h"
#include "os/proc.h"
#include "os/seccomp.h"

/* What is done to files of others, through the mount and below it; the overlay works with these
 * rights as well, for all who use it. */
#define KEPT                                                                                       \
	(CAP_BIT(CAP_SYS_ADMIN) | CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) |                 \
	 CAP_BIT(CAP_DAC_READ_SEARCH) | CAP_BIT(CAP_FOWNER) | CAP_BIT(CAP_FSETID) |                \
	 CAP_BIT(CAP_MKNOD) | CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_SETGID) | CAP_BIT(CAP_SETFCAP) |   \
	 CAP_BIT(CAP_LEASE))

int harden_start(struct err *e)
{
	struct rlimit files;
	int r = os_prctl(PR_SET_DUMPABLE, 0);

	if (r >= 0)
		r = os_setrlimit(RLIMIT_CORE, 0, 0);
	if (r >= 0 && getrlimit(RLIMIT_NOFILE, &files) == 0)
		r = os_setrlimit(RLIMIT_NOFILE, files.rlim_max, files.rlim_max);
	return r < 0 ? err_sys(e, -r, "harden the vault") : 0;
}

static int drop_capabilities(void)
{
	uint64_t effective, permitted, inheritable;
	int r = os_caps_get(&effective, &permitted, &inheritable);

	if (r >= 0)
		r = os_caps_bound(KEPT & permitted);
	if (r >= 0)
		r = os_caps_ambient(0);
	return r < 0 ? r : os_caps_set(KEPT & permitted, KEPT & permitted, 0);
}

int harden_open(const struct vault *v, struct err *e)
{
	int r = os_prctl(PR_SET_NO_NEW_PRIVS, 1);

	/* Rootless: those of a user namespace that has nothing but its own mounts. */
	if (r >= 0 && v->uid == 0)
		r = drop_capabilities();
	if (r >= 0)
		r = os_seccomp_load(filter_vault, COUNT(filter_vault), false);
	return r < 0 ? err_sys(e, -r, "give up rights") : 0;
}
