#include "test_vault.h"

#define NAMES "find blobs -path '*/[0-9a-f][0-9a-f]/*' -type f"

static struct vault_packet ask(enum vault_type type)
{
	return (struct vault_packet){ .head = { .type = type } };
}

static char *findings(struct rig *r, enum vault_type type)
{
	AUTO(fd_close) int fd = memfd_create("findings", MFD_CLOEXEC);
	static char text[4096];

	rig_must(r, ask(type), fd);
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

/* Two files: 4 bytes, 70,000 bytes; both are blobs. */
static void begin(struct rig *r)
{
	rig_init(r);
	rig_spawn(r);
	rig_open(r);
	rig_do(r, "echo one >a; head -c 70000 /dev/zero | tr '\\0' y >b");
	rig_checkpoint(r, 1, 0);
	CHECK_INT(rig_must(r, ask(V_SWEEP), -1).files, 0); /* no pack is left */
	CHECK_STR(findings(r, V_VERIFY), "");
}

TEST(damage_is_found_and_mended)
{
	static const struct {
		const char *damage, *gone; /* gone: in the workspace, before */
		const char *found, *mended;
		bool is_whole; /* then */
	} rows[] = {
		{ "rm $(" NAMES " -size 1)", NULL, "missing", "again", true },
		{ "printf x >$(" NAMES " -size 1)", NULL, "another size", "again", true },
		{ "printf z | dd of=$(" NAMES " -size +100) bs=1 seek=5 conv=notrunc 2>/dev/null",
		  NULL, "changed", "again", true },
		{ "printf z | dd of=$(" NAMES " -size +100) bs=1 seek=5 conv=notrunc 2>/dev/null",
		  "rm b", "changed", "removed", false },
		{ "rm $(" NAMES " -size 1)", "echo two >a", "missing", NULL, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rig r;
		char want[64];

		begin(&r);
		if (rows[i].gone)
			rig_do(&r, rows[i].gone);
		rig_host(&r, rows[i].damage);
		snprintf(want, sizeof want, "\"problem\":\"%s\",\"points\":[1]}", rows[i].found);
		CHECK(strstr(findings(&r, V_VERIFY), want) != NULL);
		CHECK(strstr(findings(&r, V_VERIFY), want) != NULL); /* a look changes nothing */
		if (rows[i].mended)
			snprintf(want, sizeof want, "\"mended\":\"%s\"}", rows[i].mended);
		else
			snprintf(want, sizeof want, "\"points\":[1]}");
		CHECK(strstr(findings(&r, V_MEND), want) != NULL);
		const char *left = findings(&r, V_VERIFY);
		CHECK(rows[i].is_whole ? !*left : strstr(left, "missing") != NULL);
		rig_end(&r);
	}
}

TEST(what_says_nothing_is_set_aside)
{
	struct rig r;

	begin(&r);
	rig_do(&r, "echo more >c");
	rig_checkpoint(&r, 2, 1);
	rig_host(&r, "printf z | dd of=blobs/p/1 bs=1 seek=150 conv=notrunc 2>/dev/null");
	CHECK_INT(rig_ask(&r, ask(V_SWEEP), -1), V_FAILED);
	const char *text = findings(&r, V_MEND);
	CHECK(strstr(text, "{\"checkpoint\":\"1\",\"problem\":\"broken\",\"mended\":\"aside\"}"));
	CHECK(strstr(text, "{\"checkpoint\":\"2\",")); /* it leans on it */
	CHECK_STR(findings(&r, V_VERIFY), "");
	CHECK_STR(rig_host(&r, "ls blobs/p"), "broken-1\nbroken-2\n");
	/* Old, so that the sweep takes them: the next checkpoint has to keep its files anew. */
	rig_host(&r, "find blobs -type f -exec touch -d '1 hour ago' {} +");
	rig_must(&r, ask(V_SWEEP), -1);
	CHECK(rig_checkpoint(&r, 3, 0).files > 0); /* and it goes on */
	CHECK_STR(findings(&r, V_VERIFY), "");
	rig_end(&r);
}
