#include "test_vault.h"

static struct vault_packet ask(enum vault_type type)
{
	return (struct vault_packet){ .head = { .type = type } };
}

static struct vault_packet points(uint64_t workspace, uint64_t from, uint64_t to)
{
	struct vault_packet p = ask(V_REMOVE_POINTS);

	p.points = (struct vault_points){ workspace, from, to };
	return p;
}

static char *verify(struct rig *r)
{
	AUTO(fd_close) int fd = memfd_create("findings", MFD_CLOEXEC);
	static char text[4096];

	rig_must(r, ask(V_VERIFY), fd);
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	text[n] = '\0';
	return text;
}

/* Point n has n files f1..fn, and `same` changed in each. */
static void make_history(struct rig *r, int n)
{
	char script[128];

	for (int i = 1; i <= n; i++) {
		snprintf(script, sizeof script, "echo %d >h%d; echo %d >same", i, i, i);
		rig_do(r, script);
		CHECK(rig_checkpoint(r, (uint64_t)i, (uint64_t)i - 1).files >= 2);
	}
}

TEST(a_long_history_can_be_read_anywhere)
{
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	make_history(&r, 100);
	for (int i = 99; i > 0; i -= 7) {
		char want[64];

		rig_restore(&r, (uint64_t)i, 0);
		snprintf(want, sizeof want, "%d\n%d\n", i, i);
		CHECK_STR(rig_do(&r, "ls h* | wc -l; cat same"), want);
	}
	CHECK_STR(verify(&r), "");
	rig_end(&r);
}

TEST(one_that_is_always_made_is_like_the_one_before)
{
	struct rig r;
	struct vault_packet p = ask(V_CHECKPOINT);

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	make_history(&r, 2);
	p.point = (struct vault_point){ .number = 3, .before = 2, .flags = VAULT_ALWAYS };
	CHECK_INT(rig_must(&r, p, -1).files, 0);
	rig_do(&r, "rm h1; echo more >same");
	CHECK_INT(rig_checkpoint(&r, 4, 3).files, 2);
	rig_restore(&r, 3, 4);
	CHECK_STR(rig_do(&r, "ls h* | wc -l; cat same"), "2\n2\n");
	p.point = (struct vault_point){ .number = 5, .before = 3, .flags = VAULT_ALWAYS };
	CHECK_INT(rig_must(&r, p, -1).files, 0);
	rig_do(&r, "rm h2");
	rig_restore(&r, 5, 0);
	CHECK_STR(rig_do(&r, "ls h* | wc -l; cat same"), "2\n2\n");
	CHECK_STR(verify(&r), "");
	rig_end(&r);
}

TEST(what_is_removed_takes_nothing_else_along)
{
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	make_history(&r, 70);
	CHECK_INT(rig_must(&r, points(RIG_WORKSPACE, 10, 40), -1).files, 31);
	CHECK_INT(rig_must(&r, points(RIG_WORKSPACE, 10, 40), -1).files, 0);
	CHECK_STR(verify(&r), "");
	struct vault_packet p = ask(V_RESTORE);
	p.restore.to = 20;
	CHECK_INT(rig_ask(&r, p, -1), V_FAILED);
	rig_restore(&r, 41, 0);
	CHECK_STR(rig_do(&r, "ls h* | wc -l; cat same"), "41\n41\n");
	rig_restore(&r, 9, 0);
	CHECK_STR(rig_do(&r, "ls h* | wc -l; cat same"), "9\n9\n");
	CHECK_INT(rig_ask(&r, points(77, 1, 9), -1), V_FAILED);
	CHECK(rig_checkpoint(&r, 71, 70).files > 0);
	rig_end(&r);
}

TEST(a_sweep_removes_what_nobody_holds_and_no_more)
{
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "head -c 100000 /dev/urandom >a; cp a b; head -c 50000 /dev/urandom >c");
	CHECK_INT(rig_checkpoint(&r, 1, 0).files, 3 + 1); /* and the root */
	rig_do(&r, "rm c");
	rig_checkpoint(&r, 2, 1);
	struct vault_done d = rig_must(&r, ask(V_USAGE), -1);
	CHECK_INT(d.kept, 150000);
	CHECK_INT(d.shared, 0);
	CHECK(d.bytes >= 200000);
	CHECK_INT(d.files, 2);
	CHECK_INT(rig_must(&r, ask(V_SWEEP), -1).files, 0);
	rig_must(&r, points(RIG_WORKSPACE, 1, 1), -1);
	rig_host(&r, "find blobs -type f -exec touch -d '1 minute' {} +"); /* the clock ticks */
	CHECK_INT(rig_must(&r, ask(V_SWEEP), -1).files, 0);                /* it is too young */
	rig_host(&r, "find blobs -type f -exec touch -d '1 hour ago' {} +");
	d = rig_must(&r, ask(V_SWEEP), -1);
	CHECK_INT(d.files, 1);
	CHECK(d.bytes >= 50000);
	CHECK_STR(verify(&r), "");
	rig_restore(&r, 2, 0);
	rig_end(&r);
}

TEST(what_a_disk_lost_is_found)
{
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "echo one >a; head -c 70000 /dev/zero | tr '\\0' y >b");
	rig_checkpoint(&r, 1, 0);
	CHECK_STR(verify(&r), "");
	CHECK_INT(rig_must(&r, ask(V_SWEEP), -1).files, 0); /* no pack is left */
	CHECK_STR(verify(&r), "");
	rig_host(&r, "f=$(find blobs -size 1 -path '*/[0-9a-f][0-9a-f]/*' -type f); mv $f x");
	CHECK(strstr(verify(&r), "\"problem\":\"missing\""));
	rig_host(&r, "f=$(find blobs -size +100 -type f); printf z | dd of=$f bs=1 seek=5 "
	             "conv=notrunc 2>/dev/null");
	CHECK(strstr(verify(&r), "\"problem\":\"changed\""));
	rig_host(&r, "printf z | dd of=blobs/p/1 bs=1 seek=150 conv=notrunc 2>/dev/null");
	CHECK(strstr(verify(&r), "{\"checkpoint\":\"1\",\"problem\":\"broken\"}"));
	struct vault_packet p = ask(V_RESTORE);
	p.restore.to = 1;
	CHECK_INT(rig_ask(&r, p, -1), V_FAILED);
	CHECK_INT(rig_ask(&r, ask(V_SWEEP), -1), V_FAILED); /* who knows what it held */
	rig_must(&r, ask(V_SYNC), -1);
	rig_end(&r);
}

/* Each is done to the store when point 1 has `a`, `b` and `big`, and `a` alone is the same now. */
static const struct damage {
	const char *name, *script;
} damages[] = {
	{ "a bit of a small one",
	  "f=$(find blobs/?? -size +30 -size -50 -type f); printf X | dd of=$f bs=1 seek=2 "
	  "conv=notrunc 2>/dev/null" },
	{ "a bit of a large one",
	  "f=$(find blobs/?? -size +4000 -type f); printf '\\1' | dd of=$f bs=1 "
	  "seek=2999999 conv=notrunc 2>/dev/null" },
	{ "a byte less", "for f in $(find blobs/?? -type f); do truncate -s -1 $f; done" },
	{ "empty", "for f in $(find blobs/?? -type f); do : >$f; done" },
	{ "a large one cut", "f=$(find blobs/?? -size +4000 -type f); truncate -s 1100000 $f" },
	{ "two that changed places",
	  "set -- $(find blobs/?? -size +30 -type f); mv $1 t; mv $2 $1; mv t $2" },
	{ "gone", "rm $(find blobs/?? -type f)" },
	{ "a bit of a checkpoint",
	  "printf z | dd of=blobs/p/1 bs=1 seek=150 conv=notrunc 2>/dev/null" },
	{ "another checkpoint in its place", "cp blobs/p/2 blobs/p/1" },
};

TEST(what_was_damaged_is_not_restored)
{
	for (size_t i = 0; i < COUNT(damages); i++) {
		struct vault_packet p = ask(V_RESTORE);
		struct rig r;

		printf("# %s\n", damages[i].name);
		rig_init(&r);
		rig_spawn(&r);
		rig_open(&r);
		rig_do(&r, "echo one >a; seq 4000 >b; seq 500000 | head -c 3000000 >big");
		rig_checkpoint(&r, 1, 0);
		rig_do(&r, "echo two >b; rm big; echo new >new");
		rig_checkpoint(&r, 2, 1);
		rig_must(&r, ask(V_SWEEP), -1); /* no pack is left */
		/* `a` is not copied, so its blob is not looked at. */
		rig_host(&r, "set -- $(grep -lx one $(find blobs/?? -type f)); mv $1 a-blob");
		p.restore.to = 1;
		p.restore.flags = VAULT_COUNT;
		CHECK_INT(rig_ask(&r, p, -1), V_DONE);
		CHECK_STR(rig_host(&r, damages[i].script), "");
		char *before = rig_look(&r);
		CHECK_INT(rig_ask(&r, p, -1), V_FAILED);
		rig_see_same(before, rig_look(&r), "nothing was touched");
		free(before);
		p.restore.flags = 0;
		CHECK_INT(rig_ask(&r, p, -1), V_FAILED);
		CHECK_STR(rig_do(&r, "cat a"), "one\n");
		rig_end(&r);
	}
}

/* Without a shell: a process for each would be most of the time. */
static void write_as_agent(const struct rig *r, int number)
{
	char path[160], text[32];

	snprintf(path, sizeof path, "%s/h%d", r->work, number % 50);
	snprintf(text, sizeof text, "content %d", number);
	CHECK_INT(os_set_fsids(RIG_ID_BASE + 1000, RIG_ID_BASE + 1000), 0);
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	CHECK_INT(os_set_fsids(0, 0), 0);
}

TEST(two_thousand_checkpoints)
{
	static const int looks[] = { 1, 31, 32, 33, 1000, 1999, 2000 };
	struct rig r;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	for (int i = 1; i <= 2000; i++) {
		write_as_agent(&r, i);
		CHECK(rig_checkpoint(&r, (uint64_t)i, (uint64_t)i - 1).files >= 1);
	}
	for (size_t i = 0; i < COUNT(looks); i++) {
		char script[64], want[64];

		rig_restore(&r, (uint64_t)looks[i], 0);
		snprintf(script, sizeof script, "cat h%d; ls | wc -l", looks[i] % 50);
		snprintf(want, sizeof want, "content %d%d\n", looks[i],
		         looks[i] < 50 ? looks[i] : 50);
		CHECK_STR(rig_do(&r, script), want);
	}
	CHECK_INT(rig_must(&r, points(RIG_WORKSPACE, 1, 1990), -1).files, 1990);
	CHECK_STR(verify(&r), "");
	rig_end(&r);
}
