#include "base/str.h"
#include "test.h"
#include "wire/oci.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define CONFIG "application/vnd.oci.image.config.v1+json"
#define LAYER "application/vnd.oci.image.layer.v1.tar"
#define BLOB(media, hex) "\"mediaType\":\"" media "\",\"digest\":\"sha256:" hex "\",\"size\":7"
#define FOR(os, arch) ",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"}"
#define NAMED(ref) ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"" ref "\"}"
#define INDEX(entries) "{\"schemaVersion\":2,\"manifests\":[" entries "]}"

TEST(an_index_leads_to_the_one_image_that_is_wanted)
{
	static const struct {
		const char *json, *ref, *hex, *complaint;
	} cases[] = {
		{ INDEX("{" BLOB(MANIFEST, A) "}"), "", A, NULL },
		{ INDEX("{" BLOB(MANIFEST, A) FOR("linux", "amd64") "},{" BLOB(MANIFEST, B)
		            FOR("linux", "arm64") "}"),
		  "", A, NULL },
		{ INDEX("{" BLOB(MANIFEST, A) NAMED("one") "},{" BLOB(MANIFEST, B)
		            NAMED("two") "}"),
		  "two", B, NULL },
		{ INDEX("{" BLOB(MANIFEST, A) NAMED("one") "},{" BLOB(MANIFEST, B)
		            NAMED("two") "}"),
		  "", NULL, "more than one image; name one of: one, two" },
		{ INDEX("{" BLOB(MANIFEST, A) NAMED("one") "},{" BLOB(MANIFEST, A)
		            NAMED("two") "}"),
		  "", A, NULL },
		{ INDEX("{" BLOB(MANIFEST, A) NAMED("one") "}"), "three", NULL,
		  "no image three for linux/amd64; there are: one" },
		{ INDEX("{" BLOB(MANIFEST, A) FOR("windows", "amd64") "}"), "", NULL,
		  "no image for linux/amd64; there are: windows/amd64" },
		{ INDEX(""), "", NULL, "no image for linux/amd64" },
		{ INDEX("{" BLOB(CONFIG, A) "}"), "", NULL, "what is no image" },
		{ INDEX("{" BLOB("text/html", A) "}"), "", NULL, "media type \"text/html\"" },
		{ INDEX("7"), "", NULL, "descriptor" },
		{ "{\"manifests\":[{" BLOB(MANIFEST, A) "}]}", "", NULL, "schemaVersion" },
		{ "{\"schemaVersion\":2,\"mediaType\":\"" MANIFEST "\",\"manifests\":[]}", "", NULL,
		  "media type" },
		{ "{\"schemaVersion\":2,\"schemaVersion\":2}", "", NULL, "no JSON" },
		{ "[]", "", NULL, "no object" },
		{ "", "", NULL, "no JSON" },
		{ INDEX("{\"mediaType\":\"" MANIFEST "\",\"digest\":\"md5:1\",\"size\":7}"), "",
		  NULL, "digest \"md5:1\"" },
		{ INDEX("{\"mediaType\":\"" MANIFEST
		        "\",\"digest\":\"sha256:../../x\",\"size\":7}"),
		  "", NULL, "digest" },
		{ INDEX("{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:" A "\",\"size\":-1}"),
		  "", NULL, "size of -1" },
		{ INDEX("{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:" A "\",\"size\":"
		        "9223372036854775807}"),
		  "", NULL, "size of" },
		{ INDEX("{\"mediaType\":\"\\u001b[2J\",\"digest\":\"sha256:" A "\",\"size\":1}"),
		  "", NULL, "\"?[2J\"" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct oci_blob out = { 0 };
		struct err e = { 0 };
		struct oci_want want = { cases[i].ref, "amd64" };
		int r = oci_index_read(span_of(cases[i].json), want, &out, &e);

		if (r < 0 && (!cases[i].complaint || !strstr(e.msg, cases[i].complaint)))
			printf("# %zu: %s\n", i, e.msg);
		CHECK_INT(r, cases[i].hex ? 0 : -1);
		if (cases[i].hex)
			CHECK_STR(out.hex, cases[i].hex);
		else
			CHECK(strstr(e.msg, cases[i].complaint));
	}
}

TEST(a_manifest_names_a_config_and_layers)
{
	static const struct {
		const char *layers, *complaint;
	} cases[] = {
		{ "{" BLOB(LAYER, A) "}", NULL },
		{ "{" BLOB(LAYER "+gzip", A) "},{" BLOB(LAYER "+zstd", B) "}", NULL },
		{ "", "0 layers" },
		{ "{" BLOB(CONFIG, A) "}", "media type" },
		{ "{" BLOB("application/vnd.oci.image.layer.nondistributable.v1.tar", A) "}",
		  "media type" },
		{ "{" BLOB(LAYER "+encrypted", A) "}", "layer 1: media type" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct oci_manifest out;
		struct err e = { 0 };
		char json[2048];

		snprintf(json, sizeof json,
		         "{\"schemaVersion\":2,\"config\":{" BLOB(CONFIG, A) "},\"layers\":[%s]}",
		         cases[i].layers);
		int r = oci_manifest_read(span_of(json), &out, &e);
		CHECK_INT(r, cases[i].complaint ? -1 : 0);
		if (r < 0)
			CHECK(strstr(e.msg, cases[i].complaint));
		else
			CHECK_INT(out.layers[out.n_layers - 1].size, 7);
	}
}

TEST(more_layers_than_anybody_has_are_refused)
{
	AUTO(str_done) struct str json = { .max = 1u << 20 };
	struct oci_manifest out;
	struct err e = { 0 };

	str_add(&json, "{\"schemaVersion\":2,\"config\":{" BLOB(CONFIG, A) "},\"layers\":[");
	for (int i = 0; i < OCI_LAYERS_MAX + 1; i++)
		str_addf(&json, "%s{" BLOB(LAYER, A) "}", i ? "," : "");
	str_add(&json, "]}");
	CHECK_INT(oci_manifest_read((struct span){ json.data, json.len }, &out, &e), -1);
	CHECK(strstr(e.msg, "129 layers"));
}

TEST(a_config_knows_every_layer)
{
	static const struct {
		const char *json, *complaint;
	} cases[] = {
		{ "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":\"layers\","
		  "\"diff_ids\":[\"sha256:" A "\"]}}",
		  NULL },
		{ "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":\"layers\","
		  "\"diff_ids\":[]}}",
		  "0 layers" },
		{ "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":\"layers\","
		  "\"diff_ids\":[7]}}",
		  "digest" },
		{ "{\"os\":\"windows\",\"architecture\":\"amd64\"}", "os \"windows\"" },
		{ "{\"os\":\"linux\",\"architecture\":\"arm64\"}", "linux/amd64" },
		{ "{}", "os" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct oci_config out;
		struct err e = { 0 };
		int r = oci_config_read(span_of(cases[i].json), "amd64", 1, &out, &e);

		CHECK_INT(r, cases[i].complaint ? -1 : 0);
		if (r < 0)
			CHECK(strstr(e.msg, cases[i].complaint));
		else
			CHECK_STR(out.diff_ids[0], A);
	}
}

TEST(a_config_says_how_commands_begin)
{
	static const struct {
		const char *config, *settings; /* NULL: refused */
	} cases[] = {
		{ "{}", "" },
		{ "{\"Env\":null,\"Cmd\":[],\"User\":\"\"}", "" },
		{ "{\"Env\":[\"A=b=c\",\"E=\"],\"Cmd\":[\"sh\",\"-c\"],\"Entrypoint\":[\"/init\"],"
		  "\"WorkingDir\":\"/app\",\"User\":\"web\",\"Labels\":{}}",
		  "{\"cmd\":[\"sh\",\"-c\"],\"cwd\":\"/app\",\"entrypoint\":[\"/init\"],"
		  "\"env\":{\"A\":\"b=c\",\"E\":\"\"},\"user\":\"web\"}" },
		{ "{\"Env\":[\"A\"]}", NULL },
		{ "{\"Env\":[\"=x\"]}", NULL },
		{ "{\"Env\":{}}", NULL },
		{ "{\"Cmd\":\"sh\"}", NULL },
		{ "{\"Cmd\":[7]}", NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		static struct oci_config out;
		AUTO(str_done) struct str json = { .max = 4096 };
		struct err e = { 0 };

		str_addf(&json,
		         "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"type\":"
		         "\"layers\",\"diff_ids\":[\"sha256:" A "\"]},\"config\":%s}",
		         cases[i].config);
		int r = oci_config_read(span_of(str_text(&json)), "amd64", 1, &out, &e);

		CHECK_INT(r, cases[i].settings ? 0 : -1);
		if (r == 0)
			CHECK_STR(out.settings, cases[i].settings);
	}
}

TEST(a_layout_has_a_version_and_blobs_have_names)
{
	struct err e = { 0 };

	CHECK_INT(oci_layout_read(span_of("{\"imageLayoutVersion\":\"1.0.0\"}"), &e), 0);
	CHECK_INT(oci_layout_read(span_of("{\"imageLayoutVersion\":\"2.0.0\"}"), &e), -1);
	CHECK_INT(oci_layout_read(span_of("{}"), &e), -1);
	CHECK_STR(oci_blob_name("blobs/sha256/" A), A);
	CHECK(!oci_blob_name("blobs/sha256/" A "a") && !oci_blob_name("blobs/sha512/" A));
	CHECK(!oci_blob_name("blobs/sha256/../x") && !oci_blob_name("index.json"));
}
