/*
 * template_run.c - what a template starts in each of its sandboxes, and when that is ready.
 */
#include "core/runner.h"
#include "core/template.h"

#define AGAIN_MS 200
#define ONCE_MS 60000

struct template_run {
	struct core *core;
	char sandbox[ID_SIZE];
	json_t *context;
	char *user;
	uint64_t until_ms;
	struct runner *runner; /* of the ready command */
	struct timer turn;
	struct fail fail;
	template_run_fn *done;
	void *arg;
};

const char *template_user(const char *user, const char *own)
{
	return !user || !*user || strcmp(user, own) == 0 ? NULL : user;
}

bool template_mounts(const char *workdir, const char *home)
{
	size_t n = strlen(home);

	return strcmp(workdir, "/") != 0 &&
	       (strncmp(workdir, home, n) != 0 || (workdir[n] != '/' && workdir[n] != '\0'));
}

struct pair_list template_env(const json_t *context, struct arena *a)
{
	json_t *env = json_object_get(context, "env"), *v;
	struct pair_list out = { .at = arena_alloc(a, (json_object_size(env) + 1) *
		                                          sizeof(struct text_pair)) };
	const char *k;

	json_object_foreach(env, k, v) out.at[out.len++] =
	    (struct text_pair){ k, json_string_value(v) };
	return out;
}

static const char *text_of(const struct template_run *r, const char *key)
{
	return json_string_value(json_object_get(r->context, key));
}

static void run_free(struct template_run *r)
{
	timer_stop(&r->core->timers, &r->turn);
	runner_cancel(r->runner);
	json_decref(r->context);
	free(r->user);
	free(r);
}

static void tell(struct template_run *r)
{
	r->done(r->arg, r->fail.code == FAIL_NONE ? NULL : &r->fail);
	run_free(r);
}

static void looked(void *arg, const struct runner_end *end)
{
	struct template_run *r = arg;

	r->runner = NULL;
	if (end->fail.code == FAIL_SANDBOX_UNAVAILABLE)
		r->fail = end->fail;
	else if ((end->fail.code != FAIL_NONE || end->exit_code != 0) &&
	         core_mono_ms() > r->until_ms)
		fail_set(&r->fail, FAIL_BACKEND_ERROR, "the ready command never succeeded");
	else if (end->fail.code != FAIL_NONE || end->exit_code != 0) {
		timer_set(&r->core->timers, &r->turn, AGAIN_MS);
		return;
	}
	tell(r);
}

static struct sbx *sandbox_of(struct template_run *r)
{
	struct fail f = { 0 };
	struct sbx *s = roster_find(&r->core->sandboxes, r->sandbox);

	if (s && sbx_check_running(s, &f) == 0)
		return s;
	fail_set(&r->fail, FAIL_SANDBOX_UNAVAILABLE, "the sandbox has ended");
	return NULL;
}

static void look(struct timer *t)
{
	struct template_run *r =
	    (struct template_run *)(void *)((char *)t - offsetof(struct template_run, turn));
	const char *ready = text_of(r, "ready");
	struct sbx *s = r->fail.code == FAIL_NONE ? sandbox_of(r) : NULL;
	AUTO(arena_done) struct arena a = { 0 };

	if (s && ready) {
		const struct pair_list env = template_env(r->context, &a);
		const struct runner_ask ask = { .script = ready,
			                        .user = template_user(text_of(r, "user"), r->user),
			                        .cwd = text_of(r, "workdir"),
			                        .env = &env,
			                        .timeout_ms = ONCE_MS,
			                        .done = looked,
			                        .arg = r };
		r->runner = runner_start(s, &ask, &r->fail);
	}
	if (!r->runner)
		tell(r);
}

static void start(struct template_run *r)
{
	AUTO(arena_done) struct arena a = { 0 };
	const struct pair_list env = template_env(r->context, &a);
	const char *script = text_of(r, "start");
	struct sbx *s = r->fail.code == FAIL_NONE ? sandbox_of(r) : NULL;

	if (s && script) {
		const struct px_ask ask = { .script = script,
			                    .label = "start",
			                    .user = template_user(text_of(r, "user"), r->user),
			                    .cwd = text_of(r, "workdir"),
			                    .env = &env };
		struct px *p = px_start(s, &ask, &r->fail);

		if (p)
			px_unref(p);
	}
	timer_set(&r->core->timers, &r->turn, 0);
}

struct template_run *template_run(struct sbx *s, const struct template_run_ask *ask)
{
	struct template_run *r = mem_alloc(sizeof *r);

	*r = (struct template_run){ .core = s->core,
		                    .context = json_incref((json_t *)ask->context),
		                    .user = mem_strdup(ask->user),
		                    .until_ms = core_mono_ms() + ask->time_ms,
		                    .turn.fired = look,
		                    .done = ask->done,
		                    .arg = ask->arg };
	snprintf(r->sandbox, sizeof r->sandbox, "%s", s->id);
	start(r);
	return r;
}

void template_run_cancel(struct template_run *r)
{
	if (r)
		run_free(r);
}
