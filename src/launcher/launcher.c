#include "launcher/launcher.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/dev.h"
#include "engine/hostpath.h"
#include "engine/skeleton.h"
#include "engine/userns.h"
#include "io/program.h"
#include "launcher/child.h"
#include "launcher/slot.h"
#include "launcher/vaults.h"
#include "os/caps.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/mount.h"
#include "os/proc.h"
#include "os/sock.h"
#include "wire/channel.h"

#define CAPS_OF_ROOT                                                                               \
	(CAP_BIT(CAP_SYS_ADMIN) | CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_SETGID) | CAP_BIT(CAP_CHOWN) | \
	 CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_KILL))

int launcher_mode(bool *is_root, struct err *e)
{
	uint64_t effective, permitted, inheritable;

	*is_root = geteuid() == 0;
	if (!*is_root)
		return 0;
	int r = os_caps_get(&effective, &permitted, &inheritable);
	if (r < 0)
		return err_sys(e, -r, "read our capabilities");
	if ((effective & CAPS_OF_ROOT) != CAPS_OF_ROOT)
		return err_new(
		    e, ERR_DENIED,
		    "root without the rights of root (a container's?): run as an ordinary user");
	return 0;
}

static int fd_dup(int fd, struct err *e)
{
	int r = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return r < 0 ? err_sys(e, errno, "duplicate a descriptor") : r;
}

/* ---- the stages, each with its undo ------------------------------------------------ */

static int make_slot(struct sandbox *s, struct err *e)
{
	struct box *box = &s->box;

	if (s->slot < 0) { /* else it was taken before: launcher_take_slot() */
		s->run_fd = slot_run_dir(box->is_root, e);
		if (s->run_fd < 0)
			return -1;
		s->slots_fd = slot_open(s->run_fd, e);
		s->gate_fd = s->slots_fd < 0 ? -1 : slot_share(s->slots_fd, e);
		s->slot = s->gate_fd < 0 ? -1 : slot_take(s->slots_fd, &s->locks, e);
		if (s->slot < 0)
			return -1;
	}
	if (s->order->kit && !box->is_kept)
		box->end_wait_ms = slot_end_wait_ms(s->slot);
	if (box->is_root) {
		uint32_t own = SLOT_ID_BASE + (uint32_t)s->slot * SLOT_ID_COUNT;

		box->id_base = s->order->workspace ? slot_work_id(s->order->work) : own;
		box->uid = box->gid = own + BOX_IDS; /* no two monitors have the same */
	}
	return 0;
}

/* If a monitor lives on, the slot is still its own. */
static void undo_slot(struct sandbox *s)
{
	s->slot = -1;
	slot_locks_end(s->slots_fd, &s->locks);
	fd_close(&s->gate_fd);
	fd_close(&s->slots_fd);
	fd_close(&s->run_fd);
}

static int find_init(struct sandbox *s, struct err *e)
{
	char path[PATH_TEXT_MAX];

	if (program_find("caisson-init", path, e) < 0)
		return -1;
	s->box.init_exe_fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
	return s->box.init_exe_fd < 0 ? err_sys(e, -s->box.init_exe_fd, "open %s", path) : 0;
}

static int look_at_root(struct sandbox *s, struct err *e)
{
	const struct launcher_kit *kit = s->order->kit;

	if (kit) {
		s->box.is_oom_plain = kit->is_oom_plain;
		s->box.host = kit->host;
		s->box.init_exe_fd = fd_dup(kit->init_exe_fd, e);
		return s->box.init_exe_fd < 0 ? -1 : 0;
	}
	return proof_look_at_host(&s->box.host, e) < 0 ? -1 : find_init(s, e);
}

static void undo_init(struct sandbox *s)
{
	fd_close(&s->box.init_exe_fd);
}

static int prepare_cgroup(struct sandbox *s, struct err *e)
{
	char name[16];

	snprintf(name, sizeof name, "%d", s->slot);
	return cgroup_prepare(&s->box.cgroup, name, e);
}

/* A monitor that gave up has said why, and then closed its end: that is the better error. */
static int untold(const struct sandbox *s, int error, struct err *e)
{
	struct {
		struct channel_head head;
		struct err err;
	} said;
	int n = error == EPIPE ? os_recv(s->control_fd, &said, sizeof said, NULL, NULL) : 0;

	if (n != (int)sizeof said || said.head.type != CH_FAIL ||
	    said.head.len != sizeof said.err || said.err.kind > ERR_INTERNAL)
		return err_sys(e, error, "tell the monitor");
	*e = said.err;
	e->msg[sizeof e->msg - 1] = '\0';
	return -1;
}

/* While the monitor already makes the namespaces; it waits for the word before any command. */
static int make_cgroup(struct sandbox *s, struct err *e)
{
	const struct channel_head go = { .type = CH_GO };
	int keys[CGROUP_KEYS_MAX];

	if (cgroup_make(&s->box.cgroup, s->box.uid, e) < 0 ||
	    cgroup_limit(&s->box.cgroup, s->box.plan->limits, e) < 0)
		return -1;
	size_t n = cgroup_keys(&s->box.cgroup, keys, COUNT(keys));
	int r = os_send(s->control_fd, &go, sizeof go, keys, n);
	return r < 0 ? untold(s, -r, e) : 0;
}

static void undo_nothing(struct sandbox *s)
{
	(void)s;
}

/* After an ordinary end nobody is left. What resists keeps its folder for the next sweep. */
static bool remove_group(const struct cgroup *cg)
{
	return cgroup_remove(cg) == 0 || (cgroup_kill(cg, 1000) == 0 && cgroup_remove(cg) == 0);
}

static void undo_cgroup(struct sandbox *s)
{
	(void)remove_group(&s->box.cgroup);
	cgroup_done(&s->box.cgroup);
}

static int plain_tree(int fd, struct err *e)
{
	int tree = os_open_tree(fd, "", false);

	return tree < 0 ? err_sys(e, -tree, "clone") : tree;
}

/* A user's image is his own: he is root in it, and the files of others belong to nobody. */
static int image_tree(struct sandbox *s, struct userns_range all, struct err *e)
{
	const struct launcher_order *o = s->order;
	struct userns_range uid = { o->image_uid, all.outside, 1 };
	struct userns_range gid = { o->image_gid, all.outside, 1 };

	if (o->plan->image == IMAGE_ROOT)
		return fd_dup(o->plan->image_fd, e);
	if (o->plan->image == IMAGE_DIR)
		return userns_map_tree(o->plan->image_fd, o->image_uid ? uid : all,
		                       o->image_uid ? gid : all, e);
	AUTO(fd_close) int usr = os_openat(AT_FDCWD, "/usr", O_PATH, 0);
	return usr < 0 ? err_sys(e, -usr, "open /usr") : userns_map_tree(usr, all, all, e);
}

/* Of the host: the plan says whose files are the command's user's inside, its caller's. */
static int host_tree(const struct box *box, const struct plan_mount *m, struct err *e)
{
	const struct plan *p = box->plan;
	struct userns_range uids = { m->uid, box->id_base + p->uid, 1 };
	struct userns_range gids = { m->gid, box->id_base + p->gid, 1 };

	if (m->kind != PLAN_RO || m->is_dir)
		return userns_map_tree(m->source_fd, uids, gids, e);
	/* Of a file the folder, where pid 1 may look into it: engine/show.c. */
	AUTO(fd_close) int dir = hostpath_folder(m->source_fd, e);
	if (dir < 0)
		return -1;
	bool is_open = hostpath_is_open_to(dir, m->uid, m->gid);
	return userns_map_tree(is_open ? dir : m->source_fd, uids, gids, e);
}

/* Of our store: everybody is himself, or it could not be used. One namespace for all of them. */
static int own_tree(int *ns_fd, const struct plan_mount *m, struct userns_range all, struct err *e)
{
	if (*ns_fd < 0)
		*ns_fd = userns_make(all, all, e);
	int tree = *ns_fd < 0 ? -1 : userns_map_exactly(m->source_fd, *ns_fd, e);
	if (tree < 0 && e->sys == EINVAL)
		return err_new(e, ERR_UNENFORCEABLE,
		               "the file system of the state folder cannot map ids");
	return tree;
}

static int make_mount_trees(struct sandbox *s, struct userns_range all, struct err *e)
{
	struct box *box = &s->box;
	AUTO(fd_close) int ns = -1;

	for (size_t i = 0; i < box->plan->n_mounts; i++) {
		const struct plan_mount *m = &box->plan->mounts[i];

		if (m->source_fd < 0 || (!box->is_root && !m->is_ready))
			continue;
		box->mount_tree_fds[i] = m->is_ready            ? fd_dup(m->source_fd, e)
		                         : m->kind == PLAN_TREE ? own_tree(&ns, m, all, e)
		                                                : host_tree(box, m, e);
		if (box->mount_tree_fds[i] < 0)
			return err_wrap(e, "fs entry %zu", i + 1);
	}
	return 0;
}

/* Only root maps; else the kernel's own checks decide. */
static int make_trees(struct sandbox *s, struct err *e)
{
	struct box *box = &s->box;
	const struct plan *p = box->plan;
	const struct userns_range all = { 0, box->id_base, BOX_IDS };
	const struct launcher_kit *kit = s->order->kit;

	box->skeleton_fd = kit ? fd_dup(kit->skeleton_fd, e) : skeleton_open(s->run_fd, e);
	if (box->skeleton_fd < 0)
		return err_wrap(e, "skeleton");
	box->is_plain = root_is_plain(p, box->skeleton_fd);
	/* Where names are made in it, or it is written to, its files have to belong to somebody. */
	if (box->is_root)
		box->skeleton_tree_fd = box->is_plain || p->image != IMAGE_HOST
		                            ? plain_tree(box->skeleton_fd, e)
		                            : userns_map_tree(box->skeleton_fd, all, all, e);
	if (box->is_root && box->skeleton_tree_fd < 0)
		return err_wrap(e, "skeleton");
	if (p->image == IMAGE_ROOT || (box->is_root && (p->image == IMAGE_DIR || p->rootful))) {
		box->image_tree_fd = image_tree(s, all, e);
		if (box->image_tree_fd < 0)
			return err_wrap(e, "image");
	}
	if (box->is_root && dev_make_nodes(&box->nodes_tree_fd, e) < 0)
		return -1;
	return make_mount_trees(s, all, e);
}

static void undo_trees(struct sandbox *s)
{
	fd_close(&s->box.skeleton_fd);
	fd_close(&s->box.skeleton_tree_fd);
	fd_close(&s->box.image_tree_fd);
	fd_close(&s->box.nodes_tree_fd);
	for (size_t i = 0; i < COUNT(s->box.mount_tree_fds); i++)
		fd_close(&s->box.mount_tree_fds[i]);
}

/* In the child that becomes the monitor, when its launcher has others: what is not in the box is
 * not its business, and a copy of another one's lock or socket would keep that alive. */
static int keep_own(struct sandbox *s, int control_fd)
{
	const struct box *box = &s->box;
	int keep[2 * FS_ENTRIES_MAX + CGROUP_HIERARCHIES_MAX + SLOT_LOCKS_MAX + 16];
	size_t n = 0;
	const int some[] = { 0,
		             1,
		             2,
		             control_fd,
		             box->listen_fd,
		             box->init_exe_fd,
		             box->skeleton_fd,
		             box->skeleton_tree_fd,
		             box->image_tree_fd,
		             box->nodes_tree_fd,
		             box->plan->image_fd,
		             box->cgroup.mon_fd };

	for (size_t i = 0; i < COUNT(some); i++)
		keep[n++] = some[i];
	for (size_t i = 0; i < box->plan->n_mounts; i++) {
		keep[n++] = box->mount_tree_fds[i];
		keep[n++] = box->plan->mounts[i].source_fd;
	}
	for (size_t i = 0; i < box->cgroup.n_trees; i++)
		keep[n++] = box->cgroup.trees[i].tasks_fd;
	for (size_t i = 0; i < s->locks.n; i++) /* own_fd could do more */
		keep[n++] = s->locks.at[i].given_fd;
	int r = child_keep(keep, n);
	return r < 0 ? r : os_reset_signals();
}

/* In the child of a launcher that has no others: the rest is the same for both. */
static int drop_ours(struct sandbox *s)
{
	for (size_t i = 0; i < s->locks.n; i++)
		fd_close(&s->locks.at[i].own_fd);
	fd_close(&s->gate_fd);
	fd_close(&s->slots_fd);
	fd_close(&s->run_fd);
	return 0;
}

/* In the child, before it is a monitor: says why in the words of one. */
static _Noreturn void give_up(int control_fd, int error)
{
	struct {
		struct channel_head head;
		struct err err;
	} said = { .head = { .type = CH_FAIL, .len = sizeof said.err } };

	err_sys(&said.err, error, "start the monitor: close what is not its own");
	(void)os_send(control_fd, &said, sizeof said, NULL, 0); /* else its silence is the report */
	_exit(125);
}

static int make_monitor(struct sandbox *s, struct err *e)
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	os_cpus_all(&s->box.cpus);
	int pid = cgroup_clone(&s->box.cgroup);
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0) {
		fd_close(&ours); /* or it would never see the client go */
		int kept = s->order->kit ? keep_own(s, theirs) : drop_ours(s);
		if (kept < 0)
			give_up(theirs, -kept);
		s->order->monitor(&s->box, theirs);
	}
	os_cpus_leave(&s->box.cpus, pid); /* we make the cgroup meanwhile */
	s->monitor_pid = pid;
	s->control_fd = fd_take(&ours);
	return 0;
}

/* The monitor ends when its client's end is closed; what it leaves is the cgroup's business. Its
 * exit takes the mounts down, so the groups are removed meanwhile, those that can be. */
static void undo_monitor(struct sandbox *s)
{
	int status;

	fd_close(&s->control_fd);
	(void)cgroup_remove(&s->box.cgroup);
	if (s->monitor_pid > 0)
		(void)os_wait(s->monitor_pid, &status, NULL);
	s->monitor_pid = 0;
}

/* clang-format off */
static const struct {
	const char *name;
	int (*make)(struct sandbox *s, struct err *e);
	void (*undo)(struct sandbox *s); /* accepts what was half made or not made */
} stages[] = {
	{ "take a slot",         make_slot,    undo_slot },
	{ "look at the host",    look_at_root, undo_init },
	{ "map host folders",    make_trees,     undo_trees },
	{ "prepare the cgroup",  prepare_cgroup, undo_cgroup },
	{ "start the monitor",   make_monitor,   undo_monitor },
	{ "make the cgroup",     make_cgroup,    undo_nothing }, /* "prepare" undoes both */
};
/* clang-format on */

static void undo_all(struct sandbox *s)
{
	for (size_t i = COUNT(stages); i-- > 0;)
		stages[i].undo(s);
}

void launcher_end(struct sandbox *s)
{
	undo_all(s);
	if (cgroup_any(&s->box.cgroup))
		(void)launcher_sweep(false, false, NULL);
}

static int run_stages(struct sandbox *s, const struct launcher_order *o, struct err *e)
{
	s->order = o;
	s->box = (struct box){ .plan = o->plan,
		               .is_root = o->host->is_root,
		               .is_kept = o->is_kept,
		               .listen_fd = o->listen_fd,
		               .id = o->id,
		               .uid = geteuid(),
		               .gid = getegid(),
		               .init_exe_fd = -1,
		               .skeleton_fd = -1,
		               .skeleton_tree_fd = -1,
		               .image_tree_fd = -1,
		               .nodes_tree_fd = -1 };
	for (size_t i = 0; i < COUNT(s->box.mount_tree_fds); i++)
		s->box.mount_tree_fds[i] = -1;
	s->box.cgroup = o->host->cgroup;
	s->box.promised = cgroup_controllers(&o->host->cgroup);
	s->box.cgroup.least_uid = o->host->is_root ? SLOT_LEAST_ID : 0;
	if (o->is_kept || o->workspace) /* who has a workspace is held while its files are copied */
		cgroup_keep(&s->box.cgroup);
	if (fault_layer_off("cgroup"))
		s->box.cgroup.n_trees = 0;
	for (size_t i = 0; i < COUNT(stages); i++)
		if (stages[i].make(s, e) < 0)
			return err_wrap(e, "%s", stages[i].name);
	return 0;
}

int launcher_start(struct sandbox *s, const struct plan *plan, const struct launcher_host *host,
                   monitor_fn *monitor, struct err *e)
{
	const struct launcher_order order = {
		.plan = plan, .host = host, .listen_fd = -1, .monitor = monitor
	};

	*s = (struct sandbox){
		.run_fd = -1, .slots_fd = -1, .gate_fd = -1, .slot = -1, .control_fd = -1
	};
	int r = run_stages(s, &order, e);
	if (r < 0)
		undo_all(s);
	s->order = NULL;
	return r;
}

/* ---- many ---------------------------------------------------------------------------- */

int launcher_take_slot(const struct launcher_kit *kit, struct launcher_hold *hold, struct err *e)
{
	struct slot_locks locks = { 0 };
	int slot = slot_take(kit->slots_fd, &locks, e);

	if (slot < 0)
		return -1;
	*hold = (struct launcher_hold){ .locks = locks, .slot = slot, .control_fd = -1 };
	return 0;
}

int launcher_build(const struct launcher_order *order, struct launcher_hold *hold, struct err *e)
{
	struct sandbox s = { .run_fd = -1,
		             .slots_fd = -1,
		             .gate_fd = -1,
		             .locks = hold->locks,
		             .slot = hold->slot,
		             .control_fd = -1 };
	int r = run_stages(&s, order, e);

	if (r < 0 && s.monitor_pid > 0)
		(void)kill(s.monitor_pid, SIGKILL); /* our child, not yet waited for */
	if (r < 0)
		fd_close(&s.control_fd);
	hold->pid = s.monitor_pid;
	hold->control_fd = fd_take(&s.control_fd);
	/* The rest was for the monitor: it has its own by now. */
	slot_locks_give(&hold->locks);
	undo_init(&s);
	undo_trees(&s);
	cgroup_done(&s.box.cgroup);
	return r;
}

bool launcher_take_dead(const struct launcher_kit *kit, int slot, struct launcher_hold *hold)
{
	struct slot_locks locks = { 0 };

	if (!slot_take_this(kit->slots_fd, slot, &locks))
		return false;
	*hold = (struct launcher_hold){ .locks = locks, .slot = slot, .control_fd = -1 };
	return true;
}

bool launcher_end_round(const struct launcher_kit *kit, struct launcher_hold *hold,
                        const struct cgroup *host)
{
	struct cgroup cg = *host;

	snprintf(cg.name, sizeof cg.name, "%d", hold->slot);
	if (cgroup_remove(&cg) > 0 && (cgroup_kill(&cg, 0) < 0 || cgroup_remove(&cg) > 0))
		return false;
	slot_locks_end(kit->slots_fd, &hold->locks);
	fd_close(&hold->control_fd);
	hold->slot = -1;
	return true;
}

/* ---- leftovers --------------------------------------------------------------------- */

struct sweep {
	int slots_fd, count;
	bool dry_run;
	const struct cgroup *host;
	void (*found)(const char *what, bool is_gone);
};

static void sweep_name(const char *name, void *arg)
{
	struct sweep *w = arg;
	char *end;
	long slot = strtol(name, &end, 10);

	AUTO(slot_locks_done) struct slot_locks lock = { 0 };
	if (*end || slot < 0 || slot >= SLOT_COUNT ||
	    !slot_take_this(w->slots_fd, (int)slot, &lock))
		return;
	struct cgroup cg = *w->host;
	snprintf(cg.name, sizeof cg.name, "%s", name);
	bool is_gone = !w->dry_run && remove_group(&cg);
	char what[32];
	snprintf(what, sizeof what, "sandbox %ld", slot);
	if (w->found)
		w->found(what, is_gone);
	w->count++;
	slot_locks_end(w->slots_fd, &lock);
}

int launcher_sweep(bool dry_run, bool with_base, void (*found)(const char *what, bool is_gone))
{
	struct cgroup host;
	struct err e;
	bool is_root = false;
	AUTO(fd_close) int run = launcher_mode(&is_root, &e) < 0 ? -1 : slot_run_dir(is_root, &e);
	AUTO(fd_close) int slots = run < 0 ? -1 : slot_open(run, &e);
	AUTO(fd_close) int gate = slots < 0 ? -1 : slot_share(slots, &e);
	struct sweep w = { .slots_fd = slots, .dry_run = dry_run, .host = &host, .found = found };

	if (gate < 0)
		return -1;
	if (cgroup_find(&host, is_root) < 0)
		return -1;
	host.least_uid = is_root ? SLOT_LEAST_ID : 0;
	cgroup_each_name(&host, sweep_name, &w);
	if (with_base)
		w.count += vaults_sweep(run, slots, dry_run, found);
	if (with_base && !dry_run && slot_alone(slots, gate)) {
		cgroup_remove_base(&host);
		skeleton_remove_all(run);
	}
	if (with_base && !dry_run)
		slot_remove_free(slots);
	return w.count;
}
