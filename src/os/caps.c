#include "os/caps.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/ret.h"

int os_caps_get(uint64_t *effective, uint64_t *permitted, uint64_t *inheritable)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	OS_FAULT("capget");
	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*effective = data[0].effective | (uint64_t)data[1].effective << 32;
	*permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	*inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

int os_caps_set(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ (uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable },
		{ (uint32_t)(effective >> 32), (uint32_t)(permitted >> 32),
		  (uint32_t)(inheritable >> 32) },
	};

	OS_FAULT("capset");
	return os_ret(syscall(SYS_capset, &head, data));
}

bool os_caps_bounded(unsigned int cap)
{
	return prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
}

int os_caps_bound(uint64_t keep)
{
	OS_FAULT("capbset_drop");
	for (unsigned int cap = 0; cap < 64; cap++) {
		if (keep & CAP_BIT(cap))
			continue;
		/* EINVAL: past the last capability this kernel knows. */
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL ? 0 : -errno;
	}
	return 0;
}

int os_caps_ambient(uint64_t raise)
{
	OS_FAULT("cap_ambient");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	for (unsigned int cap = 0; cap < 64; cap++)
		if (raise & CAP_BIT(cap) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -errno;
	return 0;
}
