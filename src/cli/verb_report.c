/*
 * verb_report.c - one page about a task: report. What the API says goes to report.h.
 */
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/helper.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "wire/ledger.h"

#define PATH_BYTES_MAX 8192
#define RECORDS_MAX 200000
#define PAGE_BYTES_MAX (64u << 20)
#define VERIFIED_MAX (1u << 20)
#define VERIFY_TRIES 5

struct report_opts {
	struct verb_opts common;
	bool is_html, is_markdown;
	const char *out, *ledger, *key;
};

struct gathered {
	struct client *client;
	json_t *workspace, *repo, *records, *sandboxes, *links, *counts;
	json_t *verified;
	struct str patch;
	bool is_patch_cut, is_of_commits;
	struct report_proof proof;
};

static void gathered_done(struct gathered *g)
{
	json_t *all[] = { g->workspace, g->repo,   g->records, g->sandboxes,
		          g->links,     g->counts, g->verified };

	for (size_t i = 0; i < COUNT(all); i++)
		json_decref(all[i]);
	str_done(&g->patch);
}

/* What is not there any more is no error: the page says what is. */
static json_t *look(struct gathered *g, const char *pattern, const char *const *texts)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	json_t *out = NULL;
	struct err e = { 0 };

	client_path(&path, pattern, texts);
	return client_call(g->client, "GET", str_text(&path), NULL, &out, &e) < 0 ? NULL : out;
}

/* ---- records -------------------------------------------------------------------------- */

struct taking {
	struct gathered *of;
	bool is_chain; /* all records of one sandbox: each links to the one before */
	json_t *prev;  /* hash of that; NULL: none yet */
	json_int_t link;
};

/* A record is taken once: `links` knows which. */
static void take_once(struct gathered *g, const struct ledger_line *l, json_t *record)
{
	char seq[32];

	snprintf(seq, sizeof seq, "%llu", (unsigned long long)l->seq);
	if (json_object_get(g->links, seq))
		return;
	json_object_set_new(g->links, seq, json_true());
	json_array_append(g->records, record);
}

static bool is_linked(struct taking *t, const json_t *record)
{
	const json_t *link = json_object_get(record, "link"), *prev = json_object_get(link, "prev");
	json_int_t n = json_integer_value(json_object_get(link, "seq"));
	bool holds = !t->prev ? n >= 1 : n == t->link + 1 && json_equal(prev, t->prev);

	t->link = n;
	json_decref(t->prev);
	t->prev = json_incref(json_object_get(record, "hash"));
	return holds;
}

static int take_record(void *arg, struct span line, struct err *e)
{
	struct taking *t = arg;
	struct gathered *g = t->of;
	AUTO(json_decrefp) json_t *record = NULL;
	struct ledger_line l;

	if (ledger_parse(line, &l) == 0)
		record = json_loadb(line.at, line.len, JSON_REJECT_DUPLICATES, NULL);
	if (!record)
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: a record");
	if (json_array_size(g->records) >= RECORDS_MAX)
		return err_new(e, ERR_LIMIT, "there are too many records for a page");
	if (!t->is_chain) {
		const char *sandbox = text_of(record, "sandbox");

		if (*sandbox && !json_object_get(g->sandboxes, sandbox))
			json_object_set_new(g->sandboxes, sandbox, json_null());
		g->proof.n_broken += !ledger_hash_holds(line, &l);
	} else {
		g->proof.n_broken += !ledger_hash_holds(line, &l) || !is_linked(t, record);
	}
	take_once(g, &l, record);
	return 0;
}

struct seq_record {
	json_t *record;
};

static int by_seq(const void *a, const void *b)
{
	int64_t x = number_of(((const struct seq_record *)a)->record, "seq"),
		y = number_of(((const struct seq_record *)b)->record, "seq");

	return x < y ? -1 : x > y;
}

static void sort_records(struct gathered *g)
{
	size_t n = json_array_size(g->records);
	AUTO(freep) struct seq_record *all = mem_alloc((n + 1) * sizeof *all);

	for (size_t i = 0; i < n; i++)
		all[i].record = json_incref(json_array_get(g->records, i));
	qsort(all, n, sizeof *all, by_seq);
	json_array_clear(g->records);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(g->records, all[i].record);
	g->proof.n = n;
	g->proof.first = n ? (uint64_t)number_of(json_array_get(g->records, 0), "seq") : 0;
	g->proof.last = n ? (uint64_t)number_of(json_array_get(g->records, n - 1), "seq") : 0;
}

/* Those of the workspace, and all of its sandboxes: only the latter are a chain. */
static int get_records(struct gathered *g, const char *id, struct err *e)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	struct taking t = { .of = g };
	const char *sandbox;
	json_t *v;

	client_path(&path, "/v1/events?workspace={}", &id);
	if (fetch_raw_lines(g->client, str_text(&path), take_record, &t, e) < 0)
		return -1;
	json_object_foreach(g->sandboxes, sandbox, v)
	{
		struct taking chain = { .of = g, .is_chain = true };

		str_clear(&path);
		client_path(&path, "/v1/events?sandbox={}", &sandbox);
		int r = fetch_raw_lines(g->client, str_text(&path), take_record, &chain, e);

		json_decref(chain.prev);
		if (r < 0)
			return -1;
	}
	sort_records(g);
	return 0;
}

/* ---- what the store knows ------------------------------------------------------------- */

/* What was accepted last: two commits, or a point; else it is what is there. */
struct accepted {
	const char *base, *commit, *point;
};

static struct accepted accepted_of(const struct gathered *g)
{
	struct accepted found = { "", "", "" };
	const json_t *record;
	const char *point = "";
	size_t i;

	json_array_foreach(g->records, i, record)
	{
		const json_t *data = json_object_get(record, "data");
		const char *kind = text_of(record, "kind"), *own = text_of(data, "point");

		if (strcmp(kind, "workspace.changed") == 0)
			point = own;
		else if (report_is_promotion(kind) &&
		         (*text_of(data, "commit") || *text_of(data, "tree")))
			found = (struct accepted){ text_of(data, "base"), text_of(data, "commit"),
				                   *own ? own : point };
	}
	return found;
}

/* False: it cannot be had. */
static bool get_patch(struct gathered *g, const char *pattern, const char *const *texts)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	struct client_answer a;
	struct span piece;
	struct err e = { 0 };
	int r;

	client_path(&path, pattern, texts);
	const struct client_ask ask = { .method = "GET", .path = str_text(&path) };

	if (client_begin(g->client, &ask, &a, &e) < 0 || client_check(g->client, &a, &e) < 0)
		return false;
	while ((r = client_read(g->client, &a, &piece, &e)) > 0) {
		size_t room = REPORT_DIFF_MAX - g->patch.len;

		g->is_patch_cut |= piece.len > room;
		str_addn(&g->patch, piece.at, piece.len < room ? piece.len : room);
	}
	return r == 0;
}

static void get_change(struct gathered *g, const char *id)
{
	const struct accepted now = accepted_of(g);
	const char *points[] = { id, now.point }, *commits[] = { id, now.base, now.commit };
	AUTO(json_decrefp)
	json_t *stat = look(g,
	                    *now.point ? "/v1/workspaces/{}/changes?base=base&to={}"
	                               : "/v1/workspaces/{}/changes?base=base",
	                    points);

	g->counts = json_incref(json_object_get(stat, "counts"));
	g->is_of_commits =
	    strlen(now.commit) >= 40 && strlen(now.base) >= 40 &&
	    get_patch(g, "/v1/workspaces/{}/changes?format=patch&base={}&to={}", commits);
	if (g->is_of_commits)
		return;
	str_clear(&g->patch);
	g->is_patch_cut =
	    !get_patch(g,
	               *now.point ? "/v1/workspaces/{}/changes?format=patch&base=base&to={}"
	                          : "/v1/workspaces/{}/changes?format=patch&base=base",
	               points) ||
	    g->is_patch_cut;
}

/* ---- the ledger's files --------------------------------------------------------------- */

/* A line that has no end yet may be one that is being written. */
static bool is_torn_only(const json_t *findings)
{
	const json_t *f;
	size_t i;

	json_array_foreach(findings, i, f)
	{
		if (strcmp(text_of(f, "fault"), "torn") != 0)
			return false;
	}
	return json_array_size(findings) > 0;
}

static json_t *verify(const char *const *argv)
{
	json_t *found = NULL;

	for (int i = 0; i < VERIFY_TRIES && !found; i++) {
		AUTO(str_done) struct str out = { .max = VERIFIED_MAX };
		const struct timespec moment = { .tv_nsec = 20000000 };
		struct err e = { 0 };

		if (helper_ask(argv, &out, &e) < 0)
			return NULL;
		found = json_loadb(str_text(&out), out.len, 0, NULL);
		if (i + 1 < VERIFY_TRIES && is_torn_only(json_object_get(found, "findings"))) {
			json_decref(found);
			found = NULL;
			nanosleep(&moment, NULL);
		}
	}
	return found;
}

/* By the program that knows signatures, where the files can be read at all. */
static void get_verified(struct gathered *g, const struct report_opts *x)
{
	AUTO(str_done) struct str dir = { .max = PATH_TEXT_MAX };
	const char *argv[] = {
		"caisson-ledger", "verify", "--json", "--ledger", NULL, NULL, NULL, NULL
	};
	struct report_proof *p = &g->proof;

	if (x->ledger)
		str_add(&dir, x->ledger);
	else if (g->client->address.is_named)
		return; /* whose state folder is where is not known */
	else
		str_addf(&dir, "%s/ledger", g->client->address.state_dir);
	argv[4] = str_text(&dir);
	if (x->key) {
		argv[5] = "--key";
		argv[6] = x->key;
	}
	if (access(argv[4], R_OK | X_OK) < 0)
		return;
	g->verified = verify(argv);
	p->is_read = g->verified != NULL;
	p->is_sound = json_is_true(json_object_get(g->verified, "sound"));
	p->n_findings = json_array_size(json_object_get(g->verified, "findings"));
	p->n_signatures = (uint64_t)number_of(g->verified, "signatures");
	p->n_unsigned = (uint64_t)number_of(g->verified, "unsigned");
	p->key = text_of(g->verified, "key");
}

/* ---- the verb ------------------------------------------------------------------------- */

static int gather(struct verb_call *c, struct gathered *g, struct err *e)
{
	const char *name = c->words.at[0];

	g->workspace = look(g, "/v1/workspaces/{}", &name);
	const char *id = g->workspace ? text_of(g->workspace, "id") : name;

	if (get_records(g, id, e) < 0) /* it says so when there is no such workspace */
		return -1;
	if (json_array_size(g->records) == 0)
		return err_new(e, ERR_INVALID, "the ledger knows nothing of a workspace %s", name);
	get_verified(g, c->opts);
	if (!g->workspace)
		return 0;
	const char *repo = text_of(g->workspace, "repo");

	g->repo = *repo ? look(g, "/v1/repos/{}", &repo) : NULL;
	get_change(g, id);
	return 0;
}

static bool is_html(const struct report_opts *x)
{
	const char *dot = x->out ? strrchr(x->out, '.') : NULL;

	return x->is_html ||
	       (!x->is_markdown && dot && (strcmp(dot, ".html") == 0 || strcmp(dot, ".htm") == 0));
}

static int put_out(const struct report_opts *x, const struct str *page, struct err *e)
{
	AUTO(fd_close)
	int fd = x->out ? open(x->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;

	if (page->overflow)
		return err_new(e, ERR_LIMIT, "the page is too long");
	if (x->out && fd < 0)
		return err_sys(e, errno, "write %s", x->out);
	return write_all(x->out ? fd : STDOUT_FILENO, str_text(page), page->len, e);
}

static int report_run(struct verb_call *c, struct err *e)
{
	const struct report_opts *x = c->opts;
	AUTO(gathered_done)
	struct gathered g = { .client = &c->client,
		              .records = json_array(),
		              .sandboxes = json_object(),
		              .links = json_object(),
		              .patch = { .max = REPORT_DIFF_MAX } };
	AUTO(str_done) struct str page = { .max = PAGE_BYTES_MAX };

	if (x->is_html && x->is_markdown)
		return err_new(e, ERR_INVALID, "--html, --markdown: one of them");
	if (gather(c, &g, e) < 0)
		return -1;
	const struct report_in in = { .name = c->words.at[0],
		                      .workspace = g.workspace,
		                      .repo = g.repo ? text_of(g.repo, "url") : NULL,
		                      .records = g.records,
		                      .counts = g.counts,
		                      .patch = { str_text(&g.patch), g.patch.len },
		                      .is_patch_cut = g.is_patch_cut,
		                      .is_of_commits = g.is_of_commits,
		                      .proof = g.proof,
		                      .now_ms = (int64_t)time(NULL) * 1000 };

	report_print(&in, is_html(x) ? PAGE_HTML : PAGE_MARKDOWN, &page);
	return put_out(x, &page, e);
}

/* clang-format off */
#define AT(member) offsetof(struct report_opts, member)
static const struct flag report_flags[] = {
	{ '\0', FLAG_SWITCH, "html",     AT(is_html),     NULL, "as a page for a browser; so it is when FILE ends in .html", NULL },
	{ '\0', FLAG_SWITCH, "markdown", AT(is_markdown), NULL, "as Markdown; so it is otherwise", NULL },
	{ 'o',  FLAG_TEXT,   "output",   AT(out),         "FILE", "instead of standard output", NULL },
	{ '\0', FLAG_TEXT,   "ledger",   AT(ledger),      "DIR", "the ledger's folder, to verify it; the caller's own daemon's unless given", NULL },
	{ '\0', FLAG_TEXT,   "key",      AT(key),         "FILE", "the public key that is trusted, in PEM", NULL },
};
/* clang-format on */

const struct verb cmd_report = {
	.name = "report",
	.usage = "WORKSPACE [--html|--markdown] [-o FILE]",
	.does = "one page about a task: what it did, reached, changed, and what was stopped",
	.more = "By the ledger: commands, the files that each changed, hosts, secrets, approvals, "
		"what was refused, limits, what was accepted, and whether the ledger is sound. The "
		"page needs nothing else and executes nothing.",
	.flags = report_flags,
	.n_flags = COUNT(report_flags),
	.words = "workspace",
	.opts_size = sizeof(struct report_opts),
	.words_min = 1,
	.words_max = 1,
	.run = report_run
};
