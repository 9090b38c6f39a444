#include "engine/netns.h"

#include <linux/netlink.h>

#include "base/fd.h"
#include "netwalls.h"
#include "os/capture.h"
#include "os/fault.h"
#include "os/netlink.h"
#include "os/netpolicy.h"

static const uint8_t addr4[4] = NET_ADDR4, addr6[16] = NET_ADDR6;

static const struct {
	int family, type;
	uint16_t port;
} sockets[] = {
	[NET_TCP4] = { AF_INET, SOCK_STREAM, NET_TCP_PORT },
	[NET_TCP6] = { AF_INET6, SOCK_STREAM, NET_TCP_PORT },
	[NET_UDP4] = { AF_INET, SOCK_DGRAM, NET_DNS_PORT },
	[NET_UDP6] = { AF_INET6, SOCK_DGRAM, NET_DNS_PORT },
};
_Static_assert(COUNT(sockets) == NET_SOCKETS, "a socket has no address");

static int open_socket(enum net_socket which)
{
	union os_address a = { .v6 = { 0 } };

	if (sockets[which].family == AF_INET6) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(sockets[which].port);
		memcpy(&a.v6.sin6_addr, addr6, sizeof addr6);
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(sockets[which].port);
		memcpy(&a.v4.sin_addr, addr4, sizeof addr4);
	}
	int fd = os_capture(&a, sockets[which].type);
	return fd == -EAFNOSUPPORT ? os_deaf() : fd;
}

/* Without the route nothing is reached by IPv6 at all. */
static bool has_no_v6(int error)
{
	return error == -EAFNOSUPPORT || error == -EOPNOTSUPP || error == -EACCES;
}

int netns_route(struct err *e)
{
	int r = os_netlink(NETLINK_ROUTE, netlink_routes4, sizeof netlink_routes4);

	if (r < 0)
		return err_sys(e, -r, "raise lo, and route all addresses to it");
	r = os_netlink(NETLINK_ROUTE, netlink_routes6, sizeof netlink_routes6);
	if (r < 0 && !has_no_v6(r))
		return err_sys(e, -r, "route all IPv6 addresses to lo");
	return 0;
}

int netns_wall(int fds[NET_SOCKETS], struct err *e)
{
	int made[NET_SOCKETS] = { -1, -1, -1, -1 };
	int r = fault_layer_off("netwalls")
	            ? 0
	            : os_netlink(NETLINK_NETFILTER, netlink_walls, sizeof netlink_walls);

	if (r < 0)
		return err_sys(e, -r, "nf_tables with tproxy");
	for (enum net_socket i = 0; i < NET_SOCKETS; i++) {
		made[i] = open_socket(i);
		if (made[i] < 0) {
			err_sys(e, -made[i], "open a socket of the gate");
			netns_close(made);
			return -1;
		}
	}
	memcpy(fds, made, sizeof made);
	return 0;
}

void netns_close(int fds[NET_SOCKETS])
{
	for (size_t i = 0; i < NET_SOCKETS; i++)
		fd_close(&fds[i]);
}
