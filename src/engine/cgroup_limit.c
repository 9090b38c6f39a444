/*
 * cgroup_limit.c - the limits of a sandbox: written by the launcher, read again by the proof.
 */
#include <fcntl.h>

#include "engine/cgroup-internal.h"
#include "os/fault.h"
#include "os/file.h"

enum control_value { AS_IS, CPU_QUOTA, ZERO, ONE, PIDS };

#define CONTROL_TEXT 64

struct control {
	enum limit_id limit;
	enum cgroup_controller controller;
	const char *v1, *v2;
	enum control_value value; /* ZERO and ONE on v2 only; v1 takes it as it is */
	bool is_optional; /* absent where the kernel was built without swap, or TCP, accounting */
};

/* clang-format off */
static const struct control controls[] = {
	{ LIMIT_MEM,  CG_MEMORY, "memory.limit_in_bytes",       "memory.max",       AS_IS,     false },
	{ LIMIT_MEM,  CG_MEMORY, "memory.memsw.limit_in_bytes", "memory.swap.max",  ZERO,      true  },
	{ LIMIT_MEM,  CG_MEMORY, "memory.kmem.tcp.limit_in_bytes", NULL,            AS_IS,     true  },
	{ LIMIT_MEM,  CG_MEMORY, NULL,                          "memory.oom.group", ONE,       false },
	{ LIMIT_PIDS, CG_PIDS,   "pids.max",                    "pids.max",         PIDS,      false },
	{ LIMIT_CPU,  CG_CPU,    "cpu.cfs_quota_us",            "cpu.max",          CPU_QUOTA, false },
};
/* clang-format on */

static void control_text(const struct control *c, bool is_v2, uint64_t value, char *out,
                         size_t size)
{
	if (c->value == CPU_QUOTA) /* thousandths of a core per period of 100 ms */
		snprintf(out, size, is_v2 ? "%llu 100000" : "%llu",
		         (unsigned long long)value * 100);
	else if (c->value == PIDS) /* v1 counts pid 1 too, who is nobody's command */
		snprintf(out, size, "%llu", (unsigned long long)value + !is_v2);
	else if (is_v2 && c->value != AS_IS)
		snprintf(out, size, "%d", c->value == ONE);
	else
		snprintf(out, size, "%llu", (unsigned long long)value);
}

/* The file of a limit in this sandbox's group; false: there is nothing to write. */
static bool control_file(const struct cgroup *cg, const struct control *c,
                         const uint64_t limits[LIMIT_COUNT], char path[CGROUP_PATH_MAX],
                         char text[CONTROL_TEXT])
{
	const struct cgroup_tree *t = cgroup_tree_of(cg, c->controller);
	const char *file = !t ? NULL : t->is_v2 ? c->v2 : c->v1;
	char name[64];

	if (!file || limits[c->limit] == 0)
		return false;
	control_text(c, t->is_v2, limits[c->limit], text, CONTROL_TEXT);
	snprintf(name, sizeof name, "%s%s", cgroup_leaf(t), file);
	cgroup_path(cg, t, name, path);
	return true;
}

#define MONITOR_CPU_MIN 500 /* thousandths of a core: its deadlines must not wait for it */
#define MONITOR_MEM "268435456"
#define MONITOR_PIDS "256" /* helpers of commands that start at the same time */

/* Monitor and pid 1 work for their sandbox, in a group beside it: a sandbox with little processor
 * time does not get a whole processor by way of its monitor, nor a fallen pid 1 the memory of the
 * host. v1 has no such group: pid 1 is in the sandbox's. */
static int limit_monitor(const struct cgroup *cg, const uint64_t limits[LIMIT_COUNT], struct err *e)
{
	uint64_t cpu = limits[LIMIT_CPU] < MONITOR_CPU_MIN ? MONITOR_CPU_MIN : limits[LIMIT_CPU];
	char quota[64];
	const struct {
		enum limit_id limit;
		enum cgroup_controller controller;
		const char *file, *text;
	} rows[] = {
		{ LIMIT_CPU, CG_CPU, "mon/cpu.max", quota },
		{ LIMIT_MEM, CG_MEMORY, "mon/memory.max", MONITOR_MEM },
		{ LIMIT_PIDS, CG_PIDS, "mon/pids.max", MONITOR_PIDS },
	};

	snprintf(quota, sizeof quota, "%llu 100000", (unsigned long long)cpu * 100);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct cgroup_tree *t = cgroup_tree_of(cg, rows[i].controller);
		char path[CGROUP_PATH_MAX];

		if (!t || !t->is_v2 || limits[rows[i].limit] == 0)
			continue;
		cgroup_path(cg, t, rows[i].file, path);
		int r = os_write_file(AT_FDCWD, path, rows[i].text);
		if (r < 0)
			return err_sys(e, -r, "write %s to %s", rows[i].text, rows[i].file);
	}
	return 0;
}

int cgroup_limit(const struct cgroup *cg, const uint64_t limits[LIMIT_COUNT], struct err *e)
{
	for (size_t i = 0; i < COUNT(controls); i++) {
		char text[CONTROL_TEXT], path[CGROUP_PATH_MAX];

		if (!control_file(cg, &controls[i], limits, path, text) ||
		    fault_layer_off("limits"))
			continue;
		int r = os_write_file(AT_FDCWD, path, text);
		if (r < 0 && !(controls[i].is_optional && r == -ENOENT))
			return err_sys(e, -r, "write %s to %s", text, strrchr(path, '/') + 1);
	}
	return limit_monitor(cg, limits, e);
}

/* ---- the proof --------------------------------------------------------------------- */

/* The kernel rounds memory down to pages, and says "max" where nothing was written. */
static bool is_as_written(const char *got, const char *text)
{
	unsigned long long have = strtoull(got, NULL, 10), wanted = strtoull(text, NULL, 10);

	return got[0] >= '0' && got[0] <= '9' &&
	       (have == wanted || (have > 0 && have < wanted && wanted - have < 65536));
}

int cgroup_limits_hold(const struct cgroup *cg, const uint64_t limits[LIMIT_COUNT], struct err *e)
{
	for (size_t i = 0; i < COUNT(controls); i++) {
		char text[CONTROL_TEXT], got[CONTROL_TEXT], path[CGROUP_PATH_MAX];

		if (!control_file(cg, &controls[i], limits, path, text))
			continue;
		int r = os_read_file(AT_FDCWD, path, got, sizeof got);
		const char *file = strrchr(path, '/') + 1;
		if (r == -ENOENT && controls[i].is_optional)
			continue;
		if (r < 0)
			return err_sys(e, -r, "read %s", file);
		if (!is_as_written(got, text))
			return err_new(e, ERR_INTERNAL, "%s is %.*s, not %s", file,
			               (int)strcspn(got, "\n"), got, text);
	}
	return 0;
}

static const char *const controller_names[] = {
	[CG_CPU] = "cpu", [CG_MEMORY] = "memory", [CG_PIDS] = "pids"
};
_Static_assert(COUNT(controller_names) == CG_CONTROLLERS, "a controller has no name");

/* The path in this line, "4:cpu,cpuacct:/path", if it is the controller's; "0::/path" is v2's. */
static const char *path_of(const char *line, const char *controller)
{
	const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	size_t len = strlen(controller);

	if (!path)
		return NULL;
	if (len == 0 && path == names + 1)
		return path + 1;
	for (const char *n = names + 1; len > 0 && n < path; n += strcspn(n, ",:") + 1)
		if (strncmp(n, controller, len) == 0 && (n[len] == ',' || n[len] == ':'))
			return path + 1;
	return NULL;
}

const char *cgroup_path_in(const char *list, const char *controller)
{
	for (const char *line = list; *line; line++) {
		const char *path = path_of(line, controller);

		if (path)
			return path;
		line += strcspn(line, "\n");
		if (!*line)
			break;
	}
	return NULL;
}

/* "…/caisson/NAME", or below it. */
static bool is_in_own(const char *path, const char *name)
{
	char own[64];
	size_t len = (size_t)snprintf(own, sizeof own, "/" CGROUP_BASE "/%s", name);
	size_t end = strcspn(path, "\n");
	const char *at = memmem(path, end, own, len);

	return at && (at + len == path + end || at[len] == '/');
}

int cgroup_membership_holds(const struct cgroup *cg, unsigned int promised, struct err *e)
{
	char list[4096];
	int r = os_read_file(AT_FDCWD, "/proc/self/cgroup", list, sizeof list);

	if (r < 0)
		return err_sys(e, -r, "read /proc/self/cgroup");
	for (enum cgroup_controller c = 0; c < CG_CONTROLLERS; c++) {
		const struct cgroup_tree *t = cgroup_tree_of(cg, c);

		if (!(promised & 1u << c))
			continue;
		const char *path =
		    t ? cgroup_path_in(list, t->is_v2 ? "" : controller_names[c]) : NULL;
		if (!path || !is_in_own(path, cg->name))
			return err_new(e, ERR_INTERNAL, "not in the sandbox's group for %s",
			               controller_names[c]);
	}
	return 0;
}
