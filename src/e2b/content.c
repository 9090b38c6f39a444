/*
 * content.c - files of a volume, whether or not a sandbox has it: requests to a file worker in a
 * sandbox of ours (wsx_service). The root there is the volume's.
 */
#include "base/limits.h"
#include "core/details.h"
#include "core/workspace.h"
#include "e2b/e2b-internal.h"

#define DEPTH_MOST 64
#define ENTRIES_MOST 100000
#define OWNER 1000 /* everything in a volume is the agent's */
#define MODE_MAX 07777

struct content {
	struct job job; /* first; of a file that comes */
	struct call *call;
	const char *path;
	void (*run)(struct content *o, struct sbx *s);
	char sandbox[ID_SIZE];
	uint64_t mode;
	bool has_mode, is_forced;
	bool is_change, is_writing, is_last_due, is_over, is_done;
	struct str rest; /* of the body, that found no room */
};

static void content_free(struct content *o)
{
	o->call->state = NULL;
	call_unref(o->call);
	str_done(&o->rest);
	free(o);
}

static void give_up(struct content *o, const struct fail *f)
{
	answer_fail(o->call, f);
	content_free(o);
}

/* ---- what is said of one ------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static json_t *print_entry(const json_t *stat, const char *path)
{
	const char *type = text_of(stat, "type"), *slash = strrchr(path, '/');
	static const char *const types[] = { "file", "directory", "symlink" };
	static const char *const times[] = { "atime", "mtime", "ctime" };
	const char *shown = "unknown";

	for (size_t i = 0; i < COUNT(types); i++)
		if (strcmp(type, types[i]) == 0)
			shown = types[i];
	json_t *o = json_pack("{ss,sI,sI}", "type", shown, "size",
	                      json_integer_value(json_object_get(stat, "bytes")), "mode",
	                      (json_int_t)(strtoul(text_of(stat, "mode"), NULL, 8) & MODE_MAX));
	json_object_set_new(o, "name", details_text(slash && slash[1] ? slash + 1 : path));
	json_object_set_new(o, "path", details_text(path));
	json_object_set(o, "uid", json_object_get(stat, "uid"));
	json_object_set(o, "gid", json_object_get(stat, "gid"));
	for (size_t i = 0; i < COUNT(times); i++) /* one is known */
		json_object_set_new(
		    o, times[i], e2b_time(json_integer_value(json_object_get(stat, "mtime_ms"))));
	if (*text_of(stat, "target"))
		json_object_set_new(o, "target", details_text(text_of(stat, "target")));
	return o;
}

static void answer_stat(void *arg, json_t *answer, const struct fail *f)
{
	struct content *o = arg;

	if (f) {
		give_up(o, f);
		return;
	}
	e2b_answer(o->call, o->is_change ? 201 : 200, print_entry(answer, o->path));
	content_free(o);
}

static void stat_it(struct content *o, struct sbx *s)
{
	errand(s, &(struct errand_ask){ .verb = TREE_STAT, .path = o->path }, answer_stat, o);
}

/* After a change: what there is now. */
static void stat_again(struct content *o)
{
	struct sbx *s = roster_find(&o->call->api->core->sandboxes, o->sandbox);
	struct fail f = { 0 };

	if (s) {
		stat_it(o, s);
		return;
	}
	fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the volume is not at hand");
	give_up(o, &f);
}

/* ---- beginnings ---------------------------------------------------------------------- */

static void parent_seen(void *arg, json_t *answer, const struct fail *f)
{
	struct content *o = arg;
	struct sbx *s = roster_find(&o->call->api->core->sandboxes, o->sandbox);
	struct fail bad = { 0 };

	if (!f && strcmp(text_of(answer, "type"), "directory") != 0)
		f = (fail_set(&bad, FAIL_CONFLICT, "what it shall lie in is no folder"), &bad);
	else if (!f && !s)
		f = (fail_set(&bad, FAIL_SANDBOX_UNAVAILABLE, "the volume is not at hand"), &bad);
	if (f)
		give_up(o, f);
	else
		o->run(o, s);
}

/* What is new lies in something that is there. */
static void look_above(struct content *o, struct sbx *s)
{
	const char *slash = strrchr(o->path, '/');
	const char *parent =
	    slash > o->path ? arena_strndup(&o->call->arena, o->path, (size_t)(slash - o->path))
			    : "/";

	errand(s, &(struct errand_ask){ .verb = TREE_STAT, .path = parent }, parent_seen, o);
}

static void found(void *arg, struct sbx *s, const struct fail *f)
{
	struct content *o = arg;

	if (f) {
		give_up(o, f);
		return;
	}
	snprintf(o->sandbox, sizeof o->sandbox, "%s", s->id);
	if (o->call->r)
		o->run(o, s);
	else
		content_free(o);
}

/* What was before it is over. */
static void settled(void *arg, struct wsx *w, const struct fail *f)
{
	(void)f;
	wsx_service(w, found, arg);
}

static int take_flag(struct call *c, const char *name, bool *out, struct fail *f)
{
	const char *text = call_query(c, name);

	*out = text && strcmp(text, "true") == 0;
	if (text && !*out && strcmp(text, "false") != 0)
		return fail_set(f, FAIL_INVALID, "%s: true or false", name);
	return 0;
}

static int take_owner(struct call *c, const char *name, struct fail *f)
{
	uint64_t id = OWNER;

	if (query_number(c, name, &id, f) < 0)
		return -1;
	if (id != OWNER)
		return fail_set(f, FAIL_UNENFORCEABLE, "%s: what is in a volume belongs to %d here",
		                name, OWNER);
	return 0;
}

static int take_query(struct content *o, struct fail *f)
{
	struct call *c = o->call;
	static const struct e2b_user root = { NULL, "/", "root", "/" };
	const char *path = call_query(c, "path");

	if (!path || !*path || strlen(path) >= PATH_TEXT_MAX / 2)
		return fail_set(f, FAIL_INVALID, "path is needed");
	o->path = e2b_path(c, &root, path);
	o->has_mode = call_query(c, "mode") != NULL;
	if (query_number(c, "mode", &o->mode, f) < 0 || take_owner(c, "uid", f) < 0 ||
	    take_owner(c, "gid", f) < 0 || take_flag(c, "force", &o->is_forced, f) < 0)
		return -1;
	if (o->mode > 0777)
		return fail_set(f, FAIL_INVALID, "mode: 0 to 511");
	return 0;
}

static void start(struct call *c, bool is_change, void (*run)(struct content *o, struct sbx *s))
{
	struct wsx *w = volume_meant(c);
	struct fail f = { 0 };

	if (!w)
		return;
	struct content *o = mem_alloc(sizeof *o);
	*o = (struct content){
		.call = call_ref(c), .run = run, .is_change = is_change, .rest = { .max = 1u << 20 }
	};
	if (take_query(o, &f) < 0)
		give_up(o, &f);
	else if (is_change)
		wsx_settle(w, settled, o);
	else
		wsx_service(w, found, o);
}

/* ---- paths --------------------------------------------------------------------------- */

void e2b_content_stat(struct call *c)
{
	start(c, false, stat_it);
}

static void deleted(void *arg, json_t *answer, const struct fail *f)
{
	struct content *o = arg;

	(void)answer;
	if (f) {
		give_up(o, f);
		return;
	}
	answer_empty(o->call, 204);
	content_free(o);
}

static void delete_it(struct content *o, struct sbx *s)
{
	struct fail f = { 0 };

	if (strcmp(o->path, "/") == 0) {
		fail_set(&f, FAIL_INVALID, "the root of a volume goes with the volume");
		give_up(o, &f);
		return;
	}
	errand(
	    s,
	    &(struct errand_ask){ .verb = TREE_DELETE, .flags = TREE_RECURSIVE, .path = o->path },
	    deleted, o);
}

void e2b_content_delete(struct call *c)
{
	start(c, true, delete_it);
}

/* Inside a sandbox it can be changed; here it is said, and what is already so is fine. */
static void compare(void *arg, json_t *answer, const struct fail *f)
{
	static const char *const keys[] = { "mode", "uid", "gid" };
	struct content *o = arg;
	json_t *entry = f ? NULL : print_entry(answer, o->path);
	struct fail bad = { 0 };

	for (size_t i = 0; entry && i < COUNT(keys); i++) {
		const json_t *v = json_object_get(o->call->body, keys[i]);

		if (v && !json_is_null(v) && !json_equal(v, json_object_get(entry, keys[i])))
			fail_set(
			    &bad, FAIL_UNENFORCEABLE,
			    "%s: of what is in a volume it is changed in a sandbox that has it",
			    keys[i]);
	}
	if (f || bad.code != FAIL_NONE) {
		json_decref(entry);
		give_up(o, f ? f : &bad);
		return;
	}
	e2b_answer(o->call, 200, entry);
	content_free(o);
}

static void compare_it(struct content *o, struct sbx *s)
{
	errand(s, &(struct errand_ask){ .verb = TREE_STAT, .path = o->path }, compare, o);
}

void e2b_content_change(struct call *c)
{
	start(c, false, compare_it);
}

/* ---- folders ------------------------------------------------------------------------- */

static void listed(void *arg, json_t *answer, const struct fail *f)
{
	struct content *o = arg;
	json_t *rows = json_array(), *v;
	size_t i;

	json_array_foreach(json_object_get(answer, "entries"), i, v)
	{
		AUTO(str_done) struct str path = { .max = (size_t)4 * PATH_TEXT_MAX };

		str_addf(&path, "%s/%s", strcmp(o->path, "/") == 0 ? "" : o->path,
		         text_of(v, "path"));
		json_array_append_new(rows, print_entry(v, str_text(&path)));
	}
	if (f) {
		json_decref(rows);
		give_up(o, f);
		return;
	}
	e2b_answer(o->call, 200, rows);
	content_free(o);
}

static void list_it(struct content *o, struct sbx *s)
{
	uint64_t depth = 1;
	struct fail f = { 0 };

	if (query_number(o->call, "depth", &depth, &f) < 0) {
		give_up(o, &f);
		return;
	}
	errand(s,
	       &(struct errand_ask){ .verb = TREE_LIST,
	                             .flags = TREE_HIDDEN,
	                             .depth = depth < 1            ? 1
	                                      : depth > DEPTH_MOST ? DEPTH_MOST
	                                                           : (uint32_t)depth,
	                             .max = ENTRIES_MOST,
	                             .path = o->path },
	       listed, o);
}

void e2b_content_list(struct call *c)
{
	start(c, false, list_it);
}

static void dir_made(void *arg, json_t *answer, const struct fail *f)
{
	struct content *o = arg;
	struct fail bad = { 0 };

	if (!f && !o->is_forced && json_is_false(json_object_get(answer, "created")))
		f = (fail_set(&bad, FAIL_EXISTS, "it is there already"), &bad);
	if (f)
		give_up(o, f);
	else
		stat_again(o);
}

static void make_dir(struct content *o, struct sbx *s)
{
	json_t *body = json_pack("{ss}", "path", o->path);
	char mode[8];

	if (o->has_mode) {
		snprintf(mode, sizeof mode, "%04o", (unsigned int)o->mode);
		json_object_set_new(body, "mode", json_string(mode));
	}
	errand(s, &(struct errand_ask){ .verb = TREE_MKDIR, .body = body }, dir_made, o);
}

static void make_dir_below(struct content *o, struct sbx *s)
{
	o->run = make_dir;
	if (o->is_forced)
		make_dir(o, s);
	else
		look_above(o, s);
}

void e2b_content_mkdir(struct call *c)
{
	start(c, true, make_dir_below);
}

/* ---- files --------------------------------------------------------------------------- */

static void read_it(struct content *o, struct sbx *s)
{
	struct call *c = call_ref(o->call);
	const char *path = o->path;

	content_free(o);
	download_start(c, s, path);
	call_unref(c);
}

void e2b_content_read(struct call *c)
{
	start(c, false, read_it);
}

/* The body goes on as it comes: the worker takes it in pieces. */
static void push(struct content *o)
{
	size_t at = 0;

	while (at < o->rest.len) {
		size_t left = o->rest.len - at, n = left < TREE_PIECE_MAX ? left : TREE_PIECE_MAX;

		if (!files_body(&o->job, o->rest.data + at, n, false))
			break;
		at += n;
	}
	if (at > 0) {
		memmove(o->rest.data, o->rest.data + at, o->rest.len - at);
		o->rest.len -= at;
	}
	if (o->rest.len == 0 && o->is_last_due)
		o->is_last_due = !files_body(&o->job, NULL, 0, true);
	if (o->call->r)
		reply_pause(o->call->r, o->rest.len > 0);
}

static void on_data(struct request *r, const void *bytes, size_t n)
{
	struct call *c = r->route;
	struct content *o = c->state;

	if (!o || o->is_over)
		return;
	str_addn(&o->rest, bytes, n); /* at most what one read brings: it waits then */
	o->is_last_due |= n == 0;
	push(o);
}

static void room(struct job *j)
{
	push((struct content *)j);
}

static void written(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct content *o = (struct content *)j;
	struct fail f = { 0 };

	(void)is_last;
	o->is_over = true;
	if (p->answer.code == TREE_OK) {
		o->is_done = true;
		return;
	}
	errand_fail((enum tree_code)p->answer.code, p->data, &f);
	if (f.code == FAIL_STALE || f.code == FAIL_IS_DIRECTORY)
		f.code = FAIL_CONFLICT;
	o->call->state = NULL; /* the request may be over with this */
	answer_fail(o->call, &f);
}

static void more(struct job *j, struct span bytes)
{
	(void)j;
	(void)bytes; /* what was written is looked at once more */
}

static void over(struct job *j, const struct tree_answer *a)
{
	struct content *o = (struct content *)j;
	struct fail f = { 0 };

	o->is_writing = false;
	o->call->state = NULL;
	if (o->is_done && a) {
		stat_again(o);
	} else if (!o->is_over) {
		fail_set(&f, FAIL_SANDBOX_UNAVAILABLE, "the file worker of the volume died");
		give_up(o, &f);
	} else {
		content_free(o);
	}
}

static void left(struct call *c)
{
	struct content *o = c->state;

	if (!o)
		return;
	if (o->is_writing)
		files_cancel(&o->job);
	content_free(o);
}

static void write_it(struct content *o, struct sbx *s)
{
	struct call *c = o->call;
	struct fail f = { 0 };

	o->job.answer = written;
	o->job.data = more;
	o->job.over = over;
	o->job.room = room;
	o->job.ask =
	    (struct tree_ask){ .request = { .verb = TREE_WRITE, .mode = (uint32_t)o->mode },
		               .flags = (o->has_mode ? TREE_HAS_MODE : 0u) |
		                        (o->is_forced ? 0u : TREE_ONLY_NEW),
		               .path = span_of(o->path),
		               .has_more = true };
	if (!c->r || files_start(s, &o->job, &f) < 0) {
		give_up(o, &f);
		return;
	}
	o->is_writing = true;
	c->state = o;
	c->over = left;
	c->r->on_data = on_data;
	reply_pause(c->r, false);
}

static void write_below(struct content *o, struct sbx *s)
{
	o->run = write_it;
	look_above(o, s);
}

void e2b_content_write(struct call *c)
{
	reply_pause(c->r, true); /* until somebody takes it */
	start(c, true, write_below);
}
