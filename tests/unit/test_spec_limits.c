#include "unit/test_spec.h"

struct row {
	const char *text, *want;
};

TEST(every_form_of_limits)
{
	static const struct row rows[] = {
		{ "{\"limits\":{}}", WITH_LIMITS("{}") },
		{ "{\"limits\":{\"cpu\":2}}", WITH_LIMITS("{\"cpu\":2.0}") },
		{ "{\"limits\":{\"cpu\":1.5}}", WITH_LIMITS("{\"cpu\":1.5}") },
		{ "{\"limits\":{\"cpu\":\"1.5\"}}", WITH_LIMITS("{\"cpu\":1.5}") },
		{ "{\"limits\":{\"cpu\":0.1}}", WITH_LIMITS("{\"cpu\":0.1}") },
		{ "{\"limits\":{\"cpu\":0.3333333333333333}}", WITH_LIMITS("{\"cpu\":0.333}") },
		{ "{\"limits\":{\"cpu\":4095.999}}", WITH_LIMITS("{\"cpu\":4095.999}") },
		{ "{\"limits\":{\"mem\":\"4g\"}}", WITH_LIMITS("{\"mem\":4294967296}") },
		{ "{\"limits\":{\"mem\":4294967296}}", WITH_LIMITS("{\"mem\":4294967296}") },
		{ "{\"limits\":{\"mem\":\"4G\"}}", WITH_LIMITS("{\"mem\":4294967296}") },
		{ "{\"limits\":{\"pids\":\"512\"}}", WITH_LIMITS("{\"pids\":512}") },
		{ "{\"limits\":{\"wall\":\"10m\"}}", WITH_LIMITS("{\"wall_ms\":600000}") },
		{ "{\"limits\":{\"wall\":600}}", WITH_LIMITS("{\"wall_ms\":600000}") },
		{ "{\"limits\":{\"wall_ms\":600000}}", WITH_LIMITS("{\"wall_ms\":600000}") },
		{ "{\"limits\":{\"idle\":\"90s\"}}", WITH_LIMITS("{\"idle_ms\":90000}") },
		{ "{\"limits\":{\"idle_ms\":1}}", WITH_LIMITS("{\"idle_ms\":1}") },
		{ "{\"limits\":{\"io\":\"10m\",\"files\":1024,\"output\":\"1m\",\"wall\":1,"
		  "\"pids\":1,"
		  "\"inodes\":1000,\"disk\":\"1g\",\"mem\":\"2g\",\"cpu\":1,\"idle\":1}}",
		  WITH_LIMITS("{\"cpu\":1.0,\"mem\":2147483648,\"disk\":1073741824,\"inodes\":1000,"
		              "\"pids\":1,\"wall_ms\":1000,\"idle_ms\":1000,\"output\":1048576,"
		              "\"files\":1024,\"io\":10485760}") },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		takes(rows[i].text, rows[i].want);
}

TEST(wrong_limits)
{
	static const struct row rows[] = {
		{ "{\"limits\":{\"memory\":\"4g\"}}",
		  "limits: unknown key \"memory\"; did you mean \"mem\"?" },
		{ "{\"limits\":{\"cpus\":2}}", "did you mean \"cpu\"?" },
		{ "{\"limits\":{\"timeout\":2}}", "unknown key \"timeout\"; valid: cpu, mem, " },
		{ "{\"limits\":null}", "limits: wants an object, not null" },
		{ "{\"limits\":[]}", "limits: wants an object, not a list" },
		{ "{\"limits\":\"mem=4g\"}", "limits: wants an object, not text" },
		{ "{\"limits\":{\"mem\":null}}",
		  "limits.mem: wants bytes or a size: `4g`, not null" },
		{ "{\"limits\":{\"mem\":1.5}}", "not a number with a fraction" },
		{ "{\"limits\":{\"pids\":true}}", "limits.pids: wants a whole number, not true" },
		{ "{\"limits\":{\"pids\":1.0}}", "limits.pids: wants a whole number" },
		{ "{\"limits\":{\"cpu\":[]}}", "limits.cpu: wants a number of cores" },
		{ "{\"limits\":{\"wall\":1.5}}", "limits.wall: wants seconds or a duration" },
		{ "{\"limits\":{\"wall_ms\":\"10m\"}}",
		  "limits.wall_ms: \"10m\" is not a whole number" },
		{ "{\"limits\":{\"wall\":1,\"wall_ms\":1}}", "wall and wall_ms are the same" },
		{ "{\"limits\":{\"wall_ms\":1,\"wall\":1}}", "wall and wall_ms are the same" },
		{ "{\"limits\":{\"idle_ms\":1,\"idle\":1}}", "idle and idle_ms are the same" },
		{ "{\"limits\":{\"mem\":\"-4g\"}}", "limits.mem: \"-4g\" is negative" },
		{ "{\"limits\":{\"mem\":-1}}", "\"-1\" is negative" },
		{ "{\"limits\":{\"cpu\":-0.5}}", "\"-0.5\" is negative" },
		{ "{\"limits\":{\"cpu\":\"nan\"}}", "is not a number of cores" },
		{ "{\"limits\":{\"cpu\":\"inf\"}}", "is not a number of cores" },
		{ "{\"limits\":{\"cpu\":1e300}}", "is not a number of cores" },
		{ "{\"limits\":{\"mem\":\"\"}}", "is not a size" },
		{ "{\"limits\":{\"mem\":\"99999999t\"}}", "is too large" },
		{ "{\"limits\":{\"mem\":\"99999999999999999999\"}}", "is too large" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		refuses(rows[i].text, rows[i].want);
	refuses_by(spec_yaml, "limits: {cpu: .nan}", 19, "is not a number of cores");
	refuses_by(spec_yaml, "limits: {mem: 99999999999999999999}", 35, "is too large");
	refuses_by(spec_yaml, "limits: {pids: 0100}", 20, "is not a whole number");
}

/* Each bound from both sides. */
TEST(bounds)
{
	static const struct {
		const char *flag, *least, *below, *most, *above;
	} rows[] = {
		{ "cpu", "0.01", "0.009", "4096", "4096.001" },
		{ "mem", "4m", "4194303", "1024t", "1025t" },
		{ "inodes", "64", "63", "4294967296", "4294967297" },
		{ "pids", "1", "0", "4194304", "4194305" },
		{ "wall", "1ms", "0", "365d", "366d" },
		{ "idle", "1ms", "0", "365d", "366d" },
		{ "output", "1k", "1023", "1t", "1025g" },
		{ "files", "16", "15", "1048576", "1048577" },
		{ "io", "4k", "4095", "1t", "1025g" },
		{ "disk", "1m", "1048575", "4g", "1025t" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		printf("# %s\n", rows[i].flag);
		spec_init(&s);
		CHECK_INT(spec_flag(&s, rows[i].flag, rows[i].least, &e), 0);
		CHECK_INT(spec_flag(&s, rows[i].flag, rows[i].most, &e), 0);
		CHECK_INT(spec_check(&s, &e), 0);
		flag_refuses(rows[i].flag, rows[i].below, "is too small, the least is ");
		flag_refuses(rows[i].flag, rows[i].above, "is too large, the most is ");
		flag_refuses(rows[i].flag, "0", "is too small, the least is ");
		flag_refuses(rows[i].flag, "-1", "is negative");
	}
	flag_refuses("mem", "1k", "--mem: \"1k\" is too small, the least is 4m");
}

TEST(disk_fits_into_memory)
{
	static const struct {
		const char *mem, *disk, *message; /* NULL: taken */
	} rows[] = {
		{ "4g", "4g", NULL },
		{ "4g", "5g", "\"5g\" is larger than mem (4g)" },
		{ NULL, "4g", NULL },
		{ NULL, "5g", "\"5g\" is larger than mem (4g, the default)" },
		{ "64m", NULL, NULL },
		{ "8g", "5g", NULL },
		{ NULL, NULL, NULL },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		printf("# row %zu\n", i);
		spec_init(&s);
		if (rows[i].mem)
			CHECK_INT(spec_flag(&s, "mem", rows[i].mem, &e), 0);
		if (rows[i].disk)
			CHECK_INT(spec_flag(&s, "disk", rows[i].disk, &e), 0);
		CHECK_INT(spec_check(&s, &e), rows[i].message ? -1 : 0);
		if (rows[i].message) {
			CHECK(strstr(e.msg, rows[i].message));
			CHECK(strstr(e.msg, "raise mem to 5g or lower disk"));
			continue;
		}
		spec_resolve(&s);
		CHECK_INT(spec_check(&s, &e), 0);
		CHECK(s.limits[LIMIT_DISK].value <= s.limits[LIMIT_MEM].value);
	}
}

TEST(a_document_changes_only_the_limits_that_it_names)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };
	const char *doc = "{\"limits\":{\"mem\":\"1g\"}}";

	spec_init(&s);
	CHECK_INT(spec_flag(&s, "pids", "10", &e), 0);
	CHECK_INT(spec_flag(&s, "mem", "2g", &e), 0);
	CHECK_INT(spec_json(&s, doc, strlen(doc), &e), 0);
	check_printed(&s, WITH_LIMITS("{\"mem\":1073741824,\"pids\":10}"));
	CHECK_INT(spec_flag(&s, "mem", "3g", &e), 0);
	check_printed(&s, WITH_LIMITS("{\"mem\":3221225472,\"pids\":10}"));
}

TEST(every_limit_has_a_name_that_is_a_flag)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		AUTO(spec_done) struct spec s;
		const char *name = limit_name((enum limit_id)i);
		struct err e = { 0 };

		spec_init(&s);
		CHECK(spec_is_flag(name));
		CHECK_INT(spec_flag(&s, "allow-weaker", name, &e), 0);
		CHECK(spec_weaker(&s, name));
	}
	CHECK_STR(limit_name(LIMIT_CPU), "cpu");
	CHECK_STR(limit_name(LIMIT_WALL), "wall");
	CHECK_STR(limit_name(LIMIT_IO), "io");
}
