#include "spec/opts.h"

enum { SRC_NONE, SRC_OR_AT, SRC_NEEDED };

static const struct kind {
	const char *usage;
	int src;
} kinds[] = {
	[FS_EPHEMERAL] = { "ephemeral:/work", SRC_NONE },
	[FS_WORKSPACE] = { "workspace:/work", SRC_NONE },
	[FS_RO] = { "ro:/opt/tc or ro:/opt/tc:/at", SRC_OR_AT },
	[FS_OVERLAY] = { "overlay:/src:/work", SRC_NEEDED },
};
static const char *const kind_words[] = {
	[FS_EPHEMERAL] = "ephemeral",
	[FS_WORKSPACE] = "workspace",
	[FS_RO] = "ro",
	[FS_OVERLAY] = "overlay",
	NULL,
};
_Static_assert(COUNT(kind_words) == COUNT(kinds) + 1, "a kind has no word");

static int kind_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct fs_entry *entry = into;

	(void)in;
	if (!json_is_string(v))
		return wrong_type(o->type->wants, v, e);
	int kind = word_find(o->words, json_string_value(v), e);

	if (kind < 0)
		return -1;
	entry->kind = (enum fs_kind)kind;
	return 0;
}

static json_t *kind_get(const struct opt *o, const void *from)
{
	const struct fs_entry *entry = from;

	return json_string(o->words[entry->kind]);
}

static const struct opt_type opt_kind = { .wants = "text", .set = kind_set, .get = kind_get };

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct fs_entry, name)

static const struct opt rows[] = {
	{ .key = "kind", .type = &opt_kind, .words = kind_words,
	  .forms = "`ephemeral`, `workspace`, `ro`, `overlay`", .help = "what is mounted" },
	{ .key = "src", .type = &opt_text, .check = check_source, FIELD(src),
	  .forms = "absolute path", .help = "the host's folder, for `ro` and `overlay`" },
	{ .key = "at", .type = &opt_text, .check = check_mount_point, FIELD(at),
	  .forms = "absolute path",
	  .help = "where it is inside; for `ro` the same as `src` unless given" },
};
/* clang-format on */
const struct opt_table fs_table = { rows, COUNT(rows) };

/* "ro:/opt/tc:/at" becomes kind, src, at. A path with a colon needs the object form. */
static int entry_parse(struct input *in, const char *text, struct fs_entry *out, struct err *e)
{
	const char *parts[4] = { 0 };
	size_t n = 0;
	int kind = 0;

	for (char *p = arena_strdup(in->arena, text); p && n < COUNT(parts); n++)
		parts[n] = strsep(&p, ":");
	if (text[0] == '/')
		return err_new(e, ERR_INVALID, "\"%s\" has no kind; write \"ephemeral:%s\"",
		               quote(text).text, quote(text).text);
	kind = word_find(kind_words, parts[0], e);
	if (kind < 0)
		return err_wrap(e, "kind of mount");
	int src = kinds[kind].src;

	if (n > 3 || (n > 2 && src == SRC_NONE) || n < (src == SRC_NEEDED ? 3u : 2u))
		return err_new(e, ERR_INVALID, "\"%s\" does not have the form %s", quote(text).text,
		               kinds[kind].usage);
	out->kind = (enum fs_kind)kind;
	const char *at = parts[n - 1];

	if (src != SRC_NONE && check_source(&rows[1], in->arena, parts[1], &out->src, e) < 0)
		return -1;
	return check_mount_point(&rows[2], in->arena, at, &out->at, e);
}

static int entry_settle(struct input *in, struct fs_entry *entry, struct err *e)
{
	const char *word = kind_words[entry->kind];
	int src = kinds[entry->kind].src;

	if (src == SRC_NONE && entry->src)
		return err_new(e, ERR_INVALID, "kind \"%s\" has no src", word);
	if (src != SRC_NONE && !entry->src)
		return err_new(e, ERR_INVALID, "kind \"%s\" needs src, a folder of the host", word);
	if (src == SRC_OR_AT && !entry->at)
		return check_mount_point(&rows[2], in->arena, entry->src, &entry->at, e);
	if (!entry->at)
		return err_new(e, ERR_INVALID, "kind \"%s\" needs at, a path inside", word);
	return 0;
}

static int fs_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct spec *s = into;
	struct fs_entry entry = { 0 };

	if (json_is_string(v)) {
		if (entry_parse(in, json_string_value(v), &entry, e) < 0)
			return -1;
	} else if (json_is_object(v)) {
		if (!json_object_get(v, "kind"))
			return err_new(e, ERR_INVALID, "needs a kind%s", hint("", kind_words).text);
		if (members_apply(in, &fs_table, &entry, v, e) < 0 ||
		    entry_settle(in, &entry, e) < 0)
			return -1;
	} else {
		return wrong_type(o->type->wants, v, e);
	}
	if (list_room(o, s->fs.len, e) < 0)
		return -1;
	vec_push(&s->fs, entry);
	return 0;
}

static json_t *fs_get(const struct opt *o, const void *from)
{
	const struct spec *s = from;
	json_t *array = json_array();

	(void)o;
	for (size_t i = 0; i < s->fs.len; i++)
		json_array_append_new(array, members_get(&fs_table, &s->fs.at[i]));
	return array;
}

static void fs_clear(const struct opt *o, void *into)
{
	struct spec *s = into;

	(void)o;
	s->fs.len = 0;
}

const struct opt_type opt_fs = {
	.wants = "text such as \"ephemeral:/work\", an object with kind and at, or a list of them",
	.items = true,
	.repeat = true,
	.set = fs_set,
	.get = fs_get,
	.clear = fs_clear,
};
