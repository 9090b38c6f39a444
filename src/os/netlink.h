/*
 * netlink.h - requests to the kernel's own tables: routes, links, packet filters. Value or -errno.
 */
#pragma once

#include "base/base.h"

/* Sends a packet of requests, of which the last asks for an answer. -errno: of the first that was
 * refused. The kernel works before the call returns, so nothing is waited for. */
int os_netlink(int protocol, const void *requests, size_t n);
