/*
 * admin.c - what an operator asks: health, counters, backends, tokens.
 */
#include "api/auth.h"
#include "api/handlers.h"
#include "core/details.h"
#include "core/quota.h"
#include "store/tokens.h"

#define TOKEN_DAYS_MOST 3650

static bool is_for_all(const struct call *c)
{
	return c->is_operator || c->is_admin;
}

/* Counts that a caller may see: the operator all of them, a tenant its own. */
struct counts {
	const char *tenant; /* NULL: all */
	size_t n, processes, by_state[SANDBOX_STATE_COUNT];
};

static void count_sandbox(void *entry, void *arg)
{
	const struct sbx *s = entry;
	struct counts *k = arg;

	if (k->tenant && strcmp(s->tenant, k->tenant) != 0)
		return;
	k->n++;
	k->by_state[s->state]++;
	for (const struct px *p = s->processes; p; p = p->next)
		k->processes++;
}

static struct counts count_all(const struct call *c)
{
	struct counts k = { .tenant = is_for_all(c) ? NULL : c->tenant };

	roster_each(&c->api->core->sandboxes, count_sandbox, &k);
	return k;
}

/* Needs no token, so that whatever watches the daemon can ask; only who has one is told more than
 * that it lives. */
void health_get(struct call *c)
{
	bool is_ready = core_is_ready(c->api->core);
	struct fail unused = { 0 };
	json_t *o = json_pack("{ss,sb,sb}", "status", is_ready ? "ready" : "starting", "live", 1,
	                      "ready", is_ready);

	if (c->is_operator || auth_check(c, SCOPE_READ, &unused) == 0) {
		json_object_set_new(o, "sandboxes", json_integer((json_int_t)count_all(c).n));
		json_object_set_new(o, "version", json_string(CAISSON_VERSION));
	}
	answer_json(c, is_ready ? 200 : 503, o);
}

struct metric {
	const char *name, *help, *type;
	uint64_t value;
};

static void add_metric(struct str *out, const struct metric *m)
{
	str_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", m->name, m->help, m->name, m->type,
	         m->name, (unsigned long long)m->value);
}

/* Those of the whole daemon: they tell what other tenants do. */
static void add_host_metrics(const struct call *c, struct str *out)
{
	const struct core *core = c->api->core;
	const struct metric rows[] = {
		{ "caisson_sandboxes_created_total", "Sandboxes made", "counter",
		  core->stats.creates },
		{ "caisson_execs_total", "Commands started", "counter", core->stats.execs },
		{ "caisson_errors_total", "Requests answered with an error", "counter",
		  core->stats.failures },
		{ "caisson_output_bytes_total", "Bytes written by commands", "counter",
		  core->stats.bytes_out },
		{ "caisson_connections", "Open connections", "gauge",
		  server_connections(c->api->server) },
		{ "caisson_store_waiting", "Writes not yet answered", "gauge",
		  store_waiting(core->store) },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		add_metric(out, &rows[i]);
}

void metrics_get(struct call *c)
{
	const struct counts k = count_all(c);
	const struct metric processes = { "caisson_processes", "Processes in memory", "gauge",
		                          is_for_all(c) ? c->api->core->processes.n : k.processes };
	AUTO(str_done) struct str text = { .max = 64u << 10 };

	if (is_for_all(c))
		add_host_metrics(c, &text);
	add_metric(&text, &processes);
	str_add(&text,
	        "# HELP caisson_sandboxes Sandboxes by state\n# TYPE caisson_sandboxes gauge\n");
	for (enum sandbox_state s = 0; s < SANDBOX_STATE_COUNT; s++)
		str_addf(&text, "caisson_sandboxes{state=\"%s\"} %zu\n", sandbox_state_name(s),
		         k.by_state[s]);
	c->is_answered = true;
	reply(c->r, 200, "text/plain; version=0.0.4", str_text(&text), text.len, NULL);
}

void backends_get(struct call *c)
{
	static const char *const names[] = {
		[LAUNCH_CPU] = "cpu",         [LAUNCH_MEMORY] = "mem", [LAUNCH_PIDS] = "pids",
		[LAUNCH_FREEZER] = "freezer", [LAUNCH_IO] = "io",
	};
	const struct launch_host *h = &c->api->core->host;
	json_t *cgroups = json_object();

	for (size_t i = 0; i < LAUNCH_CONTROLLERS; i++)
		json_object_set_new(cgroups, names[i],
		                    h->by[i] ? json_integer(h->by[i]) : json_null());
	json_t *native =
	    json_pack("{ss,sb,ss,si,so,sb}", "name", "native", "default", 1, "mode",
	              h->is_root ? "root" : "rootless", "landlock_abi", (int)h->landlock_abi,
	              "cgroup_version", cgroups, "pause", h->by[LAUNCH_FREEZER] != 0);
	json_object_set_new(native, "kernel", json_string(h->release));
	answer_json(c, 200, json_pack("{s[o]}", "backends", native));
}

static json_t *quota_sums(const struct quota *q, bool is_bound)
{
	json_t *o = json_object();

	for (enum quota_id i = 0; i < QUOTA_COUNT; i++) {
		json_t *v = is_bound && q->of[i] == 0 ? json_null()
		            : i == QUOTA_CPU          ? json_real((double)q->of[i] / 1000)
		                                      : json_integer((json_int_t)q->of[i]);

		json_object_set_new(o, quota_name(i), v);
	}
	return o;
}

void quota_get(struct call *c)
{
	struct core *core = c->api->core;
	struct quota used;

	quota_used(core, c->tenant, &used);
	answer_json(c, 200,
	            json_pack("{so,so}", "most", quota_sums(&core->config.quota, true), "used",
	                      quota_sums(&used, false)));
}

/* ---- tokens -------------------------------------------------------------------------- */

struct token_op {
	struct call *call;
	json_t *answer;
};

/* All of it but the token. */
static json_t *token_record(const json_t *answer)
{
	json_t *data = json_copy((json_t *)answer);

	json_object_set(data, "token", json_object_get(answer, "id"));
	json_object_del(data, "id");
	return data;
}

static void token_stored(void *arg, const struct store_answer *a)
{
	struct token_op *o = arg;
	struct fail f = { 0 };

	if (a->code == STORE_OK && o->answer) {
		call_keep_nothing(o->call); /* the text of a token is in no store */
		call_note(o->call, LEDGER_TOKEN_MADE, NULL, token_record(o->answer));
		answer_json(o->call, 201, o->answer);
	} else if (a->code == STORE_OK) {
		call_note(o->call, LEDGER_TOKEN_REVOKED, NULL,
		          json_pack("{so}", "token", details_text(o->call->params[0])));
		answer_empty(o->call, 204);
	} else {
		if (a->code == STORE_NOT_FOUND)
			fail_set(&f, FAIL_NOT_FOUND, "no such token");
		else
			fail_unstored(&f, "the token could not be stored", a->code == STORE_FULL);
		answer_fail(o->call, &f);
		json_decref(o->answer);
	}
	call_unref(o->call);
	free(o);
}

static int take_scopes(const json_t *v, struct str *out, struct fail *f)
{
	const json_t *list = json_is_array(v) ? v : NULL;
	size_t n = list ? json_array_size(list) : 1;

	if (!v || json_is_null(v)) {
		str_add(out, "exec");
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(list ? json_array_get(list, i) : v);
		enum scope s = SCOPE_READ;

		while (name && s < SCOPES && strcmp(name, scope_name(s)) != 0)
			s++;
		if (!name || s == SCOPES)
			return fail_set(f, FAIL_INVALID,
			                "scope: read, exec, manage, approve or admin");
		str_addf(out, "%s%s", i ? " " : "", name);
	}
	return n == 0 ? fail_set(f, FAIL_INVALID, "scope: at least one") : 0;
}

static int take_form(const json_t *body, const char **out, struct fail *f)
{
	if (member_text(body, "form", out, f) < 0)
		return -1;
	if (**out && strcmp(*out, "e2b") != 0)
		return fail_set(f, FAIL_INVALID, "form: \"e2b\" is what there is");
	return 0;
}

void token_create(struct call *c)
{
	static const char *const known[] = { "name", "scope", "ttl", "tenant", "form", NULL };
	AUTO(str_done) struct str scopes = { .max = 256 };
	const char *name = "", *tenant = c->tenant, *form = "";
	char id[ID_SIZE], text[TOKEN_TEXT];
	uint64_t ttl_ms = 0;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (members_known(c->body, known, &f) < 0 || member_text(c->body, "name", &name, &f) < 0 ||
	    member_text(c->body, "tenant", &tenant, &f) < 0 || take_form(c->body, &form, &f) < 0 ||
	    member_duration(c->body, "ttl", &ttl_ms, &f) < 0 ||
	    take_scopes(json_object_get(c->body, "scope"), &scopes, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (auth_names_admin(str_text(&scopes)) && strcmp(tenant, AUTH_OPERATOR) != 0) {
		fail_set(&f, FAIL_FORBIDDEN,
		         "scope: admin is the operator's, not a tenant's; a tenant's are read, "
		         "exec, manage and approve");
		answer_fail(c, &f);
		return;
	}
	if (!key_is(tenant, strlen(tenant)) || strchr(tenant, ':') ||
	    strlen(tenant) >= TENANT_SIZE || strlen(name) > 128 ||
	    (!is_for_all(c) && strcmp(tenant, c->tenant) != 0) ||
	    (*form ? auth_token_hex(TOKEN_E2B_PREFIX, text) : auth_token(TOKEN_PREFIX, text)) < 0) {
		fail_set(&f, FAIL_FORBIDDEN, "tenant, name: not this one");
		answer_fail(c, &f);
		return;
	}
	id_make(id, "tk");
	struct token_row row = { .id = id,
		                 .tenant = tenant,
		                 .name = name,
		                 .scopes = str_text(&scopes),
		                 .created_ms = core_now_ms(),
		                 .expires_ms = ttl_ms ? core_now_ms() + (int64_t)ttl_ms : 0 };
	auth_hash(text, row.hash);
	struct token_op *o = mem_alloc(sizeof *o);
	*o = (struct token_op){ .call = call_ref(c) };
	o->answer = json_pack("{ss,ss,ss,ss,ss}", "id", id, "token", text, "tenant", tenant, "name",
	                      name, "scope", str_text(&scopes));
	json_object_set_new(o->answer, "expires_ms",
	                    row.expires_ms ? json_integer(row.expires_ms) : json_null());
	if (store_token_insert(
		c->api->core->store, &row,
		(struct store_call){ .done = token_stored, .arg = o, .is_durable = true }, &e) < 0)
		token_stored(o, &(struct store_answer){ .code = STORE_BROKEN });
}

void token_list(struct call *c)
{
	struct store_page page = { 0 };
	struct token_list list;
	struct fail f = { 0 };
	struct err e = { 0 };

	bool is_bad = take_page(c, &page, &f) < 0;

	page.is_all_tenants = is_for_all(c);
	page.tenant = is_for_all(c) ? NULL : c->tenant;
	if (is_bad || (store_token_list(c->api->core->store, &page, &c->arena, &list, &e) < 0 &&
	               fail_err(&f, &e) < 0)) {
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++) {
		const struct token_row *t = &list.rows[i];
		json_t *o = json_pack("{ss,ss,ss,ss,sI}", "id", t->id, "tenant", t->tenant, "name",
		                      t->name ? t->name : "", "scope", t->scopes, "created_ms",
		                      (json_int_t)t->created_ms);

		json_object_set_new(o, "expires_ms",
		                    t->expires_ms ? json_integer(t->expires_ms) : json_null());
		json_object_set_new(o, "revoked_ms",
		                    t->revoked_ms ? json_integer(t->revoked_ms) : json_null());
		json_object_set_new(o, "last_used_ms",
		                    t->last_used_ms ? json_integer(t->last_used_ms) : json_null());
		json_array_append_new(rows, o);
	}
	json_t *o = json_pack("{so}", "tokens", rows);
	json_object_set_new(o, "next", list.next ? json_string(list.next) : json_null());
	answer_json(c, 200, o);
}

void token_delete(struct call *c)
{
	struct token_op *o = mem_alloc(sizeof *o);
	struct err e = { 0 };

	*o = (struct token_op){ .call = call_ref(c) };
	if (store_token_revoke(
		c->api->core->store, is_for_all(c) ? NULL : c->tenant, c->params[0], core_now_ms(),
		(struct store_call){ .done = token_stored, .arg = o, .is_durable = true }, &e) < 0)
		token_stored(o, &(struct store_answer){ .code = STORE_BROKEN });
}
