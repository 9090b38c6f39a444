#include "os/extent.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/ret.h"

int os_memfd(const char *name)
{
	OS_FAULT("memfd_create");
	return os_ret(memfd_create(name, MFD_CLOEXEC));
}

int os_memfd_sealable(const char *name)
{
	OS_FAULT("memfd_create");
	return os_ret(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

int os_seal(int fd)
{
	OS_FAULT("fcntl");
	return os_ret(
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL));
}

static int pwrite_all(int fd, const char *bytes, size_t n, off_t at)
{
	while (n > 0) {
		ssize_t w = pwrite(fd, bytes, n, at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		bytes += w;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

int os_pwrite2(int fd, const void *head, size_t n_head, const void *bytes, size_t n, off_t at)
{
	const struct iovec both[] = { { (void *)(uintptr_t)head, n_head },
		                      { (void *)(uintptr_t)bytes, n } };
	ssize_t w = pwritev(fd, both, 2, at);
	if (w < 0 && errno != EINTR)
		return -errno;
	size_t done = w < 0 ? 0 : (size_t)w;
	if (done == n_head + n)
		return 0;
	/* The rest, piece by piece: room may end in the middle. */
	if (done < n_head) {
		int r = pwrite_all(fd, (const char *)head + done, n_head - done, at + (off_t)done);

		if (r < 0)
			return r;
		done = n_head;
	}
	done -= n_head;
	return pwrite_all(fd, (const char *)bytes + done, n - done, at + (off_t)(n_head + done));
}

int os_pread(int fd, void *buf, size_t n, off_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, (char *)buf + got, n - got, at + (off_t)got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (int)got;
}

int os_punch(int fd, off_t at, off_t len)
{
	return os_ret(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len));
}

int os_ftruncate(int fd, off_t size)
{
	return os_ret(ftruncate(fd, size));
}

int os_map_shared(int fd, size_t size, void **out)
{
	OS_FAULT("mmap");
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*out = at;
	return 0;
}
