#include "engine/seccomp.h"

#include "filters.h"
#include "os/fault.h"
#include "os/seccomp.h"

int seccomp_payload(struct err *e)
{
	int fd = -1;

	e->kind = ERR_NONE;
	if (fault_layer_off("seccomp"))
		return -1;
	if (fault_layer_off("notify")) {
		fd = os_seccomp_load(filter_default_quiet, COUNT(filter_default_quiet), false);
		return fd < 0 ? err_sys(e, -fd, "seccomp") : -1;
	}
	fd = os_seccomp_load(filter_default, COUNT(filter_default), true);
	if (fd == -EBUSY)
		return err_new(e, ERR_INTERNAL,
		               "this process tree already has a listener for system calls: "
		               "sandboxes do not nest");
	return fd < 0 ? err_sys(e, -fd, "seccomp") : fd;
}

int seccomp_init(struct err *e)
{
	int r = os_seccomp_load(filter_init, COUNT(filter_init), false);

	return r < 0 ? err_sys(e, -r, "seccomp") : 0;
}
