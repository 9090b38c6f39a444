#include "core/notes.h"

#include <fcntl.h>

#include "base/fd.h"
#include "core/details.h"
#include "core/image.h"
#include "core/net.h"
#include "core/output.h"
#include "core/workspace-internal.h"
#include "store/connections.h"
#include "wire/gate.h"
#include "wire/hash.h"

#define HASH_AT_ONCE (256u << 10) /* bytes of output; more of it in turns of the loop */

/* ---- the daemon ----------------------------------------------------------------------- */

static void note_daemon(struct core *c, enum ledger_kind kind, json_t *data)
{
	ledger_note(c, kind, &(struct ledger_who){ 0 }, data);
}

void note_started(struct core *c)
{
	note_daemon(c, LEDGER_DAEMON_STARTED,
	            json_pack("{ss,ss,ss,sb}", "version", CAISSON_VERSION, "boot", c->boot_id,
	                      "node", store_node(c->store), "clean", store_was_clean(c->store)));
}

static void count(void *entry, void *arg)
{
	(void)entry;
	++*(json_int_t *)arg;
}

void note_recovered(struct core *c)
{
	json_int_t sandboxes = 0, processes = 0;

	roster_each(&c->sandboxes, count, &sandboxes);
	roster_each(&c->processes, count, &processes);
	note_daemon(c, LEDGER_DAEMON_RECOVERED,
	            json_pack("{sI,sI}", "sandboxes", sandboxes, "processes", processes));
}

void note_stopped(struct core *c)
{
	note_daemon(c, LEDGER_DAEMON_STOPPED, json_object());
}

/* ---- sandboxes ------------------------------------------------------------------------ */

static struct ledger_who who_is(const struct sbx *s)
{
	return (struct ledger_who){ .tenant = s->tenant,
		                    .sandbox = s->id,
		                    .workspace = s->workspace ? s->workspace->row.id : NULL,
		                    .actor = s->change.is_busy ? s->change.actor : NULL };
}

/* Of what was imported; a snapshot of a root has none, it has a point. */
static void add_digest(const struct sbx *s, json_t *data)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct image_row row;
	struct fail f = { 0 };

	if (s->image_tree == 0 || image_find(s->core, s->tenant, s->spec.image, &a, &row, &f) < 0 ||
	    (uint64_t)row.tree != s->image_tree || !row.digest)
		return;
	json_object_set_new(
	    data, strcmp(row.source, IMAGE_SNAPSHOT) == 0 ? "image_point" : "image_digest",
	    details_text(row.digest));
}

/* As they count, whoever set them: "mem": "4g". */
static void add_limits(const struct sbx *s, json_t *data)
{
	json_t *limits = json_object();
	char text[32];

	for (enum limit_id i = 0; i < LIMIT_COUNT; i++) {
		if (s->spec.limits[i].value == 0)
			continue;
		limit_text(i, s->spec.limits[i].value, text);
		json_object_set_new(limits, limit_name(i), json_string(text));
	}
	json_object_set_new(data, "limits", limits);
}

void note_sandbox_created(const struct sbx *s)
{
	const struct ledger_who who = who_is(s);
	char policy[LEDGER_HASH_SIZE];

	if (s->is_service)
		return;
	hash_of(span_of(s->spec_text), policy);
	json_t *data = json_pack("{ss,ss,ss,sI,sb}", "image", s->spec.image, "backend",
	                         s->spec.backend, "policy", policy, "generation",
	                         (json_int_t)s->generation, "once", s->is_one_shot);

	add_digest(s, data);
	add_limits(s, data);
	if (s->key)
		json_object_set_new(data, "key", details_text(s->key));
	json_t *spec = json_loads(s->spec_text, 0, NULL);

	json_object_set(data, "net", json_object_get(spec, "net"));
	json_decref(spec);
	ledger_note(s->core, LEDGER_SANDBOX_CREATED, &who, data);
}

void note_sandbox_state(const struct sbx *s)
{
	const struct ledger_who who = who_is(s);

	if (s->is_service)
		return;
	json_t *data = json_pack("{ss,sI}", "state", sandbox_state_name(s->state), "generation",
	                         (json_int_t)s->generation);

	if (s->reason[0])
		json_object_set_new(data, "reason", details_text(s->reason));
	ledger_note(s->core, s->state == SANDBOX_GONE ? LEDGER_SANDBOX_GONE : LEDGER_SANDBOX_STATE,
	            &who, data);
}

/* ---- commands ------------------------------------------------------------------------- */

static struct ledger_who who_ran(const struct px *p)
{
	const struct wsx *w = p->sandbox ? p->sandbox->workspace : NULL;

	return (struct ledger_who){ .tenant = p->tenant,
		                    .sandbox = p->sandbox_id,
		                    .workspace = w ? w->row.id : NULL,
		                    .process = p->id,
		                    .actor = p->actor };
}

void note_exec_started(const struct px *p)
{
	const struct ledger_who who = who_ran(p);
	const struct wsx *w = p->sandbox ? p->sandbox->workspace : NULL;

	if (p->is_service)
		return;
	json_t *data = json_object(), *argv = json_loads(p->argv, 0, NULL);

	json_object_set_new(data, "argv", argv ? argv : json_array());
	json_object_set_new(data, "cwd", details_text(p->cwd));
	if (p->argv_hash[0])
		json_object_set_new(data, "argv_sha256", json_string(p->argv_hash));
	if (p->env_names)
		json_object_set(data, "env", p->env_names);
	if (p->label)
		json_object_set_new(data, "label", details_text(p->label));
	if (p->shell)
		json_object_set_new(data, "shell", json_string(p->shell));
	if (w)
		json_object_set_new(data, "at", json_integer(w->row.head));
	ledger_note(p->core, LEDGER_EXEC_STARTED, &who, data);
}

void note_ran(const struct px *p, const struct channel_ran *ran)
{
	const struct ledger_who who = who_ran(p);

	if (p->is_service || !p->core->config.has_process_events)
		return;
	json_t *data =
	    json_pack("{so,sI}", "program", details_text(ran->text), "pid", (json_int_t)ran->pid);

	if (ran->missed)
		json_object_set_new(data, "missed", json_integer(ran->missed));
	ledger_note(p->core, LEDGER_PROCESS_STARTED, &who, data);
}

void note_masked(const struct px *p, const struct channel_masked *masked)
{
	const struct ledger_who who = who_ran(p);

	if (p->is_service)
		return;
	ledger_note(p->core, LEDGER_SECRET_MASKED, &who,
	            json_pack("{so,ss,sI}", "name", details_text(masked->name), "way", "output",
	                      "hits", (json_int_t)masked->hits));
}

/* What a process wrote, on its way through the hashes. */
struct digest {
	struct timer timer; /* first */
	struct core *core;
	char tenant[TENANT_SIZE], sandbox[ID_SIZE], process[ID_SIZE];
	struct scan scan;
	int fd;
	struct hash of[LOG_STREAMS];
};

/* For one turn. Returns true at the end. */
static bool digest_some(struct scan *s, struct hash *of)
{
	struct scan_piece piece;
	size_t n = 0;

	while (n < SCAN_TURN / 4) {
		if (scan_next(s, &piece) <= 0)
			return true;
		hash_add(&of[piece.stream], (struct span){ (const char *)piece.bytes, piece.len });
		n += piece.len;
	}
	return false;
}

static json_t *digest_json(struct hash *of)
{
	char out[LEDGER_HASH_SIZE], err[LEDGER_HASH_SIZE];

	hash_text(&of[LOG_OUT], out);
	hash_text(&of[LOG_ERR], err);
	return json_pack("{ss,ss}", "stdout", out, "stderr", err);
}

static void digest_free(struct digest *d)
{
	scan_done(&d->scan);
	fd_close(&d->fd);
	free(d);
}

static void digest_on(struct timer *t)
{
	struct digest *d = (struct digest *)(void *)t;
	/* What comes after the end of a sandbox's chain is not of it. */
	bool is_there = roster_find(&d->core->sandboxes, d->sandbox) != NULL;
	const struct ledger_who who = { .tenant = d->tenant,
		                        .sandbox = is_there ? d->sandbox : NULL,
		                        .process = d->process };

	if (!d->core->is_closing && !digest_some(&d->scan, d->of)) {
		timer_set(&d->core->timers, t, 0);
		return;
	}
	if (!d->core->is_closing)
		ledger_note(d->core, LEDGER_EXEC_OUTPUT, &who,
		            json_pack("{so}", "sha256", digest_json(d->of)));
	digest_free(d);
}

static void digest_later(const struct px *p)
{
	struct digest *d = mem_alloc(sizeof *d);

	*d = (struct digest){ .timer.fired = digest_on,
		              .core = p->core,
		              .fd = fcntl(p->log_fd, F_DUPFD_CLOEXEC, 3) };
	snprintf(d->tenant, sizeof d->tenant, "%s", p->tenant);
	snprintf(d->sandbox, sizeof d->sandbox, "%s", p->sandbox_id);
	snprintf(d->process, sizeof d->process, "%s", p->id);
	scan_init(&d->scan, d->fd, 0);
	for (size_t i = 0; i < LOG_STREAMS; i++)
		hash_init(&d->of[i]);
	timer_set(&p->core->timers, &d->timer, 0);
}

/* NULL: later, or there is nothing to read. */
static json_t *digest_of(const struct px *p)
{
	struct hash of[LOG_STREAMS];
	struct scan scan;

	if (p->log_fd < 0)
		return NULL;
	if (p->end.out_bytes + p->end.err_bytes > HASH_AT_ONCE) {
		digest_later(p);
		return NULL;
	}
	for (size_t i = 0; i < LOG_STREAMS; i++)
		hash_init(&of[i]);
	scan_init(&scan, p->log_fd, 0);
	(void)digest_some(&scan, of);
	scan_done(&scan);
	return digest_json(of);
}

/* Limits that it ran into, and how often. */
static void add_met(const struct channel_end *end, json_t *data)
{
	const struct {
		const char *limit;
		uint64_t count;
	} rows[] = { { limit_name(LIMIT_MEM), end->oom_kills },
		     { limit_name(LIMIT_PIDS), end->pids_denied },
		     { limit_name(LIMIT_OUTPUT), end->dropped_bytes > 0 },
		     { limit_name(LIMIT_DISK), end->is_disk_full },
		     { limit_name(LIMIT_INODES), end->is_inodes_full },
		     { "filters", end->filters_denied } }; /* not in the spec: FILTERS_MAX */
	json_t *met = NULL;

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].count == 0)
			continue;
		met = met ? met : json_object();
		json_object_set_new(met, rows[i].limit, json_integer((json_int_t)rows[i].count));
	}
	if (met)
		json_object_set_new(data, "limits", met);
}

void note_exec_ended(const struct px *p)
{
	const struct ledger_who who = who_ran(p);
	const struct channel_end *end = &p->end;

	if (p->is_service)
		return;
	json_t *data = json_pack(
	    "{ss,sI,s{sI,sI,sI,sI},s{sI,sI,sI},sI}", "state", process_state_name(p->state),
	    "exit_code", (json_int_t)end->exit_code, "usage", "ms", (json_int_t)end->ms, "cpu_ms",
	    (json_int_t)end->cpu_ms, "mem_peak", (json_int_t)end->mem_peak, "io_bytes",
	    (json_int_t)end->io_bytes, "bytes", "stdout", (json_int_t)end->out_bytes, "stderr",
	    (json_int_t)end->err_bytes, "dropped", (json_int_t)end->dropped_bytes, "programs",
	    (json_int_t)end->n_execs);
	json_t *hashes = digest_of(p);

	if (hashes)
		json_object_set_new(data, "sha256", hashes);
	add_met(end, data);
	if (end->signal)
		json_object_set_new(data, "signal", json_integer(end->signal));
	if (end->reason[0])
		json_object_set_new(data, "reason", details_text(end->reason));
	if (p->denials)
		json_object_set_new(data, "denied",
		                    json_integer((json_int_t)json_array_size(p->denials)));
	if (p->workspace)
		json_object_set(data, "workspace", p->workspace);
	ledger_note(p->core, LEDGER_EXEC_ENDED, &who, data);
}

/* ---- the network ---------------------------------------------------------------------- */

static const enum ledger_kind net_kinds[] = {
	[GATE_OPENED] = LEDGER_NET_CONNECTION, [GATE_CLOSED] = LEDGER_NET_CONNECTION,
	[GATE_LOOKUP] = LEDGER_NET_LOOKUP,     [GATE_REQUEST] = LEDGER_NET_REQUEST,
	[GATE_USE] = LEDGER_NET_REQUEST,
};
_Static_assert(COUNT(net_kinds) == GATE_KINDS, "a kind of record has no kind here");

static void set_text(json_t *o, const char *key, const char *text)
{
	if (text && text[0])
		json_object_set_new(o, key, details_text(text));
}

/* What a request carried: the hash of its query, and of a body that a person was shown. */
static void set_content(json_t *data, const struct gate_content *c)
{
	set_text(data, "query_sha256", c->query_hash);
	set_text(data, "body_sha256", c->body_hash);
	if (c->body_hash[0])
		json_object_set_new(data, "body_bytes", json_integer((json_int_t)c->body_bytes));
	if (c->is_partial)
		json_object_set_new(data, "body_partial", json_true());
}

void note_net(const struct sbx *s, const char *process, const struct gate_record *r)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct ledger_who who = who_is(s);
	struct connection_row row;

	if (s->is_service)
		return;
	net_row(r, &a, &row);
	who.process = process;
	who.actor = NULL;
	json_t *data = json_pack("{ss,sI,sI,sI,sI,sI,sI}", "decision", row.decision, "port",
	                         (json_int_t)row.port, "num", (json_int_t)row.num, "bytes_up",
	                         (json_int_t)row.bytes_up, "bytes_down", (json_int_t)row.bytes_down,
	                         "ms", (json_int_t)row.ms, "count", (json_int_t)row.count);
	const struct {
		const char *key, *text;
	} texts[] = { { "name", row.name },     { "dst", row.dst },       { "real", row.real },
		      { "proto", row.proto },   { "sni", row.sni },       { "alpn", row.alpn },
		      { "rule", row.rule },     { "reason", row.reason }, { "close", row.close },
		      { "method", row.method }, { "path", row.path },     { "cache", row.cache } };

	for (size_t i = 0; i < COUNT(texts); i++)
		set_text(data, texts[i].key, texts[i].text);
	if (row.status)
		json_object_set_new(data, "status", json_integer(row.status));
	set_content(data, &r->content);
	ledger_note(s->core, net_kinds[r->kind], &who, data);
}

void note_use(const struct sbx *s, const char *process, const struct gate_record *r,
              ledger_done_fn *done, void *arg)
{
	struct ledger_who who = who_is(s);
	json_t *data = json_pack("{so,so,si,sI,sI}", "secret", details_text(r->secret), "host",
	                         details_text(r->name), "port", (int)r->port, "num",
	                         (json_int_t)r->seq, "request", (json_int_t)r->request);

	set_text(data, "method", r->method);
	set_text(data, "path", r->path);
	set_content(data, &r->content);
	who.process = process;
	who.actor = NULL;
	/* Of our own, such as a push: whoever wanted it is told of there. */
	if (s->is_service)
		who.sandbox = who.process = NULL;
	ledger_commit(s->core, LEDGER_SECRET_USED, &who, data, done, arg);
}

void note_policy(const struct sbx *s, const char *actor, uint64_t generation, bool is_looser)
{
	struct ledger_who who = who_is(s);
	char policy[LEDGER_HASH_SIZE];

	who.actor = actor;
	hash_of(span_of(s->spec_text), policy);
	json_t *data = json_pack("{ss,sI,sb}", "policy", policy, "generation",
	                         (json_int_t)generation, "loosened", is_looser);
	json_t *spec = json_loads(s->spec_text, 0, NULL);

	json_object_set(data, "net", json_object_get(spec, "net"));
	json_decref(spec);
	ledger_note(s->core, LEDGER_POLICY_CHANGED, &who, data);
}

/* ---- workspaces ----------------------------------------------------------------------- */

void note_workspace_by(const struct wsx *w, enum ledger_kind kind, const char *actor, json_t *data)
{
	const struct ledger_who who = { .tenant = w->row.tenant,
		                        .workspace = w->row.id,
		                        .actor = actor };

	ledger_note(w->core, kind, &who, data);
}

void note_workspace(const struct wsx *w, enum ledger_kind kind, const char *process, json_t *data)
{
	/* Of the operation that is under way: it was begun a while ago. */
	const struct ledger_who who = { .tenant = w->row.tenant,
		                        .workspace = w->row.id,
		                        .process = process,
		                        .actor = w->first ? w->first->actor : NULL };

	ledger_note(w->core, kind, &who, data ? data : json_object());
}
