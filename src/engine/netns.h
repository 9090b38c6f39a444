/*
 * netns.h - the network of a sandbox that has one (netpolicy.h): no way out but to four sockets.
 */
#pragma once

#include "base/err.h"

/* Of the gate, in the order of wire/gate.h: enum gate_fd begins like this. */
enum net_socket { NET_TCP4, NET_TCP6, NET_UDP4, NET_UDP6, NET_SOCKETS };

/* In a process with every right over its network namespace, which is as new: both in this order,
 * before anything of the sandbox's runs. Lo is raised, and all addresses are its own. */
int netns_route(struct err *e) MUST_USE;
/* The walls stand, and `fds` is filled. Where the host has no IPv6, there are sockets that nobody
 * can reach in its place. */
int netns_wall(int fds[NET_SOCKETS], struct err *e) MUST_USE;
void netns_close(int fds[NET_SOCKETS]);
