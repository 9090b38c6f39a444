#include "cli/apply_get.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "cli/verb.h"
#include "wire/base64.h"
#include "wire/escape.h"
#include "wire/utf8.h"

#define PATH_BYTES_MAX 8192
#define NAMES_BYTES_MAX (2u << 20) /* of one request */
#define IGNORED_MAX (256u << 20)

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct apply_entry *)a)->path, ((const struct apply_entry *)b)->path);
}

/* ---- the list ------------------------------------------------------------------------ */

/* What is not UTF-8 comes as base64, and what is shown instead is not the name. */
static int take_name(const json_t *file, struct arena *arena, const char **out, struct err *e)
{
	const json_t *coded = json_object_get(file, "path_base64");
	AUTO(str_done) struct str bytes = { .max = PATH_TEXT_MAX };

	if (!coded)
		str_add(&bytes, text_of(file, "path"));
	else if (!base64_decode(json_string_value(coded), json_string_length(coded), &bytes))
		str_clear(&bytes);
	if (bytes.overflow || bytes.len != strlen(str_text(&bytes)) ||
	    !apply_path_is(str_text(&bytes)))
		return err_new(e, ERR_DENIED, "the workspace has a name that cannot be applied: %s",
		               escape_brief(str_text(&bytes)));
	*out = arena_strdup(arena, str_text(&bytes));
	return 0;
}

static const struct {
	const char *status;
	bool has_base, has_head, is_mode_only;
} statuses[] = {
	{ "A", false, true, false }, { "D", true, false, false },  { "M", true, true, false },
	{ "T", true, true, false },  { "mode", true, true, true },
};

static bool is_plain(const char *type)
{
	return strcmp(type, "file") == 0 || strcmp(type, "dir") == 0 ||
	       strcmp(type, "symlink") == 0;
}

/* What the status says of both sides. */
static void take_status(const char *status, const char *type, struct apply_entry *entry)
{
	size_t i = 0;

	while (i < COUNT(statuses) && strcmp(statuses[i].status, status) != 0)
		i++;
	if (i == COUNT(statuses)) {
		entry->act = ACT_LEAVE;
		entry->why = "only its extended attributes differ";
		return;
	}
	entry->base.type = statuses[i].has_base ? NODE_FILE : NODE_NONE;
	entry->head.type = statuses[i].has_head ? NODE_FILE : NODE_NONE;
	entry->is_mode_only = statuses[i].is_mode_only;
	if (!is_plain(type))
		*(statuses[i].has_head ? &entry->head.type : &entry->base.type) = NODE_OTHER;
}

/* `known`: those that the first list has; this is the second. */
static int take_file(const json_t *file, const struct apply_change *known, struct apply_list *out,
                     struct err *e)
{
	struct apply_entry entry = { .bytes = (uint64_t)number_of(file, "bytes") };

	if (take_name(file, &out->arena, &entry.path, e) < 0)
		return -1;
	if (known && apply_find(known, entry.path))
		return 0;
	take_status(text_of(file, "status"), text_of(file, "type"), &entry);
	if (known) {
		entry.is_reverted = true;
		entry.base.type = NODE_NONE;
	}
	vec_push(&out->list, entry);
	return 0;
}

static int fetch_changes(const struct apply_source *s, const char *from,
                         const struct apply_change *known, struct apply_list *out, struct err *e)
{
	const char *texts[] = { s->workspace, from, s->at };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;
	const json_t *file;
	size_t i;

	client_path(&path, "/v1/workspaces/{}/changes?base={}&to={}&plain=1", texts);
	if (client_call(s->client, "GET", str_text(&path), NULL, &answer, e) < 0)
		return -1;
	json_array_foreach(json_object_get(answer, "files"), i, file)
	{
		/* The root of the tree has no name, and is the folder itself. */
		bool is_root = !text_of(file, "path")[0] && !json_object_get(file, "path_base64");

		if (!is_root && take_file(file, known, out, e) < 0)
			return -1;
	}
	if (out->list.len > 1)
		qsort(out->list.at, out->list.len, sizeof *out->list.at, by_path);
	return 0;
}

static void add_entry(struct apply_list *out, struct apply_entry entry)
{
	entry.path = arena_strdup(&out->arena, entry.path);
	vec_push(&out->list, entry);
}

/* What was applied before may be a point that is gone. */
static void fetch_reverted(struct apply_source *s, struct apply_list *out)
{
	const struct apply_change known = { out->list.at, out->list.len };
	struct apply_list more = { 0 };
	struct err ignored = { 0 };

	if (fetch_changes(s, s->then, &known, &more, &ignored) < 0)
		s->then = NULL;
	for (size_t i = 0; s->then && i < more.list.len; i++)
		add_entry(out, more.list.at[i]);
	vec_done(&more.list);
	arena_done(&more.arena);
	if (out->list.len > 1)
		qsort(out->list.at, out->list.len, sizeof *out->list.at, by_path);
}

int apply_fetch_list(struct apply_source *s, struct apply_list *out, struct err *e)
{
	if (fetch_changes(s, s->from, NULL, out, e) < 0)
		return -1;
	if (s->then)
		fetch_reverted(s, out);
	return 0;
}

/* ---- files --------------------------------------------------------------------------- */

struct download {
	struct client *client;
	struct client_answer answer;
	struct archive *archive;
	struct err *e;
};

static la_ssize_t feed(struct archive *archive, void *data, const void **bytes)
{
	struct download *d = data;
	struct span piece = { "", 0 };
	int r = client_read(d->client, &d->answer, &piece, d->e);

	if (r < 0)
		archive_set_error(archive, EIO, "it ended early");
	*bytes = piece.at;
	return r > 0 ? (la_ssize_t)piece.len : r;
}

static int archive_fails(struct download *d)
{
	if (d->e->kind != ERR_NONE)
		return -1;
	return err_new(d->e, ERR_INTERNAL, "the archive: %s", archive_error_string(d->archive));
}

static long read_body(void *from, const void **bytes, struct err *e)
{
	struct download *d = from;
	static char buf[65536];
	la_ssize_t n = archive_read_data(d->archive, buf, sizeof buf);

	(void)e; /* d->e is it */
	*bytes = buf;
	return n < 0 ? archive_fails(d) : (long)n;
}

static json_t *names_of(const struct apply_paths *paths, size_t from, size_t *to)
{
	json_t *plain = json_array(), *coded = json_array();
	size_t bytes = 0;

	for (*to = from; *to < paths->len && bytes < NAMES_BYTES_MAX; ++*to) {
		const char *path = paths->at[*to];

		bytes += strlen(path) + 8;
		if (utf8_is(path, strlen(path))) {
			json_array_append_new(plain, json_string(path));
			continue;
		}
		AUTO(str_done) struct str text = { .max = SIZE_MAX };
		base64_encode(path, strlen(path), &text);
		json_array_append_new(coded, json_string(str_text(&text)));
	}
	return json_pack("{so,so}", "paths", plain, "paths_base64", coded);
}

static const struct {
	mode_t format;
	enum node_type type;
} types[] = { { S_IFREG, NODE_FILE }, { S_IFLNK, NODE_LINK }, { S_IFDIR, NODE_DIR } };

static void read_node(struct archive_entry *entry, struct apply_node *out)
{
	size_t i = 0;

	while (i < COUNT(types) && types[i].format != archive_entry_filetype(entry))
		i++;
	*out = (struct apply_node){ .type = i < COUNT(types) ? types[i].type : NODE_OTHER,
		                    .mode = archive_entry_perm(entry),
		                    .target = archive_entry_symlink(entry) };
	if (out->type == NODE_LINK && !out->target)
		out->type = NODE_OTHER;
}

/* All but the first is "./NAME", of a folder with a slash behind. */
static int tell(struct download *d, struct archive_entry *entry, apply_file_fn *each, void *arg)
{
	const char *name = archive_entry_pathname(entry);
	AUTO(str_done) struct str path = { .max = PATH_TEXT_MAX };
	struct apply_node node;

	if (!name)
		return err_new(d->e, ERR_INTERNAL, "the archive has a file without a name");
	read_node(entry, &node);
	if (strcmp(name, "ignored") == 0)
		return each(arg, NULL, &node, read_body, d, d->e);
	size_t n = strlen(name);
	while (n > 2 && name[n - 1] == '/')
		n--;
	if (strncmp(name, "./", 2) != 0 || n - 2 >= PATH_TEXT_MAX)
		return err_new(d->e, ERR_INTERNAL, "the archive has a name that nobody asked for");
	str_addn(&path, name + 2, n - 2);
	return each(arg, str_text(&path), &node, read_body, d, d->e);
}

static int tell_all(struct download *d, apply_file_fn *each, void *arg)
{
	struct archive_entry *entry;
	int r;

	if (archive_read_open(d->archive, d, NULL, feed, NULL) != ARCHIVE_OK)
		return archive_fails(d);
	while ((r = archive_read_next_header(d->archive, &entry)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN)
		if (tell(d, entry, each, arg) < 0)
			return -1;
	return r == ARCHIVE_EOF ? 0 : archive_fails(d);
}

static int drain(struct download *d)
{
	struct span piece;
	int r;

	while ((r = client_read(d->client, &d->answer, &piece, d->e)) > 0)
		;
	return r;
}

static int fetch_some(const struct apply_source *s, json_t *body, apply_file_fn *each, void *arg,
                      struct err *e)
{
	const char *texts[] = { s->workspace };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT);
	struct download d = { .client = s->client, .e = e };

	*e = (struct err){ 0 };
	client_path(&path, "/v1/workspaces/{}/take", texts);
	const struct client_ask ask = { .method = "POST",
		                        .path = str_text(&path),
		                        .body = span_of(text) };
	if (client_begin(d.client, &ask, &d.answer, e) < 0 ||
	    client_check(d.client, &d.answer, e) < 0)
		return -1;
	d.archive = archive_read_new();
	archive_read_support_format_tar(d.archive);
	int r = tell_all(&d, each, arg);
	archive_read_free(d.archive);
	return r < 0 ? -1 : drain(&d); /* the connection is used again */
}

int apply_fetch(const struct apply_source *s, const char *point, const struct apply_paths *paths,
                apply_file_fn *each, void *arg, struct err *e)
{
	size_t from = 0, to;

	do {
		AUTO(json_decrefp) json_t *body = names_of(paths, from, &to);

		json_object_set_new(body, "at", json_string(point));
		if (fetch_some(s, body, each, arg, e) < 0)
			return -1;
		from = to;
	} while (from < paths->len);
	return 0;
}

int apply_read_names(apply_body *read, void *from, struct str *out, struct err *e)
{
	const void *bytes;
	long n;

	out->max = IGNORED_MAX;
	while ((n = read(from, &bytes, e)) > 0)
		str_addn(out, bytes, (size_t)n);
	return n < 0 || !out->overflow ? (int)n : err_new(e, ERR_LIMIT, "too many ignored files");
}

/* ---- three versions ------------------------------------------------------------------ */

static void put_coded(json_t *body, const char *key, const struct str *bytes)
{
	AUTO(str_done) struct str text = { .max = SIZE_MAX };

	base64_encode(str_text(bytes), bytes->len, &text);
	json_object_set_new(body, key, json_string(str_text(&text)));
}

int apply_join(const struct apply_source *s, const struct apply_three *three, struct str *out,
               int64_t *conflicts, struct err *e)
{
	const char *texts[] = { s->workspace };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *body = json_object(), *answer = NULL;

	put_coded(body, "base", three->base);
	put_coded(body, "ours", three->ours);
	put_coded(body, "theirs", three->theirs);
	client_path(&path, "/v1/workspaces/{}/merge-file", texts);
	if (client_call(s->client, "POST", str_text(&path), json_incref(body), &answer, e) < 0)
		return -1;
	const json_t *merged = json_object_get(answer, "merged");
	*conflicts = number_of(answer, "conflicts");
	if (!merged)
		return 0;
	if (!base64_decode(json_string_value(merged), json_string_length(merged), out))
		return err_new(e, ERR_INTERNAL, "the daemon answers something else");
	return 1;
}
