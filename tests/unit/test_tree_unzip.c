#include <zlib.h>

#include "test_tree.h"

struct member {
	const char *name, *data;
	bool is_deflated, is_wrong; /* the sum is of something else */
};

static void add(struct str *out, uint64_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		char byte = (char)(n >> 8 * i);

		str_addn(out, &byte, 1);
	}
}

static size_t pack(const struct member *m, unsigned char *out, size_t max)
{
	z_stream z = { 0 };

	if (!m->is_deflated) {
		memcpy(out, m->data, strlen(m->data));
		return strlen(m->data);
	}
	CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)(uintptr_t)m->data;
	z.avail_in = (unsigned int)strlen(m->data);
	z.next_out = out;
	z.avail_out = (unsigned int)max;
	CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t n = max - z.avail_out;
	deflateEnd(&z);
	return n;
}

/* What both heads of an entry have: from its flags to the length of its name. */
static void add_common(struct str *out, const struct member *m, size_t packed)
{
	add(out, 0, 2);
	add(out, m->is_deflated ? 8 : 0, 2);
	add(out, 0, 4);
	add(out,
	    crc32(m->is_wrong ? 7 : 0, (const unsigned char *)m->data,
	          (unsigned int)strlen(m->data)),
	    4);
	add(out, packed, 4);
	add(out, strlen(m->data), 4);
	add(out, strlen(m->name), 2);
}

static void make(struct rig *r, const char *path, const struct member *members, size_t n)
{
	AUTO(str_done) struct str file = { .max = 1 << 20 }, directory = { .max = 1 << 20 };
	static unsigned char packed[1 << 16];

	for (size_t i = 0; i < n; i++) {
		size_t at = file.len, len = pack(&members[i], packed, sizeof packed);

		add(&file, 0x04034b50, 4);
		add(&file, 20, 2);
		add_common(&file, &members[i], len);
		add(&file, 0, 2);
		str_add(&file, members[i].name);
		str_addn(&file, packed, len);
		add(&directory, 0x02014b50, 4);
		add(&directory, 20, 4);
		add_common(&directory, &members[i], len);
		add(&directory, 0, 8);
		add(&directory, 0, 4);
		add(&directory, at, 4);
		str_add(&directory, members[i].name);
	}
	size_t at = file.len;
	str_addn(&file, str_text(&directory), directory.len);
	add(&file, 0x06054b50, 4);
	add(&file, 0, 4);
	add(&file, n | n << 16, 4);
	add(&file, directory.len, 4);
	add(&file, at, 4);
	add(&file, 0, 2);
	int fd = openat(r->dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(write(fd, file.data, file.len) == (ssize_t)file.len);
	close(fd);
}

TEST(an_archive_becomes_a_tree_or_goes_over_one)
{
	static char large[50001];
	const struct member members[] = { { "a", "one", false, false },
		                          { "d/", "", false, false },
		                          { "d/e/b", large, true, false },
		                          { "empty", "", true, false } };
	struct reply reply = { 0 };
	struct rig r;
	struct stat st;

	memset(large, 'x', sizeof large - 1);
	rig_open(&r);
	make(&r, "z", members, COUNT(members));
	CHECK_CODE(rig_do(&r, TREE_UNZIP, 0, "new/t", "{\"from\":\"z\"}", &reply), TREE_OK);
	CHECK_INT(reply_number(&reply, "files"), 3);
	CHECK_INT(reply_number(&reply, "bytes"), 50003);
	CHECK_STR(got(&r, "new/t/a"), "one");
	CHECK(fstatat(r.dir_fd, "new/t/d/e/b", &st, 0) == 0 && st.st_size == 50000);
	CHECK_INT(st.st_mode & 07777, 0644);
	put(&r, "new/t/kept", "kept");
	put(&r, "new/t/a", "old");
	CHECK_CODE(rig_do(&r, TREE_UNZIP, 0, "new/t", "{\"from\":\"z\"}", &reply), TREE_OK);
	CHECK_STR(got(&r, "new/t/a"), "one");
	CHECK_STR(got(&r, "new/t/kept"), "kept");
	reply_done(&reply);
	rig_close(&r);
}

TEST(an_archive_with_one_bad_entry_leaves_nothing)
{
	static const struct member cases[] = {
		{ "../out", "x", false, false },      { "/abs", "x", false, false },
		{ "d/../../out", "x", false, false }, { "", "x", false, false },
		{ "sum", "x", false, true },          { "sum", "xxxxxxxxxx", true, true },
		{ "a", "twice", false, false },
	};
	struct reply reply = { 0 };
	struct rig r;

	rig_open(&r);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct member members[] = { { "a", "one", false, false }, cases[i] };

		make(&r, "z", members, COUNT(members));
		CHECK_CODE(rig_do(&r, TREE_UNZIP, 0, "t", "{\"from\":\"z\"}", &reply),
		           TREE_INVALID);
		CHECK_INT(entries_of(&r, "."), 1);
	}
	put(&r, "z", "no archive");
	CHECK_CODE(rig_do(&r, TREE_UNZIP, 0, "t", "{\"from\":\"z\"}", &reply), TREE_INVALID);
	CHECK_CODE(rig_do(&r, TREE_UNZIP, 0, "t", "{\"from\":\"none\"}", &reply), TREE_NOT_FOUND);
	CHECK_CODE(rig_do(&r, TREE_UNZIP, 0, "t", "{}", &reply), TREE_INVALID);
	CHECK_INT(entries_of(&r, "."), 1);
	reply_done(&reply);
	rig_close(&r);
}
