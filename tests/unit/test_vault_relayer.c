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
	int fd = openat(r.folder_fd, "number", O_RDONLY | O_CLOEXEC);
	CHECK_INT(os_lock_shared(fd, 0), 0);
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

TEST(a_flat_tree_of_a_checkpoint_shows_what_one_saw_then)
{
	struct rig r;
	struct vault_packet p = { .head = { .type = V_FLATTEN } };

	rig_begin(&r);
	rig_do(&r, "rm -r new docs; mkdir docs; echo anew >docs/new; mv src code; rm code/f5");
	rig_checkpoint(&r, 1, 0);
	char *seen = rig_look(&r);
	rig_do(&r, "echo later >later; rm -r code");
	p.flatten = (struct vault_flatten){
		.number = 900, .from = 1, .filled = 901, .n_layers = 1, .layers = { 10 }
	};
	struct vault_done d = rig_must(&r, p, -1);
	CHECK(d.files > 5 && d.bytes > 10);
	rig_must(&r, rig_tree(V_REMOVE_TREE, 901), -1);
	rig_must(&r, relayer(200, 0, 1, 900, 0), -1);
	mount_again(&r);
	rig_see_same(seen, rig_look(&r), "flat");
	free(seen);
	p.flatten.number = 902;
	p.flatten.layers[0] = VAULT_EMPTY_TREE; /* it did not lie on that */
	CHECK_INT(rig_ask(&r, p, -1), V_FAILED);
	rig_end(&r);
}

TEST(a_flat_tree_shows_what_the_stack_shows)
{
	static const char *const scripts[] = {
		"rm -r docs; mkdir docs; echo anew >docs/new; mv src/moved src/again",
		"mv src code; rm code/f5; echo x >code/again/deep/x; mv bin tools",
		"rm -r docs; mv code/again up; echo y >>up/deep/d1; ln -s up link; mkdir bin",
	};
	struct rig r;
	struct vault_packet p = { .head = { .type = V_FLATTEN } };

	rig_begin(&r);
	rig_do(&r, "rm -r new"); /* whose links we count, and these have more */
	p.flatten.number = 900;
	p.flatten.n_layers = 1;
	p.flatten.layers[0] = 10;
	for (uint64_t i = 0; i < COUNT(scripts); i++) {
		struct vault_packet more = { .head = { .type = V_RELAYER } };

		memmove(p.flatten.layers + 1, p.flatten.layers, 8 * sizeof p.flatten.layers[0]);
		p.flatten.layers[0] = 100 + i;
		p.flatten.n_layers++;
		more.relayer.new_top = 101 + i;
		more.relayer.n_layers = p.flatten.n_layers;
		memcpy(more.relayer.layers, p.flatten.layers, sizeof more.relayer.layers);
		rig_must(&r, more, -1);
		mount_again(&r);
		char *seen = rig_look(&r);
		p.flatten.number++;
		CHECK(rig_must(&r, p, -1).files > 10);
		CHECK_INT(rig_must(&r, p, -1).files, 0);
		struct vault_packet flat = relayer(200 + i, 0, 1, p.flatten.number, 0);
		rig_must(&r, flat, -1);
		mount_again(&r);
		rig_see_same(seen, rig_look(&r), "flat");
		rig_must(&r, (struct vault_packet){ .head = { .type = V_USAGE } }, -1);
		more.relayer.new_top = 300 + i; /* and on with the stack */
		rig_must(&r, more, -1);
		mount_again(&r);
		rig_see_same(seen, rig_look(&r), "the stack");
		p.flatten.layers[0] = 100 + i;
		rig_do(&r, scripts[i]);
		free(seen);
		/* The next layer has the name 101 + i: made from what is there now. */
		rig_checkpoint(&r, 10 + i, 0);
		rig_must(&r, relayer(400 + i, 0, 1, 10, 0), -1);
		more.relayer.new_top = 101 + i;
		more.relayer.from = 10 + i;
		rig_must(&r, rig_tree(V_REMOVE_TREE, 101 + i), -1);
		rig_must(&r, more, -1);
		mount_again(&r);
	}
	rig_end(&r);
}

TEST(a_flat_tree_stands_for_its_layers)
{
	struct rig r;
	struct vault_packet p = { .head = { .type = V_FLATTEN } };

	rig_begin(&r);
	rig_do(&r, "rm -r new");
	rig_checkpoint(&r, 1, 0);
	rig_must(&r, relayer(101, 0, 2, 100, 10), -1);
	mount_again(&r);
	rig_do(&r, "mv src code; echo x >>code/f1; rm -r docs; echo top >top");
	rig_checkpoint(&r, 2, 1);
	char *two = rig_look(&r);
	rig_do(&r, "rm -r code; mkdir code");
	rig_checkpoint(&r, 3, 2);
	p.flatten = (struct vault_flatten){ .number = 900, .n_layers = 2, .layers = { 100, 10 } };
	rig_must(&r, p, -1);
	char *three = rig_look(&r);
	rig_kill(&r);
	r.open.top = 101; /* the same top, on the flat one */
	r.open.layers[0] = 900;
	rig_spawn(&r);
	rig_open(&r);
	rig_see_same(three, rig_look(&r), "nobody sees a difference");
	CHECK_INT(rig_checkpoint(&r, 4, 3).files, 0);
	rig_restore(&r, 2, 3);
	rig_see_same(two, rig_look(&r), "undo to a point of before");
	rig_kill(&r);
	r.open.top = 102; /* another one, that begins with a point of before */
	r.open.from = 2;
	rig_spawn(&r);
	rig_open(&r);
	rig_see_same(two, rig_look(&r), "a new top");
	p.flatten = (struct vault_flatten){ .number = 901, .n_layers = 1, .layers = { 900 } };
	rig_must(&r, p, -1); /* and it stands for the same as the other */
	rig_kill(&r);
	r.open.layers[0] = 901;
	rig_spawn(&r);
	rig_open(&r);
	CHECK_INT(rig_checkpoint(&r, 5, 2).files, 0);
	rig_see_same(two, rig_look(&r), "flat again");
	free(two);
	free(three);
	rig_end(&r);
}
