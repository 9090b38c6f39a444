#include "test_vault.h"

static void bounded(struct rig *r)
{
	rig_init(r);
	rig_layer(r, 10, rig_base);
	r->open.layers[0] = 10;
	r->open.flags = VAULT_BOUNDED;
	r->open.bytes = 64u << 20;
	r->open.inodes = 500;
	rig_spawn(r);
	rig_open(r);
}

TEST(a_full_volume_is_full_inside_only)
{
	struct rig r;

	bounded(&r);
	rig_do(&r, rig_first);
	CHECK_STR(rig_host(&r, "ls trees; test -e vol/5 && echo yes"), "1\n10\nyes\n");
	CHECK_INT(rig_run(&r, 1000, r.work, "dd if=/dev/zero of=big bs=1M count=100 2>&1; rm big"),
	          0);
	CHECK(strstr(str_text(&r.out), "No space left on device"));
	CHECK(rig_run(&r, 1000, r.work, "for i in $(seq 600); do : >n$i || exit 1; done") != 0);
	CHECK(strstr(str_text(&r.out), "No space left on device"));
	rig_do(&r, "rm -f n*; echo room >again");
	CHECK_INT((int)strtol(rig_host(&r, "du -m vol/5 | cut -f1"), NULL, 10) < 70, 1);
	rig_end(&r);
}

TEST(checkpoints_of_a_volume_are_undone)
{
	struct rig r;

	bounded(&r);
	rig_do(&r, rig_first);
	rig_checkpoint(&r, 1, 0);
	char *one = rig_look(&r);
	rig_do(&r, "rm -rf src; echo x >>docs/d2");
	rig_checkpoint(&r, 2, 1);
	rig_restore(&r, 1, 2);
	rig_see_same(one, rig_look(&r), "undo");
	rig_must(&r, (struct vault_packet){ .head = { .type = V_SYNC } }, -1);
	struct vault_packet p = { .head = { .type = V_RELAYER } };
	p.relayer =
	    (struct vault_relayer){ .new_top = 101, .from = 1, .n_layers = 1, .layers = { 10 } };
	rig_must(&r, p, -1);
	struct vault_packet mount_it = { .head = { .type = V_MOUNT } };
	rig_detach(&r);
	rig_send(&r, r.launcher, &mount_it, -1);
	CHECK_INT(rig_hear(&r, r.launcher), V_OPENED);
	rig_attach(&r);
	rig_see_same(one, rig_look(&r), "another top");
	rig_must(&r, rig_tree(V_REMOVE_TREE, 100), -1);
	free(one);
	rig_end(&r);
}

TEST(a_volume_outlives_its_vault)
{
	struct rig r;

	bounded(&r);
	rig_do(&r, "echo one >f");
	/* Killed, and a sandbox has the mount still: the same device. */
	kill(r.pid, SIGKILL);
	CHECK_INT(waitpid(r.pid, NULL, 0), r.pid);
	fd_close(&r.launcher);
	CHECK_STR(rig_do(&r, "cat f; echo two >>f"), "one\n");
	rig_spawn(&r);
	CHECK_INT(rig_try_open(&r), V_FAILED); /* the overlay is there still */
	CHECK_INT(r.answer.err.sys, EBUSY);
	CHECK_INT(waitpid(r.pid, NULL, 0), r.pid);
	CHECK_INT(umount2(r.work, 0), 0);
	for (int i = 0; i < 3; i++) {
		fd_close(&r.launcher);
		rig_spawn(&r);
		rig_open(&r);
		CHECK_INT(r.answer.opened.is_new, 0);
		CHECK_STR(rig_do(&r, "cat f"), "one\ntwo\n");
		rig_kill(&r);
	}
	CHECK_STR(rig_host(&r, "losetup -a | grep -c $PWD/vol || true"), "0\n");
	r.open = (struct vault_open){ 0 };
	rig_spawn(&r);
	rig_open(&r);
	rig_must(&r, rig_tree(V_REMOVE_VOLUME, RIG_WORKSPACE), -1);
	rig_must(&r, rig_tree(V_REMOVE_VOLUME, RIG_WORKSPACE), -1);
	CHECK_STR(rig_host(&r, "ls vol | grep -v template || true"), "");
	rig_end(&r);
}

TEST(the_next_top_has_the_room_of_the_last)
{
	struct rig r;

	bounded(&r);
	rig_do(&r, "head -c 36m /dev/urandom >large"); /* twice that is more than the volume */
	rig_checkpoint(&r, 1, 0);
	char *one = rig_look(&r);
	rig_do(&r, "rm large; head -c 36m /dev/urandom >other");
	rig_kill(&r);
	r.open.top = 101;
	r.open.from = 1;
	rig_spawn(&r);
	rig_open(&r);
	rig_see_same(one, rig_look(&r), "another top");
	free(one);
	rig_end(&r);
}
