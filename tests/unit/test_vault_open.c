#include "test_vault.h"

TEST(a_top_over_a_layer_is_written_as_the_agent)
{
	struct rig r;

	rig_init(&r);
	rig_layer(&r, 10, "echo base >a; mkdir d; echo x >d/x; chown -R 1000:1000 .");
	r.open.n_layers = 2;
	r.open.layers[0] = 10;
	r.open.layers[1] = VAULT_EMPTY_TREE;
	rig_spawn(&r);
	rig_open(&r);
	CHECK_INT(r.answer.opened.is_new, 1);
	CHECK_STR(rig_do(&r, "cat a d/x; echo new >d/n; echo more >>a; mv d e; cat e/n a; rm e/x"),
	          "base\nx\nnew\nbase\nmore\n");
	CHECK_STR(rig_host(&r, "stat -c %u trees/100/d/a trees/100/d/e/n"), "1000\n1000\n");
	char text[16] = "", path[128];
	snprintf(path, sizeof path, "%s/trees/100/d/e", r.folder);
	CHECK_INT(getxattr(path, "trusted.overlay.redirect", text, sizeof text), 1);
	CHECK_STR(text, "d");
	free(rig_look(&r));
	CHECK_STR(rig_host(&r, "cat trees/10/d/a"), "base\n");
	rig_end(&r);
}

TEST(no_path_of_the_host_shows_in_its_mount)
{
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	CHECK_STR(rig_host(&r, "grep ' '$PWD/work' ' /proc/self/mountinfo | grep -c "
	                       "'trees\\|vault.*vault' || true"),
	          "0\n");
	CHECK_STR(rig_host(&r, "grep -o 'upperdir=[^,]*' /proc/self/mounts | tail -1"),
	          "upperdir=m/100/d\n");
	CHECK_STR(rig_host(&r, "grep $PWD/work /proc/self/mounts | grep -o 'rw,nosuid,nodev'"),
	          "rw,nosuid,nodev\n");
	rig_end(&r);
}

TEST(a_layer_must_be_sealed_and_there)
{
	struct rig r;

	rig_init(&r);
	r.open.layers[0] = 77;
	rig_spawn(&r);
	CHECK_INT(rig_try_open(&r), V_FAILED);
	CHECK_STR(r.answer.err.msg, "there is no tree 77");
	CHECK_INT(waitpid(r.pid, NULL, 0), r.pid);
	fd_close(&r.launcher);
	rig_host(&r, "mkdir -p trees/77/d");
	rig_spawn(&r);
	CHECK_INT(rig_try_open(&r), V_FAILED);
	CHECK_STR(r.answer.err.msg, "tree 77 is not sealed");
	rig_end(&r);
}

TEST(a_mount_is_given_as_often_as_it_is_asked_for)
{
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "echo one >f");
	struct vault_packet p = { .head = { .type = V_MOUNT } };
	rig_send(&r, r.launcher, &p, -1);
	CHECK_INT(rig_hear(&r, r.launcher), V_OPENED);
	rig_detach(&r);
	rig_attach(&r);
	CHECK_STR(rig_do(&r, "cat f"), "one\n");
	rig_end(&r);
}

TEST(one_top_has_one_overlay)
{
	struct rig r, other;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "echo one >f");
	rig_kill(&r);
	rig_spawn(&r); /* nothing is left: it opens again */
	rig_open(&r);
	CHECK_INT(r.answer.opened.is_new, 0);
	other = r;
	rig_spawn(&other);
	CHECK_INT(rig_try_open(&other), V_FAILED);
	CHECK_INT(other.answer.err.sys, EBUSY);
	CHECK_INT(waitpid(other.pid, NULL, 0), other.pid);
	CHECK_STR(rig_do(&r, "cat f"), "one\n");
	rig_end(&r);
}

TEST(a_later_launcher_finds_it)
{
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "echo one >f");
	fd_close(&r.launcher);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%s/5.sock", r.folder);
	CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	r.launcher = fd;
	CHECK_INT(rig_try_open(&r), V_OPENED);
	rig_detach(&r);
	rig_attach(&r);
	CHECK_STR(rig_do(&r, "cat f"), "one\n");
	r.open.top++;
	CHECK_INT(rig_try_open(&r), V_FAILED);
	rig_end(&r);
}

TEST(closed_only_when_no_sandbox_has_it)
{
	struct rig r;
	struct vault_packet close_it = { .head = { .type = V_CLOSE } };

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	int fd = openat(r.folder_fd, "number", O_RDONLY | O_CLOEXEC);
	CHECK_INT(os_lock_shared(fd, 0), 0);
	CHECK_INT(rig_ask(&r, close_it, -1), V_FAILED);
	CHECK_INT(r.answer.err.sys, EBUSY);
	close(fd);
	rig_must(&r, close_it, -1);
	int status;
	CHECK_INT(waitpid(r.pid, &status, 0), r.pid);
	CHECK_INT(status, 0);
	r.pid = 0;
	rig_end(&r);
}

TEST(read_only_has_no_top)
{
	struct rig r;

	rig_init(&r);
	rig_layer(&r, 10, "echo base >a; chown -R 1000:1000 .");
	rig_layer(&r, 11, "echo upper >b; chown -R 1000:1000 .");
	r.open.flags = VAULT_READ_ONLY;
	r.open.top = 0;
	for (uint32_t n = 1; n <= 2; n++) {
		r.open.n_layers = n;
		r.open.layers[0] = n == 1 ? 10 : 11;
		r.open.layers[1] = 10;
		rig_spawn(&r);
		rig_open(&r);
		CHECK_STR(rig_do(&r, "cat a"), "base\n");
		CHECK_INT(rig_run(&r, 1000, r.work, "echo x 2>&- >a"), 2);
		rig_kill(&r);
	}
	rig_end(&r);
}

TEST(a_tree_of_any_depth_is_removed)
{
	struct rig r;

	rig_init(&r);
	rig_layer(&r, 10, "for i in $(seq 300); do mkdir d f; : >f/x; cd d; done");
	rig_spawn(&r);
	rig_open(&r);
	rig_must(&r, rig_tree(V_REMOVE_TREE, 10), -1);
	CHECK_STR(rig_host(&r, "ls trees"), "1\n100\n");
	rig_must(&r, rig_tree(V_REMOVE_TREE, 10), -1);
	CHECK_INT(rig_ask(&r, rig_tree(V_REMOVE_TREE, 100), -1), V_FAILED);
	rig_end(&r);
}
