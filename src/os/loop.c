#include "os/loop.h"

#include <linux/fs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "os/ret.h"

int os_loop_free(int control_fd)
{
	OS_FAULT("ioctl");
	return os_ret(ioctl(control_fd, LOOP_CTL_GET_FREE));
}

int os_loop_attach(int loop_fd, int file_fd)
{
	struct loop_config c = { .fd = (uint32_t)file_fd,
		                 .block_size = 4096,
		                 .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };

	OS_FAULT("ioctl");
	return os_ret(ioctl(loop_fd, LOOP_CONFIGURE, &c));
}

int os_loop_file(int loop_fd, dev_t *dev, ino_t *ino)
{
	struct loop_info64 info;

	OS_FAULT("ioctl");
	int r = os_ret(ioctl(loop_fd, LOOP_GET_STATUS64, &info));
	if (r < 0)
		return r;
	/* The kernel's own encoding of a device, huge_encode_dev(). */
	*dev = makedev((unsigned int)(info.lo_device >> 8 & 0xfff),
	               (unsigned int)((info.lo_device & 0xff) | (info.lo_device >> 12 & 0xfff00)));
	*ino = info.lo_inode;
	return 0;
}

int os_trim(int fd)
{
	struct fstrim_range all = { .len = UINT64_MAX };

	OS_FAULT("ioctl");
	return os_ret(ioctl(fd, FITRIM, &all));
}
