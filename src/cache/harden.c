#include "cache/harden.h"

#include "filters.h"
#include "gate/harden.h"
#include "os/seccomp.h"

int harden_cache(int dir_fd, struct err *e)
{
	if (harden_process(e) < 0 || harden_files(dir_fd, e) < 0)
		return -1;
	int r = os_seccomp_load(filter_cache, COUNT(filter_cache), false);

	return r < 0 ? err_sys(e, -r, "seccomp") : 0;
}
