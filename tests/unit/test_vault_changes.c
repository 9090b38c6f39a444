#include "test_vault.h"

#define LINE(path, status, rest) "{\"path\":\"" path "\",\"status\":\"" status "\"," rest "}\n"
#define FILE_OF(mode, bytes) "\"type\":\"file\",\"mode\":\"" mode "\",\"bytes\":" bytes

/* clang-format off */
static const struct row {
	const char *script, *lines;
} rows[] = {
	{ ":", "" },
	{ "touch src/f4; cat src/f4 >src/x; cat src/x >src/f4; rm src/x", "" },
	{ "echo more >>src/f4", LINE("src/f4", "M", FILE_OF("0644", "12")) },
	{ "chmod 600 src/f4", LINE("src/f4", "mode", FILE_OF("0600", "7")) },
	{ "rm src/f4", LINE("src/f4", "D", FILE_OF("0644", "7")) },
	{ "echo x >added", LINE("added", "A", FILE_OF("0644", "2")) },
	{ "mv src/f4 f44",
	  "{\"path\":\"f44\",\"status\":\"R\",\"from\":\"src/f4\"," FILE_OF("0644", "7") "}\n" },
	{ "mv docs papers", "{\"path\":\"papers\",\"status\":\"R\",\"from\":\"docs\",\"type\":"
	                    "\"dir\",\"mode\":\"0755\","
	                    "\"bytes\":0}\n" },
	{ "mv docs papers; echo x >>papers/d2; rm papers/d3",
	  "{\"path\":\"papers\",\"status\":\"R\",\"from\":\"docs\",\"type\":\"dir\",\"mode\":"
	  "\"0755\","
	  "\"bytes\":0}\n" LINE("papers/d2", "M", FILE_OF("0644", "8"))
	      LINE("papers/d3", "D", FILE_OF("0644", "6")) },
	{ "mv src/moved src/again",
	  "{\"path\":\"src/again\",\"status\":\"R\",\"from\":\"src/moved\",\"type\":\"dir\","
	  "\"mode\":\"0755\",\"bytes\":0}\n" },
	{ "rm -rf bin; mkdir bin; echo x >bin/x",
	  LINE("bin/run", "D", FILE_OF("0755", "18")) LINE("bin/x", "A", FILE_OF("0644", "2")) },
	{ "rm bin/run; ln -s x bin/run",
	  LINE("bin/run", "T", "\"type\":\"symlink\",\"mode\":\"0777\",\"bytes\":0") },
	{ "ln -sfn y docs/link",
	  LINE("docs/link", "M", "\"type\":\"symlink\",\"mode\":\"0777\",\"bytes\":0") },
	{ "echo x >\"$(printf 'b\\377d')\"",
	  "{\"path_base64\":\"Yv9k\",\"status\":\"A\"," FILE_OF("0644", "2") "}\n" },
	{ "mkdir e; mkfifo e/p",
	  LINE("e", "A", "\"type\":\"dir\",\"mode\":\"0755\",\"bytes\":0")
	      LINE("e/p", "A", "\"type\":\"fifo\",\"mode\":\"0644\",\"bytes\":0") },
	{ "rm -r docs",
	  LINE("docs", "D", "\"type\":\"dir\",\"mode\":\"0755\",\"bytes\":0") LINE(
	      "docs/d2", "D", FILE_OF("0644", "6")) LINE("docs/d3", "D", FILE_OF("0644", "6"))
	      LINE("docs/d4", "D", FILE_OF("0644", "6")) LINE("docs/d5", "D", FILE_OF("0644", "6"))
	          LINE("docs/link", "D", "\"type\":\"symlink\",\"mode\":\"0777\",\"bytes\":0") },
};
/* clang-format on */

TEST(every_change_has_its_line)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rig r;

		printf("# %s\n", rows[i].script);
		rig_begin(&r);
		rig_checkpoint(&r, 1, 0);
		rig_do(&r, rows[i].script);
		char *live = rig_changes(&r, 1, VAULT_NOW);
		CHECK_STR(live, rows[i].lines);
		rig_checkpoint(&r, 2, 1);
		char *now = rig_changes(&r, 1, VAULT_NOW);
		CHECK_STR(now, rows[i].lines);
		rig_restore(&r, 1, 0);
		char *undone = rig_changes(&r, 1, VAULT_NOW);
		CHECK_STR(undone, "");
		free(live);
		free(now);
		free(undone);
		rig_end(&r);
	}
}

TEST(from_the_layers_to_now)
{
	struct rig r;

	rig_begin(&r);
	char *text = rig_changes(&r, 0, VAULT_NOW);
	CHECK_STR(
	    text,
	    LINE("docs/d1", "D", FILE_OF("0644", "6"))
		LINE("new", "A", "\"type\":\"dir\",\"mode\":\"0755\",\"bytes\":0") LINE(
		    "new/dangling", "A", "\"type\":\"symlink\",\"mode\":\"0777\",\"bytes\":0")
		    LINE("new/n1", "A", FILE_OF("0644", "3")) LINE("new/n1-hard", "A",
	                                                           FILE_OF("0644", "3"))
			LINE("new/pipe", "A", "\"type\":\"fifo\",\"mode\":\"0644\",\"bytes\":0")
			    LINE("src/f1", "M", FILE_OF("0644", "15")) LINE(
				"src/f3", "mode",
				FILE_OF(
				    "0600",
				    "7")) "{\"path\":\"src/moved\",\"status\":\"R\",\"from\":\"src/"
					  "lib\",\"type\":\"dir\","
					  "\"mode\":\"0755\",\"bytes\":0}\n");
	free(text);
	rig_end(&r);
}

TEST(nothing_was_renamed)
{
	struct rig r;

	rig_begin(&r);
	char *text =
	    rig_between(&r, (struct vault_between){ .to = VAULT_NOW, .flags = VAULT_PLAIN });
	CHECK(strstr(text, "\"R\"") == NULL);
	CHECK(strstr(text, LINE("src/lib", "D",
	                        "\"type\":\"dir\",\"mode\":\"0755\",\"bytes\":0")) != NULL);
	CHECK(strstr(text, "{\"path\":\"src/moved\",\"status\":\"A\",\"type\":\"dir\"") != NULL);
	CHECK(strstr(text, "{\"path\":\"src/moved/") != NULL);
	free(text);
	rig_end(&r);
}

TEST(a_list_goes_into_a_file_and_into_nothing_else)
{
	struct rig r;
	struct vault_packet p = { .head = { .type = V_CHANGES } };
	int fds[2];

	rig_begin(&r);
	CHECK_INT(pipe(fds), 0);
	p.between = (struct vault_between){ .to = VAULT_NOW };
	CHECK_INT(rig_ask(&r, p, fds[1]), V_FAILED);
	CHECK_STR(r.answer.err.msg, "the descriptor is no file");
	rig_end(&r);
}
