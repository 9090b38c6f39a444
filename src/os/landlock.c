#include "os/landlock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "os/ret.h"

int os_landlock_abi(void)
{
	OS_FAULT("landlock_create_ruleset");
	return os_ret(
	    syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

uint64_t os_landlock_all(int abi)
{
	uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

	if (abi >= 2)
		all |= 1ull << 13; /* rename and link between folders, Linux 5.19 */
	if (abi >= 3)
		all |= 1ull << 14; /* truncate, Linux 6.2 */
	if (abi >= 5)
		all |= OS_LANDLOCK_IOCTL_DEV;
	return all;
}

/* As the newest kernel that we know has it; the compiler's own may be shorter. */
struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

int os_landlock_ruleset(uint64_t handled_fs, uint64_t scoped)
{
	const struct ruleset_attr attr = { .handled_fs = handled_fs, .scoped = scoped };
	size_t size = scoped ? sizeof attr : sizeof attr.handled_fs;

	OS_FAULT("landlock_create_ruleset");
	return os_ret(syscall(SYS_landlock_create_ruleset, &attr, size, 0));
}

int os_landlock_allow(int ruleset_fd, int dir_fd, uint64_t access)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = access, .parent_fd = dir_fd };

	OS_FAULT("landlock_add_rule");
	return os_ret(
	    syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &attr, 0));
}

int os_landlock_restrict(int ruleset_fd)
{
	OS_FAULT("landlock_restrict_self");
	return os_ret(syscall(SYS_landlock_restrict_self, ruleset_fd, 0));
}
