#include "test_vault.h"

static struct vault_packet relayer(uint64_t top, uint64_t from, uint32_t n, uint64_t a, uint64_t b)
{
	struct vault_packet p = { .head = { .type = V_RELAYER } };

	p.relayer = (struct vault_relayer){ .new_top = top, .from = from, .n_layers = n };
	p.relayer.layers[0] = a;
	p.relayer.layers[1] = b;
	return p;
}

static void mount_again(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_MOUNT } };

	rig_detach(r);
	rig_send(r, r->launcher, &p, -1);
	CHECK_INT(rig_hear(r, r->launcher), V_OPENED);
	rig_attach(r);
}

TEST(a_new_top_begins_with_a_checkpoint)
{
	struct rig r;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	char *one = rig_look(&r);
	rig_do(&r, "rm -rf ./*");
	CHECK(rig_checkpoint(&r, 2, 1).files > 0);
	rig_must(&r, relayer(101, 1, 1, 10, 0), -1);
	mount_again(&r);
	rig_see_same(one, rig_look(&r), "swapped");
	rig_do(&r, "echo go on >>src/f1");
	CHECK_INT(rig_checkpoint(&r, 3, 1).files, 1);
	rig_restore(&r, 2, 3);
	CHECK_STR(rig_do(&r, "ls"), "");
	rig_restore(&r, 1, 2);
	rig_see_same(one, rig_look(&r), "undo in the new top");
	rig_must(&r, rig_tree(V_REMOVE_TREE, 100), -1);
	free(one);
	rig_end(&r);
}

TEST(the_old_top_becomes_a_layer)
{
	struct rig r;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	char *one = rig_look(&r);
	rig_must(&r, relayer(101, 0, 2, 100, 10), -1);
	mount_again(&r);
	rig_see_same(one, rig_look(&r), "the same through two layers");
	CHECK_STR(rig_host(&r, "ls trees/100"), "d\nsealed\nw\n");
	rig_do(&r, "rm -r new; mv src/moved src/lib; echo x >>docs/d2");
	char *two = rig_look(&r);
	CHECK(rig_checkpoint(&r, 2, 1).files > 0);
	rig_restore(&r, 1, 2); /* that lay on other layers */
	rig_see_same(one, rig_look(&r), "undo across layers");
	rig_restore(&r, 2, 0);
	rig_see_same(two, rig_look(&r), "redo");
	free(one);
	free(two);
	rig_end(&r);
}

TEST(not_while_a_sandbox_is_there)
{
	struct rig r;

	rig_begin(&r);
	int fd = openat(r.folder_fd, "slots", O_RDWR | O_CLOEXEC);
	CHECK_INT(os_lock_shared(fd, RIG_BYTE), 0);
	CHECK_INT(rig_ask(&r, relayer(101, 0, 1, 10, 0), -1), V_FAILED);
	CHECK_INT(r.answer.err.sys, EBUSY);
	close(fd);
	rig_do(&r, "cat new/n1");
	rig_end(&r);
}

TEST(what_fails_leaves_the_old_one)
{
	struct rig r;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	CHECK_INT(rig_ask(&r, relayer(101, 77, 1, 10, 0), -1), V_FAILED);
	CHECK_INT(rig_ask(&r, relayer(102, 1, 1, 77, 0), -1), V_FAILED);
	CHECK_STR(r.answer.err.msg, "there is no tree 77");
	CHECK_INT(rig_ask(&r, relayer(103, 1, 2, 10, VAULT_EMPTY_TREE), -1), V_FAILED);
	CHECK_STR(r.answer.err.msg, "checkpoint 1 lies on other layers");
	mount_again(&r);
	CHECK_STR(rig_do(&r, "cat new/n1; echo 2 >>new/n1"), "n1\n");
	rig_end(&r);
}

TEST(a_fork_begins_with_a_checkpoint_of_its_parent)
{
	struct rig r;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	char *one = rig_look(&r);
	rig_do(&r, "echo later >later");
	rig_checkpoint(&r, 2, 1);
	rig_kill(&r);
	r.open.workspace = 6;
	r.open.top = 200;
	r.open.from = 1;
	rig_spawn(&r);
	rig_open(&r);
	CHECK_INT(r.answer.opened.is_new, 1);
	rig_see_same(one, rig_look(&r), "fork");
	rig_do(&r, "echo child >child");
	CHECK_INT(rig_checkpoint(&r, 3, 1).files, 1);
	rig_restore(&r, 1, 3);
	rig_see_same(one, rig_look(&r), "undo in a fork");
	free(one);
	rig_end(&r);
}
