/*
 * netpolicy.h - the network of a sandbox that has one: what is sent where, inside.
 *
 * Every address is one of lo's own, so that no packet can leave. What is not true loopback and may
 * be sent at all, TCP and DNS, lands in four sockets of the gate (`tproxy`: there is no table of
 * connections that somebody could fill, and getsockname(2) tells whom the client meant). Anything
 * else fails in the call that sends it.
 *
 * tools/gen-netlink.c makes the messages for the kernel from this, when we are built;
 * src/engine/netns.c sends them.
 */
#pragma once

/* Where the sockets are: of the ranges for benchmarks (RFC 2544, RFC 5180). No program inside that
 * listens for all, or on loopback, is in their way; and TCP port 1 is nobody's. */
/* clang-format off */
#define NET_ADDR4 { 198, 18, 0, 1 }
#define NET_ADDR6 { 0x20, 0x01, 0x00, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }
/* clang-format on */
#define NET_TCP_PORT 1
#define NET_DNS_PORT 53
