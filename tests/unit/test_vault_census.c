#include "test_vault.h"

static char *census(struct rig *r, uint64_t *bytes)
{
	AUTO(fd_close) int fd = memfd_create("census", MFD_CLOEXEC);
	static char text[65536];

	*bytes = rig_must(r, (struct vault_packet){ .head = { .type = V_CENSUS } }, fd).bytes;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	CHECK(n > 0);
	text[n] = '\0';
	return text;
}

TEST(everything_has_its_line)
{
	static const char *const lines[] = {
		"{\"tree\":1,\"bytes\":0,\"files\":0,\"sealed\":true,\"half\":false}",
		"{\"tree\":10,",  /* the layer */
		"{\"tree\":100,", /* the top */
		"{\"tree\":77,\"bytes\":0,\"files\":0,\"sealed\":false,\"half\":true}",
		"{\"stray\":\"trees\"}",
		"{\"volume\":9,\"bytes\":4096}",
		"{\"checkpoint\":1,\"workspace\":5,\"broken\":false}",
		"{\"checkpoint\":3,\"workspace\":0,\"broken\":true}",
		"{\"workspace\":5,\"kept\":",
		"{\"blobs\":",
	};
	struct rig r;
	uint64_t before, after;

	rig_begin(&r);
	rig_checkpoint(&r, 1, 0);
	(void)census(&r, &before);
	rig_do(&r, "head -c 300000 /dev/zero | tr '\\0' q >large");
	rig_checkpoint(&r, 2, 1);
	rig_host(&r, "mkdir trees/77 trees/odd; head -c 4096 /dev/zero | tr '\\0' x >vol/9;"
	             " head -c 10 /dev/zero >vol/tmp-3; echo rubbish >blobs/p/3");
	char *text = census(&r, &after);
	for (size_t i = 0; i < COUNT(lines); i++) {
		if (!strstr(text, lines[i]))
			printf("# %s\n# is not in\n# %s\n", lines[i], text);
		CHECK(strstr(text, lines[i]) != NULL);
	}
	CHECK(after >= before + 600000); /* in the top, and kept */
	rig_end(&r);
}

TEST(what_two_hold_is_shared)
{
	struct rig r;
	uint64_t bytes;

	rig_init(&r);
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "head -c 1000 /dev/zero | tr '\\0' a >both; echo mine >mine");
	rig_checkpoint(&r, 1, 0);
	rig_kill(&r);
	r.open.workspace = 6;
	r.open.top = 200;
	r.open.from = 1;
	rig_spawn(&r);
	rig_open(&r);
	rig_do(&r, "rm mine; echo yours, and longer >yours");
	rig_checkpoint(&r, 4, 0);
	char *text = census(&r, &bytes);
	CHECK(strstr(text, "{\"workspace\":5,\"kept\":1005,\"shared\":1000}") != NULL);
	CHECK(strstr(text, "{\"workspace\":6,\"kept\":1018,\"shared\":1000}") != NULL);
	rig_end(&r);
}
