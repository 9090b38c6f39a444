#include "wire/ledger_export.h"

#define OCSF_VERSION "1.3.0"
#define SEVERITY_INFORMATIONAL 1
#define SEVERITY_MEDIUM 3
#define DEVICE_VIRTUAL 6
#define OTLP_INFO 9
#define OTLP_WARN 13

enum class {
	CLASS_PROCESS = 1007,
	CLASS_ENTITY = 3004,
	CLASS_NETWORK = 4001,
	CLASS_HTTP = 4002,
	CLASS_DNS = 4003,
	CLASS_LIFECYCLE = 6002,
	CLASS_API = 6003,
};

/* clang-format off */
/* The first that the kind begins with. Activities as each class of OCSF numbers them. */
static const struct {
	const char *kind;
	enum class class;
	int activity;
} classes[] = {
	{ "exec.started",      CLASS_PROCESS,   1 },
	{ "process.started",   CLASS_PROCESS,   1 },
	{ "exec.",             CLASS_PROCESS,   2 },
	{ "net.connection",    CLASS_NETWORK,   1 },
	{ "net.request",       CLASS_HTTP,     99 },
	{ "net.lookup",        CLASS_DNS,       1 },
	{ "sandbox.created",   CLASS_ENTITY,    1 },
	{ "image.added",       CLASS_ENTITY,    1 },
	{ "repo.added",        CLASS_ENTITY,    1 },
	{ "token.made",        CLASS_ENTITY,    1 },
	{ "port.opened",       CLASS_ENTITY,    1 },
	{ "workspace.created", CLASS_ENTITY,    1 },
	{ "workspace.forked",  CLASS_ENTITY,    1 },
	{ "sandbox.gone",      CLASS_ENTITY,    4 },
	{ "workspace.removed", CLASS_ENTITY,    4 },
	{ "image.removed",     CLASS_ENTITY,    4 },
	{ "repo.removed",      CLASS_ENTITY,    4 },
	{ "token.revoked",     CLASS_ENTITY,    4 },
	{ "port.closed",       CLASS_ENTITY,    4 },
	{ "repo.",             CLASS_ENTITY,    3 },
	{ "workspace.applied", CLASS_API,       1 },
	{ "workspace.exported", CLASS_API,      2 },
	{ "run.collected",     CLASS_API,       2 },
	{ "sandbox.",          CLASS_ENTITY,    3 },
	{ "workspace.",        CLASS_ENTITY,    3 },
	{ "policy.",           CLASS_ENTITY,    3 },
	{ "secret.changed",    CLASS_ENTITY,    3 },
	{ "git.",              CLASS_API,       1 },
	{ "approval.asked",    CLASS_API,       1 },
	{ "approval.",         CLASS_API,       3 },
	{ "secret.",           CLASS_API,       2 },
	{ "daemon.stopped",    CLASS_LIFECYCLE, 4 },
	{ "daemon.",           CLASS_LIFECYCLE, 3 },
	{ "",                  CLASS_LIFECYCLE, 99 },
};
/* clang-format on */

static json_t *text_of(struct span s)
{
	return json_stringn(s.at ? s.at : "", s.len);
}

static bool is_denied(const json_t *data)
{
	const char *decision = json_string_value(json_object_get(data, "decision"));

	return decision && strstr(decision, "deny");
}

static void move(json_t *to, const char *name, json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	if (v)
		json_object_set(to, name, v);
}

/* Who: a person or a program that has a token, else the sandbox itself. */
static json_t *actor_of(const struct ledger_line *l)
{
	struct span who = l->actor.at ? l->actor : l->sandbox.at ? l->sandbox : span_of("caisson");

	return json_pack("{s{so}}", "user", "uid", text_of(who));
}

static void add_process(json_t *o, const struct ledger_line *l, json_t *data)
{
	json_t *p = json_pack("{so}", "uid", text_of(l->process));

	json_object_set_new(o, "actor", actor_of(l));
	json_object_set_new(
	    o, "device",
	    json_pack("{si,so}", "type_id", DEVICE_VIRTUAL, "uid", text_of(l->sandbox)));
	json_t *argv = json_object_get(data, "argv");
	AUTO(freep) char *line = argv ? json_dumps(argv, JSON_COMPACT) : NULL;

	if (line)
		json_object_set_new(p, "cmd_line", json_string(line));
	move(p, "cmd_line", data, "program");
	move(p, "working_directory", data, "cwd");
	json_object_set_new(o, "process", p);
	move(o, "exit_code", data, "exit_code");
}

/* "image" of "image.added" */
static size_t begin_of(struct span kind)
{
	const char *dot = memchr(kind.at, '.', kind.len);

	return dot ? (size_t)(dot - kind.at) : kind.len;
}

static void add_network(json_t *o, json_t *data)
{
	json_t *to = json_object(), *traffic = json_object();

	move(to, "hostname", data, "name");
	move(to, "ip", data, "real");
	move(to, "port", data, "port");
	json_object_set_new(o, "dst_endpoint", to);
	move(traffic, "bytes_out", data, "bytes_up");
	move(traffic, "bytes_in", data, "bytes_down");
	json_object_set_new(o, "traffic", traffic);
	json_object_set_new(o, "disposition_id", json_integer(is_denied(data) ? 2 : 1));
}

static void add_http(json_t *o, json_t *data)
{
	json_t *url = json_object(), *request = json_pack("{so}", "url", url);

	move(request, "http_method", data, "method");
	move(url, "path", data, "path");
	move(url, "hostname", data, "name");
	json_object_set_new(o, "http_request", request);
	if (json_object_get(data, "status"))
		json_object_set_new(o, "http_response",
		                    json_pack("{sO}", "code", json_object_get(data, "status")));
}

static void add_dns(json_t *o, json_t *data)
{
	json_t *query = json_object();

	move(query, "hostname", data, "name");
	json_object_set_new(o, "query", query);
}

static void add_entity(json_t *o, const struct ledger_line *l, json_t *data)
{
	struct span id = l->sandbox.at ? l->sandbox : l->workspace;
	json_t *entity = json_pack("{so}", "type", json_stringn(l->kind.at, begin_of(l->kind)));

	if (id.at)
		json_object_set_new(entity, "uid", text_of(id));
	move(entity, "name", data, "secret");
	move(entity, "name", data, "name");
	move(entity, "name", data, "repo");
	move(entity, "uid", data, "token");
	json_object_set_new(o, "entity", entity);
	json_object_set_new(o, "actor", actor_of(l));
}

static void add_api(json_t *o, const struct ledger_line *l, json_t *data)
{
	struct span place = l->sandbox.at ? l->sandbox : l->workspace;
	json_t *from = json_object(), *to = json_object();

	json_object_set_new(o, "actor", actor_of(l));
	json_object_set_new(o, "api", json_pack("{so}", "operation", text_of(l->kind)));
	json_object_set_new(from, "uid", text_of(place.at ? place : span_of("caisson")));
	json_object_set_new(o, "src_endpoint", from);
	move(to, "hostname", data, "host");
	json_object_set_new(o, "dst_endpoint", to);
}

static void add_app(json_t *o)
{
	json_object_set_new(o, "app",
	                    json_pack("{ss,ss}", "name", "Caisson", "vendor_name", "Caisson"));
}

static json_t *metadata(const struct ledger_line *l)
{
	return json_pack("{ss,s{ss,ss},ss,so,sI,so}", "version", OCSF_VERSION, "product", "name",
	                 "Caisson", "vendor_name", "Caisson", "log_name", "ledger", "uid",
	                 text_of(l->hash), "sequence", (json_int_t)l->seq, "event_code",
	                 text_of(l->kind));
}

/* Members that a line may have or not. */
static void each_name(const struct ledger_line *l,
                      void (*add)(json_t *to, const char *name, struct span value), json_t *to)
{
	const struct {
		const char *name;
		struct span value;
	} all[] = { { "tenant", l->tenant },
		    { "sandbox", l->sandbox },
		    { "workspace", l->workspace },
		    { "process", l->process },
		    { "actor", l->actor } };

	for (size_t i = 0; i < COUNT(all); i++)
		if (all[i].value.at)
			add(to, all[i].name, all[i].value);
}

static void add_member(json_t *to, const char *name, struct span value)
{
	json_object_set_new(to, name, text_of(value));
}

/* What each class has to have, and what of ours has a place there. */
static void add_class(json_t *o, enum class class, const struct ledger_line *l, json_t *data)
{
	switch (class) {
	case CLASS_PROCESS:
		add_process(o, l, data);
		break;
	case CLASS_HTTP:
		add_http(o, data);
		add_network(o, data);
		break;
	case CLASS_DNS:
		add_dns(o, data);
		add_network(o, data);
		break;
	case CLASS_NETWORK:
		add_network(o, data);
		break;
	case CLASS_ENTITY:
		add_entity(o, l, data);
		break;
	case CLASS_API:
		add_api(o, l, data);
		break;
	case CLASS_LIFECYCLE:
		add_app(o);
		break;
	}
}

json_t *ledger_ocsf(struct span line)
{
	struct ledger_line l;
	size_t i = 0;

	if (ledger_parse(line, &l) < 0)
		return NULL;
	json_t *data = json_loadb(l.data.at, l.data.len, 0, NULL);

	if (!data)
		return NULL;
	while (l.kind.len < strlen(classes[i].kind) ||
	       memcmp(l.kind.at, classes[i].kind, strlen(classes[i].kind)) != 0)
		i++;
	enum class class = classes[i].class;
	json_t *o = json_pack(
	    "{sI,si,si,si,si,si,so}", "time", (json_int_t)l.ts_ms, "class_uid", (int)class,
	    "category_uid", (int)class / 1000, "activity_id", classes[i].activity, "type_uid",
	    (int)class * 100 + classes[i].activity, "severity_id",
	    is_denied(data) ? SEVERITY_MEDIUM : SEVERITY_INFORMATIONAL, "metadata", metadata(&l));

	add_class(o, class, &l, data);
	json_t *rest = json_pack("{so}", "data", data);

	each_name(&l, add_member, rest);
	json_object_set_new(o, "unmapped", rest);
	return o;
}

/* ---- OpenTelemetry -------------------------------------------------------------------- */

static void add_attribute(json_t *to, const char *name, struct span value)
{
	char key[64];

	snprintf(key, sizeof key, "caisson.%s", name);
	json_array_append_new(
	    to, json_pack("{ss,s{so}}", "key", key, "value", "stringValue", text_of(value)));
}

json_t *ledger_otlp(struct span line)
{
	struct ledger_line l;
	char time[32];

	if (ledger_parse(line, &l) < 0)
		return NULL;
	json_t *data = json_loadb(l.data.at, l.data.len, 0, NULL);

	if (!data)
		return NULL;
	bool is_warning = is_denied(data);
	json_t *attributes = json_array();

	json_decref(data);
	snprintf(time, sizeof time, "%lld000000", (long long)l.ts_ms);
	add_attribute(attributes, "kind", l.kind);
	each_name(&l, add_attribute, attributes);
	add_attribute(attributes, "data", l.data);
	add_attribute(attributes, "hash", l.hash);
	json_array_append_new(attributes, json_pack("{ss,s{sI}}", "key", "caisson.seq", "value",
	                                            "intValue", (json_int_t)l.seq));
	return json_pack("{ss,ss,si,ss,s{so},so}", "timeUnixNano", time, "observedTimeUnixNano",
	                 time, "severityNumber", is_warning ? OTLP_WARN : OTLP_INFO, "severityText",
	                 is_warning ? "WARN" : "INFO", "body", "stringValue", text_of(l.kind),
	                 "attributes", attributes);
}

json_t *ledger_otlp_request(json_t *records)
{
	return json_pack("{s[{s{s[{ss,s{ss}}]},s[{s{ss},so}]}]}", "resourceLogs", "resource",
	                 "attributes", "key", "service.name", "value", "stringValue", "caisson",
	                 "scopeLogs", "scope", "name", "caisson.ledger", "logRecords", records);
}
