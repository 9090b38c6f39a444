#include "cli/import.h"

#include <jansson.h>

#include "base/limits.h"
#include "cli/toml.h"

struct job {
	struct import *out;
	struct import_places at;
	json_t *spec; /* what it comes to */
};

static void note(struct job *j, const char *fmt, ...) PRINTF(2, 3);

static void note(struct job *j, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	vec_push(&j->out->notes, arena_strdup(&j->out->arena, text));
}

/* ---- the spec ------------------------------------------------------------------------ */

static json_t *net_list(struct job *j, const char *key)
{
	json_t *net = json_object_get(j->spec, "net");

	if (!json_is_object(net)) {
		net = json_object();
		json_object_set_new(j->spec, "net", net);
	}
	json_t *list = json_object_get(net, key);

	if (!list) {
		list = json_array();
		json_object_set_new(net, key, list);
	}
	return list;
}

static void add_text(json_t *list, const char *text)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) if (strcmp(json_string_value(v), text) == 0) return;
	json_array_append_new(list, json_string(text));
}

static void set_mode(struct job *j, const char *mode)
{
	json_object_set_new(j->spec, "net", json_pack("{ss}", "mode", mode));
}

/* "~/x", "./x", "x" and "/x"; NULL for a pattern. */
static const char *absolute(struct job *j, const char *path)
{
	AUTO(str_done) struct str out = { .max = PATH_TEXT_MAX };
	if (strpbrk(path, "*?["))
		return NULL;
	if (strcmp(path, "~") == 0 || strncmp(path, "~/", 2) == 0)
		str_addf(&out, "%s%s", j->at.home, path + 1);
	else if (path[0] == '/')
		str_add(&out, path);
	else if (strcmp(path, ".") == 0 || strcmp(path, "./") == 0)
		str_add(&out, j->at.cwd);
	else
		str_addf(&out, "%s/%s", j->at.cwd, strncmp(path, "./", 2) == 0 ? path + 2 : path);
	size_t n = out.len;

	while (n > 1 && out.data[n - 1] == '/')
		out.data[--n] = '\0';
	return out.overflow ? NULL : arena_strdup(&j->out->arena, str_text(&out));
}

/* The working folder is /work inside; everything else is where it is outside. */
static void add_mount(struct job *j, const char *kind, const char *path, const char *key)
{
	const char *src = absolute(j, path);
	json_t *list = json_object_get(j->spec, "fs"), *entry;
	size_t i;

	if (!list) {
		list = json_array();
		json_object_set_new(j->spec, "fs", list);
	}
	if (!src) {
		note(j, "%s: \"%s\" is a pattern; name the folders", key, path);
		return;
	}
	if (strcmp(src, "/tmp") == 0) { /* there is one inside, and it is writable */
		return;
	}
	bool is_cwd = strcmp(src, j->at.cwd) == 0;
	const char *at = is_cwd ? "/work" : src;

	json_array_foreach(list, i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "at")), at) != 0)
			continue;
		json_object_set_new(entry, "kind", json_string(kind));
		return;
	}
	json_array_append_new(list, json_pack("{ss,ss,ss}", "kind", kind, "src", src, "at", at));
}

/* ---- hosts --------------------------------------------------------------------------- */

/* Their *.x is any depth below x; Codex's **.x has x itself too. */
static void add_host(struct job *j, const char *list, const char *host, bool has_apex)
{
	char rule[NAME_TEXT_MAX];

	if (strcmp(host, "*") == 0 || strcmp(host, "**") == 0) {
		add_text(net_list(j, list), "**");
	} else if (strncmp(host, "**.", 3) == 0 && has_apex) {
		add_text(net_list(j, list), host + 3);
		add_text(net_list(j, list), host);
	} else if (strncmp(host, "*.", 2) == 0) {
		snprintf(rule, sizeof rule, "*%s", host);
		add_text(net_list(j, list), rule);
	} else {
		add_text(net_list(j, list), host);
	}
}

static bool is_local(const char *host)
{
	return strcmp(host, "localhost") == 0 || strncmp(host, "localhost:", 10) == 0 ||
	       strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static void take_host(struct job *j, const char *list, const char *host, const char *key)
{
	if (is_local(host))
		note(
		    j,
		    "%s: \"%s\" is the sandbox itself inside, and always reached; that of the host "
		    "needs a cidr of the operator",
		    key, host);
	else
		add_host(j, list, host, strcmp(j->out->format, "codex") == 0);
}

/* ---- srt ----------------------------------------------------------------------------- */

static void srt_hosts(struct job *j, const json_t *list, const char *into, const char *key)
{
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v) if (json_is_string(v))
	    take_host(j, into, json_string_value(v), key);
}

static void srt_network(struct job *j, const json_t *network)
{
	/* clang-format off */
	static const struct {
		const char *key, *why;
	} others[] = {
		{ "allowLocalBinding",   "holds by itself: a server on localhost inside always works" },
		{ "allowUnixSockets",    "no equivalent: sockets of the host are not reached" },
		{ "allowAllUnixSockets", "no equivalent: sockets of the host are not reached" },
		{ "httpProxyPort",       "not needed: no client has to know of the gate" },
		{ "socksProxyPort",      "not needed: no client has to know of the gate" },
		{ "parentProxy",         "is the operator's: net.proxy of the config" },
		{ "mitmProxy",           "is the operator's: net.proxy of the config" },
		{ "tlsTerminate",        "no equivalent: name hosts in net.inspect or net.http" },
		{ "deniedDomainReasons", "no equivalent: `caisson why` says which rule decides" },
	};
	/* clang-format on */
	const char *key;
	json_t *v;

	srt_hosts(j, json_object_get(network, "allowedDomains"), "allow", "network.allowedDomains");
	srt_hosts(j, json_object_get(network, "deniedDomains"), "deny", "network.deniedDomains");
	const json_t *net = json_object_get(j->spec, "net");

	if (!json_object_get(net, "allow")) {
		if (json_object_get(net, "deny"))
			note(j, "network.deniedDomains: holds by itself, since nothing is allowed");
		set_mode(j, "deny");
	}
	json_object_foreach((json_t *)(uintptr_t)network, key, v)
	{
		size_t i = 0;

		if (strcmp(key, "allowedDomains") == 0 || strcmp(key, "deniedDomains") == 0 ||
		    json_is_false(v) || (json_is_array(v) && json_array_size(v) == 0))
			continue;
		while (i < COUNT(others) && strcmp(others[i].key, key) != 0)
			i++;
		note(j, "network.%s: %s", key, i < COUNT(others) ? others[i].why : "no equivalent");
	}
}

static void srt_mounts(struct job *j, const json_t *list, const char *kind, const char *key)
{
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v) if (json_is_string(v))
	    add_mount(j, kind, json_string_value(v), key);
}

static void srt_filesystem(struct job *j, const json_t *fs)
{
	/* clang-format off */
	static const struct {
		const char *key, *why;
	} others[] = {
		{ "denyRead",  "holds by itself, outside of the folders in fs: nothing else of the host is there" },
		{ "denyWrite", "no equivalent; what is written stays in the sandbox, and the host's files are not changed" },
	};
	/* clang-format on */
	const char *key;
	json_t *list;

	srt_mounts(j, json_object_get(fs, "allowWrite"), "overlay", "filesystem.allowWrite");
	srt_mounts(j, json_object_get(fs, "allowRead"), "ro", "filesystem.allowRead");
	json_object_foreach((json_t *)(uintptr_t)fs, key, list)
	{
		size_t i = 0;

		if (strcmp(key, "allowWrite") == 0 || strcmp(key, "allowRead") == 0 ||
		    json_array_size(list) == 0)
			continue;
		while (i < COUNT(others) && strcmp(others[i].key, key) != 0)
			i++;
		note(j, "filesystem.%s: %s", key,
		     i < COUNT(others) ? others[i].why : "no equivalent");
	}
	if (json_object_get(j->spec, "fs"))
		note(j,
		     "filesystem.allowWrite: written to a layer of the sandbox's own, not to the "
		     "host's folder");
}

static void srt_rest(struct job *j, const json_t *root)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)root, key, v)
	{
		if (strcmp(key, "network") == 0 || strcmp(key, "filesystem") == 0 ||
		    strcmp(key, "enabled") == 0 || json_is_false(v) || json_is_null(v))
			continue;
		note(j, "%s: %s", key,
		     strcmp(key, "credentials") == 0
		         ? "no equivalent here: secrets are creds of a spec"
		         : "no equivalent");
	}
}

/* srt's own file, or the `sandbox` of an agent's settings. */
static const json_t *srt_root(const json_t *root)
{
	const json_t *inner = json_object_get(root, "sandbox");
	const json_t *at = json_is_object(inner) ? inner : root;

	return json_is_object(json_object_get(at, "network")) ||
	               json_is_object(json_object_get(at, "filesystem"))
	           ? at
	           : NULL;
}

static void srt_take(struct job *j, const json_t *root)
{
	srt_network(j, json_object_get(root, "network"));
	srt_filesystem(j, json_object_get(root, "filesystem"));
	srt_rest(j, root);
}

/* ---- Codex --------------------------------------------------------------------------- */

static void codex_sandbox(struct job *j, const json_t *root, const char *mode)
{
	const json_t *own = json_object_get(root, "sandbox_workspace_write"), *v;
	bool is_write = strcmp(mode, "workspace-write") == 0;
	size_t i;

	if (strcmp(mode, "danger-full-access") == 0) {
		note(j, "sandbox_mode: \"danger-full-access\" has no equivalent: it is no sandbox");
		set_mode(j, "deny");
		return;
	}
	set_mode(j, is_write && json_is_true(json_object_get(own, "network_access")) ? "allow"
	                                                                             : "deny");
	add_mount(j, is_write ? "overlay" : "ro", ".", "sandbox_mode");
	json_array_foreach(json_object_get(own, "writable_roots"), i,
	                   v) if (is_write && json_is_string(v))
	    add_mount(j, "overlay", json_string_value(v), "sandbox_workspace_write.writable_roots");
	if (json_is_true(json_object_get(own, "exclude_slash_tmp")) ||
	    json_is_true(json_object_get(own, "exclude_tmpdir_env_var")))
		note(j,
		     "sandbox_workspace_write.exclude_*: no equivalent: /tmp is the sandbox's own");
}

static void codex_files(struct job *j, const json_t *files)
{
	const char *path;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)files, path, v)
	{
		const char *word = json_string_value(v);

		if (path[0] == ':') /* :workspace_roots, :tmpdir */
			note(j, "filesystem.\"%s\": no equivalent; name the folder", path);
		else if (word && strcmp(word, "write") == 0)
			add_mount(j, "overlay", path, "filesystem");
		else if (word && strcmp(word, "read") == 0)
			add_mount(j, "ro", path, "filesystem");
		else if (!word)
			note(j, "filesystem.\"%s\": no equivalent", path);
	}
}

static void codex_limited(struct job *j, const char *host)
{
	json_t *rules = net_list(j, "http");

	json_array_append_new(
	    rules, json_pack("{ss,s[sss]}", "host", host, "methods", "GET", "HEAD", "OPTIONS"));
}

static void codex_network(struct job *j, const json_t *network)
{
	const json_t *domains = json_object_get(network, "domains");
	const char *mode = json_string_value(json_object_get(network, "mode"));
	bool is_limited = mode && strcmp(mode, "limited") == 0;
	const char *host;
	json_t *v;

	if (!json_is_true(json_object_get(network, "enabled"))) {
		set_mode(j, "deny");
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)domains, host, v)
	{
		const char *word = json_string_value(v);

		if (word && strcmp(word, "deny") == 0)
			take_host(j, "deny", host, "network.domains");
		else if (word && strcmp(word, "allow") == 0 && is_limited && !strchr(host, '*'))
			codex_limited(j, host);
		else if (word && strcmp(word, "allow") == 0)
			take_host(j, "allow", host, "network.domains");
	}
	if (json_object_size(domains) == 0)
		set_mode(j, "allow");
	else if (is_limited)
		note(j,
		     "network.mode: \"limited\" holds for hosts without a *: their TLS ends at the "
		     "gate");
	if (json_object_get(network, "hooks") || json_object_get(network, "mitm"))
		note(j, "network.hooks: no equivalent; net.http has methods and paths");
}

static void codex_profile(struct job *j, const json_t *root, const char *name)
{
	const json_t *p = json_object_get(json_object_get(root, "permissions"), name);

	if (strcmp(name, ":read-only") == 0 || strcmp(name, ":workspace") == 0) {
		codex_sandbox(j, root,
		              strcmp(name, ":workspace") == 0 ? "workspace-write" : "read-only");
		return;
	}
	if (!p) {
		note(j, "default_permissions: there is no profile \"%s\"", name);
		set_mode(j, "deny");
		return;
	}
	codex_files(j, json_object_get(p, "filesystem"));
	codex_network(j, json_object_get(p, "network"));
}

static void codex_take(struct job *j, const json_t *root)
{
	const char *profile = json_string_value(json_object_get(root, "profile"));
	const json_t *chosen = json_object_get(json_object_get(root, "profiles"), profile);
	const char *mode = json_string_value(json_object_get(root, "sandbox_mode"));
	const char *permissions = json_string_value(json_object_get(root, "default_permissions"));
	const char *own = json_string_value(json_object_get(chosen, "sandbox_mode"));

	if (own || mode || !permissions)
		codex_sandbox(j, root, own ? own : mode ? mode : "read-only");
	else
		codex_profile(j, root, permissions);
	if (json_object_get(root, "approval_policy"))
		note(j, "approval_policy: no equivalent; net.ask holds a connection until a person "
		        "decides");
	if (json_object_get(root, "shell_environment_policy"))
		note(j, "shell_environment_policy: not needed: nothing of the caller's environment "
		        "comes in, name variables in env");
	note(j, "what is not about the sandbox was not looked at");
}

/* ---- both ---------------------------------------------------------------------------- */

static bool is_toml(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".toml") == 0;
}

static int finish(struct job *j, struct spec *s, struct err *e)
{
	AUTO(freep) char *text = json_dumps(j->spec, JSON_COMPACT);

	return spec_json(s, text, strlen(text), e) < 0 ? err_wrap(e, "as a spec of ours") : 1;
}

int import_read(struct import *out, struct spec *s, const char *name, struct span text,
                struct import_places at, struct err *e)
{
	AUTO(json_decrefp) json_t *root = NULL;
	AUTO(json_decrefp) json_t *spec = json_object();
	struct job j = { .out = out, .at = at, .spec = spec };

	if (is_toml(name)) {
		if (toml_load(text.at, text.len, &root, e) < 0)
			return -1;
		out->format = "codex";
		codex_take(&j, root);
		return finish(&j, s, e);
	}
	root = json_loadb(text.at, text.len, 0, NULL);
	const json_t *own = srt_root(root);
	if (!own)
		return 0;
	out->format = "srt";
	srt_take(&j, own);
	return finish(&j, s, e);
}

void import_done(struct import *x)
{
	vec_done(&x->notes);
	arena_done(&x->arena);
}
