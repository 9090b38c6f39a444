#include <archive.h>
#include <archive_entry.h>

#include "test_tree.h"
#include "tree/tarname.h"

TEST(names_of_foreign_archives_are_cleaned_or_refused)
{
	static const struct {
		const char *name, *clean; /* NULL: refused */
	} cases[] = {
		{ "a", "a" },     { "a/b", "a/b" },   { "./a//b/", "a/b" }, { "a/./b", "a/b" },
		{ "/a", NULL },   { "..", NULL },     { "a/../b", NULL },   { "../a", NULL },
		{ "a/..", NULL }, { "", NULL },       { ".", NULL },        { "./", NULL },
		{ "...", "..." }, { "a..b", "a..b" }, { "..a", "..a" },
	};
	char out[PATH_TEXT_MAX];
	bool is_top;

	for (size_t i = 0; i < COUNT(cases); i++) {
		bool is_fine = tarname_clean(cases[i].name, out, &is_top);

		CHECK_INT(is_fine, cases[i].clean != NULL);
		if (is_fine)
			CHECK_STR(out, cases[i].clean);
	}
}

TEST(links_of_foreign_archives_stay_inside)
{
	static const struct {
		const char *path, *target;
		bool stays;
	} cases[] = {
		{ "l", "a", true },           { "l", "./a/b", true }, { "d/l", "../a", true },
		{ "d/e/l", "../../a", true }, { "l", "..", false },   { "d/l", "../../a", false },
		{ "l", "/etc", false },       { "l", "", false },     { "d/l", "x/../..", false },
		{ "l", "a/../b", false },     { "d/l", "..", true },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK_INT(tarname_link_stays(cases[i].path, cases[i].target), cases[i].stays);
}

/* An archive in memory. */
struct made {
	char bytes[1 << 20];
	size_t len;
	struct archive *archive;
};

static void made_open(struct made *m)
{
	m->archive = archive_write_new();
	archive_write_set_format_pax_restricted(m->archive);
	archive_write_set_bytes_per_block(m->archive, 0);
	CHECK_INT(archive_write_open_memory(m->archive, m->bytes, sizeof m->bytes, &m->len), 0);
}

struct member {
	const char *path;
	unsigned int type; /* AE_IF* */
	const char *data;  /* of files; target of links */
	bool is_hardlink;
	unsigned int mode;
	long long size; /* 0: of the data */
};

static void made_add(struct made *m, const struct member *what)
{
	struct archive_entry *e = archive_entry_new();
	bool is_file = what->type == AE_IFREG && !what->is_hardlink;
	size_t n = is_file && what->data ? strlen(what->data) : 0;

	archive_entry_copy_pathname(e, what->path);
	archive_entry_set_filetype(e, what->type);
	archive_entry_set_perm(e, what->mode ? what->mode : 0644);
	archive_entry_set_size(e, what->size ? what->size : (long long)n);
	archive_entry_set_mtime(e, 1000, 0);
	if (what->is_hardlink)
		archive_entry_copy_hardlink(e, what->data);
	else if (what->type == AE_IFLNK)
		archive_entry_copy_symlink(e, what->data);
	CHECK(archive_write_header(m->archive, e) >= ARCHIVE_WARN);
	if (n > 0)
		archive_write_data(m->archive, what->data, n);
	archive_entry_free(e);
}

static struct span made_end(struct made *m)
{
	archive_write_close(m->archive);
	archive_write_free(m->archive);
	return (struct span){ m->bytes, m->len };
}

static enum tree_code unpack(struct rig *r, const char *path, struct span archive,
                             struct reply *reply)
{
	struct tree_ask ask = { .request = { .verb = TREE_TAR_IN },
		                .path = span_of(path),
		                .body = archive };

	rig_ask(r, ask, -1);
	rig_reply(r, reply);
	return (enum tree_code)reply->last.code;
}

TEST(a_tree_goes_out_and_comes_back_the_same)
{
	static char long_name[256];
	struct reply reply = { 0 }, again = { 0 };
	struct rig r;
	struct stat st;

	rig_open(&r);
	memset(long_name, 'n', 255);
	CHECK(mkdirat(r.dir_fd, "t", 0755) == 0);
	CHECK(mkdirat(r.dir_fd, "t/d", 0750) == 0);
	put(&r, "t/d/x", "xxx");
	CHECK(fchmodat(r.dir_fd, "t/d/x", 06755, 0) == 0);
	put(&r, "t/empty", "");
	put(&r, "t/\xc3\xa4 \xff\n", "odd");
	CHECK(symlinkat("d/x", r.dir_fd, "t/link") == 0);
	CHECK(mkfifoat(r.dir_fd, "t/fifo", 0644) == 0);
	int t = openat(r.dir_fd, "t/d", O_RDONLY | O_CLOEXEC);
	close(openat(t, long_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	close(t);

	CHECK_CODE(rig_do(&r, TREE_TAR_OUT, 0, "t", "", &reply), TREE_OK);
	CHECK_INT(reply.first.content, TREE_TAR);
	CHECK_CODE(rig_do(&r, TREE_TAR_OUT, 0, "t", "", &again), TREE_OK);
	CHECK_INT((long long)reply.data.len, (long long)again.data.len);
	CHECK(memcmp(reply.data.data, again.data.data, again.data.len) == 0);

	CHECK_CODE(unpack(&r, "new/u", (struct span){ again.data.data, again.data.len }, &reply),
	           TREE_OK);
	CHECK_INT(reply_number(&reply, "files"), 5);
	CHECK_STR(got(&r, "new/u/link"), "xxx");
	CHECK_STR(got(&r, "new/u/\xc3\xa4 \xff\n"), "odd");
	CHECK(fstatat(r.dir_fd, "new/u/d/x", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK(fstatat(r.dir_fd, "new/u/d", &st, 0) == 0);
	CHECK_INT(st.st_mode & 07777, 0750);
	CHECK_INT(entries_of(&r, "new/u/d"), 2);

	CHECK_CODE(rig_do(&r, TREE_TAR_OUT, 0, "new/u", "", &reply), TREE_OK);
	CHECK_CODE(rig_do(&r, TREE_TAR_OUT, 0, "t/d/x", "", &reply), TREE_OK);
	reply_done(&reply);
	reply_done(&again);
	rig_close(&r);
}

TEST(an_archive_goes_over_what_is_there)
{
	static struct made m;
	static const struct member members[] = {
		{ "./", AE_IFDIR, NULL, false, 0, 0 },
		{ "d/new", AE_IFREG, "new", false, 0, 0 },
		{ "d/old", AE_IFREG, "changed", false, 0, 0 },
		{ "d/old", AE_IFREG, "changed again", false, 0, 0 },
		{ "d/hard", AE_IFREG, "d/old", true, 0, 0 },
		{ "d/soft", AE_IFLNK, "../keep", false, 0, 0 },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	CHECK(mkdirat(r.dir_fd, "t", 0755) == 0);
	CHECK(mkdirat(r.dir_fd, "t/d", 0755) == 0);
	put(&r, "t/d/old", "old");
	put(&r, "t/keep", "keep");
	made_open(&m);
	for (size_t i = 0; i < COUNT(members); i++)
		made_add(&m, &members[i]);
	struct span archive = made_end(&m);

	CHECK_CODE(unpack(&r, "t", archive, &reply), TREE_OK);
	CHECK_STR(got(&r, "t/d/new"), "new");
	CHECK_STR(got(&r, "t/d/old"), "changed again");
	CHECK_STR(got(&r, "t/d/hard"), "changed again");
	CHECK_STR(got(&r, "t/d/soft"), "keep");
	CHECK_INT(entries_of(&r, "t"), 2);
	CHECK_INT(entries_of(&r, "t/d"), 4);

	/* A file where a directory is, or a link: refused, nothing changes. */
	CHECK(unlinkat(r.dir_fd, "t/d/new", 0) == 0 && mkdirat(r.dir_fd, "t/d/new", 0755) == 0);
	put(&r, "t/d/old", "old");
	CHECK_CODE(unpack(&r, "t", archive, &reply), TREE_CONFLICT);
	CHECK_STR(got(&r, "t/d/old"), "old");
	CHECK(renameat(r.dir_fd, "t/d", r.dir_fd, "elsewhere") == 0);
	CHECK(symlinkat("/elsewhere", r.dir_fd, "t/d") == 0);
	CHECK(unpack(&r, "t", archive, &reply) != TREE_OK);
	CHECK_STR(got(&r, "elsewhere/old"), "old");
	CHECK_INT(entries_of(&r, "t"), 2);
	reply_done(&reply);
	rig_close(&r);
}

TEST(a_hostile_archive_is_refused_whole)
{
	static const struct member cases[][2] = {
		{ { "/abs", AE_IFREG, "x", false, 0, 0 } },
		{ { "../up", AE_IFREG, "x", false, 0, 0 } },
		{ { "a/../../up", AE_IFREG, "x", false, 0, 0 } },
		{ { "l", AE_IFLNK, "/etc", false, 0, 0 }, { "l/x", AE_IFREG, "x", false, 0, 0 } },
		{ { "l", AE_IFLNK, "..", false, 0, 0 } },
		{ { "l", AE_IFLNK, ".", false, 0, 0 }, { "m", AE_IFLNK, "l/../x", false, 0, 0 } },
		{ { "l", AE_IFLNK, "d", false, 0, 0 }, { "l/x", AE_IFREG, "x", false, 0, 0 } },
		{ { "h", AE_IFREG, "/etc/passwd", true, 0, 0 } },
		{ { "h", AE_IFREG, "../victim", true, 0, 0 } },
		{ { "h", AE_IFREG, "none", true, 0, 0 } },
		{ { "l", AE_IFLNK, "x", false, 0, 0 }, { "h", AE_IFREG, "l", true, 0, 0 } },
		{ { "dev", AE_IFCHR, NULL, false, 0, 0 } },
		{ { "dev", AE_IFBLK, NULL, false, 0, 0 } },
		{ { "fifo", AE_IFIFO, NULL, false, 0, 0 } },
		{ { "d", AE_IFDIR, NULL, false, 0, 0 }, { "d", AE_IFREG, "x", false, 0, 0 } },
		{ { "huge", AE_IFREG, NULL, false, 0, 1ll << 40 } },
	};
	static struct made m;
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	put(&r, "victim", "safe");
	CHECK(mkdirat(r.dir_fd, "in", 0755) == 0);
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		const struct member *what = cases[i / 2];
		const char *where = i % 2 ? "in" : "new";

		made_open(&m);
		made_add(&m, &(struct member){ "first", AE_IFREG, "fine", false, 0, 0 });
		for (int j = 0; j < 2 && what[j].path; j++)
			made_add(&m, &what[j]);
		enum tree_code code = unpack(&r, where, made_end(&m), &reply);

		if (code == TREE_OK)
			printf("# case %zu: %s\n", i / 2, what[0].path);
		CHECK(code == TREE_INVALID || code == TREE_TOO_LARGE);
		CHECK_INT(entries_of(&r, ""), 2);
		CHECK_INT(entries_of(&r, "in"), 0);
	}
	CHECK_CODE(unpack(&r, "in", span_of("not an archive at all"), &reply), TREE_INVALID);
	CHECK_CODE(unpack(&r, "in", span_of(""), &reply), TREE_INVALID);
	made_open(&m);
	made_add(&m, &(struct member){ "first", AE_IFREG, "0123456789", false, 04777, 0 });
	struct span whole = made_end(&m);
	CHECK_CODE(unpack(&r, "in", (struct span){ whole.at, 515 }, &reply), TREE_INVALID);
	CHECK_INT(entries_of(&r, "in"), 0);
	CHECK_STR(got(&r, "victim"), "safe");
	reply_done(&reply);
	rig_close(&r);
}
