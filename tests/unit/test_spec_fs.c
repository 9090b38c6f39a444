#include "unit/test_spec.h"

#include "base/limits.h"

struct row {
	const char *text, *want;
};

#define EPHEMERAL(at) "{\"kind\":\"ephemeral\",\"at\":\"" at "\"}"

TEST(every_form_of_fs)
{
	static const struct row rows[] = {
		{ "{\"fs\":\"ephemeral:/work\"}", WITH_FS("[" EPHEMERAL("/work") "]") },
		{ "{\"fs\":\"workspace:/work\"}",
		  WITH_FS("[{\"kind\":\"workspace\",\"at\":\"/work\"}]") },
		{ "{\"fs\":\"ro:/opt/tc\"}",
		  WITH_FS("[{\"kind\":\"ro\",\"src\":\"/opt/tc\",\"at\":\"/opt/tc\"}]") },
		{ "{\"fs\":\"ro:/opt/tc:/at\"}",
		  WITH_FS("[{\"kind\":\"ro\",\"src\":\"/opt/tc\",\"at\":\"/at\"}]") },
		{ "{\"fs\":\"overlay:/src:/work\"}",
		  WITH_FS("[{\"kind\":\"overlay\",\"src\":\"/src\",\"at\":\"/work\"}]") },
		{ "{\"fs\":[]}", WITH_FS("[]") },
		{ "{\"fs\":[\"ephemeral:/a\",{\"at\":\"/b\",\"kind\":\"ephemeral\"}]}",
		  WITH_FS("[" EPHEMERAL("/a") "," EPHEMERAL("/b") "]") },
		{ "{\"fs\":{\"kind\":\"ro\",\"src\":\"/opt/a:b\"}}",
		  WITH_FS("[{\"kind\":\"ro\",\"src\":\"/opt/a:b\",\"at\":\"/opt/a:b\"}]") },
		{ "{\"fs\":{\"kind\":\"ro\",\"src\":\"/etc\",\"at\":\"/host-etc\"}}",
		  WITH_FS("[{\"kind\":\"ro\",\"src\":\"/etc\",\"at\":\"/host-etc\"}]") },
		{ "{\"fs\":\"ephemeral://work/./a//b/\"}",
		  WITH_FS("[" EPHEMERAL("/work/a/b") "]") },
		{ "{\"fs\":\"ephemeral:/work/...\"}", WITH_FS("[" EPHEMERAL("/work/...") "]") },
		{ "{\"fs\":\"ephemeral:/usrlocal\"}", WITH_FS("[" EPHEMERAL("/usrlocal") "]") },
		{ "{\"fs\":\"ephemeral:/run/caisson2\"}",
		  WITH_FS("[" EPHEMERAL("/run/caisson2") "]") },
		{ "{\"fs\":[\"ephemeral:/work\",\"ephemeral:/work/sub\"]}",
		  WITH_FS("[" EPHEMERAL("/work") "," EPHEMERAL("/work/sub") "]") },
		{ "{\"fs\":\"ephemeral:/w\xc3\xb6rk\"}",
		  WITH_FS("[" EPHEMERAL("/w\xc3\xb6rk") "]") },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		takes(rows[i].text, rows[i].want);
}

TEST(wrong_mounts)
{
	static const struct row rows[] = {
		{ "{\"fs\":\"ephemral:/work\"}",
		  "\"ephemral\" is not valid; did you mean \"ephemeral\"?" },
		{ "{\"fs\":\"rw:/work\"}", "did you mean \"ro\"?" },
		{ "{\"fs\":\"tmpfs:/work\"}", "valid: ephemeral, workspace, ro, overlay" },
		{ "{\"fs\":\"/work\"}", "write \"ephemeral:/work\"" },
		{ "{\"fs\":\"\"}", "is not valid" },
		{ "{\"fs\":\"ephemeral\"}", "does not have the form ephemeral:/work" },
		{ "{\"fs\":\"ephemeral:\"}", "is empty" },
		{ "{\"fs\":\"ephemeral:/a:/b\"}", "does not have the form ephemeral:/work" },
		{ "{\"fs\":\"ro\"}", "does not have the form ro:/opt/tc" },
		{ "{\"fs\":\"ro:/a:/b:/c\"}", "does not have the form ro:/opt/tc" },
		{ "{\"fs\":\"ro:/a:/b:/c:/d:/e\"}", "does not have the form ro:/opt/tc" },
		{ "{\"fs\":\"overlay:/src\"}", "does not have the form overlay:/src:/work" },
		{ "{\"fs\":\"overlay:/src:\"}", "is empty" },
		{ "{\"fs\":\"overlay::/work\"}", "is empty" },
		{ "{\"fs\":\"ephemeral:work\"}", "\"work\" is relative; write \"/work\"" },
		{ "{\"fs\":\"ephemeral:./work\"}", "is relative" },
		{ "{\"fs\":\"ro:src:/work\"}", "is relative" },
		{ "{\"fs\":\"ephemeral:/work/../etc\"}", "\"..\" is not allowed" },
		{ "{\"fs\":\"ephemeral:/..\"}", "\"..\" is not allowed" },
		{ "{\"fs\":\"overlay:/a/..:/work\"}", "\"..\" is not allowed" },
		{ "{\"fs\":\"ephemeral:/wo\\u0001rk\"}", "has a control byte" },
		{ "{\"fs\":\"ephemeral:/wo\\u007frk\"}", "has a control byte" },
		{ "{\"fs\":\"ephemeral:/wo\\u009brk\"}", "has a control byte" },
		{ "{\"fs\":[\"ephemeral:/a\",\"ro:/b:c\"]}", "fs[1]: \"c\" is relative" },
		{ "{\"fs\":null}", "fs: wants text such as \"ephemeral:/work\"" },
		{ "{\"fs\":1}", "fs: wants" },
		{ "{\"fs\":[[\"ephemeral:/a\"]]}", "fs[0]: wants" },
		{ "{\"fs\":{\"at\":\"/work\"}}", "needs a kind" },
		{ "{\"fs\":{\"kind\":\"ephemeral\"}}", "needs at" },
		{ "{\"fs\":{\"kind\":\"ephemeral\",\"at\":\"/a\",\"src\":\"/b\"}}", "has no src" },
		{ "{\"fs\":{\"kind\":\"workspace\",\"at\":\"/a\",\"src\":\"/b\"}}", "has no src" },
		{ "{\"fs\":{\"kind\":\"ro\",\"at\":\"/a\"}}", "needs src" },
		{ "{\"fs\":{\"kind\":\"overlay\",\"src\":\"/a\"}}", "needs at" },
		{ "{\"fs\":{\"kind\":\"overlay\",\"at\":\"/a\"}}", "needs src" },
		{ "{\"fs\":{\"kind\":\"rw\",\"at\":\"/a\"}}",
		  "fs.kind: \"rw\" is not valid; did you mean \"ro\"?" },
		{ "{\"fs\":{\"kind\":1,\"at\":\"/a\"}}", "fs.kind: wants text" },
		{ "{\"fs\":{\"kind\":\"ro\",\"source\":\"/a\"}}", "unknown key \"source\"" },
		{ "{\"fs\":{\"kind\":\"ro\",\"src\":\"a\"}}", "fs.src: \"a\" is relative" },
		{ "{\"fs\":{\"kind\":\"ephemeral\",\"at\":true}}", "fs.at: wants text, not true" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		refuses(rows[i].text, rows[i].want);
}

TEST(reserved_places)
{
	static const char *const inside[] = {
		"/proc", "/proc/1",  "/sys",    "/sys/fs/cgroup", "/dev",         "/dev/shm",
		"/etc",  "/etc/x",   "/usr",    "/usr/local/x",   "/bin",         "/sbin/x",
		"/lib",  "/lib32",   "/lib64",  "/libx32",        "/run/caisson", "/run/caisson/x",
		"/run",  "//proc//", "/./etc/",
	};
	static const char *const outside[] = { "/proc", "/proc/1/root", "/sys/kernel", "//proc/." };
	char text[128];

	flag_refuses("fs", "ephemeral:/", "\"/\" is reserved");
	flag_refuses("fs", "ephemeral://./", "\"/\" is reserved");
	flag_refuses("fs", "ro:/", "\"/\" is reserved");
	flag_refuses("fs", "ro:/etc", "is reserved");
	for (size_t i = 0; i < COUNT(inside); i++) {
		snprintf(text, sizeof text, "ephemeral:%s", inside[i]);
		flag_refuses("fs", text, "is reserved");
		snprintf(text, sizeof text, "ro:/opt/x:%s", inside[i]);
		flag_refuses("fs", text, "is reserved");
	}
	for (size_t i = 0; i < COUNT(outside); i++) {
		snprintf(text, sizeof text, "ro:%s:/x", outside[i]);
		flag_refuses("fs", text, "cannot be mounted");
		snprintf(text, sizeof text, "overlay:%s:/x", outside[i]);
		flag_refuses("fs", text, "cannot be mounted");
	}
}

TEST(two_mounts_at_one_path)
{
	static const char *const second[] = {
		"ephemeral:/work", "ephemeral:/work/",     "ephemeral://work",
		"ro:/opt:/work",   "overlay:/a:/./work/.", "workspace:/work",
	};
	for (size_t i = 0; i < COUNT(second); i++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		spec_init(&s);
		CHECK_INT(spec_flag(&s, "fs", "ephemeral:/other", &e), 0);
		CHECK_INT(spec_flag(&s, "fs", "ephemeral:/work", &e), 0);
		CHECK_INT(spec_check(&s, &e), 0);
		CHECK_INT(spec_flag(&s, "fs", second[i], &e), 0);
		CHECK_INT(spec_check(&s, &e), -1);
		CHECK_STR(e.msg, "fs[2].at: two mounts at \"/work\"; the first is fs[1]");
	}
}

TEST(flags_add_and_a_document_replaces)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };
	const char *doc = "{\"fs\":\"ephemeral:/c\"}";

	spec_init(&s);
	CHECK_INT(spec_flag(&s, "fs", "ephemeral:/a", &e), 0);
	CHECK_INT(spec_flag(&s, "fs", "ephemeral:/b", &e), 0);
	check_printed(&s, WITH_FS("[" EPHEMERAL("/a") "," EPHEMERAL("/b") "]"));
	CHECK_INT(spec_json(&s, doc, strlen(doc), &e), 0);
	CHECK_INT(spec_flag(&s, "fs", "ephemeral:/d", &e), 0);
	check_printed(&s, WITH_FS("[" EPHEMERAL("/c") "," EPHEMERAL("/d") "]"));
}

TEST(ceilings_of_fs)
{
	AUTO(spec_done) struct spec s;
	AUTO(str_done) struct str path = { .max = TEXT_MAX };
	struct err e = { 0 };
	char text[64];

	spec_init(&s);
	for (int i = 0; i < FS_ENTRIES_MAX; i++) {
		snprintf(text, sizeof text, "ephemeral:/m%d", i);
		CHECK_INT(spec_flag(&s, "fs", text, &e), 0);
	}
	CHECK_INT(spec_flag(&s, "fs", "ephemeral:/more", &e), -1);
	CHECK_STR(e.msg, "--fs: has more than 64 entries");
	str_add(&path, "ephemeral:");
	for (int i = 0; i < PATH_TEXT_MAX; i++)
		str_add(&path, i % 200 ? "a" : "/");
	flag_refuses("fs", str_text(&path), "has 4096 bytes, the most is 4095");
}
