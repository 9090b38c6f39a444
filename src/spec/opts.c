/*
 * opts.c - the keys of a spec, in canonical order, and the three ways in.
 */
#include "spec/opts.h"
#include "spec/trip.h"

static const char *const image_words[] = { "host", "dir:PATH", "NAME", NULL };
static const char *const backend_words[] = { "native", NULL };
static const char *const checkpoint_words[] = { "on", "off", "all", NULL };
static const char *const profile_words[] = {
	[PROFILE_DEFAULT] = "default",
	[PROFILE_ROOTFUL] = "rootful",
	NULL,
};

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct spec, name)

static const struct opt gate_rows[] = {
	{ .key = "commands", .type = &opt_list, .check = check_trip, FIELD(commands), .max = TRIPS_MAX,
	  .forms = "list of commands",
	  .help = "programs that wait for an approval when they are started: `git push`, `rm -rf *`, `npm ** publish`" },
};
const struct opt_table gate_table = { gate_rows, COUNT(gate_rows) };

static const struct opt rows[] = {
	{ .key = "net", .flag = "net", .arg = "RULE", .dflt = "deny", .weaker = true,
	  .type = &opt_net, .members = &net_table, FIELD(net),
	  .forms = "`deny`, `allow`, `allow:HOST,HOST`, `preset:pip`, list of hosts, object",
	  .help = "what may be reached: deny, allow, allow:HOST,HOST, preset:pip" },
	{ .key = "fs", .flag = "fs", .arg = "MOUNT", .dflt = "ephemeral:/work", .weaker = true,
	  .type = &opt_fs, .members = &fs_table, .max = FS_ENTRIES_MAX,
	  .forms = "`ephemeral:/work`, `workspace:/work`, `ro:/opt/tc[:/at]`, "
	           "`overlay:/src:/work`, object, list",
	  .help = "ephemeral:AT, workspace:AT, ro:SRC[:AT], overlay:SRC:AT" },
	{ .key = "creds", .flag = "creds", .arg = "NAME", .dflt = "none", .weaker = true,
	  .type = &opt_creds,
	  .forms = "null, `none`, `github`, `github=vault:gh-app`, "
	           "`{github: vault:gh-app}`, list",
	  .help = "secrets the gate may use: none, NAME, NAME=vault:NAME" },
	{ .key = "limits",
	  .type = &opt_members, .members = &limit_table,
	  .forms = "object", .help = "see below" },
	{ .key = "user", .flag = "user", .brief = "u", .arg = "USER", .dflt = "agent", .weaker = true,
	  .type = &opt_text, .check = check_user, FIELD(user),
	  .forms = "name, `uid` or `uid:gid`",
	  .help = "name, uid or uid:gid inside; root is nobody outside" },
	{ .key = "image", .flag = "image", .arg = "IMAGE", .dflt = "host",
	  .type = &opt_text, .check = check_image, .words = image_words, FIELD(image),
	  .forms = "`host`, `dir:/path`, the name of an imported one (`caisson image`)",
	  .help = "the root file system: host, dir:PATH or the name of an imported one" },
	{ .key = "backend", .flag = "backend", .arg = "NAME", .dflt = "native",
	  .type = &opt_text, .check = check_word, .words = backend_words, FIELD(backend),
	  .forms = "`native`", .help = "who makes the walls" },
	{ .key = "workspace", .flag = "workspace", .arg = "NAME",
	  .type = &opt_text, .check = check_name, FIELD(workspace),
	  .forms = "id or key", .help = "the durable tree that fs workspace:AT mounts" },
	{ .key = "profile", .flag = "profile", .arg = "NAME", .dflt = "default", .weaker = true,
	  .type = &opt_profile, .words = profile_words,
	  .forms = "`default`, `rootful`",
	  .help = "default, or rootful to install packages as root inside" },
	{ .key = "env", .flag = "env", .brief = "e", .arg = "K=V",
	  .type = &opt_env, .check_key = check_env_name, .check = check_env_value, FIELD(env),
	  .max = ENV_ENTRIES_MAX,
	  .forms = "object, list of `K=V`", .help = "a variable of the command" },
	{ .key = "services", .flag = "services", .arg = "CMD",
	  .type = &opt_list, .check = check_command, FIELD(services),
	  .forms = "list of commands", .help = "a command that runs beside the first one" },
	{ .key = "setup", .flag = "setup", .arg = "CMD",
	  .type = &opt_list, .check = check_command, FIELD(setup),
	  .forms = "list of commands", .help = "a command that runs once before the first one" },
	{ .key = "gate",
	  .type = &opt_gate, .members = &gate_table,
	  .forms = "object", .help = "see below" },
	{ .key = "checkpoint", .flag = "checkpoint", .arg = "on|off|all", .dflt = "on",
	  .type = &opt_switch, .check = check_word, .words = checkpoint_words, FIELD(checkpoint),
	  .forms = "`on`, `off`, `all`, true, false",
	  .help = "each command can be undone; all: what it did to its root as well" },
	{ .key = "allow_weaker", .flag = "allow-weaker", .arg = "FIELD",
	  .type = &opt_list, .check = check_weaker, FIELD(allow_weaker),
	  .forms = "list of fields", .help = "start even if this host cannot enforce the field" },
};
/* clang-format on */
const struct opt_table top_table = { rows, COUNT(rows) };

void spec_init(struct spec *s)
{
	/* Heap failure aborts here too, so that no tree is printed with a branch missing. */
	json_set_alloc_funcs(mem_alloc, free);
	*s = (struct spec){ .user = table_find(&top_table, "user")->dflt };
}

void spec_done(struct spec *s)
{
	net_clear(&s->net);
	vec_done(&s->fs);
	vec_done(&s->creds);
	vec_done(&s->env);
	vec_done(&s->services);
	vec_done(&s->setup);
	vec_done(&s->commands);
	vec_done(&s->allow_weaker);
	arena_done(&s->arena);
}

const struct opt *flag_row(size_t i)
{
	for (size_t k = 0; k < top_table.count + limit_table.count; k++) {
		const struct opt *o =
		    k < top_table.count ? &top_table.at[k] : &limit_table.at[k - top_table.count];

		if (o->flag && i-- == 0)
			return o;
	}
	return NULL;
}

static const struct opt *row_by_flag(const char *flag)
{
	const struct opt *o;

	for (size_t i = 0; (o = flag_row(i)); i++)
		if (strcmp(o->flag, flag) == 0 || (o->brief && strcmp(o->brief, flag) == 0))
			return o;
	return NULL;
}

bool spec_is_flag(const char *name)
{
	return row_by_flag(name) != NULL;
}

const char *spec_nearest_flag(const char *name)
{
	const char *words[FLAGS_MAX + 1] = { NULL };
	const struct opt *o;

	for (size_t i = 0; (o = flag_row(i)) && i < FLAGS_MAX; i++)
		words[i] = o->flag;
	return nearest(name, words);
}

static int unknown_flag(const char *flag, struct err *e)
{
	const char *near = spec_nearest_flag(flag);

	return err_new(e, ERR_INVALID, "unknown flag --%s%s%s%s", quote(flag).text,
	               near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

int spec_flag(struct spec *s, const char *flag, const char *value, struct err *e)
{
	const struct opt *o = row_by_flag(flag);
	struct input in = { .arena = &s->arena };

	if (!o)
		return unknown_flag(flag, e);
	if (strlen(value) > SPEC_BYTES_MAX)
		return err_new(e, ERR_LIMIT, "--%s: the value has more than %u bytes", o->flag,
		               SPEC_BYTES_MAX);
	AUTO(json_decrefp) json_t *v = json_string(value);

	if (!v)
		return err_new(e, ERR_INVALID, "--%s: the value is not UTF-8", o->flag);
	if (opt_set(&in, o, s, v, e) < 0)
		return err_wrap(e, "--%s", o->flag);
	return 0;
}

/* ---- documents ---- */

static const struct doc_kind spec_kind = { .table = &top_table,
	                                   .noun = "the spec",
	                                   .keys = "net, fs, limits",
	                                   .when_empty = "{} for all defaults" };

static int nothing_said(const struct doc_kind *kind, struct err *e)
{
	if (!kind->when_empty)
		return 0;
	return err_new(e, ERR_INVALID, "%s is empty; write %s", kind->noun, kind->when_empty);
}

static int text_admit(const struct doc_kind *kind, struct span text, struct err *e)
{
	if (text.len > SPEC_BYTES_MAX)
		return err_new(e, ERR_LIMIT, "%s has more than %u bytes", kind->noun,
		               SPEC_BYTES_MAX);
	if (memchr(text.at, '\0', text.len))
		return err_new(e, ERR_INVALID, "%s has a NUL byte", kind->noun);
	for (size_t i = 0; i < text.len; i++)
		if (!strchr(" \t\r\n", text.at[i]))
			return 0;
	return nothing_said(kind, e);
}

static bool is_deeper(json_t *v, int levels)
{
	const char *key;
	json_t *item;
	size_t i;

	if (levels == 0)
		return json_is_object(v) || json_is_array(v);
	json_object_foreach(v, key, item)
	{
		if (is_deeper(item, levels - 1))
			return true;
	}
	json_array_foreach(v, i, item)
	{
		if (is_deeper(item, levels - 1))
			return true;
	}
	return false;
}

static int apply(const struct doc_kind *kind, void *into, json_t *root, struct input *in,
                 struct err *e)
{
	if (is_deeper(root, SPEC_DEPTH_MAX))
		return err_new(e, ERR_LIMIT, "nested deeper than %d", SPEC_DEPTH_MAX);
	char wants[96];

	snprintf(wants, sizeof wants, "an object of keys such as %s", kind->keys);
	if (!json_is_object(root))
		return wrong_type(wants, root, e);
	if (members_apply(in, kind->table, into, root, e) < 0)
		return in->path_len > 0 ? err_wrap(e, "%s", in->path) : -1;
	return 0;
}

/* jansson's own text quotes the input, which may be a secret: only its code is used. */
static const char *json_problem(enum json_error_code code)
{
	switch ((int)code) {
	case json_error_invalid_utf8:
		return "not UTF-8";
	case json_error_premature_end_of_input:
		return "ends in the middle";
	case json_error_end_of_input_expected:
		return "more text after the end of the document";
	case json_error_numeric_overflow:
		return "a number is too large";
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "text with a NUL";
	case json_error_stack_overflow:
		return "nested too deep";
	default:
		return "not JSON";
	}
}

/* jansson stops behind the second key; what stands between the last two quotes is it. */
static int json_twice(struct arena *a, const char *text, const json_error_t *problem, struct err *e)
{
	size_t end = (size_t)problem->position;
	size_t start = end > 0 ? end - 1 : 0;

	while (start > 0 && text[start - 1] != '"')
		start--;
	const char *key = arena_strndup(a, text + start, end > start ? end - 1 - start : 0);

	return err_new(e, ERR_INVALID, "line %d: key \"%s\" is given twice", problem->line,
	               quote(key).text);
}

int doc_json(const struct doc_kind *kind, struct arena *a, void *into, struct span text,
             struct err *e)
{
	struct input in = { .arena = a, .document = true };
	size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
	json_error_t problem;

	if (text_admit(kind, text, e) < 0)
		return -1;
	AUTO(json_decrefp) json_t *root = json_loadb(text.at, text.len, flags, &problem);

	if (!root && json_error_code(&problem) == json_error_duplicate_key)
		return json_twice(a, text.at, &problem, e);
	if (!root)
		return err_new(e, ERR_INVALID, "line %d: %s", problem.line,
		               json_problem(json_error_code(&problem)));
	return apply(kind, into, root, &in, e);
}

int spec_json(struct spec *s, const char *text, size_t len, struct err *e)
{
	return doc_json(&spec_kind, &s->arena, s, (struct span){ text, len }, e);
}

int doc_yaml(const struct doc_kind *kind, struct arena *a, void *into, struct span text,
             struct err *e)
{
	struct input in = { .arena = a, .document = true };
	AUTO(yaml_doc_done) struct yaml_doc doc = { 0 };

	if (text_admit(kind, text, e) < 0 || yaml_load(text.at, text.len, &doc, e) < 0)
		return -1;
	if (!doc.root || json_is_null(doc.root))
		return nothing_said(kind, e);
	if (apply(kind, into, doc.root, &in, e) == 0)
		return 0;
	size_t line = yaml_line(&doc, in.parent, in.index);

	return line ? err_wrap(e, "line %zu", line) : -1;
}

int spec_yaml(struct spec *s, const char *text, size_t len, struct err *e)
{
	return doc_yaml(&spec_kind, &s->arena, s, (struct span){ text, len }, e);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && strcmp(text + n - k, end) == 0;
}

int spec_document(struct spec *s, const char *name, const char *text, size_t len, struct err *e)
{
	size_t i = 0;

	while (i < len && text[i] && strchr(" \t\r\n", text[i]))
		i++;
	if (ends_with(name, ".json"))
		return spec_json(s, text, len, e);
	if (ends_with(name, ".yaml") || ends_with(name, ".yml") || i == len || text[i] != '{')
		return spec_yaml(s, text, len, e);
	return spec_json(s, text, len, e);
}
