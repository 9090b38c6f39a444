#include "launcher/kit.h"

#include <fcntl.h>

#include "base/fd.h"
#include "engine/skeleton.h"
#include "io/program.h"
#include "launcher/slot.h"
#include "os/file.h"

#define CHECK_MS 1000

static int find_programs(struct kit *k, struct err *e)
{
	char path[PATH_TEXT_MAX];

	if (proof_look_at_host(&k->common.host, e) < 0 || program_find("caisson-init", path, e) < 0)
		return -1;
	k->common.init_exe_fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
	return k->common.init_exe_fd < 0 ? err_sys(e, -k->common.init_exe_fd, "open %s", path) : 0;
}

int kit_open(struct kit *k, struct err *e)
{
	*k = (struct kit){
		.is_open = true,
		.common = { .run_fd = -1, .slots_fd = -1, .init_exe_fd = -1, .skeleton_fd = -1 },
		.gate_fd = -1
	};
	if (launcher_mode(&k->host.is_root, e) < 0)
		return -1;
	int r = cgroup_find(&k->host.cgroup, k->host.is_root);

	k->host.cgroup.least_uid = k->host.is_root ? SLOT_LEAST_ID : 0;
	if (r < 0)
		return err_sys(e, -r, "look at the cgroups");
	char score[16] = "";
	k->common.is_oom_plain =
	    os_read_file(AT_FDCWD, "/proc/self/oom_score_adj", score, sizeof score) > 0 &&
	    strcmp(score, "0\n") == 0;
	(void)cgroup_live_in(&k->host.cgroup); /* else every monitor joins by itself */
	k->common.run_fd = slot_run_dir(k->host.is_root, e);
	if (k->common.run_fd < 0)
		return -1;
	k->common.slots_fd = slot_open(k->common.run_fd, e);
	k->gate_fd = k->common.slots_fd < 0 ? -1 : slot_share(k->common.slots_fd, e);
	if (k->gate_fd < 0)
		return -1;
	if (find_programs(k, e) < 0)
		return -1;
	k->common.skeleton_fd = skeleton_open(k->common.run_fd, e);
	return k->common.skeleton_fd < 0 ? err_wrap(e, "skeleton") : 0;
}

int kit_refresh(struct kit *k, uint64_t now_ms, struct err *e)
{
	if (now_ms - k->checked_ms < CHECK_MS)
		return 0;
	int fd = skeleton_open(k->common.run_fd, e);
	if (fd < 0)
		return err_wrap(e, "skeleton");
	fd_close(&k->common.skeleton_fd);
	k->common.skeleton_fd = fd;
	k->checked_ms = now_ms;
	return 0;
}

void kit_done(struct kit *k)
{
	if (!k->is_open)
		return;
	k->is_open = false;
	/* Where others live, or a sandbox that was kept, it stays. */
	cgroup_leave(&k->host.cgroup);
	cgroup_remove_base(&k->host.cgroup);
	fd_close(&k->common.skeleton_fd);
	fd_close(&k->common.init_exe_fd);
	fd_close(&k->common.run_fd);
	fd_close(&k->common.slots_fd);
	fd_close(&k->gate_fd);
}
