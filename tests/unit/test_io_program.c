#include "io/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static char top[] = "/tmp/program-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[PATH_TEXT_MAX];

	snprintf(path, sizeof path, "%s/%s", top, name);
	return path;
}

/* top/dir/tool, each with the mode that is wanted. */
static void plant(mode_t dir, mode_t file)
{
	CHECK(mkdtemp(top));
	CHECK(mkdir(path_of("dir"), 0700) == 0);
	int fd = open(path_of("dir/tool"), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	CHECK(fd >= 0);
	close(fd);
	CHECK(chmod(path_of("dir/tool"), file) == 0);
	CHECK(chmod(path_of("dir"), dir) == 0);
}

TEST(modes_of_the_file_and_of_its_folders_decide)
{
	static const struct {
		mode_t dir, file;
		enum err_kind kind;
	} rows[] = {
		{ 0755, 0755, ERR_NONE },      { 0700, 0500, ERR_NONE },
		{ 0777, 0755, ERR_DENIED },    { 01777, 0755, ERR_NONE },
		{ 0757, 0755, ERR_DENIED },    { 0755, 0757, ERR_DENIED },
		{ 0755, 0644, ERR_NOT_FOUND }, { 01777, 0777, ERR_DENIED },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char out[PATH_TEXT_MAX];
		struct err e = { 0 };

		snprintf(top, sizeof top, "/tmp/program-XXXXXX");
		plant(rows[i].dir, rows[i].file);
		int r = program_check(path_of("dir/tool"), out, &e);
		CHECK_INT(r, rows[i].kind == ERR_NONE ? 0 : -1);
		CHECK(r == 0 || e.kind == rows[i].kind);
		CHECK_INT(program_is_safe_dir(path_of("dir")),
		          (rows[i].dir & 022) == 0 || (rows[i].dir & S_ISVTX));
	}
}

TEST(a_group_may_write_when_it_is_the_owners_own)
{
	char out[PATH_TEXT_MAX];
	struct err e = { 0 };

	if (geteuid() != 0)
		SKIP("needs root");
	plant(0775, 0775);
	CHECK_INT(program_check(path_of("dir/tool"), out, &e), 0);
	CHECK(chown(path_of("dir"), 0, 50) == 0 && chmod(path_of("dir"), 0775) == 0);
	CHECK_INT(program_check(path_of("dir/tool"), out, &e), -1);
	CHECK(e.kind == ERR_DENIED);
}

TEST(another_users_file_or_folder_is_refused)
{
	char out[PATH_TEXT_MAX];
	struct err e = { 0 };

	if (geteuid() != 0)
		SKIP("needs root");
	plant(0755, 0755);
	CHECK(chown(path_of("dir/tool"), 64001, 64001) == 0);
	CHECK_INT(program_check(path_of("dir/tool"), out, &e), -1);
	CHECK(e.kind == ERR_DENIED);
	CHECK(chown(path_of("dir/tool"), 0, 0) == 0 && chown(path_of("dir"), 64001, 64001) == 0);
	CHECK_INT(program_check(path_of("dir/tool"), out, &e), -1);
	CHECK(e.kind == ERR_DENIED);
}

TEST(a_link_is_judged_by_where_it_leads)
{
	char out[PATH_TEXT_MAX], target[PATH_TEXT_MAX];
	struct err e = { 0 };

	plant(0755, 0755);
	snprintf(target, sizeof target, "%s", path_of("dir/tool"));
	CHECK(symlink(target, path_of("link")) == 0);
	CHECK_INT(program_check(path_of("link"), out, &e), 0);
	CHECK_STR(out, target);
	CHECK(chmod(path_of("dir"), 0777) == 0);
	CHECK_INT(program_check(path_of("link"), out, &e), -1);
	CHECK(e.kind == ERR_DENIED);
}

TEST(what_is_no_program_of_ours_is_not_found)
{
	char out[PATH_TEXT_MAX];
	struct err e = { 0 };

	CHECK_INT(program_find("caisson-nothing", out, &e), -1);
	CHECK(e.kind == ERR_NOT_FOUND);
}

TEST(only_listed_variables_stay_and_the_others_are_wiped)
{
	static char token[] = "API_TOKEN=hunter2", path[] = "PATH=/usr/bin", lc[] = "LC_ALL=C";
	static char key[] = "GATE_KEY=k", near[] = "PATHS=x", own[] = "CAISSON_TOKEN=t";
	char *list[] = { token, path, lc, key, near, own, NULL };

	environ = list;
	program_clean_environment("GATE_KEY");
	CHECK_STR(list[0], "PATH=/usr/bin");
	CHECK_STR(list[1], "LC_ALL=C");
	CHECK_STR(list[2], "GATE_KEY=k");
	CHECK(!list[3]);
	CHECK(token[0] == '\0' && token[10] == '\0' && near[0] == '\0' && own[0] == '\0');
}
