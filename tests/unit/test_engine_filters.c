/*
 * The compiled seccomp programs, run by a small interpreter over every number and over the
 * arguments that matter, then by the kernel. What is expected stands here and in
 * golden-syscalls.inc; src/engine/policy.h is not consulted.
 */
#include "filters.h"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "os/seccomp.h"
#include "test.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#define NUMBERS 1024
#define FAILS(error) (SECCOMP_RET_ERRNO | (error))

enum {
	V_ALLOW = SECCOMP_RET_ALLOW,
	V_NOTIFY = SECCOMP_RET_USER_NOTIF,
	V_EPERM = FAILS(EPERM),
	V_ENOSYS = FAILS(ENOSYS),
	V_ARGS = SECCOMP_RET_LOG, /* in the golden table only: no filter of ours returns it */
};

struct program {
	const char *name;
	const struct sock_filter *code;
	size_t len;
};

struct outcome {
	uint32_t verdict;
	unsigned int steps;
	bool saw_args;
};

enum { DEFAULT, QUIET, INIT };

static const struct program programs[] = {
	[DEFAULT] = { "default", filter_default, COUNT(filter_default) },
	[QUIET] = { "default_quiet", filter_default_quiet, COUNT(filter_default_quiet) },
	[INIT] = { "init", filter_init, COUNT(filter_init) },
};

/* What registers may hold above the 32 bits that the kernel reads. */
static const uint64_t garbage[] = { 0, 1ull << 32, 0x5412ull << 32, 0xffffffffull << 32 };

static bool jumps(const struct sock_filter *c, uint32_t a)
{
	switch (BPF_OP(c->code)) {
	case BPF_JEQ:
		return a == c->k;
	case BPF_JGT:
		return a > c->k;
	case BPF_JGE:
		return a >= c->k;
	case BPF_JSET:
		return a & c->k;
	default:
		CHECK(!"a known comparison");
		return false;
	}
}

/* The part of classic BPF that filters are made of; anything else ends the test. */
static struct outcome run(const struct program *p, const struct seccomp_data *data)
{
	struct outcome o = { 0 };
	uint32_t a = 0;

	for (size_t pc = 0; pc < p->len; pc++) {
		const struct sock_filter *c = &p->code[pc];

		o.steps++;
		switch (c->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			CHECK(c->k % 4 == 0 && c->k < sizeof(*data));
			o.saw_args |= c->k >= offsetof(struct seccomp_data, args);
			memcpy(&a, (const char *)data + c->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= c->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += c->k;
			break;
		case BPF_RET | BPF_K:
			o.verdict = c->k;
			return o;
		default:
			CHECK_INT(BPF_CLASS(c->code), BPF_JMP);
			pc += jumps(c, a) ? c->jt : c->jf;
		}
	}
	CHECK(!"a verdict before the end");
	return o;
}

static struct outcome ask(int which, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return run(&programs[which],
	           &(struct seccomp_data){ .nr = nr, .arch = NATIVE, .args = { a0, a1, a2 } });
}

/* Both filters of the payload must agree; returns what they say. */
static uint32_t payload_data(const struct seccomp_data *data)
{
	uint32_t verdict = run(&programs[DEFAULT], data).verdict;

	CHECK_INT(run(&programs[QUIET], data).verdict, verdict);
	return verdict;
}

static uint32_t payload(int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	return payload_data(
	    &(struct seccomp_data){ .nr = nr, .arch = NATIVE, .args = { a0, a1, a2 } });
}

#ifdef __x86_64__
#define G(number, call, payload, init) [number] = { call, V_##payload, V_##init },
static const struct {
	const char *call;
	uint32_t payload, init;
} golden[NUMBERS] = {
#include "golden-syscalls.inc"
};

static uint32_t golden_verdict(int which, int nr)
{
	uint32_t verdict = which == INIT ? golden[nr].init : golden[nr].payload;

	if (!golden[nr].call)
		return V_ENOSYS;
	return which == QUIET && verdict == V_NOTIFY ? V_ALLOW : verdict;
}

/* Also: what is not decided by arguments is decided before one is loaded, or the kernel could
 * not remember the verdict. */
TEST(every_number_has_its_golden_verdict)
{
	for (int which = DEFAULT; which <= INIT; which++) {
		for (int nr = 0; nr < NUMBERS; nr++) {
			struct outcome o = ask(which, nr, 0, 0, 0);
			uint32_t got = o.saw_args ? V_ARGS : o.verdict;
			uint32_t want = golden_verdict(which, nr);

			if (got != want)
				printf("# %s: call %d, %s\n", programs[which].name, nr,
				       golden[nr].call ? golden[nr].call : "unknown");
			CHECK_INT(got, want);
		}
	}
}

TEST(the_x32_bit_kills)
{
	static const uint32_t others[] = { 0x7fffffff, 0x80000000, 0xfffffffe };

	for (int which = DEFAULT; which <= INIT; which++) {
		for (int nr = 0; nr < NUMBERS; nr++)
			CHECK_INT(ask(which, 0x40000000 + nr, 0, 0, 0).verdict,
			          SECCOMP_RET_KILL_PROCESS);
		for (size_t i = 0; i < COUNT(others); i++)
			CHECK_INT(ask(which, (int)others[i], 0, 0, 0).verdict,
			          SECCOMP_RET_KILL_PROCESS);
		/* How a tracer skips a call. */
		CHECK_INT(ask(which, -1, 0, 0, 0).verdict, V_ENOSYS);
	}
}

TEST(the_kernel_kills_an_x32_call)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
		CHECK_INT(os_seccomp_load(filter_default_quiet, COUNT(filter_default_quiet), false),
		          0);
		_exit(syscall(0x40000000 | SYS_getpid) > 0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSYS);
}
#endif

TEST(another_architecture_kills)
{
	static const uint32_t archs[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0 };

	for (size_t a = 0; a < COUNT(archs); a++) {
		for (int i = 0; i < NUMBERS * (int)COUNT(programs); i++) {
			struct seccomp_data data = { .nr = i % NUMBERS, .arch = archs[a] };

			CHECK_INT(run(&programs[i / NUMBERS], &data).verdict,
			          SECCOMP_RET_KILL_PROCESS);
		}
	}
}

TEST(clone_makes_no_namespace)
{
	static const uint32_t flags[] = { CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
		                          CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
		                          CLONE_NEWNET };
	static const uint32_t others[] = { 0, SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD,
		                           CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_SETTLS };
	uint32_t all = 0;

	for (size_t f = 0; f < COUNT(flags); f++)
		all |= flags[f];
	for (uint32_t subset = 0; subset < 1u << COUNT(flags); subset++) {
		uint64_t asked = 0;

		for (size_t f = 0; f < COUNT(flags); f++)
			asked |= subset >> f & 1 ? flags[f] : 0;
		for (size_t i = 0; i < COUNT(others) * COUNT(garbage); i++)
			CHECK_INT(
			    payload(SYS_clone,
			            asked | others[i % COUNT(others)] | garbage[i / COUNT(others)],
			            0, 0),
			    asked ? V_EPERM : V_ALLOW);
	}
	for (int bit = 0; bit < 32; bit++)
		CHECK_INT(payload(SYS_clone, 1ull << bit, 0, 0),
		          all >> bit & 1 ? V_EPERM : V_ALLOW);
}

static uint32_t inet_verdict(uint32_t type, uint32_t protocol)
{
	bool stream = (type & 0xf) == SOCK_STREAM, datagram = (type & 0xf) == SOCK_DGRAM;

	if ((type & 0xf) == SOCK_RAW || (type & 0xf) == SOCK_PACKET)
		return V_EPERM;
	if (datagram && (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6))
		return V_EPERM;
	if (stream && (protocol == 0 || protocol == IPPROTO_TCP))
		return V_ALLOW;
	if (datagram && (protocol == 0 || protocol == IPPROTO_UDP))
		return V_ALLOW;
	return FAILS(EPROTONOSUPPORT);
}

static uint32_t socket_verdict(uint32_t family, uint32_t type, uint32_t protocol)
{
	if (family == AF_UNIX || (family == AF_NETLINK && protocol == NETLINK_ROUTE))
		return V_ALLOW;
	if (family == AF_INET || family == AF_INET6)
		return inet_verdict(type, protocol);
	return FAILS(EAFNOSUPPORT);
}

static void check_sockets_of(uint32_t family, uint32_t type)
{
	for (uint32_t protocol = 0; protocol <= 300; protocol++) {
		for (size_t g = 0; g < COUNT(garbage); g++)
			CHECK_INT(payload(SYS_socket, garbage[g] | family,
			                  garbage[(g + 1) % COUNT(garbage)] | type,
			                  garbage[(g + 2) % COUNT(garbage)] | protocol),
			          socket_verdict(family, type, protocol));
	}
}

TEST(sockets_of_four_families)
{
	static const uint32_t flags[] = { 0, SOCK_CLOEXEC | SOCK_NONBLOCK };
	static const uint32_t odd[] = { 0xff, 0x10000 + AF_INET, 0x80000000 + AF_UNIX, UINT32_MAX };

	for (uint32_t type = 0; type < 16; type++) {
		for (uint32_t family = 0; family <= 50; family++)
			check_sockets_of(family, type | flags[family % COUNT(flags)]);
		for (size_t i = 0; i < COUNT(odd); i++)
			check_sockets_of(odd[i], type);
	}
	for (size_t i = 0; i < COUNT(flags); i++)
		check_sockets_of(AF_INET, SOCK_RAW | flags[i]);
}

TEST(a_protocol_is_compared_whole)
{
	CHECK_INT(payload(SYS_socket, AF_INET, SOCK_STREAM, 0x100 + IPPROTO_TCP),
	          FAILS(EPROTONOSUPPORT));
	CHECK_INT(payload(SYS_socket, AF_NETLINK, SOCK_RAW, 0x10000), FAILS(EAFNOSUPPORT));
}

TEST(socket_pairs_of_one_family)
{
	for (uint32_t family = 0; family <= 300; family++) {
		for (size_t g = 0; g < COUNT(garbage); g++)
			CHECK_INT(payload(SYS_socketpair, garbage[g] | family, SOCK_STREAM, 0),
			          family == AF_UNIX ? V_ALLOW : FAILS(EAFNOSUPPORT));
	}
}

TEST(socket_options_that_redirect_load_or_wait)
{
	static const struct {
		uint32_t level, option, verdict;
	} special[] = {
		{ SOL_SOCKET, SO_MARK, V_EPERM },
		{ SOL_SOCKET, SO_BINDTODEVICE, V_EPERM },
		{ SOL_SOCKET, SO_BINDTOIFINDEX, V_EPERM },
		{ SOL_SOCKET, SO_ATTACH_FILTER, V_EPERM },
		{ SOL_SOCKET, SO_ATTACH_BPF, V_EPERM },
		{ SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, V_EPERM },
		{ SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, V_EPERM },
		{ SOL_SOCKET, SO_LINGER, FAILS(0) },
		{ SOL_SOCKET, SO_ZEROCOPY, FAILS(EOPNOTSUPP) },
		{ IPPROTO_IP, IP_TRANSPARENT, V_EPERM },
		{ IPPROTO_IPV6, IPV6_TRANSPARENT, V_EPERM },
		{ IPPROTO_TCP, TCP_ULP, V_EPERM },
		{ IPPROTO_TCP, TCP_MD5SIG, V_EPERM },
		{ IPPROTO_TCP, TCP_MD5SIG_EXT, V_EPERM },
		{ IPPROTO_TCP, 38, V_EPERM }, /* TCP_AO_* */
		{ IPPROTO_TCP, 39, V_EPERM },
		{ IPPROTO_TCP, 40, V_EPERM },
	};

	for (uint32_t level = 0; level < 300; level++) {
		for (uint32_t option = 0; option < 256; option++) {
			uint32_t want = V_ALLOW;

			for (size_t i = 0; i < COUNT(special); i++)
				if (level == special[i].level && option == special[i].option)
					want = special[i].verdict;
			for (size_t g = 0; g < COUNT(garbage); g++)
				CHECK_INT(payload(SYS_setsockopt, 3, garbage[g] | level,
				                  garbage[COUNT(garbage) - 1 - g] | option),
				          want);
		}
	}
}

/* sendmsg has its flags where sendto has a length, and the other way round. */
TEST(urgent_and_shared_bytes_are_not_sent)
{
	static const struct {
		int nr, arg;
	} calls[] = { { SYS_sendto, 3 }, { SYS_sendmsg, 2 }, { SYS_sendmmsg, 3 } };

	for (size_t c = 0; c < COUNT(calls); c++) {
		for (int bit = 0; bit < 32; bit++) {
			struct seccomp_data data = { .nr = calls[c].nr,
				                     .arch = NATIVE,
				                     .args = { 3, 1, UINT32_MAX, UINT32_MAX } };
			uint32_t flag = 1u << bit;
			bool is_bad = flag == MSG_OOB || flag == MSG_ZEROCOPY;

			data.args[calls[c].arg] = garbage[bit % COUNT(garbage)] | flag;
			CHECK_INT(payload_data(&data), is_bad ? FAILS(EOPNOTSUPP) : V_ALLOW);
			data.args[calls[c].arg] |= MSG_NOSIGNAL;
			CHECK_INT(payload_data(&data), is_bad ? FAILS(EOPNOTSUPP) : V_ALLOW);
		}
	}
}

/* Whatever the upper half of a pointer is, and whichever half is zero. */
TEST(the_core_limit_is_read_and_never_set)
{
	static const uint64_t pointers[] = { 0, 1, 0x7ffc00001000, 1ull << 32, 0xffffffff };

	for (uint32_t resource = 0; resource < 32; resource++) {
		bool is_core = resource == RLIMIT_CORE;

		CHECK_INT(payload(SYS_setrlimit, garbage[resource % COUNT(garbage)] | resource,
		                  0x1000, 0),
		          is_core ? FAILS(0) : V_ALLOW);
		for (size_t i = 0; i < COUNT(pointers) * COUNT(pointers); i++) {
			uint64_t new = pointers[i % COUNT(pointers)];
			uint64_t old = pointers[i / COUNT(pointers)];
			struct seccomp_data data = { .nr = SYS_prlimit64,
				                     .arch = NATIVE,
				                     .args = { 0, resource, new, old } };

			CHECK_INT(payload_data(&data), !is_core || !new ? V_ALLOW
			                               : old            ? V_EPERM
			                                                : FAILS(0));
		}
	}
}

TEST(three_scheduling_classes)
{
	for (uint32_t policy = 0; policy < 300; policy++) {
		bool is_fair =
		    policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;

		for (size_t g = 0; g < COUNT(garbage); g++) {
			uint64_t asked = garbage[g] | policy;

			CHECK_INT(payload(SYS_sched_setscheduler, 0, asked, 0x1000),
			          is_fair ? V_ALLOW : V_EPERM);
			CHECK_INT(
			    payload(SYS_sched_setscheduler, 0, asked | SCHED_RESET_ON_FORK, 0x1000),
			    is_fair ? V_ALLOW : V_EPERM);
		}
	}
	CHECK_INT(payload(SYS_sched_setattr, 0, 0x1000, 0), V_ENOSYS);
}

TEST(prctl_binds_no_thread_to_a_core)
{
	for (uint32_t option = 0; option < 300; option++)
		CHECK_INT(payload(SYS_prctl, option, 0, 0), option == 62 ? FAILS(EINVAL) : V_ALLOW);
}

/* Strict mode, and asking what there is, load nothing. */
TEST(loading_a_filter_is_told)
{
	for (uint32_t value = 0; value < 300; value++) {
		bool by_call = value == SECCOMP_SET_MODE_FILTER;
		bool by_prctl = value == SECCOMP_MODE_FILTER;

		for (size_t g = 0; g < COUNT(garbage); g++) {
			const uint64_t asked = garbage[g] | value;

			CHECK_INT(ask(DEFAULT, SYS_seccomp, asked, 0, 1).verdict,
			          by_call ? V_NOTIFY : V_ALLOW);
			CHECK_INT(ask(QUIET, SYS_seccomp, asked, 0, 1).verdict, V_ALLOW);
			CHECK_INT(ask(DEFAULT, SYS_prctl, PR_SET_SECCOMP, asked, 1).verdict,
			          by_prctl ? V_NOTIFY : V_ALLOW);
			CHECK_INT(ask(QUIET, SYS_prctl, PR_SET_SECCOMP, asked, 1).verdict, V_ALLOW);
		}
	}
}

/* The monitor lets the nursery and commands that have not executed pass, and no other. Without a
 * listener the kernel refuses. */
TEST(marked_births_and_cgroup_namespaces_are_asked_for)
{
	const uint32_t asks = SECCOMP_RET_USER_NOTIF | 1;

	for (uint32_t value = 0; value < 4096; value++) {
		CHECK_INT(payload(SYS_clone3, 0x1000, value, 0), value == 128 ? asks : V_ENOSYS);
		CHECK_INT(payload(SYS_setns, 3, value, 0), V_EPERM);
	}
	for (int bit = 0; bit < 32; bit++)
		CHECK_INT(payload(SYS_setns, 3, 1ull << bit, 0),
		          1u << bit == CLONE_NEWCGROUP ? asks : V_EPERM);
}

static uint32_t ioctl_verdict(uint32_t request)
{
	static const uint32_t denied[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD,
		                           /* bridge, dlci, 8021q: each asks for a module */
		                           0x8940, 0x8941, 0x8980, 0x8981, 0x8982, 0x8983, 0x89a0,
		                           0x89a1, 0x89a2, 0x89a3 };

	for (size_t i = 0; i < COUNT(denied); i++)
		if (request == denied[i])
			return V_EPERM;
	return request >> 8 == 0x4b || request >> 8 == 0x56 ? V_EPERM : V_ALLOW;
}

TEST(no_ioctl_types_into_a_terminal_or_loads_a_module)
{
	CHECK_INT(TIOCSTI, 0x5412);
	CHECK_INT(TIOCLINUX, 0x541c);
	for (uint32_t low = 0; low <= 0xffff; low++) {
		static const uint32_t sizes[] = { 0, 0x10000, 0x80040000, 0xc0080000 };

		for (size_t i = 0; i < COUNT(sizes) * COUNT(garbage); i++) {
			uint32_t request = low | sizes[i % COUNT(sizes)];

			CHECK_INT(payload(SYS_ioctl, 0, garbage[i / COUNT(sizes)] | request, 0),
			          ioctl_verdict(request));
		}
	}
}

TEST(six_personalities)
{
	static const uint32_t allowed[] = { 0, 0x8, 0x20000, 0x20008, 0x40000, UINT32_MAX };

	for (size_t i = 0; i < COUNT(allowed) * COUNT(garbage); i++)
		CHECK_INT(payload(SYS_personality,
		                  garbage[i / COUNT(allowed)] | allowed[i % COUNT(allowed)], 0, 0),
		          V_ALLOW);
	for (int high = 0; high < 32; high++) {
		for (int low = 0; low <= high; low++) {
			uint32_t value = 1u << high | 1u << low;
			bool known = value == 0x8 || value == 0x20000 || value == 0x20008 ||
			             value == 0x40000;

			CHECK_INT(payload(SYS_personality, value, 0, 0), known ? V_ALLOW : V_EPERM);
			CHECK_INT(payload(SYS_personality, ~value, 0, 0), V_EPERM);
		}
	}
}

TEST(nodes_are_never_devices)
{
	for (uint32_t mode = 0; mode <= 0xffff; mode++) {
		bool device =
		    !(S_ISREG(mode) || S_ISFIFO(mode) || S_ISSOCK(mode) || !(mode & S_IFMT));
		uint32_t want = device ? V_EPERM : V_ALLOW;

		for (size_t g = 0; g < COUNT(garbage); g++) {
			uint64_t asked = garbage[g] | mode | 0x50000;
#ifdef SYS_mknod
			CHECK_INT(payload(SYS_mknod, 0, asked, S_IFREG), want);
#endif
			CHECK_INT(payload(SYS_mknodat, 0, S_IFREG, asked), want);
		}
	}
}

TEST(init_writes_to_stderr_only)
{
	for (uint32_t fd = 0; fd < 300; fd++) {
		for (size_t g = 0; g < COUNT(garbage); g++)
			CHECK_INT(ask(INIT, SYS_write, garbage[g] | fd, 0, 0).verdict,
			          fd == 2 ? V_ALLOW : V_EPERM);
	}
}

/* What a kernel before 5.11 runs for each; newer ones remember the verdict of the first five. */
TEST(hot_calls_are_short)
{
	static const struct {
		const char *call;
		int nr;
		unsigned int steps_max;
	} hot[] = {
		{ "read", SYS_read, 20 },     { "write", SYS_write, 20 },
		{ "openat", SYS_openat, 20 }, { "futex", SYS_futex, 20 },
		{ "mmap", SYS_mmap, 20 },     { "ioctl", SYS_ioctl, 40 },
		{ "socket", SYS_socket, 40 }, { "clone", SYS_clone, 40 },
	};

	for (size_t i = 0; i < COUNT(hot); i++) {
		struct outcome o = ask(DEFAULT, hot[i].nr, AF_UNIX, TCGETS, 0);

		printf("# %s: %u instructions\n", hot[i].call, o.steps);
		CHECK_INT(o.verdict, V_ALLOW);
		CHECK(o.steps <= hot[i].steps_max);
	}
}

/* A launch waits while the kernel translates the program. Less is better: lower the bound then. */
TEST(programs_are_small)
{
	static const size_t len_max[] = { [DEFAULT] = 222, [QUIET] = 222, [INIT] = 42 };

	for (int which = DEFAULT; which <= INIT; which++) {
		printf("# %s: %zu instructions\n", programs[which].name, programs[which].len);
		CHECK(programs[which].len <= len_max[which]);
	}
}

/* In this process, from here on: only what the filter allows. */
static int enter(const struct program *p, bool listener)
{
	CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	return os_seccomp_load(p->code, p->len, listener);
}

TEST(the_kernel_takes_the_default_filter)
{
	CHECK_INT(enter(&programs[QUIET], false), 0);

	CHECK_INT(syscall(SYS_io_uring_setup, 1, NULL) < 0 ? errno : 0, ENOSYS);
	CHECK_INT(syscall(SYS_clone3, NULL, 0) < 0 ? errno : 0, ENOSYS);
	CHECK_INT(syscall(NUMBERS) < 0 ? errno : 0, ENOSYS);
	CHECK_INT(syscall(SYS_unshare, 0) < 0 ? errno : 0, EPERM);
	CHECK_INT(ioctl(-1, TIOCSTI, "x") < 0 ? errno : 0, EPERM);
	CHECK_INT(ioctl(-1, TCGETS, NULL) < 0 ? errno : 0, EBADF);
	CHECK_INT(socket(AF_ALG, SOCK_SEQPACKET, 0) < 0 ? errno : 0, EAFNOSUPPORT);
	CHECK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
}

TEST(the_kernel_takes_the_filter_of_init)
{
	CHECK_INT(enter(&programs[INIT], false), 0);
	CHECK_INT(syscall(SYS_getppid) < 0 ? errno : 0, ENOSYS);
	CHECK_INT(syscall(SYS_write, 1, "", 0) < 0 ? errno : 0, EPERM);
	CHECK_INT(syscall(SYS_write, 2, "", 0), 0);
	syscall(SYS_exit_group, TEST_PASSED); /* exit() flushes stdout, and ASan has work to do */
}

static pid_t start_true(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(errno);
	}
	return pid;
}

TEST(exec_waits_for_the_listener)
{
	AUTO(fd_close) int listener = enter(&programs[DEFAULT], true);
	struct seccomp_notif seen;
	int status;

	CHECK(listener >= 0);
	pid_t pid = start_true();
	CHECK_INT(os_seccomp_receive(listener, &seen), 0);
	CHECK_INT(seen.data.nr, SYS_execve);
	CHECK_INT(seen.pid, pid);
	CHECK_INT(waitpid(pid, &status, WNOHANG), 0);
	CHECK_INT(os_seccomp_continue(listener, seen.id), 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 0);
}

TEST(exec_fails_without_a_listener)
{
	int listener = enter(&programs[DEFAULT], true);
	int status;

	CHECK(listener >= 0);
	fd_close(&listener);
	pid_t pid = start_true();
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), ENOSYS);
}
