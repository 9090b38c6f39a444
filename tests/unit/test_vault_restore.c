#include "test_vault.h"
#include "wire/tree.h"

static const struct change {
	const char *name, *script;
} changes[] = {
	{ "nothing", ":" },
	{ "a file of the layer", "echo more >>src/f4" },
	{ "a file of the top", "echo more >>new/n1" },
	{ "a file back to what the layer has", "printf 'file 1\\n' >src/f1" },
	{ "new files", "mkdir -p a/b/c; echo 1 >a/b/c/1; echo 2 >a/2; : >a/0" },
	{ "a removed file of the layer", "rm src/f5" },
	{ "a removed file of the top", "rm new/n1" },
	{ "a removed directory of the layer", "rm -rf docs" },
	{ "a removed directory of the top", "rm -rf new" },
	{ "everything", "rm -rf ./* ./.[a-z]* 2>/dev/null; true" },
	{ "a directory made anew", "rm -rf docs; mkdir docs; echo only >docs/only" },
	{ "a renamed directory of the layer", "mv docs papers" },
	{ "a renamed directory, changed in it",
	  "mv docs papers; echo x >>papers/d2; rm papers/d3" },
	{ "a directory renamed twice", "mv docs a; mv a b" },
	{ "a moved one renamed again", "mv src/moved src/again" },
	{ "a moved one moved back", "mv src/moved src/lib" },
	{ "a directory below another", "mkdir deep; mv docs deep/docs; mv src deep/src" },
	{ "two that changed places", "mv docs t; mv bin docs; mv t bin" },
	{ "a renamed parent of a renamed one", "mv src code; mv code/moved code/lib" },
	{ "a renamed directory of the top", "mv new newer; echo 2 >newer/n2" },
	{ "a renamed file", "mv src/f1 src/f9; mv docs/d2 new/d2" },
	{ "a file that became a directory", "rm src/f1; mkdir src/f1; echo x >src/f1/x" },
	{ "a directory that became a file", "rm -rf docs; echo x >docs" },
	{ "a link that became a file", "rm docs/link; echo x >docs/link" },
	{ "a file that became a link", "rm src/f1; ln -s /etc src/f1" },
	{ "another target", "ln -sfn /etc/passwd docs/link" },
	{ "modes", "chmod 700 src/f1 docs bin/run; chmod 4755 src/f4" },
	{ "times", "touch -d '2001-01-01' src/f1 docs new src/f4" },
	{ "times of a link", "touch -h -d '2001-01-01' docs/link new/dangling" },
	{ "links apart", "rm new/n1-hard; cp new/n1 new/n1-hard" },
	{ "a link to another", "ln -f src/f1 new/n1-hard" },
	{ "a third name", "ln new/n1 new/n1-third; echo x >>new/n1" },
	{ "a hard link of the layer", "echo more >>src/f2" },
	{ "a fifo less, one more", "rm new/pipe; mkfifo p2" },
	{ "a sparse file", "truncate -s 5G big; printf x | dd of=big bs=1 seek=4000000000 "
	                   "conv=notrunc 2>/dev/null" },
	{ "odd names", "echo x >\"$(printf 'x\\377\\n\\t\"y')\"; rm odd*" },
	{ "a long name",
	  "mkdir $(printf %0255d 7); echo x >$(printf %0255d 7)/$(printf %0255d 8)" },
	{ "a larger file", "head -c 3000000 /dev/urandom >rnd; cp rnd src/f1" },
	{ "a running program", "cp /bin/sleep new/prog; new/prog 0.1" },
};

/* Another workspace begins with the point: it shows the same, and there is nothing to undo. */
static void see_fork(struct rig *r, uint64_t point, char *want)
{
	rig_kill(r);
	r->open.workspace = 6;
	r->open.top = 200;
	r->open.from = point;
	rig_spawn(r);
	rig_open(r);
	rig_see_same(want, rig_look(r), "fork");
	CHECK_INT(rig_restore(r, point, 0).files, 0);
	char *lines = rig_changes(r, point, VAULT_NOW);
	CHECK_STR(lines, "");
	free(lines);
}

static void try_change(const struct change *c)
{
	struct rig r;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	char *one = rig_look(&r);
	rig_do(&r, c->script);
	char *two = rig_look(&r);
	struct vault_done d = rig_checkpoint(&r, 2, 1);
	uint64_t now = d.files ? 2 : 1;
	rig_restore(&r, 1, now);
	rig_see_same(one, rig_look(&r), "undo");
	CHECK_INT(rig_restore(&r, 1, now).files, 0); /* again: nothing to do */
	rig_see_same(one, rig_look(&r), "undo again");
	CHECK_INT(rig_checkpoint(&r, 3, 1).files, 0); /* however it lies there by now */
	CHECK_INT(rig_checkpoint(&r, 3, 1).files, 0);
	rig_restore_still(&r, now, 1);
	rig_see_same(two, rig_look(&r), "redo");
	CHECK_INT(rig_checkpoint(&r, 4, now).files, 0);
	rig_restore_still(&r, 1, now);
	rig_see_same(one, rig_look(&r), "undo of the redo");
	CHECK_INT(rig_checkpoint(&r, 4, 1).files, 0);
	rig_do(&r, "echo x >later");
	char *three = rig_look(&r);
	CHECK_INT(rig_checkpoint(&r, 5, 1).files > 0, 1);
	rig_restore(&r, now, 5);
	rig_see_same(two, rig_look(&r), "the other branch");
	rig_restore(&r, 5, 0);
	rig_see_same(three, rig_look(&r), "what came after the undo");
	char *there = rig_changes(&r, 1, now), *none = rig_changes(&r, now, now);
	CHECK(*there == '\0' || strcmp(one, two) != 0); /* a time alone is no change */
	CHECK_STR(none, "");
	free(there);
	free(none);
	see_fork(&r, now, two);
	free(one);
	free(two);
	free(three);
	rig_end(&r);
}

/* Each has its own store: all of them in one test take longer than a test may on a busy host. */
static void try_some(size_t first)
{
	for (size_t i = first; i < COUNT(changes); i += 3) {
		printf("# %s\n", changes[i].name);
		try_change(&changes[i]);
	}
}

TEST(every_change_is_undone_and_redone)
{
	try_some(0);
}

TEST(every_second_one_too)
{
	try_some(1);
}

TEST(every_third_one_too)
{
	try_some(2);
}

/* What was written back is no part of a checkpoint until the next one, which holds all of it. */
static void see_kept(struct rig *r, char *as_it_was)
{
	struct vault_packet p = { .head = { .type = V_SWEEP } };
	char text[64] = "";
	AUTO(fd_close) int fd = memfd_create("findings", MFD_CLOEXEC);

	rig_host(r, "find blobs -type f -exec touch -d '1 hour ago' {} +");
	rig_must(r, p, -1);
	rig_do(r, "echo another >another");
	CHECK(rig_checkpoint(r, 6, 1).files > 0);
	p.head.type = V_VERIFY;
	rig_must(r, p, fd);
	CHECK(pread(fd, text, sizeof text - 1, 0) >= 0);
	CHECK_STR(text, "");
	rig_do(r, "rm -rf ./* ./.[a-z]* 2>/dev/null; true");
	rig_restore(r, 6, 0);
	rig_do(r, "rm another");
	rig_restore(r, 1, 0); /* the time of the root */
	rig_see_same(as_it_was, rig_look(r), "from a checkpoint after it");
}

TEST(what_was_written_back_is_in_the_next_checkpoint)
{
	for (size_t i = 1; i < COUNT(changes); i += 8) {
		struct rig r;

		printf("# %s\n", changes[i].name);
		rig_begin(&r);
		rig_checkpoint(&r, 1, 0);
		char *one = rig_look(&r);
		rig_do(&r, changes[i].script);
		uint64_t now = rig_checkpoint(&r, 2, 1).files ? 2 : 1;
		rig_restore_still(&r, 1, now);
		CHECK_INT(rig_checkpoint(&r, 3, 1).files, 0);
		CHECK_INT(rig_checkpoint(&r, 3, 1).files, 0);
		see_kept(&r, one);
		free(one);
		rig_end(&r);
	}
}

/* No archive brings one, and nobody inside makes one: a layer that has them was made otherwise.
 * What happens beside them is undone as anywhere. */
TEST(devices_of_a_layer_are_left_alone)
{
	struct rig r;

	rig_init(&r);
	rig_layer(&r, 10,
	          "mkdir dev other; mknod dev/zero c 1 5; mknod dev/disk b 7 0; mkfifo dev/fifo; "
	          "echo x >other/x; chown -R 1000:1000 .");
	r.open.layers[0] = 10;
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "echo y >dev/y; chmod 700 dev");
	char *first = rig_look(&r);
	rig_checkpoint(&r, 1, 0);
	rig_do(&r, "rm dev/fifo dev/y; mv other renamed; chmod 755 dev; mkdir dev/new");
	char *second = rig_look(&r);
	rig_checkpoint(&r, 2, 1);
	rig_restore(&r, 1, 2);
	rig_see_same(first, rig_look(&r), "undo");
	rig_restore(&r, 2, 0);
	rig_see_same(second, rig_look(&r), "redo");
	see_fork(&r, 2, second);
	free(first);
	free(second);
	rig_end(&r);
}

static void see_count(struct rig *r, const char *want)
{
	CHECK_STR(rig_do(r, "find . -type f | wc -l; cat d*/1 2>/dev/null | sort -n | tail -n1"),
	          want);
}

/* In the layer; half of them go, one folder of them moves, some change; then back, and a fork. */
TEST(a_hundred_thousand_files)
{
	struct rig r;

	rig_place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : rig_place; /* not about disks */
	rig_init(&r);
	rig_layer(&r, 10,
	          "for d in $(seq 100); do mkdir d$d; (cd d$d; seq 1000 | xargs touch; echo $d "
	          ">1); done; chown -R 1000:1000 .");
	r.open.layers[0] = 10;
	rig_spawn(&r);
	rig_open(&r);
	see_count(&r, "100000\n100\n");
	rig_do(&r, "rm -rf d?; rm -rf d1? d2? d3? d4? d100; mv d99 moved; cd d98; rm ?5?; "
	           "seq 2000 2100 | xargs touch");
	see_count(&r, "50011\n98\n");
	CHECK(rig_checkpoint(&r, 1, 0).files > 0);
	char *lines = rig_changes(&r, 0, 1);
	CHECK(strstr(lines, "{\"path\":\"d1\",\"status\":\"D\""));
	free(lines);
	rig_restore(&r, 0, 1);
	see_count(&r, "100000\n100\n");
	rig_restore(&r, 1, 0);
	see_count(&r, "50011\n98\n");
	rig_kill(&r);
	r.open.workspace = 6;
	r.open.top = 200;
	r.open.from = 1;
	rig_spawn(&r);
	rig_open(&r);
	see_count(&r, "50011\n98\n");
	rig_end(&r);
}

/* A worker that was stopped in the middle of a write goes on afterwards. */
TEST(what_a_file_worker_has_not_named_yet_is_nobodys)
{
	struct rig r;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	rig_do(&r, "echo half >src/" TREE_TEMP_PREFIX "0; mkdir " TREE_TEMP_PREFIX
	           "1; echo in >" TREE_TEMP_PREFIX "1/f");
	CHECK_INT(rig_checkpoint(&r, 2, 1).files, 0);
	rig_do(&r, "echo other >src/f4");
	rig_checkpoint(&r, 3, 1);
	rig_restore(&r, 1, 3);
	rig_do(&r, "mv src/" TREE_TEMP_PREFIX "0 src/f4; mv " TREE_TEMP_PREFIX "1 late");
	CHECK_STR(rig_do(&r, "cat src/f4 late/f"), "half\nin\n");
	rig_restore(&r, 3, 0);
	CHECK_STR(rig_do(&r, "cat src/f4; ls -A | grep -c -e late -e caisson; true"), "other\n0\n");
	rig_end(&r);
}

TEST(a_new_vault_goes_on_where_the_last_one_died)
{
	struct rig r;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	char *one = rig_look(&r);
	rig_do(&r, "echo x >>src/f4");
	rig_kill(&r);
	rig_spawn(&r);
	rig_open(&r);
	CHECK_INT(rig_checkpoint(&r, 2, 1).files, 1);
	CHECK_INT(rig_checkpoint(&r, 3, 2).files, 0);
	rig_restore(&r, 1, 2);
	rig_see_same(one, rig_look(&r), "undo");
	free(one);
	rig_end(&r);
}

TEST(what_is_open_and_where_one_stands_survives)
{
	struct rig r;
	char path[256], text[64];

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	snprintf(path, sizeof path, "%s/src/f1", r.work);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof path, "%s/docs", r.work);
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rig_do(&r, "echo log >>src/f1; mv docs papers; echo x >>papers/d2");
	rig_checkpoint(&r, 2, 1);
	rig_restore(&r, 1, 2);
	CHECK_INT(pread(fd, text, sizeof text, 0), 15);
	CHECK(memcmp(text, "file 1\nchanged\n", 15) == 0);
	CHECK_INT(openat(dir, "d2", O_RDONLY | O_CLOEXEC) >= 0, 1);
	CHECK_STR(rig_do(&r, "cat docs/d2"), "doc 2\n");
	close(fd);
	close(dir);
	rig_end(&r);
}

TEST(a_store_through_a_mapping_is_seen)
{
	struct rig r;
	char path[256];

	rig_begin(&r);
	rig_do(&r, "head -c 65536 /dev/zero | tr '\\0' x >map; head -c 6000000 /dev/zero >large");
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", r.work, i ? "large" : "map");
		int fd = open(path, O_RDWR | O_CLOEXEC);
		char *at = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(at != MAP_FAILED);
		close(fd);
		uint64_t base_number = 10 * (uint64_t)i + 1;
		at[0] = 'a'; /* dirty from here on */
		rig_checkpoint(&r, base_number, 0);
		usleep(50000);
		for (uint64_t k = 1; k < 4; k++) {
			at[k] = 'b'; /* in the same page */
			printf("# %s, store %d\n", path, (int)k);
			CHECK_INT(rig_checkpoint(&r, base_number + k, base_number + k - 1).files,
			          1);
		}
		CHECK_INT(rig_checkpoint(&r, base_number + 4, base_number + 3).files, 0);
		rig_restore(&r, base_number + 1, base_number + 3);
		CHECK_INT(at[1], 'b');
		CHECK_INT(at[2], i ? 0 : 'x');
		munmap(at, 65536);
	}
	rig_end(&r);
}
