#include "unit/test_spec.h"

#define ONE_LINER                                                                                  \
	"{\"net\":{\"mode\":\"deny\"},\"fs\":[{\"kind\":\"ephemeral\",\"at\":\"/"                  \
	"work\"}],\"creds\":[],"                                                                   \
	"\"limits\":{\"cpu\":2.0,\"mem\":4294967296,\"pids\":512,\"wall_ms\":600000},\"user\":"    \
	"\"agent\"}"

/* The sentence of the design, word for word, by all three ways in. */
TEST(the_one_liner_is_printed_exactly)
{
	static const char *const flags[][2] = {
		{ "net", "deny" }, { "fs", "ephemeral:/work" }, { "creds", "none" }, { "cpu", "2" },
		{ "mem", "4g" },   { "pids", "512" },           { "wall", "10m" },
	};
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	for (size_t i = 0; i < COUNT(flags); i++)
		CHECK_INT(spec_flag(&s, flags[i][0], flags[i][1], &e), 0);
	check_printed(&s, ONE_LINER);
	takes("{\"net\":\"deny\",\"fs\":\"ephemeral:/work\",\"creds\":null,"
	      "\"limits\":{\"cpu\":2,\"mem\":\"4g\",\"pids\":512,\"wall\":\"10m\"}}",
	      ONE_LINER);
	takes_by(spec_yaml,
	         "net: deny\nfs: ephemeral:/work\ncreds: null\n"
	         "limits: {cpu: 2, mem: 4g, pids: 512, wall: 10m}\n",
	         ONE_LINER);
	takes(ONE_LINER, ONE_LINER);
}

TEST(an_empty_spec_prints_its_request)
{
	AUTO(spec_done) struct spec s;

	spec_init(&s);
	check_printed(&s, WITH_NET(DENY));
}

TEST(resolved_adds_the_defaults)
{
	AUTO(spec_done) struct spec s;

	spec_init(&s);
	spec_resolve(&s);
	check_printed(
	    &s, "{\"net\":{\"mode\":\"deny\"},\"fs\":[{\"kind\":\"ephemeral\",\"at\":\"/work\"}],"
		"\"creds\":[],\"limits\":{\"cpu\":2.0,\"mem\":4294967296,\"disk\":2147483648,"
		"\"inodes\":262144,\"pids\":512,\"output\":67108864,\"files\":65536},"
		"\"user\":\"agent\",\"image\":\"host\",\"backend\":\"native\","
		"\"profile\":\"default\",\"checkpoint\":\"on\"}");
	for (int i = 0; i < LIMIT_COUNT; i++)
		CHECK(!s.limits[i].named);
	CHECK(!s.profile_named);
	CHECK(s.resolved);
	CHECK_INT(s.limits[LIMIT_WALL].value, 0);
	CHECK_INT(s.limits[LIMIT_IDLE].value, 0);
	CHECK_INT(s.limits[LIMIT_IO].value, 0);
}

TEST(resolved_keeps_what_was_named)
{
	static const char *const flags[][2] = {
		{ "net", "allow" },      { "fs", "ephemeral:/x" }, { "creds", "github" },
		{ "user", "root" },      { "image", "dir:/r" },    { "profile", "rootful" },
		{ "checkpoint", "off" }, { "pids", "7" },
	};
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	for (size_t i = 0; i < COUNT(flags); i++)
		CHECK_INT(spec_flag(&s, flags[i][0], flags[i][1], &e), 0);
	spec_resolve(&s);
	CHECK_INT(s.net.mode, NET_ALLOW);
	CHECK_INT(s.fs.len, 1);
	CHECK_STR(s.fs.at[0].at, "/x");
	CHECK_INT(s.creds.len, 1);
	CHECK_STR(s.user, "root");
	CHECK_STR(s.image, "dir:/r");
	CHECK_STR(s.backend, "native");
	CHECK_INT(s.profile, PROFILE_ROOTFUL);
	CHECK(s.profile_named);
	CHECK_STR(s.checkpoint, "off");
	CHECK_INT(s.limits[LIMIT_PIDS].value, 7);
	CHECK(s.limits[LIMIT_PIDS].named);
	CHECK(!s.limits[LIMIT_MEM].named);
}

TEST(default_disk_follows_a_small_memory)
{
	static const struct {
		const char *mem;
		uint64_t disk;
	} rows[] = {
		{ "64m", 32ull << 20 },
		{ "1g", 512ull << 20 },
		{ "4g", 2ull << 30 },
		{ "64g", 2ull << 30 },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		spec_init(&s);
		CHECK_INT(spec_flag(&s, "mem", rows[i].mem, &e), 0);
		spec_resolve(&s);
		CHECK(s.limits[LIMIT_DISK].value == rows[i].disk);
		CHECK(!s.limits[LIMIT_DISK].named);
		CHECK_INT(spec_check(&s, &e), 0);
	}
}

TEST(yaml_for_people)
{
	static const char *const flags[][2] = {
		{ "net", "allow:example.org" },
		{ "fs", "ro:/opt/tc" },
		{ "creds", "gh=vault:gh-app" },
		{ "cpu", "1.5" },
		{ "mem", "4g" },
		{ "wall", "90s" },
		{ "user", "1000" },
		{ "env", "A=1" },
		{ "env", "B=a b" },
		{ "setup", "make\nmake test\n" },
	};
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	for (size_t i = 0; i < COUNT(flags); i++)
		CHECK_INT(spec_flag(&s, flags[i][0], flags[i][1], &e), 0);
	CHECK_INT(spec_print_yaml(&s, &out, &e), 0);
	CHECK_STR(str_text(&out), "net:\n"
	                          "  mode: list\n"
	                          "  allow:\n"
	                          "  - example.org\n"
	                          "fs:\n"
	                          "- kind: ro\n"
	                          "  src: /opt/tc\n"
	                          "  at: /opt/tc\n"
	                          "creds:\n"
	                          "- gh: vault:gh-app\n"
	                          "limits:\n"
	                          "  cpu: 1.5\n"
	                          "  mem: 4g\n"
	                          "  wall: 90s\n"
	                          "user: \"1000\"\n"
	                          "env:\n"
	                          "  A: \"1\"\n"
	                          "  B: a b\n"
	                          "setup:\n"
	                          "- |\n"
	                          "  make\n"
	                          "  make test\n");
}

TEST(a_spec_too_long_to_print_is_an_error)
{
	AUTO(str_done) struct str small = { .max = 100 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(str_done) struct str text = { .max = TEXT_MAX };
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	spec_resolve(&s);
	CHECK_INT(spec_print(&s, &small, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	while (text.len < 100000)
		str_add(&text, "x\n");
	for (int i = 0; i < 32; i++)
		CHECK_INT(spec_flag(&s, "setup", str_text(&text), &e), 0);
	CHECK_INT(spec_print(&s, &out, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
}

/* ---- printing, then parsing, is the identity ---- */

static uint32_t seed = 20240101;

static uint32_t pick(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static const struct {
	const char *flag, *values[10];
} choices[] = {
	{ "net",
	  { "deny", "allow", "allow:a.example.org", "allow:*.example.net:443,**",
	    "allow:preset:pip", "allow:set:Mirrors,one-label" } },
	{ "fs",
	  { "ephemeral:/work", "workspace:/w", "ro:/opt/tc", "ro:/a b:/c", "overlay:/s:/w\xc3\xb6",
	    "ephemeral:/123" } },
	{ "creds", { "none", "github", "npm=vault:npm-ro", "true", "1", "null" } },
	{ "cpu", { "2", "0.01", "0.1", "1.5", "4096", "3.333", "0.999", "7.001" } },
	{ "mem", { "4m", "4g", "5000001", "1024t" } },
	{ "disk", { "1m", "2m", "4194304" } },
	{ "inodes", { "64", "262144", "4294967296" } },
	{ "pids", { "1", "512", "4194304" } },
	{ "wall", { "1ms", "10m", "365d", "1500ms" } },
	{ "idle", { "1", "90s" } },
	{ "output", { "1k", "64m", "1t" } },
	{ "files", { "16", "1048576" } },
	{ "io", { "4k", "1t" } },
	{ "image", { "host", "dir:/srv/root", "dir:/", "dir:/a: b" } },
	{ "backend", { "native" } },
	{ "workspace", { "task-1", "123", "true", "1e3", "0" } },
	{ "profile", { "default", "rootful" } },
	{ "env",
	  { "A=", "B=1", "C=true", "D=~", "E= x ", "F=a\nb\n", "G=\x01\x1b\x7f", "H=# no",
	    "I=\xc3\xa9\xf0\x9f\x98\x80", "J=\n\n" } },
	{ "user", { "agent", "root", "0", "0:0", "1000:1000" } },
	{ "services", { "redis-server", "- x", "'", "\"", "{a: b}" } },
	{ "setup", { "make", "a\nb", "  lead", "trail  ", "a:\tb", "\n", "|", "*x" } },
	{ "checkpoint", { "on", "off" } },
	{ "allow-weaker", { "mem", "net", "pids", "fs" } },
};

static void check_round_trip(const struct spec *s)
{
	AUTO(str_done) struct str json = { .max = TEXT_MAX };
	AUTO(str_done) struct str yaml = { .max = TEXT_MAX };
	AUTO(spec_done) struct spec from_json, from_yaml;
	struct err e = { 0 };

	spec_init(&from_json);
	spec_init(&from_yaml);
	CHECK_INT(spec_print(s, &json, &e), 0);
	CHECK_INT(spec_print_yaml(s, &yaml, &e), 0);
	if (spec_json(&from_json, json.data, json.len, &e) < 0 ||
	    spec_yaml(&from_yaml, yaml.data, yaml.len, &e) < 0) {
		printf("# %s\n", json.data);
		CHECK_STR(e.msg, "");
	}
	check_printed(&from_json, json.data);
	check_printed(&from_yaml, json.data);
}

TEST(printing_then_parsing_is_the_identity)
{
	for (int round = 0; round < 3000; round++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		spec_init(&s);
		for (uint32_t n = pick(16); n > 0; n--) {
			size_t row = pick(COUNT(choices));
			const char *value = NULL;

			while (!value)
				value = choices[row].values[pick(COUNT(choices[row].values))];
			if (spec_flag(&s, choices[row].flag, value, &e) < 0)
				CHECK_STR(e.msg, "");
		}
		check_round_trip(&s);
		spec_resolve(&s);
		check_round_trip(&s);
	}
}
