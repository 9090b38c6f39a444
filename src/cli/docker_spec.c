/*
 * docker_spec.c - the options of `docker run` as a spec. What a spec cannot say is refused with
 * what to type instead; nothing is taken for less than it means.
 */
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/docker-internal.h"
#include "wire/utf8.h"

#define BYTES_MAX 1e18 /* what a limit can say as an integer; the API knows the real ceilings */
#define CPUS_MAX 1e6

/* ---- pairs --------------------------------------------------------------------------- */

static int add_pair(json_t *into, const char *text, const char *what, bool is_env, struct err *e)
{
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : strlen(text);
	char name[NAME_TEXT_MAX];

	if (n == 0 || n >= sizeof name)
		return err_new(e, ERR_INVALID, "invalid %s: %.64s", what, text);
	snprintf(name, sizeof name, "%.*s", (int)n, text);
	const char *value = equals ? equals + 1 : is_env ? getenv(name) : "";

	if (!value)
		return 0; /* a variable that the caller has not */
	if (json_object_set_new(into, name, json_string(value)) < 0)
		return err_new(e, ERR_INVALID, "invalid %s: %s: not UTF-8", what, name);
	return 0;
}

static int add_file(json_t *into, const char *path, const char *what, bool is_env, struct err *e)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (!f)
		return err_sys(e, errno, "open %s", path);
	while (r == 0 && getline(&line, &size, f) >= 0) {
		const char *text = line + strspn(line, " \t");

		line[strcspn(line, "\r\n")] = '\0';
		if (*text && *text != '#')
			r = add_pair(into, text, what, is_env, e);
	}
	free(line);
	(void)fclose(f); /* it was only read */
	return r;
}

int docker_pairs(const struct flag_list *given, const struct flag_list *files, const char *what,
                 json_t *into, struct err *e)
{
	bool is_env = strcmp(what, "environment variable") == 0;

	for (size_t i = 0; i < files->len; i++)
		if (add_file(into, files->at[i], what, is_env, e) < 0)
			return -1;
	for (size_t i = 0; i < given->len; i++)
		if (add_pair(into, given->at[i], what, is_env, e) < 0)
			return -1;
	return 0;
}

int docker_env(const struct flag_list *env, const struct flag_list *files, json_t *into,
               struct err *e)
{
	return docker_pairs(env, files, "environment variable", into, e);
}

/* ---- folders ------------------------------------------------------------------------- */

struct mount {
	char kind[NAME_TEXT_MAX]; /* bind, volume, tmpfs */
	char src[PATH_TEXT_MAX], at[PATH_TEXT_MAX];
	bool is_read_only, is_overlay;
};

static void set_fs(json_t *fs, const char *kind, const char *src, const char *at)
{
	json_t *o = json_pack("{ss,ss}", "kind", kind, "at", at);

	if (src)
		json_object_set_new(o, "src", json_string(src));
	json_array_append_new(fs, o);
}

/* One workspace is what a sandbox can have; it is made when it is not there (docker_run.c). */
static int add_volume(const struct mount *m, json_t *body, json_t *fs, struct err *e)
{
	const char *before = text_of(body, "workspace");

	if (!m->src[0])
		set_fs(fs, "ephemeral", NULL, m->at);
	else if (m->is_read_only)
		return err_new(e, ERR_INVALID, "volume %s: read-only is not offered here", m->src);
	else if (*before)
		return err_new(e, ERR_INVALID,
		               "volume %s: a sandbox has one workspace, and that is %s", m->src,
		               before);
	else {
		json_object_set_new(body, "workspace", json_string(m->src));
		set_fs(fs, "workspace", NULL, m->at);
	}
	return 0;
}

static int add_bind(const struct mount *m, json_t *fs, struct err *e)
{
	char real[PATH_TEXT_MAX];

	if (!realpath(m->src, real))
		return err_new(e, ERR_INVALID, "bind source path does not exist: %s", m->src);
	if (!m->is_read_only && !m->is_overlay)
		return err_new(e, ERR_INVALID,
		               "-v %s:%s is refused: nothing inside writes to the host. Say "
		               "-v %s:%s:ro to read it, -v %s:%s:O to write to a copy that is "
		               "thrown away, or -v NAME:%s for a workspace",
		               m->src, m->at, m->src, m->at, m->src, m->at, m->at);
	set_fs(fs, m->is_overlay ? "overlay" : "ro", real, m->at);
	return 0;
}

static int add_mount(const struct mount *m, json_t *body, json_t *fs, struct err *e)
{
	if (m->at[0] != '/')
		return err_new(e, ERR_INVALID,
		               "invalid mount path: '%s' mount path must be absolute", m->at);
	if (strcmp(m->kind, "bind") == 0)
		return add_bind(m, fs, e);
	if (strcmp(m->kind, "volume") == 0)
		return add_volume(m, body, fs, e);
	if (strcmp(m->kind, "tmpfs") != 0)
		return err_new(e, ERR_INVALID, "mount type %s is not offered here", m->kind);
	if (strcmp(m->at, "/tmp") != 0 && strcmp(m->at, "/run") != 0) /* they are that already */
		set_fs(fs, "ephemeral", NULL, m->at);
	return 0;
}

/* SRC:AT[:ro,...], NAME:AT, AT */
static int take_volume(const char *text, json_t *body, json_t *fs, struct err *e)
{
	struct mount m = { .kind = "volume" };
	const char *at = strchr(text, ':'), *opts = at ? strchr(at + 1, ':') : NULL;

	if (strlen(text) >= PATH_TEXT_MAX)
		return err_new(e, ERR_INVALID, "invalid volume specification: too long");
	if (!at) {
		snprintf(m.at, sizeof m.at, "%s", text);
		return add_mount(&m, body, fs, e);
	}
	snprintf(m.src, sizeof m.src, "%.*s", (int)(at - text), text);
	snprintf(m.at, sizeof m.at, "%.*s", (int)strcspn(at + 1, ":"), at + 1);
	snprintf(m.kind, sizeof m.kind, "%s", strchr("/.~", m.src[0]) ? "bind" : "volume");
	for (; opts && *opts; opts += strcspn(opts, ",")) {
		size_t n = strcspn(++opts, ",");

		if (n == 2 && strncmp(opts, "ro", n) == 0)
			m.is_read_only = true;
		else if (n == 1 && *opts == 'O')
			m.is_overlay = true;
		else if (!(n == 2 && strncmp(opts, "rw", n) == 0) &&
		         !(n == 1 && strchr("zZ", *opts)))
			return err_new(e, ERR_INVALID, "invalid mode: %s", opts);
	}
	return add_mount(&m, body, fs, e);
}

static bool is_word(const char *text, size_t n, const char *word)
{
	return strlen(word) == n && strncmp(text, word, n) == 0;
}

/* type=bind,src=/a,dst=/b,readonly */
static int take_mount(const char *text, json_t *body, json_t *fs, struct err *e)
{
	struct mount m = { .kind = "volume" };
	static const struct {
		const char *name;
		size_t at, size;
	} keys[] = {
		{ "type", offsetof(struct mount, kind), NAME_TEXT_MAX },
		{ "source", offsetof(struct mount, src), PATH_TEXT_MAX },
		{ "src", offsetof(struct mount, src), PATH_TEXT_MAX },
		{ "target", offsetof(struct mount, at), PATH_TEXT_MAX },
		{ "destination", offsetof(struct mount, at), PATH_TEXT_MAX },
		{ "dst", offsetof(struct mount, at), PATH_TEXT_MAX },
	};

	while (*text) {
		size_t n = strcspn(text, ","), name = strcspn(text, "=,"), i = 0;

		while (i < COUNT(keys) && !is_word(text, name, keys[i].name))
			i++;
		if (i < COUNT(keys) && name < n)
			snprintf((char *)&m + keys[i].at, keys[i].size, "%.*s", (int)(n - name - 1),
			         text + name + 1);
		else if (is_word(text, name, "readonly") || is_word(text, name, "ro"))
			m.is_read_only = strncmp(text + name, "=false", 6) != 0;
		else
			return err_new(e, ERR_INVALID, "unexpected key '%.*s' in '%.*s'", (int)name,
			               text, (int)n, text);
		text += n + (text[n] == ',');
	}
	return add_mount(&m, body, fs, e);
}

static int take_folders(const struct docker_run *x, json_t *body, struct err *e)
{
	AUTO(json_decrefp) json_t *fs = json_array();

	for (size_t i = 0; i < x->volumes.len; i++)
		if (take_volume(x->volumes.at[i], body, fs, e) < 0)
			return -1;
	for (size_t i = 0; i < x->mounts.len; i++)
		if (take_mount(x->mounts.at[i], body, fs, e) < 0)
			return -1;
	for (size_t i = 0; i < x->tmpfs.len; i++) {
		struct mount m = { .kind = "tmpfs" };

		snprintf(m.at, sizeof m.at, "%.*s", (int)strcspn(x->tmpfs.at[i], ":"),
		         x->tmpfs.at[i]);
		if (add_mount(&m, body, fs, e) < 0)
			return -1;
	}
	if (json_array_size(fs) > 0)
		json_object_set(body, "fs", fs);
	return 0;
}

/* ---- limits -------------------------------------------------------------------------- */

/* 512m, 1G, 1073741824, 64mb, 100b: bytes. What is no number (nan) is in no range. */
static int take_bytes(const char *flag, const char *text, json_t *limits, const char *key,
                      struct err *e)
{
	static const char units[] = "bkmgt";
	char *end = NULL;
	double n = strtod(text, &end);
	const char *unit = *end ? strchr(units, *end | 0x20) : units;
	bool is_unit =
	    unit && *unit && strlen(end) <= 2 && (!*end || !end[1] || (end[1] | 0x20) == 'b');

	for (; is_unit && unit > units; unit--)
		n *= 1024;
	if (end == text || !is_unit || !(n >= 0 && n <= BYTES_MAX))
		return err_new(e, ERR_INVALID,
		               "invalid argument \"%s\" for \"%s\" flag: invalid size: '%s'", text,
		               flag, text);
	if (n >= 1)
		json_object_set_new(limits, key, json_integer((json_int_t)n));
	return 0;
}

static int take_ulimit(const char *text, json_t *limits, struct err *e)
{
	static const char files[] = "nofile=";
	char *end = NULL;

	if (strcmp(text, "core=0") == 0 || strcmp(text, "core=0:0") == 0)
		return 0; /* nothing inside leaves one */
	if (strncmp(text, files, strlen(files)) != 0)
		return err_new(
		    e, ERR_INVALID,
		    "--ulimit %s is refused: nofile can be set; memory and processes are "
		    "bounded by --memory and --pids-limit",
		    text);
	unsigned long n = strtoul(text + strlen(files), &end, 10);
	if (n == 0 || (*end && *end != ':'))
		return err_new(e, ERR_INVALID, "invalid argument \"%s\" for \"--ulimit\" flag",
		               text);
	json_object_set_new(limits, "files", json_integer((json_int_t)n));
	return 0;
}

static int bad_number(const char *text, const char *flag, struct err *e)
{
	return err_new(e, ERR_INVALID, "invalid argument \"%s\" for \"%s\" flag", text, flag);
}

static int take_cpus(const char *text, json_t *limits, struct err *e)
{
	char *end = NULL;
	double cpus = strtod(text, &end);

	if (end == text || *end || !(cpus >= 0 && cpus <= CPUS_MAX))
		return bad_number(text, "--cpus", e);
	if (cpus > 0)
		json_object_set_new(limits, "cpu", json_real(cpus));
	return 0;
}

static int take_pids(const char *text, json_t *limits, struct err *e)
{
	char *end = NULL;
	long pids = strtol(text, &end, 10);

	if (end == text || *end)
		return bad_number(text, "--pids-limit", e);
	if (pids > 0)
		json_object_set_new(limits, "pids", json_integer(pids));
	else
		docker_warn("--pids-limit: there is always one; the default is used");
	return 0;
}

static int take_storage(const char *text, json_t *limits, struct err *e)
{
	static const char size[] = "size=";

	if (strncmp(text, size, strlen(size)) != 0)
		return err_new(e, ERR_INVALID, "--storage-opt %s is refused: size=BYTES", text);
	return take_bytes("--storage-opt", text + strlen(size), limits, "disk", e);
}

static int take_limits(const struct docker_run *x, json_t *body, struct err *e)
{
	json_t *limits = json_object();

	json_object_set_new(body, "limits", limits);
	if ((x->memory && take_bytes("-m, --memory", x->memory, limits, "mem", e) < 0) ||
	    (x->cpus && take_cpus(x->cpus, limits, e) < 0) ||
	    (x->pids && take_pids(x->pids, limits, e) < 0))
		return -1;
	for (size_t i = 0; i < x->ulimits.len; i++)
		if (take_ulimit(x->ulimits.at[i], limits, e) < 0)
			return -1;
	for (size_t i = 0; i < x->storage.len; i++)
		if (take_storage(x->storage.at[i], limits, e) < 0)
			return -1;
	return 0;
}

/* ---- network ------------------------------------------------------------------------- */

/* `bridge` is what the caller's environment says it is, else nothing is reached. */
static int take_network(const struct docker_run *x, json_t *body, struct err *e)
{
	static const char *const rules[] = { "deny", "allow", "allow:", "preset:" };
	const char *net = x->network ? x->network : "default", *rule = getenv("CAISSON_DOCKER_NET");

	if (strcmp(net, "none") == 0)
		net = "deny";
	for (size_t i = 0; i < COUNT(rules); i++) {
		size_t n = strlen(rules[i]);

		if (rules[i][n - 1] == ':' ? strncmp(net, rules[i], n) != 0
		                           : strcmp(net, rules[i]) != 0)
			continue;
		json_object_set_new(body, "net", json_string(net));
		return 0;
	}
	if (strcmp(net, "host") == 0 || strncmp(net, "container:", 10) == 0)
		return err_new(e, ERR_INVALID,
		               "--network %s is refused: a sandbox has a network of its own; say "
		               "--network allow:HOST,HOST",
		               net);
	if (rule && *rule) {
		json_object_set_new(body, "net", json_string(rule));
		return 0;
	}
	if (x->network)
		fprintf(stderr,
		        "WARNING: --network %s: nothing is reached without a rule; say --network "
		        "allow:HOST,HOST or set CAISSON_DOCKER_NET\n",
		        net);
	return 0;
}

/* ---- rights -------------------------------------------------------------------------- */

static const char *const kept_caps[] = { "CHOWN", "DAC_OVERRIDE", "FOWNER",
	                                 "KILL",  "SETGID",       "SETUID" };

static bool is_kept(const char *cap)
{
	cap += strncasecmp(cap, "CAP_", 4) == 0 ? 4 : 0;
	for (size_t i = 0; i < COUNT(kept_caps); i++)
		if (strcasecmp(kept_caps[i], cap) == 0)
			return true;
	return false;
}

static bool is_all(const struct flag_list *caps)
{
	for (size_t i = 0; i < caps->len; i++)
		if (strcasecmp(caps->at[i], "ALL") == 0)
			return true;
	return false;
}

/* Root has six capabilities here, or with --cap-drop ALL none. */
static int take_rights(const struct docker_run *x, json_t *body, struct err *e)
{
	bool is_bare = is_all(&x->cap_drop);

	for (size_t i = 0; i < x->cap_add.len; i++)
		if (!is_kept(x->cap_add.at[i]) || is_bare)
			return err_new(e, ERR_INVALID,
			               "--cap-add %s is refused: root inside has CHOWN, "
			               "DAC_OVERRIDE, FOWNER, KILL, SETGID and SETUID, and nothing "
			               "else",
			               x->cap_add.at[i]);
	for (size_t i = 0; i < x->cap_drop.len && !is_bare; i++)
		if (is_kept(x->cap_drop.at[i]))
			return err_new(
			    e, ERR_INVALID,
			    "--cap-drop %s is refused: root inside has six capabilities, "
			    "or none: --cap-drop ALL",
			    x->cap_drop.at[i]);
	json_object_set_new(body, "user", json_string(x->user ? x->user : "root"));
	if (!is_bare && !x->is_read_only)
		json_object_set_new(body, "profile", json_string("rootful"));
	return 0;
}

static int check_platform(const struct docker_run *x, struct err *e)
{
	static const struct {
		const char *machine, *platform;
	} rows[] = { { "x86_64", "linux/amd64" }, { "aarch64", "linux/arm64" } };
	struct utsname u;

	if (!x->platform || uname(&u) < 0)
		return 0;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (strcmp(rows[i].machine, u.machine) == 0 &&
		    strncmp(x->platform, rows[i].platform, strlen(rows[i].platform)) == 0)
			return 0;
	return err_new(e, ERR_INVALID, "--platform %s is refused: this host is linux on %s",
	               x->platform, u.machine);
}

static bool is_text(const char *text)
{
	return !text || utf8_is(text, strlen(text));
}

/* JSON cannot say anything else, and what cannot be said would be left out. */
static int check_text(const struct docker_run *x, struct err *e)
{
	const char *const texts[] = { x->folder, x->user, x->network, x->entrypoint,
		                      x->stop_signal };
	const struct flag_list *const lists[] = { &x->volumes, &x->mounts, &x->tmpfs };
	bool is_good = true;

	for (size_t i = 0; i < COUNT(texts); i++)
		is_good &= is_text(texts[i]);
	for (size_t i = 0; i < COUNT(lists); i++)
		for (size_t k = 0; k < lists[i]->len; k++)
			is_good &= is_text(lists[i]->at[k]);
	return is_good ? 0 : err_new(e, ERR_INVALID, "an option is not UTF-8");
}

int docker_spec(const struct docker_run *x, json_t *body, struct err *e)
{
	json_t *env = json_object();

	json_object_set_new(body, "env", env);
	if (x->restart && strcmp(x->restart, "no") != 0)
		return err_new(
		    e, ERR_INVALID,
		    "--restart %s is refused: what has ended is started by `docker start`",
		    x->restart);
	if (x->is_publishing_all)
		return err_new(e, ERR_INVALID, "-P is refused: name the ports: -p 8080:80");
	if (check_text(x, e) < 0 || docker_env(&x->env, &x->env_files, env, e) < 0 ||
	    check_platform(x, e) < 0 || take_folders(x, body, e) < 0 ||
	    take_limits(x, body, e) < 0 || take_network(x, body, e) < 0 ||
	    take_rights(x, body, e) < 0)
		return -1;
	return 0;
}
