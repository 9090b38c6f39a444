#include "cli/registry-internal.h"

#include <ftw.h>
#include <sys/stat.h>

#include "test.h"

TEST(hosts_of_urls)
{
	static const struct {
		const char *text, *hosts, *message;
	} rows[] = {
		{ "https://A.Example.org/simple", "a.example.org", NULL },
		{ "https://a.test:443/ http://b.test:80", "a.test b.test", NULL },
		{ "http://a.test:443/", "a.test:443", NULL },
		{ "https://a.test:8443/x https://a.test:8443/y", "a.test:8443", NULL },
		{ "sparse+https://index.test/", "index.test", NULL },
		{ "mirror+http://m.test/list", "m.test", NULL },
		{ "https://user:pa@ss@a.test/x", "a.test", NULL },
		{ "https://proxy.test,direct", "proxy.test", NULL },
		{ "https://one.test|https://two.test|off", "one.test two.test", NULL },
		{ "file:///srv/x cdrom://disk/ direct off", "", NULL },
		{ "", "", NULL },
		{ "https://10.0.0.1/x", NULL, "by its address" },
		{ "https://[::1]:80/x", NULL, "by its address" },
		{ "https://0x7f.1/x", NULL, "by its address" },
		{ "https://a_b..test/x", NULL, "no proper host" },
		{ "https:///x", NULL, "no proper host" },
		{ "https://a.test:99999/x", NULL, "no proper host" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str got = { .max = 4096 };
		struct arena a = { 0 };
		struct text_list list = { 0 };
		struct hosts h = { &a, &list };
		struct err e = { 0 };
		int r = hosts_add_urls(&h, rows[i].text, &e);

		CHECK_INT(r, rows[i].message ? -1 : 0);
		if (r < 0)
			CHECK(strstr(e.msg, rows[i].message));
		for (size_t k = 0; r == 0 && k < list.len; k++)
			str_addf(&got, "%s%s", k ? " " : "", list.at[k]);
		if (r == 0)
			CHECK_STR(str_text(&got), rows[i].hosts);
		vec_done(&list);
		arena_done(&a);
	}
}

TEST(values_of_ini_files)
{
	static const char *const sections[] = { "global", "install", NULL };
	static const struct {
		const char *text, *value;
	} rows[] = {
		{ "[global]\nindex-url = https://a.test/\n", "https://a.test/" },
		{ "[global]\nindex_url: https://a.test/\n", "https://a.test/" },
		{ "index-url = x\n", NULL },
		{ "[other]\nindex-url = x\n", NULL },
		{ "[install]\nindex-url = b\n[global]\nindex-url = a\n", "b" },
		{ "[global]\n# index-url = a\n; index-url = b\n", NULL },
		{ "[global]\nindex-url =\n  a\n  b\nother = c\n", "\na\nb" },
		{ "[global]\nindex-url = a\nindex-url = b\n", "b" },
		{ "[ global ]\r\nIndex-URL = a \r\n", "a" },
		{ "", NULL },
		{ "[", NULL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };
		bool has = ini_get(rows[i].text, sections, "index-url", &out);

		CHECK_STR(has ? str_text(&out) : NULL, rows[i].value);
	}
}

TEST(npmrc)
{
	static const char text[] = "; a comment\n"
				   "registry=https://${HOST_OF_TEST}/npm/\n"
				   "@acme:registry = \"https://acme.test/\"\n"
				   "//acme.test/:_authToken=secret\n"
				   "@:registry-no=x\n";
	AUTO(str_done) struct str scopes = { .max = 4096 };
	AUTO(str_done) struct str registry = { .max = 4096 };
	AUTO(str_done) struct str url = { .max = 4096 };

	npmrc_scopes(text, &scopes);
	CHECK_STR(str_text(&scopes), "https://acme.test/\n");
	CHECK(ini_get(text, NULL, "registry", &registry));
	unsetenv("HOST_OF_TEST");
	CHECK(!npmrc_expand(str_text(&registry), &url));
	setenv("HOST_OF_TEST", "npm.test", 1);
	str_clear(&url);
	CHECK(npmrc_expand(str_text(&registry), &url));
	CHECK_STR(str_text(&url), "https://npm.test/npm/");
	str_clear(&url);
	CHECK(npmrc_expand("${", &url));
	CHECK_STR(str_text(&url), "${");
}

TEST(env_files)
{
	AUTO(str_done) struct str out = { .max = 4096 };

	CHECK(env_file_get("GOPROXYX=a\nGOPROXY=https://p.test,direct\n", "GOPROXY", &out));
	CHECK_STR(str_text(&out), "https://p.test,direct");
	CHECK(!env_file_get("# GOPROXY=x\n", "GOPROXY", &out));
}

TEST(sources_of_apt)
{
	static const struct {
		void (*read)(const char *text, struct str *out);
		const char *text, *urls;
	} rows[] = {
		{ apt_lines, "deb http://a.test/debian bookworm main\n", "http://a.test/debian\n" },
		{ apt_lines,
		  "deb-src [signed-by=/x arch=amd64] https://b.test/ x y\n# deb http://c.test x\n",
		  "https://b.test/\n" },
		{ apt_lines, "debian http://a.test x\ndeb\ndeb \n", "" },
		{ apt_fields, "Types: deb\nURIs: http://a.test/ http://b.test/\nSuites: x\n",
		  "http://a.test/ http://b.test/\n" },
		{ apt_fields,
		  "Enabled: no\nURIs: http://a.test/\n\nURIs:\n http://b.test/\n "
		  "http://c.test/\nSuites: x",
		  "\nhttp://b.test/\nhttp://c.test/\n" },
		{ apt_fields, "# URIs: http://a.test/\nDescription: see http://x.test\n", "" },
		{ apt_fields, "", "" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };

		rows[i].read(rows[i].text, &out);
		CHECK_STR(str_text(&out), rows[i].urls);
	}
}

/* ---- whole clients, in a home of the test's own ---- */

static char home[64];

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", home, name);
	for (char *p = path + strlen(home) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)!mkdir(path, 0700); /* or it is there */
		*p = '/';
	}
	f = fopen(path, "we");
	CHECK(f);
	fputs(text, f);
	fclose(f);
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void check(const char *preset, const char *want)
{
	AUTO(str_done) struct str got = { .max = 4096 };
	struct arena a = { 0 };
	struct text_list list = { 0 };
	struct err e = { 0 };

	if (registry_hosts(preset, &a, &list, &e) < 0)
		str_addf(&got, "failed: %s", e.msg);
	for (size_t i = 0; i < list.len; i++)
		str_addf(&got, "%s%s", i ? " " : "", list.at[i]);
	CHECK_STR(str_text(&got), want);
	vec_done(&list);
	arena_done(&a);
}

/* Without any client to ask: what is not configured is not known. */
TEST(configured_clients)
{
	static const char *const unset[] = { "PIP_INDEX_URL",
		                             "PIP_EXTRA_INDEX_URL",
		                             "XDG_CONFIG_HOME",
		                             "NPM_CONFIG_REGISTRY",
		                             "NPM_CONFIG_USERCONFIG",
		                             "NPM_CONFIG_GLOBALCONFIG",
		                             "CARGO_HOME",
		                             "GOPROXY",
		                             "GOSUMDB",
		                             "GOENV" };
	char text[256];

	snprintf(home, sizeof home, "/tmp/test-registry-XXXXXX");
	CHECK(mkdtemp(home));
	setenv("HOME", home, 1);
	setenv("PATH", home, 1);
	setenv("PIP_CONFIG_FILE", "/dev/null", 1); /* not that of the host */
	for (size_t i = 0; i < COUNT(unset); i++)
		unsetenv(unset[i]);
	check("pip", "failed: no pip.conf names an index, and there is no pip to ask");
	check("cargo", "failed: no config.toml of cargo names a registry, and there is no cargo");
	check("go", "failed: no GOPROXY is set, and there is no go to ask");
	check("none", "failed: no such preset");

	snprintf(text, sizeof text, "%s/own.conf", home);
	put("own.conf", "[global]\nindex-url = https://t:secret@pip.test/simple\n"
	                "extra-index-url =\n https://more.test/\n https://pip.test:8443/\n");
	setenv("PIP_CONFIG_FILE", text, 1);
	check("pip", "pip.test more.test pip.test:8443");
	setenv("PIP_INDEX_URL", "https://env.test/", 1);
	check("pip", "env.test more.test pip.test:8443");

	put(".npmrc", "@a:registry=https://scope.test/\nregistry=https://npm.test/\n");
	check("npm", "scope.test npm.test");
	setenv("NPM_CONFIG_REGISTRY", "https://env.test/", 1);
	check("npm", "scope.test env.test");

	put(".cargo/config.toml", "[source.crates-io]\nreplace-with = 'mirror'\n[source.mirror]\n"
	                          "registry = \"sparse+https://cargo.test/index/\"\n"
	                          "[registries.own]\nindex = \"sparse+https://own.test/\"\n");
	check("cargo", "own.test cargo.test");
	put(".cargo/registry/index/cargo.test-0123456789abcdef/config.json",
	    "{\"dl\":\"https://files.cargo.test/crates\",\"api\":\"https://x.test\"}");
	check("cargo", "own.test cargo.test files.cargo.test");
	put(".cargo/config.toml", "[source.crates-io]\nreplace-with = 'v'\n[source.v]\n"
	                          "directory = 'vendor'\n");
	check("cargo", "failed: the configuration of cargo names no host");
	put(".cargo/config.toml", "[source.crates-io\n");
	snprintf(text, sizeof text,
	         "failed: %s/.cargo/config.toml: line 1: the name of a table does not end", home);
	check("cargo", text);

	put(".config/go/env", "GOPROXY=https://go.test,direct\nGOSUMDB=sum.test\n");
	check("go", "go.test sum.test");
	setenv("GOSUMDB", "off", 1);
	check("go", "go.test");

	CHECK_INT(nftw(home, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
}
