#include "base/advice.h"

/* clang-format off */
static const char *const texts[] = {
	[ADVICE_NONE]           = NULL,
	[ADVICE_DOCTOR]         = "`caisson doctor` tells what this host lacks",
	[ADVICE_KERNEL]         = "a kernel of 6.1 or later; Debian 12 and Ubuntu 24.04 have one",
	[ADVICE_LINUX_62]       = "Linux 6.2 or later has the switch",
	[ADVICE_LINUX_66]       = "Linux 6.6 or later has the switch",
	[ADVICE_LSM]            = "add it to lsm= on the kernel command line: lsm=landlock,lockdown,yama,apparmor",
	[ADVICE_USERNS_CONFIG]  = "a kernel with CONFIG_USER_NS=y",
	[ADVICE_USERNS_COUNT]   = "sysctl -w user.max_user_namespaces=65536",
	[ADVICE_UNCONFINED]     = "outside of a chroot; in a container, start that with --security-opt seccomp=unconfined "
				  "--security-opt apparmor=unconfined --security-opt systempaths=unconfined",
	[ADVICE_OVERLAY_MODULE] = "modprobe overlay",
	[ADVICE_OVERLAY_KERNEL] = "a kernel whose overlayfs can be mounted in user namespaces, and a /usr "
				  "that can be its lower layer",
	[ADVICE_PROC]           = "in a container, start that with --security-opt systempaths=unconfined "
				  "(podman: unmask=ALL); else umount what covers parts of /proc",
	[ADVICE_NO_NESTING]     = "run outside of the sandbox whose monitor listens already: they do not nest",
	[ADVICE_SECCOMP]        = "a kernel with CONFIG_SECCOMP_FILTER=y; in a container, start that with "
				  "--security-opt seccomp=unconfined",
	[ADVICE_NET_ADMIN]      = "let the user have CAP_NET_ADMIN in a network namespace of his own",
	[ADVICE_NFT]            = "modprobe -a nf_tables nft_tproxy, or a kernel with CONFIG_NFT_TPROXY",
	[ADVICE_MAPPED_USR]     = "have /usr on ext4, xfs, btrfs or another file system that can map ids",
	[ADVICE_MAPPED_STATE]   = "have /usr and the state folder on ext4, xfs or btrfs",
	[ADVICE_LOOP_MODULES]   = "modprobe -a loop ext4",
	[ADVICE_LOOP]           = "modprobe loop; in a container, start that with --device /dev/loop-control",
	[ADVICE_CGROUP_WRITE]   = "let /sys/fs/cgroup be written: mount -o remount,rw on what is read-only there; in a "
				  "container, start that with -v /sys/fs/cgroup:/sys/fs/cgroup:rw, or as an ordinary user",
	[ADVICE_CGROUP_V1]      = "sudo caisson run ..., or add systemd.unified_cgroup_hierarchy=1 to the "
				  "kernel command line: cgroup v1 cannot be handed to a user",
	[ADVICE_CGROUP_SCOPE]   = "systemd-run --user --scope -p Delegate=yes -- caisson run ...",
	[ADVICE_CGROUP_DELEGATE] = "mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory "
				  "pids\\n' >/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload, "
				  "as root, then log in again",
	[ADVICE_SOCKET_DENIED]  = "the socket is of who started the daemon: sudo caisson ..., or unset CAISSON_SOCKET for "
				  "a daemon of your own, or a token (caisson token create) with CAISSON_HOST",
	[ADVICE_NO_DAEMON]      = "start it with `caisson serve`, or let commands do it: unset CAISSON_SOCKET CAISSON_START",
	[ADVICE_NO_SERVER]      = "over there: caisson serve --listen HOST:PORT",
	[ADVICE_RUNS_ALREADY]   = "`caisson list` reaches its daemon; for one more: caisson serve --run DIR --state DIR",
	[ADVICE_STATE_TAKEN]    = "end that one, or use another folder: caisson serve --state DIR",
	[ADVICE_PORT_TAKEN]     = "`ss -ltnp` shows who has it; choose another: --listen HOST:PORT",
	[ADVICE_PORT_LOW]       = "ports below 1024 are root's: choose a higher one, or "
				  "sysctl -w net.ipv4.ip_unprivileged_port_start=80",
	[ADVICE_NO_ADDRESS]     = "`ip -br addr` lists the addresses of this host; 0.0.0.0 stands for all",
	[ADVICE_PROGRAMS]       = "`make install` puts all programs in place",
	[ADVICE_DISK_FULL]      = "make room there (df -h; caisson gc), or use another disk: caisson serve --state DIR",
	[ADVICE_FILTERS]        = "bound how many sandboxes live at once (`quota: {sandboxes: N}` in the config), and "
				  "keep other services with many seccomp or socket filters off this host",
};
/* clang-format on */
_Static_assert(COUNT(texts) == ADVICES, "an advice has no text");

const char *advice(enum advice a)
{
	return texts[a];
}

int err_advise(struct err *e, enum advice a)
{
	size_t n = strlen(e->msg);

	if (a != ADVICE_NONE)
		snprintf(e->msg + n, sizeof e->msg - n, "; %s", texts[a]);
	return -1;
}
