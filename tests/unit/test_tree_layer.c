#include "test_image.h"
#include "wire/hash.h"
#include "wire/oci.h"

/* ---- OCI ------------------------------------------------------------------------------ */

struct layout {
	struct str tar;
	struct str layers; /* JSON of descriptors */
	struct str ids;
	size_t cut; /* bytes that each layer lacks at its end */
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
	tar.len -= o->cut;
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

/* As some programs write them; what is cut in the middle is cut. */
TEST(a_layer_may_end_without_its_mark)
{
	static const struct {
		size_t cut;
		enum tree_code code;
	} cases[] = { { 1024, TREE_OK },
		      { 1024 + 511, TREE_OK },
		      { 1024 + 512, TREE_INVALID },
		      { 1024 + 512 + 1, TREE_INVALID } };
	static const struct part parts[] = { { .name = "a", .data = "1" },
		                             { .name = "b", .data = "2" } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(reply_done) struct reply reply = { 0 };
		AUTO(layout_done) struct layout o;
		struct rig r;

		layout_open(&o);
		o.cut = cases[i].cut;
		layout_layer(&o, parts, COUNT(parts), DECODE_GZIP);
		image_rig(&r);
		CHECK_CODE(import(&r, layout_end(&o), (struct how){ .flags = TREE_OCI }, &reply),
		           cases[i].code);
		if (cases[i].code == TREE_OK)
			CHECK_STR(got(&r, "image/b"), "2");
		image_close(&r);
	}
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
