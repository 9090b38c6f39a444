#include "cli/registry.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "cli/registry-internal.h"
#include "cli/toml.h"
#include "io/program.h"
#include "spec/netdoc.h"

#define ANSWER_MS 20000 /* a client that takes longer is not asked further */
#define ANSWER_MAX (64u << 10)

/* ---- files --------------------------------------------------------------------------- */

/* Empty when there is none, or it cannot be read: then it says nothing to its client either. */
static void read_file(const char *path, struct str *out)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char buf[16384];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0 && !out->overflow)
		str_addn(out, buf, (size_t)n);
	if (out->overflow)
		str_clear(out);
}

struct path {
	char text[PATH_TEXT_MAX];
};

/* The value of a variable, or HOME and what is below it by default; "" without either. */
static struct path place(const char *variable, const char *below_home, const char *name)
{
	const char *dir = variable ? getenv(variable) : NULL, *home = getenv("HOME");
	struct path p = { "" };

	if (dir && dir[0] == '/')
		snprintf(p.text, sizeof p.text, "%s%s", dir, name);
	else if (home && home[0] == '/')
		snprintf(p.text, sizeof p.text, "%s%s%s", home, below_home, name);
	return p;
}

/* ---- programs ------------------------------------------------------------------------ */

/* Is it below the folder that we were started in? Whatever lies there may be somebody else's. */
static bool is_of_project(const char *path)
{
	char cwd[PATH_MAX], real[PATH_MAX];
	size_t n = getcwd(cwd, sizeof cwd) ? strlen(cwd) : 0;

	if (!realpath(path, real) || n == 0)
		return true;
	return n > 1 && strncmp(real, cwd, n) == 0 && (real[n] == '/' || !real[n]);
}

/* The folders of PATH that nobody but root and the caller may write. A client of ours may be a
 * script that looks for its interpreter there, so it gets the same list. */
static void safe_path(struct str *out)
{
	const char *path = getenv("PATH");
	struct arena a = { 0 };
	char *rest = arena_strdup(&a, path ? path : "/usr/local/bin:/usr/bin:/bin");

	while (rest) {
		const char *dir = strsep(&rest, ":");

		if (program_is_safe_dir(dir))
			str_addf(out, "%s%s", out->len ? ":" : "", dir);
	}
	arena_done(&a);
}

static bool find_program(const char *name, const char *path, char out[PATH_TEXT_MAX])
{
	struct arena a = { 0 };
	char *rest = arena_strdup(&a, path);
	bool is_found = false;

	while (rest && !is_found) {
		const char *dir = strsep(&rest, ":");
		struct path p;
		struct err e;

		snprintf(p.text, sizeof p.text, "%s/%s", dir, name);
		is_found = dir[0] && program_check(p.text, out, &e) == 0 && !is_of_project(out);
		/* By its own name: a client that is one of many names of a program needs it. */
		if (is_found)
			snprintf(out, PATH_TEXT_MAX, "%s", p.text);
	}
	arena_done(&a);
	return is_found;
}

/* In the child: nothing of a project, no terminal, and a client that does not begin to install
 * another version of itself. */
static _Noreturn void become_client(const char *program, const char *path, char *const *argv,
                                    int out_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (char **e = environ; *e;) { /* what `npm run` says comes from a project */
		char name[NAME_TEXT_MAX];

		snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
		if (strncmp(name, "npm_", 4) != 0 || unsetenv(name) < 0)
			e++;
	}
	if (setenv("PATH", path, 1) < 0 || setenv("GOTOOLCHAIN", "local", 1) < 0 ||
	    unsetenv("GOFLAGS") < 0 || chdir("/") < 0 || null_fd < 0 ||
	    dup2(null_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 ||
	    dup2(null_fd, STDERR_FILENO) < 0)
		_exit(125);
	execv(program, argv);
	_exit(125);
}

static bool read_answer(int fd, struct str *out)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char buf[4096];
	ssize_t n = -1;

	while (poll(&ready, 1, ANSWER_MS) > 0 && (n = read(fd, buf, sizeof buf)) > 0)
		str_addn(out, buf, (size_t)n);
	return n == 0 && !out->overflow;
}

/* What a client prints. False: it is not here, or it does not say. */
static bool ask_client(const char *const *argv, struct str *out)
{
	char program[PATH_TEXT_MAX];
	AUTO(str_done) struct str path = { .max = SPEC_BYTES_MAX };
	int fds[2], status = -1;

	safe_path(&path);
	if (!find_program(argv[0], str_text(&path), program) || pipe2(fds, O_CLOEXEC) < 0)
		return false;
	AUTO(fd_close) int read_fd = fds[0];
	AUTO(fd_close) int write_fd = fds[1];
	pid_t pid = fork();

	if (pid < 0)
		return false;
	if (pid == 0)
		become_client(program, str_text(&path), (char *const *)(uintptr_t)argv, write_fd);
	fd_close(&write_fd);
	bool is_whole = read_answer(read_fd, out);

	if (!is_whole)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return is_whole && status == 0;
}

/* ---- pip ----------------------------------------------------------------------------- */

static const char *const pip_sections[] = { "global", "download", "install", NULL };

/* Later files win, then the variable. */
static void pip_value(const char *key, const char *variable, struct str *out)
{
	const char *own = getenv("PIP_CONFIG_FILE"), *value = getenv(variable);
	bool is_none = own && strcmp(own, "/dev/null") == 0;
	struct path files[] = {
		{ "/etc/xdg/pip/pip.conf" },
		{ "/etc/pip.conf" },
		place(NULL, "/.pip", "/pip.conf"),
		place("XDG_CONFIG_HOME", "/.config", "/pip/pip.conf"),
		{ "" },
	};

	if (own && own[0] == '/')
		snprintf(files[COUNT(files) - 1].text, PATH_TEXT_MAX, "%s", own);
	for (size_t i = 0; i < COUNT(files) && !is_none; i++) {
		AUTO(str_done) struct str text = { .max = REGISTRY_FILE_MAX };

		if (files[i].text[0])
			read_file(files[i].text, &text);
		(void)ini_get(str_text(&text), pip_sections, key, out);
	}
	if (value && *value) {
		str_clear(out);
		str_add(out, value);
	}
}

/* pip's own constants: its index, and where the files of that one lie. Isolated: no module of
 * anybody else is loaded. */
static bool pip_default(struct str *index, struct str *files)
{
	static const char script[] = "from pip._internal.models.index import PyPI\n"
				     "print(PyPI.simple_url)\n"
				     "print('https://' + PyPI.file_storage_domain)";
	static const char *const argv[] = { "python3", "-I", "-c", script, NULL };
	AUTO(str_done) struct str answer = { .max = ANSWER_MAX };

	if (!ask_client(argv, &answer))
		return false;
	const char *line = str_text(&answer);
	size_t n = strcspn(line, "\n");

	str_addn(index, line, n);
	str_add(files, line[n] ? line + n + 1 : "");
	return true;
}

static int pip_hosts(struct hosts *h, struct err *e)
{
	AUTO(str_done) struct str index = { .max = REGISTRY_FILE_MAX };
	AUTO(str_done) struct str extra = { .max = REGISTRY_FILE_MAX };
	AUTO(str_done) struct str own = { .max = ANSWER_MAX };
	AUTO(str_done) struct str files = { .max = ANSWER_MAX };
	struct text_list list = { 0 };
	struct hosts usual = { h->arena, &list };

	pip_value("index-url", "PIP_INDEX_URL", &index);
	pip_value("extra-index-url", "PIP_EXTRA_INDEX_URL", &extra);
	bool is_known = pip_default(&own, &files);

	if (index.len == 0 && !is_known)
		return err_new(e, ERR_NOT_FOUND,
		               "no pip.conf names an index, and there is no pip to ask");
	int r = hosts_add_urls(h, index.len > 0 ? str_text(&index) : str_text(&own), e);

	if (r == 0)
		r = hosts_add_urls(&usual, str_text(&own), e);
	/* The files of its own index are elsewhere; a mirror has them itself. */
	if (r == 0 && list.len == 1 && hosts_has(h, list.at[0]))
		r = hosts_add_urls(h, str_text(&files), e);
	vec_done(&list);
	return r < 0 ? -1 : hosts_add_urls(h, str_text(&extra), e);
}

/* ---- npm ----------------------------------------------------------------------------- */

static int npm_add(struct hosts *h, const char *value, struct err *e)
{
	AUTO(str_done) struct str url = { .max = REGISTRY_FILE_MAX };

	if (!npmrc_expand(value, &url))
		return err_new(e, ERR_INVALID, "npmrc names a variable that is not set");
	return hosts_add_urls(h, str_text(&url), e);
}

static int npm_hosts(struct hosts *h, struct err *e)
{
	static const char *const argv[] = { "npm", "config", "get", "registry", NULL };
	static const struct {
		const char *variable, *below_home, *name;
	} files[] = {
		{ NULL, NULL, "/etc/npmrc" },
		{ NULL, NULL, "/usr/etc/npmrc" },
		{ NULL, NULL, "/usr/local/etc/npmrc" },
		{ "NPM_CONFIG_GLOBALCONFIG", NULL, "" },
		{ "NPM_CONFIG_USERCONFIG", "/.npmrc", "" },
	};
	AUTO(str_done) struct str registry = { .max = REGISTRY_FILE_MAX };
	const char *value = getenv("NPM_CONFIG_REGISTRY");

	for (size_t i = 0; i < COUNT(files); i++) {
		AUTO(str_done) struct str text = { .max = REGISTRY_FILE_MAX };
		AUTO(str_done) struct str scopes = { .max = REGISTRY_FILE_MAX };
		struct path p = { "" };

		if (files[i].below_home || getenv(files[i].variable ? files[i].variable : ""))
			p = place(files[i].variable, files[i].below_home, "");
		else if (!files[i].variable)
			snprintf(p.text, sizeof p.text, "%s", files[i].name);
		if (p.text[0])
			read_file(p.text, &text);
		(void)ini_get(str_text(&text), NULL, "registry", &registry);
		npmrc_scopes(str_text(&text), &scopes);
		if (npm_add(h, str_text(&scopes), e) < 0)
			return -1;
	}
	if (value && *value)
		return npm_add(h, value, e);
	if (registry.len == 0 && !ask_client(argv, &registry))
		return err_new(e, ERR_NOT_FOUND,
		               "no npmrc names a registry, and there is no npm to ask");
	return npm_add(h, str_text(&registry), e);
}

/* ---- cargo --------------------------------------------------------------------------- */

/* Where the packages of an index lie, as cargo noted when it last loaded that index:
 * registry/index/HOST-HASH/config.json. 1: found. */
static int cargo_downloads(struct hosts *h, const char *host, struct err *e)
{
	struct path dir = place("CARGO_HOME", "/.cargo", "/registry/index");
	DIR *d = opendir(dir.text);
	int found = 0;

	for (struct dirent *entry = d ? readdir(d) : NULL; entry && found >= 0;
	     entry = readdir(d)) {
		AUTO(str_done) struct str text = { .max = REGISTRY_FILE_MAX };
		struct path file;
		const char *dash = strrchr(entry->d_name, '-');

		if (!dash || (size_t)(dash - entry->d_name) != strlen(host) ||
		    strncmp(entry->d_name, host, strlen(host)) != 0)
			continue;
		snprintf(file.text, sizeof file.text, "%s/%s/config.json", dir.text, entry->d_name);
		read_file(file.text, &text);
		AUTO(json_decrefp) json_t *o = json_loads(str_text(&text), 0, NULL);
		const char *url = json_string_value(json_object_get(o, "dl"));

		if (url)
			found = hosts_add_urls(h, url, e) < 0 ? -1 : 1;
	}
	if (d)
		closedir(d);
	return found;
}

static int cargo_index(struct hosts *h, const char *url, bool is_default, struct err *e)
{
	size_t before = h->list->len;

	if (hosts_add_urls(h, url, e) < 0)
		return -1;
	for (size_t i = before; i < h->list->len; i++) {
		int r = cargo_downloads(h, h->list->at[i], e);

		if (r < 0)
			return -1;
		if (r == 0 && is_default && i == before)
			return err_new(
			    e, ERR_NOT_FOUND,
			    "cargo has not loaded its index here yet, so where the packages "
			    "lie is not known");
	}
	return 0;
}

/* The first URL in cargo's program that is of a sparse index: it has no option to print it. */
static bool cargo_default(struct str *out)
{
	static const char *const ask[] = { "rustc", "--print", "sysroot", NULL };
	static const char mark[] = "sparse+https://";
	AUTO(str_done) struct str root = { .max = PATH_TEXT_MAX };
	AUTO(str_done) struct str path = { .max = SPEC_BYTES_MAX };
	struct path program;
	struct stat st;

	safe_path(&path);
	if (ask_client(ask, &root)) /* cargo itself, not a front for several versions of it */
		snprintf(program.text, sizeof program.text, "%.*s/bin/cargo",
		         (int)strcspn(str_text(&root), "\n"), str_text(&root));
	if ((root.len == 0 || access(program.text, R_OK) < 0) &&
	    !find_program("cargo", str_text(&path), program.text))
		return false;
	AUTO(fd_close) int fd = open(program.text, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
		return false;
	char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	const char *at = bytes, *end = bytes + st.st_size;

	while (out->len == 0 && (at = memmem(at, (size_t)(end - at), mark, strlen(mark)))) {
		const char *host = at + strlen(mark);
		size_t n = 0;

		while (host + n < end && n < 253 && host[n] != '\0' &&
		       strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", host[n]))
			n++;
		if (host + n < end && host[n] == '/' && memchr(host, '.', n))
			str_addf(out, "https://%.*s/", (int)n, host);
		at = host;
	}
	munmap(bytes, (size_t)st.st_size);
	return out->len > 0;
}

/* What stands in for the default: its URL, or a source without one (a folder). NULL: nothing does.
 */
static const json_t *cargo_source(const json_t *config)
{
	const json_t *all = json_object_get(config, "source");
	const json_t *one = json_object_get(all, "crates-io");

	for (int i = 0; i < 8; i++) {
		const char *next = json_string_value(json_object_get(one, "replace-with"));

		if (!next)
			return i > 0 || json_object_get(one, "registry") ? one : NULL;
		one = json_object_get(all, next);
	}
	return NULL;
}

static int cargo_hosts(struct hosts *h, struct err *e)
{
	struct path files[] = { place("CARGO_HOME", "/.cargo", "/config"),
		                place("CARGO_HOME", "/.cargo", "/config.toml") };
	AUTO(json_decrefp) json_t *config = NULL;
	AUTO(str_done) struct str usual = { .max = NAME_TEXT_MAX };
	const char *name;
	json_t *one;

	for (size_t i = 0; i < COUNT(files); i++) {
		AUTO(str_done) struct str text = { .max = REGISTRY_FILE_MAX };

		read_file(files[i].text, &text);
		if (text.len == 0)
			continue;
		json_decref(config);
		config = NULL;
		if (toml_load(str_text(&text), text.len, &config, e) < 0)
			return err_wrap(e, "%s", files[i].text);
	}
	json_object_foreach(json_object_get(config, "registries"), name, one)
	{
		const char *index = json_string_value(json_object_get(one, "index"));

		if (index && cargo_index(h, index, false, e) < 0)
			return -1;
	}
	const json_t *source = cargo_source(config);
	const char *url = json_string_value(json_object_get(source, "registry"));

	if (source)
		return url ? cargo_index(h, url, false, e) : 0;
	if (!cargo_default(&usual))
		return err_new(e, ERR_NOT_FOUND,
		               "no config.toml of cargo names a registry, and there is no cargo");
	return cargo_index(h, str_text(&usual), true, e);
}

/* ---- Go ------------------------------------------------------------------------------ */

/* "sum.example.org", "sum.example.org+key", "name+key https://host" */
static int go_sums(struct hosts *h, const char *text, struct err *e)
{
	AUTO(str_done) struct str url = { .max = ANSWER_MAX };

	if (strstr(text, "://"))
		return hosts_add_urls(h, text, e);
	if (*text && strcmp(text, "off") != 0)
		str_addf(&url, "https://%.*s", (int)strcspn(text, "+ "), text);
	return hosts_add_urls(h, str_text(&url), e);
}

static bool go_by_file(struct str *proxy, struct str *sums)
{
	const char *own = getenv("GOENV"), *value = getenv("GOPROXY"), *sum = getenv("GOSUMDB");
	struct path file = place("XDG_CONFIG_HOME", "/.config", "/go/env");
	AUTO(str_done) struct str text = { .max = REGISTRY_FILE_MAX };

	if (own && *own)
		snprintf(file.text, sizeof file.text, "%s", own);
	read_file(file.text, &text);
	(void)env_file_get(str_text(&text), "GOPROXY", proxy);
	(void)env_file_get(str_text(&text), "GOSUMDB", sums);
	if (value && *value) {
		str_clear(proxy);
		str_add(proxy, value);
	}
	if (sum && *sum) {
		str_clear(sums);
		str_add(sums, sum);
	}
	return proxy->len > 0;
}

static int go_hosts(struct hosts *h, struct err *e)
{
	static const char *const argv[] = { "go", "env", "GOPROXY", "GOSUMDB", NULL };
	AUTO(str_done) struct str answer = { .max = ANSWER_MAX };
	AUTO(str_done) struct str proxy = { .max = REGISTRY_FILE_MAX };
	AUTO(str_done) struct str sums = { .max = REGISTRY_FILE_MAX };

	if (ask_client(argv, &answer)) {
		char *rest = answer.data;

		str_add(&proxy, strsep(&rest, "\n"));
		str_add(&sums, rest ? strsep(&rest, "\n") : "");
	} else if (!go_by_file(&proxy, &sums)) {
		return err_new(e, ERR_NOT_FOUND, "no GOPROXY is set, and there is no go to ask");
	}
	return hosts_add_urls(h, str_text(&proxy), e) < 0 ? -1 : go_sums(h, str_text(&sums), e);
}

/* ---- apt ----------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n > k && strcmp(text + n - k, end) == 0;
}

static int apt_hosts(struct hosts *h, struct err *e)
{
	static const char dir[] = "/etc/apt/sources.list.d";
	struct path file;
	AUTO(str_done) struct str urls = { .max = REGISTRY_FILE_MAX };
	AUTO(str_done) struct str first = { .max = REGISTRY_FILE_MAX };

	read_file("/etc/apt/sources.list", &first);
	apt_lines(str_text(&first), &urls);
	DIR *d = opendir(dir);

	for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
		AUTO(str_done) struct str text = { .max = REGISTRY_FILE_MAX };
		bool is_list = ends_with(entry->d_name, ".list");

		if (!is_list && !ends_with(entry->d_name, ".sources"))
			continue;
		snprintf(file.text, sizeof file.text, "%s/%s", dir, entry->d_name);
		read_file(file.text, &text);
		if (is_list)
			apt_lines(str_text(&text), &urls);
		else
			apt_fields(str_text(&text), &urls);
	}
	if (d)
		closedir(d);
	return hosts_add_urls(h, str_text(&urls), e);
}

/* ---- all ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*find)(struct hosts *h, struct err *e);
} clients[] = {
	{ "pip", pip_hosts }, { "npm", npm_hosts }, { "cargo", cargo_hosts },
	{ "go", go_hosts },   { "apt", apt_hosts },
};

int registry_hosts(const char *preset, struct arena *a, struct text_list *out, struct err *e)
{
	struct hosts h = { a, out };
	size_t i = 0;

	while (i < COUNT(clients) && strcmp(clients[i].name, preset) != 0)
		i++;
	if (i == COUNT(clients))
		return err_new(e, ERR_INVALID, "no such preset");
	size_t before = out->len;

	if (clients[i].find(&h, e) < 0)
		return -1;
	if (out->len == before)
		return err_new(e, ERR_NOT_FOUND, "the configuration of %s names no host", preset);
	return 0;
}

struct expansion {
	struct arena *arena;
};

static int expand(void *arg, enum net_entry kind, const char *name, struct text_list *out,
                  struct err *e)
{
	const struct expansion *x = arg;

	if (kind != NET_PRESET)
		return 0;
	return registry_hosts(name, x->arena, out, e) < 0 ? -1 : 1;
}

int registry_expand(struct spec *s, struct err *e)
{
	struct expansion x = { &s->arena };

	return net_expand(s, expand, &x, e);
}
