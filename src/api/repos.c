/*
 * repos.c - /v1/repos: mirrors of repositories, how far a clone is, and refresh.
 */
#include "api/handlers.h"
#include "api/print.h"
#include "core/details.h"
#include "core/repo.h"

#define ROW_MS 2
#define WAIT_MS_MAX (2ull * 60 * 60 * 1000)

/* One request that waits for a mirror. */
struct repo_op {
	struct call *call;
	struct core *core;
	struct timer late;
	char id[ID_SIZE]; /* of the one that was made or found */
	bool is_new, has_tips;
	enum ledger_kind kind; /* what goes on record when it is done */
};

static int client_of(const struct call *c)
{
	return c->r->door == DOOR_UNIX ? c->r->socket_fd : -1;
}

static void op_free(struct repo_op *o)
{
	timer_stop(&o->core->timers, &o->late);
	call_unref(o->call);
	free(o);
}

/* Where it comes from has no password in it: it would not have been taken. */
static void put_on_record(const struct repo_op *o, const struct repo_end *end)
{
	json_t *data = json_pack("{so}", "repo", details_text(o->call->params[0]));

	if (end->row) {
		json_object_set_new(data, "id", json_string(end->row->id));
		json_object_set_new(data, "url", details_text(end->row->url));
	}
	if (o->has_tips && end->tip[0])
		json_object_set_new(data, "tip", details_text(end->tip));
	call_note(o->call, o->kind, NULL, data);
}

static void op_done(void *arg, const struct repo_end *end)
{
	struct repo_op *o = arg;

	if (!end->fail && (o->kind != LEDGER_REPO_ADDED || o->is_new))
		put_on_record(o, end);

	if (end->fail) {
		answer_fail(o->call, end->fail);
	} else if (!end->row) {
		answer_empty(o->call, 204);
	} else {
		json_t *body = print_repo(end->row, NULL);

		if (o->has_tips) {
			json_object_set_new(body, "old",
			                    end->old[0] ? json_string(end->old) : json_null());
			json_object_set_new(body, "new",
			                    end->tip[0] ? json_string(end->tip) : json_null());
		}
		answer_json(o->call, o->is_new ? 201 : 200, body);
	}
	op_free(o);
}

/* It goes on; who asked hears how it is now. */
static void op_late(struct timer *t)
{
	struct repo_op *o = (struct repo_op *)(void *)((char *)t - offsetof(struct repo_op, late));
	AUTO(arena_done) struct arena a = { 0 };
	struct repo_row row;
	struct fail f = { 0 };

	if (repo_find(o->core, o->call->tenant, o->call->params[0], &a, &row, &f) < 0) {
		timer_set(&o->core->timers, &o->late, ROW_MS); /* its row is on its way */
		return;
	}
	repo_forget(o->core, o);
	answer_json(o->call, 202, print_repo(&row, repo_progress(o->core, row.id)));
	op_free(o);
}

static struct repo_op *op_new(struct call *c, enum ledger_kind kind)
{
	struct repo_op *o = mem_alloc(sizeof *o);

	*o = (struct repo_op){
		.call = call_ref(c), .core = c->api->core, .late.fired = op_late, .kind = kind
	};
	return o;
}

static int take_wait(struct call *c, uint64_t *ms, struct fail *f)
{
	const char *text = call_query(c, "wait");
	struct err e = { 0 };

	*ms = WAIT_MS_MAX;
	if (!text)
		return 0;
	if (duration_parse(text, ms, &e) < 0)
		return fail_set(f, FAIL_INVALID, "wait: %s", e.msg);
	*ms = *ms < WAIT_MS_MAX ? *ms : WAIT_MS_MAX;
	return 0;
}

/* ---- put, refresh, delete ------------------------------------------------------------ */

static int put_parse(struct call *c, struct repo_ask *ask, struct fail *f)
{
	json_t *refs = json_object_get(c->body, "refs");

	*ask = (struct repo_ask){ .tenant = c->tenant,
		                  .key = c->params[0],
		                  .client_fd = client_of(c) };
	if (members_known(c->body, (const char *const[]){ "url", "cred", "refs", "refresh", NULL },
	                  f) < 0 ||
	    member_text(c->body, "url", &ask->url, f) < 0 ||
	    member_text(c->body, "cred", &ask->cred, f) < 0 ||
	    member_text(c->body, "refresh", &ask->refresh, f) < 0)
		return -1;
	if (!ask->url)
		return fail_set(f, FAIL_INVALID, "url: it is needed");
	if (refs && !json_is_null(refs)) {
		AUTO(freep) char *text = json_dumps(refs, JSON_COMPACT | JSON_ENCODE_ANY);

		ask->refs = arena_strdup(&c->arena, text);
	}
	return 0;
}

void repos_put(struct call *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct repo_row known;
	struct repo_ask ask;
	uint64_t wait_ms;
	struct fail f = { 0 }, none = { 0 };

	if (put_parse(c, &ask, &f) < 0 || take_wait(c, &wait_ms, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	struct repo_op *o = op_new(c, LEDGER_REPO_ADDED);
	o->is_new = repo_find(o->core, c->tenant, ask.key, &a, &known, &none) < 0;
	timer_set(&o->core->timers, &o->late, wait_ms); /* first: it may be over in the call */
	if (repo_put(o->core, &ask, op_done, o, &f) < 0) {
		answer_fail(c, &f);
		op_free(o);
	}
}

/* The {id} of the path; -1: it was answered that there is none. */
static int find(struct call *c, struct arena *a, struct repo_row *out)
{
	struct fail f = { 0 };

	if (repo_find(c->api->core, c->tenant, c->params[0], a, out, &f) == 0)
		return 0;
	answer_fail(c, &f);
	return -1;
}

void repos_refresh(struct call *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct repo_row row;
	uint64_t wait_ms;
	struct fail f = { 0 };

	if (find(c, &a, &row) < 0)
		return;
	if (take_wait(c, &wait_ms, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	struct repo_op *o = op_new(c, LEDGER_REPO_REFRESHED);
	o->has_tips = true;
	timer_set(&o->core->timers, &o->late, wait_ms);
	if (repo_refresh(o->core, &row, client_of(c), op_done, o, &f) < 0) {
		answer_fail(c, &f);
		op_free(o);
	}
}

void repos_delete(struct call *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct repo_row row;
	struct fail f = { 0 };

	if (find(c, &a, &row) < 0)
		return;
	struct repo_op *o = op_new(c, LEDGER_REPO_REMOVED);
	if (repo_delete(o->core, &row, op_done, o, &f) < 0) {
		answer_fail(c, &f);
		op_free(o);
	}
}

void repos_list(struct call *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct store_page page = { 0 };
	struct repo_list list = { 0 };
	struct fail f = { 0 };
	struct err e = { 0 };

	int r = take_page(c, &page, &f);
	if (r == 0 && store_repo_list(c->api->core->store, &page, &a, &list, &e) < 0)
		r = fail_err(&f, &e);
	if (r < 0) {
		answer_fail(c, &f);
		return;
	}
	json_t *rows = json_array();
	for (size_t i = 0; i < list.n; i++)
		repo_settle(c->api->core, &list.rows[i]);
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(
		    rows, print_repo(&list.rows[i], repo_progress(c->api->core, list.rows[i].id)));
	answer_json(c, 200, json_pack("{so,ss?}", "repos", rows, "next", list.next));
}

/* ---- one, and how far it is ----------------------------------------------------------- */

struct follower {
	struct repo_watch watch; /* first */
	struct call *call;
	struct core *core;
	char id[ID_SIZE];
	bool is_full; /* lines are left out until there is room */
};

static void put_now(struct follower *w)
{
	AUTO(arena_done) struct arena a = { 0 };
	AUTO(str_done) struct str line = { .max = 64u << 10 };
	struct repo_row row;
	struct err e = { 0 };

	if (!w->call->r || store_repo_get(w->core->store, w->call->tenant, w->id, &a, &row, &e) < 0)
		return;
	json_t *o = print_repo(&row, repo_progress(w->core, w->id));
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	str_addf(&line, "%s\n", text);
	w->is_full = !reply_write(w->call->r, str_text(&line), line.len);
}

static void end_stream(struct follower *w)
{
	if (!w->call->r)
		return;
	w->call->is_answered = true;
	reply_end(w->call->r);
}

static void heard(struct repo_watch *watch, const char *line)
{
	struct follower *w = (struct follower *)watch;

	if (line && !w->is_full)
		put_now(w);
	if (line)
		return;
	repo_watch_remove(w->core, &w->watch);
	put_now(w); /* the row says how it ended */
	end_stream(w);
}

static void on_room(struct request *r)
{
	struct follower *w = ((struct call *)r->route)->state;

	w->is_full = false;
}

static void follow_over(struct call *c)
{
	struct follower *w = c->state;

	repo_watch_remove(w->core, &w->watch);
	call_unref(w->call);
	free(w);
}

static void follow(struct call *c, const struct repo_row *row)
{
	struct follower *w = mem_alloc(sizeof *w);

	*w = (struct follower){ .call = call_ref(c), .core = c->api->core, .watch.heard = heard };
	snprintf(w->id, sizeof w->id, "%s", row->id);
	c->state = w;
	c->over = follow_over;
	c->r->on_room = on_room;
	reply_begin(c->r, 200, "application/x-ndjson", -1,
	            (const char *[]){ "Cache-Control", "no-store", NULL });
	put_now(w);
	if (!repo_watch_add(w->core, w->id, &w->watch))
		end_stream(w);
}

void repos_get(struct call *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	const char *is_followed = call_query(c, "follow");
	struct repo_row row;

	if (find(c, &a, &row) < 0)
		return;
	if (is_followed && strcmp(is_followed, "0") != 0)
		follow(c, &row);
	else
		answer_json(c, 200, print_repo(&row, repo_progress(c->api->core, row.id)));
}
