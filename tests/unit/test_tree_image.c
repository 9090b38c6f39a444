#include <sys/xattr.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "test_tree.h"
#include "tree/decode.h"
#include "tree/limits.h"
#include "tree/nameset.h"
#include "wire/hash.h"
#include "wire/oci.h"

#define BYTES_MAX (1ull << 30)

/* ---- archives, byte by byte: what no library would write ------------------------------ */

struct part {
	const char *name;
	char type;        /* of the tar header; 0: a file */
	const char *data; /* of a file; where a link leads; lines of pax; a long name */
	unsigned int mode, uid;
	long long size; /* that the header claims; 0: of the data */
};

static void put_octal(char *field, size_t n, unsigned long long value)
{
	snprintf(field, n, "%0*llo", (int)n - 1, value);
}

/* "key=value" becomes "13 key=value": the length counts itself. */
static const char *pax_of(const char *lines)
{
	static char out[1024];
	size_t used = 0;

	while (*lines) {
		size_t n = strcspn(lines, "\n") + 2, digits = n + 1 < 10 ? 1 : n + 2 < 100 ? 2 : 3;

		used += (size_t)snprintf(out + used, sizeof out - used, "%zu %.*s", n + digits,
		                         (int)n - 1, lines);
		lines += n - 1;
	}
	return out;
}

static void add_part(struct str *tar, const struct part *from)
{
	struct part copy = *from, *p = &copy;

	if (p->type == 'x')
		p->data = pax_of(p->data);
	char head[512] = { 0 };
	bool is_link = p->type == '1' || p->type == '2';
	size_t len = p->data && !is_link ? strlen(p->data) : 0;
	unsigned int sum = 0;

	memcpy(head, p->name, strlen(p->name) < 100 ? strlen(p->name) : 100);
	put_octal(head + 100, 8, p->mode ? p->mode : p->type == '5' ? 0755 : 0644);
	put_octal(head + 108, 8, p->uid);
	put_octal(head + 116, 8, p->uid);
	put_octal(head + 124, 12, p->size ? (unsigned long long)p->size : len);
	put_octal(head + 136, 12, 1000);
	memset(head + 148, ' ', 8);
	head[156] = p->type ? p->type : '0';
	if (is_link)
		memcpy(head + 157, p->data, strlen(p->data));
	memcpy(head + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof head; i++)
		sum += (unsigned char)head[i];
	put_octal(head + 148, 7, sum);
	str_addn(tar, head, sizeof head);
	str_addn(tar, p->data ? p->data : "", len);
	str_addn(tar, (char[512]){ 0 }, (512 - len % 512) % 512);
}

static void make_tar(struct str *tar, const struct part *parts, size_t n)
{
	*tar = (struct str){ .max = 64u << 20 };
	for (size_t i = 0; i < n; i++)
		add_part(tar, &parts[i]);
	str_addn(tar, (char[1024]){ 0 }, 1024);
}

static struct span text_of(const struct str *s)
{
	return (struct span){ str_text(s), s->len };
}

static void pack(struct str *out, struct span from, enum decode_kind kind)
{
	size_t room = from.len + (64u << 10);
	char *bytes = mem_alloc(room);
	size_t n = from.len;

	*out = (struct str){ .max = SIZE_MAX };
	if (kind == DECODE_GZIP) {
		z_stream z = { .next_in = (unsigned char *)(uintptr_t)from.at,
			       .avail_in = (unsigned int)from.len,
			       .next_out = (unsigned char *)bytes,
			       .avail_out = (unsigned int)room };

		CHECK_INT(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
		CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
		n = z.total_out;
		deflateEnd(&z);
	} else if (kind == DECODE_ZSTD) {
		ZSTD_CCtx *c = ZSTD_createCCtx();

		ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
		n = ZSTD_compress2(c, bytes, room, from.at, from.len);
		ZSTD_freeCCtx(c);
		CHECK(!ZSTD_isError(n));
	} else {
		memcpy(bytes, from.at, n);
	}
	str_addn(out, bytes, n);
	free(bytes);
}

/* ---- a worker ------------------------------------------------------------------------- */

struct how {
	uint32_t flags;
	uint64_t bytes_max, keep_free;
	const char *ref;
};

static enum tree_code import(struct rig *r, struct span body, struct how how, struct reply *reply)
{
	struct tree_ask ask = { .flags = how.flags,
		                .request = { .verb = TREE_IMAGE,
		                             .count = how.bytes_max ? how.bytes_max : BYTES_MAX,
		                             .from = how.keep_free },
		                .path = span_of(how.ref ? how.ref : ""),
		                .body = body };

	rig_ask(r, ask, -1);
	rig_reply(r, reply);
	return (enum tree_code)reply->last.code;
}

/* The worker's root is a folder of the rig's. */
static void image_rig(struct rig *r)
{
	char root[80];

	*r = (struct rig){ 0 };
	snprintf(r->root, sizeof r->root, "/tmp/tree-test-XXXXXX");
	CHECK(mkdtemp(r->root));
	snprintf(root, sizeof root, "%s/image", r->root);
	CHECK(mkdir(root, 0700) == 0);
	rig_start(r, root, 0);
	close(r->dir_fd);
	r->dir_fd = open(r->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(r, "outside", "canary");
}

static void image_close(struct rig *r)
{
	CHECK_STR(got(r, "outside"), "canary");
	CHECK_INT(entries_of(r, ""), 2);
	rig_close(r);
}

static const struct part small_root[] = {
	{ .name = "./", .type = '5', .mode = 0700 },
	{ .name = "./etc/", .type = '5' },
	{ .name = "./etc/passwd", .data = "root:x:0:0::/root:/bin/sh\nweb:x:33:34::/:/bin/sh\n" },
	{ .name = "bin", .type = '2', .data = "usr/bin" },
	{ .name = "usr/bin/su", .data = "su", .mode = 04755, .uid = 0 },
	{ .name = "usr/bin/link", .type = '1', .data = "usr/bin/su" },
	{ .name = "etc/mtab", .type = '2', .data = "/proc/mounts" },
	{ .name = "ro/", .type = '5', .mode = 0555, .uid = 7 },
	{ .name = "ro/f", .data = "in it", .mode = 0400, .uid = 70000 },
};

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

/* ---- OCI ------------------------------------------------------------------------------ */

struct layout {
	struct str tar;
	struct str layers; /* JSON of descriptors */
	struct str ids;
	bool is_without_blobs;
};

static void hex_of(struct span s, char out[OCI_HEX])
{
	struct hash h;

	hash_init(&h);
	hash_add(&h, s);
	hash_text(&h, out);
}

static void add_file(struct str *tar, const char *name, struct span bytes)
{
	add_part(tar, &(struct part){ .name = name, .size = (long long)bytes.len });
	str_addn(tar, bytes.at, bytes.len);
	str_addn(tar, (char[512]){ 0 }, (512 - bytes.len % 512) % 512);
}

static void add_blob(struct str *tar, struct span bytes, char hex[OCI_HEX])
{
	char name[128];

	hex_of(bytes, hex);
	snprintf(name, sizeof name, OCI_PATH "%s", hex);
	add_file(tar, name, bytes);
}

static void layout_open(struct layout *o)
{
	*o = (struct layout){ .tar = { .max = 64u << 20 },
		              .layers = { .max = 1u << 20 },
		              .ids = { .max = 1u << 20 } };
	add_file(&o->tar, "oci-layout", span_of("{\"imageLayoutVersion\":\"1.0.0\"}"));
}

static void layout_layer(struct layout *o, const struct part *parts, size_t n,
                         enum decode_kind kind)
{
	static const char *const suffix[] = {
		[DECODE_PLAIN] = "", [DECODE_GZIP] = "+gzip", [DECODE_ZSTD] = "+zstd"
	};
	AUTO(str_done) struct str tar, body;
	char hex[OCI_HEX], id[OCI_HEX];

	make_tar(&tar, parts, n);
	hex_of(text_of(&tar), id);
	pack(&body, text_of(&tar), kind);
	add_blob(&o->tar, text_of(&body), hex);
	str_addf(&o->layers,
	         "%s{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar%s\",\"digest\":"
	         "\"sha256:%s\",\"size\":%zu}",
	         o->layers.len ? "," : "", suffix[kind], hex, body.len);
	str_addf(&o->ids, "%s\"sha256:%s\"", o->ids.len ? "," : "", id);
}

static struct span layout_end(struct layout *o)
{
	char text[8192], config[OCI_HEX], manifest[OCI_HEX];

	snprintf(text, sizeof text,
	         "{\"os\":\"linux\",\"architecture\":\"%s\",\"rootfs\":{\"type\":\"layers\","
	         "\"diff_ids\":[%s]}}",
	         oci_arch(), str_text(&o->ids));
	size_t n = strlen(text);
	add_blob(&o->tar, span_of(text), config);
	snprintf(text, sizeof text,
	         "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/"
	         "vnd.oci.image.config.v1+json\",\"digest\":\"sha256:%s\",\"size\":%zu},"
	         "\"layers\":[%s]}",
	         config, n, str_text(&o->layers));
	n = strlen(text);
	add_blob(&o->tar, span_of(text), manifest);
	snprintf(text, sizeof text,
	         "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"application/"
	         "vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:%s\",\"size\":%zu,"
	         "\"annotations\":{\"org.opencontainers.image.ref.name\":\"tag\"}}]}",
	         manifest, n);
	add_file(&o->tar, "index.json", span_of(text));
	str_addn(&o->tar, (char[1024]){ 0 }, 1024);
	return text_of(&o->tar);
}

static void layout_done(struct layout *o)
{
	str_done(&o->tar);
	str_done(&o->layers);
	str_done(&o->ids);
}

static const struct part lower[] = {
	{ .name = "a/", .type = '5' },
	{ .name = "a/gone", .data = "1" },
	{ .name = "a/stays", .data = "1" },
	{ .name = "b/deep/x", .data = "1" },
	{ .name = "b/y", .data = "1" },
	{ .name = "file", .data = "1" },
	{ .name = "folder/", .type = '5' },
	{ .name = "folder/in", .data = "1" },
	{ .name = "link", .type = '2', .data = "a" },
	{ .name = "c/k/old", .data = "1" },
};
static const struct part upper[] = {
	{ .name = "a/.wh.gone" },
	{ .name = "a/new", .data = "2" },
	{ .name = "a/hard", .type = '1', .data = "a/stays" },
	{ .name = "b/deep/z", .data = "2" },
	{ .name = "b/.wh..wh..opq" },
	{ .name = "file/", .type = '5' },
	{ .name = "file/in", .data = "2" },
	{ .name = "folder", .data = "2" },
	{ .name = "link/", .type = '5' },
	{ .name = "link/own", .data = "2" },
	{ .name = "c/k/new", .data = "2" },
	{ .name = "c/.wh.k" },
	{ .name = ".wh.never" },
	{ .name = "nowhere/.wh.x" },
	{ .name = ".wh..wh.plnk", .data = "of aufs" },
};

TEST(layers_lie_over_each_other)
{
	static const struct {
		const char *path, *holds; /* NULL: it is not there */
	} wanted[] = {
		{ "image/a/gone", NULL },
		{ "image/a/stays", "1" },
		{ "image/a/new", "2" },
		{ "image/a/hard", "1" },
		{ "image/b/deep/x", NULL },
		{ "image/b/deep/z", "2" },
		{ "image/b/y", NULL },
		{ "image/file/in", "2" },
		{ "image/folder", "2" },
		{ "image/link/own", "2" },
		{ "image/a/own", NULL },
		{ "image/c/k/old", NULL },
		{ "image/c/k/new", "2" },
		{ "image/nowhere", NULL },
		{ "image/.wh..wh.plnk", NULL },
		{ "image/a/.wh.gone", NULL },
		{ "image/b/.wh..wh..opq", NULL },
	};
	AUTO(reply_done) struct reply reply = { 0 };
	AUTO(layout_done) struct layout o;
	struct rig r;

	layout_open(&o);
	layout_layer(&o, lower, COUNT(lower), DECODE_GZIP);
	layout_layer(&o, upper, COUNT(upper), DECODE_ZSTD);
	struct span body = layout_end(&o);
	image_rig(&r);
	CHECK_CODE(import(&r, body, (struct how){ .flags = TREE_OCI, .ref = "tag" }, &reply),
	           TREE_OK);
	CHECK_INT(reply_number(&reply, "layers"), 2);
	for (size_t i = 0; i < COUNT(wanted); i++) {
		const char *holds = got(&r, wanted[i].path);

		if (!holds != !wanted[i].holds)
			printf("# %s\n", wanted[i].path);
		CHECK(!holds == !wanted[i].holds);
		if (holds)
			CHECK_STR(holds, wanted[i].holds);
	}
	CHECK_INT(entries_of(&r, "image"), 6);
	image_close(&r);
	image_rig(&r);
	CHECK_CODE(import(&r, body, (struct how){ .flags = TREE_OCI, .ref = "other" }, &reply),
	           TREE_INVALID);
	CHECK_INT(entries_of(&r, "image"), 0);
	image_close(&r);
}

TEST(an_opaque_root_hides_all_that_was_below)
{
	static const struct part over[] = { { .name = "only/here", .data = "2" },
		                            { .name = ".wh..wh..opq" } };
	AUTO(reply_done) struct reply reply = { 0 };
	AUTO(layout_done) struct layout o;
	struct rig r;

	layout_open(&o);
	layout_layer(&o, lower, COUNT(lower), DECODE_PLAIN);
	layout_layer(&o, over, COUNT(over), DECODE_PLAIN);
	image_rig(&r);
	CHECK_CODE(import(&r, layout_end(&o), (struct how){ .flags = TREE_OCI }, &reply), TREE_OK);
	CHECK_INT(entries_of(&r, "image"), 1);
	CHECK_STR(got(&r, "image/only/here"), "2");
	image_close(&r);
}

TEST(hostile_layers_are_refused)
{
	static const struct {
		const char *what;
		struct part below, above[2];
	} cases[] = {
		{ "through a link of the layer below",
		  { .name = "l", .type = '2', .data = ".." },
		  { { .name = "l/outside", .data = "x" } } },
		{ "a whiteout through a link",
		  { .name = "l", .type = '2', .data = ".." },
		  { { .name = "l/.wh.outside" } } },
		{ "an opaque folder through a link",
		  { .name = "l", .type = '2', .data = ".." },
		  { { .name = "l/.wh..wh..opq" } } },
		{ "a whiteout of ..", { .name = "f", .data = "x" }, { { .name = ".wh..." } } },
		{ "a whiteout of .", { .name = "f", .data = "x" }, { { .name = ".wh.." } } },
		{ "a whiteout of nothing", { .name = "f", .data = "x" }, { { .name = ".wh." } } },
		{ "a whiteout that is a folder",
		  { .name = "f", .data = "x" },
		  { { .name = ".wh.f/", .type = '5' } } },
		{ "below a whiteout", { .name = "f", .data = "x" }, { { .name = ".wh.f/g" } } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(reply_done) struct reply reply = { 0 };
		AUTO(layout_done) struct layout o;
		struct rig r;

		layout_open(&o);
		layout_layer(&o, &cases[i].below, 1, DECODE_PLAIN);
		layout_layer(&o, cases[i].above, 1, DECODE_PLAIN);
		image_rig(&r);
		enum tree_code code =
		    import(&r, layout_end(&o), (struct how){ .flags = TREE_OCI }, &reply);
		bool is_taken = code == TREE_OK && strcmp(cases[i].what, "below a whiteout") != 0;
		if (is_taken)
			printf("# %s\n", cases[i].what);
		CHECK(!is_taken);
		image_close(&r);
	}
}

/* Whatever byte of a layout is changed: the same image, or none. */
TEST(a_changed_byte_in_a_layout_changes_no_image)
{
	AUTO(layout_done) struct layout o;
	size_t taken = 0, tried = 0;

	layout_open(&o);
	layout_layer(&o, small_root, 3, DECODE_GZIP);
	struct span body = layout_end(&o);
	for (size_t at = 0; at < body.len - 1024; at += 97) {
		AUTO(reply_done) struct reply reply = { 0 };
		struct rig r;

		o.tar.data[at] ^= 1;
		image_rig(&r);
		if (import(&r, body, (struct how){ .flags = TREE_OCI }, &reply) == TREE_OK) {
			CHECK_STR(got(&r, "image/etc/passwd"), small_root[2].data);
			taken++; /* times and owners of the outer archive, and its padding */
		}
		tried++;
		image_close(&r);
		o.tar.data[at] ^= 1;
	}
	CHECK(tried > 40 && taken < tried / 2);
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

/* ---- parts ---------------------------------------------------------------------------- */

TEST(a_set_of_names_knows_what_is_above_them)
{
	struct nameset s = { .seed = 42 };
	char name[64];

	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "d%d/e/f%d", i % 70, i);
		nameset_add(&s, name);
	}
	CHECK(nameset_has(&s, "d0") && nameset_has(&s, "d69/e") && nameset_has(&s, "d0/e/f0"));
	CHECK(!nameset_has(&s, "d70") && !nameset_has(&s, "d0/e/f1") && !nameset_has(&s, ""));
	nameset_add(&s, "");
	CHECK(nameset_has(&s, ""));
	nameset_clear(&s);
	CHECK(!nameset_has(&s, "d0"));
	nameset_done(&s);
}

struct drops {
	struct span left;
	size_t size;
};

static int drop(void *arg, struct span *out, struct err *e)
{
	struct drops *d = arg;
	size_t n = d->left.len < d->size ? d->left.len : d->size;

	(void)e;
	*out = (struct span){ d->left.at, n };
	d->left = span_after(d->left, n);
	return n > 0;
}

TEST(whatever_the_pieces_the_same_comes_out)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 100, 1 << 20 };
	AUTO(str_done) struct str text = { .max = 1 << 20 };

	for (int i = 0; i < 5000; i++)
		str_addf(&text, "%d ", i * i);
	for (int kind = DECODE_PLAIN; kind < DECODE_KINDS; kind++) {
		AUTO(str_done) struct str packed;

		pack(&packed, text_of(&text), (enum decode_kind)kind);
		for (size_t i = 0; i < COUNT(sizes); i++) {
			AUTO(str_done) struct str out = { .max = 1 << 20 };
			struct drops drops = { text_of(&packed), sizes[i] };
			struct decode d;
			struct err e = { 0 };
			struct span piece;
			int r;

			decode_open(&d, DECODE_AUTO, drop, &drops);
			while ((r = decode_next(&d, &piece, &e)) > 0)
				str_addn(&out, piece.at, piece.len);
			CHECK_INT(r, 0);
			CHECK_STR(str_text(&out), str_text(&text));
			decode_done(&d);
		}
	}
}

TEST(members_of_gzip_follow_each_other)
{
	AUTO(str_done) struct str first, both = { .max = 1 << 16 };
	struct drops drops;
	struct decode d;
	struct err e = { 0 };
	struct span piece;
	size_t n = 0;
	int r;

	pack(&first, span_of("hello "), DECODE_GZIP);
	str_addn(&both, first.data, first.len);
	str_addn(&both, first.data, first.len);
	drops = (struct drops){ text_of(&both), 7 };
	decode_open(&d, DECODE_GZIP, drop, &drops);
	while ((r = decode_next(&d, &piece, &e)) > 0)
		n += piece.len;
	CHECK_INT(r, 0);
	CHECK_INT(n, 12);
	decode_done(&d);
	drops = (struct drops){ span_of("plain text"), 100 };
	decode_open(&d, DECODE_GZIP, drop, &drops);
	CHECK_INT(decode_next(&d, &piece, &e), -1);
	decode_done(&d);
}
