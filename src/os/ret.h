/*
 * ret.h - libc's "-1 and errno" turned into our "value or -errno".
 */
#pragma once

#include "base/base.h"
#include "os/fault.h"

static inline int os_ret(long r)
{
	return r < 0 ? -errno : (int)r;
}
