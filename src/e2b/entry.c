/*
 * entry.c - their Filesystem service: what an entry is, folders, other names, the end of one.
 */
#include "base/limits.h"
#include "core/details.h"
#include "e2b/e2b-internal.h"

#define DEPTH_MOST 64
#define ENTRIES_MOST 100000
#define ATTRIBUTE "user.e2b."

/* ---- one ----------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static void add_permissions(json_t *o, const char *type, unsigned int mode)
{
	static const char letters[] = "rwxrwxrwx";
	char text[] = "----------";

	if (strcmp(type, "directory") == 0)
		text[0] = 'd';
	else if (strcmp(type, "symlink") == 0)
		text[0] = 'L';
	for (size_t i = 0; letters[i]; i++)
		if (mode & (0400u >> i))
			text[1 + i] = letters[i];
	json_object_set_new(o, "permissions", json_string(text));
}

static void add_owner(json_t *o, const char *key, const json_t *id)
{
	json_int_t n = json_integer_value(id);
	char text[24];

	snprintf(text, sizeof text, "%lld", (long long)n);
	json_object_set_new(o, key, json_string(n == 1000 ? E2B_USER : n == 0 ? "root" : text));
}

/* A relative one is taken from the folder of the link; "." and ".." as they are written. */
static void add_target(json_t *o, const char *path, const char *target)
{
	AUTO(str_done) struct str text = { .max = (size_t)2 * PATH_TEXT_MAX };
	const char *slash = strrchr(path, '/');

	while (strncmp(target, "./", 2) == 0)
		target += 2;
	if (target[0] != '/' && slash)
		str_addn(&text, path, (size_t)(slash - path) + 1);
	str_add(&text, target);
	json_object_set_new(o, "symlinkTarget", details_text(str_text(&text)));
}

static void add_attributes(json_t *o, json_t *attributes)
{
	json_t *all = json_object(), *v;
	const char *k;

	json_object_foreach(attributes, k, v) if (strncmp(k, ATTRIBUTE, strlen(ATTRIBUTE)) == 0 &&
	                                          json_is_string(v))
	    json_object_set(all, k + strlen(ATTRIBUTE), v);
	if (json_object_size(all) > 0)
		json_object_set(o, "metadata", all);
	json_decref(all);
}

json_t *entry_of(const json_t *stat, const char *path)
{
	const json_t *behind = json_object_get(stat, "behind");
	const char *type = text_of(stat, "type"), *slash = strrchr(path, '/');
	const char *shown = behind ? text_of(behind, "type") : type;
	unsigned int mode =
	    (unsigned int)strtoul(text_of(behind ? behind : stat, "mode"), NULL, 8) & 0777;
	char size[24];
	json_t *o = json_object();

	snprintf(size, sizeof size, "%lld",
	         (long long)json_integer_value(json_object_get(stat, "bytes")));
	json_object_set_new(o, "name", details_text(slash ? slash + 1 : path));
	json_object_set_new(o, "type",
	                    json_string(strcmp(shown, "directory") == 0 ? "FILE_TYPE_DIRECTORY"
	                                : strcmp(shown, "symlink") == 0 ? "FILE_TYPE_SYMLINK"
	                                                                : "FILE_TYPE_FILE"));
	json_object_set_new(o, "path", details_text(path));
	json_object_set_new(o, "size", json_string(size));
	json_object_set_new(o, "mode", json_integer(mode));
	add_permissions(o, type, strcmp(type, "symlink") == 0 ? 0777 : mode);
	add_owner(o, "owner", json_object_get(stat, "uid"));
	add_owner(o, "group", json_object_get(stat, "gid"));
	json_object_set_new(o, "modifiedTime",
	                    e2b_time(json_integer_value(json_object_get(stat, "mtime_ms"))));
	if (strcmp(type, "symlink") == 0)
		add_target(o, path, text_of(stat, "target"));
	add_attributes(o, json_object_get(stat, "attributes"));
	return o;
}

/* ---- the calls ----------------------------------------------------------------------- */

struct op {
	struct call *call;
	const char *path; /* in the arena; MOVE: where it goes */
};

static struct op *op_new(struct call *c)
{
	struct op *o = mem_alloc(sizeof *o);

	*o = (struct op){ .call = call_ref(c) };
	return o;
}

static void op_free(struct op *o)
{
	call_unref(o->call);
	free(o);
}

static int take_path(struct op *o, const char *key, const char **out, struct fail *f)
{
	struct e2b_user user;
	const char *text = "";

	if (e2b_user(o->call, NULL, &user, f) < 0 || member_text(o->call->body, key, &text, f) < 0)
		return -1;
	if (strlen(text) >= PATH_TEXT_MAX / 2)
		return fail_set(f, FAIL_INVALID, "%s: too long", key);
	*out = e2b_path(o->call, &user, text);
	return 0;
}

/* The sandbox, and the path of the body; NULL: it was answered, and the op is gone. */
static struct sbx *begin(struct op *o, const char *key)
{
	struct sbx *s = e2b_enter(o->call);
	struct fail f = { 0 };

	if (s && take_path(o, key, &o->path, &f) == 0)
		return s;
	if (s)
		answer_fail(o->call, &f);
	op_free(o);
	return NULL;
}

static void answer_entry(void *arg, json_t *answer, const struct fail *f)
{
	struct op *o = arg;

	if (f)
		answer_fail(o->call, f);
	else
		rpc_answer(o->call, json_pack("{so}", "entry", entry_of(answer, o->path)));
	op_free(o);
}

static void stat_it(struct op *o, struct sbx *s)
{
	errand(s, &(struct errand_ask){ .verb = TREE_STAT, .flags = TREE_DETAIL, .path = o->path },
	       answer_entry, o);
}

void e2b_entry_stat(struct call *c)
{
	struct op *o = op_new(c);
	struct sbx *s = begin(o, "path");

	if (s)
		stat_it(o, s);
}

/* After a change: what there is now. */
static void changed(void *arg, json_t *answer, const struct fail *f)
{
	struct op *o = arg;
	struct fail bad = { 0 };
	struct sbx *s = f ? NULL : e2b_running(o->call);

	if (s && json_is_false(json_object_get(answer, "created"))) {
		fail_set(&bad, FAIL_EXISTS, "directory already exists: %.256s", o->path);
		f = &bad;
	}
	if (s && !f) {
		stat_it(o, s);
		return;
	}
	if (f)
		answer_fail(o->call, f);
	op_free(o);
}

static void mkdir_done(void *arg, json_t *answer, const struct fail *f)
{
	struct fail bad = { 0 };

	if (f && f->code == FAIL_EXISTS) {
		fail_set(&bad, FAIL_INVALID, "path already exists but it is not a directory");
		f = &bad;
	}
	changed(arg, answer, f);
}

void e2b_entry_mkdir(struct call *c)
{
	struct op *o = op_new(c);
	struct sbx *s = begin(o, "path");

	if (s)
		errand(s,
		       &(struct errand_ask){ .verb = TREE_MKDIR,
		                             .body = json_pack("{ss}", "path", o->path) },
		       mkdir_done, o);
}

void e2b_entry_move(struct call *c)
{
	struct op *o = op_new(c);
	struct sbx *s = begin(o, "destination");
	const char *from = NULL;
	struct fail f = { 0 };

	if (!s)
		return;
	if (take_path(o, "source", &from, &f) < 0) {
		answer_fail(c, &f);
		op_free(o);
		return;
	}
	errand(s,
	       &(struct errand_ask){
		   .verb = TREE_MOVE,
		   .body = json_pack("{ss,ss,sb}", "from", from, "to", o->path, "overwrite", 1) },
	       changed, o);
}

static void removed(void *arg, json_t *answer, const struct fail *f)
{
	struct op *o = arg;

	(void)answer;
	if (f && f->code != FAIL_NOT_FOUND)
		answer_fail(o->call, f);
	else
		rpc_answer(o->call, json_object());
	op_free(o);
}

void e2b_entry_remove(struct call *c)
{
	struct op *o = op_new(c);
	struct sbx *s = begin(o, "path");

	if (s)
		errand(s,
		       &(struct errand_ask){
			   .verb = TREE_DELETE, .flags = TREE_RECURSIVE, .path = o->path },
		       removed, o);
}

/* ---- lists --------------------------------------------------------------------------- */

struct row {
	json_t *entry;
};

static int by_path(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return strcmp(text_of(one->entry, "path"), text_of(other->entry, "path"));
}

static json_t *sorted(const json_t *list)
{
	size_t n = json_array_size(list);
	struct row *rows = mem_alloc((n + 1) * sizeof *rows);
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++)
		rows[i].entry = json_array_get(list, i);
	qsort(rows, n, sizeof *rows, by_path);
	for (size_t i = 0; i < n; i++)
		json_array_append(out, rows[i].entry);
	free(rows);
	return out;
}

static void listed(void *arg, json_t *answer, const struct fail *f)
{
	struct op *o = arg;
	json_t *rows = json_array(), *v;
	size_t i;

	json_array_foreach(json_object_get(answer, "entries"), i, v)
	{
		AUTO(str_done) struct str path = { .max = (size_t)4 * PATH_TEXT_MAX };

		str_addf(&path, "%s%s%s", strcmp(o->path, "/") == 0 ? "" : o->path, "/",
		         text_of(v, "path"));
		json_array_append_new(rows, entry_of(v, str_text(&path)));
	}
	if (f)
		answer_fail(o->call, f);
	else
		rpc_answer(o->call, json_pack("{so}", "entries", sorted(rows)));
	json_decref(rows);
	op_free(o);
}

void e2b_entry_list(struct call *c)
{
	struct op *o = op_new(c);
	struct sbx *s = begin(o, "path");
	json_int_t depth = json_integer_value(json_object_get(c->body, "depth"));

	if (!s)
		return;
	if (depth < 0 || depth > DEPTH_MOST)
		depth = DEPTH_MOST;
	errand(s,
	       &(struct errand_ask){ .verb = TREE_LIST,
	                             .flags = TREE_HIDDEN | TREE_DETAIL,
	                             .depth = depth ? (uint32_t)depth : 1,
	                             .max = ENTRIES_MOST,
	                             .path = o->path },
	       listed, o);
}
