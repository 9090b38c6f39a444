#include "cli/import.h"

#include "test.h"

/* What becomes of the net and fs of a spec, and whether a note has these words. */
static void check(const char *name, const char *text, const char *want, const char *noted)
{
	AUTO(str_done) struct str got = { .max = 65536 };
	AUTO(import_done) struct import x = { 0 };
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };
	bool is_noted = !noted;

	spec_init(&s);
	int r = import_read(&x, &s, name, span_of(text),
	                    (struct import_places){ "/home/me/app", "/home/me" }, &e);

	if (r < 0)
		CHECK_STR(e.msg, want);
	CHECK_INT(r, 1);
	CHECK_INT(spec_print(&s, &got, &e), 0);
	if (!strstr(str_text(&got), want))
		CHECK_STR(str_text(&got), want);
	for (size_t i = 0; i < x.notes.len; i++)
		is_noted |= noted && strstr(x.notes.at[i], noted);
	for (size_t i = 0; i < x.notes.len && !is_noted; i++)
		printf("# %s\n", x.notes.at[i]);
	CHECK(is_noted);
}

TEST(srt)
{
	static const struct {
		const char *text, *want, *noted;
	} rows[] = {
		{ "{\"network\":{\"allowedDomains\":[\"example.org\",\"*.example.net\"]}}",
		  "\"net\":{\"mode\":\"list\",\"allow\":[\"example.org\",\"**.example.net\"]}",
		  NULL },
		{ "{\"network\":{\"allowedDomains\":[\"example.org\"],\"deniedDomains\":[\"*."
		  "example.org\"]}}",
		  "\"deny\":[\"**.example.org\"]", NULL },
		{ "{\"network\":{\"allowedDomains\":[]}}", "\"net\":{\"mode\":\"deny\"}", NULL },
		{ "{\"network\":{\"deniedDomains\":[\"x.test\"]}}", "\"net\":{\"mode\":\"deny\"}",
		  "network.deniedDomains: holds by itself" },
		{ "{\"network\":{\"allowedDomains\":[\"localhost\"]}}",
		  "\"net\":{\"mode\":\"deny\"}", "\"localhost\" is the sandbox itself" },
		{ "{\"network\":{\"allowUnixSockets\":[\"/run/x\"]}}",
		  "\"net\":{\"mode\":\"deny\"}", "network.allowUnixSockets: no equivalent" },
		{ "{\"network\":{\"allowLocalBinding\":true,\"new\":1}}", "\"mode\":\"deny\"",
		  "network.new: no equivalent" },
		{ "{\"filesystem\":{\"allowWrite\":[\".\",\"/tmp\",\"~/cache\"],\"allowRead\":[\"/"
		  "opt/x/\"]}}",
		  "\"fs\":[{\"kind\":\"overlay\",\"src\":\"/home/me/app\",\"at\":\"/work\"},"
		  "{\"kind\":\"overlay\",\"src\":\"/home/me/cache\",\"at\":\"/home/me/cache\"},"
		  "{\"kind\":\"ro\",\"src\":\"/opt/x\",\"at\":\"/opt/x\"}]",
		  "written to a layer" },
		{ "{\"filesystem\":{\"allowWrite\":[\"./**\"],\"denyRead\":[\"~/.ssh\"]}}",
		  "\"fs\":[]", "\"./**\" is a pattern" },
		{ "{\"filesystem\":{\"denyRead\":[\"~/.ssh\"]}}", "\"mode\":\"deny\"",
		  "filesystem.denyRead: holds by itself" },
		{ "{\"filesystem\":{\"denyWrite\":[\".env\"]}}", "\"mode\":\"deny\"",
		  "filesystem.denyWrite: no equivalent" },
		{ "{\"sandbox\":{\"enabled\":true,\"network\":{\"allowedDomains\":[\"a.test\"]},"
		  "\"excludedCommands\":[\"git\"]},\"model\":\"x\"}",
		  "\"allow\":[\"a.test\"]", "excludedCommands: no equivalent" },
		{ "{\"network\":{},\"credentials\":{}}", "\"mode\":\"deny\"", "secrets are creds" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		check("settings.json", rows[i].text, rows[i].want, rows[i].noted);
}

TEST(codex)
{
	static const char in_app[] =
	    "{\"kind\":\"overlay\",\"src\":\"/home/me/app\",\"at\":\"/work\"}";
	static const struct {
		const char *text, *want, *noted;
	} rows[] = {
		{ "",
		  "\"net\":{\"mode\":\"deny\"},\"fs\":[{\"kind\":\"ro\",\"src\":\"/home/me/app\"",
		  NULL },
		{ "sandbox_mode = \"workspace-write\"\n", in_app, NULL },
		{ "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nnetwork_access = "
		  "true\n"
		  "writable_roots = ['/srv/a']\nexclude_slash_tmp = true",
		  "\"net\":{\"mode\":\"allow\"}", "exclude_*: no equivalent" },
		{ "sandbox_mode = \"read-only\"\n[sandbox_workspace_write]\nnetwork_access = "
		  "true\n",
		  "\"net\":{\"mode\":\"deny\"}", NULL },
		{ "sandbox_mode = 'danger-full-access'\napproval_policy = 'never'",
		  "\"mode\":\"deny\"", "it is no sandbox" },
		{ "profile = 'p'\nsandbox_mode = 'read-only'\n[profiles.p]\nsandbox_mode = "
		  "'workspace-write'",
		  in_app, NULL },
		{ "default_permissions = 'edit'\n[permissions.edit.filesystem]\n'.' = 'write'\n"
		  "'/opt' = 'read'\n'~/.ssh' = 'none'\n':tmpdir' = 'write'\n"
		  "[permissions.edit.network]\nenabled = true\n[permissions.edit.network.domains]\n"
		  "'a.test' = 'allow'\n'**.b.test' = 'allow'\n'*.c.test' = 'allow'\n'x.c.test' = "
		  "'deny'",
		  "\"net\":{\"mode\":\"list\",\"allow\":[\"a.test\",\"b.test\",\"**.b.test\",\"**."
		  "c.test\"],"
		  "\"deny\":[\"x.c.test\"]}",
		  "\":tmpdir\": no equivalent" },
		{ "default_permissions = 'p'\n[permissions.p.network]\nenabled = true\nmode = "
		  "'limited'\n"
		  "[permissions.p.network.domains]\n'a.test' = 'allow'",
		  "\"http\":[{\"host\":\"a.test\",\"methods\":[\"GET\",\"HEAD\",\"OPTIONS\"]}]",
		  "\"limited\" holds" },
		{ "default_permissions = 'p'\n[permissions.p.network]\nenabled = true",
		  "\"net\":{\"mode\":\"allow\"}", NULL },
		{ "default_permissions = 'none'", "\"mode\":\"deny\"", "there is no profile" },
		{ "default_permissions = ':workspace'", in_app, "was not looked at" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		check("config.toml", rows[i].text, rows[i].want, rows[i].noted);
}

TEST(others_are_not_taken)
{
	static const struct {
		const char *name, *text;
		int result;
	} rows[] = {
		{ "spec.json", "{\"net\":\"deny\"}", 0 },
		{ "spec.yaml", "net: deny", 0 },
		{ "x.json", "[]", 0 },
		{ "x.json", "{", 0 },
		{ "x.json", "{\"sandbox\":true}", 0 },
		{ "x.toml", "a = ", -1 },
		{ "x.json", "{\"network\":{\"allowedDomains\":[\"10.0.0.1\"]}}", -1 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(import_done) struct import x = { 0 };
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		spec_init(&s);
		CHECK_INT(import_read(&x, &s, rows[i].name, span_of(rows[i].text),
		                      (struct import_places){ "/a", "/b" }, &e),
		          rows[i].result);
	}
}
