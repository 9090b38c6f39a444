#include "engine/hostcheck-internal.h"

#include <stdarg.h>

#include "base/advice.h"
#include "engine/enforce.h"

void judge_add(struct judge *j, struct hostcheck_row row)
{
	if (j->n < HOST_ROWS_MAX)
		j->rows[j->n++] = row;
}

void judge_find(struct hostcheck_row *row, enum host_state state, const char *why, const char *fix)
{
	row->state = state;
	row->detail = why;
	row->fix = fix;
}

const char *judge_text(struct judge *j, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return arena_strdup(j->arena, text);
}

/* ---- the walls --------------------------------------------------------------------- */

#define TRY_BIT(try) (1u << (try))
#define TRY_LANDLOCK_BIT TRY_BIT(TRY_COUNT) /* asked, not tried */

struct host_wall {
	const char *name, *by, *why;
	bool is_needed;
};

/* clang-format off */
static const struct host_wall walls[] = {
	[TRY_NAMESPACES] = { "namespaces", "user, mnt, pid, net, ipc, uts, cgroup",
			     "nothing separates a sandbox from the host without them", true },
	[TRY_OVERLAY]    = { "overlay", "overlayfs in a user namespace",
			     "the root inside is an overlay on the image", true },
	[TRY_PROC]       = { "proc", "a new one in a pid namespace",
			     "without a new one, processes inside would see those of the host", true },
	[TRY_NOTIFY]     = { "seccomp", "filter with exec notification",
			     "without a filter the whole kernel can be attacked", true },
	[TRY_NETFILTER]  = { "netfilter", "nf_tables with tproxy",
			     "a sandbox can have no network, only `net: deny`", false },
	[TRY_IDMAP]      = { "idmap", "mapped mounts of /usr",
			     "in `profile: rootful` the system's files belong to nobody inside", false },
	[TRY_LAYERS]     = { "workspaces", "overlayfs with redirects over mapped layers",
			     "with root there are no workspaces", false },
	[TRY_VOLUMES]    = { "volumes", "ext4 on loop devices",
			     "nothing bounds what is written to a workspace", false },
};
_Static_assert(COUNT(walls) == TRY_COUNT, "a trial has no name");

/* The first that fits; error 0 fits all. */
static const struct {
	enum host_try try;
	int error;
	enum advice fix;
} fixes[] = {
	{ TRY_NAMESPACES, EINVAL, ADVICE_USERNS_CONFIG },
	{ TRY_NAMESPACES, ENOSPC, ADVICE_USERNS_COUNT },
	{ TRY_NAMESPACES, 0,      ADVICE_UNCONFINED },
	{ TRY_OVERLAY,    ENODEV, ADVICE_OVERLAY_MODULE },
	{ TRY_OVERLAY,    0,      ADVICE_OVERLAY_KERNEL },
	{ TRY_PROC,       0,      ADVICE_PROC },
	{ TRY_NOTIFY,     EBUSY,  ADVICE_NO_NESTING },
	{ TRY_NOTIFY,     0,      ADVICE_SECCOMP },
	{ TRY_NETFILTER,  EPERM,  ADVICE_NET_ADMIN },
	{ TRY_NETFILTER,  0,      ADVICE_NFT },
	{ TRY_IDMAP,      0,      ADVICE_MAPPED_USR },
	{ TRY_LAYERS,     ENODEV, ADVICE_OVERLAY_MODULE },
	{ TRY_LAYERS,     0,      ADVICE_MAPPED_STATE },
	{ TRY_VOLUMES,    ENODEV, ADVICE_LOOP_MODULES },
	{ TRY_VOLUMES,    0,      ADVICE_LOOP },
};
/* clang-format on */

static const char *fix_of(enum host_try try, int error)
{
	for (size_t i = 0; i < COUNT(fixes); i++)
		if (fixes[i].try == try && (fixes[i].error == 0 || fixes[i].error == error))
			return advice(fixes[i].fix);
	return NULL;
}

/* Which needed walls do not stand, as bits. */
static unsigned int walls_down(const struct hostfacts *f)
{
	unsigned int down = f->landlock_abi == 0 ? TRY_LANDLOCK_BIT : 0;

	for (enum host_try t = 0; t < TRY_COUNT; t++)
		if (f->tried[t] > 0 && walls[t].is_needed)
			down |= TRY_BIT(t);
	if (settings_forbid_namespaces(f) && f->tried[TRY_NAMESPACES] != 0)
		down |= TRY_BIT(TRY_NAMESPACES);
	return down;
}

bool hostcheck_is_old(const struct hostfacts *f)
{
	return f->major < HOST_FLOOR_MAJOR ||
	       (f->major == HOST_FLOOR_MAJOR && f->minor < HOST_FLOOR_MINOR);
}

static void judge_kernel(struct judge *j)
{
	const struct hostfacts *f = j->f;
	struct hostcheck_row row = { .area = AREA_WALLS, .name = "kernel" };

	row.by = f->release[0] ? f->release : NULL;
	if (hostcheck_is_old(f))
		judge_find(&row, HOST_MISSING,
		           "older than Linux 6.1: some walls do not exist in it, and none was "
		           "tested on it",
		           advice(ADVICE_KERNEL));
	judge_add(j, row);
}

/* Containers cover parts of /proc; a new one would show them, so the kernel gives none. */
static const char *where_covered(struct judge *j, enum host_try t)
{
	bool is_covered = t == TRY_PROC && j->f->proc_covered[0];

	return is_covered ? judge_text(j, "%s is covered: ", j->f->proc_covered) : "";
}

static void judge_wall(struct judge *j, enum host_try t)
{
	const struct host_wall *w = &walls[t];
	const int error = j->f->tried[t];
	const char *covered = where_covered(j, t);
	struct hostcheck_row row = { .area = AREA_WALLS, .name = w->name };

	if (error == 0)
		row.by = w->by;
	else if (error == HOST_UNKNOWN)
		row.state = HOST_NOT_KNOWN;
	else
		row.state = w->is_needed ? HOST_MISSING : HOST_WEAK;
	/* When a setting forbids namespaces, its row says why, and what to do. */
	bool is_told = t == TRY_NAMESPACES && settings_forbid_namespaces(j->f);
	if ((error > 0 && !is_told) || (error == HOST_UNKNOWN && covered[0])) {
		row.detail = judge_text(j, "%s%s%s%s", error > 0 ? strerror(error) : "",
		                        error > 0 ? ": " : "", covered, w->why);
		row.fix = fix_of(t, error);
	}
	judge_add(j, row);
}

static void judge_landlock(struct judge *j)
{
	const int abi = j->f->landlock_abi;
	struct hostcheck_row row = { .area = AREA_WALLS, .name = "landlock" };

	if (abi > 0)
		row.by = judge_text(j, "ABI %d", abi);
	else if (abi == HOST_UNKNOWN)
		row.state = HOST_NOT_KNOWN;
	else
		judge_find(&row, HOST_MISSING, "the second wall around files is absent",
		           advice(ADVICE_LSM));
	judge_add(j, row);
}

/* ---- what enforces a spec, by mode ------------------------------------------------- */

/* Without the wall the field has no mechanism, whatever its own is. */
static const struct {
	const char *field;
	unsigned int walls;
} needs[] = {
	{ "net", TRY_BIT(TRY_NAMESPACES) },
	{ "fs",
	  TRY_BIT(TRY_NAMESPACES) | TRY_BIT(TRY_OVERLAY) | TRY_BIT(TRY_PROC) | TRY_LANDLOCK_BIT },
	{ "user", TRY_BIT(TRY_NAMESPACES) },
	{ "syscalls", TRY_BIT(TRY_NOTIFY) },
	{ "disk", TRY_BIT(TRY_NAMESPACES) },
	{ "inodes", TRY_BIT(TRY_NAMESPACES) },
};

static bool has_walls(const struct hostfacts *f, const char *field)
{
	unsigned int down = walls_down(f);

	for (size_t i = 0; i < COUNT(needs); i++)
		if (strcmp(needs[i].field, field) == 0 && needs[i].walls & down)
			return false;
	return true;
}

/* Only these have a cgroup as their only mechanism. */
static const char *controller_of(const char *field, enum cgroup_controller *out)
{
	bool is_cpu = strcmp(field, limit_name(LIMIT_CPU)) == 0;

	*out = is_cpu ? CG_CPU : CG_MEMORY;
	return is_cpu ? "cpu" : "memory";
}

static const char *root_fix(struct judge *j, const char *field)
{
	const struct hostfacts *f = j->f;
	enum cgroup_controller c;
	const char *name = controller_of(field, &c);

	if (f->disabled & 1u << c)
		return judge_text(j, "add cgroup_enable=%s to the kernel command line", name);
	if ((f->v1 | f->v2) & 1u << c) /* there, but a launch could not write to it */
		return judge_text(j, "mount -o remount,rw /sys/fs/cgroup/%s", f->hierarchy[c]);
	if (f->layout == LAYOUT_V2 && f->hierarchy[c][0])
		return "add cgroup_no_v1=all to the kernel command line: v1 holds the controller";
	if (f->layout == LAYOUT_V2)
		return judge_text(
		    j,
		    "on the host: write +%s to cgroup.subtree_control of every group above "
		    "this container's",
		    name);
	if (f->layout == LAYOUT_NONE && !f->hierarchy[c][0])
		return "mount -t cgroup2 cgroup2 /sys/fs/cgroup";
	if (f->hierarchy[c][0])
		name = f->hierarchy[c]; /* it can only be mounted whole */
	return judge_text(
	    j, "%smkdir /sys/fs/cgroup/%s && mount -t cgroup -o %s cgroup /sys/fs/cgroup/%s",
	    f->layout == LAYOUT_NONE ? "mount -t tmpfs cgroup /sys/fs/cgroup && " : "", name, name,
	    name);
}

static const char *rootless_fix(struct judge *j, const char *field)
{
	const struct hostfacts *f = j->f;
	enum cgroup_controller c;

	(void)controller_of(field, &c);
	if (f->hierarchy[c][0])
		return advice(ADVICE_CGROUP_V1);
	if (!(f->v2 & 1u << c))
		return root_fix(j, field);
	if (f->cgroups[HOST_ROOTLESS].n_trees > 0)
		return advice(ADVICE_CGROUP_DELEGATE);
	return advice(ADVICE_CGROUP_SCOPE);
}

static void judge_limit(struct judge *j, enum host_mode mode, struct hostcheck_row *row)
{
	if (mode == HOST_ROOT)
		judge_find(row, HOST_MISSING,
		           "no cgroup controller, so nothing bounds the sandbox as a whole",
		           root_fix(j, row->name));
	else if (j->f->is_delegation_known)
		judge_find(row, HOST_MISSING,
		           "no cgroup delegation, so nothing bounds the sandbox as a whole",
		           rootless_fix(j, row->name));
	else
		judge_find(row, HOST_NOT_KNOWN,
		           "cgroup2 if the user's session was given one, else nothing; `caisson "
		           "doctor` as that user tells",
		           rootless_fix(j, row->name));
}

static void judge_field(struct judge *j, enum host_mode mode, const struct enforce_row *r)
{
	struct hostcheck_row row = { .area = mode == HOST_ROOT ? AREA_ROOT : AREA_ROOTLESS,
		                     .name = r->field,
		                     .by = r->by };

	if (!has_walls(j->f, r->field)) {
		row.state = HOST_MISSING;
		row.by = NULL;
	} else if (!r->by) {
		judge_limit(j, mode, &row);
	} else if (strcmp(r->field, limit_name(LIMIT_MEM)) == 0 && j->f->is_swap_uncounted) {
		judge_find(&row, HOST_WEAK,
		           "swap is not counted: at its limit a sandbox fills the host's swap",
		           "swapoff -a, or swapaccount=1 on the kernel command line");
	}
	judge_add(j, row);
}

static void judge_mode(struct judge *j, enum host_mode mode)
{
	AUTO(spec_done) struct spec s;
	struct enforce_host host = { .is_root = mode == HOST_ROOT,
		                     .cgroup = &j->f->cgroups[mode],
		                     .walls = WALLS_ALL, /* has_walls() takes away */
		                     .net_error = j->f->tried[TRY_NETFILTER] };
	struct enforce_row rows[ENFORCE_ROWS_MAX];

	spec_init(&s);
	spec_resolve(&s);
	s.limits[LIMIT_WALL].value = s.limits[LIMIT_IDLE].value = 1; /* not set by default; shown */
	size_t n = enforce_rows(&s, &host, rows);
	for (size_t i = 0; i < n; i++)
		judge_field(j, mode, &rows[i]);
}

size_t hostcheck_judge(const struct hostfacts *f, struct arena *arena,
                       struct hostcheck_row rows[HOST_ROWS_MAX])
{
	struct judge j = { .f = f, .arena = arena, .rows = rows };

	judge_kernel(&j);
	for (enum host_try t = 0; t < TRY_COUNT; t++)
		judge_wall(&j, t);
	judge_landlock(&j);
	judge_mode(&j, HOST_ROOT);
	judge_mode(&j, HOST_ROOTLESS);
	settings_judge(&j);
	return j.n;
}

void hostcheck_advise_limit(const char *root, enum host_mode mode, const char *field, struct err *e)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct hostfacts f;
	struct judge j = { .f = &f, .arena = &a };
	size_t n = strlen(e->msg);

	hostcheck_read(root, mode, &f);
	snprintf(e->msg + n, sizeof e->msg - n, ", or have one: %s",
	         mode == HOST_ROOT ? root_fix(&j, field) : rootless_fix(&j, field));
}

bool hostcheck_enforceable(enum host_mode mode, const struct hostcheck_row *rows, size_t n)
{
	const enum host_area other = mode == HOST_ROOT ? AREA_ROOTLESS : AREA_ROOT;

	for (size_t i = 0; i < n; i++)
		if (rows[i].area != other && rows[i].state == HOST_MISSING)
			return false;
	return true;
}

const char *hostcheck_layout_name(enum host_layout layout)
{
	static const char *const names[] = { [LAYOUT_NONE] = "none",
		                             [LAYOUT_V1] = "v1",
		                             [LAYOUT_HYBRID] = "v1 and v2",
		                             [LAYOUT_V2] = "v2" };

	return names[layout];
}
