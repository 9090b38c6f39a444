#include "vault/parent.h"

#include <fcntl.h>
#include <linux/openat2.h>

#include "base/fd.h"
#include "os/file.h"

void parent_done(struct parent *p)
{
	fd_close(&p->fd);
}

int parent_open(struct parent *p, struct span path, const char **name, struct err *e)
{
	const uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	const char *slash = memrchr(path.at, '/', path.len);
	size_t len = slash ? (size_t)(slash - path.at) : 0;

	*name = slash ? slash + 1 : path.at;
	if (p->fd >= 0 && strlen(p->dir) == len && memcmp(p->dir, path.at, len) == 0)
		return p->fd;
	fd_close(&p->fd);
	memcpy(p->dir, path.at, len);
	p->dir[len] = '\0';
	int fd = os_openat2(p->root_fd, len ? p->dir : ".", O_PATH | O_DIRECTORY, 0, how);
	if (fd < 0)
		return err_sys(e, -fd, "open the folder of %.200s", path.at);
	p->fd = fd;
	return fd;
}
