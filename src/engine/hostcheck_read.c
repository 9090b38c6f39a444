/*
 * hostcheck_read.c - the facts that stand in files. What cannot be read is absent, never an error.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/hostcheck-internal.h"
#include "os/file.h"

#define UNIFIED "sys/fs/cgroup/unified" /* where hybrid hosts have v2 */
#define TOP "sys/fs/cgroup"

static const char *const controllers[] = {
	[CG_CPU] = "cpu",
	[CG_MEMORY] = "memory",
	[CG_PIDS] = "pids",
};
_Static_assert(COUNT(controllers) == CG_CONTROLLERS, "a controller has no name");

/* The text of a file without the newline at its end; "" when it cannot be read. */
static bool read_text(int root_fd, const char *path, char *out, size_t size)
{
	int n = os_read_file(root_fd, path, out, size);

	if (n < 0)
		n = 0;
	while (n > 0 && isspace((unsigned char)out[n - 1]))
		n--;
	out[n] = '\0';
	return n > 0;
}

static bool exists(int root_fd, const char *path)
{
	struct stat st;

	return os_fstatat(root_fd, path, &st, 0) == 0;
}

/* ---- kernel and settings ----------------------------------------------------------- */

static void read_release(int root_fd, struct hostfacts *f)
{
	unsigned long major, minor = 0;
	char *end;

	if (!read_text(root_fd, "proc/sys/kernel/osrelease", f->release, sizeof f->release))
		return;
	major = strtoul(f->release, &end, 10);
	if (*end == '.')
		minor = strtoul(end + 1, NULL, 10);
	f->major = (unsigned int)major;
	f->minor = (unsigned int)minor;
}

static void read_setting(int root_fd, const char *name, struct host_value *out)
{
	char path[96], text[32];
	char *end;

	snprintf(path, sizeof path, "proc/sys/%s", name);
	for (char *c = path; *c; c++)
		if (*c == '.')
			*c = '/';
	if (!read_text(root_fd, path, text, sizeof text)) {
		out->state = exists(root_fd, path) ? VALUE_HIDDEN : VALUE_ABSENT;
		return;
	}
	out->value = strtoll(text, &end, 10);
	out->state = *end == '\0' ? VALUE_READ : VALUE_HIDDEN;
}

/* Without securityfs the two that matter can be seen elsewhere. */
static void read_lsm(int root_fd, struct hostfacts *f)
{
	char enabled[8] = "";

	if (read_text(root_fd, "sys/kernel/security/lsm", f->lsm, sizeof f->lsm))
		return;
	(void)read_text(root_fd, "sys/module/apparmor/parameters/enabled", enabled, sizeof enabled);
	snprintf(f->lsm, sizeof f->lsm, "%s%s", enabled[0] == 'Y' ? "apparmor" : "",
	         exists(root_fd, "sys/fs/selinux/enforce") ? "selinux" : "");
}

static void read_vulnerable(int root_fd, struct hostfacts *f)
{
	int fd =
	    os_openat(root_fd, "sys/devices/system/cpu/vulnerabilities", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t len = 0;

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		char text[128];

		if (d->d_name[0] == '.' || !read_text(fd, d->d_name, text, sizeof text) ||
		    strncmp(text, "Vulnerable", 10) != 0 ||
		    len + strlen(d->d_name) + 2 >= sizeof f->vulnerable)
			continue;
		len += (size_t)snprintf(f->vulnerable + len, sizeof f->vulnerable - len, "%s%s",
		                        len ? " " : "", d->d_name);
	}
	if (dir)
		closedir(dir);
}

/* The kernel keeps these empty for good, so covering them hides nothing (mnt_already_visible). */
static bool is_mount_point(const char *path)
{
	static const char *const points[] = { "/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd",
		                              "/proc/openprom" };

	for (size_t i = 0; i < COUNT(points); i++)
		if (strcmp(path, points[i]) == 0)
			return true;
	return false;
}

static void read_mounts(int root_fd, struct hostfacts *f)
{
	char text[64 << 10];
	char *save = NULL;

	(void)read_text(root_fd, "proc/self/mountinfo", text, sizeof text);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char path[sizeof f->proc_covered];

		/* id, parent, device, root, mount point: proc(5) */
		if (sscanf(line, "%*s %*s %*s %*s %127s", path) == 1 &&
		    strncmp(path, "/proc/", 6) == 0 && !is_mount_point(path)) {
			snprintf(f->proc_covered, sizeof f->proc_covered, "%s", path);
			return;
		}
	}
}

/* ---- cgroups ----------------------------------------------------------------------- */

static unsigned int bits_in(const char *list)
{
	char copy[512];
	unsigned int found = 0;
	char *save = NULL;

	snprintf(copy, sizeof copy, "%s", list);
	for (char *w = strtok_r(copy, " ,", &save); w; w = strtok_r(NULL, " ,", &save))
		for (enum cgroup_controller c = 0; c < CG_CONTROLLERS; c++)
			if (strcmp(w, controllers[c]) == 0)
				found |= 1u << c;
	return found;
}

static unsigned int v2_bits(int root_fd, const char *group)
{
	char path[600], list[256];

	snprintf(path, sizeof path, "%s/cgroup.controllers", group);
	(void)read_text(root_fd, path, list, sizeof list);
	return bits_in(list);
}

static void add_tree(struct cgroup *cg, bool is_v2, unsigned int bits)
{
	if (bits)
		cg->trees[cg->n_trees++] =
		    (struct cgroup_tree){ .is_v2 = is_v2, .controllers = bits };
}

/* A group is usable when it was handed over: folders can be made, and processes moved. */
static bool is_ours(int root_fd, const char *group)
{
	AUTO(fd_close) int fd = os_openat(root_fd, group, O_PATH | O_DIRECTORY, 0);

	return fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

static void read_v2(int root_fd, const char *own, struct hostfacts *f)
{
	const char *top = exists(root_fd, TOP "/cgroup.controllers") ? TOP : UNIFIED;
	char group[512], path[600];

	if (!exists(root_fd, UNIFIED "/cgroup.controllers") && strcmp(top, UNIFIED) == 0)
		return;
	f->layout = LAYOUT_V2;
	f->v2 = v2_bits(root_fd, top);
	snprintf(group, sizeof group, "%s%s", top, own);
	if (f->mode == HOST_ROOTLESS && is_ours(root_fd, group))
		add_tree(&f->cgroups[HOST_ROOTLESS], true, v2_bits(root_fd, group));
	/* The top of the tree has no limits: nothing can be learnt from it. */
	snprintf(path, sizeof path, "%s/memory.max", group);
	bool has_limits = exists(root_fd, path);
	snprintf(path, sizeof path, "%s/memory.swap.max", group);
	f->is_swap_uncounted |= has_limits && !exists(root_fd, path);
}

static void read_v1(int root_fd, const char *list, struct hostfacts *f)
{
	const unsigned int bits = bits_in(list);
	char path[128];

	for (enum cgroup_controller c = 0; c < CG_CONTROLLERS; c++)
		if (bits & 1u << c)
			snprintf(f->hierarchy[c], sizeof f->hierarchy[c], "%s", list);
	snprintf(path, sizeof path, TOP "/%s", list);
	if (!exists(root_fd, path))
		return;
	f->v1 |= bits;
	if (bits & 1u << CG_MEMORY) {
		snprintf(path, sizeof path, TOP "/%s/memory.memsw.limit_in_bytes", list);
		f->is_swap_uncounted |= !exists(root_fd, path);
	}
}

/* Lines of "name hierarchy groups enabled". */
static void read_disabled(int root_fd, struct hostfacts *f)
{
	char text[4096];
	char *save = NULL;

	(void)read_text(root_fd, "proc/cgroups", text, sizeof text);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char name[32], enabled[4];

		if (sscanf(line, "%31s %*s %*s %3s", name, enabled) == 2 &&
		    strcmp(enabled, "0") == 0)
			f->disabled |= bits_in(name);
	}
}

static void read_cgroups(int root_fd, struct hostfacts *f)
{
	char text[4096], swaps[256];
	char *save = NULL;

	(void)read_text(root_fd, "proc/self/cgroup", text, sizeof text);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *list = strchr(line, ':');
		char *own = list ? strchr(list + 1, ':') : NULL;

		if (!own)
			continue;
		*own++ = '\0';
		if (list[1] == '\0')
			read_v2(root_fd, own, f);
		else
			read_v1(root_fd, list + 1, f);
	}
	if (f->v1)
		f->layout = f->layout == LAYOUT_V2 ? LAYOUT_HYBRID : LAYOUT_V1;
	add_tree(&f->cgroups[HOST_ROOT], false, f->v1);
	add_tree(&f->cgroups[HOST_ROOT], true, f->v2 & ~f->v1);
	/* v1 is never handed to a user, so without v2 there is nothing to ask. */
	f->is_delegation_known = f->mode == HOST_ROOTLESS || f->v2 == 0;
	/* Below its title the list of swap areas is empty. */
	(void)read_text(root_fd, "proc/swaps", swaps, sizeof swaps);
	f->is_swap_uncounted &= strchr(swaps, '\n') != NULL;
	read_disabled(root_fd, f);
}

void hostcheck_read(const char *root, enum host_mode mode, struct hostfacts *out)
{
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, root[0] ? root : "/", O_PATH | O_DIRECTORY, 0);

	*out = (struct hostfacts){ .mode = mode, .landlock_abi = HOST_UNKNOWN };
	for (size_t i = 0; i < TRY_COUNT; i++)
		out->tried[i] = HOST_UNKNOWN;
	if (fd < 0)
		return;
	read_release(fd, out);
	for (size_t i = 0; i < host_n_settings; i++)
		read_setting(fd, host_settings[i].name, &out->settings[i]);
	(void)read_text(fd, "proc/sys/kernel/core_pattern", out->core_pattern,
	                sizeof out->core_pattern);
	read_lsm(fd, out);
	read_vulnerable(fd, out);
	read_mounts(fd, out);
	read_cgroups(fd, out);
}
