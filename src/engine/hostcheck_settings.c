/*
 * hostcheck_settings.c - the host's own hardening: what is known to be bad, and why.
 *
 * Our filter keeps most of this from code inside the walls already. A weak setting is reported
 * because it decides what one mistake in a wall would cost.
 */
#include "engine/hostcheck-internal.h"

#define NAMESPACES "the walls are made of namespaces, and no more of this kind can be made"
#define MANY 65536
#define ANY (1ll << 62)

/* clang-format off */
const struct host_setting host_settings[] = {
	{ "kernel.unprivileged_userns_clone", 1, 1, 1, 0, true,
	  "a process without rights makes the namespaces, in root mode too, and may not", ADVICE_NONE },
	{ "kernel.apparmor_restrict_unprivileged_userns", 0, 0, 0, 0, true,
	  "AppArmor takes all rights away inside a user namespace that has no profile", ADVICE_NONE },
	{ "user.max_user_namespaces",   1, ANY, MANY, 0, true, NAMESPACES, ADVICE_NONE },
	{ "user.max_mnt_namespaces",    1, ANY, MANY, 0, true, NAMESPACES, ADVICE_NONE },
	{ "user.max_pid_namespaces",    1, ANY, MANY, 0, true, NAMESPACES, ADVICE_NONE },
	{ "user.max_net_namespaces",    1, ANY, MANY, 0, true, NAMESPACES, ADVICE_NONE },
	{ "user.max_ipc_namespaces",    1, ANY, MANY, 0, true, NAMESPACES, ADVICE_NONE },
	{ "user.max_uts_namespaces",    1, ANY, MANY, 0, true, NAMESPACES, ADVICE_NONE },
	{ "user.max_cgroup_namespaces", 1, ANY, MANY, 0, true, NAMESPACES, ADVICE_NONE },
	{ "kernel.io_uring_disabled", 1, 2, 2, 6, false,
	  "io_uring opens files and connections that no system call filter sees",
	  ADVICE_LINUX_66 },
	{ "kernel.unprivileged_bpf_disabled", 1, 2, 2, 0, false,
	  "everybody may hand programs to the kernel's verifier, a rich source of escapes", ADVICE_NONE },
	{ "dev.tty.legacy_tiocsti", 0, 0, 0, 2, false,
	  "TIOCSTI types into the terminal that a process shares with its caller",
	  ADVICE_LINUX_62 },
	{ "kernel.kptr_restrict", 1, 2, 1, 0, false,
	  "addresses of the kernel are shown, which an exploit needs", ADVICE_NONE },
	{ "kernel.dmesg_restrict", 1, 1, 1, 0, false,
	  "everybody reads the kernel log, with addresses and other users' traces", ADVICE_NONE },
	{ "kernel.perf_event_paranoid", 2, 4, 2, 0, false,
	  "everybody may profile the kernel, which leaks addresses and timing", ADVICE_NONE },
	{ "kernel.yama.ptrace_scope", 1, 3, 1, 0, false,
	  "every process may trace all others of its user, keys and agents included", ADVICE_LSM },
	{ "kernel.randomize_va_space", 2, 2, 2, 0, false,
	  "programs lie at addresses that can be guessed", ADVICE_NONE },
	{ "vm.unprivileged_userfaultfd", 0, 0, 0, 0, false,
	  "everybody may halt the kernel inside a copy, which makes races winnable", ADVICE_NONE },
	{ "vm.mmap_min_addr", 4096, ANY, MANY, 0, false,
	  "a null pointer of the kernel may lead into memory of the attacker", ADVICE_NONE },
	{ "net.core.bpf_jit_harden", 1, 2, 1, 0, false,
	  "code inside chooses constants of compiled system call filters", ADVICE_NONE },
	{ "net.core.bpf_jit_limit", 128ll << 20, ANY, 512ll << 20, 0, false,
	  "compiled filters of all sandboxes and services share it; when it is full no sandbox starts", ADVICE_NONE },
	{ "fs.suid_dumpable", 0, 0, 0, 0, false,
	  "a process that changes its ids stays open to others of its user, and its memory is dumped", ADVICE_NONE },
	{ "kernel.modules_disabled", 1, 1, 1, 0, false,
	  "a request from inside may load a kernel module that nobody here uses; set it when all "
	  "that is needed is loaded, it holds until the next boot", ADVICE_NONE },
};
/* clang-format on */
const size_t host_n_settings = COUNT(host_settings);
_Static_assert(COUNT(host_settings) <= HOST_SETTINGS_MAX, "facts have no room");

static bool is_older(const struct hostfacts *f, unsigned int minor)
{
	return f->major < 6 || (f->major == 6 && f->minor < minor);
}

bool setting_is_bad(const struct host_setting *s, const struct host_value *v)
{
	return v->state == VALUE_READ && (v->value < s->min || v->value > s->max);
}

void setting_fix(const struct host_setting *s, char out[SETTING_FIX_MAX])
{
	snprintf(out, SETTING_FIX_MAX, "sysctl -w %s=%lld", s->name, s->want);
}

bool settings_forbid_namespaces(const struct hostfacts *f)
{
	for (size_t i = 0; i < host_n_settings; i++)
		if (host_settings[i].is_needed &&
		    setting_is_bad(&host_settings[i], &f->settings[i]))
			return true;
	return false;
}

static void judge_absent(const struct judge *j, const struct host_setting *s,
                         struct hostcheck_row *row)
{
	bool is_built_out = s->since_minor > 0 && !is_older(j->f, s->since_minor);

	row->by = "absent";
	if (s->absent != ADVICE_NONE && !is_built_out)
		judge_find(row, HOST_WEAK, s->why, advice(s->absent));
}

static void judge_read(struct judge *j, const struct host_setting *s, const struct host_value *v,
                       struct hostcheck_row *row)
{
	/* What stands in the way in theory but not in fact (a profile of ours) is no fault. */
	bool is_harmless = s->is_needed && j->f->tried[TRY_NAMESPACES] == 0;

	char fix[SETTING_FIX_MAX];

	row->by = judge_text(j, "%lld", v->value);
	setting_fix(s, fix);
	if (setting_is_bad(s, v) && !is_harmless)
		judge_find(row, s->is_needed ? HOST_MISSING : HOST_WEAK, s->why,
		           arena_strdup(j->arena, fix));
}

static void judge_number(struct judge *j, const struct host_setting *s, const struct host_value *v)
{
	struct hostcheck_row row = { .area = AREA_SETTINGS, .name = s->name };

	switch (v->state) {
	case VALUE_ABSENT:
		judge_absent(j, s, &row);
		break;
	case VALUE_HIDDEN:
		row.state = HOST_NOT_KNOWN;
		break;
	case VALUE_READ:
		judge_read(j, s, v, &row);
		break;
	}
	judge_add(j, row);
}

/* core(5): RLIMIT_CORE does not bound what goes to a pipe. */
static void judge_core_pattern(struct judge *j)
{
	const char *pattern = j->f->core_pattern;
	struct hostcheck_row row = { .area = AREA_SETTINGS, .name = "kernel.core_pattern" };

	row.by = pattern;
	if (pattern[0] == '|' || pattern[0] == '@')
		judge_find(
		    &row, HOST_WEAK,
		    "a crash inside hands its memory to a program of the host that runs as root",
		    "sysctl -w kernel.core_pattern=core");
	judge_add(j, row);
}

static void judge_lsm(struct judge *j)
{
	static const char *const major[] = { "apparmor", "selinux", "smack", "tomoyo" };
	struct hostcheck_row row = { .area = AREA_SETTINGS, .name = "security module" };
	bool is_confined = false;

	for (size_t i = 0; i < COUNT(major); i++)
		is_confined |= strstr(j->f->lsm, major[i]) != NULL;
	row.by = j->f->lsm[0] ? j->f->lsm : "none";
	if (!is_confined)
		judge_find(&row, HOST_WEAK,
		           "neither AppArmor nor SELinux confines what would get out",
		           judge_text(j, "apt-get install apparmor; %s", advice(ADVICE_LSM)));
	judge_add(j, row);
}

static void judge_processor(struct judge *j)
{
	struct hostcheck_row row = { .area = AREA_SETTINGS, .name = "processor" };

	row.by = "mitigated";
	if (j->f->vulnerable[0]) {
		row.by = j->f->vulnerable;
		judge_find(
		    &row, HOST_WEAK, "code inside may read memory across the walls by timing",
		    "apt-get install intel-microcode amd64-microcode, and no mitigations=off "
		    "on the kernel command line");
	}
	judge_add(j, row);
}

/* An overlay notes in a user attribute of its upper layer, a tmpfs, that a new folder hides what
 * lies below it. */
static void judge_overlay(struct judge *j)
{
	struct hostcheck_row row = { .area = AREA_SETTINGS, .name = "overlay folders" };

	row.by = is_older(j->f, 6) ? "without user attributes" : "user attributes";
	if (is_older(j->f, 6))
		judge_find(&row, HOST_WEAK,
		           "before Linux 6.6 a tmpfs keeps no user attributes: folders that come "
		           "from an image or by --fs overlay cannot be removed or renamed inside "
		           "(EIO, EXDEV); files can",
		           "apt-get install -t bookworm-backports linux-image-amd64");
	judge_add(j, row);
}

/* The kernel packs compiled programs since 5.18; since 6.9 freeing them can wait for a work that
 * waits behind them (seen on 6.18, docs/decisions/0051-filters-of-code-inside.md). */
static void judge_filters(struct judge *j)
{
	struct hostcheck_row row = { .area = AREA_SETTINGS, .name = "freed filters" };

	row.by = is_older(j->f, 9) ? "one by one" : "may deadlock";
	if (!is_older(j->f, 9))
		judge_find(&row, HOST_WEAK,
		           "Linux 6.9 and later can deadlock for good when about a thousand "
		           "compiled filters are freed at once",
		           advice(ADVICE_FILTERS));
	judge_add(j, row);
}

void settings_judge(struct judge *j)
{
	for (size_t i = 0; i < host_n_settings; i++)
		judge_number(j, &host_settings[i], &j->f->settings[i]);
	judge_core_pattern(j);
	judge_lsm(j);
	judge_processor(j);
	judge_overlay(j);
	judge_filters(j);
}
