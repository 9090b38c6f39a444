#include "core/checkout.h"

#include <fcntl.h>

#include "base/fd.h"
#include "core/gitscript.h"
#include "core/trees.h"
#include "io/journal.h"
#include "store/trees.h"

#define CHECKOUT_MS (60ull * 60 * 1000)
#define RESOLVE_MS 60000u
#define ANSWER_BYTES 1024
#define EVICTING_MS 5

/* One question on its way. */
struct asking {
	struct asking *next;
	struct asking *next_waiter; /* for the same layer */
	struct core *core;
	struct timer timer; /* the next step, in a turn of its own */
	char tenant[TENANT_SIZE];
	char *repo_name, *base;
	char upstream[GIT_REF_MAX + 1]; /* the branch that the base is, or "" */
	bool has_branch;                /* one of the caller's */
	bool is_fresh;                  /* the mirror was brought up to date for this */
	int client_fd;
	struct service *service;
	struct checkout out;
	struct fail fail;
	checkout_done_fn *done;
	void *arg;
};

/* A layer that is being made, and who waits for it. */
struct layer_job {
	struct layer_job *next;
	struct core *core;
	char repo[ID_SIZE], tenant[TENANT_SIZE], key[STORE_NAME_MAX + 1];
	uint64_t mirror, below, num; /* below: the checkout, of a head */
	char *url;
	char commit[GIT_SHA_SIZE], branch[GIT_REF_MAX + 1], upstream[GIT_REF_MAX + 1];
	struct service *service;
	struct asking *waiters;
};

/* ---- the end of a question ------------------------------------------------------------ */

static void asking_free(struct asking *q)
{
	struct asking **at = &q->core->askings;

	while (*at && *at != q)
		at = &(*at)->next;
	if (*at)
		*at = q->next;
	timer_stop(&q->core->timers, &q->timer);
	repo_forget(q->core, q);
	service_cancel(q->service);
	fd_close(&q->client_fd);
	free(q->repo_name);
	free(q->base);
	free(q);
}

static void finish(struct asking *q)
{
	bool is_well = q->fail.code == FAIL_NONE;

	q->done(q->arg, is_well ? &q->out : NULL, is_well ? NULL : &q->fail);
	asking_free(q);
}

/* The next thing that is not known yet, in a turn of its own. */
static void go_on(struct asking *q)
{
	timer_set(&q->core->timers, &q->timer, 0);
}

/* ---- a layer -------------------------------------------------------------------------- */

static struct layer_job *layer_job_of(const struct core *c, const char *repo, const char *key)
{
	for (struct layer_job *l = c->layer_jobs; l; l = l->next)
		if (strcmp(l->repo, repo) == 0 && strcmp(l->key, key) == 0)
			return l;
	return NULL;
}

static void layer_free(struct layer_job *l)
{
	struct layer_job **at = &l->core->layer_jobs;

	while (*at && *at != l)
		at = &(*at)->next;
	if (*at)
		*at = l->next;
	service_cancel(l->service);
	free(l->url);
	free(l);
}

static void layer_done(struct layer_job *l, const struct fail *f)
{
	if (f && l->num)
		tree_remove(l->core, l->num);
	for (struct asking *q = l->waiters; q; q = q->next_waiter) {
		if (f)
			q->fail = *f;
		go_on(q); /* finds it in the store, or says why not */
	}
	layer_free(l);
}

static void sealed(void *arg, uint64_t num, const struct fail *f)
{
	(void)num;
	layer_done(arg, f);
}

static void filled(void *arg, const struct service_end *end)
{
	struct layer_job *l = arg;
	struct fail f;

	l->service = NULL;
	git_explain(end, l->below ? "make the branch" : "check out", &f);
	if (f.code != FAIL_NONE)
		layer_done(l, &f);
	else
		tree_seal(l->core, l->num, sealed, l);
}

static void layer_made(void *arg, uint64_t num, const struct fail *fail)
{
	struct layer_job *l = arg;
	struct fail f = { 0 };

	if (fail) {
		layer_done(l, fail);
		return;
	}
	l->num = num;
	const struct maker_tree trees[] = {
		{ .tree = l->mirror, .at = GIT_MIRROR, .is_read_only = true },
		{ .tree = l->below ? l->below : num, .at = "/work", .is_read_only = l->below != 0 },
		{ .tree = num, .at = GIT_HEAD_LAYER },
	};
	const char *checkout[] = { l->commit, l->url, NULL };
	const char *head[] = { l->commit, l->branch, l->url, l->upstream, NULL };
	const struct service_ask ask = { .tenant = l->tenant,
		                         .script = l->below ? git_script_head : git_script_checkout,
		                         .args = l->below ? head : checkout,
		                         .trees = trees,
		                         .n_trees = l->below ? 3 : 2,
		                         .timeout_ms = CHECKOUT_MS,
		                         .out_max = ANSWER_BYTES,
		                         .done = filled,
		                         .arg = l };

	l->service = service_start(l->core, &ask, &f);
	if (!l->service)
		layer_done(l, &f);
}

static void layer_start(struct asking *q, const struct repo_row *row, const char *key,
                        uint64_t below)
{
	struct layer_job *l = mem_alloc(sizeof *l);
	struct git_url u = { .is_folder = true };
	struct err e = { 0 };

	*l = (struct layer_job){ .next = q->core->layer_jobs,
		                 .core = q->core,
		                 .mirror = q->out.mirror,
		                 .below = below };
	snprintf(l->repo, sizeof l->repo, "%s", row->id);
	snprintf(l->tenant, sizeof l->tenant, "%s", row->tenant);
	snprintf(l->key, sizeof l->key, "%s", key);
	snprintf(l->commit, sizeof l->commit, "%s", q->out.commit);
	snprintf(l->branch, sizeof l->branch, "%s", q->out.branch);
	if (strcmp(q->upstream, q->out.branch) == 0)
		snprintf(l->upstream, sizeof l->upstream, "%s", q->upstream);
	/* A path of the host means nothing inside. */
	(void)!git_url_read(row->url, &u, &e);
	l->url = mem_strdup(u.is_folder ? GIT_MIRROR : u.text);
	q->next_waiter = NULL;
	l->waiters = q;
	q->core->layer_jobs = l;
	const struct tree_new ask = { l->tenant, "checkout", l->repo, l->key };

	tree_make(q->core, &ask, layer_made, l);
}

/* 1 with its number; 0: it is being made, and go_on() comes. */
static int layer_get(struct asking *q, const struct repo_row *row, const char *key, uint64_t below,
                     uint64_t *num)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct layer_job *l = layer_job_of(q->core, row->id, key);
	struct tree_row tree;
	struct err e = { 0 };

	if (l) {
		q->next_waiter = l->waiters;
		l->waiters = q;
		return 0;
	}
	if (store_tree_by_key(
		q->core->store,
		&(struct tree_row){ .owner = row->id, .kind = "checkout", .key = key }, &a, &tree,
		&e) == 0 &&
	    tree.state == TREE_READY) {
		*num = (uint64_t)tree.num;
		return 1;
	}
	layer_start(q, row, key, below);
	return 0;
}

static void get_layers(struct asking *q, const struct repo_row *row)
{
	char key[GIT_SHA_SIZE + GIT_REF_MAX + 1];
	uint64_t checkout, head;

	if (layer_get(q, row, q->out.commit, 0, &checkout) == 0)
		return;
	q->out.n_layers = 0;
	if (q->out.branch[0]) {
		snprintf(key, sizeof key, "%s:%s", q->out.commit, q->out.branch);
		if (layer_get(q, row, key, checkout, &head) == 0)
			return;
		q->out.layers[q->out.n_layers++] = head;
	}
	q->out.layers[q->out.n_layers++] = checkout;
	finish(q);
}

/* ---- what the base means -------------------------------------------------------------- */

static void take_resolved(struct asking *q, const char *sha, const char *branch)
{
	snprintf(q->out.commit, sizeof q->out.commit, "%s", sha);
	snprintf(q->upstream, sizeof q->upstream, "%s", branch ? branch : "");
	if (!q->has_branch)
		snprintf(q->out.branch, sizeof q->out.branch, "%s", q->upstream);
}

static void keep_resolved(struct asking *q, int64_t generation)
{
	const struct ref_row ref = { .repo = q->out.repo,
		                     .name = q->base,
		                     .sha = q->out.commit,
		                     .branch = q->upstream[0] ? q->upstream : NULL,
		                     .generation = generation };
	struct err e = { 0 };

	if (store_ref_put(q->core->store, &ref, (struct store_call){ .is_lazy = true }, &e) < 0)
		journal(JOURNAL_DEBUG, e.msg, "repo", q->out.repo, NULL); /* asked again then */
}

static void resolved(void *arg, const struct service_end *end)
{
	struct asking *q = arg;
	AUTO(arena_done) struct arena a = { 0 };
	char what[GIT_REF_MAX + 8];
	struct repo_row row;
	struct err e = { 0 };

	q->service = NULL;
	snprintf(what, sizeof what, "%s", q->base);
	git_explain(end, what, &q->fail);
	size_t n = strcspn(end->out, "\n");
	char *branch = q->fail.code == FAIL_NONE && end->out[n]
	                   ? arena_strndup(&a, end->out + n + 1, strcspn(end->out + n + 1, "\n"))
	                   : NULL;

	if (q->fail.code == FAIL_NONE && (!branch || !git_sha_is(end->out, n)))
		fail_set(&q->fail, FAIL_BACKEND_ERROR, "%s: git said something else", what);
	if (q->fail.code != FAIL_NONE) {
		finish(q);
		return;
	}
	take_resolved(q, arena_strndup(&a, end->out, n), git_ref_is(branch) ? branch : NULL);
	if (store_repo_get(q->core->store, q->tenant, q->out.repo, &a, &row, &e) == 0)
		keep_resolved(q, row.generation);
	go_on(q);
}

static void resolve(struct asking *q)
{
	const struct maker_tree mirror = { .tree = q->out.mirror,
		                           .at = GIT_MIRROR,
		                           .is_read_only = true };
	const char *args[] = { q->base, NULL };
	const struct service_ask ask = { .tenant = q->tenant,
		                         .script = git_script_resolve,
		                         .args = args,
		                         .trees = &mirror,
		                         .n_trees = 1,
		                         .timeout_ms = RESOLVE_MS,
		                         .out_max = ANSWER_BYTES,
		                         .done = resolved,
		                         .arg = q };

	q->service = service_start(q->core, &ask, &q->fail);
	if (!q->service)
		finish(q);
}

/* By what was asked before; a commit whose layer is there needs no question at all. */
static bool is_known(struct asking *q, const struct repo_row *row)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct tree_row tree;
	struct ref_row ref;
	struct err e = { 0 };

	if (git_sha_is(q->base, strlen(q->base)) &&
	    store_tree_by_key(
		q->core->store,
		&(struct tree_row){ .owner = row->id, .kind = "checkout", .key = q->base }, &a,
		&tree, &e) == 0) {
		take_resolved(q, q->base, NULL);
		return true;
	}
	if (store_ref_get(q->core->store, row->id, q->base, &a, &ref, &e) < 0 ||
	    ref.generation != row->generation)
		return false;
	take_resolved(q, ref.sha, ref.branch);
	return true;
}

/* ---- the mirror ----------------------------------------------------------------------- */

static void mirrored(void *arg, const struct repo_end *end)
{
	struct asking *q = arg;

	q->is_fresh = true;
	if (end->fail)
		q->fail = *end->fail;
	go_on(q);
}

/* A URL that is new: under a key that is made of it, or of chance when that is taken. */
static int clone(struct asking *q, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	char key[64], chance[ID_SIZE];
	struct git_url u;
	struct repo_row row;
	struct err e = { 0 };

	if (git_url_read(q->repo_name, &u, &e) < 0)
		return fail_set(f, FAIL_NOT_FOUND, "no such repository");
	git_url_key(&u, key, sizeof key - 10);
	if (store_repo_by_key(q->core->store, q->tenant, key, &a, &row, &e) == 0) {
		id_make(chance, "rp");
		snprintf(key + strlen(key), 10, "-%.8s", chance + 3);
	}
	const struct repo_ask ask = {
		.tenant = q->tenant, .key = key, .url = u.text, .client_fd = q->client_fd
	};
	return repo_put(q->core, &ask, mirrored, q, f);
}

/* Names move, commits do not. */
static bool is_refresh_due(const struct asking *q, const struct repo_row *row)
{
	return !q->is_fresh && !git_sha_is(q->base, strlen(q->base)) && repo_is_due(row);
}

/* Whatever is not known yet is asked for; everything that happened meanwhile is in the store. */
static void step(struct timer *t)
{
	struct asking *q = (struct asking *)(void *)((char *)t - offsetof(struct asking, timer));
	AUTO(arena_done) struct arena a = { 0 };
	struct repo_row row;
	struct fail f = { 0 };

	if (q->fail.code != FAIL_NONE) {
		finish(q);
		return;
	}
	if (q->core->is_evicting) { /* the layer that it finds may be on its way out */
		timer_set(&q->core->timers, &q->timer, EVICTING_MS);
		return;
	}
	int r = repo_find(q->core, q->tenant, q->repo_name, &a, &row, &f);

	if (r < 0)
		r = clone(q, &q->fail);
	else if (row.state == REPO_FAILED || row.state == REPO_CLONING || is_refresh_due(q, &row))
		r = row.state == REPO_READY || row.state == REPO_REFRESHING
		        ? repo_refresh(q->core, &row, q->client_fd, mirrored, q, &q->fail)
		        : repo_put(q->core,
		                   &(struct repo_ask){ .tenant = q->tenant,
		                                       .key = row.key,
		                                       .url = row.url,
		                                       .client_fd = q->client_fd },
		                   mirrored, q, &q->fail);
	else {
		snprintf(q->out.repo, sizeof q->out.repo, "%s", row.id);
		q->out.mirror = (uint64_t)row.tree;
		if (q->out.commit[0] || is_known(q, &row))
			get_layers(q, &row);
		else
			resolve(q);
		return;
	}
	if (r < 0)
		finish(q);
}

void checkout_get(struct core *c, const struct checkout_ask *ask, checkout_done_fn *done, void *arg)
{
	struct asking *q = mem_alloc(sizeof *q);
	const char *base = ask->base && ask->base[0] ? ask->base : "HEAD";

	*q = (struct asking){ .next = c->askings, .core = c, .done = done, .arg = arg };
	c->askings = q;
	q->timer.fired = step;
	snprintf(q->tenant, sizeof q->tenant, "%s", ask->tenant);
	q->repo_name = mem_strdup(ask->repo);
	q->base = mem_strdup(base);
	q->client_fd = ask->client_fd < 0 ? -1 : fcntl(ask->client_fd, F_DUPFD_CLOEXEC, 3);
	q->has_branch = ask->branch != NULL;
	if (!git_ref_is(base))
		fail_set(&q->fail, FAIL_INVALID, "base: not the name of a branch, tag or commit");
	else if (ask->branch && (!git_ref_is(ask->branch) || strcmp(ask->branch, "HEAD") == 0))
		fail_set(&q->fail, FAIL_INVALID, "branch: not a name for a branch");
	else if (ask->branch)
		snprintf(q->out.branch, sizeof q->out.branch, "%s", ask->branch);
	go_on(q);
}

void checkout_close(struct core *c)
{
	struct layer_job *next_layer;
	struct asking *next;

	for (struct layer_job *l = c->layer_jobs; l; l = next_layer) {
		next_layer = l->next;
		layer_free(l);
	}
	for (struct asking *q = c->askings; q; q = next) {
		next = q->next;
		asking_free(q);
	}
}
