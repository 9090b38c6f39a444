#include "core/repo.h"

#include <fcntl.h>
#include <jansson.h>

#include "base/fd.h"
#include "core/gitscript.h"
#include "core/secret.h"
#include "core/trees.h"
#include "io/journal.h"
#include "store/trees.h"
#include "store/workspaces.h"

#define CLONE_MS (2ull * 60 * 60 * 1000)
#define ANSWER_BYTES 4096
#define PATTERNS_MAX 16
#define RESTARTED "the daemon was restarted meanwhile"
#define DEFAULT_REFS "[\"refs/heads/*\",\"refs/tags/*\"]"

struct waiter {
	struct waiter *next;
	repo_done_fn *done;
	void *arg;
	bool is_next; /* wants a fetch that begins after it asked */
};

/* A clone or a fetch that is under way; at most one of a repository. */
struct repo_job {
	struct repo_job *next;
	struct core *core;
	struct arena arena; /* of the row */
	struct repo_row row;
	bool is_clone;
	int client_fd;
	struct service *service;
	struct waiter *waiters;
	struct repo_watch *watches;
	char line[SERVICE_LINE_MAX];
	char head[GIT_REF_MAX + 1], old[GIT_SHA_SIZE], tip[GIT_SHA_SIZE];
	struct fail fail;
};

/* ---- jobs ---------------------------------------------------------------------------- */

static struct repo_job *job_of(const struct core *c, const char *id)
{
	for (struct repo_job *j = c->repo_jobs; j; j = j->next)
		if (strcmp(j->row.id, id) == 0)
			return j;
	return NULL;
}

/* Of one whose row may not be there yet. */
static struct repo_job *job_like(const struct core *c, const struct repo_ask *ask, const char *url)
{
	for (struct repo_job *j = c->repo_jobs; j; j = j->next)
		if (strcmp(j->row.tenant, ask->tenant) == 0 &&
		    (strcmp(j->row.key, ask->key) == 0 || strcmp(j->row.url, url) == 0))
			return j;
	return NULL;
}

static const char *copy(struct arena *a, const char *text)
{
	return text ? arena_strdup(a, text) : NULL;
}

static struct repo_job *job_new(struct core *c, const struct repo_row *row, int client_fd)
{
	struct repo_job *j = mem_alloc(sizeof *j);

	*j = (struct repo_job){ .next = c->repo_jobs, .core = c, .row = *row };
	j->row.id = copy(&j->arena, row->id);
	j->row.tenant = copy(&j->arena, row->tenant);
	j->row.key = copy(&j->arena, row->key);
	j->row.node = copy(&j->arena, row->node);
	j->row.url = copy(&j->arena, row->url);
	j->row.cred = copy(&j->arena, row->cred);
	j->row.refs = copy(&j->arena, row->refs);
	j->row.refresh = copy(&j->arena, row->refresh);
	j->row.head = copy(&j->arena, row->head);
	j->row.state_reason = NULL;
	j->client_fd = client_fd < 0 ? -1 : fcntl(client_fd, F_DUPFD_CLOEXEC, 3);
	c->repo_jobs = j;
	return j;
}

static void add_waiter(struct repo_job *j, repo_done_fn *done, void *arg, bool is_next)
{
	struct waiter *w = mem_alloc(sizeof *w);

	*w = (struct waiter){ j->waiters, done, arg, is_next };
	j->waiters = w;
}

static void unlist(struct repo_job *j)
{
	for (struct repo_job **at = &j->core->repo_jobs; *at; at = &(*at)->next)
		if (*at == j) {
			*at = j->next;
			return;
		}
}

static void job_free(struct repo_job *j)
{
	unlist(j);
	while (j->waiters) {
		struct waiter *w = j->waiters;

		j->waiters = w->next;
		free(w);
	}
	service_cancel(j->service);
	fd_close(&j->client_fd);
	arena_done(&j->arena);
	free(j);
}

void repo_forget(struct core *c, const void *arg)
{
	for (struct repo_job *j = c->repo_jobs; j; j = j->next)
		for (struct waiter *w = j->waiters; w; w = w->next)
			if (w->arg == arg)
				w->done = NULL;
}

/* ---- progress ------------------------------------------------------------------------ */

const char *repo_progress(const struct core *c, const char *id)
{
	const struct repo_job *j = job_of(c, id);

	return j ? j->line : NULL;
}

bool repo_watch_add(struct core *c, const char *id, struct repo_watch *w)
{
	struct repo_job *j = job_of(c, id);

	if (!j)
		return false;
	w->next = j->watches;
	j->watches = w;
	return true;
}

void repo_watch_remove(struct core *c, struct repo_watch *w)
{
	for (struct repo_job *j = c->repo_jobs; j; j = j->next)
		for (struct repo_watch **at = &j->watches; *at; at = &(*at)->next)
			if (*at == w) {
				*at = w->next;
				return;
			}
}

static void tell_watches(struct repo_job *j, const char *line)
{
	struct repo_watch *next;

	for (struct repo_watch *w = j->watches; w; w = next) {
		next = w->next;
		w->heard(w, line);
	}
}

static void progress(void *arg, const char *line)
{
	struct repo_job *j = arg;

	snprintf(j->line, sizeof j->line, "%s", line);
	tell_watches(j, j->line);
}

/* ---- the end ------------------------------------------------------------------------- */

static void start(struct repo_job *j);

/* Those who came after it began get another one. */
static struct waiter *take_next(struct repo_job *j)
{
	struct waiter *next = NULL;

	for (struct waiter **at = &j->waiters; *at;) {
		struct waiter *w = *at;

		if (!w->is_next || !w->done) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		*w = (struct waiter){ next, w->done, w->arg, false };
		next = w;
	}
	return next;
}

static void go_on(struct repo_job *done, struct waiter *next)
{
	struct core *c = done->core;
	struct repo_job *j;

	if (!next)
		return;
	j = job_new(c, &done->row, done->client_fd);
	j->waiters = next;
	start(j);
}

static void settled(void *arg, const struct store_answer *a)
{
	struct repo_job *j = arg;
	struct waiter *next = take_next(j), *w;

	if (a->code != STORE_OK && j->fail.code == FAIL_NONE)
		fail_set(&j->fail, FAIL_BACKEND_ERROR, "the repository could not be stored: %s",
		         a->err->msg);
	const struct repo_end end = { .row = &j->row,
		                      .old = j->old,
		                      .tip = j->tip,
		                      .fail = j->fail.code == FAIL_NONE ? NULL : &j->fail };

	tell_watches(j, NULL);
	/* Out of the list first: who is told may ask for the next. */
	unlist(j);
	go_on(j, next);
	while ((w = j->waiters)) {
		j->waiters = w->next;
		if (w->done)
			w->done(w->arg, &end);
		free(w);
	}
	job_free(j);
}

static void settle(struct repo_job *j)
{
	bool is_well = j->fail.code == FAIL_NONE;
	uint32_t fields = REPO_SET_STATE | REPO_SET_TREE | (is_well ? REPO_SET_FETCHED : 0);
	struct err e = { 0 };

	j->service = NULL;
	j->row.state = is_well || !j->is_clone ? REPO_READY : REPO_FAILED;
	j->row.state_reason = is_well ? NULL : copy(&j->arena, j->fail.detail);
	if (is_well) {
		j->row.generation++;
		j->row.fetched_ms = core_now_ms();
		j->row.head = j->head[0] ? j->head : NULL;
	} else if (j->is_clone) { /* a clone that failed leaves nothing */
		if (j->row.tree)
			tree_remove(j->core, (uint64_t)j->row.tree);
		j->row.tree = 0;
	}
	if (!is_well)
		journal(JOURNAL_WARN, "a repository could not be mirrored", "repo", j->row.id,
		        "reason", j->fail.detail, NULL);
	else if (j->is_clone)
		journal(JOURNAL_INFO, "a repository is mirrored", "repo", j->row.id, "tenant",
		        j->row.tenant, "key", j->row.key, NULL);
	if (store_repo_update(j->core->store, &j->row, fields,
	                      (struct store_call){ .done = settled, .arg = j }, &e) < 0)
		settled(j, &(struct store_answer){ .code = STORE_BROKEN, .err = &e });
}

static void kept(void *arg, uint64_t num, const struct fail *f)
{
	struct repo_job *j = arg;

	(void)num;
	if (f)
		j->fail = *f;
	settle(j);
}

/* ---- the work ------------------------------------------------------------------------ */

/* A line of what it printed; "" for "-" and for what nobody can mean. */
static const char *take_line(const char *at, char *out, size_t size, bool is_sha)
{
	size_t n = strcspn(at, "\n");

	snprintf(out, size, "%.*s", (int)n, at);
	if (n >= size || strcmp(out, "-") == 0 || !(is_sha ? git_sha_is(out, n) : git_ref_is(out)))
		out[0] = '\0';
	return at[n] ? at + n + 1 : at + n;
}

static void fetched(void *arg, const struct service_end *end)
{
	struct repo_job *j = arg;
	char what[64 + GIT_URL_SIZE];
	const char *at = end->out;

	j->service = NULL;
	snprintf(what, sizeof what, "%s", j->row.url);
	git_explain(end, what, &j->fail);
	if (j->fail.code != FAIL_NONE) {
		settle(j);
		return;
	}
	at = take_line(at, j->head, sizeof j->head, false);
	at = take_line(at, j->old, sizeof j->old, true);
	(void)take_line(at, j->tip, sizeof j->tip, true);
	if (j->is_clone)
		tree_keep(j->core, (uint64_t)j->row.tree, kept, j);
	else
		settle(j);
}

/* The arguments: where, then what. The list was checked when it came. */
static void fill_args(struct repo_job *j, const struct git_url *u, const char **args)
{
	json_t *refs = json_loads(j->row.refs, 0, NULL), *ref;
	size_t i, n = 0;

	args[n++] = u->is_folder ? "file://" SERVICE_FOLDER : copy(&j->arena, u->text);
	json_array_foreach(refs, i, ref)
	{
		if (n <= PATTERNS_MAX)
			args[n++] = copy(&j->arena, json_string_value(ref));
	}
	args[n] = NULL;
	json_decref(refs);
}

static void work(struct repo_job *j)
{
	const struct maker_tree mirror = { .tree = (uint64_t)j->row.tree, .at = GIT_MIRROR };
	const char *args[PATTERNS_MAX + 3];
	char net[GATE_NAME_SIZE + 8];
	struct git_url u;
	struct err e = { 0 };

	if (git_url_read(j->row.url, &u, &e) < 0) { /* the program has changed its mind */
		fail_err(&j->fail, &e);
		settle(j);
		return;
	}
	fill_args(j, &u, args);
	snprintf(net, sizeof net, "%s:%u", u.host, u.port);
	const struct service_ask ask = { .tenant = j->row.tenant,
		                         .script = git_script_fetch,
		                         .args = args,
		                         .trees = &mirror,
		                         .n_trees = 1,
		                         .folder = u.is_folder ? u.text : NULL,
		                         .client_fd = j->client_fd,
		                         .net = u.is_folder ? NULL : net,
		                         .cred = j->row.cred,
		                         .timeout_ms = CLONE_MS,
		                         .out_max = ANSWER_BYTES,
		                         .progress = progress,
		                         .done = fetched,
		                         .arg = j };

	j->service = service_start(j->core, &ask, &j->fail);
	if (!j->service)
		settle(j);
}

static void tree_made(void *arg, uint64_t num, const struct fail *f)
{
	struct repo_job *j = arg;

	if (f) {
		j->fail = *f;
		settle(j);
		return;
	}
	j->row.tree = (int64_t)num;
	work(j);
}

/* The row says that it is ours. */
static void locked(void *arg, const struct store_answer *a)
{
	struct repo_job *j = arg;

	if (a->code != STORE_OK) {
		fail_set(&j->fail, a->code == STORE_EXISTS ? FAIL_EXISTS : FAIL_BUSY,
		         a->code == STORE_EXISTS ? "a repository with this key or url exists"
		                                 : "the repository is being changed");
		settled(j, &(struct store_answer){ .code = STORE_OK });
		return;
	}
	if (!j->is_clone) {
		work(j);
		return;
	}
	const struct tree_new ask = { j->row.tenant, "repo", j->row.id, "mirror" };

	tree_make(j->core, &ask, tree_made, j);
}

static void start(struct repo_job *j)
{
	struct err e = { 0 };

	j->is_clone = j->row.state != REPO_READY;
	j->row.state = j->is_clone ? REPO_CLONING : REPO_REFRESHING;
	if (store_repo_update(j->core->store, &j->row, REPO_SET_STATE,
	                      (struct store_call){ .done = locked, .arg = j }, &e) < 0)
		locked(j, &(struct store_answer){ .code = STORE_BROKEN, .err = &e });
}

/* ---- by request ---------------------------------------------------------------------- */

static int check_refs(const char *text, struct fail *f)
{
	json_t *list = json_loads(text, 0, NULL), *ref;
	size_t i;
	bool is_well = json_is_array(list) && json_array_size(list) > 0 &&
	               json_array_size(list) <= PATTERNS_MAX;

	json_array_foreach(list, i, ref) is_well =
	    is_well && json_is_string(ref) && git_pattern_is(json_string_value(ref));
	json_decref(list);
	return is_well ? 0
	               : fail_set(f, FAIL_INVALID,
	                          "refs: 1 to %d patterns such as refs/heads/* are expected",
	                          PATTERNS_MAX);
}

/* "always" and "manual" as they are, a duration in ms. */
static int read_refresh(const char *text, char out[32], struct fail *f)
{
	uint64_t ms;
	struct err e = { 0 };

	if (strcmp(text, "always") == 0 || strcmp(text, "manual") == 0)
		snprintf(out, 32, "%s", text);
	else if (duration_parse(text, &ms, &e) == 0)
		snprintf(out, 32, "%llu", (unsigned long long)ms);
	else
		return fail_set(f, FAIL_INVALID, "refresh: always, manual or a duration");
	return 0;
}

bool repo_is_due(const struct repo_row *row)
{
	if (strcmp(row->refresh, "manual") == 0)
		return false;
	return strcmp(row->refresh, "always") == 0 ||
	       core_now_ms() - row->fetched_ms >= strtoll(row->refresh, NULL, 10);
}

/* What a daemon before us left locked is not, though its row may say so for another moment. */
void repo_settle(const struct core *c, struct repo_row *row)
{
	bool is_locked = row->state == REPO_CLONING || row->state == REPO_REFRESHING;

	if (!is_locked || job_of(c, row->id))
		return;
	row->state = row->state == REPO_CLONING ? REPO_FAILED : REPO_READY;
	row->state_reason = RESTARTED;
}

int repo_find(struct core *c, const char *tenant, const char *name, struct arena *a,
              struct repo_row *out, struct fail *f)
{
	struct git_url u;
	struct err e = { 0 };
	int r = -1;

	if (id_is(name, strlen(name), "rp"))
		r = store_repo_get(c->store, tenant, name, a, out, &e);
	else if (key_is(name, strlen(name)))
		r = store_repo_by_key(c->store, tenant, name, a, out, &e);
	else if (git_url_read(name, &u, &e) == 0)
		r = store_repo_by_url(
		    c->store, &(struct repo_row){ .tenant = tenant, .url = u.text }, a, out, &e);
	if (r < 0 || out->state == REPO_GONE)
		return fail_set(f, FAIL_NOT_FOUND, "no such repository");
	repo_settle(c, out);
	return 0;
}

/* What is there, with what is wished now. */
static int take_up(struct core *c, const struct repo_row *row, const struct repo_ask *ask,
                   repo_done_fn *done, void *arg)
{
	struct repo_job *j = job_of(c, row->id);
	struct repo_row same = *row;

	same.refs = ask->refs ? ask->refs : row->refs;
	same.refresh = ask->refresh ? ask->refresh : row->refresh;
	if (strcmp(same.refs, row->refs) != 0 || strcmp(same.refresh, row->refresh) != 0) {
		struct err e = { 0 };

		if (store_repo_update(c->store, &same, REPO_SET_WISHES, (struct store_call){ 0 },
		                      &e) < 0)
			journal(JOURNAL_ERROR, e.msg, "repo", row->id, NULL);
	}
	if (!j && row->state == REPO_READY) {
		done(arg, &(struct repo_end){ .row = &same, .old = "", .tip = "" });
		return 0;
	}
	if (!j) {
		j = job_new(c, &same, ask->client_fd);
		add_waiter(j, done, arg, false);
		start(j);
		return 0;
	}
	add_waiter(j, done, arg, false);
	return 0;
}

static int make_new(struct core *c, const struct repo_ask *ask, const char *url, repo_done_fn *done,
                    void *arg, struct fail *f)
{
	char id[ID_SIZE];
	struct err e = { 0 };

	id_make(id, "rp");
	const struct repo_row row = { .id = id,
		                      .tenant = ask->tenant,
		                      .key = ask->key,
		                      .url = url,
		                      .cred = ask->cred,
		                      .refs = ask->refs ? ask->refs : DEFAULT_REFS,
		                      .refresh = ask->refresh ? ask->refresh : "always",
		                      .state = REPO_CLONING,
		                      .created_ms = core_now_ms() };
	struct repo_job *j = job_new(c, &row, ask->client_fd);

	j->is_clone = true;
	add_waiter(j, done, arg, false);
	if (store_repo_insert(c->store, &row, (struct store_call){ .done = locked, .arg = j },
	                      &e) == 0)
		return 0;
	job_free(j);
	return fail_err(f, &e);
}

static int check_cred(struct core *c, const struct repo_ask *ask, const struct git_url *u,
                      struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct secret_row row;
	struct fail why = { 0 };

	if (!ask->cred)
		return 0;
	if (u->is_folder)
		return fail_set(f, FAIL_INVALID, "cred: a folder wants none");
	return secret_find(c, ask->tenant, ask->cred, &a, &row, &why) < 0
	           ? fail_set(f, why.code, "cred: %s", why.detail)
	           : 0;
}

int repo_put(struct core *c, const struct repo_ask *ask, repo_done_fn *done, void *arg,
             struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct repo_ask checked = *ask;
	char refresh[32];
	struct repo_row row;
	struct git_url u;
	struct err e = { 0 };

	if (!key_is(ask->key, strlen(ask->key)))
		return fail_set(f, FAIL_INVALID, "key: 1 to 128 of A-Z a-z 0-9 . _ : @ -");
	if (git_url_read(ask->url, &u, &e) < 0)
		return fail_err(f, &e);
	if (check_cred(c, ask, &u, f) < 0)
		return -1;
	if ((ask->refs && check_refs(ask->refs, f) < 0) ||
	    (ask->refresh && read_refresh(ask->refresh, refresh, f) < 0))
		return -1;
	checked.refresh = ask->refresh ? refresh : NULL;
	const struct repo_job *j = job_like(c, ask, u.text);
	if (j)
		row = j->row;
	else if (store_repo_by_key(c->store, ask->tenant, ask->key, &a, &row, &e) < 0 &&
	         store_repo_by_url(
		     c->store,
		     &(struct repo_row){ .tenant = ask->tenant, .url = u.text, .cred = ask->cred },
		     &a, &row, &e) < 0)
		return make_new(c, &checked, u.text, done, arg, f);
	repo_settle(c, &row);
	if (strcmp(row.url, u.text) != 0)
		return fail_set(f, FAIL_EXISTS, "%s is another repository: %s", row.key, row.url);
	if (strcmp(row.cred ? row.cred : "", ask->cred ? ask->cred : "") != 0)
		return fail_set(f, FAIL_EXISTS, "%s has another credential", row.key);
	if (strcmp(row.key, ask->key) != 0)
		return fail_set(f, FAIL_EXISTS, "that url is the repository %s", row.key);
	return take_up(c, &row, &checked, done, arg);
}

int repo_refresh(struct core *c, const struct repo_row *row, int client_fd, repo_done_fn *done,
                 void *arg, struct fail *f)
{
	struct repo_job *j = job_of(c, row->id);

	if (row->state == REPO_FAILED && !j)
		return fail_set(f, FAIL_CONFLICT, "it was never cloned: %s",
		                row->state_reason ? row->state_reason : "");
	if (!j) {
		j = job_new(c, row, client_fd);
		add_waiter(j, done, arg, false);
		start(j);
		return 0;
	}
	add_waiter(j, done, arg, true);
	return 0;
}

static int check_unused(struct core *c, const struct repo_row *row, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct workspace_query q = { .page = { .tenant = row->tenant, .limit = 1 },
		                     .repo = row->id };
	struct workspace_list list;
	struct err e = { 0 };

	for (enum workspace_state s = 0; s < WORKSPACE_STATE_COUNT; s++)
		q.states |= s == WORKSPACE_GONE ? 0 : 1u << s;
	if (store_workspace_list(c->store, &q, &a, &list, &e) < 0)
		return fail_err(f, &e);
	if (list.n == 0)
		return 0;
	return fail_set(f, FAIL_CONFLICT, "a workspace needs it: %s%s",
	                list.rows[0].key ? list.rows[0].key : list.rows[0].id,
	                list.rows[0].state == WORKSPACE_TRASH ? ", in the trash" : "");
}

struct deletion {
	struct core *core;
	repo_done_fn *done;
	void *arg;
	char id[ID_SIZE];
};

static void deleted(void *arg, const struct store_answer *a)
{
	struct deletion *d = arg;
	AUTO(arena_done) struct arena arena = { 0 };
	struct tree_list trees;
	struct fail f = { 0 };
	struct err e = { 0 };

	if (a->code != STORE_OK)
		fail_set(&f, a->code == STORE_CONFLICT ? FAIL_BUSY : FAIL_BACKEND_ERROR,
		         "the repository is being changed");
	else if (store_tree_of(d->core->store, d->id, &arena, &trees, &e) == 0)
		for (size_t i = 0; i < trees.n; i++)
			tree_remove(d->core, (uint64_t)trees.rows[i].num);
	d->done(d->arg, &(struct repo_end){ .fail = f.code == FAIL_NONE ? NULL : &f });
	free(d);
}

int repo_delete(struct core *c, const struct repo_row *row, repo_done_fn *done, void *arg,
                struct fail *f)
{
	struct repo_row gone = *row;
	struct err e = { 0 };

	if (job_of(c, row->id))
		return fail_set(f, FAIL_BUSY, "the repository is %s", repo_state_name(row->state));
	if (check_unused(c, row, f) < 0)
		return -1;
	struct deletion *d = mem_alloc(sizeof *d);
	*d = (struct deletion){ .core = c, .done = done, .arg = arg };
	snprintf(d->id, sizeof d->id, "%s", row->id);
	gone.state = REPO_GONE;
	gone.state_reason = "deleted";
	gone.ended_ms = core_now_ms();
	if (store_repo_update(c->store, &gone, REPO_SET_STATE | REPO_SET_ENDED,
	                      (struct store_call){ .done = deleted, .arg = d }, &e) == 0)
		return 0;
	free(d);
	return fail_err(f, &e);
}

/* ---- life ---------------------------------------------------------------------------- */

/* Their service sandboxes died with the daemon before us; the trees of clones are removed by
 * trees.h, and a mirror that was being refreshed is whole: a fetch only ever adds. */
void repo_recover(struct core *c)
{
	struct err e = { 0 };

	if (store_repo_unlock(c->store, RESTARTED, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, NULL);
}

void repo_close(struct core *c)
{
	struct repo_job *next;

	for (struct repo_job *j = c->repo_jobs; j; j = next) {
		next = j->next;
		job_free(j);
	}
}
