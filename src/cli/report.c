#include "cli/report.h"

#include <time.h>

#include "wire/later.h"

#define ARGV_MAX 4096
#define FILES_MAX 1000 /* that are shown */

/* ---- words ---------------------------------------------------------------------------- */

const char *report_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

int64_t report_number(const json_t *o, const char *key)
{
	return (int64_t)json_integer_value(json_object_get(o, key));
}

/* UTC: whoever reads it may be elsewhere. */
static bool break_down(int64_t ms, struct tm *tm)
{
	time_t seconds = (time_t)(ms / 1000);

	return ms > 0 && gmtime_r(&seconds, tm);
}

void report_time(int64_t ms, char out[32])
{
	struct tm tm;

	if (!break_down(ms, &tm) || strftime(out, 32, "%H:%M:%S", &tm) == 0)
		out[0] = '\0';
}

void report_moment(int64_t ms, char out[32])
{
	struct tm tm;

	if (!break_down(ms, &tm) || strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		out[0] = '\0';
}

const char *report_command(const struct report *r, const char *process)
{
	const char *text = json_string_value(json_object_get(r->argv, process));

	return text ? text : process;
}

/* "sh -c 'make all'": as one would type it, nearly. */
static void keep_argv(struct report *r, const json_t *record)
{
	AUTO(str_done) struct str line = { .max = ARGV_MAX };
	const json_t *word;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(record, "data"), "argv"), i, word)
	{
		const char *text = json_string_value(word);
		bool is_plain = text && *text && !strpbrk(text, " \t\n'\"\\$`&|;<>()*?[]#~!{}");

		str_addf(&line, is_plain ? "%s%s" : "%s'%s'", i ? " " : "", text ? text : "");
	}
	json_object_set_new(r->argv, report_text(record, "process"),
	                    json_string_nocheck(str_text(&line)));
}

/* ---- the head ------------------------------------------------------------------------- */

static void fact(struct page *p, const char *name, const char *value)
{
	if (!value[0])
		return;
	page_row(p, PAGE_PLAIN);
	page_cell(p, name);
	page_cell(p, value);
}

static enum page_tone tone_of(const struct report_proof *x)
{
	if (x->n_broken > 0 || (x->is_read && !x->is_sound))
		return PAGE_BAD;
	return x->is_read ? PAGE_GOOD : PAGE_WARN;
}

static void print_proof(struct report *r)
{
	const struct report_proof *x = &r->in->proof;
	char text[512];

	page_section(&r->page, "Is it what was recorded");
	snprintf(text, sizeof text,
	         "%llu records of this task, numbers %llu to %llu of the ledger. %llu of them do "
	         "not hold: their hash, or the link to the one before in their sandbox.",
	         (unsigned long long)x->n, (unsigned long long)x->first,
	         (unsigned long long)x->last, (unsigned long long)x->n_broken);
	page_say(&r->page, x->n_broken ? PAGE_BAD : PAGE_PLAIN, text);
	if (!x->is_read)
		snprintf(
		    text, sizeof text,
		    "The files of the ledger were not read here, so signatures were not looked "
		    "at: caisson events --verify does it where they are.");
	else if (x->is_sound)
		snprintf(text, sizeof text,
		         "The ledger is sound: every record follows the one before, and %llu "
		         "signatures by key %s hold; %llu records at its end were not signed yet.",
		         (unsigned long long)x->n_signatures, x->key ? x->key : "unknown",
		         (unsigned long long)x->n_unsigned);
	else
		snprintf(text, sizeof text, "THE LEDGER IS NOT SOUND: %llu findings.",
		         (unsigned long long)x->n_findings);
	page_say(&r->page, tone_of(x), text);
}

static void print_facts(struct report *r)
{
	static const char *const heads[] = { "", "What", NULL };
	const json_t *w = r->in->workspace, *records = r->in->records;
	const json_t *first = json_array_get(records, 0),
		     *last = json_array_get(records, json_array_size(records) - 1);
	char begin[32], end[32], span[80];

	report_moment(report_number(first, "ts"), begin);
	report_moment(report_number(last, "ts"), end);
	snprintf(span, sizeof span, "%s to %s UTC", begin, end);
	page_section(&r->page, "The task");
	page_table(&r->page, heads);
	fact(&r->page, "Workspace", report_text(w, "id"));
	fact(&r->page, "State", report_text(w, "state"));
	fact(&r->page, "Repository", r->in->repo ? r->in->repo : report_text(w, "repo"));
	fact(&r->page, "Base", report_text(w, "base"));
	fact(&r->page, "Base commit", report_text(w, "base_commit"));
	fact(&r->page, "Branch", report_text(w, "branch"));
	fact(&r->page, "Forked from", report_text(w, "parent"));
	fact(&r->page, "Time", span);
}

static void print_head(struct report *r)
{
	AUTO(str_done) struct str title = { .max = 512 };
	char below[128], now[32];
	size_t n_files = 0, n_hosts = 0;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)r->in->counts, key, v) n_files +=
	    (size_t)json_integer_value(v);
	json_object_foreach(r->hosts, key, v) n_hosts +=
	    report_number(v, "allowed") + report_number(v, "requests") > 0;
	str_addf(&title, "Task %s", r->in->name);
	report_moment(r->in->now_ms, now);
	snprintf(below, sizeof below, "What happened, by the ledger. Made by caisson %s, %s UTC",
	         CAISSON_VERSION, now);
	page_begin(&r->page, str_text(&title), below);
	page_tile(&r->page, r->n_commands, "commands", PAGE_PLAIN);
	page_tile(&r->page, n_files, "files differ", PAGE_PLAIN);
	page_tile(&r->page, n_hosts, "hosts reached", PAGE_PLAIN);
	page_tile(&r->page, r->n_denied, "refused by the gate", r->n_denied ? PAGE_BAD : PAGE_GOOD);
	page_tile(&r->page, r->n_limits, "limits met", r->n_limits ? PAGE_WARN : PAGE_GOOD);
	page_tile(&r->page, json_object_size(r->secrets), "secrets used", PAGE_PLAIN);
	page_tile(&r->page, r->n_approvals, "approvals", PAGE_PLAIN);
	page_tile(&r->page, r->in->proof.n, "records", tone_of(&r->in->proof));
}

/* ---- what was accepted ---------------------------------------------------------------- */

bool report_is_promotion(const char *kind)
{
	static const char *const kinds[] = { "git.committed",     "git.merged",
		                             "git.pushed",        "git.proposed",
		                             "workspace.applied", "workspace.exported",
		                             "run.collected" };

	for (size_t i = 0; i < COUNT(kinds); i++)
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	return false;
}

static void print_accepted(struct report *r)
{
	static const char *const heads[] = { "Time",   "What", "Commit", "Tree",
		                             "Branch", "To",   "By",     NULL };
	const json_t *record;
	size_t i;

	page_section(&r->page, "What was accepted");
	page_table(&r->page, heads);
	json_array_foreach(r->in->records, i, record)
	{
		const json_t *data = json_object_get(record, "data");
		char time[32];

		if (!report_is_promotion(report_text(record, "kind")))
			continue;
		r->has_promotion = true;
		report_time(report_number(record, "ts"), time);
		page_row(&r->page, PAGE_GOOD);
		page_cellf(&r->page, "%s", time);
		page_cell(&r->page, report_text(record, "kind"));
		page_cell(&r->page, report_text(data, "commit"));
		page_cell(&r->page, report_text(data, "tree"));
		page_cell(&r->page, report_text(data, "branch"));
		page_cell(&r->page, report_text(data, *report_text(data, "host") ? "host" : "to"));
		page_cell(&r->page, report_text(record, "actor"));
	}
	if (!r->has_promotion)
		page_say(&r->page, PAGE_PLAIN,
		         "Nothing yet: no commit, merge, push or apply is on record.");
}

static void print_diff(struct report *r)
{
	static const struct {
		const char *status, *word;
	} words[] = { { "A", "added" },
		      { "M", "changed" },
		      { "D", "deleted" },
		      { "R", "renamed" },
		      { "T", "of another type" },
		      { "mode", "with another mode" },
		      { "xattr", "with other attributes" } };
	AUTO(str_done) struct str text = { .max = 512 };

	page_section(&r->page, r->has_promotion ? "The accepted change" : "The change so far");
	for (size_t i = 0; i < COUNT(words); i++) {
		int64_t n = report_number(r->in->counts, words[i].status);

		if (n > 0)
			str_addf(&text, "%s%lld %s",
			         text.len ? ", " : "Files of the workspace: ", (long long)n,
			         words[i].word);
	}
	page_say(&r->page, PAGE_PLAIN, text.len ? str_text(&text) : "No file differs.");
	if (r->in->is_of_commits)
		page_say(
		    &r->page, PAGE_PLAIN,
		    "Below is what was committed and accepted; the rest stayed in the workspace.");
	if (r->in->patch.len == 0)
		return;
	page_pre(&r->page, r->in->patch.at, r->in->patch.len);
	if (r->in->is_patch_cut)
		page_say(&r->page, PAGE_WARN,
		         "That is not all of it: caisson diff -p has the rest.");
}

/* ---- commands and files --------------------------------------------------------------- */

static void print_command(struct report *r, const json_t *record)
{
	const char *process = report_text(record, "process");
	const json_t *end = json_object_get(r->ends, process),
		     *usage = json_object_get(end, "usage");
	int64_t code = report_number(end, "exit_code");
	char time[32];

	report_time(report_number(record, "ts"), time);
	page_row(&r->page, !end ? PAGE_WARN : PAGE_PLAIN);
	page_cellf(&r->page, "%s", time);
	page_cell(&r->page, report_command(r, process));
	if (!end)
		page_cellf(&r->page, "runs");
	else if (*report_text(end, "reason") && code < 0)
		page_cell(&r->page, report_text(end, "reason"));
	else
		page_cellf(&r->page, "%lld", (long long)code);
	page_cellf(&r->page, "%.3f s", (double)report_number(usage, "ms") / 1000);
	page_cellf(&r->page, "%lld", (long long)report_number(end, "programs"));
	page_cell(&r->page, process);
}

static void print_commands(struct report *r)
{
	static const char *const heads[] = { "Time",     "Command", "Exit", "Took",
		                             "Programs", "Process", NULL };
	const json_t *record;
	size_t i, n = 0;

	page_section(&r->page, "Commands");
	if (r->n_commands == 0) {
		page_say(&r->page, PAGE_PLAIN, "None.");
		return;
	}
	page_table(&r->page, heads);
	json_array_foreach(r->in->records, i, record)
	{
		if (strcmp(report_text(record, "kind"), "exec.started") == 0 &&
		    n++ < REPORT_ROWS_MAX)
			print_command(r, record);
	}
	if (n > REPORT_ROWS_MAX)
		page_say(&r->page, PAGE_WARN, "There are more; caisson events has them.");
}

/* Programs that commands started themselves, each once for a command. */
static void print_programs(struct report *r)
{
	static const char *const heads[] = { "Program", "Times", "By", NULL };
	AUTO(json_decrefp) json_t *seen = json_object();
	const json_t *record;
	const char *key;
	json_t *times;
	size_t i, n = 0;

	json_array_foreach(r->in->records, i, record)
	{
		AUTO(str_done) struct str text = { .max = ARGV_MAX };

		if (strcmp(report_text(record, "kind"), "process.started") != 0)
			continue;
		str_addf(&text, "%s\n%s", report_text(record, "process"),
		         report_text(json_object_get(record, "data"), "program"));
		json_object_set_new_nocheck(seen, str_text(&text),
		                            json_integer(report_number(seen, str_text(&text)) + 1));
	}
	if (json_object_size(seen) == 0)
		return;
	page_section(&r->page, "Programs that they started");
	page_table(&r->page, heads);
	json_object_foreach(seen, key, times)
	{
		AUTO(str_done) struct str process = { .max = 128 };
		size_t at = strcspn(key, "\n");

		if (n++ >= REPORT_ROWS_MAX)
			continue;
		str_addn(&process, key, at);
		page_row(&r->page, PAGE_PLAIN);
		page_cell(&r->page, key + at + (key[at] == '\n'));
		page_cellf(&r->page, "%lld", (long long)json_integer_value(times));
		page_cell(&r->page, report_command(r, str_text(&process)));
	}
	if (n > REPORT_ROWS_MAX)
		page_say(&r->page, PAGE_WARN, "There are more; caisson events has them.");
}

static const char *later_of(const json_t *file)
{
	const char *path = report_text(file, "path");
	struct later_file f = { .path = span_of(path[0] == '/' ? path + 1 : path),
		                .mode = (uint32_t)strtoul(report_text(file, "mode"), NULL, 8),
		                .is_new = strcmp(report_text(file, "status"), "A") == 0 };

	if (strcmp(report_text(file, "status"), "D") == 0)
		return NULL;
	if (strcmp(report_text(file, "type"), "symlink") == 0)
		return "a link: look where it leads";
	if (strcmp(report_text(file, "type"), "file") != 0)
		return NULL;
	return later_why(&f);
}

/* What git writes whenever it is used, and folders, whose files are told of. */
static bool is_noise(const json_t *file)
{
	static const char *const own[] = { ".git/objects/",       ".git/logs/",
		                           ".git/refs/",          ".git/index",
		                           ".git/COMMIT_EDITMSG", ".git/HEAD",
		                           ".git/ORIG_HEAD",      ".git/packed-refs",
		                           ".git/FETCH_HEAD" };
	const char *path = report_text(file, "path");

	path += path[0] == '/';
	for (size_t i = 0; i < COUNT(own); i++)
		if (strncmp(path, own[i], strlen(own[i])) == 0)
			return true;
	return strcmp(report_text(file, "type"), "dir") == 0;
}

static void print_file(struct report *r, const json_t *record, const json_t *file)
{
	const char *why = later_of(file), *process = report_text(record, "process");
	const char *from = report_text(file, "from"), *path = report_text(file, "path");
	AUTO(str_done) struct str name = { .max = ARGV_MAX };

	str_addf(&name, "%s%s%s%s", from, *from ? " to " : "",
	         *path ? path : "base64: ", *path ? "" : report_text(file, "path_base64"));
	page_row(&r->page, why ? PAGE_WARN : PAGE_PLAIN);
	page_cell(&r->page, report_text(file, "status"));
	page_cell(&r->page, str_text(&name));
	page_cell(&r->page, why ? why : "");
	page_cell(&r->page, *process ? report_command(r, process) : report_text(record, "actor"));
}

struct files_told {
	size_t n, more;
};

static void print_point(struct report *r, const json_t *record, struct files_told *told)
{
	const json_t *data = json_object_get(record, "data"), *file;
	size_t i;

	told->more += (size_t)report_number(data, "unnamed");
	json_array_foreach(json_object_get(data, "names"), i, file)
	{
		bool is_shown = !is_noise(file) && told->n < FILES_MAX;

		told->n += is_shown;
		told->more += !is_shown;
		if (is_shown)
			print_file(r, record, file);
	}
}

static void print_files(struct report *r)
{
	static const char *const heads[] = { "How", "File", "Executes later", "By", NULL };
	struct files_told told = { 0 };
	const json_t *record;
	char text[128];
	size_t i;

	page_section(&r->page, "Files, and what changed them");
	page_table(&r->page, heads);
	json_array_foreach(r->in->records, i, record)
	{
		if (strcmp(report_text(record, "kind"), "workspace.files") == 0)
			print_point(r, record, &told);
	}
	if (told.n == 0)
		page_say(&r->page, PAGE_PLAIN, "No file was changed by a command.");
	if (told.more == 0)
		return;
	snprintf(text, sizeof text,
	         "And %zu more: folders, what git writes by itself, or too many.", told.more);
	page_say(&r->page, PAGE_PLAIN, text);
}

/* ---- approvals, limits, policy -------------------------------------------------------- */

static void print_approvals(struct report *r)
{
	static const char *const heads[] = { "Time", "What", "State", "Why", "By", NULL };
	const json_t *record;
	size_t i;

	page_section(&r->page, "Approvals");
	page_table(&r->page, heads);
	json_array_foreach(r->in->records, i, record)
	{
		const json_t *data = json_object_get(record, "data");
		const char *state = report_text(data, "state");
		AUTO(str_done) struct str what = { .max = ARGV_MAX };
		char time[32];

		if (strncmp(report_text(record, "kind"), "approval.", 9) != 0)
			continue;
		report_time(report_number(record, "ts"), time);
		str_addf(&what, "%s: %s", report_text(data, "of"), report_text(data, "what"));
		page_row(&r->page, strcmp(state, "allowed") == 0   ? PAGE_GOOD
		                   : strcmp(state, "pending") == 0 ? PAGE_PLAIN
		                                                   : PAGE_BAD);
		page_cellf(&r->page, "%s", time);
		page_cell(&r->page, str_text(&what));
		page_cell(&r->page, state);
		page_cell(&r->page, report_text(data, *report_text(data, "note") ? "note" : "why"));
		page_cell(&r->page, report_text(record, "actor"));
	}
	if (r->n_approvals == 0)
		page_say(&r->page, PAGE_PLAIN, "Nothing was decided.");
}

static void print_json(struct page *p, const json_t *value)
{
	AUTO(freep) char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);

	page_cell(p, text ? text : "");
}

/* By which rules each sandbox ran, and what they became. */
static void print_policy(struct report *r)
{
	static const char *const heads[] = { "Time",    "What",   "Image", "Policy hash",
		                             "Network", "Limits", NULL };
	const json_t *record;
	size_t i;

	page_section(&r->page, "Walls and limits");
	page_table(&r->page, heads);
	json_array_foreach(r->in->records, i, record)
	{
		const json_t *data = json_object_get(record, "data");
		const char *kind = report_text(record, "kind");
		bool is_created = strcmp(kind, "sandbox.created") == 0;
		char time[32];

		if (!is_created && strcmp(kind, "policy.changed") != 0)
			continue;
		report_time(report_number(record, "ts"), time);
		page_row(&r->page,
		         json_is_true(json_object_get(data, "loosened")) ? PAGE_WARN : PAGE_PLAIN);
		page_cellf(&r->page, "%s", time);
		page_cell(&r->page, kind);
		page_cell(&r->page, report_text(data, "image"));
		page_cell(&r->page, report_text(data, "policy"));
		print_json(&r->page, json_object_get(data, "net"));
		print_json(&r->page, json_object_get(data, "limits"));
	}
}

/* ---- all of it ------------------------------------------------------------------------ */

static void take_record(struct report *r, const json_t *record)
{
	const char *kind = report_text(record, "kind");

	if (strcmp(kind, "exec.started") == 0) {
		keep_argv(r, record);
		r->n_commands++;
	} else if (strcmp(kind, "exec.ended") == 0) {
		json_object_set(r->ends, report_text(record, "process"),
		                json_object_get(record, "data"));
		report_take_limits(r, record);
	} else if (strcmp(kind, "approval.decided") == 0) {
		r->n_approvals++;
	} else {
		report_take_net(r, record);
	}
}

void report_print(const struct report_in *in, enum page_format format, struct str *out)
{
	static void (*const sections[])(struct report * r) = {
		print_facts,    report_stopped, print_accepted, print_commands,
		print_files,    report_hosts,   report_secrets, print_approvals,
		print_programs, print_policy,   print_diff,     print_proof,
	};
	struct report r = { .in = in,
		            .page = { .format = format, .out = out },
		            .argv = json_object(),
		            .ends = json_object(),
		            .hosts = json_object(),
		            .stopped = json_object(),
		            .told = json_object(),
		            .secrets = json_object() };
	const json_t *record;
	size_t i;

	json_array_foreach(in->records, i, record) take_record(&r, record);
	print_head(&r);
	for (i = 0; i < COUNT(sections); i++)
		sections[i](&r);
	page_end(&r.page);
	json_decref(r.argv);
	json_decref(r.ends);
	json_decref(r.hosts);
	json_decref(r.stopped);
	json_decref(r.told);
	json_decref(r.secrets);
}
