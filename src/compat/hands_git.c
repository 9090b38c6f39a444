/*
 * hands_git.c - what changed in a repository, and one file before and after. Git runs in the
 * sandbox, as every command there: what it says is the sandbox's own word.
 *
 * What is compared with, unless `ref` says it: the branch of that name at origin, when there is
 * something new since; else where the branch left the default one of origin, or main or master
 * here; else the last commit.
 */
#include "compat/compat-internal.h"

#define TIMEOUT_MS 60000
#define FILE_MAX "1048576"
#define CHANGES_MAX 50000 /* in one answer, which is made in memory */
#define FOLDER_SIZE 258   /* a name, its slash and a NUL */

enum { NO_REPO = 13, NO_REF = 14, NO_FILE = 15, LARGE = 16 };

/* "$2" is the ref, or empty. */
#define SCRIPT_BASE                                                                                \
	"g() { git --no-pager -c safe.directory='*' -c core.quotePath=false \"$@\"; }\n"           \
	"has() { g rev-parse -q --verify \"$1^{commit}\" 2>/dev/null; }\n"                         \
	"empty() { g hash-object -t tree /dev/null; }\n"                                           \
	"base() {\n"                                                                               \
	"	if [ -n \"$ref\" ]; then\n"                                                              \
	"		has \"$ref\" && return\n"                                                               \
	"		[ \"$ref\" = HEAD ] || return 1\n"                                                      \
	"	fi\n"                                                                                    \
	"	head=$(has HEAD) || { empty; return; }\n"                                                \
	"	branch=$(g symbolic-ref -q --short HEAD)\n"                                              \
	"	up=$([ -z \"$branch\" ] || has \"refs/remotes/origin/$branch\")\n"                       \
	"	if [ -n \"$up\" ]; then\n"                                                               \
	"		[ \"$up\" = \"$head\" ] && [ -z \"$(g status --porcelain -uno)\" ] ||\n"                \
	"			{ echo \"$up\"; return; }\n"                                                           \
	"	fi\n"                                                                                    \
	"	default=$(g symbolic-ref -q refs/remotes/origin/HEAD)\n"                                 \
	"	if [ -n \"$default\" ]; then\n"                                                          \
	"		g merge-base HEAD \"$default\" 2>/dev/null && return\n"                                 \
	"		has \"$default\" && return\n"                                                           \
	"	else\n"                                                                                  \
	"		for name in main master; do\n"                                                          \
	"			tip=$(has \"refs/heads/$name\") || continue\n"                                         \
	"			[ \"$name\" != \"$branch\" ] || break\n"                                               \
	"			[ \"$(g merge-base HEAD \"$tip\")\" = \"$tip\" ] || break\n"                           \
	"			echo \"$tip\"\n"                                                                       \
	"			return\n"                                                                              \
	"		done\n"                                                                                 \
	"	fi\n"                                                                                    \
	"	echo \"$head\"\n"                                                                        \
	"}\n"                                                                                      \
	"ref=$2\n"

/* Pairs, each text with a NUL: a letter and a name; "@" and the folder of a repository in front of
 * those of it. */
static const char script_changes[] = SCRIPT_BASE
    "changes() {\n"
    "	base=$(base) || return 14\n"
    "	printf '@\\0%s\\0' \"$1\"\n"
    "	g diff --name-status --no-renames -z \"$base\" -- || return 1\n"
    "	g ls-files --others --exclude-standard -z | xargs -0 -r printf '?\\0%s\\0'\n"
    "}\n"
    "cd -- \"$1\" 2>/dev/null && g rev-parse --git-dir >/dev/null 2>&1 || exit 13\n"
    "changes '' || exit\n"
    "for inner in */.git; do\n"
    "	[ -e \"$inner\" ] || continue\n"
    "	(cd -- \"${inner%/.git}\" && g rev-parse --git-dir >/dev/null 2>&1 &&\n"
    "		changes \"${inner%.git}\")\n"
    "done\n"
    "exit 0\n";

/* The length of what was, a line; what was; what is. */
static const char script_diff[] = SCRIPT_BASE
    "[ -f \"$1\" ] || exit 15\n"
    "[ \"$(wc -c <\"$1\")\" -le " FILE_MAX " ] || exit 16\n"
    "cd -- \"$(dirname -- \"$1\")\" && g rev-parse --git-dir >/dev/null 2>&1 || exit 13\n"
    "name=$(basename -- \"$1\")\n"
    "base=$(base) || exit 14\n"
    "size=$(g cat-file -s \"$base:./$name\" 2>/dev/null) || size=0\n"
    "[ \"$size\" -le " FILE_MAX " ] || exit 16\n"
    "echo \"$size\"\n"
    "[ \"$size\" = 0 ] || g cat-file blob \"$base:./$name\"\n"
    "cat -- \"$name\"\n";

static void run(struct call *c, struct sbx *s, const char *script, whole_fn *done)
{
	const char *path = call_query(c, "path"), *ref = call_query(c, "ref");
	struct fail f = { 0 };

	if (!path)
		fail_set(&f, FAIL_INVALID, "path is needed");
	else if (call_query(c, "commit"))
		fail_set(&f, FAIL_INVALID, "commit: not offered here; ref is");
	else if (ref && (!*ref || *ref == '-'))
		fail_set(&f, FAIL_INVALID, "ref: a name or a commit is expected");
	if (f.code != FAIL_NONE) {
		answer_fail(c, &f);
		return;
	}
	const char *const argv[] = { "/bin/sh",      "-c", script, "sh", compat_path(c, s, path),
		                     ref ? ref : "", NULL };
	whole_run(
	    c, s,
	    &(struct px_ask){
		.argv = argv, .actor = c->actor, .timeout_ms = TIMEOUT_MS, .log_max = 16u << 20 },
	    (struct span){ "", 0 }, done);
}

static void refuse_size(struct call *c)
{
	struct fail f = { 0 };

	fail_set(&f, FAIL_TOO_LARGE, "more than %d changes, or what they say is too long",
	         CHANGES_MAX);
	answer_fail(c, &f);
}

static void refuse(struct call *c, const struct whole_end *end)
{
	static const struct {
		int code;
		const char *words;
	} table[] = { { NO_REF, "no such ref" },
		      { NO_FILE, "File does not exist" },
		      { LARGE, "File too large for git diff" } };
	const char *words = "git failed";
	struct fail f = { 0 };

	for (size_t i = 0; end && i < COUNT(table); i++)
		if (table[i].code == end->exit_code)
			words = table[i].words;
	fail_set(&f, FAIL_INVALID, "%s", words);
	answer_fail(c, &f);
}

/* ---- changes ------------------------------------------------------------------------- */

static bool take_text(struct span *rest, struct span *out)
{
	const char *end = memchr(rest->at, '\0', rest->len);

	if (!end)
		return false;
	*out = (struct span){ rest->at, (size_t)(end - rest->at) };
	*rest = span_after(*rest, out->len + 1);
	return true;
}

static const char *status_of(struct span letter)
{
	static const struct {
		char letter;
		const char *status;
	} table[] = { { 'A', "ADDED" },   { '?', "ADDED" },   { 'D', "DELETED" },
		      { 'M', "UPDATED" }, { 'T', "UPDATED" }, { 'U', "UPDATED" } };

	for (size_t i = 0; letter.len == 1 && i < COUNT(table); i++)
		if (table[i].letter == letter.at[0])
			return table[i].status;
	return NULL;
}

/* The folder that a name begins with, and its slash; "": none that could be. */
static void first_of(struct span name, char out[FOLDER_SIZE])
{
	const char *slash = memchr(name.at, '/', name.len);
	size_t n = slash ? (size_t)(slash - name.at) + 1 : 0;

	snprintf(out, FOLDER_SIZE, "%.*s", n < FOLDER_SIZE ? (int)n : 0, name.at);
}

/* One that another repository, inside of this one, speaks of itself. */
static bool is_inner(const json_t *inner, struct span name)
{
	char first[FOLDER_SIZE];

	first_of(name, first);
	return first[0] && json_object_get(inner, first);
}

struct change {
	json_t *o;
	const char *path;
};

static int by_path(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static json_t *sorted(json_t *list)
{
	size_t n = json_array_size(list);
	struct change *at = mem_alloc((n + 1) * sizeof *at);
	json_t *out = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_array_get(list, i);

		at[i] = (struct change){ o, json_string_value(json_object_get(o, "path")) };
	}
	qsort(at, n, sizeof *at, by_path);
	for (size_t i = 0; i < n; i++)
		json_array_append(out, at[i].o);
	free(at);
	json_decref(list);
	return out;
}

/* By the names of their folders, each with a slash. What git says is for the sandbox to make up:
 * none of it may take more than its length. */
static json_t *inner_of(struct span out)
{
	json_t *inner = json_object();
	struct span letter, name;
	char first[FOLDER_SIZE];

	while (take_text(&out, &letter) && take_text(&out, &name) &&
	       json_object_size(inner) < CHANGES_MAX) {
		first_of(name, first);
		if (span_is(letter, "@") && first[0])
			json_object_set_new_nocheck(inner, first, json_true());
	}
	return inner;
}

static void changed(struct call *c, const struct whole_end *end)
{
	struct span rest = end ? end->out : (struct span){ "", 0 };
	struct span letter, name, folder = { "", 0 };

	if (end && end->exit_code == NO_REPO) {
		answer_json(c, 200, json_array());
		return;
	}
	if (!end || end->exit_code != 0) {
		refuse(c, end);
		return;
	}
	json_t *list = json_array(), *inner = inner_of(rest);
	while (take_text(&rest, &letter) && take_text(&rest, &name) &&
	       json_array_size(list) <= CHANGES_MAX) {
		const char *status = status_of(letter);
		AUTO(str_done) struct str path = { .max = (size_t)4 * PATH_TEXT_MAX };

		if (span_is(letter, "@") && name.len < FOLDER_SIZE)
			folder = name;
		if (!status || (folder.len == 0 && is_inner(inner, name)))
			continue;
		str_addn(&path, folder.at, folder.len);
		str_addn(&path, name.at, name.len);
		json_array_append_new(
		    list, json_pack("{ss,so}", "status", status, "path",
		                    py_json((struct span){ str_text(&path), path.len })));
	}
	json_decref(inner);
	list = sorted(list);
	if (json_array_size(list) <= CHANGES_MAX && !end->is_cut) {
		answer_json(c, 200, list);
	} else {
		refuse_size(c);
		json_decref(list);
	}
}

static void changes(struct call *c, struct sbx *s)
{
	run(c, s, script_changes, changed);
}

void hands_changes(struct call *c)
{
	compat_enter(c, changes);
}

/* ---- one file ------------------------------------------------------------------------ */

/* Lines without the end of the last; what is no text is shown as none. */
static json_t *modified_of(struct span bytes)
{
	AUTO(str_done) struct str text = { .max = (size_t)2 * ERRAND_ANSWER_MAX };
	size_t at;

	if (!py_utf8(bytes, PY_STRICT, &text, &at))
		return json_string("");
	py_newlines(&text);
	return json_stringn(str_text(&text), text.len > 0 && text.data[text.len - 1] == '\n'
	                                         ? text.len - 1
	                                         : text.len);
}

static json_t *original_of(struct span bytes)
{
	AUTO(str_done) struct str text = { .max = (size_t)4 * ERRAND_ANSWER_MAX };

	(void)py_utf8(bytes, PY_REPLACE, &text, NULL);
	struct span stripped = py_strip((struct span){ str_text(&text), text.len });
	return json_stringn(stripped.at, stripped.len);
}

static void compared(struct call *c, const struct whole_end *end)
{
	char *line = NULL;

	if (end && end->exit_code == NO_REPO) {
		answer_json(c, 200, json_pack("{sn,sn}", "modified", "original"));
		return;
	}
	if (!end || end->exit_code != 0) {
		refuse(c, end);
		return;
	}
	size_t size = (size_t)strtoull(end->out.at, &line, 10);
	size_t skip = (size_t)(line - end->out.at) + 1;

	if (*line != '\n' || size > end->out.len - skip) {
		refuse(c, NULL);
		return;
	}
	struct span rest = span_after(end->out, skip);
	answer_json(c, 200,
	            json_pack("{so,so}", "modified", modified_of(span_after(rest, size)),
	                      "original", original_of((struct span){ rest.at, size })));
}

static void diff(struct call *c, struct sbx *s)
{
	run(c, s, script_diff, compared);
}

void hands_diff(struct call *c)
{
	compat_enter(c, diff);
}
