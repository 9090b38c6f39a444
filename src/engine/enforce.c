#include "engine/enforce.h"

/* All of these were proved. */
static bool has(const struct enforce_host *h, uint32_t walls)
{
	return (h->walls & walls) == walls;
}

static const char *by_cgroup(const struct enforce_host *h, enum cgroup_controller c)
{
	return has(h, WALL_BIT(WALL_CGROUP) | WALL_BIT(WALL_INIT_CGROUP) | WALL_BIT(WALL_LIMITS))
	           ? cgroup_mechanism(h->cgroup, c)
	           : NULL;
}

static const char *by_wall(const struct enforce_host *h, enum wall w, const char *by)
{
	return has(h, WALL_BIT(w)) ? by : NULL;
}

static const char *pids_by(const struct enforce_host *h)
{
	const char *by = by_cgroup(h, CG_PIDS);

	if (!has(h, WALL_BIT(WALL_RLIMITS)))
		return by;
	if (!by)
		return "rlimit";
	return strcmp(by, "cgroup2") == 0 ? "cgroup2, rlimit" : "cgroup1, rlimit";
}

static const char *mem_by(const struct enforce_host *h)
{
	const char *by = by_cgroup(h, CG_MEMORY);

	return by && !cgroup_counts_tcp(h->cgroup) ? "cgroup1, without TCP buffers" : by;
}

static const char *limit_by(const struct enforce_host *h, enum limit_id id)
{
	switch (id) {
	case LIMIT_CPU:
		return by_cgroup(h, CG_CPU);
	case LIMIT_MEM:
		return mem_by(h);
	case LIMIT_PIDS:
		return pids_by(h);
	case LIMIT_DISK:
	case LIMIT_INODES:
		return by_wall(h, WALL_DISK, "tmpfs");
	case LIMIT_FILES:
		return by_wall(h, WALL_RLIMITS, "rlimit");
	case LIMIT_WALL:
	case LIMIT_IDLE:
		return "timerfd";
	case LIMIT_OUTPUT:
		return "monitor";
	case LIMIT_IO:
	case LIMIT_COUNT:
		break;
	}
	return NULL;
}

#define UNPROVED "it was not proved when this sandbox was launched"

static const char *limit_reason(const struct enforce_host *h, enum limit_id id)
{
	if (id == LIMIT_IO)
		return "the scratch space lives in memory; there is no device to bound";
	if ((id == LIMIT_CPU && !cgroup_has(h->cgroup, CG_CPU)) ||
	    (id == LIMIT_MEM && !cgroup_has(h->cgroup, CG_MEMORY)))
		return enforce_reason(h);
	return UNPROVED;
}

const char *enforce_reason(const struct enforce_host *h)
{
	return h->is_root ? "this host mounts no cgroup controller for it" : "no cgroup delegation";
}

/* The default for output bounds what is stored of it; what is passed on is cut only if asked for.
 */
static bool is_storage(const struct spec *s, enum limit_id id)
{
	return id == LIMIT_OUTPUT && !s->limits[id].named;
}

static const char *net_by(const struct spec *s, const struct enforce_host *h)
{
	if (s->net.mode == NET_DENY)
		return by_wall(h, WALL_NETNS, "netns");
	return has(h, WALL_BIT(WALL_NETNS) | WALL_BIT(WALL_NETWALLS)) ? "netns, nftables, gate"
	                                                              : NULL;
}

static const char *fs_by(const struct enforce_host *h)
{
	const uint32_t tree = WALL_BIT(WALL_MOUNTNS) | WALL_BIT(WALL_ROOT) |
	                      WALL_BIT(WALL_READ_ONLY) | WALL_BIT(WALL_MASKS) |
	                      WALL_BIT(WALL_PROC_READ_ONLY);

	if (!has(h, tree))
		return NULL;
	return has(h, WALL_BIT(WALL_LANDLOCK)) ? "mountns, landlock" : "mountns";
}

static const char *user_by(const struct enforce_host *h)
{
	if (!has(h, WALL_BIT(WALL_USERNS) | WALL_BIT(WALL_IDS) | WALL_BIT(WALL_CAPS)))
		return NULL;
	return h->is_root ? "userns, own id range" : "userns, one id";
}

size_t enforce_rows(const struct spec *s, const struct enforce_host *h,
                    struct enforce_row rows[ENFORCE_ROWS_MAX])
{
	const struct enforce_row always[] = {
		{ "net", net_by(s, h), NULL, true },
		{ "fs", fs_by(h), NULL, true },
		{ "creds", s->creds.len > 0 ? "scrubbed environment, gate" : "scrubbed environment",
		  NULL, true },
		{ "user", user_by(h), NULL, true },
		{ "syscalls", by_wall(h, WALL_SECCOMP, "seccomp"), NULL, true },
	};
	size_t n = COUNT(always);

	memcpy(rows, always, sizeof always);
	for (size_t i = 0; i < n; i++)
		rows[i].reason = rows[i].by ? NULL : UNPROVED;
	if (s->net.mode != NET_DENY && s->net.rate.len > 0)
		rows[n++] = (struct enforce_row){ "net.rate", "gate", NULL, true };
	for (enum limit_id i = 0; i < LIMIT_COUNT; i++)
		if (s->limits[i].value && !is_storage(s, i)) {
			const char *by = limit_by(h, i);

			rows[n++] = (struct enforce_row){ .field = limit_name(i),
				                          .by = by,
				                          .reason = by ? NULL : limit_reason(h, i),
				                          .is_named = s->limits[i].named };
		}
	return n;
}

/* Parts of the spec whose provider is not in this program: refused, not ignored. */
static int check_absent(const struct spec *s, const struct enforce_host *h, struct err *e)
{
	const struct {
		bool is_asked;
		const char *field, *why;
	} absent[] = {
		{ s->creds.len > 0 && !h->has_secrets, "creds", "secrets are kept by a daemon" },
		{ s->services.len > 0, "services", "there are no services yet" },
		{ s->setup.len > 0, "setup", "there are no setup commands yet" },
		{ strcmp(s->backend, "native") != 0, "backend",
		  "the native backend is the only one" },
	};

	for (size_t i = 0; i < COUNT(absent); i++)
		if (absent[i].is_asked)
			return err_new(e, ERR_UNENFORCEABLE, "unenforceable: %s (%s)",
			               absent[i].field, absent[i].why);
	return 0;
}

static int check_net(const struct spec *s, const struct enforce_host *h, struct err *e)
{
	if (s->net.mode == NET_DENY || h->net_error == 0)
		return 0;
	return err_new(e, ERR_UNENFORCEABLE,
	               "unenforceable: net (nf_tables with tproxy: %s; only net: deny here)",
	               strerror(h->net_error));
}

static bool is_lacking(const struct spec *s, const struct enforce_host *h, enum limit_id i)
{
	return s->limits[i].named && s->limits[i].value != 0 && !limit_by(h, i) &&
	       !spec_weaker(s, limit_name(i));
}

const char *enforce_lacking(const struct spec *s, const struct enforce_host *h)
{
	for (enum limit_id i = 0; i < LIMIT_COUNT; i++)
		if (i != LIMIT_IO && is_lacking(s, h, i))
			return limit_name(i);
	return NULL;
}

int enforce_check(const struct spec *s, const struct enforce_host *h, struct err *e)
{
	if (check_absent(s, h, e) < 0 || check_net(s, h, e) < 0)
		return -1;
	if (s->profile == PROFILE_ROOTFUL && !h->is_root)
		return err_new(
		    e, ERR_UNENFORCEABLE,
		    "unenforceable: profile (rootful needs a range of ids, which takes root)");
	for (enum limit_id i = 0; i < LIMIT_COUNT; i++) {
		if (!is_lacking(s, h, i))
			continue;
		return err_new(e, ERR_UNENFORCEABLE,
		               "unenforceable: %s (%s); allow with --allow-weaker %s",
		               limit_name(i), limit_reason(h, i), limit_name(i));
	}
	return 0;
}
