/*
 * tools.c - the tools, in a fixed order, with the names and members that models know.
 *
 * What a tool gives is an object of our API: its schema is printed from the same table as
 * docs/api.md, with what it refers to beside it.
 */
#include "api/schemas.h"
#include "mcp/mcp-internal.h"

#define TTL_MS 3600000 /* the list changes with the daemon */

/* clang-format off */
const struct tool tools[] = {
	{ "bash", "Run a command",
	  "Run a command in the sandbox's shell, which keeps its folder and variables from call to call. "
	  "A command that takes longer than 100 s goes on: the result says `running` and its process id, for the tool process.",
	  "{\"command\":{\"type\":\"string\",\"description\":\"for bash, or sh where there is none\"},"
	  "\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":86400000,\"description\":\"ms; then it is killed with all it started. 600000 unless given\"},"
	  "\"run_in_background\":{\"type\":\"boolean\",\"description\":\"answer at once with a process id\"},"
	  "\"description\":{\"type\":\"string\",\"description\":\"what it is for, in a few words\"},"
	  "\"restart\":{\"type\":\"boolean\",\"description\":\"end the shell and all that runs in it, first; command may be absent\"}}",
	  "", "Process", HINT_BREAKS | HINT_WORLD, tool_bash },
	{ "read", "Read a file",
	  "Read lines of a text file, numbered from 1.",
	  "{\"file_path\":{\"type\":\"string\",\"description\":\"absolute, or from /work\"},"
	  "\"offset\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"first line\"},"
	  "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"lines; 2000 unless given\"},"
	  "\"view_range\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":2,\"description\":\"[first, last] in place of offset and limit; last -1: to the end\"}}",
	  "file_path", "FileLines", HINT_READS, tool_read },
	{ "write", "Write a file",
	  "Write a whole file, atomically; folders on the way are made.",
	  "{\"file_path\":{\"type\":\"string\",\"description\":\"absolute, or from /work\"},"
	  "\"content\":{\"type\":\"string\"}}",
	  "file_path content", "FileWritten", HINT_BREAKS | HINT_SAME, tool_write },
	{ "edit", "Edit a file",
	  "Replace a text in a file. It must be there exactly once, unless replace_all.",
	  "{\"file_path\":{\"type\":\"string\",\"description\":\"absolute, or from /work\"},"
	  "\"old_string\":{\"type\":\"string\"},\"new_string\":{\"type\":\"string\"},"
	  "\"replace_all\":{\"type\":\"boolean\"}}",
	  "file_path old_string new_string", "FileEdited", HINT_BREAKS, tool_edit },
	{ "glob", "Find files by name",
	  "Names of files that match a pattern such as **/*.py, newest first.",
	  "{\"pattern\":{\"type\":\"string\"},\"path\":{\"type\":\"string\",\"description\":\"where to begin; /work unless given\"}}",
	  "pattern", "GlobFound", HINT_READS, tool_glob },
	{ "grep", "Search in files",
	  "Search file contents with a regular expression; what .gitignore names is left out.",
	  "{\"pattern\":{\"type\":\"string\"},\"path\":{\"type\":\"string\"},"
	  "\"glob\":{\"type\":\"string\",\"description\":\"only files of these names\"},"
	  "\"output_mode\":{\"type\":\"string\",\"enum\":[\"content\",\"files_with_matches\",\"count\"],\"description\":\"files_with_matches unless given\"},"
	  "\"-i\":{\"type\":\"boolean\",\"description\":\"upper and lower case are the same\"},"
	  "\"-n\":{\"type\":\"boolean\",\"description\":\"line numbers, with content; true unless given\"},"
	  "\"-A\":{\"type\":\"integer\",\"minimum\":0},\"-B\":{\"type\":\"integer\",\"minimum\":0},\"-C\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"lines around each match\"},"
	  "\"head_limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"lines of the answer; 500 unless given\"},"
	  "\"multiline\":{\"type\":\"boolean\"}}",
	  "pattern", "GrepFound", HINT_READS, tool_grep },
	{ "process", "A process",
	  "Look at a process that runs or ran (poll), give it input (stdin), signal or kill it.",
	  "{\"id\":{\"type\":\"string\",\"description\":\"px_…\"},"
	  "\"action\":{\"type\":\"string\",\"enum\":[\"poll\",\"stdin\",\"signal\",\"kill\"],\"description\":\"poll unless given\"},"
	  "\"chars\":{\"type\":\"string\",\"description\":\"input, of stdin\"},"
	  "\"eof\":{\"type\":\"boolean\",\"description\":\"and this was all of it\"},"
	  "\"signal\":{\"type\":\"string\",\"description\":\"of signal: TERM, INT, …\"},"
	  "\"wait_ms\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100000,\"description\":\"answer when it has ended, or after this long; 0 unless given\"}}",
	  "id", "Process", HINT_BREAKS, tool_process },
	{ "git", "Git",
	  "status: which files differ from the beginning. diff: how. log: commits. commit: everything that is not ignored, or `paths`. "
	  "push: to a branch of the repository. pr: a pull request for it. push and pr go with a credential that the sandbox never sees, and may need a person's approval.",
	  "{\"action\":{\"type\":\"string\",\"enum\":[\"status\",\"diff\",\"log\",\"commit\",\"push\",\"pr\"]},"
	  "\"message\":{\"type\":\"string\",\"description\":\"of commit\"},"
	  "\"paths\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"of commit; of diff one\"},"
	  "\"branch\":{\"type\":\"string\",\"description\":\"of push and pr\"},"
	  "\"title\":{\"type\":\"string\",\"description\":\"of pr\"},\"body\":{\"type\":\"string\",\"description\":\"of pr\"},"
	  "\"base\":{\"type\":\"string\",\"description\":\"of diff a commit or point, of pr a branch\"},"
	  "\"draft\":{\"type\":\"boolean\"},\"cred\":{\"type\":\"string\",\"description\":\"name of a stored secret\"},"
	  "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"description\":\"of log; 20 unless given\"}}",
	  "action", NULL, HINT_BREAKS | HINT_WORLD, tool_git },
	{ "workspace", "The workspace",
	  "info: what it is. history: what changed it. undo, redo: one command back, forward. snapshot: keep it under a name. "
	  "restore: to any point of its history. fork: more workspaces that begin as this one is.",
	  "{\"action\":{\"type\":\"string\",\"enum\":[\"info\",\"history\",\"undo\",\"redo\",\"snapshot\",\"restore\",\"fork\"]},"
	  "\"label\":{\"type\":\"string\",\"description\":\"of snapshot\"},"
	  "\"to\":{\"type\":\"string\",\"description\":\"of restore: cp_…, sn_…, px_… or base\"},"
	  "\"steps\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"of undo and redo\"},"
	  "\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"description\":\"of fork: how many\"},"
	  "\"key\":{\"type\":\"string\",\"description\":\"of fork\"}}",
	  "action", NULL, HINT_BREAKS, tool_workspace },
};
/* clang-format on */

const size_t n_tools = COUNT(tools);

/* ---- schemas --------------------------------------------------------------------------- */

static void add_refs(json_t *value, json_t *defs);

/* "#/components/schemas/X" is "#/$defs/X" here, and X is among them. */
static void add_ref(json_t *object, json_t *defs)
{
	static const char prefix[] = "#/components/schemas/";
	const char *ref = json_string_value(json_object_get(object, "$ref"));
	char text[128];

	if (!ref || strncmp(ref, prefix, sizeof prefix - 1) != 0)
		return;
	const struct schema *s = schema_find(ref + sizeof prefix - 1);
	snprintf(text, sizeof text, "#/$defs/%s", ref + sizeof prefix - 1);
	json_object_set_new(object, "$ref", json_string(text));
	if (!s || json_object_get(defs, s->name))
		return;
	json_t *def = schema_json(s);
	json_object_set_new(defs, s->name, def);
	add_refs(def, defs);
}

static void add_refs(json_t *value, json_t *defs)
{
	const char *key;
	json_t *v;
	size_t i;

	add_ref(value, defs);
	json_object_foreach(value, key, v) add_refs(v, defs);
	json_array_foreach(value, i, v) add_refs(v, defs);
}

static json_t *output_schema(const struct tool *t)
{
	const struct schema *s = t->gives ? schema_find(t->gives) : NULL;

	if (!s)
		return json_pack("{ss}", "type", "object");
	json_t *o = schema_json(s), *defs = json_object();
	add_refs(o, defs);
	if (json_object_size(defs) > 0)
		json_object_set(o, "$defs", defs);
	json_decref(defs);
	return o;
}

static json_t *properties(const struct mcp *m, const struct tool *t)
{
	json_t *all = json_loads(t->input, 0, NULL);

	if (!m->bound)
		json_object_set_new(
		    all, "workspace",
		    json_pack("{ss,ss}", "type", "string", "description", "its id or key"));
	return all;
}

static json_t *needed(const char *names)
{
	json_t *list = json_array();

	for (size_t n; (n = strcspn(names, " ")) > 0; names += n + (names[n] == ' '))
		json_array_append_new(list, json_stringn(names, n));
	return list;
}

static json_t *input_schema(const struct mcp *m, const struct tool *t)
{
	return json_pack("{ss,so,so,sb}", "type", "object", "properties", properties(m, t),
	                 "required", needed(t->needs), "additionalProperties", 0);
}

static json_t *tool_json(const struct mcp *m, const struct tool *t)
{
	json_t *hints = json_pack(
	    "{ss,sb,sb,sb,sb}", "title", t->title, "readOnlyHint", !!(t->hints & HINT_READS),
	    "destructiveHint", !!(t->hints & HINT_BREAKS), "idempotentHint",
	    !!(t->hints & (HINT_SAME | HINT_READS)), "openWorldHint", !!(t->hints & HINT_WORLD));

	return json_pack("{ss,ss,ss,so,so,so}", "name", t->name, "title", t->title, "description",
	                 t->help, "inputSchema", input_schema(m, t), "outputSchema",
	                 output_schema(t), "annotations", hints);
}

void mcp_tools_list(struct mcp *m)
{
	json_t *list = json_array(), *result;

	for (size_t i = 0; i < n_tools; i++)
		json_array_append_new(list, tool_json(m, &tools[i]));
	result = json_pack("{so}", "tools", list);
	if (m->is_modern) {
		json_object_set_new(result, "ttlMs", json_integer(TTL_MS));
		json_object_set_new(result, "cacheScope", json_string("public"));
	}
	mcp_result(m, result);
}

/* ---- calls ----------------------------------------------------------------------------- */

/* Some clients say 2.0 for 2, which a schema allows. */
static bool is_whole(const json_t *v)
{
	return json_is_integer(v) ||
	       (json_is_real(v) && json_real_value(v) == (double)json_whole(v));
}

static bool is_of_type(const json_t *v, const char *type)
{
	return strcmp(type, "string") == 0    ? json_is_string(v)
	       : strcmp(type, "boolean") == 0 ? json_is_boolean(v)
	       : strcmp(type, "array") == 0   ? json_is_array(v)
	                                      : is_whole(v);
}

/* The model is told what is wrong, so that it can do better. False: it was. */
static bool check_args(struct mcp *m)
{
	json_t *schema = input_schema(m, m->tool), *members = json_object_get(schema, "properties");
	const char *key;
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(schema, "required"), i,
	                   v) if (!json_object_get(m->args, json_string_value(v)))
	{
		mcp_fail(m, "invalid: %s is needed", json_string_value(v));
		json_decref(schema);
		return false;
	}
	json_object_foreach(m->args, key, v)
	{
		const json_t *member = json_object_get(members, key);

		if (member && is_of_type(v, json_text(member, "type")))
			continue;
		if (strcmp(key, "workspace") == 0 && json_is_string(v))
			continue; /* mcp_target() has a word on it */
		const char *type = json_text(member, "type");
		if (member)
			mcp_fail(m, "invalid: %s: %s %s is expected", key,
			         strchr("ai", type[0]) ? "an" : "a", type);
		else
			mcp_fail(m, "invalid: unknown argument \"%.64s\"", key);
		json_decref(schema);
		return false;
	}
	json_decref(schema);
	return true;
}

void mcp_tools_call(struct mcp *m)
{
	const char *name = json_text(m->rpc.params, "name");
	size_t i = 0;

	while (i < n_tools && strcmp(tools[i].name, name) != 0)
		i++;
	if (i == n_tools) {
		mcp_error(m, RPC_PARAMS, "no such tool", json_pack("{ss}", "name", name));
		return;
	}
	m->tool = &tools[i];
	m->args = json_object_get(m->rpc.params, "arguments");
	if (!m->args) {
		m->args = json_object();
		json_object_set_new(m->rpc.root, "no arguments", m->args);
	}
	if (!json_is_object(m->args))
		mcp_error(m, RPC_PARAMS, "arguments: an object is expected", NULL);
	else if (check_args(m) && !ask_rejoin(m))
		m->tool->run(m);
}
