#include "os/seccomp.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/ret.h"

int os_seccomp_load(const struct sock_filter *code, size_t n, bool listener)
{
	/* The kernel does not write to the program; sock_fprog merely lacks the const. */
	struct sock_fprog prog = { .len = (unsigned short)n,
		                   .filter = (struct sock_filter *)(uintptr_t)code };
	unsigned int flags = listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;

	OS_FAULT("seccomp");
	return os_ret(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog));
}

int os_seccomp_receive(int listener_fd, struct seccomp_notif *out)
{
	*out = (struct seccomp_notif){ 0 };
	return os_ret(ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, out));
}

int os_seccomp_valid(int listener_fd, uint64_t id)
{
	return os_ret(ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id));
}

int os_seccomp_continue(int listener_fd, uint64_t id)
{
	struct seccomp_notif_resp answer = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	OS_FAULT("seccomp_notify");
	return os_ret(ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer));
}

int os_seccomp_refuse(int listener_fd, uint64_t id, int error)
{
	struct seccomp_notif_resp answer = { .id = id, .error = -error };

	OS_FAULT("seccomp_notify");
	return os_ret(ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer));
}
