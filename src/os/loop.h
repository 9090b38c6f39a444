/*
 * loop.h - a file as a block device, and the room that a file system gives back. Value or -errno.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

int os_loop_free(int control_fd); /* the number of a device that nobody has; another may take it */
/* Direct I/O; the device lets go of the file when its last user is gone. -EBUSY: it was taken. */
int os_loop_attach(int loop_fd, int file_fd);
int os_loop_file(int loop_fd, dev_t *dev, ino_t *ino); /* -ENXIO: it has none */
int os_trim(int fd);                                   /* FITRIM, all of it */
