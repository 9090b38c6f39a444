#include "spec/config.h"

#include <assert.h>
#include <ctype.h>

#include "spec/config-internal.h"
#include "spec/opts.h"
#include "wire/hostname.h"

#define CONFIG_SET_BYTES (64u << 10) /* of one set of hosts, with commas */

/* ---- types that only a config has ---- */

static int number_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	uint64_t *field = opt_field(o, into);

	(void)in;
	return number_parse(o, v, field, e);
}

static json_t *number_get(const struct opt *o, const void *from)
{
	const uint64_t *field = opt_from(o, from);
	char text[32];

	if (*field == 0)
		return NULL;
	o->limit.unit->print(*field, text);
	return yaml_plain(text, strlen(text));
}

static const struct opt_type opt_number = {
	.wants = "a number",
	.set = number_set,
	.get = number_get,
};

static json_t *split(struct arena *a, const char *text)
{
	json_t *list = json_array();
	char *rest = arena_strdup(a, text);

	while (rest)
		json_array_append_new(list, json_string(strsep(&rest, ",")));
	return list;
}

/* In a file an object; as a flag one member: NAME=VALUE, NAME.NAME=VALUE, NAME=VALUE,VALUE. */
static int group_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	const char *text = json_string_value(v);
	const char *equals = text ? strchr(text, '=') : NULL;

	if (in->document || !text)
		return members_set(in, o, into, v, e);
	if (!equals)
		return err_new(e, ERR_INVALID, "\"%s\" is not NAME=VALUE", quote(text).text);
	AUTO(json_decrefp) json_t *object = json_object();
	char *inner = arena_strndup(in->arena, text, (size_t)(equals - text));
	const char *name = strsep(&inner, ".");
	const struct opt *member = table_find(o->members, name);
	json_t *value =
	    member && member->type->items ? split(in->arena, equals + 1) : json_string(equals + 1);

	json_object_set_new(object, name, inner ? json_pack("{so}", inner, value) : value);
	return members_apply(in, o->members, opt_field(o, into), object, e);
}

static json_t *some(json_t *object)
{
	if (json_object_size(object) > 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *group_get(const struct opt *o, const void *from)
{
	return some(members_get(o->members, opt_from(o, from)));
}

static json_t *limits_get(const struct opt *o, const void *from)
{
	return some(limits_tree(opt_from(o, from)));
}

static const struct opt_type opt_group = {
	.wants = "an object",
	.repeat = true,
	.set = group_set,
	.get = group_get,
};
static const struct opt_type opt_limits = {
	.wants = "an object of limits",
	.repeat = true,
	.set = group_set,
	.get = limits_get,
};

/* ---- names that stand for several hosts: NAME: [HOST, ...] ---- */

static int set_hosts(struct input *in, const struct opt *o, struct str *out, const json_t *list,
                     struct err *e)
{
	const json_t *item;
	size_t i;

	if (json_array_size(list) == 0)
		return err_new(e, ERR_INVALID, "names no host");
	if (json_array_size(list) > CONFIG_SET_HOSTS_MAX)
		return err_new(e, ERR_LIMIT, "has more than %d hosts", CONFIG_SET_HOSTS_MAX);
	json_array_foreach(list, i, item)
	{
		const char *host = NULL;

		if (!json_is_string(item))
			return wrong_type("a list of hosts", item, e);
		if (check_host(o, in->arena, json_string_value(item), &host, e) < 0)
			return -1;
		str_addf(out, "%s%s", i ? "," : "", host);
	}
	return 0;
}

static int sets_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	const char *key;
	json_t *value;
	size_t i = 0;

	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	json_object_foreach(v, key, value)
	{
		AUTO(str_done) struct str hosts = { .max = CONFIG_SET_BYTES };
		struct text_pair pair = { 0 };

		input_at(in, v, i++);
		if (o->check_key(o, in->arena, key, &pair.key, e) < 0)
			return -1;
		AUTO(json_decrefp)
		json_t *list = json_is_string(value) ? split(in->arena, json_string_value(value))
		                                     : json_incref(value);

		if (!json_is_array(list))
			return wrong_type("a list of hosts", value, e);
		if (set_hosts(in, o, &hosts, list, e) < 0)
			return err_wrap(e, "%s", pair.key);
		pair.value = arena_strdup(in->arena, str_text(&hosts));
		if (pair_add(in, o, opt_field(o, into), pair, e) < 0)
			return -1;
	}
	return 0;
}

static json_t *sets_get(const struct opt *o, const void *from)
{
	const struct pair_list *sets = opt_from(o, from);
	json_t *object = json_object();
	struct arena a = { 0 };

	for (size_t i = 0; i < sets->len; i++)
		json_object_set_new(object, sets->at[i].key, split(&a, sets->at[i].value));
	arena_done(&a);
	return some(object);
}

static const struct opt_type opt_sets = {
	.wants = "an object of lists of hosts",
	.set = sets_set,
	.get = sets_get,
	.clear = map_clear,
};

#define CACHE_USUAL "10g"

uint64_t config_cache_bytes(const struct config_net *c)
{
	struct err unused;
	uint64_t bytes = 0;

	(void)!size_parse(c->cache ? c->cache : CACHE_USUAL, &bytes, &unused); /* off: 0 */
	return bytes;
}

/* ---- the table ---- */

#define SECOND_MS 1000ull
#define DAY_MS (86400 * SECOND_MS)
#define YEAR_MS (365 * DAY_MS)
#define COUNT_MAX 1000000000
#define BYTES_MAX (1ull << 60)
#define DURATION "seconds or a duration: `10m`"
#define WHOLE "a whole number"

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct config, name)
#define TLS(name) .offset = offsetof(struct config_tls, name)
#define QUOTA(id) .type = &opt_number, .offset = offsetof(struct quota, of[id])
#define BOUNDS(unit_, least, most_) .limit = { .unit = &(unit_), .min = (least), .max = (most_) }

static const struct opt tls_rows[] = {
	{ .key = "cert", .type = &opt_text, .check = check_path, TLS(cert),
	  .forms = "a path", .help = "the certificate and its chain, PEM" },
	{ .key = "key", .type = &opt_text, .check = check_path, TLS(key),
	  .forms = "a path", .help = "its key, PEM; the daemon's own id reads it" },
};
static const struct opt_table tls_table = { tls_rows, COUNT(tls_rows) };

#define NET(name) .offset = offsetof(struct config_net, name)

static const struct opt own_net_rows[] = {
	{ .key = "presets", .type = &opt_sets, .check_key = check_preset, NET(presets),
	  .forms = "object of lists of hosts",
	  .help = "what `preset:pip` and its like stand for, for callers that are not the CLI" },
	{ .key = "sets", .type = &opt_sets, .check_key = check_name, NET(sets),
	  .max = CONFIG_SETS_MAX, .forms = "object of lists of hosts",
	  .help = "what `set:NAME` stands for" },
	{ .key = "grant", .type = &opt_list, .check = check_cidr, NET(grant),
	  .max = CONFIG_GRANT_MAX, .forms = "list: `10.1.0.0/16`, `10.1.2.3/32:5432`",
	  .help = "special-purpose ranges that anybody may name in `cidr`, and names may resolve to" },
	{ .key = "builds", .type = &opt_list, .check = check_entry, NET(builds),
	  .max = CONFIG_GRANT_MAX, .forms = "list of hosts, `preset:npm`, `set:NAME`",
	  .help = "what the steps of a template may reach while it is built; nothing unless given" },
	{ .key = "proxy", .type = &opt_text, .check = check_proxy, NET(proxy),
	  .forms = "`http://HOST:PORT` or `socks5://HOST:PORT`",
	  .help = "the gate reaches everything through it" },
	{ .key = "ca", .type = &opt_text, .check = check_path, NET(ca), .forms = "a path",
	  .help = "certificates (PEM) that servers may have besides those the host trusts, where the gate reads TLS" },
	{ .key = "key", .type = &opt_text, .check = check_key, NET(key), .forms = "`env:NAME` or `keyring:NAME`",
	  .help = "where the key is that secrets are sealed to, 64 digits of base 16; a file of the state folder unless given" },
	{ .key = "cache", .type = &opt_text, .check = check_cache, NET(cache),
	  .forms = "a size, or `off`",
	  .help = "how much the package cache keeps; `10g` unless given, `off`: there is none" },
	{ .key = "ask", .type = &opt_number, NET(ask_ms), BOUNDS(unit_duration, SECOND_MS, DAY_MS),
	  .forms = DURATION, .help = "how long a connection waits for an answer; `5m` unless given" },
};
static const struct opt_table own_net_table = { own_net_rows, COUNT(own_net_rows) };

#define APPROVALS(name) .offset = offsetof(struct config_approvals, name)
static const struct opt approvals_rows[] = {
	{ .key = "webhook", .type = &opt_text, .check = check_webhook, APPROVALS(webhook),
	  .forms = "a URL: http or https, with the name of a host and without a query",
	  .help = "gets a POST for every question and every decision (docs/approvals.md)" },
	{ .key = "key", .type = &opt_text, .check = check_path, APPROVALS(key), .forms = "a path",
	  .help = "the file, closed to others, with the key that these are signed by" },
};
static const struct opt_table approvals_table = { approvals_rows, COUNT(approvals_rows) };

static const struct opt quota_rows[] = {
	[QUOTA_SANDBOXES] = { .key = "sandboxes", QUOTA(QUOTA_SANDBOXES), BOUNDS(unit_count, 1, COUNT_MAX),
	  .forms = WHOLE, .help = "sandboxes that are not gone" },
	[QUOTA_PROCESSES] = { .key = "processes", QUOTA(QUOTA_PROCESSES), BOUNDS(unit_count, 1, COUNT_MAX),
	  .forms = WHOLE, .help = "commands that run at once" },
	[QUOTA_CPU] = { .key = "cpu", QUOTA(QUOTA_CPU), BOUNDS(unit_cores, 10, COUNT_MAX),
	  .forms = "a number of cores", .help = "`limits.cpu` of the sandboxes that live, together" },
	[QUOTA_MEM] = { .key = "mem", QUOTA(QUOTA_MEM), BOUNDS(unit_size, 1u << 20, BYTES_MAX),
	  .forms = "a size: `16g`", .help = "`limits.mem` of those, together" },
	[QUOTA_PIDS] = { .key = "pids", QUOTA(QUOTA_PIDS), BOUNDS(unit_count, 1, COUNT_MAX),
	  .forms = WHOLE, .help = "`limits.pids` of those, together" },
	[QUOTA_DISK] = { .key = "disk", QUOTA(QUOTA_DISK), BOUNDS(unit_size, 1u << 20, BYTES_MAX),
	  .forms = "a size: `16g`", .help = "`limits.disk` of those that are not gone, together" },
	[QUOTA_WORKSPACES] = { .key = "workspaces", QUOTA(QUOTA_WORKSPACES), BOUNDS(unit_count, 1, COUNT_MAX),
	  .forms = WHOLE, .help = "workspaces that are not in the trash" },
};
static const struct opt_table quota_table = { quota_rows, COUNT(quota_rows) };
_Static_assert(COUNT(quota_rows) == QUOTA_COUNT, "a quota has no key");

#define STORE(name) .type = &opt_number, .offset = offsetof(struct config_store, name)

static const struct opt store_rows[] = {
	{ .key = "max", STORE(max), BOUNDS(unit_size, 1u << 20, BYTES_MAX), .forms = "a size: `100g`",
	  .help = "bytes of all workspaces, their points, layers and images; beyond it none is made" },
	{ .key = "high", STORE(high), BOUNDS(unit_count, 1, 100), .forms = "percent of `max`",
	  .help = "when it holds more, what can be had again is removed; `90` unless given" },
	{ .key = "low", STORE(low), BOUNDS(unit_count, 1, 100), .forms = "percent of `max`",
	  .help = "until it holds no more than this; `80` unless given" },
	{ .key = "workspace", STORE(workspace), BOUNDS(unit_size, 4u << 20, BYTES_MAX),
	  .forms = "a size: `10g`",
	  .help = "what one workspace may have besides what it began with" },
	{ .key = "layers", STORE(layers), BOUNDS(unit_count, 1, 120), .forms = WHOLE,
	  .help = "a workspace on more of them is put on one that shows the same, when nobody uses it; `64` unless given" },
};
static const struct opt_table store_table = { store_rows, COUNT(store_rows) };

static const struct opt rows[] = {
	{ .key = "state", .flag = "state", .arg = "DIR", .type = &opt_text, .check = check_path,
	  FIELD(state), .forms = "a path",
	  .help = "where it keeps its records" },
	{ .key = "run", .flag = "run", .arg = "DIR", .type = &opt_text, .check = check_path,
	  FIELD(run), .forms = "a path",
	  .help = "where its sockets are; DIR/api.sock is the API" },
	{ .key = "listen", .flag = "listen", .arg = "ADDRESS", .type = &opt_list,
	  .check = check_listen, FIELD(listen), .max = CONFIG_LISTEN_MAX,
	  .forms = "list of `unix:PATH` and `HOST:PORT`",
	  .help = "also here: unix:PATH (in a folder of its id) or HOST:PORT" },
	{ .key = "tls", .type = &opt_group, .members = &tls_table, FIELD(tls),
	  .forms = "object", .help = "TLS for HOST:PORT (`--tls CERT KEY`)" },
	{ .key = "host_paths", .flag = "host-path", .arg = "DIR", .type = &opt_list,
	  .check = check_source, FIELD(host_paths), .max = CONFIG_HOST_PATHS_MAX,
	  .forms = "list of paths",
	  .help = "a folder of the host that tokens may name" },
	{ .key = "service_id", .flag = "service-id", .arg = "N", .dflt = "1879047936",
	  .type = &opt_number, FIELD(service_id), BOUNDS(unit_count, 1, 0x6ffffffb),
	  .forms = WHOLE, .help = "uid and gid of the daemon when root starts it; the next four are of the gate, of the package cache, of the ledger and of the sender of webhooks" },
	{ .key = "idle_exit", .flag = "idle-exit", .arg = "TIME", .type = &opt_number,
	  FIELD(idle_exit_ms), BOUNDS(unit_duration, SECOND_MS, YEAR_MS), .forms = DURATION,
	  .help = "end after so long without sandbox and client" },
	{ .key = "ttl", .flag = "ttl", .arg = "TIME", .type = &opt_number, FIELD(ttl_ms),
	  BOUNDS(unit_duration, SECOND_MS, YEAR_MS), .forms = DURATION,
	  .help = "life of a sandbox that names none" },
	{ .key = "keep_records", .flag = "keep-records", .arg = "TIME", .dflt = "30d",
	  .type = &opt_number, FIELD(keep_records_ms), BOUNDS(unit_duration, SECOND_MS, 100 * YEAR_MS),
	  .forms = DURATION, .help = "ended processes and their logs" },
	{ .key = "keep_trash", .flag = "keep-trash", .arg = "TIME", .dflt = "1d",
	  .type = &opt_number, FIELD(keep_trash_ms), BOUNDS(unit_duration, SECOND_MS, 100 * YEAR_MS),
	  .forms = DURATION, .help = "workspaces that were removed" },
	{ .key = "keep_ledger", .flag = "keep-ledger", .arg = "SIZE", .dflt = "4g",
	  .type = &opt_number, FIELD(keep_ledger_bytes), BOUNDS(unit_size, 64u << 20, BYTES_MAX),
	  .forms = "a size: `16g`", .help = "of the ledger; then its oldest files go" },
	{ .key = "ledger_burst", .flag = "ledger-burst", .arg = "N", .dflt = "20000",
	  .type = &opt_number, FIELD(ledger_burst), BOUNDS(unit_count, 100, 1000000),
	  .forms = "a number", .help = "records that what runs in one sandbox may cause at once; then 50 a second, and sums" },
	{ .key = "process_events", .flag = "process-events", .arg = "on|off", .dflt = "on",
	  .type = &opt_text, .check = check_switch, FIELD(process_events), .forms = "`on` or `off`",
	  .help = "a record for every program that a command starts" },
	{ .key = "domain", .flag = "domain", .arg = "NAME[:PORT]", .type = &opt_text, .check = check_domain, FIELD(domain),
	  .forms = "`sandboxes.example.org`", .help = "clients of E2B find ports of a sandbox at PORT-ID.NAME, by TLS" },
	{ .key = "ports", .flag = "ports", .arg = "FIRST-LAST", .dflt = "20000-29999", .type = &opt_text,
	  .check = check_ports, FIELD(ports), .forms = "`20000-29999`, or `none`",
	  .help = "ports of 127.0.0.1 that a token may name for a forwarded port; the operator's socket any from 1024 on" },
	{ .key = "log", .flag = "log", .arg = "LEVEL", .dflt = "info", .type = &opt_text,
	  .check = check_level, FIELD(log), .forms = "`debug`, `info`, `warn` or `error`",
	  .help = "what it says on standard error; debug: every request" },
	{ .key = "net", .flag = "net", .arg = "NAME=VALUE", .type = &opt_group,
	  .members = &own_net_table, FIELD(net), .forms = "object",
	  .help = "what holds for the network of every sandbox" },
	{ .key = "approvals", .flag = "approvals", .arg = "NAME=VALUE", .type = &opt_group,
	  .members = &approvals_table, FIELD(approvals), .forms = "object",
	  .help = "who is told of what waits for a person" },
	{ .key = "secrets", .type = &opt_map, .check_key = check_name, .check = check_any, FIELD(secrets),
	  .max = CONFIG_SECRETS_MAX, .forms = "object of command lines",
	  .help = "what prints the value of a secret, for `caisson secret set NAME --from-config`; the caller's own shell runs it" },
	{ .key = "quota", .flag = "quota", .arg = "NAME=N", .type = &opt_group,
	  .members = &quota_table, FIELD(quota), .forms = "object",
	  .help = "what one tenant may have at once" },
	{ .key = "store", .flag = "store", .arg = "NAME=N", .type = &opt_group,
	  .members = &store_table, FIELD(store), .forms = "object",
	  .help = "how much workspaces may take, and when room is made" },
	{ .key = "defaults", .flag = "default", .arg = "LIMIT=N", .type = &opt_limits,
	  .members = &limit_table, FIELD(defaults), .forms = "object of limits",
	  .help = "limits of a sandbox that does not name them" },
	{ .key = "most", .flag = "most", .arg = "LIMIT=N", .type = &opt_limits,
	  .members = &limit_table, FIELD(most), .forms = "object of limits",
	  .help = "the most that a sandbox may ask for" },
};
/* clang-format on */
static const struct opt_table table = { rows, COUNT(rows) };

const char *quota_name(enum quota_id id)
{
	return quota_rows[id].key;
}

void quota_text(enum quota_id id, uint64_t value, char out[32])
{
	quota_rows[id].limit.unit->print(value, out);
}

void config_init(struct config *c)
{
	*c = (struct config){ 0 };
	spec_init(&c->defaults);
	spec_init(&c->most);
}

void config_done(struct config *c)
{
	vec_done(&c->listen);
	vec_done(&c->host_paths);
	vec_done(&c->net.presets);
	vec_done(&c->net.sets);
	vec_done(&c->net.grant);
	vec_done(&c->net.builds);
	vec_done(&c->secrets);
	spec_done(&c->defaults);
	spec_done(&c->most);
	arena_done(&c->arena);
}

/* ---- in ---- */

int config_yaml(struct config *c, const char *text, size_t len, struct err *e)
{
	static const struct doc_kind kind = { .table = &table,
		                              .noun = "the config",
		                              .keys = "listen, ttl, quota" };

	return doc_yaml(&kind, &c->arena, c, (struct span){ text, len }, e);
}

static const struct opt *row_by_flag(const char *flag)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].flag && strcmp(rows[i].flag, flag) == 0)
			return &rows[i];
	return NULL;
}

bool config_is_flag(const char *flag)
{
	return row_by_flag(flag) != NULL;
}

const char *config_nearest_flag(const char *name)
{
	const char *words[COUNT(rows) + 1];
	size_t n = 0;

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].flag)
			words[n++] = rows[i].flag;
	words[n] = NULL;
	return nearest(name, words);
}

int config_flag(struct config *c, const char *flag, const char *value, struct err *e)
{
	const struct opt *o =
	    strcmp(flag, "tls") == 0 ? table_find(&table, flag) : row_by_flag(flag);
	struct input in = { .arena = &c->arena };
	AUTO(json_decrefp) json_t *v = json_string(value);

	if (!o)
		return err_new(e, ERR_INVALID, "unknown flag --%s", quote(flag).text);
	if (!v)
		return err_new(e, ERR_INVALID, "--%s: the value is not UTF-8", flag);
	if (opt_set(&in, o, c, v, e) < 0)
		return in.path_len > 0 ? err_wrap(e, "--%s %s", flag, in.path)
		                       : err_wrap(e, "--%s", flag);
	return 0;
}

int config_add(struct config *c, const struct config *over, struct err *e)
{
	struct input in = { .arena = &c->arena, .document = true };
	AUTO(json_decrefp) json_t *said = members_get(&table, over);

	return members_apply(&in, &table, c, said, e);
}

int config_check(const struct config *c, struct err *e)
{
	if (!c->tls.cert != !c->tls.key)
		return err_new(e, ERR_INVALID,
		               "tls: a certificate needs its key, and a key its "
		               "certificate");
	if (!c->approvals.webhook != !c->approvals.key)
		return err_new(e, ERR_INVALID,
		               "approvals: a webhook needs a key to sign by, and a key a webhook");
	uint64_t high = c->store.high ? c->store.high : STORE_HIGH;
	uint64_t low = c->store.low ? c->store.low : STORE_LOW;

	if (low >= high)
		return err_new(e, ERR_INVALID, "store.low: %llu is not below store.high, %llu",
		               (unsigned long long)low, (unsigned long long)high);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		uint64_t value = c->defaults.limits[i].value, most = c->most.limits[i].value;
		char text[32], bound[32];

		if (!most || value <= most)
			continue;
		limit_text((enum limit_id)i, value, text);
		limit_text((enum limit_id)i, most, bound);
		return err_new(e, ERR_INVALID, "defaults.%s: \"%s\" is more than most.%s, %s",
		               limit_name((enum limit_id)i), text, limit_name((enum limit_id)i),
		               bound);
	}
	return 0;
}

void config_resolve(struct config *c)
{
	struct input in = { .arena = &c->arena };
	struct err e;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(json_decrefp) json_t *now = rows[i].type->get(&rows[i], c);
		AUTO(json_decrefp) json_t *dflt = rows[i].dflt ? json_string(rows[i].dflt) : NULL;

		if (now || !dflt)
			continue;
		int r = opt_set(&in, &rows[i], c, dflt, &e);

		assert(r == 0); /* the table is ours */
		(void)r;
	}
}

/* ---- out ---- */

/* A limit is printed in the row that has its flag, with a unit. */
static bool is_shown(const struct opt_table *t, const struct opt *o)
{
	return t != &limit_table || o->flag;
}

const char *config_key(size_t i, char out[64])
{
	for (size_t k = 0; k < COUNT(rows); k++) {
		const struct opt_table *inner = rows[k].members;

		if (!inner && i-- == 0)
			return rows[k].key;
		for (size_t m = 0; inner && m < inner->count; m++) {
			if (!is_shown(inner, &inner->at[m]) || i-- > 0)
				continue;
			snprintf(out, 64, "%s.%s", rows[k].key, inner->at[m].key);
			return out;
		}
	}
	return NULL;
}

static void add_value(struct str *out, const json_t *v)
{
	char number[24];
	const char *text = scalar_text(v, number), *key;
	json_t *item;
	size_t i = 0;

	if (json_is_real(v))
		str_addf(out, "%.10g", json_real_value(v));
	else if (text)
		str_add(out, text);
	json_array_foreach(v, i, item) str_addf(out, "%s%s", i ? "," : "", json_string_value(item));
	json_object_foreach((json_t *)(uintptr_t)v, key, item)
	{
		str_addf(out, "%s%s=", i++ ? " " : "", key);
		add_value(out, item);
	}
}

bool config_value(const struct config *c, const char *key, struct str *out)
{
	AUTO(json_decrefp) json_t *said = members_get(&table, c);
	const char *dot = strchr(key, '.');
	char first[64];

	snprintf(first, sizeof first, "%.*s", (int)strcspn(key, "."), key);
	const json_t *v = json_object_get(said, first);
	if (v && dot)
		v = json_object_get(v, dot + 1);
	if (v)
		add_value(out, v);
	return v != NULL;
}

struct texts {
	struct arena *arena;
	const char **at;
	size_t n;
};

static void add_text(struct texts *t, const struct opt *o, const char *name, const json_t *v)
{
	AUTO(str_done) struct str text = { .max = CONFIG_SET_BYTES + 128 };
	AUTO(str_done) struct str flag = { .max = 64 };

	assert(t->n + 2 <= CONFIG_TEXTS_MAX); /* lists have a ceiling, the rest is the table */
	str_addf(&flag, "--%s", o->flag);
	str_addf(&text, "%s%s", name, *name ? "=" : "");
	add_value(&text, v);
	t->at[t->n++] = arena_strdup(t->arena, str_text(&flag));
	t->at[t->n++] = arena_strdup(t->arena, str_text(&text));
}

/* A member of a group; one that is an object has a flag for each of its own: NAME.NAME=VALUE. */
static void add_member(struct texts *t, const struct opt *o, const char *name, json_t *v)
{
	const char *key;
	json_t *item;

	if (!json_is_object(v)) {
		add_text(t, o, name, v);
		return;
	}
	json_object_foreach(v, key, item)
	{
		AUTO(str_done) struct str both = { .max = 2ul * NAME_TEXT_MAX };

		str_addf(&both, "%s.%s", name, key);
		add_text(t, o, str_text(&both), item);
	}
}

size_t config_texts(struct config *c, const char *out[CONFIG_TEXTS_MAX])
{
	struct texts t = { &c->arena, out, 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(json_decrefp) json_t *v = rows[i].type->get(&rows[i], c);
		const char *key;
		json_t *item;
		size_t k;

		if (!v || !rows[i].flag)
			continue;
		json_object_foreach(v, key, item) add_member(&t, &rows[i], key, item);
		json_array_foreach(v, k, item) add_text(&t, &rows[i], "", item);
		if (!json_is_object(v) && !json_is_array(v))
			add_text(&t, &rows[i], "", v);
	}
	return t.n;
}

/* ---- documents ---- */

void config_help(struct str *out)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].flag)
			help_row(out, &rows[i]);
}

static const char intro[] =
    "# The config file\n"
    "\n"
    "<!-- Written by src/spec/config.c from the option tables. Do not edit. -->\n"
    "\n"
    "What an operator says about a daemon: `/etc/caisson/config.yaml` for root, for everybody "
    "else\n"
    "`$XDG_CONFIG_HOME/caisson/config.yaml` (`~/.config/caisson/config.yaml`). `caisson serve` "
    "reads "
    "it,\n"
    "and so does a command that starts a daemon on demand; `--config FILE` names another, "
    "`--config\n"
    "none` none. No file means no settings. It belongs to root or to whoever starts the daemon, "
    "and\n"
    "nobody else may write it: else it is refused. An unknown key and a value that does not fit "
    "are\n"
    "errors; the message names the line, the key and the nearest valid one.\n"
    "\n"
    "Flags win over the file: numbers one by one, lists whole. It is read at the start and not "
    "again.\n"
    "`caisson config show` prints what counts and where it comes from, `caisson config check FILE` "
    "only\n"
    "checks.\n"
    "\n"
    "```yaml\n"
    "listen: [\"127.0.0.1:7300\"]\n"
    "tls: {cert: /etc/caisson/cert.pem, key: /etc/caisson/key.pem}\n"
    "host_paths: [/srv/sources]\n"
    "ttl: 12h\n"
    "keep_records: 30d\n"
    "keep_trash: 1d\n"
    "log: info\n"
    "net: {sets: {docs: [docs.example.org]}, grant: [10.1.0.0/16], ask: 5m}\n"
    "quota: {sandboxes: 50, processes: 200, cpu: 16, mem: 64g, pids: 20000, disk: 32g}\n"
    "store: {max: 200g, high: 90, low: 80, workspace: 20g}\n"
    "defaults: {cpu: 1, mem: 2g}\n"
    "most: {cpu: 4, mem: 8g, wall: 8h}\n"
    "```\n"
    "\n"
    "## Keys\n"
    "\n";

static const char net_intro[] = "## net\n"
				"\n"
				"`caisson run --net preset:pip` is expanded by the CLI, from the "
				"configuration of the caller's own\n"
				"clients. The daemon never looks there: for callers of the API "
				"`presets` says what a preset stands\n"
				"for. A flag names one member: `--net "
				"sets.docs=docs.example.org,www.example.org`, `--net ask=2m`.\n";

static const char quota_intro[] =
    "## quota\n"
    "\n"
    "Sums over the sandboxes of one tenant: of one user on the UNIX socket, of one tenant of "
    "tokens.\n"
    "What would exceed one is refused with `quota` (429); `GET /v1/quota` shows bounds and use.\n";

static const char store_intro[] =
    "## store\n"
    "\n"
    "Workspaces on disk. Above `high` the daemon removes what can be had again, the least recently "
    "used\n"
    "first: checkouts that no workspace stands on, then the files of workspaces that are closed: "
    "of\n"
    "those in the trash, of those without changes, and last of those with changes whose last point "
    "is\n"
    "on disk, from which they are made again at the next use. Nothing is lost by it. What is "
    "pinned, in\n"
    "use or not saved stays. `caisson gc --dry-run` explains each decision. As root `workspace` is "
    "held\n"
    "by a volume for each new workspace; else one that was found to have more is refused with "
    "`quota`.\n";

static const char limits_text[] =
    "## defaults, most\n"
    "\n"
    "The keys are the limits of [the spec](spec.md). `defaults` counts where a spec names nothing, "
    "in\n"
    "place of the built-in default; like that one it is reported as not enforced where the host "
    "cannot.\n"
    "A spec that asks for more than `most` is refused with `invalid`; a limit that it does not "
    "name is\n"
    "lowered to it, also when there is none otherwise (`wall`, `idle`, `io`).\n";

void config_reference(struct str *out)
{
	str_add(out, intro);
	reference_keys(out, &table);
	reference_members(out, "## tls\n", &tls_table);
	reference_members(out, net_intro, &own_net_table);
	reference_members(out, "## approvals\n", &approvals_table);
	reference_members(out, quota_intro, &quota_table);
	reference_members(out, store_intro, &store_table);
	str_add(out, limits_text);
}
