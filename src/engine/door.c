/*
 * door.c - /run/caisson/self.sock: the one way to us from inside a kept sandbox.
 *
 * Made by pid 1 while it builds the root; served by the monitor (monitor/self.c).
 */
#include <sys/socket.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/file.h"
#include "os/pulse.h"
#include "os/sock.h"
#include "os/unix.h"

int root_door(struct build *b, struct err *e)
{
	static const char letter = GIFT_DOOR;

	if (!b->box->is_kept)
		return 0;
	AUTO(fd_close) int run = place_dir(b, "run", 0755, e);
	if (run < 0)
		return -1;
	int r = os_mkdirat(run, "caisson", 0755);
	if (r == -EEXIST) /* a mount of ours lies in it; nobody else's may (spec/path.c) */
		r = 0;
	AUTO(fd_close) int dir = r < 0 ? r : os_openat(run, "caisson", O_PATH | O_DIRECTORY, 0);
	AUTO(fd_close) int door = dir < 0 ? dir : os_listen_at(dir, "self.sock", SOCK_STREAM, 0666);
	if (door < 0)
		return err_sys(e, -door, "make self.sock");
	(void)os_refuse_fds(door); /* those who come ask by a line */
	r = os_send(b->io.report_fd, &letter, 1, &door, 1);
	return r < 0 ? err_sys(e, -r, "hand over self.sock") : 0;
}
