#include "engine/hostcheck.h"

#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "engine/copytree.h"
#include "test.h"

/* ---- a host of the test's own ------------------------------------------------------ */

struct file {
	const char *path, *text; /* NULL: not there */
};

/* A host with nothing to complain about. */
static const struct file good[] = {
	{ "proc/sys/kernel/osrelease", "6.8.3-amd64" },
	{ "proc/sys/kernel/unprivileged_userns_clone", "1" },
	{ "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0" },
	{ "proc/sys/user/max_user_namespaces", "100" },
	{ "proc/sys/user/max_mnt_namespaces", "100" },
	{ "proc/sys/user/max_pid_namespaces", "100" },
	{ "proc/sys/user/max_net_namespaces", "100" },
	{ "proc/sys/user/max_ipc_namespaces", "100" },
	{ "proc/sys/user/max_uts_namespaces", "100" },
	{ "proc/sys/user/max_cgroup_namespaces", "100" },
	{ "proc/sys/kernel/io_uring_disabled", "2" },
	{ "proc/sys/kernel/unprivileged_bpf_disabled", "2" },
	{ "proc/sys/dev/tty/legacy_tiocsti", "0" },
	{ "proc/sys/kernel/kptr_restrict", "1" },
	{ "proc/sys/kernel/dmesg_restrict", "1" },
	{ "proc/sys/kernel/perf_event_paranoid", "3" },
	{ "proc/sys/kernel/yama/ptrace_scope", "1" },
	{ "proc/sys/kernel/randomize_va_space", "2" },
	{ "proc/sys/vm/unprivileged_userfaultfd", "0" },
	{ "proc/sys/vm/mmap_min_addr", "65536" },
	{ "proc/sys/net/core/bpf_jit_harden", "1" },
	{ "proc/sys/net/core/bpf_jit_limit", "264241152" },
	{ "proc/sys/fs/suid_dumpable", "0" },
	{ "proc/sys/kernel/modules_disabled", "1" },
	{ "proc/sys/kernel/core_pattern", "core" },
	{ "proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n"
	                         "23 22 0:30 / /proc/sys/fs/binfmt_misc rw - binfmt_misc none rw" },
	{ "proc/self/cgroup", "0::/user.slice/user.scope" },
	{ "proc/swaps", "Filename Type Size Used Priority\n/dev/vdb partition 1 0 -2" },
	{ "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids" },
	{ "sys/fs/cgroup/user.slice/user.scope/cgroup.controllers", "cpu memory pids" },
	{ "sys/fs/cgroup/user.slice/user.scope/cgroup.procs", "1" },
	{ "sys/fs/cgroup/user.slice/user.scope/memory.max", "max" },
	{ "sys/fs/cgroup/user.slice/user.scope/memory.swap.max", "max" },
	{ "sys/kernel/security/lsm", "lockdown,capability,landlock,yama,apparmor" },
	{ "sys/devices/system/cpu/vulnerabilities/mds", "Not affected" },
	{ "sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: IBRS" },
};

#define HOST "/tmp/test-hostcheck-XXXXXX"

static void host_write(const char *root, const struct file *f)
{
	char path[512], folder[512];

	snprintf(path, sizeof path, "%s/%s", root, f->path);
	if (!f->text) {
		unlink(path);
		return;
	}
	for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
		mkdir(folder, 0755);
	}
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK_INT(write(fd, f->text, strlen(f->text)), (long long)strlen(f->text));
	CHECK_INT(write(fd, "\n", 1), 1);
}

static void host_make(char *root)
{
	CHECK(mkdtemp(root));
	for (size_t i = 0; i < COUNT(good); i++)
		host_write(root, &good[i]);
}

static void host_remove(const char *root)
{
	copytree_remove(AT_FDCWD, root);
}

/* Facts of the good host with some files changed, every trial a success. */
static void host_facts(const struct file *changed, size_t n, enum host_mode mode,
                       struct hostfacts *f)
{
	char root[] = HOST;

	host_make(root);
	for (size_t i = 0; i < n && changed[i].path; i++)
		host_write(root, &changed[i]);
	hostcheck_read(root, mode, f);
	host_remove(root);
	memset(f->tried, 0, sizeof f->tried);
	f->landlock_abi = 4;
}

#define FACTS(mode, f, ...)                                                                        \
	host_facts((const struct file[]){ __VA_ARGS__ }, COUNT(((struct file[]){ __VA_ARGS__ })),  \
	           mode, f)

/* ---- verdicts ---------------------------------------------------------------------- */

struct verdict {
	struct arena arena;
	struct hostcheck_row rows[HOST_ROWS_MAX];
	size_t n;
	bool is_enforceable;
};

static void judge(const struct hostfacts *f, struct verdict *v)
{
	*v = (struct verdict){ 0 };
	v->n = hostcheck_judge(f, &v->arena, v->rows);
	v->is_enforceable = hostcheck_enforceable(f->mode, v->rows, v->n);
	CHECK(v->n < HOST_ROWS_MAX); /* else some may have been lost */
	for (size_t i = 0; i < v->n; i++) {
		const struct hostcheck_row *r = &v->rows[i];

		printf("# %d %s %d %s\n", r->area, r->name, r->state, r->by ? r->by : "-");
		CHECK((r->detail != NULL) ==
		      (r->fix != NULL)); /* a reason and what to do, or neither */
		CHECK(r->state != HOST_OK || !r->detail);
		CHECK(r->state != HOST_WEAK || r->detail);
	}
}

static void verdict_done(struct verdict *v)
{
	arena_done(&v->arena);
}

static const struct hostcheck_row *row_of(const struct verdict *v, enum host_area area,
                                          const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->rows[i].area == area && strcmp(v->rows[i].name, name) == 0)
			return &v->rows[i];
	printf("# no row %s\n", name);
	CHECK(false);
	return NULL;
}

static size_t count(const struct verdict *v, enum host_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++)
		n += v->rows[i].state == state;
	return n;
}

TEST(a_good_host_has_no_finding)
{
	static const enum host_mode modes[] = { HOST_ROOT, HOST_ROOTLESS };
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(modes); i++) {
		AUTO(verdict_done) struct verdict v;

		FACTS(modes[i], &f, { NULL, NULL });
		judge(&f, &v);
		CHECK(v.is_enforceable);
		CHECK_INT(count(&v, HOST_WEAK) + count(&v, HOST_MISSING), 0);
		/* root cannot know what a user was given: cpu and mem */
		CHECK_INT(count(&v, HOST_NOT_KNOWN), modes[i] == HOST_ROOT ? 2 : 0);
	}
}

/* clang-format off */
static const struct {
	struct file file;
	const char *name, *by, *fix; /* fix NULL: some text */
} weak[] = {
	{ { "proc/sys/kernel/io_uring_disabled", "0" },
	  "kernel.io_uring_disabled", "0", "sysctl -w kernel.io_uring_disabled=2" },
	{ { "proc/sys/kernel/unprivileged_bpf_disabled", "0" },
	  "kernel.unprivileged_bpf_disabled", "0", "sysctl -w kernel.unprivileged_bpf_disabled=2" },
	{ { "proc/sys/dev/tty/legacy_tiocsti", "1" },
	  "dev.tty.legacy_tiocsti", "1", "sysctl -w dev.tty.legacy_tiocsti=0" },
	{ { "proc/sys/kernel/kptr_restrict", "0" },
	  "kernel.kptr_restrict", "0", "sysctl -w kernel.kptr_restrict=1" },
	{ { "proc/sys/kernel/dmesg_restrict", "0" },
	  "kernel.dmesg_restrict", "0", "sysctl -w kernel.dmesg_restrict=1" },
	{ { "proc/sys/kernel/perf_event_paranoid", "-1" },
	  "kernel.perf_event_paranoid", "-1", "sysctl -w kernel.perf_event_paranoid=2" },
	{ { "proc/sys/kernel/yama/ptrace_scope", "0" },
	  "kernel.yama.ptrace_scope", "0", "sysctl -w kernel.yama.ptrace_scope=1" },
	{ { "proc/sys/kernel/yama/ptrace_scope", NULL }, "kernel.yama.ptrace_scope", "absent",
	  "add it to lsm= on the kernel command line: lsm=landlock,lockdown,yama,apparmor" },
	{ { "proc/sys/kernel/randomize_va_space", "1" },
	  "kernel.randomize_va_space", "1", "sysctl -w kernel.randomize_va_space=2" },
	{ { "proc/sys/vm/unprivileged_userfaultfd", "1" },
	  "vm.unprivileged_userfaultfd", "1", "sysctl -w vm.unprivileged_userfaultfd=0" },
	{ { "proc/sys/vm/mmap_min_addr", "0" },
	  "vm.mmap_min_addr", "0", "sysctl -w vm.mmap_min_addr=65536" },
	{ { "proc/sys/net/core/bpf_jit_harden", "0" },
	  "net.core.bpf_jit_harden", "0", "sysctl -w net.core.bpf_jit_harden=1" },
	{ { "proc/sys/net/core/bpf_jit_limit", "33554432" },
	  "net.core.bpf_jit_limit", "33554432", "sysctl -w net.core.bpf_jit_limit=536870912" },
	{ { "proc/sys/fs/suid_dumpable", "1" },
	  "fs.suid_dumpable", "1", "sysctl -w fs.suid_dumpable=0" },
	{ { "proc/sys/fs/suid_dumpable", "2" },
	  "fs.suid_dumpable", "2", "sysctl -w fs.suid_dumpable=0" },
	{ { "proc/sys/kernel/osrelease", "6.9.0" },
	  "freed filters", "may deadlock", NULL },
	{ { "proc/sys/kernel/modules_disabled", "0" },
	  "kernel.modules_disabled", "0", "sysctl -w kernel.modules_disabled=1" },
	{ { "proc/sys/kernel/core_pattern", "|/usr/lib/dump %P" },
	  "kernel.core_pattern", "|/usr/lib/dump %P", "sysctl -w kernel.core_pattern=core" },
	{ { "sys/kernel/security/lsm", "capability,landlock,yama" },
	  "security module", "capability,landlock,yama", NULL },
	{ { "sys/kernel/security/lsm", NULL }, "security module", "none", NULL },
	{ { "sys/devices/system/cpu/vulnerabilities/mds", "Vulnerable: no microcode" },
	  "processor", "mds", NULL },
	{ { "proc/sys/kernel/osrelease", "6.5.9" },
	  "overlay folders", "without user attributes", NULL },
};
/* clang-format on */

TEST(every_weak_setting_is_reported_with_reason_and_fix)
{
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(weak); i++) {
		AUTO(verdict_done) struct verdict v;

		host_facts(&weak[i].file, 1, HOST_ROOT, &f);
		judge(&f, &v);
		const struct hostcheck_row *r = row_of(&v, AREA_SETTINGS, weak[i].name);
		CHECK_INT(r->state, HOST_WEAK);
		CHECK_STR(r->by, weak[i].by);
		if (weak[i].fix)
			CHECK_STR(r->fix, weak[i].fix);
		CHECK_INT(count(&v, HOST_WEAK), 1);
		CHECK(v.is_enforceable); /* weak, not refused */
	}
}

TEST(what_is_not_built_in_is_not_weak)
{
	static const struct {
		const char *release, *path, *name;
		enum host_state state;
	} rows[] = {
		/* before the switch came, it was on */
		{ "6.1.0-28-amd64", "proc/sys/kernel/io_uring_disabled", "kernel.io_uring_disabled",
		  HOST_WEAK },
		{ "6.6.1", "proc/sys/kernel/io_uring_disabled", "kernel.io_uring_disabled",
		  HOST_OK },
		{ "6.1.0-28-amd64", "proc/sys/dev/tty/legacy_tiocsti", "dev.tty.legacy_tiocsti",
		  HOST_WEAK },
		{ "6.2.0", "proc/sys/dev/tty/legacy_tiocsti", "dev.tty.legacy_tiocsti", HOST_OK },
		{ "6.1.0-28-amd64", "proc/sys/kernel/perf_event_paranoid",
		  "kernel.perf_event_paranoid", HOST_OK },
		{ "6.1.0-28-amd64", "proc/sys/kernel/unprivileged_bpf_disabled",
		  "kernel.unprivileged_bpf_disabled", HOST_OK },
		{ "6.1.0-28-amd64", "proc/sys/kernel/unprivileged_userns_clone",
		  "kernel.unprivileged_userns_clone", HOST_OK },
	};
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;

		FACTS(HOST_ROOT, &f, { "proc/sys/kernel/osrelease", rows[i].release },
		      { rows[i].path, NULL });
		judge(&f, &v);
		CHECK_INT(row_of(&v, AREA_SETTINGS, rows[i].name)->state, rows[i].state);
	}
}

TEST(a_value_that_cannot_be_read_is_not_called_good)
{
	AUTO(verdict_done) struct verdict v;
	struct hostfacts f;

	FACTS(HOST_ROOTLESS, &f, { "proc/sys/net/core/bpf_jit_harden", "hidden" });
	judge(&f, &v);
	CHECK_INT(row_of(&v, AREA_SETTINGS, "net.core.bpf_jit_harden")->state, HOST_NOT_KNOWN);
}

TEST(a_kernel_below_the_floor_is_refused)
{
	static const struct {
		const char *release;
		bool is_fine;
	} rows[] = {
		{ "4.19.0", false },     { "5.15.0-91-generic", false },
		{ "6.0.19", false },     { "6.1.0-28-amd64", true },
		{ "6.1", true },         { "6.12.0-rc1", true },
		{ "7.0.0", true },       { "10.2", true },
		{ "unreadable", false }, { NULL, false },
	};
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;

		FACTS(HOST_ROOT, &f, { "proc/sys/kernel/osrelease", rows[i].release });
		judge(&f, &v);
		CHECK_INT(row_of(&v, AREA_WALLS, "kernel")->state,
		          rows[i].is_fine ? HOST_OK : HOST_MISSING);
		CHECK_INT(v.is_enforceable, rows[i].is_fine);
	}
}

TEST(settings_that_forbid_namespaces_are_the_cause_and_the_fix)
{
	static const struct {
		struct file file;
		const char *name, *fix;
	} rows[] = {
		{ { "proc/sys/kernel/unprivileged_userns_clone", "0" },
		  "kernel.unprivileged_userns_clone",
		  "sysctl -w kernel.unprivileged_userns_clone=1" },
		{ { "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1" },
		  "kernel.apparmor_restrict_unprivileged_userns",
		  "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
		{ { "proc/sys/user/max_user_namespaces", "0" },
		  "user.max_user_namespaces",
		  "sysctl -w user.max_user_namespaces=65536" },
		{ { "proc/sys/user/max_cgroup_namespaces", "0" },
		  "user.max_cgroup_namespaces",
		  "sysctl -w user.max_cgroup_namespaces=65536" },
	};
	static const int answers[] = { EPERM, HOST_UNKNOWN };
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(rows) * COUNT(answers); i++) {
		AUTO(verdict_done) struct verdict v;
		const size_t at = i / COUNT(answers);

		host_facts(&rows[at].file, 1, HOST_ROOT, &f);
		f.tried[TRY_NAMESPACES] = answers[i % COUNT(answers)];
		judge(&f, &v);
		CHECK(!v.is_enforceable);
		CHECK_STR(row_of(&v, AREA_SETTINGS, rows[at].name)->fix, rows[at].fix);
		CHECK_INT(row_of(&v, AREA_SETTINGS, rows[at].name)->state, HOST_MISSING);
		CHECK_STR(row_of(&v, AREA_WALLS, "namespaces")->fix, NULL);
		CHECK_STR(row_of(&v, AREA_ROOT, "net")->by, NULL);
		CHECK_STR(row_of(&v, AREA_ROOTLESS, "user")->by, NULL);
		CHECK_STR(row_of(&v, AREA_ROOT, "syscalls")->by, "seccomp");
	}
}

/* AppArmor with a profile for us: the setting stands, and so do the walls. */
TEST(a_trial_outweighs_a_setting)
{
	AUTO(verdict_done) struct verdict v;
	struct hostfacts f;

	FACTS(HOST_ROOTLESS, &f, { "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1" });
	judge(&f, &v);
	CHECK(v.is_enforceable);
	CHECK_INT(count(&v, HOST_MISSING), 0);
	CHECK_STR(row_of(&v, AREA_SETTINGS, "kernel.apparmor_restrict_unprivileged_userns")->by,
	          "1");
}

TEST(a_failed_trial_names_the_fix)
{
	static const struct {
		enum host_try try;
		int error;
		const char *name, *fix, *lost; /* a field that then has no mechanism */
	} rows[] = {
		{ TRY_NAMESPACES, ENOSPC, "namespaces",
		  "sysctl -w user.max_user_namespaces=", "net" },
		{ TRY_NAMESPACES, EINVAL, "namespaces", "CONFIG_USER_NS=y", "user" },
		{ TRY_NAMESPACES, EPERM, "namespaces", "--security-opt seccomp=unconfined",
		  "disk" },
		{ TRY_OVERLAY, ENODEV, "overlay", "modprobe overlay", "fs" },
		{ TRY_OVERLAY, EPERM, "overlay", "overlayfs", "fs" },
		{ TRY_PROC, EPERM, "proc", "systempaths=unconfined", "fs" },
		{ TRY_NOTIFY, EBUSY, "seccomp", "do not nest", "syscalls" },
		{ TRY_NOTIFY, EINVAL, "seccomp", "CONFIG_SECCOMP_FILTER=y", "syscalls" },
	};
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;

		FACTS(HOST_ROOT, &f, { NULL, NULL });
		f.tried[rows[i].try] = rows[i].error;
		judge(&f, &v);
		const struct hostcheck_row *r = row_of(&v, AREA_WALLS, rows[i].name);
		CHECK(!v.is_enforceable);
		CHECK_INT(r->state, HOST_MISSING);
		CHECK(strstr(r->detail, strerror(rows[i].error)));
		CHECK(strstr(r->fix, rows[i].fix));
		CHECK_STR(row_of(&v, AREA_ROOT, rows[i].lost)->by, NULL);
	}
}

TEST(a_file_system_without_idmaps_is_only_weak)
{
	AUTO(verdict_done) struct verdict v;
	struct hostfacts f;

	FACTS(HOST_ROOT, &f, { NULL, NULL });
	f.tried[TRY_IDMAP] = EINVAL;
	judge(&f, &v);
	CHECK(v.is_enforceable);
	CHECK_INT(row_of(&v, AREA_WALLS, "idmap")->state, HOST_WEAK);
}

TEST(what_workspaces_need_is_told_and_sandboxes_do_without)
{
	static const struct {
		enum host_try try;
		int error;
		const char *name, *why, *fix;
	} rows[] = {
		{ TRY_LAYERS, ENODEV, "workspaces", "no workspaces", "modprobe overlay" },
		{ TRY_LAYERS, EINVAL, "workspaces", "no workspaces", "state folder on ext4" },
		{ TRY_VOLUMES, ENOENT, "volumes", "bounds", "/dev/loop-control" },
		{ TRY_VOLUMES, ENODEV, "volumes", "bounds", "modprobe -a loop ext4" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;
		struct hostfacts f;

		FACTS(HOST_ROOT, &f, { NULL, NULL });
		f.tried[rows[i].try] = rows[i].error;
		judge(&f, &v);
		CHECK(v.is_enforceable);
		const struct hostcheck_row *row = row_of(&v, AREA_WALLS, rows[i].name);
		CHECK_INT(row->state, HOST_WEAK);
		CHECK(strstr(row->detail, rows[i].why));
		CHECK(strstr(row->fix, rows[i].fix));
	}
}

TEST(without_nf_tables_only_networks_are_missing)
{
	static const struct {
		int error;
		const char *fix;
	} rows[] = { { ENOENT, "nft_tproxy" }, { EPERM, "CAP_NET_ADMIN" } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;
		struct hostfacts f;

		FACTS(HOST_ROOT, &f, { NULL, NULL });
		f.tried[TRY_NETFILTER] = rows[i].error;
		judge(&f, &v);
		CHECK(v.is_enforceable);
		const struct hostcheck_row *r = row_of(&v, AREA_WALLS, "netfilter");
		CHECK_INT(r->state, HOST_WEAK);
		CHECK(strstr(r->detail, "only `net: deny`"));
		CHECK(strstr(r->fix, rows[i].fix));
	}
}

TEST(landlock_is_a_wall)
{
	static const struct {
		int abi;
		enum host_state state;
		const char *by;
	} rows[] = { { 0, HOST_MISSING, NULL },
		     { 2, HOST_OK, "ABI 2" },
		     { HOST_UNKNOWN, HOST_NOT_KNOWN, NULL } };
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;

		FACTS(HOST_ROOT, &f, { NULL, NULL });
		f.landlock_abi = rows[i].abi;
		judge(&f, &v);
		CHECK_INT(row_of(&v, AREA_WALLS, "landlock")->state, rows[i].state);
		CHECK_STR(row_of(&v, AREA_WALLS, "landlock")->by, rows[i].by);
		CHECK_INT(v.is_enforceable, rows[i].abi != 0);
	}
}

TEST(a_covered_proc_is_named)
{
	AUTO(verdict_done) struct verdict v;
	struct hostfacts f;

	FACTS(HOST_ROOT, &f, { NULL, NULL });
	CHECK_STR(f.proc_covered, ""); /* binfmt_misc hides nothing */
	FACTS(HOST_ROOT, &f,
	      { "proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n"
	                               "24 22 0:5 /null /proc/kcore rw - devtmpfs dev rw" });
	CHECK_STR(f.proc_covered, "/proc/kcore");
	f.tried[TRY_PROC] = EPERM;
	judge(&f, &v);
	CHECK(strstr(row_of(&v, AREA_WALLS, "proc")->detail, "/proc/kcore is covered"));
}

/* ---- cgroups ----------------------------------------------------------------------- */

#define V1_LINES "4:memory:/\n3:pids:/\n2:cpu,cpuacct:/a\n1:name=systemd:/"
#define NO_V2                                                                                      \
	{                                                                                          \
		"sys/fs/cgroup/cgroup.controllers", NULL                                           \
	}
#define V1_MEMORY                                                                                  \
	{                                                                                          \
		"sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "1"                            \
	}
#define V1_CPU                                                                                     \
	{                                                                                          \
		"sys/fs/cgroup/cpu,cpuacct/tasks", ""                                              \
	}

/* clang-format off */
static const struct {
	struct file files[6];
	const char *layout, *mem, *cpu, *fix; /* of root mode */
} layouts[] = {
	{ { { "proc/self/cgroup", "0::/user.slice/user.scope" } }, "v2", "cgroup2", "cgroup2", NULL },
	{ { { "proc/self/cgroup", V1_LINES }, NO_V2, V1_MEMORY, V1_CPU },
	  "v1", "cgroup1", "cgroup1", NULL },
	{ { { "proc/self/cgroup", V1_LINES "\n0::/" }, NO_V2, V1_MEMORY, V1_CPU,
	    { "sys/fs/cgroup/unified/cgroup.controllers", "hugetlb" } },
	  "v1 and v2", "cgroup1", "cgroup1", NULL },
	/* part of it mounted */
	{ { { "proc/self/cgroup", V1_LINES }, NO_V2, V1_MEMORY }, "v1", "cgroup1", NULL,
	  "mkdir /sys/fs/cgroup/cpu,cpuacct && mount -t cgroup -o cpu,cpuacct cgroup "
	  "/sys/fs/cgroup/cpu,cpuacct" },
	{ { { "proc/self/cgroup", V1_LINES }, NO_V2 }, "none", NULL, NULL,
	  "mount -t tmpfs cgroup /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu,cpuacct && mount -t "
	  "cgroup -o cpu,cpuacct cgroup /sys/fs/cgroup/cpu,cpuacct" },
	{ { { "proc/self/cgroup", "0::/" }, NO_V2 }, "none", NULL, NULL,
	  "mount -t cgroup2 cgroup2 /sys/fs/cgroup" },
	{ { { "proc/self/cgroup", NULL }, NO_V2 }, "none", NULL, NULL,
	  "mount -t cgroup2 cgroup2 /sys/fs/cgroup" },
	{ { { "sys/fs/cgroup/cgroup.controllers", "memory pids" } }, "v2", "cgroup2", NULL,
	  "on the host: write +cpu to cgroup.subtree_control of every group above this container's" },
	{ { { "sys/fs/cgroup/cgroup.controllers", "memory" },
	    { "proc/self/cgroup", "1:cpu,cpuacct:/\n0::/" } },
	  "v2", "cgroup2", NULL,
	  "add cgroup_no_v1=all to the kernel command line: v1 holds the controller" },
	{ { { "sys/fs/cgroup/cgroup.controllers", "memory" },
	    { "proc/cgroups", "#subsys_name hierarchy num_cgroups enabled\ncpu 0 1 0\nmemory 0 1 1" } },
	  "v2", "cgroup2", NULL, "add cgroup_enable=cpu to the kernel command line" },
};
/* clang-format on */

TEST(layouts_of_cgroups)
{
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(layouts); i++) {
		AUTO(verdict_done) struct verdict v;

		printf("# row %zu\n", i);
		host_facts(layouts[i].files, COUNT(layouts[i].files), HOST_ROOT, &f);
		judge(&f, &v);
		CHECK_STR(hostcheck_layout_name(f.layout), layouts[i].layout);
		CHECK_STR(row_of(&v, AREA_ROOT, "mem")->by, layouts[i].mem);
		CHECK_STR(row_of(&v, AREA_ROOT, "cpu")->by, layouts[i].cpu);
		CHECK_STR(row_of(&v, AREA_ROOT, "cpu")->fix, layouts[i].fix);
		CHECK_INT(v.is_enforceable, layouts[i].fix == NULL);
	}
}

/* What is there and not what a launch found: it cannot be written to. */
TEST(a_read_only_cgroup_is_remounted)
{
	AUTO(verdict_done) struct verdict v;
	struct hostfacts f;

	FACTS(HOST_ROOT, &f, { NULL, NULL });
	f.cgroups[HOST_ROOT].n_trees = 0;
	judge(&f, &v);
	CHECK(!v.is_enforceable);
	CHECK_STR(row_of(&v, AREA_ROOT, "mem")->fix, "mount -o remount,rw /sys/fs/cgroup/");
}

TEST(what_a_user_can_limit)
{
	static const struct {
		struct file files[8];
		const char *mem, *fix;
	} rows[] = {
		{ { { NULL, NULL } }, "cgroup2", NULL },
		{ { { "sys/fs/cgroup/user.slice/user.scope/cgroup.procs", NULL } },
		  NULL,
		  "systemd-run --user --scope -p Delegate=yes -- caisson run ..." },
		{ { { "sys/fs/cgroup/user.slice/user.scope/cgroup.controllers", "pids" } },
		  NULL,
		  "mkdir -p /etc/systemd/system/user@.service.d && " },
		{ { { "proc/self/cgroup", V1_LINES }, NO_V2, V1_MEMORY, V1_CPU },
		  NULL,
		  "sudo caisson run ..., or add systemd.unified_cgroup_hierarchy=1" },
		{ { { "proc/self/cgroup", "0::/" }, NO_V2 },
		  NULL,
		  "mount -t cgroup2 cgroup2 /sys/fs/cgroup" },
	};
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;

		printf("# row %zu\n", i);
		host_facts(rows[i].files, COUNT(rows[i].files), HOST_ROOTLESS, &f);
		judge(&f, &v);
		const struct hostcheck_row *r = row_of(&v, AREA_ROOTLESS, "mem");
		CHECK_STR(r->by, rows[i].mem);
		CHECK((r->fix == NULL) == (rows[i].fix == NULL));
		CHECK(!rows[i].fix || strncmp(r->fix, rows[i].fix, strlen(rows[i].fix)) == 0);
		CHECK_INT(v.is_enforceable, rows[i].fix == NULL);
		/* Without a cgroup too. */
		CHECK(row_of(&v, AREA_ROOTLESS, "pids")->by != NULL);
	}
}

/* What the other mode lacks is shown and does not count. */
TEST(the_other_mode_does_not_decide)
{
	AUTO(verdict_done) struct verdict v;
	struct hostfacts f;

	FACTS(HOST_ROOT, &f, { "proc/self/cgroup", V1_LINES }, NO_V2, V1_MEMORY, V1_CPU);
	judge(&f, &v);
	CHECK(v.is_enforceable);
	CHECK_INT(row_of(&v, AREA_ROOTLESS, "mem")->state, HOST_MISSING);
}

TEST(swap_that_nobody_counts_is_weak)
{
	static const struct {
		struct file files[6];
		enum host_state state;
	} rows[] = {
		{ { { "sys/fs/cgroup/user.slice/user.scope/memory.swap.max", NULL } }, HOST_WEAK },
		{ { { "sys/fs/cgroup/user.slice/user.scope/memory.swap.max", NULL },
		    { "proc/swaps", "Filename Type Size Used Priority" } },
		  HOST_OK },
		{ { { "proc/self/cgroup", V1_LINES },
		    NO_V2,
		    V1_CPU,
		    { "sys/fs/cgroup/memory/tasks", "" } },
		  HOST_WEAK },
		{ { { "proc/self/cgroup", V1_LINES }, NO_V2, V1_CPU, V1_MEMORY }, HOST_OK },
	};
	struct hostfacts f;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(verdict_done) struct verdict v;

		printf("# row %zu\n", i);
		host_facts(rows[i].files, COUNT(rows[i].files), HOST_ROOT, &f);
		judge(&f, &v);
		CHECK_INT(row_of(&v, AREA_ROOT, "mem")->state, rows[i].state);
	}
}

/* ---- this host --------------------------------------------------------------------- */

static void read_mounts(char *out, size_t size)
{
	AUTO(fd_close) int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
}

TEST(trials_answer_and_leave_nothing)
{
	AUTO(verdict_done) struct verdict v;
	static char before[1 << 18], after[1 << 18];
	const enum host_mode mode = geteuid() == 0 ? HOST_ROOT : HOST_ROOTLESS;
	struct hostfacts f;

	read_mounts(before, sizeof before);
	hostcheck_read("", mode, &f);
	hostcheck_try(&f);
	read_mounts(after, sizeof after);
	CHECK_STR(after, before);
	CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	CHECK(f.major > 0);
	CHECK(f.tried[TRY_NAMESPACES] != HOST_UNKNOWN);
	CHECK(f.tried[TRY_NAMESPACES] != 0 || f.tried[TRY_PROC] != HOST_UNKNOWN);
	CHECK_INT(f.tried[TRY_IDMAP] == HOST_UNKNOWN, mode == HOST_ROOTLESS);
	CHECK_INT(f.tried[TRY_LAYERS] == HOST_UNKNOWN, mode == HOST_ROOTLESS);
	CHECK_INT(f.tried[TRY_VOLUMES] == HOST_UNKNOWN, mode == HOST_ROOTLESS);
	CHECK(f.landlock_abi >= 0);
	judge(&f, &v);
}

/* ---- the same words at the end of an error ------------------------------------------ */

TEST(a_launch_that_failed_says_what_to_type)
{
	static const struct {
		struct file file;
		enum err_kind kind;
		int sys;
		const char *text, *want; /* NULL: nothing is added */
	} rows[] = {
		{ { "proc/sys/kernel/unprivileged_userns_clone", "0" },
		  ERR_INTERNAL,
		  EPERM,
		  "clone",
		  "; as root: sysctl -w kernel.unprivileged_userns_clone=1" },
		{ { "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1" },
		  ERR_INTERNAL,
		  EACCES,
		  "mount",
		  "; as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
		{ { "proc/sys/user/max_net_namespaces", "0" },
		  ERR_INTERNAL,
		  ENOSPC,
		  "unshare",
		  "; as root: sysctl -w user.max_net_namespaces=65536" },
		{ { "proc/sys/kernel/osrelease", "5.10.0-8-amd64" },
		  ERR_INTERNAL,
		  ENOSYS,
		  "mount",
		  "; Linux 5.10.0-8-amd64 is too old: a kernel of 6.1 or later" },
		{ { NULL, NULL },
		  ERR_INTERNAL,
		  EROFS,
		  "make /sys/fs/cgroup/memory/caisson/1",
		  "; let /sys/fs/cgroup be written" },
		{ { NULL, NULL }, ERR_INTERNAL, EROFS, "make /run/x", NULL },
		{ { NULL, NULL }, ERR_INTERNAL, EPERM, "clone", NULL },
		{ { "proc/sys/kernel/unprivileged_userns_clone", "0" },
		  ERR_INTERNAL,
		  ENODEV,
		  "mount",
		  NULL },
		{ { "proc/sys/kernel/unprivileged_userns_clone", "0" },
		  ERR_INVALID,
		  EPERM,
		  "cwd",
		  NULL },
		{ { "proc/sys/kernel/unprivileged_userns_clone", "0" },
		  ERR_INTERNAL,
		  0,
		  "no",
		  NULL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char root[] = HOST;
		struct err e = { .kind = rows[i].kind, .sys = rows[i].sys };

		printf("# row %zu\n", i);
		host_make(root);
		if (rows[i].file.path)
			host_write(root, &rows[i].file);
		snprintf(e.msg, sizeof e.msg, "%s", rows[i].text);
		CHECK_INT(hostcheck_advise(root, HOST_ROOTLESS, &e), rows[i].want != NULL);
		const char *added = e.msg + strlen(rows[i].text);

		if (rows[i].want)
			CHECK(strncmp(added, rows[i].want, strlen(rows[i].want)) == 0);
		else
			CHECK_STR(added, "");
		host_remove(root);
	}
}

TEST(a_limit_without_mechanism_says_how_to_get_one)
{
	char root[] = HOST;
	struct err e = { 0 };

	host_make(root);
	err_new(&e, ERR_UNENFORCEABLE, "mem");
	hostcheck_advise_limit(root, HOST_ROOTLESS, "mem", &e);
	CHECK(strstr(e.msg, "mem, or have one: mkdir -p /etc/systemd/system/user@.service.d && "));
	host_remove(root);
}
