/* Trees of the store as a command finds them: the launcher's part is done here. */
#include "engine/userns.h"
#include "test_box.h"
#include "wire/vault.h"

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

/* ---- a workspace ----------------------------------------------------------------------- */

static struct {
	char store[64];
	pid_t pid;
	int channel, mount_fd;
} vault;

static const char *const folders[] = { "trees", "blobs", "vol" };

/* In the child: its descriptors, then the program. */
static _Noreturn void become_vault(int channel)
{
	int from[6] = { channel }, store = open(vault.store, O_PATH | O_CLOEXEC);
	char path[PATH_MAX];

	for (int i = 0; i < 3; i++)
		from[1 + i] = openat(store, folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	from[4] = os_listen_at(store, "sock", SOCK_SEQPACKET, 0600);
	from[5] = openat(store, "locks", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < 6; i++)
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 20);
	for (int i = 0; i < 6; i++)
		(void)dup2(from[i], VAULT_LAUNCHER_FD + i);
	(void)os_readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path - 32);
	memcpy(strrchr(path, '/'), "/caisson-vault", sizeof "/caisson-vault");
	execl(path, "caisson-vault", (char *)NULL);
	_exit(126);
}

static void make_store(void)
{
	char path[96];

	snprintf(vault.store, sizeof vault.store, "/tmp/test-store-XXXXXX");
	CHECK(mkdtemp(vault.store));
	for (size_t i = 0; i < COUNT(folders); i++) {
		snprintf(path, sizeof path, "%s/%s", vault.store, folders[i]);
		CHECK_INT(mkdir(path, 0700), 0);
	}
}

/* As launcher/vaults.c. */
static void open_work(void)
{
	struct vault_packet p = { .head = { .type = V_OPEN } };
	const struct userns_range all = { 0, t.box.id_base, BOX_IDS };
	struct err e = { 0 };
	int fds[2];
	size_t n = 1;

	make_store();
	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	fflush(NULL);
	vault.pid = fork();
	if (vault.pid == 0)
		become_vault(fds[1]);
	close(fds[1]);
	vault.channel = fds[0];
	p.open = (struct vault_open){ .workspace = 5,
		                      .top = 11,
		                      .n_layers = 1,
		                      .layers = { VAULT_EMPTY_TREE },
		                      .flags = t.box.is_root ? 0 : VAULT_ROOTLESS,
		                      .id_base = t.box.is_root ? t.box.id_base : 0,
		                      .n_ids = t.box.is_root ? BOX_IDS : 0 };
	p.head.len = sizeof p.open;
	if (t.box.is_root)
		ns = userns_make(all, all, &e);
	CHECK(os_send(vault.channel, &p, vault_size(&p), &ns, ns >= 0) > 0);
	if (os_recv(vault.channel, &p, sizeof p, &vault.mount_fd, &n) <= 0)
		SKIP("needs caisson-vault beside the test");
	if (p.head.type == V_FAILED)
		CHECK_STR(p.err.msg, "");
	CHECK_INT(n, 1);
}

static void with_work(void)
{
	struct plan *p = &t.plan;

	open_work();
	p->mounts[0] = (struct plan_mount){ .kind = PLAN_TREE,
		                            .source_fd = vault.mount_fd,
		                            .at = (uint32_t)p->text.len,
		                            .is_dir = true,
		                            .is_ready = true };
	str_addn(&p->text, "/work", sizeof "/work");
	t.box.mount_tree_fds[0] = fcntl(vault.mount_fd, F_DUPFD_CLOEXEC, 3);
	p->n_mounts = 1;
}

/* Also where the vault is in a user namespace that is not an ancestor of the sandbox's. */
TEST(a_workspace_is_written_through_its_overlay)
{
	char path[128], text[16];

	make_tree(); /* end() removes it */
	box_start_with(&t, true, (const char *const[]){ NULL }, with_work);
	box_await(&t, CH_READY, 0);
	CHECK_STR(run(1,
	              "cd /work && echo new >file && mkdir dir && mv file dir/ && cat dir/file && "
	              "stat -c %u:%g . dir/file; grep -c ' /work overlay rw,nosuid,nodev' "
	              "/proc/self/mounts"),
	          "new\n1000:1000\n1000:1000\n1\n");
	CHECK_STR(run(2, "grep -o 'upperdir=[^,]*' /proc/self/mounts; ls /work"),
	          t.box.is_root ? "upperdir=m/11/d\ndir\n" : "upperdir=t/11/d\ndir\n");
	snprintf(path, sizeof path, "%s/trees/11/d/dir/file", vault.store);
	CHECK(os_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	CHECK_STR(text, "new\n");
	end();
	CHECK_INT(kill(vault.pid, SIGKILL), 0);
	CHECK_INT(waitpid(vault.pid, NULL, 0), vault.pid);
	close(vault.channel);
	copytree_remove(AT_FDCWD, vault.store);
}
