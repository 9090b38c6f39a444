/*
 * collect.c - POST /v1/run with `files` or `collect`: a sandbox is made, given files, used for one
 * command, asked for what that made, and removed.
 *
 * Its walls have to stand after its command, so it is an ordinary sandbox for that long. A client
 * that leaves ends the command; what a daemon leaves that dies meanwhile expires by itself.
 *
 * What goes back is a promotion: files that execute later (wire/later.h) stay unless `allow_exec`
 * names them, and the rest is on record (run.collected) before it is answered.
 */
#include "api/handlers.h"
#include "api/print.h"
#include "core/files.h"
#include "core/ledger.h"
#include "engine/command.h"
#include "wire/base64.h"
#include "wire/hash.h"
#include "wire/later.h"

#define IDLE_MS 60000
#define PATTERNS_MAX 64
#define GIVEN_MAX 1000
#define NAMES_MAX 1000
#define TOTAL_MAX (8u << 20) /* of what is collected: the answer is one object, in memory */

struct collect {
	struct job job; /* first */
	struct px_watch watch;
	struct call *call;
	struct exec_ask ask;
	char sandbox[ID_SIZE];
	struct px *p;

	struct timer step;       /* a worker that has just answered takes nothing yet */
	bool is_lost;            /* it died */
	struct tree_answer said; /* by the worker */
	struct str got;
	void (*then)(struct collect *o);

	json_t *files, *names, *found, *missing;
	json_t *kept; /* of `found`, as the ledger has them: without contents */
	struct hash hash;
	const char *allow[PATTERNS_MAX]; /* patterns of allow_exec */
	size_t n_allow, n_left_out;
	size_t pattern, name; /* the next ones */
	uint64_t total;
};

static struct sbx *sandbox_of(const struct collect *o)
{
	return roster_find(&o->call->api->core->sandboxes, o->sandbox);
}

static void drop(struct collect *o)
{
	struct sbx *s = sandbox_of(o);
	struct fail f;

	if (s)
		(void)sbx_delete(s, NULL, NULL, &f); /* else it expires */
	if (o->p)
		px_unref(o->p);
	json_decref(o->files);
	json_decref(o->names);
	json_decref(o->found);
	json_decref(o->missing);
	json_decref(o->kept);
	str_done(&o->got);
	call_unref(o->call);
	free(o);
}

static void give_up(struct collect *o, const struct fail *f)
{
	o->call->state = NULL;
	o->call->gone = NULL;
	answer_fail(o->call, f);
	drop(o);
}

/* Ends the command; the rest takes its course, and whoever comes again with the same key is told.
 */
static void gone(struct call *c)
{
	const struct collect *o = c->state;
	struct fail f;

	if (o && o->p)
		(void)px_kill(o->p, &f); /* it may have ended meanwhile */
}

/* ---- the worker ---------------------------------------------------------------------- */

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct collect *o = (struct collect *)j;

	(void)is_last;
	o->said = p->answer;
	str_addn(&o->got, p->data.at, p->data.len);
}

static void data(struct job *j, struct span bytes)
{
	struct collect *o = (struct collect *)j;

	str_addn(&o->got, bytes.at, bytes.len);
}

static void over(struct job *j, const struct tree_answer *a)
{
	struct collect *o = (struct collect *)j;

	o->is_lost = !a;
	timer_set(&o->call->api->core->timers, &o->step, 0);
}

static void step(struct timer *t)
{
	struct collect *o = (struct collect *)(void *)((char *)t - offsetof(struct collect, step));
	struct fail f = { 0 };

	if (!o->is_lost) {
		o->then(o);
		return;
	}
	fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the file worker of the sandbox died");
	give_up(o, &f);
}

/* One request; `path` and `body` live in the arena of the call. */
static void ask(struct collect *o, const struct tree_ask *what, void (*then)(struct collect *o))
{
	struct sbx *s = sandbox_of(o);
	struct fail f = { 0 };

	o->job = (struct job){ .ask = *what, .answer = answered, .data = data, .over = over };
	o->then = then;
	str_clear(&o->got);
	if (!s)
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox has ended");
	if (!s || files_start(s, &o->job, &f) < 0)
		give_up(o, &f);
}

static struct span folder_of(const struct collect *o)
{
	const struct sbx *s = sandbox_of(o);

	return span_of(s ? arena_strdup(&o->call->arena, command_cwd(&s->spec)) : "/");
}

static struct span body_of(struct collect *o, json_t *body)
{
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT);

	json_decref(body);
	return span_of(arena_strdup(&o->call->arena, text));
}

/* ---- what it left -------------------------------------------------------------------- */

static void next_file(struct collect *o);

static void finish(struct collect *o)
{
	struct call *c = o->call;
	struct px *p = o->p;

	c->state = NULL;
	c->gone = NULL;
	o->p = NULL;
	if (c->r || c->idem_key) {
		o->ask.has_wait = false;
		o->ask.extra = json_pack("{sOsO}", "collected", o->found, "missing", o->missing);
		wait_for(c, p, &o->ask);
	} else {
		px_unref(p);
	}
	drop(o);
}

static void recorded(void *arg, bool is_on_disk)
{
	struct collect *o = arg;
	struct fail f = { 0 };

	if (is_on_disk) {
		finish(o);
		return;
	}
	fail_set(&f, FAIL_BACKEND_ERROR,
	         "collect: the command has run; its files stay, since the ledger could not record "
	         "that they leave");
	give_up(o, &f);
}

/* Files leave only when the ledger has them. */
static void put_on_record(struct collect *o)
{
	const struct ledger_who who = { .tenant = o->call->tenant,
		                        .sandbox = o->sandbox,
		                        .process = o->p->id,
		                        .actor = o->call->actor };
	char sha256[TREE_HASH_TEXT];

	if (json_array_size(o->found) == 0 || (!o->call->r && !o->call->idem_key)) {
		finish(o);
		return;
	}
	hash_text(&o->hash, sha256);
	json_t *data = json_pack("{sI,ss,sI}", "bytes", (json_int_t)o->total, "sha256", sha256,
	                         "left_out", (json_int_t)o->n_left_out);

	print_names(data, o->kept);
	ledger_commit(o->call->api->core, LEDGER_COLLECTED, &who, data, recorded, o);
}

static void put_name(json_t *entry, const json_t *name)
{
	if (json_is_object(name))
		json_object_update(entry, (json_t *)(uintptr_t)name);
	else
		json_object_set(entry, "path", (json_t *)(uintptr_t)name);
}

/* Fate of one file. */
struct verdict {
	const char *path; /* as it is, from the working folder or the root */
	const char *why;  /* it would execute later */
	uint32_t mode;
	bool stays;
};

/* A file that is only executable comes without that. */
static void judge_file(const struct collect *o, struct verdict *v)
{
	uint32_t mode = later_mode(o->said.mode);
	struct span bytes = { str_text(&o->got), o->got.len };
	struct span path = span_of(v->path + strspn(v->path, "/"));
	struct later_file f = { .path = path, .mode = mode & ~0111u, .is_new = true };

	if (later_reads(path))
		f.after = bytes;
	v->mode = mode;
	v->why = later_why(&f);
	v->stays = v->why != NULL;
	f.mode = mode;
	v->why = v->why ? v->why : later_why(&f);
	if (!v->why || later_is_allowed(path.at, o->allow, o->n_allow))
		v->stays = false;
	else
		v->mode &= ~0111u;
}

static void keep_file(struct collect *o, json_t *entry, const struct verdict *v)
{
	AUTO(str_done) struct str text = { .max = 4ul * TOTAL_MAX };
	AUTO(str_done) struct str head = { .max = 2ul * PATH_TEXT_MAX };

	str_addf(&head, "%04o %zu %s", v->mode, o->got.len, v->path);
	str_addn(&head, "", 1);
	hash_add(&o->hash, (struct span){ str_text(&head), head.len });
	hash_add(&o->hash, (struct span){ str_text(&o->got), o->got.len });
	o->total += o->got.len;
	json_array_append_new(o->kept, json_copy(entry));
	base64_encode(o->got.data, o->got.len, &text);
	json_object_set_new(entry, "base64", json_string(str_text(&text)));
}

static const char *name_bytes(struct collect *o, const json_t *name, size_t *n);

static void file_read(struct collect *o)
{
	json_t *name = json_array_get(o->names, o->name++), *entry;
	struct verdict v = { 0 };
	char mode[8];
	size_t n;

	if (o->said.code == TREE_IS_DIRECTORY) { /* what is in it has names of its own */
		next_file(o);
		return;
	}
	v.path = name_bytes(o, name, &n);
	if (o->said.code != TREE_OK || !v.path) { /* it is gone, or may not be read */
		json_array_append(o->missing,
		                  json_is_object(name) ? json_object_get(name, "path") : name);
		next_file(o);
		return;
	}
	judge_file(o, &v);
	entry = json_pack("{sI}", "bytes", (json_int_t)o->said.size);
	put_name(entry, name);
	snprintf(mode, sizeof mode, "%04o", v.mode);
	json_object_set_new(entry, "mode", json_string(mode));
	if (v.why)
		json_object_set_new(entry, "executes_later", json_string(v.why));
	o->n_left_out += v.stays;
	if (v.stays || o->said.size > TOTAL_MAX - o->total)
		json_object_set_new(entry, "skipped", json_true());
	else
		keep_file(o, entry, &v);
	json_array_append_new(o->found, entry);
	next_file(o);
}

/* A name of the list as it is; NULL: it cannot be. */
static const char *name_bytes(struct collect *o, const json_t *name, size_t *n)
{
	const json_t *coded = json_object_get(name, "path_base64");
	AUTO(str_done) struct str bytes = { .max = PATH_TEXT_MAX };

	if (!coded)
		str_add(&bytes, json_string_value(name));
	else if (!base64_decode(json_string_value(coded), json_string_length(coded), &bytes))
		return NULL;
	*n = bytes.len;
	return bytes.overflow || bytes.len == 0
	           ? NULL
	           : arena_strndup(&o->call->arena, str_text(&bytes), bytes.len);
}

/* Where that is; NULL: it cannot be. */
static const char *path_of(struct collect *o, const json_t *name, size_t *n)
{
	const char *bytes = name_bytes(o, name, n);
	AUTO(str_done) struct str path = { .max = 2ul * PATH_TEXT_MAX };
	struct span folder = folder_of(o);

	if (!bytes)
		return NULL;
	if (bytes[0] != '/')
		str_addf(&path, "%.*s/", (int)folder.len, folder.at);
	str_addn(&path, bytes, *n);
	*n = path.len;
	return path.overflow ? NULL : arena_strndup(&o->call->arena, str_text(&path), path.len);
}

static void next_file(struct collect *o)
{
	const json_t *name = json_array_get(o->names, o->name);
	size_t n = 0;

	if (!name) {
		put_on_record(o);
		return;
	}
	const char *path = path_of(o, name, &n);
	/* One byte more than there is room for says that it is too long. */
	ask(o,
	    &(struct tree_ask){
		.flags = TREE_HAS_RANGE,
		.path = { path ? path : "", path ? n : 0 },
		.request = { .verb = TREE_READ, .count = TOTAL_MAX - o->total + 1 } },
	    file_read);
}

static void next_pattern(struct collect *o);

static void names_found(struct collect *o)
{
	json_t *pattern = json_array_get(json_object_get(o->call->body, "collect"), o->pattern++);
	json_t *said = json_loadb(str_text(&o->got), o->got.len, 0, NULL), *name;
	bool is_absolute = json_string_value(pattern)[0] == '/';
	json_t *paths = o->said.code == TREE_OK ? json_object_get(said, "paths") : NULL;
	size_t i;

	if (json_array_size(paths) == 0)
		json_array_append(o->missing, pattern);
	json_array_foreach(paths, i, name)
	{
		if (is_absolute && json_is_string(name))
			json_array_append_new(o->names,
			                      json_sprintf("/%s", json_string_value(name)));
		else if (!is_absolute)
			json_array_append(o->names, name);
		else /* a name that is no text, and has no place in another */
			json_array_append(o->missing, json_object_get(name, "path"));
	}
	json_decref(said);
	next_pattern(o);
}

static void next_pattern(struct collect *o)
{
	const json_t *patterns = json_object_get(o->call->body, "collect");
	const char *pattern = json_string_value(json_array_get(patterns, o->pattern));

	while (pattern && json_array_size(o->names) >= NAMES_MAX) { /* no room: it says so */
		json_array_append(o->missing, json_array_get(patterns, o->pattern++));
		pattern = json_string_value(json_array_get(patterns, o->pattern));
	}
	if (!pattern) {
		next_file(o);
		return;
	}
	json_t *body = json_pack("{sssbsi}", "pattern", pattern[0] == '/' ? pattern + 1 : pattern,
	                         "ignored", 1, "max", NAMES_MAX);

	ask(o,
	    &(struct tree_ask){ .path = pattern[0] == '/' ? span_of("/") : folder_of(o),
	                        .request = { .verb = TREE_GLOB },
	                        .body = body_of(o, body) },
	    names_found);
}

/* ---- the command --------------------------------------------------------------------- */

static void changed(struct px_watch *w)
{
	struct collect *o = (struct collect *)(void *)((char *)w - offsetof(struct collect, watch));
	struct fail f = { 0 };

	if (!o->p->is_over && !o->p->is_unrecorded)
		return;
	px_watch_remove(o->p, &o->watch);
	if (o->p->is_unrecorded) {
		fail_unstored(&f, "the process could not be recorded and was ended",
		              o->p->is_disk_full);
		give_up(o, &f);
		return;
	}
	next_pattern(o);
}

static void grew(struct px_watch *w)
{
	(void)w; /* read at the end */
}

static void run(struct collect *o)
{
	struct sbx *s = sandbox_of(o);
	struct fail f = { 0 };

	if (!s)
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox has ended");
	if (!o->call->r && !o->call->idem_key) { /* nobody wants it any more */
		drop(o);
		return;
	}
	if (s && sbx_check_running(s, &f) == 0)
		o->p = px_start(s, &o->ask.px, &f);
	if (!o->p || exec_input(o->p, json_object_get(o->call->body, "stdin"), &f) < 0) {
		give_up(o, &f);
		return;
	}
	o->watch = (struct px_watch){ .changed = changed, .grew = grew };
	px_watch_add(o->p, &o->watch);
	if (!o->call->r)
		gone(o->call);
	changed(&o->watch);
}

/* ---- what it is given ---------------------------------------------------------------- */

static void written(struct collect *o)
{
	json_t *said = json_loadb(str_text(&o->got), o->got.len, 0, NULL), *one;
	const char *why =
	    o->said.code == TREE_OK ? NULL : json_string_value(json_object_get(said, "detail"));
	struct fail f = { 0 };
	size_t i;

	json_array_foreach(said, i, one)
	{
		const json_t *error = json_object_get(one, "error");

		if (error && !why)
			why = json_string_value(json_object_get(error, "detail"));
	}
	if (why || o->said.code != TREE_OK)
		fail_set(&f, FAIL_INVALID, "files: %.200s",
		         why ? why : "they could not be written");
	json_decref(said);
	if (f.code != FAIL_NONE)
		give_up(o, &f);
	else
		run(o);
}

static void made(void *arg, struct sbx *s, const struct fail *fail)
{
	struct collect *o = arg;

	if (fail) {
		give_up(o, fail);
		return;
	}
	snprintf(o->sandbox, sizeof o->sandbox, "%s", s->id);
	if (json_array_size(o->files) == 0) {
		run(o);
		return;
	}
	ask(o,
	    &(struct tree_ask){ .flags = TREE_ATOMIC,
	                        .path = folder_of(o),
	                        .request = { .verb = TREE_BATCH },
	                        .body = body_of(o, json_incref(o->files)) },
	    written);
}

/* ---- the body ------------------------------------------------------------------------ */

/* {path: text | {base64: …}} as operations of a batch. */
static int take_files(struct collect *o, json_t *files, struct fail *f)
{
	const char *path;
	json_t *v;

	if (!files || json_is_null(files))
		return 0;
	if (!json_is_object(files) || json_object_size(files) > GIVEN_MAX)
		return fail_set(f, FAIL_INVALID, "files: an object of at most %d texts", GIVEN_MAX);
	json_object_foreach(files, path, v)
	{
		json_t *coded = json_object_size(v) == 1 ? json_object_get(v, "base64") : NULL;
		bool is_text = json_is_string(v);

		if (!is_text && !json_is_string(coded))
			return fail_set(f, FAIL_INVALID, "files: %.64s: a text, or {\"base64\": …}",
			                path);
		json_array_append_new(o->files, json_pack("{sssssO}", "op", "write", "path", path,
		                                          is_text ? "text" : "text_base64",
		                                          is_text ? v : coded));
	}
	return 0;
}

static int check_patterns(const json_t *body, const char *key, struct fail *f)
{
	const json_t *patterns = json_object_get(body, key), *one;
	size_t i;

	if (!patterns || json_is_null(patterns))
		return 0;
	if (!json_is_array(patterns) || json_array_size(patterns) > PATTERNS_MAX)
		return fail_set(f, FAIL_INVALID, "%s: a list of at most %d patterns", key,
		                PATTERNS_MAX);
	json_array_foreach(patterns, i, one)
	{
		if (json_string_length(one) == 0)
			return fail_set(f, FAIL_INVALID, "%s: a text is expected", key);
	}
	return 0;
}

static int take_patterns(struct collect *o, const json_t *body, struct fail *f)
{
	const json_t *one;
	size_t i;

	if (check_patterns(body, "collect", f) < 0 || check_patterns(body, "allow_exec", f) < 0)
		return -1;
	json_array_foreach(json_object_get(body, "allow_exec"), i, one) o->allow[o->n_allow++] =
	    json_string_value(one);
	return 0;
}

bool collect_is_asked(const struct call *c)
{
	return json_object_get(c->body, "files") || json_object_get(c->body, "collect");
}

void collect_run(struct call *c, struct sbx_ask *want, const struct exec_ask *command)
{
	struct collect *o = mem_alloc(sizeof *o);
	struct fail f = { 0 };

	*o = (struct collect){ .call = call_ref(c),
		               .ask = *command,
		               .got = { .max = TOTAL_MAX + TREE_PACKET_MAX },
		               .files = json_array(),
		               .names = json_array(),
		               .found = json_array(),
		               .missing = json_array(),
		               .kept = json_array() };
	hash_init(&o->hash);
	o->step.fired = step;
	o->ask.px.env = &o->ask.env;
	o->ask.px.is_final = false;
	want->is_one_shot = false;
	want->idle_ms = IDLE_MS;
	c->state = o;
	c->gone = gone;
	if (live_is_asked(c))
		fail_set(&f, FAIL_INVALID, "files and collect: not over a live connection");
	else if (take_files(o, json_object_get(c->body, "files"), &f) == 0)
		(void)take_patterns(o, c->body, &f);
	if (f.code != FAIL_NONE || !sbx_create(c->api->core, want, made, o, &f))
		give_up(o, &f);
}
