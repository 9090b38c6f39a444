#include "os/secret.h"

#include <linux/keyctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/ret.h"

static int protect(void *at, size_t n, bool is_wiped_on_fork)
{
	OS_FAULT("mlock");
	if (mlock(at, n) < 0 || madvise(at, n, MADV_DONTDUMP) < 0)
		return -errno;
	return is_wiped_on_fork && madvise(at, n, MADV_WIPEONFORK) < 0 ? -errno : 0;
}

int os_secret_map(size_t n, bool is_wiped_on_fork, void **out)
{
	OS_FAULT("mmap");
	void *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	int r = protect(at, n, is_wiped_on_fork);

	if (r < 0) {
		(void)munmap(at, n); /* nothing is in it yet */
		return r;
	}
	*out = at;
	return 0;
}

void os_secret_unmap(void *at, size_t n)
{
	if (!at)
		return;
	explicit_bzero(at, n);
	(void)munmap(at, n); /* it was mapped */
}

int os_keyring_read(const char *description, void *buf, size_t size)
{
	OS_FAULT("keyctl");
	long key = syscall(SYS_request_key, "user", description, NULL, KEY_SPEC_SESSION_KEYRING);

	if (key < 0)
		return -errno;
	return os_ret((int)syscall(SYS_keyctl, KEYCTL_READ, key, buf, size));
}
