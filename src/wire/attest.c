#include "wire/attest.h"

#include <time.h>

#include "wire/ledger_text.h"

#define COUNT_MAX 1000 /* of a list */

/* ---- words ---------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static void count(json_t *o, const char *key, json_int_t more)
{
	json_object_set_new_nocheck(
	    o, key, json_integer(json_integer_value(json_object_get(o, key)) + more));
}

static json_t *member(json_t *o, const char *key)
{
	json_t *m = json_object_get(o, key);

	if (!m) {
		m = json_object();
		json_object_set_new_nocheck(o, key, m);
	}
	return m;
}

static size_t size_of(const json_t *o)
{
	return json_dumpb(o, NULL, 0, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
}

static json_t *moment(int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

/* ---- records -------------------------------------------------------------------------- */

typedef void take_fn(struct attest *a, const struct ledger_line *l, const json_t *data);

static void take_created(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	(void)l;
	json_object_set_new(a->now, "created", json_deep_copy(data));
}

static void take_policy(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	(void)l;
	if (*text_of(data, "policy"))
		json_object_set_new(member(a->now, "policies"), text_of(data, "policy"),
		                    json_true());
}

static void take_sandbox(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	const char *image = text_of(data, "image");

	take_policy(a, l, data);
	count(a->now, "sandboxes", 1);
	if (*image && json_object_size(json_object_get(a->now, "images")) < COUNT_MAX)
		json_object_set_new(member(a->now, "images"), image,
		                    json_string(text_of(data, "image_digest")));
}

static void take_started(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	char process[LEDGER_NAME_SIZE];
	json_t *commands = json_object_get(a->now, "commands");
	AUTO(json_decrefp) json_t *one = json_object();

	count(a->now, "n_commands", 1);
	json_object_set(one, "argv", json_object_get(data, "argv"));
	json_object_set(one, "cwd", json_object_get(data, "cwd"));
	size_t n = size_of(one);

	if (a->commands + n > ATTEST_LIST_BYTES || json_array_size(commands) >= COUNT_MAX)
		return;
	a->commands += n;
	snprintf(process, sizeof process, "%.*s", (int)l->process.len,
	         l->process.at ? l->process.at : "");
	json_object_set_new_nocheck(a->running, process,
	                            json_integer((json_int_t)json_array_size(commands)));
	json_array_append(commands, one);
}

static void take_ended(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	char process[LEDGER_NAME_SIZE];

	snprintf(process, sizeof process, "%.*s", (int)l->process.len,
	         l->process.at ? l->process.at : "");
	const json_t *at = json_object_get(a->running, process);
	json_t *one =
	    at ? json_array_get(json_object_get(a->now, "commands"), (size_t)json_integer_value(at))
	       : NULL;

	if (!one)
		return;
	json_object_set(one, "exit_code", json_object_get(data, "exit_code"));
	json_object_del(a->running, process);
}

static void take_net(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	const char *name = text_of(data, "name"), *decision = text_of(data, "decision");
	bool is_denied = strcmp(decision, "deny") == 0 || strcmp(decision, "ask_deny") == 0;
	bool is_request = span_is(l->kind, "net.request");
	json_t *hosts = member(a->now, "hosts");
	AUTO(str_done) struct str host = { .max = 512 };

	if (span_is(l->kind, "net.connection") && !is_denied &&
	    strcmp(text_of(data, "close"), "open") != 0)
		return; /* it was counted when it opened */
	str_add(&host, *name ? name : text_of(data, "dst"));
	if (!span_is(l->kind, "net.lookup"))
		str_addf(&host, ":%lld",
		         (long long)json_integer_value(json_object_get(data, "port")));
	if (!json_object_get(hosts, str_text(&host)) &&
	    (json_object_size(hosts) >= COUNT_MAX || a->hosts + host.len > ATTEST_LIST_BYTES)) {
		count(a->now, "more_hosts", 1);
		return;
	}
	a->hosts += host.len;
	count(member(hosts, str_text(&host)),
	      is_denied    ? "denied"
	      : is_request ? "requests"
	                   : "connections",
	      1);
}

static void take_secret(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	json_t *secrets = member(a->now, "secrets");

	(void)l;
	if (json_object_size(secrets) < COUNT_MAX)
		count(secrets, text_of(data, "secret"), 1);
}

static void take_approval(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	(void)l;
	count(member(a->now, "approvals"), text_of(data, "state"), 1);
}

/* What is known until now is what the promotion is of. */
static void take_promotion(struct attest *a, const struct ledger_line *l, const json_t *data)
{
	const char *state = text_of(data, "state");
	bool is_wanted = a->ask.record == 0 || l->seq == a->ask.record;

	if (!is_wanted || (*state && strcmp(state, "done") != 0) ||
	    (!*text_of(data, "commit") && !*text_of(data, "tree")))
		return;
	json_decref(a->at);
	a->at = json_deep_copy(a->now);
	json_object_set_new(a->at, "promotion",
	                    json_pack("{ss%,sI,sI,ss%}", "kind", l->kind.at, l->kind.len, "record",
	                              (json_int_t)l->seq, "ts", (json_int_t)l->ts_ms, "hash",
	                              l->hash.at, l->hash.len));
	json_object_set_new(a->at, "result", json_deep_copy(data));
}

/* clang-format off */
static const struct {
	const char *kind;
	take_fn *take;
} takers[] = {
	{ "workspace.created",  take_created },
	{ "sandbox.created",    take_sandbox },
	{ "policy.changed",     take_policy },
	{ "exec.started",       take_started },
	{ "exec.ended",         take_ended },
	{ "net.connection",     take_net },
	{ "net.request",        take_net },
	{ "net.lookup",         take_net },
	{ "secret.used",        take_secret },
	{ "approval.decided",   take_approval },
	{ "git.committed",      take_promotion },
	{ "git.merged",         take_promotion },
	{ "git.pushed",         take_promotion },
	{ "workspace.applied",  take_promotion },
	{ "workspace.exported", take_promotion },
};
/* clang-format on */

void attest_init(struct attest *a, const struct attest_ask *ask)
{
	*a = (struct attest){ .ask = *ask,
		              .now = json_pack("{s[]}", "commands"),
		              .running = json_object() };
}

void attest_done(struct attest *a)
{
	json_decref(a->now);
	json_decref(a->at);
	json_decref(a->running);
	*a = (struct attest){ 0 };
}

void attest_feed(struct attest *a, const struct ledger_line *l)
{
	size_t i = 0;

	if (a->is_over || !l->workspace.at || !span_is(l->workspace, a->ask.workspace) ||
	    !l->tenant.at || !span_is(l->tenant, a->ask.tenant))
		return;
	while (i < COUNT(takers) && !span_is(l->kind, takers[i].kind))
		i++;
	if (!json_object_get(a->now, "begin"))
		json_object_set_new(a->now, "begin",
		                    json_pack("{sI,sI,ss%}", "record", (json_int_t)l->seq, "ts",
		                              (json_int_t)l->ts_ms, "hash", l->hash.at,
		                              l->hash.len));
	if (i < COUNT(takers)) {
		AUTO(json_decrefp)
		json_t *data = json_loadb(l->data.at, l->data.len, JSON_REJECT_DUPLICATES, NULL);

		takers[i].take(a, l, data);
	}
	a->is_over = a->ask.record == l->seq;
}

/* ---- the statement -------------------------------------------------------------------- */

static void set_text(json_t *o, const char *key, const char *text)
{
	if (*text)
		json_object_set_new(o, key, json_string(text));
}

static json_t *subject_of(const struct attest *a)
{
	const json_t *result = json_object_get(a->at, "result");
	json_t *digest = json_object(), *one = json_object();
	const char *branch = text_of(result, "branch"), *host = text_of(result, "host");
	AUTO(str_done) struct str name = { .max = 1024 };

	str_addf(&name, "%s%s%s", host, *host && *branch ? " " : "",
	         *branch ? branch : a->ask.workspace);
	set_text(digest, "gitCommit", text_of(result, "commit"));
	set_text(digest, "gitTree", text_of(result, "tree"));
	set_text(one, "name", str_text(&name));
	json_object_set_new(one, "digest", digest);
	return json_pack("[o]", one);
}

static json_t *dependencies_of(const struct attest *a)
{
	const json_t *created = json_object_get(a->at, "created"),
		     *result = json_object_get(a->at, "result");
	const char *base = text_of(result, "base"), *repo = text_of(created, "repo"), *image;
	json_t *all = json_array(), *digest;

	base = *base ? base : text_of(created, "base");
	if (*base) {
		json_t *one = json_pack("{ss,s{ss}}", "name", "base", "digest", "gitCommit", base);

		if (*repo)
			json_object_set_new(one, "uri",
			                    json_sprintf("urn:caisson:repository:%s", repo));
		json_array_append_new(all, one);
	}
	json_object_foreach(json_object_get(a->at, "images"), image, digest)
	{
		const char *sha256 = json_string_value(digest);
		json_t *one = json_pack("{ss,so}", "name", "image", "uri",
		                        json_sprintf("urn:caisson:image:%s", image));

		if (sha256 && *sha256)
			json_object_set_new(one, "digest", json_pack("{ss}", "sha256", sha256));
		json_array_append_new(all, one);
	}
	return all;
}

/* A table of names as a list. */
static json_t *names_of(const json_t *o)
{
	json_t *all = json_array(), *v;
	const char *name;

	json_object_foreach((json_t *)(uintptr_t)o, name, v)
	    json_array_append_new(all, json_string(name));
	return all;
}

static json_t *definition_of(const struct attest *a)
{
	const json_t *created = json_object_get(a->at, "created");
	json_t *outer = json_object(), *inner = json_object();

	set_text(outer, "workspace", a->ask.workspace);
	set_text(outer, "key", text_of(created, "key"));
	set_text(outer, "repository", text_of(created, "repo"));
	set_text(outer, "branch", text_of(created, "branch"));
	json_object_set(outer, "commands", json_object_get(a->at, "commands"));
	json_object_set(outer, "commands_total", json_object_get(a->at, "n_commands"));
	json_object_set_new(inner, "policies", names_of(json_object_get(a->at, "policies")));
	json_object_set(inner, "sandboxes", json_object_get(a->at, "sandboxes"));
	json_object_set_new(inner, "tenant", json_string(a->ask.tenant));
	return json_pack("{ss,so,so,so}", "buildType", ATTEST_BUILD_TYPE, "externalParameters",
	                 outer, "internalParameters", inner, "resolvedDependencies",
	                 dependencies_of(a));
}

static json_t *details_of(const struct attest *a)
{
	static const char *const tables[] = { "hosts", "secrets", "approvals" };
	const json_t *begin = json_object_get(a->at, "begin"),
		     *promotion = json_object_get(a->at, "promotion");
	json_int_t from = json_integer_value(json_object_get(begin, "ts")),
		   to = json_integer_value(json_object_get(promotion, "ts"));
	json_t *products = json_array();

	json_array_append_new(products, json_pack("{ss,s{ss,sO,sO}}", "name", "ledger",
	                                          "annotations", "ledger", a->ask.ledger, "begin",
	                                          begin, "promotion", promotion));
	for (size_t i = 0; i < COUNT(tables); i++) {
		json_t *table = json_object_get(a->at, tables[i]);

		json_array_append_new(
		    products,
		    json_pack("{ss,s{so,sI}}", "name", tables[i], "annotations", tables[i],
		              table ? json_incref(table) : json_object(), "left_out",
		              i == 0 ? json_integer_value(json_object_get(a->at, "more_hosts"))
		                     : (json_int_t)0));
	}
	return json_pack(
	    "{s{ss},s{so,so,so},so}", "builder", "id", "urn:caisson:ledger", "metadata",
	    "invocationId",
	    json_sprintf("%s:%lld", a->ask.workspace,
	                 (long long)json_integer_value(json_object_get(promotion, "record"))),
	    "startedOn", moment(from), "finishedOn", moment(to), "byproducts", products);
}

bool attest_print(const struct attest *a, struct str *out)
{
	if (!a->at)
		return false;
	AUTO(json_decrefp)
	json_t *o = json_pack("{ss,so,ss,s{so,so}}", "_type", ATTEST_STATEMENT_TYPE, "subject",
	                      subject_of(a), "predicateType", ATTEST_PREDICATE_TYPE, "predicate",
	                      "buildDefinition", definition_of(a), "runDetails", details_of(a));

	if (!o)
		return false;
	ledger_text(o, out);
	return !out->overflow;
}

/* ---- reading one ---------------------------------------------------------------------- */

json_t *attest_read(struct span text)
{
	json_t *o = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *definition =
	    json_object_get(json_object_get(o, "predicate"), "buildDefinition");
	bool is_ours = strcmp(text_of(o, "_type"), ATTEST_STATEMENT_TYPE) == 0 &&
	               strcmp(text_of(o, "predicateType"), ATTEST_PREDICATE_TYPE) == 0 &&
	               strcmp(text_of(definition, "buildType"), ATTEST_BUILD_TYPE) == 0 &&
	               json_array_size(json_object_get(o, "subject")) == 1;

	if (is_ours)
		return o;
	json_decref(o);
	return NULL;
}
