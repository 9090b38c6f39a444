#include <sys/xattr.h>

#include "test_image.h"
#include "tree/limits.h"

TEST(a_tar_becomes_a_root_in_every_packing)
{
	static const enum decode_kind kinds[] = { DECODE_PLAIN, DECODE_GZIP, DECODE_ZSTD };

	for (size_t i = 0; i < COUNT(kinds); i++) {
		AUTO(reply_done) struct reply reply = { 0 };
		AUTO(str_done) struct str tar, body;
		struct stat st;
		struct rig r;

		make_tar(&tar, small_root, COUNT(small_root));
		pack(&body, text_of(&tar), kinds[i]);
		image_rig(&r);
		CHECK_CODE(import(&r, text_of(&body),
		                  (struct how){ .flags = geteuid() == 0 ? TREE_OWNERS : 0 },
		                  &reply),
		           TREE_OK);
		CHECK_INT(reply_number(&reply, "files"), 6);
		CHECK_INT(reply_number(&reply, "layers"), 1);
		CHECK_INT(reply_number(&reply, "dropped"), 1);
		CHECK_STR(reply_text(&reply, "passwd"), small_root[2].data);
		CHECK_INT(strlen(reply_text(&reply, "digest")), 64);
		CHECK_STR(got(&r, "image/usr/bin/link"), "su");
		CHECK_INT(fstatat(r.dir_fd, "image/usr/bin/su", &st, 0), 0);
		CHECK_INT(st.st_mode, S_IFREG | 0755); /* setuid is dropped */
		CHECK_INT(st.st_nlink, 2);
		CHECK_INT(st.st_mtime, 1000);
		CHECK_INT(fstatat(r.dir_fd, "image", &st, 0), 0);
		CHECK_INT(st.st_mode, S_IFDIR | 0755);
		CHECK_INT(fstatat(r.dir_fd, "image/ro", &st, 0), 0);
		CHECK_INT(st.st_mode, S_IFDIR | 0755); /* of 0555: its owner may write */
		CHECK_INT(st.st_mtime, 1000);
		CHECK_INT(st.st_uid, geteuid() == 0 ? 7 : geteuid());
		CHECK_INT(fstatat(r.dir_fd, "image/ro/f", &st, 0), 0);
		CHECK_INT(st.st_uid, geteuid() == 0 ? 65534 : geteuid());
		image_close(&r);
	}
}

/* ---- what is refused ------------------------------------------------------------------ */

static const struct {
	const char *what;
	struct part parts[4];
	enum tree_code code;
} hostile[] = {
	{ "up", { { .name = "../outside", .data = "x" } }, TREE_INVALID },
	{ "up within", { { .name = "a/../../outside", .data = "x" } }, TREE_INVALID },
	{ "absolute", { { .name = "/outside", .data = "x" } }, TREE_INVALID },
	{ "absolute folder", { { .name = "/", .type = '5' } }, TREE_INVALID },
	{ "through a link",
	  { { .name = "l", .type = '2', .data = ".." }, { .name = "l/outside", .data = "x" } },
	  TREE_INVALID },
	{ "through a link that stays",
	  { { .name = "d/", .type = '5' },
	    { .name = "l", .type = '2', .data = "d" },
	    { .name = "l/f", .data = "x" } },
	  TREE_INVALID },
	{ "a folder through a link",
	  { { .name = "l", .type = '2', .data = ".." }, { .name = "l/new/", .type = '5' } },
	  TREE_INVALID },
	{ "a hard link out", { { .name = "h", .type = '1', .data = "../outside" } }, TREE_INVALID },
	{ "an absolute hard link",
	  { { .name = "h", .type = '1', .data = "/etc/passwd" } },
	  TREE_INVALID },
	{ "a hard link through a link",
	  { { .name = "l", .type = '2', .data = ".." },
	    { .name = "h", .type = '1', .data = "l/outside" } },
	  TREE_INVALID },
	{ "a hard link to a folder",
	  { { .name = "d/", .type = '5' }, { .name = "h", .type = '1', .data = "d" } },
	  TREE_INVALID },
	{ "hard links in a circle",
	  { { .name = "a", .type = '1', .data = "b" }, { .name = "b", .type = '1', .data = "a" } },
	  TREE_INVALID },
	{ "a character device", { { .name = "null", .type = '3' } }, TREE_INVALID },
	{ "a disk", { { .name = "sda", .type = '4' } }, TREE_INVALID },
	{ "a pipe", { { .name = "p", .type = '6' } }, TREE_INVALID },
	{ "a file, then a folder",
	  { { .name = "a", .data = "x" }, { .name = "a/", .type = '5' } },
	  TREE_INVALID },
	{ "a folder, then a file",
	  { { .name = "a/", .type = '5' }, { .name = "a", .data = "x" } },
	  TREE_INVALID },
	{ "a folder, then a link",
	  { { .name = "a/", .type = '5' }, { .name = "a", .type = '2', .data = ".." } },
	  TREE_INVALID },
	{ "a file, then a link",
	  { { .name = "a", .data = "x" }, { .name = "a", .type = '2', .data = "../outside" } },
	  TREE_INVALID },
	{ "below a file",
	  { { .name = "a", .data = "x" }, { .name = "a/b", .data = "x" } },
	  TREE_NOT_DIRECTORY },
	{ "a name of pax",
	  { { .name = "pax", .type = 'x', .data = "path=../outside\n" },
	    { .name = "harmless", .data = "x" } },
	  TREE_INVALID },
	{ "a link of pax",
	  { { .name = "pax", .type = 'x', .data = "linkpath=../outside\n" },
	    { .name = "harmless", .type = '1', .data = "harmless" } },
	  TREE_INVALID },
	{ "a long name of GNU",
	  { { .name = "././@LongLink", .type = 'L', .data = "../outside" },
	    { .name = "harmless", .data = "x" } },
	  TREE_INVALID },
	{ "an attribute of overlays",
	  { { .name = "pax", .type = 'x', .data = "SCHILY.xattr.user.overlay.opaque=y\n" },
	    { .name = "d/", .type = '5' } },
	  TREE_INVALID },
	{ "an attribute of the host",
	  { { .name = "pax", .type = 'x', .data = "SCHILY.xattr.trusted.overlay.redirect=/\n" },
	    { .name = "d/", .type = '5' } },
	  TREE_INVALID },
	{ "larger than there is",
	  { { .name = "big", .data = "x", .size = 4ll << 30 } },
	  TREE_TOO_LARGE },
	{ "shorter than it says",
	  { { .name = "cut", .data = "x", .size = 100000 } },
	  TREE_INVALID },
	{ "nothing", { { 0 } }, TREE_INVALID },
};

TEST(hostile_archives_are_refused_and_reach_nothing)
{
	for (size_t i = 0; i < COUNT(hostile); i++) {
		AUTO(reply_done) struct reply reply = { 0 };
		AUTO(str_done) struct str tar = { 0 };
		struct rig r;
		size_t n = 0;

		while (n < COUNT(hostile[i].parts) && hostile[i].parts[n].name)
			n++;
		make_tar(&tar, hostile[i].parts, n);
		image_rig(&r);
		enum tree_code code = import(&r, text_of(&tar), (struct how){ 0 }, &reply);
		if (code != hostile[i].code)
			printf("# %s: %s\n", hostile[i].what,
			       code == TREE_OK ? "taken" : reply_text(&reply, "detail"));
		CHECK_CODE(code, hostile[i].code);
		image_close(&r);
	}
}

TEST(a_sparse_file_counts_as_long_as_it_is_and_stays_sparse)
{
	/* GNU sparse 1.0: the map is at the beginning of the data. */
	static const char map[] = "1\n1073741824\n3\n";
	static const struct {
		const char *pax;
		enum tree_code code;
	} cases[] = {
		{ "GNU.sparse.major=1\nGNU.sparse.minor=0\nGNU.sparse.name=sparse\n"
		  "GNU.sparse.realsize=1073741827\n",
		  TREE_OK },
		{ "GNU.sparse.major=1\nGNU.sparse.minor=0\nGNU.sparse.name=sparse\n"
		  "GNU.sparse.realsize=1099511627776\n",
		  TREE_TOO_LARGE },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(reply_done) struct reply reply = { 0 };
		AUTO(str_done) struct str tar = { .max = 1 << 20 };
		char data[516] = { 0 };
		struct stat st;
		struct rig r;

		memcpy(data, map, sizeof map - 1);
		memcpy(data + 512, "end", 4);
		add_part(&tar, &(struct part){ .name = "p", .type = 'x', .data = cases[i].pax });
		add_part(&tar, &(struct part){ .name = "GNUSparseFile/s", .size = 515 });
		str_addn(&tar, data, 515);
		str_addn(&tar, (char[2048]){ 0 }, 509 + 1024);
		image_rig(&r);
		CHECK_CODE(
		    import(&r, text_of(&tar), (struct how){ .bytes_max = 2ull << 30 }, &reply),
		    cases[i].code);
		if (cases[i].code == TREE_OK) {
			CHECK_INT(fstatat(r.dir_fd, "image/sparse", &st, 0), 0);
			CHECK_INT(st.st_size, (1ll << 30) + 3);
			CHECK(st.st_blocks < 1024);
		}
		image_close(&r);
	}
}

TEST(bombs_and_cut_archives_are_refused)
{
	AUTO(str_done) struct str tar = { .max = 300u << 20 }, gzip, zstd, half;
	AUTO(reply_done) struct reply reply = { 0 };
	struct rig r;
	const struct part bomb = { .name = "zeros", .size = 256 << 20 };

	add_part(&tar, &bomb);
	str_addn(&tar, "", 0);
	for (size_t i = 0; i < 256; i++) {
		static char zeros[1 << 20];

		str_addn(&tar, zeros, sizeof zeros);
	}
	str_addn(&tar, (char[1024]){ 0 }, 1024);
	pack(&gzip, text_of(&tar), DECODE_GZIP);
	pack(&zstd, text_of(&tar), DECODE_ZSTD);
	CHECK(gzip.len < 1u << 20);
	image_rig(&r);
	CHECK_CODE(import(&r, text_of(&gzip), (struct how){ 0 }, &reply), TREE_TOO_LARGE);
	image_close(&r);
	image_rig(&r);
	CHECK_CODE(import(&r, text_of(&zstd), (struct how){ 0 }, &reply), TREE_TOO_LARGE);
	image_close(&r);

	/* The disk has no room but its reserve. */
	str_done(&tar);
	make_tar(&tar, small_root, COUNT(small_root));
	image_rig(&r);
	CHECK_CODE(import(&r, text_of(&tar), (struct how){ .keep_free = 1ull << 60 }, &reply),
	           TREE_QUOTA);
	image_close(&r);

	/* Every kind of end that is too early: the headers, the mark, the checksum. */
	for (int kind = DECODE_PLAIN; kind < DECODE_KINDS; kind++) {
		for (size_t cut = 1; cut < 12; cut++) {
			pack(&half, text_of(&tar), (enum decode_kind)kind);
			half.len -= kind == DECODE_PLAIN ? 600 + cut * 500 : cut;
			image_rig(&r);
			CHECK_CODE(import(&r, text_of(&half), (struct how){ 0 }, &reply),
			           TREE_INVALID);
			image_close(&r);
			str_done(&half);
		}
	}
}

TEST(a_flipped_bit_in_what_is_packed_is_seen)
{
	AUTO(str_done) struct str tar;
	size_t taken = 0;

	make_tar(&tar, small_root, COUNT(small_root));
	for (int kind = DECODE_GZIP; kind < DECODE_KINDS; kind++) {
		AUTO(str_done) struct str body;

		pack(&body, text_of(&tar), (enum decode_kind)kind);
		for (size_t at = 10; at < body.len; at += 3) {
			AUTO(reply_done) struct reply reply = { 0 };
			struct rig r;

			body.data[at] ^= 4;
			image_rig(&r);
			enum tree_code code = import(&r, text_of(&body), (struct how){ 0 }, &reply);
			if (code == TREE_OK) /* bits of zstd that mean nothing: its sum agrees */
				CHECK_STR(got(&r, "image/etc/passwd"), small_root[2].data);
			taken += code == TREE_OK;
			image_close(&r);
			body.data[at] ^= 4;
		}
	}
	CHECK(taken < 5);
}

TEST(attributes_of_users_come_along)
{
	static const struct part parts[] = {
		{ .name = "p",
		  .type = 'x',
		  .data = "SCHILY.xattr.user.mime_type=tx\n"
		          "SCHILY.xattr.security.capability=x\n" },
		{ .name = "f", .data = "x" },
	};
	AUTO(reply_done) struct reply reply = { 0 };
	AUTO(str_done) struct str tar;
	char value[16] = "";
	struct rig r;

	make_tar(&tar, parts, COUNT(parts));
	image_rig(&r);
	CHECK_CODE(import(&r, text_of(&tar), (struct how){ 0 }, &reply), TREE_OK);
	CHECK_INT(reply_number(&reply, "dropped"), 1);
	char path[128];
	snprintf(path, sizeof path, "%s/image/f", r.root);
	CHECK_INT(getxattr(path, "user.mime_type", value, sizeof value), 2);
	CHECK_STR(value, "tx");
	CHECK(getxattr(path, "security.capability", value, sizeof value) < 0);
	image_close(&r);
}

TEST(names_are_bytes)
{
	static const struct part parts[] = {
		{ .name = "p", .type = 'x', .data = "path=caf\xc3\xa9/\xe2\x82\xac\n" },
		{ .name = "x", .data = "pax" },
		{ .name = "caf\xe9", .data = "latin" },
	};
	AUTO(reply_done) struct reply reply = { 0 };
	AUTO(str_done) struct str tar;
	struct rig r;

	make_tar(&tar, parts, COUNT(parts));
	image_rig(&r);
	CHECK_CODE(import(&r, text_of(&tar), (struct how){ 0 }, &reply), TREE_OK);
	CHECK_STR(got(&r, "image/caf\xc3\xa9/\xe2\x82\xac"), "pax");
	CHECK_STR(got(&r, "image/caf\xe9"), "latin");
	image_close(&r);
}
