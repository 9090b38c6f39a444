/*
 * template_step.c - the steps of a build: RUN, COPY, WORKDIR, ENV, USER.
 *
 * RUN is the tenant's command, as his user. What COPY and WORKDIR do are scripts of ours, as root
 * of the sandbox where there is one; what they are about comes in variables.
 */
#include "core/image.h"
#include "core/template-internal.h"

#define STEPS_MAX 1000
#define RUN_MS (3600ull * 1000)
#define VALUE_MAX 65536
#define ENV_OURS 8

/* ---- what a step is told ------------------------------------------------------------- */

static const json_t *step_of(const struct template_build *b)
{
	return json_array_get(b->steps, b->at);
}

static const char *arg_of(const struct template_build *b, size_t i)
{
	const char *text =
	    json_string_value(json_array_get(json_object_get(step_of(b), "args"), i));

	return text ? text : "";
}

static const char *context_of(const struct template_build *b, const char *key)
{
	return json_string_value(json_object_get(b->context, key));
}

const char *build_path(struct arena *a, const char *from, const char *path)
{
	size_t size = strlen(from) + strlen(path) + 2;
	char *text = arena_alloc(a, size);

	if (path[0] == '/')
		return path;
	snprintf(text, size, "%s%s%s", from, strcmp(from, "/") == 0 ? "" : "/", path);
	return text;
}

static const char *path_of(const struct template_build *b, struct arena *a, const char *path)
{
	return build_path(a, context_of(b, "workdir"), path);
}

struct job_of_step {
	const char *script, *user;
	struct text_pair env[ENV_OURS]; /* besides those of the context; ends with NULL */
	void (*done)(void *arg, const struct runner_end *end);
	bool is_silent; /* what it says on standard output is for us */
};

static void said(void *arg, bool is_err, const char *text)
{
	(void)is_err;
	build_say(arg, "info", text);
}

static void said_error(void *arg, bool is_err, const char *text)
{
	if (is_err)
		build_say(arg, "info", text);
}

static int start(struct template_build *b, const struct job_of_step *job)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct sbx *s = build_sandbox(b);

	if (!s)
		return -1;
	const struct pair_list set = template_env(b->context, &a);
	struct pair_list env = { .at = arena_alloc(&a, (set.len + ENV_OURS) * sizeof *env.at),
		                 .len = set.len };
	if (set.len)
		memcpy(env.at, set.at, set.len * sizeof *env.at);
	for (size_t i = 0; i < ENV_OURS && job->env[i].key; i++)
		env.at[env.len++] = job->env[i];
	const struct runner_ask ask = { .script = job->script,
		                        .user = job->user,
		                        .cwd = context_of(b, "workdir"),
		                        .env = &env,
		                        .timeout_ms = RUN_MS,
		                        .line = job->is_silent ? said_error : said,
		                        .done = job->done,
		                        .arg = b };
	b->runner = runner_start(s, &ask, &b->fail);
	return b->runner ? 0 : -1;
}

static const char *root_of(const struct template_build *b)
{
	return b->core->host.is_root ? "root" : NULL;
}

/* "UID:GID" of a name; "" without root, where there is one id. */
static int owner_of(struct template_build *b, const char *user, char out[32])
{
	const struct sbx *s = build_sandbox(b);
	const char *name = template_user(user, b->own);
	uint32_t uid = s ? s->uid : 0, gid = s ? s->gid : 0;
	struct err e;

	if (!s)
		return -1;
	if (name && image_ids(s, name, &uid, &gid, &e) < 0)
		return fail_set(&b->fail, FAIL_INVALID, "invalid username: '%.64s'", user);
	snprintf(out, 32, "%u:%u", uid, gid);
	if (!b->core->host.is_root)
		out[0] = '\0';
	return 0;
}

/* ---- RUN ----------------------------------------------------------------------------- */

static void ran(void *arg, const struct runner_end *end)
{
	struct template_build *b = arg;
	struct fail f = { 0 };

	b->runner = NULL;
	if (end->fail.code != FAIL_NONE)
		fail_set(&f, end->fail.code, "failed to run command '%.200s': %.200s", arg_of(b, 0),
		         end->fail.detail);
	else if (end->exit_code != 0)
		fail_set(&f, FAIL_INVALID, "failed to run command '%.200s': exit status %d",
		         arg_of(b, 0), end->exit_code);
	if (f.code != FAIL_NONE)
		build_fail(b, &f);
	else
		build_step_done(b, true);
}

static int step_run(struct template_build *b)
{
	const char *user = *arg_of(b, 1) ? arg_of(b, 1) : context_of(b, "user");
	bool is_root = strcmp(user, "root") == 0;
	char owner[32];

	if (owner_of(b, user, owner) < 0)
		return fail_set(&b->fail, FAIL_INVALID,
		                "failed to run command '%.200s': command failed: "
		                "unauthenticated: invalid username: '%.64s'",
		                arg_of(b, 0), user);
	const struct job_of_step job = { .script = arg_of(b, 0),
		                         .user = template_user(user, b->own),
		                         .env = { { "HOME", is_root ? "/root" : b->home },
		                                  { "USER", user },
		                                  { "LOGNAME", user } },
		                         .done = ran };
	return start(b, &job);
}

/* ---- WORKDIR, COPY ------------------------------------------------------------------- */

static const char make_folder[] =
    "set -e\n"
    "make() { [ -d \"$1\" ] || { make \"$(dirname \"$1\")\"; mkdir \"$1\";\n"
    " [ -z \"$CAISSON_OWNER\" ] || chown \"$CAISSON_OWNER\" \"$1\"; }; }\n"
    "make \"$CAISSON_TO\"\n";

/* A folder gives what is in it, unless a pattern named it. */
static const char copy[] =
    "set -e\n"
    "IFS=\n"
    "make() { [ -d \"$1\" ] || { make \"$(dirname \"$1\")\"; mkdir \"$1\"; own \"$1\"; }; }\n"
    "own() { [ -z \"$CAISSON_OWNER\" ] || chown -h \"$CAISSON_OWNER\" \"$1\"; }\n"
    "one() { make \"$(dirname \"$2\")\"; rm -f \"$2\"; cp -dR \"$1\" \"$2\"; own \"$2\";\n"
    " [ -z \"$CAISSON_MODE\" ] || [ -L \"$2\" ] || chmod \"$CAISSON_MODE\" \"$2\"; }\n"
    "put() {\n"
    " if [ -L \"$1\" ] || [ ! -d \"$1\" ]; then one \"$1\" \"$2\"; return; fi\n"
    " make \"$2\"\n"
    " for name in \"$1\"/* \"$1\"/.[!.]* \"$1\"/..?*; do\n"
    "  [ -e \"$name\" ] || [ -L \"$name\" ] || continue\n"
    "  put \"$name\" \"$2/${name##*/}\"\n"
    " done; }\n"
    "cd \"$CAISSON_FROM\"\n"
    "set -- $CAISSON_WHAT\n"
    "[ -e \"$1\" ] || [ -L \"$1\" ] || { echo \"COPY: there is no $CAISSON_WHAT\" >&2; exit 1; }\n"
    "to=$CAISSON_TO into=\n"
    "case $to in */) into=1; to=${to%/};; esac\n"
    "case $CAISSON_WHAT in *[*?[]*) into=1;; esac\n"
    "[ ! -d \"$to\" ] || into=1\n"
    "for what; do\n"
    " what=${what%/}\n"
    " if [ -d \"$what\" ] && [ ! -L \"$what\" ] && [ \"$what\" = \"${CAISSON_WHAT%/}\" ]; then\n"
    "  put \"$what\" \"$to\"\n"
    " elif [ \"$into\" ]; then\n"
    "  put \"$what\" \"$to/${what##*/}\"\n"
    " else\n"
    "  put \"$what\" \"$to\"\n"
    " fi\n"
    "done\n";

static void placed(void *arg, const struct runner_end *end)
{
	struct template_build *b = arg;
	struct fail f = { 0 };

	b->runner = NULL;
	if (end->fail.code != FAIL_NONE)
		f = end->fail;
	else if (end->exit_code != 0)
		fail_set(&f, FAIL_INVALID, "%s %.200s failed: exit status %d",
		         json_string_value(json_object_get(step_of(b), "type")), arg_of(b, 0),
		         end->exit_code);
	if (f.code != FAIL_NONE)
		build_fail(b, &f);
	else
		build_step_done(b, true);
}

static int step_workdir(struct template_build *b)
{
	AUTO(arena_done) struct arena a = { 0 };
	const char *path = path_of(b, &a, arg_of(b, 0));
	char owner[32];

	if (b->at >= b->cached && owner_of(b, context_of(b, "user"), owner) < 0)
		return -1;
	const struct job_of_step job = { .script = make_folder,
		                         .user = root_of(b),
		                         .env = { { "CAISSON_TO", path },
		                                  { "CAISSON_OWNER", owner } },
		                         .done = placed };
	int r = b->at >= b->cached ? start(b, &job) : 1;
	json_object_set_new(b->context, "workdir", json_string(path));
	return r;
}

static int step_copy(struct template_build *b)
{
	AUTO(arena_done) struct arena a = { 0 };
	const char *user = *arg_of(b, 2) ? arg_of(b, 2) : context_of(b, "user");
	char owner[32], from[64];

	if (owner_of(b, user, owner) < 0)
		return -1;
	snprintf(from, sizeof from, BUILD_COPIES "/%zu", b->at);
	const struct job_of_step job = { .script = copy,
		                         .user = root_of(b),
		                         .env = { { "CAISSON_FROM", from },
		                                  { "CAISSON_WHAT", arg_of(b, 0) },
		                                  { "CAISSON_TO", path_of(b, &a, arg_of(b, 1)) },
		                                  { "CAISSON_OWNER", owner },
		                                  { "CAISSON_MODE", arg_of(b, 3) } },
		                         .done = placed };
	return start(b, &job);
}

/* ---- ENV, USER ----------------------------------------------------------------------- */

static int step_env(struct template_build *b);

static void set_variable(struct template_build *b, const char *value, size_t n)
{
	json_t *text = json_stringn(value, n);

	if (text) /* bytes that are no text leave it as it was */
		json_object_set_new(json_object_get(b->context, "env"), arg_of(b, b->pair), text);
	b->pair += 2;
}

static void evaluated(void *arg, const struct runner_end *end)
{
	struct template_build *b = arg;
	struct fail f = { 0 };

	b->runner = NULL;
	if (end->fail.code != FAIL_NONE || end->exit_code != 0) {
		fail_set(&f, FAIL_INVALID, "ENV %.64s: its value cannot be evaluated",
		         arg_of(b, b->pair));
		build_fail(b, &f);
		return;
	}
	set_variable(b, end->out, end->out_len);
	build_then(b, build_step);
}

/* A value may name variables that are there: the shell inside knows them. */
static int evaluate(struct template_build *b, const char *value)
{
	AUTO(str_done) struct str script = { .max = (size_t)2 * VALUE_MAX };

	str_add(&script, "printf %s \"");
	for (const char *at = value; *at; at++)
		str_addf(&script, "%s%c", strchr("\"`\\", *at) ? "\\" : "", *at);
	str_add(&script, "\"");
	if (script.overflow)
		return fail_set(&b->fail, FAIL_TOO_LARGE, "ENV: a value is too long");
	return start(b, &(struct job_of_step){
			    .script = str_text(&script), .done = evaluated, .is_silent = true });
}

static int step_env(struct template_build *b)
{
	while (b->pair < json_array_size(json_object_get(step_of(b), "args"))) {
		const char *value = arg_of(b, b->pair + 1);

		if (strchr(value, '$'))
			return evaluate(b, value);
		set_variable(b, value, strlen(value));
	}
	b->pair = 0;
	return 1;
}

static int step_user(struct template_build *b)
{
	char owner[32];

	if (owner_of(b, arg_of(b, 0), owner) < 0)
		return -1;
	json_object_set_new(b->context, "user", json_string(arg_of(b, 0)));
	return 1;
}

/* ---- one after the other ------------------------------------------------------------- */

/* 0: it is under way, 1: done, and nothing was written; -1: b->fail. */
static const struct kind {
	const char *name;
	int (*run)(struct template_build *b);
	size_t args;     /* at least */
	bool is_written; /* skipped where all that it wrote is there */
} kinds[] = {
	{ "RUN", step_run, 1, true },          { "COPY", step_copy, 2, true },
	{ "WORKDIR", step_workdir, 1, false }, { "ENV", step_env, 2, false },
	{ "USER", step_user, 1, false },
};

static const struct kind *kind_of(const json_t *step)
{
	const char *type = json_string_value(json_object_get(step, "type"));

	for (size_t i = 0; i < COUNT(kinds); i++)
		if (type && strcmp(type, kinds[i].name) == 0)
			return &kinds[i];
	return NULL;
}

int build_check_steps(const struct template_build *b, struct fail *f)
{
	size_t i, k;
	const json_t *step, *arg;

	if (json_array_size(b->steps) > STEPS_MAX)
		return fail_set(f, FAIL_INVALID, "steps: at most %d", STEPS_MAX);
	json_array_foreach(b->steps, i, step)
	{
		const struct kind *kind = kind_of(step);
		const json_t *args = json_object_get(step, "args");

		if (!kind)
			return fail_set(f, FAIL_INVALID,
			                "steps: RUN, COPY, WORKDIR, ENV and USER are known");
		json_array_foreach(
		    args, k, arg) if (!json_is_string(arg) ||
		                      strlen(json_string_value(arg)) !=
		                          json_string_length(
					      arg)) return fail_set(f, FAIL_INVALID,
		                                                    "steps: %s: texts are expected",
		                                                    kind->name);
		if (json_array_size(args) < kind->args ||
		    (kind->run == step_env && json_array_size(args) % 2))
			return fail_set(f, FAIL_INVALID, "steps: %s: too few arguments",
			                kind->name);
	}
	return 0;
}

static void announce(struct template_build *b, const struct kind *kind, bool is_skipped)
{
	build_sayf(b, "info", "[builder %zu/%zu] %s%s %.900s", b->at + 1, json_array_size(b->steps),
	           is_skipped ? "CACHED " : "", kind->name, arg_of(b, 0)); /* no values of ENV */
}

void build_step(struct template_build *b)
{
	const struct kind *kind = kind_of(step_of(b));

	if (!kind) {
		build_finish(b);
		return;
	}
	bool is_skipped = kind->is_written && b->at < b->cached;
	snprintf(b->step, sizeof b->step, "%zu", b->at + 1);
	if (b->pair == 0)
		announce(b, kind, is_skipped);
	int r = is_skipped ? 1 : kind->run(b);

	if (r < 0)
		build_end(b);
	else if (r > 0)
		build_step_done(b, false);
}
