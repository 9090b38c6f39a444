/*
 * workspaces.c - /v1/workspaces: from JSON to src/core/workspace.h and back.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "api/handlers.h"
#include "api/print.h"
#include "core/census.h"
#include "core/checkout.h"
#include "core/workspace.h"
#include "os/extent.h"

#define CHANGES_BYTES_MAX (32u << 20)

/* ---- one of them --------------------------------------------------------------------- */

struct wsx *call_workspace(struct call *c)
{
	struct fail f = { 0 };
	struct wsx *w = wsx_find(c->api->core, c->tenant, c->params[0], &f);

	if (!w)
		answer_fail(c, &f);
	return w;
}

/* For what is answered later: f, or the workspace as it is then. */
static void answered(void *arg, struct wsx *w, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 200, print_workspace(w));
	call_unref(c);
}

static void refused(struct call *c, const struct fail *f)
{
	answer_fail(c, f);
	call_unref(c);
}

/* ---- create -------------------------------------------------------------------------- */

static void created(void *arg, struct wsx *w, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 201, print_workspace(w));
	call_unref(c);
}

/* Checked as for a sandbox; what is stored is what holds. */
static int take_spec(const struct call *c, const json_t *body, struct str *text, struct fail *f)
{
	AUTO(spec_done) struct spec spec;
	const json_t *wishes = json_object_get(body, "spec");

	spec_init(&spec);
	if (!wishes || json_is_null(wishes)) {
		str_add(text, "{}");
		return 0;
	}
	if (json_object_get(wishes, "workspace"))
		return fail_set(f, FAIL_INVALID, "spec: its workspace is this one");
	return spec_of(c, wishes, &spec, text, f);
}

static int take_mode(const json_t *body, const char **mode, struct fail *f)
{
	if (member_text(body, "mode", mode, f) < 0)
		return -1;
	if (*mode && strcmp(*mode, "edit") != 0 && strcmp(*mode, "read") != 0)
		return fail_set(f, FAIL_INVALID, "mode: \"edit\" or \"read\"");
	return 0;
}

static int take_ask(struct call *c, struct wsx_ask *ask, struct str *spec, struct fail *f)
{
	static const char *const known[] = { "mode",   "pin",  "ttl",  "spec",   "disk",
		                             "inodes", "repo", "base", "branch", NULL };

	if (c->body && members_known(c->body, known, f) < 0)
		return -1;
	if (!key_is(c->params[0], c->param_len[0]))
		return fail_set(f, FAIL_INVALID, "key: 1 to 128 of letters, digits and ._:@-");
	*ask = (struct wsx_ask){ .tenant = c->tenant, .key = c->params[0] };
	if (take_mode(c->body, &ask->mode, f) < 0 ||
	    member_text(c->body, "repo", &ask->repo, f) < 0 ||
	    member_text(c->body, "base", &ask->base, f) < 0 ||
	    member_text(c->body, "branch", &ask->branch, f) < 0 ||
	    member_bool(c->body, "pin", &ask->is_pinned, f) < 0 ||
	    member_duration(c->body, "ttl", &ask->ttl_ms, f) < 0 ||
	    member_size(c->body, "disk", &ask->disk_bytes, f) < 0 ||
	    member_size(c->body, "inodes", &ask->inodes, f) < 0 ||
	    take_spec(c, c->body, spec, f) < 0)
		return -1;
	if (!c->api->core->host.is_root && (ask->disk_bytes || ask->inodes))
		return fail_set(f, FAIL_UNENFORCEABLE,
		                "unenforceable: disk (a volume of its own takes root)");
	if (!ask->repo && (ask->base || ask->branch))
		return fail_set(f, FAIL_INVALID, "%s: of which repo?",
		                ask->base ? "base" : "branch");
	ask->spec_text = arena_strdup(&c->arena, str_text(spec));
	return 0;
}

/* ---- of a repository ------------------------------------------------------------------ */

struct put_op {
	struct call *call;
	struct wsx_ask ask; /* its texts are the call's */
};

static void checked_out(void *arg, const struct checkout *out, const struct fail *f)
{
	struct put_op *o = arg;
	struct call *c = o->call;
	struct core *core = c->api->core;
	const char *was = core->actor;
	struct fail bad = { 0 };

	if (f) {
		refused(c, f);
		free(o);
		return;
	}
	o->ask.repo = out->repo;
	o->ask.base_commit = out->commit;
	o->ask.n_layers = out->n_layers;
	memcpy(o->ask.layers, out->layers, out->n_layers * sizeof *out->layers);
	core->actor = c->actor; /* it may have taken a while */
	if (wsx_create(core, &o->ask, created, c, &bad) < 0)
		refused(c, &bad);
	core->actor = was;
	free(o);
}

static void put_checkout(struct call *c, const struct wsx_ask *ask)
{
	struct put_op *o = mem_alloc(sizeof *o);
	const struct checkout_ask wish = {
		.tenant = c->tenant,
		.repo = ask->repo,
		.base = ask->base,
		.branch = ask->branch,
		.client_fd = c->r->door == DOOR_UNIX ? c->r->socket_fd : -1,
	};

	*o = (struct put_op){ call_ref(c), *ask };
	checkout_get(c->api->core, &wish, checked_out, o);
}

/* Of the same repository, by whatever name. */
static bool is_of(struct call *c, const struct wsx *w, const char *name)
{
	struct repo_row row;
	struct fail f;

	return w->row.repo && repo_find(c->api->core, c->tenant, name, &c->arena, &row, &f) == 0 &&
	       strcmp(w->row.repo, row.id) == 0;
}

/* Get or create: what exists is what was asked for, or it is said how it differs. */
static void answer_existing(struct call *c, const struct wsx *w, const struct wsx_ask *ask)
{
	struct fail f = { 0 };

	if (ask->mode && strcmp(w->row.mode, ask->mode) != 0)
		fail_set(&f, FAIL_EXISTS, "a workspace with this key exists, and its mode is %s",
		         w->row.mode);
	else if (ask->repo && !is_of(c, w, ask->repo))
		fail_set(&f, FAIL_EXISTS,
		         "a workspace with this key exists, and is not of that repository");
	else if (ask->base && strcmp(w->row.base ? w->row.base : "", ask->base) != 0)
		fail_set(&f, FAIL_EXISTS, "a workspace with this key exists, and its base is %s",
		         w->row.base ? w->row.base : "the main branch");
	else if (ask->spec_text && json_object_get(c->body, "spec") &&
	         strcmp(w->row.spec, ask->spec_text) != 0)
		fail_set(&f, FAIL_EXISTS, "a workspace with this key exists and has another spec");
	if (f.code != FAIL_NONE)
		answer_fail(c, &f);
	else
		answer_json(c, 200, print_workspace(w));
}

void workspace_put(struct call *c)
{
	AUTO(str_done) struct str spec = { .max = SPEC_BYTES_MAX };
	struct fail f = { 0 }, none;
	struct wsx_ask ask = { 0 };

	if (take_ask(c, &ask, &spec, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	const struct wsx *w = wsx_find(c->api->core, c->tenant, c->params[0], &none);
	if (w) {
		answer_existing(c, w, &ask);
		return;
	}
	if (ask.repo) {
		put_checkout(c, &ask);
		return;
	}
	call_ref(c);
	if (wsx_create(c->api->core, &ask, created, c, &f) < 0)
		refused(c, &f);
}

/* ---- look ---------------------------------------------------------------------------- */

static void set_usage(json_t *o, struct census_use use)
{
	json_t *files = use.is_volume ? json_null() : json_integer((json_int_t)use.files);

	json_object_set_new(o, "usage",
	                    json_pack("{sI,sI,so}", "unique", (json_int_t)use.unique, "shared",
	                              (json_int_t)use.shared, "files", files));
}

static void used(void *arg, struct wsx *w, const struct wsx_usage *u, const struct fail *f)
{
	struct call *c = arg;
	json_t *o = f ? NULL : print_workspace(w);

	if (f) {
		refused(c, f);
		return;
	}
	struct census_use use = census_use(c->api->core->census, &w->row);

	set_usage(o, (struct census_use){ .unique = u->bytes + u->kept - u->shared,
	                                  .shared = u->shared + use.layers,
	                                  .files = u->files });
	answer_json(c, 200, o);
	call_unref(c);
}

/* The layers are known; the keeper knows the rest best. */
static void layers_counted(void *arg, const struct census *census, const struct fail *why)
{
	struct call *c = arg;
	struct fail f = { 0 };
	struct wsx *w =
	    c->r ? wsx_find(c->api->core, c->tenant, c->params[0], why ? &(struct fail){ 0 } : &f)
		 : NULL;

	(void)census; /* it is the core's now */
	if (w && !why)
		wsx_usage(w, used, call_ref(c));
	else if (c->r)
		answer_fail(c, why ? why : &f);
	call_unref(c);
}

void workspace_get(struct call *c)
{
	struct workspace_row row;
	struct err e = { 0 };
	struct fail f = { 0 };
	struct wsx *w = wsx_find(c->api->core, c->tenant, c->params[0], &f);

	if (!w && id_is(c->params[0], c->param_len[0], "ws") &&
	    store_workspace_get(c->api->core->store, c->tenant, c->params[0], &c->arena, &row,
	                        &e) == 0)
		answer_json(c, 200, print_workspace_row(&row)); /* in the trash, or gone */
	else if (!w)
		answer_fail(c, &f);
	else if (call_query(c, "usage"))
		census_get(c->api->core, layers_counted, call_ref(c));
	else
		answer_json(c, 200, print_workspace(w));
}

/* `census` NULL: without their disk use. */
static void answer_list(struct call *c, const struct census *census)
{
	struct workspace_query q = { .parent = call_query(c, "parent") };
	struct workspace_list list;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (call_query(c, "trash"))
		q.states = 1u << WORKSPACE_TRASH;
	if (take_page(c, &q.page, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (store_workspace_list(c->api->core->store, &q, &c->arena, &list, &e) < 0) {
		fail_err(&f, &e);
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++) {
		const struct wsx *w = roster_find(&c->api->core->workspaces, list.rows[i].id);
		json_t *row = w ? print_workspace(w) : print_workspace_row(&list.rows[i]);

		if (census)
			set_usage(row, census_use(census, w ? &w->row : &list.rows[i]));
		json_array_append_new(rows, row);
	}
	json_t *o = json_pack("{so}", "workspaces", rows);
	json_object_set_new(o, "next", list.next ? json_string(list.next) : json_null());
	answer_json(c, 200, o);
}

static void counted(void *arg, const struct census *census, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else if (c->r) /* else nobody waits any more */
		answer_list(c, census);
	call_unref(c);
}

void workspace_list(struct call *c)
{
	if (call_query(c, "usage"))
		census_get(c->api->core, counted, call_ref(c));
	else
		answer_list(c, NULL);
}

/* ---- change -------------------------------------------------------------------------- */

void workspace_change(struct call *c)
{
	static const char *const known[] = { "pin", "ttl", "spec", NULL };
	AUTO(str_done) struct str spec = { .max = SPEC_BYTES_MAX };
	struct wsx *w = call_workspace(c);
	struct wsx_life life = { 0 };
	struct fail f = { 0 };

	if (!w)
		return;
	call_ref(c);
	life.has_pin = json_object_get(c->body, "pin") != NULL;
	life.has_ttl = json_object_get(c->body, "ttl") != NULL;
	if (members_known(c->body, known, &f) < 0 ||
	    member_bool(c->body, "pin", &life.is_pinned, &f) < 0 ||
	    member_duration(c->body, "ttl", &life.ttl_ms, &f) < 0 ||
	    take_spec(c, c->body, &spec, &f) < 0) {
		refused(c, &f);
		return;
	}
	if (json_object_get(c->body, "spec"))
		life.spec_text = str_text(&spec);
	if (wsx_change(w, &life, answered, c, &f) < 0)
		refused(c, &f);
}

void workspace_gone(void *arg, struct wsx *w, const struct fail *f)
{
	struct call *c = arg;

	(void)w;
	if (f)
		answer_fail(c, f);
	else
		answer_empty(c, 204);
	call_unref(c);
}

void workspace_delete(struct call *c)
{
	struct wsx *w = call_workspace(c);
	struct fail f = { 0 };

	if (!w)
		return;
	call_ref(c);
	if (wsx_delete(w, call_query(c, "force") != NULL, workspace_gone, c, &f) < 0)
		refused(c, &f);
}

void workspace_untrash(struct call *c)
{
	struct fail f = { 0 };

	call_ref(c);
	if (wsx_untrash(c->api->core, c->tenant, c->params[0], answered, c, &f) < 0)
		refused(c, &f);
}

static void forked(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	struct call *c = arg;
	struct core *core = c->api->core;
	json_t *rows = json_array();
	struct fail none;

	if (f) {
		json_decref(rows);
		refused(c, f);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct wsx *w = wsx_find(core, c->tenant, ids[i], &none);

		if (w)
			json_array_append_new(rows, print_workspace(w));
	}
	answer_json(c, 201, json_pack("{so}", "workspaces", rows));
	call_unref(c);
}

void workspace_fork(struct call *c)
{
	static const char *const known[] = { "n", "key", "at", NULL };
	struct wsx *w = call_workspace(c);
	struct wsx_forks forks = { .n = 1 };
	uint64_t n = 1;
	struct fail f = { 0 };

	if (!w)
		return;
	call_ref(c);
	if ((c->body && members_known(c->body, known, &f) < 0) ||
	    member_size(c->body, "n", &n, &f) < 0 ||
	    member_text(c->body, "key", &forks.key, &f) < 0 ||
	    member_text(c->body, "at", &forks.at, &f) < 0) {
		refused(c, &f);
		return;
	}
	forks.n = (size_t)n;
	if (forks.key && (!key_is(forks.key, strlen(forks.key)) || strlen(forks.key) > 120))
		fail_set(&f, FAIL_INVALID, "key: 1 to 120 of letters, digits and ._:@-");
	if (f.code != FAIL_NONE || wsx_fork(w, &forks, forked, c, &f) < 0)
		refused(c, &f);
}

/* ---- points -------------------------------------------------------------------------- */

static void snapped(void *arg, struct wsx *w, const struct point_row *point, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 201, print_point(w, point));
	call_unref(c);
}

void workspace_snapshot(struct call *c)
{
	static const char *const known[] = { "label", NULL };
	struct wsx *w = call_workspace(c);
	struct wsx_point_ask ask = { .kind = POINT_SNAPSHOT };
	struct fail f = { 0 };

	if (!w)
		return;
	call_ref(c);
	if ((c->body && members_known(c->body, known, &f) < 0) ||
	    member_text(c->body, "label", &ask.label, &f) < 0 ||
	    (ask.label && strlen(ask.label) > STORE_NAME_MAX &&
	     fail_set(&f, FAIL_INVALID, "label: at most %d bytes", STORE_NAME_MAX) < 0)) {
		refused(c, &f);
		return;
	}
	wsx_point(w, &ask, snapped, c);
}

static void restored(void *arg, struct wsx *w, const struct wsx_restored *r, const struct fail *f)
{
	struct call *c = arg;

	if (f) {
		refused(c, f);
		return;
	}
	json_t *o = json_pack("{sI}", "files", (json_int_t)r->files);
	json_object_set_new(o, "from", print_point_name(w, r->from));
	json_object_set_new(o, "to", print_point_name(w, r->to));
	json_object_set_new(o, "workspace", print_workspace(w));
	answer_json(c, 200, o);
	call_unref(c);
}

static int take_restore(const struct call *c, struct wsx_restore *ask, struct fail *f)
{
	static const char *const known[][5] = {
		[WSX_UNDO] = { "steps", "to", "processes", NULL },
		[WSX_REDO] = { "steps", "processes", NULL },
		[WSX_RESTORE] = { "to", "snapshot", "processes", NULL },
	};
	const char *processes = "keep";

	if (c->body && members_known(c->body, known[ask->way], f) < 0)
		return -1;
	if (member_size(c->body, "steps", &ask->steps, f) < 0 ||
	    member_text(c->body, "snapshot", &ask->to, f) < 0 ||
	    member_text(c->body, "to", &ask->to, f) < 0 ||
	    member_text(c->body, "processes", &processes, f) < 0)
		return -1;
	if (strcmp(processes, "keep") != 0 && strcmp(processes, "kill") != 0)
		return fail_set(f, FAIL_INVALID, "processes: \"keep\" or \"kill\"");
	if (ask->way == WSX_RESTORE && !ask->to)
		return fail_set(f, FAIL_INVALID, "to: a point is expected");
	ask->may_end = strcmp(processes, "kill") == 0;
	return 0;
}

static void go_to(struct call *c, enum wsx_way way)
{
	struct wsx *w = call_workspace(c);
	struct wsx_restore ask = { .way = way };
	struct fail f = { 0 };

	if (!w)
		return;
	if (take_restore(c, &ask, &f) < 0)
		answer_fail(c, &f);
	else
		wsx_restore(w, &ask, restored, call_ref(c));
}

void workspace_undo(struct call *c)
{
	go_to(c, WSX_UNDO);
}

void workspace_redo(struct call *c)
{
	go_to(c, WSX_REDO);
}

void workspace_restore(struct call *c)
{
	go_to(c, WSX_RESTORE);
}

/* With what is under way: who wrote something finds it there. */
static void has_settled(void *arg, struct wsx *w, const struct fail *fail)
{
	struct call *c = arg;
	struct store *store = c->api->core->store;
	struct store_page page = { 0 };
	struct point_list list, chain;
	struct fail f = { 0 };
	struct err e = { 0 };

	(void)fail; /* whatever was before it is over */
	if (c->r && take_page(c, &page, &f) == 0) {
		if (store_point_list(store, w->row.id, &page, &c->arena, &list, &e) == 0 &&
		    store_point_chain(store, w->row.head, STORE_LIST_MAX, &c->arena, &chain, &e) ==
		        0)
			answer_json(c, 200, print_history(w, &list, &chain));
		else
			fail_err(&f, &e);
	}
	if (f.code != FAIL_NONE)
		answer_fail(c, &f);
	call_unref(c);
}

void workspace_history(struct call *c)
{
	struct wsx *w = call_workspace(c);

	if (w)
		wsx_settle(w, has_settled, call_ref(c));
}

/* ---- changes ------------------------------------------------------------------------- */

struct changes_ask {
	struct call *call;
	bool is_stat;
};

static int read_all(int fd, struct str *text)
{
	char buf[65536];
	off_t at = 0;
	int n;

	while ((n = os_pread(fd, buf, sizeof buf, at)) > 0) {
		str_addn(text, buf, (size_t)n);
		at += n;
	}
	return n < 0 || text->overflow ? -1 : 0;
}

static void differs(void *arg, struct wsx *w, int fd, const struct fail *f)
{
	AUTO(str_done) struct str text = { .max = CHANGES_BYTES_MAX };
	struct changes_ask *a = arg;
	struct fail bad = { 0 };
	struct call *c = a->call;

	(void)w;
	if (f)
		answer_fail(c, f);
	else if (read_all(fd, &text) < 0) {
		fail_set(&bad, FAIL_TOO_LARGE, "more changes than %u bytes can name",
		         CHANGES_BYTES_MAX);
		answer_fail(c, &bad);
	} else {
		answer_json(c, 200, print_changes(str_text(&text), text.len, a->is_stat));
	}
	free(a);
	call_unref(c);
}

void workspace_changes(struct call *c)
{
	struct wsx *w = call_workspace(c);
	const char *base = call_query(c, "base"), *format = call_query(c, "format");
	const struct wsx_between between = { .from = base ? base : "base",
		                             .to = call_query(c, "to"),
		                             .is_plain = call_query(c, "plain") != NULL,
		                             .is_root = call_query(c, "root") != NULL };
	struct fail f = { 0 };

	if (!w)
		return;
	if (format && strcmp(format, "patch") == 0 && !between.is_root) {
		workspace_patch(c, w);
		return;
	}
	if (format && strcmp(format, "json") != 0 && strcmp(format, "stat") != 0) {
		fail_set(&f, FAIL_INVALID,
		         "format: \"json\", \"stat\", or without `root` \"patch\"");
		answer_fail(c, &f);
		return;
	}
	struct changes_ask *a = mem_alloc(sizeof *a);
	*a = (struct changes_ask){ call_ref(c), format && strcmp(format, "stat") == 0 };
	if (wsx_changes(w, &between, differs, a, &f) == 0)
		return;
	free(a);
	refused(c, &f);
}

/* ---- exec ---------------------------------------------------------------------------- */

static void has_sandbox(void *arg, struct sbx *s, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else if (c->r)
		exec_in(c, s);
	else
		call_forget(c);
	call_unref(c);
}

void workspace_exec(struct call *c)
{
	struct wsx *w = call_workspace(c);

	if (w)
		wsx_default(w, c->r->door == DOOR_UNIX ? c->r->socket_fd : -1, has_sandbox,
		            call_ref(c));
}
