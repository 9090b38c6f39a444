#include "spec/opts.h"
#include "wire/pkgmeta.h"

static const char *const mode_words[] = {
	[NET_DENY] = "deny",
	[NET_ALLOW] = "allow",
	[NET_LIST] = "list",
	NULL,
};
const char *const http_methods[] = { "GET",   "HEAD",   "POST",    "PUT",
	                             "PATCH", "DELETE", "OPTIONS", NULL };

static int mode_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct net_spec *net = into;

	(void)in;
	if (!json_is_string(v))
		return wrong_type(o->type->wants, v, e);
	int mode = word_find(o->words, json_string_value(v), e);

	if (mode < 0)
		return -1;
	net->mode = (enum net_mode)mode;
	return 0;
}

static json_t *mode_get(const struct opt *o, const void *from)
{
	const struct net_spec *net = from;

	return json_string(o->words[net->mode]);
}

static const struct opt_type opt_mode = { .wants = "text", .set = mode_set, .get = mode_get };

/* ---- entries of allow, deny and ask ---- */

const char *const net_presets[] = { "pip", "npm", "cargo", "go", "apt", NULL };

static const char *const prefixes[] = { [NET_PRESET] = "preset:", [NET_SET] = "set:" };

enum net_entry net_entry_kind(const char *entry, const char **name)
{
	for (enum net_entry k = NET_PRESET; k <= NET_SET; k++) {
		size_t n = strlen(prefixes[k]);

		if (strncmp(entry, prefixes[k], n) == 0) {
			*name = entry + n;
			return k;
		}
	}
	*name = entry;
	return NET_HOST;
}

static bool is_preset(const char *word)
{
	for (size_t i = 0; net_presets[i]; i++)
		if (strcmp(word, net_presets[i]) == 0)
			return true;
	return false;
}

int check_entry(const struct opt *o, struct arena *a, const char *text, const char **out,
                struct err *e)
{
	const char *name = NULL, *unused = NULL;
	enum net_entry kind = net_entry_kind(text, &name);

	if (kind == NET_HOST) {
		if (check_host(o, a, text, &name, e) < 0)
			return -1;
		if (is_preset(name)) /* however it was written: what is printed is read again */
			return err_new(e, ERR_INVALID,
			               "\"%s\" would be a host of that name; did you mean "
			               "\"preset:%s\"?",
			               name, name);
		*out = name;
		return 0;
	}
	if (kind == NET_PRESET && word_find(net_presets, name, e) < 0)
		return -1;
	if (kind == NET_SET && check_name(o, a, name, &unused, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

/* "pip:example.org:8443": how its registry speaks, and the host. */
static int check_cached(const struct opt *o, struct arena *a, const char *text, const char **out,
                        struct err *e)
{
	size_t n = strcspn(text, ":");
	const char *host = NULL;

	if (!text[n] || pkg_find(text, n) == PKG_NONE)
		return err_new(e, ERR_INVALID,
		               "\"%s\" is none of pip:HOST, npm:HOST and cargo:HOST",
		               quote(text).text);
	if (check_host(o, a, text + n + 1, &host, e) < 0)
		return -1;
	char *whole = arena_alloc(a, n + strlen(host) + 2);

	snprintf(whole, n + strlen(host) + 2, "%.*s:%s", (int)n, text, host);
	*out = whole;
	return 0;
}

/* "npm:HOST" as above, or the hosts that a preset stands for. */
static int check_publish(const struct opt *o, struct arena *a, const char *text, const char **out,
                         struct err *e)
{
	const char *name = NULL;

	if (net_entry_kind(text, &name) != NET_PRESET || pkg_find(name, strlen(name)) == PKG_NONE)
		return check_cached(o, a, text, out, e);
	*out = arena_strdup(a, text);
	return 0;
}

/* ---- rate ---- */

int speed_parse(const char *text, uint64_t *out, struct err *e)
{
	AUTO(arena_done) struct arena a = { 0 };
	size_t len = strcspn(text, "/");
	struct err unused;

	if (strcmp(text + len, "/s") != 0 ||
	    size_parse(arena_strndup(&a, text, len), out, &unused) < 0 || *out < SPEED_MIN ||
	    *out > SPEED_MAX)
		return err_new(e, ERR_INVALID,
		               "\"%s\" is not a speed such as 500k/s or 1m/s (from 1k/s to 1t/s)",
		               quote(text).text);
	return 0;
}

/* "200/m": so many per second, minute or hour. */
static int check_rate(const struct opt *o, struct arena *a, const char *text, const char **out,
                      struct err *e)
{
	uint64_t n = 0;
	size_t len = strcspn(text, "/");
	const char *per = text + len;

	(void)o;
	if (!*per || !per[1] || per[2] || !strchr("smh", per[1]) ||
	    unit_count.parse(arena_strndup(a, text, len), &n, e) < 0 || n == 0 || n > UINT32_MAX)
		return err_new(e, ERR_INVALID, "\"%s\" is not a rate such as 200/m (s, m or h)",
		               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

static int check_bytes(const struct opt *o, struct arena *a, const char *text, const char **out,
                       struct err *e)
{
	uint64_t n = 0;

	(void)o;
	if (size_parse(text, &n, e) < 0)
		return -1;
	if (n == 0 || n > INT64_MAX)
		return err_new(e, ERR_INVALID, "\"%s\" is too %s", quote(text).text,
		               n ? "large" : "small, the least is 1");
	*out = arena_strdup(a, text);
	return 0;
}

static int rate_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct text_pair pair = { .key = o->key };
	char number[24];
	const char *text = scalar_text(v, number);

	if (!text)
		return wrong_type(o->type->wants, v, e);
	if (o->check(o, in->arena, text, &pair.value, e) < 0)
		return -1;
	return pair_add(in, o, into, pair, e);
}

static const struct opt_type opt_rate = { .wants = "text", .set = rate_set };

/* "1m/s": so many bytes in a second. */
static int check_speed(const struct opt *o, struct arena *a, const char *text, const char **out,
                       struct err *e)
{
	uint64_t n = 0;

	(void)o;
	if (speed_parse(text, &n, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

/* clang-format off */
static const struct opt rate_rows[] = {
	{ .key = "connections", .type = &opt_rate, .check = check_rate,
	  .forms = "`200/m` (per s, m or h)", .help = "new connections in that time" },
	{ .key = "bytes_up", .type = &opt_rate, .check = check_bytes,
	  .forms = "bytes or a size: `1g`", .help = "sent in the life of the sandbox" },
	{ .key = "bytes_down", .type = &opt_rate, .check = check_bytes,
	  .forms = "bytes or a size: `1g`", .help = "received in the life of the sandbox" },
	{ .key = "up", .type = &opt_rate, .check = check_speed,
	  .forms = "a size per second: `1m/s`", .help = "how fast it sends, all connections together" },
	{ .key = "down", .type = &opt_rate, .check = check_speed,
	  .forms = "a size per second: `1m/s`", .help = "how fast it receives, all connections together" },
};
/* clang-format on */
const struct opt_table rate_table = { rate_rows, COUNT(rate_rows) };

static const struct opt_type opt_rates = {
	.wants = "an object",
	.set = members_set,
	.get = map_get,
};

/* ---- http ---- */

/* What no request that is let through has: it would be a rule that never applies. */
static bool has_odd_segment(const char *path)
{
	while (*path) {
		size_t n = strcspn(++path, "/");
		bool is_deep = n == 2 && memcmp(path, "**", 2) == 0;

		if ((n == 0 && path[n]) || (n == 1 && *path == '.'))
			return true;
		if (!is_deep && memmem(path, n, "**", 2))
			return true;
		path += n;
	}
	return false;
}

/* A path with * and **. Dots would let it mean another path upstream than here. */
int check_url_path(const struct opt *o, struct arena *a, const char *text, const char **out,
                   struct err *e)
{
	const char *unused = NULL;

	if (check_path(o, a, text, &unused, e) < 0)
		return -1;
	if (strpbrk(text, "?#%\\ "))
		return err_new(e, ERR_INVALID, "\"%s\" is not a path (no ? # %% \\ or space)",
		               quote(text).text);
	if (has_odd_segment(text))
		return err_new(e, ERR_INVALID,
		               "\"%s\" has an empty segment, a dot, or a ** beside other text",
		               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

/* clang-format off */
#define RULE(name) .offset = offsetof(struct http_rule, name)

static const struct opt http_rows[] = {
	{ .key = "host", .type = &opt_text, .check = check_host, RULE(host),
	  .forms = "host name", .help = "where the rule applies; TLS is terminated for it" },
	{ .key = "methods", .type = &opt_list, .check = check_word, .words = http_methods, RULE(methods),
	  .forms = "list: `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE`, `OPTIONS`",
	  .help = "allowed methods; all unless given" },
	{ .key = "paths", .type = &opt_list, .check = check_url_path, RULE(paths),
	  .forms = "list of paths; `*` is one segment, `**` any depth",
	  .help = "allowed paths; all unless given" },
	{ .key = "ask", .type = &opt_bool, RULE(is_ask),
	  .forms = "true, false", .help = "each such request waits until a person decides" },
};
/* clang-format on */
const struct opt_table http_table = { http_rows, COUNT(http_rows) };

static int http_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct net_spec *net = into;

	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	if (list_room(o, net->http.len, e) < 0)
		return -1;
	vec_push(&net->http, (struct http_rule){ 0 });
	struct http_rule *rule = &net->http.at[net->http.len - 1];

	if (members_apply(in, o->members, rule, v, e) < 0)
		return -1;
	if (!rule->host)
		return err_new(e, ERR_INVALID, "needs a host");
	if (rule->methods.len == 0 && rule->paths.len == 0 && !rule->is_ask)
		return err_new(e, ERR_INVALID,
		               "needs methods, paths or ask, else it restricts nothing");
	return 0;
}

static json_t *http_get(const struct opt *o, const void *from)
{
	const struct net_spec *net = from;

	if (net->http.len == 0)
		return NULL;
	json_t *array = json_array();

	for (size_t i = 0; i < net->http.len; i++)
		json_array_append_new(array, members_get(o->members, &net->http.at[i]));
	return array;
}

static const struct opt_type opt_http = {
	.wants = "a list of objects with host, methods, paths, ask",
	.items = true,
	.set = http_set,
	.get = http_get,
};

/* A file next to the spec: relative, and not out of its folder. */
int check_rules_file(const struct opt *o, struct arena *a, const char *text, const char **out,
                     struct err *e)
{
	const char *unused = NULL;

	if (text_plain(text, PATH_TEXT_MAX - 2, e) < 0)
		return -1;
	if (strncmp(text, "socket:", 7) == 0)
		return err_new(e, ERR_INVALID,
		               "\"%s\": sockets of the host are not carried; let the service "
		               "listen on a port, which the operator can open by net.grant",
		               quote(text).text);
	char *absolute = arena_alloc(a, strlen(text) + 2);

	snprintf(absolute, strlen(text) + 2, "/%s", text);
	if (text[0] == '/')
		return err_new(e, ERR_INVALID, "\"%s\" is absolute; write it relative to the spec",
		               quote(text).text);
	if (check_path(o, a, absolute, &unused, e) < 0)
		return -1;
	*out = unused + 1;
	return 0;
}

/* What it means is the mock's own grammar. */
int check_any(const struct opt *o, struct arena *a, const char *text, const char **out,
              struct err *e)
{
	(void)o;
	(void)e;
	*out = arena_strdup(a, text);
	return 0;
}

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct net_spec, name)

static const struct opt net_rows[] = {
	{ .key = "mode", .type = &opt_mode, .words = mode_words,
	  .forms = "`deny`, `allow`, `list`",
	  .help = "`list` when any rule is given, else `deny`" },
	{ .key = "allow", .type = &opt_list, .check = check_entry, FIELD(allow),
	  .forms = "list of hosts, `preset:pip`, `set:NAME`", .help = "may be reached" },
	{ .key = "deny", .type = &opt_list, .check = check_entry, FIELD(deny),
	  .forms = "as allow", .help = "wins over allow and ask" },
	{ .key = "ask", .type = &opt_list, .check = check_entry, FIELD(ask),
	  .forms = "as allow",
	  .help = "the connection waits until a person decides; no answer is no" },
	{ .key = "cidr", .type = &opt_list, .check = check_cidr, FIELD(cidr),
	  .forms = "list: `10.1.2.0/24:5432`", .help = "the only way to reach an address" },
	{ .key = "deny_cidr", .type = &opt_list, .check = check_cidr, FIELD(deny_cidr),
	  .forms = "as cidr",
	  .help = "addresses that nobody gets to, neither by themselves nor by a name" },
	{ .key = "headers", .type = &opt_list, .check = check_header, FIELD(headers),
	  .forms = "list: `api.example.org X-Client: agent`",
	  .help = "said in every request to that host, instead of what the client says; TLS is "
		  "terminated there; allows nothing. What is secret belongs into `creds`" },
	{ .key = "mock", .type = &opt_map, .check_key = check_host, .check = check_rules_file,
	  FIELD(mock),
	  .forms = "object of host: file or folder",
	  .help = "answered from a rules file or a folder, never leaves" },
	{ .key = "mocks", .type = &opt_map, .check_key = check_rules_file, .check = check_any,
	  FIELD(mocks), .forms = "object of file: text",
	  .help = "what `mock` names: the CLI reads it from beside the spec; a folder is "
		  "`{\"files\": {\"a/b.json\": \"base64\"}}`" },
	{ .key = "http", .type = &opt_http, .members = &http_table,
	  .forms = "list of objects", .help = "methods and paths of a host" },
	{ .key = "publish", .type = &opt_list, .check = check_publish, FIELD(publish),
	  .forms = "list: `preset:npm`, `npm:HOST`; also `pip`, `cargo`",
	  .help = "what publishes there waits until a person decides, the rest is allowed: rules of `http` for that registry" },
	{ .key = "inspect", .type = &opt_list, .check = check_host, FIELD(inspect),
	  .forms = "list of hosts", .help = "TLS is terminated and requests are recorded; allows nothing" },
	{ .key = "tls_any", .type = &opt_list, .check = check_host, FIELD(tls_any),
	  .forms = "list of hosts", .help = "TLS needs no SNI there; allows nothing" },
	{ .key = "cache", .type = &opt_list, .check = check_cached, FIELD(cache),
	  .forms = "list: `pip:HOST`, `npm:HOST`, `cargo:HOST`",
	  .help = "their packages come by the cache; presets add theirs; allows nothing" },
	{ .key = "offline", .type = &opt_bool, FIELD(is_offline),
	  .forms = "true, false", .help = "packages only, and only from the cache" },
	{ .key = "rate", .type = &opt_rates, .members = &rate_table, FIELD(rate),
	  .forms = "object", .help = "how much" },
};
/* clang-format on */
const struct opt_table net_table = { net_rows, COUNT(net_rows) };

/* ---- net as a whole ---- */

void net_clear(struct net_spec *n)
{
	for (size_t i = 0; i < n->http.len; i++) {
		vec_done(&n->http.at[i].methods);
		vec_done(&n->http.at[i].paths);
	}
	vec_done(&n->http);
	vec_done(&n->allow);
	vec_done(&n->deny);
	vec_done(&n->ask);
	vec_done(&n->cidr);
	vec_done(&n->deny_cidr);
	vec_done(&n->headers);
	vec_done(&n->inspect);
	vec_done(&n->tls_any);
	vec_done(&n->cache);
	vec_done(&n->mock);
	vec_done(&n->mocks);
	vec_done(&n->rate);
	vec_done(&n->publish);
	n->is_offline = false;
	n->mode = NET_DENY;
}

bool spec_reads_tls(const struct spec *s)
{
	const struct net_spec *n = &s->net;

	return n->http.len > 0 || n->publish.len > 0 || n->inspect.len > 0 || n->mock.len > 0 ||
	       n->cache.len > 0 || n->headers.len > 0 || s->creds.len > 0;
}

/* "denny", "alow:example.org", "example.org": a slip must never become a rule. */
static int bad_net_text(const char *text, struct arena *a, struct err *e)
{
	static const char *const words[] = { "deny", "allow", NULL };
	size_t len = strcspn(text, ":");
	const char *near = nearest(arena_strndup(a, text, len), words);
	const char *host = NULL;
	struct err unused;

	if (near)
		return err_new(e, ERR_INVALID, "\"%s\" is not valid; did you mean \"%s%s\"?",
		               quote(text).text, near, quote(text + len).text);
	if (strchr(text, '.') && check_host(NULL, a, text, &host, &unused) == 0)
		return err_new(e, ERR_INVALID, "\"%s\" needs the prefix: \"allow:%s\"", host, host);
	return err_new(e, ERR_INVALID,
	               "\"%s\" is not valid; valid: deny, allow, allow:HOST,HOST, preset:NAME",
	               quote(text).text);
}

static int allow_host(struct input *in, struct net_spec *net, const char *text, struct err *e)
{
	const struct opt *row = table_find(&net_table, "allow");
	const char *host = NULL;

	if (list_room(row, net->allow.len, e) < 0 || row->check(row, in->arena, text, &host, e) < 0)
		return -1;
	vec_push(&net->allow, host);
	return 0;
}

static int net_set_text(struct input *in, struct net_spec *net, const char *text, struct err *e)
{
	const char *prefix = "allow:", *name = NULL;
	bool is_deny = strcmp(text, "deny") == 0;

	if (is_deny || strcmp(text, "allow") == 0) {
		net_clear(net);
		net->mode = is_deny ? NET_DENY : NET_ALLOW;
		return 0;
	}
	bool is_allow = strncmp(text, prefix, strlen(prefix)) == 0;

	if (!is_allow && net_entry_kind(text, &name) == NET_HOST)
		return bad_net_text(text, in->arena, e);
	char *rest = arena_strdup(in->arena, is_allow ? text + strlen(prefix) : text);

	net->mode = NET_LIST;
	while (rest)
		if (allow_host(in, net, strsep(&rest, ","), e) < 0)
			return -1;
	return 0;
}

/* The rules of an object must say one thing. */
static int net_settle(struct net_spec *net, bool has_mode, struct err *e)
{
	bool reaches = net->allow.len || net->ask.len || net->cidr.len || net->mock.len ||
	               net->http.len || net->publish.len;
	bool any = reaches || net->deny.len || net->deny_cidr.len || net->headers.len ||
	           net->rate.len || net->inspect.len || net->tls_any.len || net->cache.len ||
	           net->is_offline;

	if (!has_mode)
		net->mode = any ? NET_LIST : NET_DENY;
	if (net->mode == NET_DENY && any)
		return err_new(e, ERR_INVALID,
		               "mode \"deny\" has no rules; did you mean \"list\"?");
	if (net->mode == NET_ALLOW && (net->allow.len || net->ask.len))
		return err_new(e, ERR_INVALID,
		               "mode \"allow\" allows every host; for %s use mode \"list\"",
		               net->allow.len ? "allow" : "ask");
	if (net->mode == NET_LIST && any && !reaches)
		return err_new(
		    e, ERR_INVALID,
		    "nothing is allowed; add allow, or mode \"allow\" for all other hosts");
	if (net->mode == NET_LIST && !any)
		net->mode = NET_DENY;
	return 0;
}

static int net_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct net_spec *net = opt_field(o, into);

	if (json_is_string(v))
		return net_set_text(in, net, json_string_value(v), e);
	if (json_is_array(v)) {
		net->mode = json_array_size(v) ? NET_LIST : NET_DENY;
		return opt_set(in, table_find(&net_table, "allow"), net, v, e);
	}
	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	if (members_apply(in, o->members, net, v, e) < 0)
		return -1;
	return net_settle(net, json_object_get(v, "mode"), e);
}

static json_t *net_get(const struct opt *o, const void *from)
{
	return members_get(o->members, opt_from(o, from));
}

static void net_type_clear(const struct opt *o, void *into)
{
	net_clear(opt_field(o, into));
}

const struct opt_type opt_net = {
	.wants = "\"deny\", \"allow\", \"allow:HOST,HOST\", a list of hosts or an object",
	.repeat = true,
	.set = net_set,
	.get = net_get,
	.clear = net_type_clear,
};
