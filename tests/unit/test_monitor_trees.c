/* Trees of the store as a command finds them: the launcher's part is done here. */
#include "engine/userns.h"
#include "test_box.h"

static struct test_box t;
static char tree[64];
static int ns = -1;

static void make_tree(void)
{
	char path[96];

	snprintf(tree, sizeof tree, "/tmp/test-tree-XXXXXX");
	CHECK(mkdtemp(tree));
	CHECK_INT(chmod(tree, 0755), 0);
	snprintf(path, sizeof path, "%s/file", tree);
	CHECK_INT(os_make_file(AT_FDCWD, path, "here\n", 5, 0644), 0);
	if (geteuid() == 0) { /* as it is inside */
		CHECK_INT(chown(tree, 1000, 1000), 0);
		CHECK_INT(chown(path, 1000, 1000), 0);
	}
}

/* What launcher.c does for a mount of kind LAUNCH_TREE. */
static void add_tree(const char *at, bool is_read_only)
{
	struct plan *p = &t.plan;
	struct plan_mount *m = &p->mounts[p->n_mounts];
	struct err e = { 0 };

	*m = (struct plan_mount){ .kind = PLAN_TREE,
		                  .source_fd = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC),
		                  .at = (uint32_t)p->text.len,
		                  .is_dir = true,
		                  .is_read_only = is_read_only };
	str_addn(&p->text, at, strlen(at) + 1);
	if (t.box.is_root) {
		const struct userns_range all = { 0, t.box.id_base, BOX_IDS };

		if (ns < 0)
			ns = userns_make(all, all, &e);
		t.box.mount_tree_fds[p->n_mounts] = userns_map_exactly(m->source_fd, ns, &e);
		box_check(t.box.mount_tree_fds[p->n_mounts], &e);
	}
	p->n_mounts++;
}

static void both_ways(void)
{
	add_tree("/run/caisson/read", true);
	add_tree("/work", false);
}

static void only_read(void)
{
	add_tree("/work", true);
}

static void start(void (*prepare)(void))
{
	make_tree();
	box_start_with(&t, true, (const char *const[]){ NULL }, prepare);
	box_await(&t, CH_READY, 0);
}

static void end(void)
{
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	for (size_t i = 0; i < t.plan.n_mounts; i++)
		fd_close(&t.box.mount_tree_fds[i]);
	fd_close(&ns);
	box_end(&t);
	copytree_remove(AT_FDCWD, tree);
}

static const char *run(uint32_t num, const char *script)
{
	AUTO(fd_close) int log = box_sh(&t, num, script);

	(void)box_await_exit(&t, num);
	return box_text(log, LOG_OUT);
}

TEST(a_tree_is_written_with_the_ids_that_are_inside)
{
	char path[96];
	struct stat st;

	start(both_ways);
	CHECK_STR(
	    run(1, "cat /work/file; echo new >/work/made; stat -c %u:%g /work/made /work/file"),
	    "here\n1000:1000\n1000:1000\n");
	snprintf(path, sizeof path, "%s/made", tree);
	CHECK_INT(stat(path, &st), 0);
	CHECK_INT(st.st_uid, geteuid() == 0 ? 1000 : geteuid());
	CHECK_STR(run(2, "cd /run/caisson/read; cat made; (echo x >file) 2>/dev/null || echo no; "
	                 "LC_ALL=C rm file 2>&1; cat /work/file"),
	          "new\nno\nrm: cannot remove 'file': Read-only file system\nhere\n");
	end();
}

TEST(what_is_only_read_cannot_be_written_at_work_either)
{
	start(only_read);
	CHECK_STR(run(1, "cat /work/file; touch /work/new 2>/dev/null || echo no; "
	                 "grep -c ' /work .*\\bro\\b.*nosuid.*nodev' /proc/self/mounts"),
	          "here\nno\n1\n");
	end();
}
