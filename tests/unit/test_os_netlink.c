#include "os/netlink.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "test.h"

struct request {
	struct nlmsghdr head;
	struct ifinfomsg link;
};

static struct request raise_link(int index, int flags)
{
	return (struct request){
		.head = { .nlmsg_len = sizeof(struct request),
		          .nlmsg_type = RTM_NEWLINK,
		          .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) },
		.link = { .ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP },
	};
}

static bool is_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_INT(ioctl(fd, SIOCGIFFLAGS, &req), 0);
	return req.ifr_flags & IFF_UP;
}

static void enter(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		SKIP("needs user namespaces");
}

TEST(requests_are_done_when_the_call_returns)
{
	enter();
	struct request one = raise_link(1, NLM_F_ACK);

	CHECK(!is_up());
	CHECK_INT(os_netlink(NETLINK_ROUTE, &one, sizeof one), 0);
	CHECK(is_up());
}

TEST(the_first_that_was_refused_is_the_answer)
{
	enter();
	struct request many[] = { raise_link(1, 0), raise_link(77, 0), raise_link(1, NLM_F_ACK) };

	CHECK_INT(os_netlink(NETLINK_ROUTE, many, sizeof many), -ENODEV);
	CHECK(is_up()); /* each counts for itself: only nf_tables has batches */
}

TEST(nobody_is_waited_for)
{
	enter();
	struct request silent = raise_link(1, 0);

	CHECK_INT(os_netlink(NETLINK_ROUTE, &silent, sizeof silent), -EPROTO);
	CHECK_INT(os_netlink(NETLINK_ROUTE, &silent, 7), -EPROTO); /* not even a head */
	CHECK_INT(os_netlink(-1, &silent, sizeof silent), -EPROTONOSUPPORT);
}
