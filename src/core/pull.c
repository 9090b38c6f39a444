#include "core/pull.h"

#include <jansson.h>

#include "core/git.h"
#include "core/ledger.h"
#include "core/repo.h"
#include "core/service.h"
#include "wire/url.h"
#include "wire/weburl.h"

#define PULL_MS 120000
#define ANSWER_MAX (1u << 20)
#define TARGET_MAX (16u << 10)

enum { EXIT_NO_CURL = 21, EXIT_NO_ANSWER = 22 };

/* ACCEPT WHERE WHICH, the request on standard input: prints two lines, what the forge said to the
 * request and, where it said that there is one, to the question which; then the last answer. */
static const char script[] =
    "command -v curl >/dev/null || exit 21\n"
    "ask() {\n"
    "	curl -q -sS --max-time 60 --proto =https --max-redirs 0 -o /tmp/answer -w "
    "'%{http_code}\\n' -H \"Accept: $accept\" -H 'Content-Type: application/json' \"$@\" || exit "
    "22\n"
    "}\n"
    "accept=$1\n"
    "code=$(ask --data-binary @- \"$2\")\n"
    "which=-\n"
    "case $code in 409|422) which=$(ask \"$3\") ;; esac\n"
    "printf '%s\\n%s\\n' \"$code\" \"$which\"\n"
    "head -c 1000000 /tmp/answer\n";

struct pull {
	struct core *core;
	struct wsx *w; /* a reference */
	struct arena arena;
	struct repo_row repo;
	struct git_url git;
	struct weburl api;
	const struct forge *forge;
	const char *branch, *base, *cred;
	const char *where, *which;
	char *request;
	char actor[ACTOR_SIZE];
	char url[PULL_URL_MAX + 1];
	int64_t number;
	bool is_new;
	struct fail fail;
	pull_done_fn *done;
	void *arg;
};

/* ---- forges -------------------------------------------------------------------------- */

struct forge {
	const char *name, *accept, *api; /* %s: the host, with its port */
	void (*place)(struct pull *p, const char *path);
	json_t *(*request)(const struct pull *p, const struct pull_ask *ask);
	const char *url, *number; /* members of its answer */
};

static void add_escaped(struct str *out, const char *text)
{
	url_encode(text, strlen(text), out);
}

/* Where its API is, and the path behind that. */
static void add_base(const struct pull *p, struct str *out)
{
	size_t n;

	weburl_print(&p->api, out);
	for (n = out->len; n > 0 && out->data[n - 1] == '/'; n--)
		;
	out->len = n;
}

static void place_github(struct pull *p, const char *path)
{
	AUTO(str_done) struct str where = { .max = TARGET_MAX };

	add_base(p, &where);
	str_addf(&where, "/repos/%s/pulls", path);
	p->where = arena_strdup(&p->arena, str_text(&where));
	str_addf(&where, "?state=open&head=%.*s%%3A", (int)strcspn(path, "/"), path);
	add_escaped(&where, p->branch);
	p->which = arena_strdup(&p->arena, str_text(&where));
}

static json_t *ask_github(const struct pull *p, const struct pull_ask *ask)
{
	return json_pack("{ss,ss,ss,ss*,sb}", "title", ask->title, "head", p->branch, "base",
	                 p->base, "body", ask->text, "draft", ask->is_draft);
}

static void place_gitlab(struct pull *p, const char *path)
{
	AUTO(str_done) struct str where = { .max = TARGET_MAX };

	add_base(p, &where);
	str_add(&where, "/projects/");
	add_escaped(&where, path);
	str_add(&where, "/merge_requests");
	p->where = arena_strdup(&p->arena, str_text(&where));
	str_add(&where, "?state=opened&source_branch=");
	add_escaped(&where, p->branch);
	p->which = arena_strdup(&p->arena, str_text(&where));
}

static json_t *ask_gitlab(const struct pull *p, const struct pull_ask *ask)
{
	AUTO(str_done) struct str title = { .max = PULL_TITLE_MAX + 16 };

	str_addf(&title, "%s%s", ask->is_draft ? "Draft: " : "", ask->title);
	return json_pack("{ss,ss,ss,ss*}", "title", str_text(&title), "source_branch", p->branch,
	                 "target_branch", p->base, "description", ask->text);
}

/* clang-format off */
static const struct forge forges[] = {
	{ "github", "application/vnd.github+json", "https://api.%s",    place_github, ask_github, "html_url", "number" },
	{ "gitlab", "application/json",            "https://%s/api/v4", place_gitlab, ask_gitlab, "web_url",  "iid" },
};
/* clang-format on */

/* ---- the end ------------------------------------------------------------------------- */

static void pull_free(struct pull *p)
{
	wsx_unref(p->w);
	free(p->request);
	arena_done(&p->arena);
	free(p);
}

static void finish(struct pull *p)
{
	const struct pull_end end = { .url = p->url,
		                      .forge = p->forge->name,
		                      .branch = p->branch,
		                      .base = p->base,
		                      .number = p->number,
		                      .is_new = p->is_new,
		                      .fail = p->fail.code == FAIL_NONE ? NULL : &p->fail };

	p->done(p->arg, &end);
	pull_free(p);
}

static void on_disk(void *arg, bool is_on_disk)
{
	struct pull *p = arg;

	if (!is_on_disk)
		fail_set(&p->fail, FAIL_BACKEND_ERROR,
		         "pulls: it is done, and the ledger could not record it");
	finish(p);
}

static void put_on_record(struct pull *p)
{
	const struct ledger_who who = { .tenant = p->w->row.tenant,
		                        .workspace = p->w->row.id,
		                        .actor = p->actor };

	ledger_commit(p->core, LEDGER_GIT_PROPOSED, &who,
	              json_pack("{ss,ss,ss,ss,ss,sI}", "forge", p->forge->name, "host", p->api.host,
	                        "branch", p->branch, "base", p->base, "url", p->url, "number",
	                        (json_int_t)p->number),
	              on_disk, p);
}

/* ---- the answer ---------------------------------------------------------------------- */

/* What it is called is shown to people. */
static bool is_link(const char *url)
{
	if (!url || strncmp(url, "https://", 8) != 0 || strlen(url) > PULL_URL_MAX)
		return false;
	for (const char *c = url; *c; c++)
		if (*c <= ' ' || *c >= 0x7f || strchr("\"'<>\\`", *c))
			return false;
	return true;
}

static bool take_one(struct pull *p, const json_t *o)
{
	const char *url = json_string_value(json_object_get(o, p->forge->url));

	if (!is_link(url))
		return false;
	snprintf(p->url, sizeof p->url, "%s", url);
	p->number = json_integer_value(json_object_get(o, p->forge->number));
	return true;
}

/* What a forge says of an error: a text, or texts in a list, or in objects there. */
static const char *complaint(const json_t *o)
{
	const json_t *said = json_object_get(o, "message");
	const json_t *first = json_array_get(json_object_get(o, "errors"), 0);
	const char *text = json_string_value(json_object_get(first, "message"));

	if (!text)
		text = json_string_value(json_is_array(said) ? json_array_get(said, 0) : said);
	return text ? text : "it does not say why";
}

static const struct {
	int status;
	enum fail_code code;
	const char *text;
} refusals[] = {
	{ 401, FAIL_REPO_AUTH, "the forge wants another credential" },
	{ 403, FAIL_REPO_AUTH, "the credential is not for that" },
	{ 404, FAIL_NOT_FOUND, "the forge knows no such repository, or not with that credential" },
	{ 502, FAIL_REPO_UNREACHABLE, "the forge cannot be reached, or gives no token" },
};

static void refuse(struct pull *p, int status, const json_t *o)
{
	char said[SERVICE_LINE_MAX];

	snprintf(said, sizeof said, "%s", complaint(o));
	for (char *c = said; *c; c++)
		*c = (char)((unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c);
	fail_set(&p->fail, FAIL_CONFLICT, "pulls: the forge says %d: %s", status, said);
	for (size_t i = 0; i < COUNT(refusals); i++)
		if (refusals[i].status == status)
			fail_set(&p->fail, refusals[i].code, "pulls: %s", refusals[i].text);
}

static void read_answer(struct pull *p, const char *text, size_t n)
{
	int status = 0, which = 0;
	const char *end = memchr(text, '\n', n);
	const char *second = end ? end + 1 : NULL;

	end = second ? memchr(second, '\n', n - (size_t)(second - text)) : NULL;
	if (!end) {
		fail_set(&p->fail, FAIL_BACKEND_ERROR, "pulls: the script said nothing");
		return;
	}
	status = (int)strtol(text, NULL, 10);
	which = (int)strtol(second, NULL, 10);
	json_t *o = json_loadb(end + 1, n - (size_t)(end + 1 - text), 0, NULL);

	p->is_new = status == 201;
	if (!(p->is_new && take_one(p, o)) && !(which == 200 && take_one(p, json_array_get(o, 0))))
		refuse(p, status, o);
	json_decref(o);
}

static void ran(void *arg, const struct service_end *end)
{
	struct pull *p = arg;

	p->fail = end->fail;
	if (p->fail.code != FAIL_NONE)
		fail_set(&p->fail, p->fail.code, "pulls: %s", end->fail.detail);
	else if (end->exit_code == 0)
		read_answer(p, end->out, end->out_len);
	else
		fail_set(&p->fail,
		         end->exit_code == EXIT_NO_CURL ? FAIL_UNENFORCEABLE
		                                        : FAIL_REPO_UNREACHABLE,
		         "pulls: %s",
		         end->exit_code == EXIT_NO_CURL     ? "this host has no curl"
		         : end->exit_code == EXIT_NO_ANSWER ? end->complaint
		                                            : "it was ended");
	if (p->fail.code == FAIL_NONE && p->is_new)
		put_on_record(p);
	else
		finish(p);
}

/* ---- the question -------------------------------------------------------------------- */

static int choose_forge(struct pull *p, const struct pull_ask *ask, struct fail *f)
{
	const char *name = ask->forge;

	if (!name)
		name = strncmp(p->git.host, "gitlab.", 7) == 0 || strstr(p->git.host, ".gitlab.")
		           ? "gitlab"
		           : "github";
	for (size_t i = 0; i < COUNT(forges); i++)
		if (strcmp(forges[i].name, name) == 0) {
			p->forge = &forges[i];
			return 0;
		}
	return fail_set(f, FAIL_INVALID, "forge: \"github\" or \"gitlab\"");
}

static int choose_api(struct pull *p, const struct pull_ask *ask, struct fail *f)
{
	AUTO(str_done) struct str host = { .max = GATE_NAME_SIZE + 8 };
	AUTO(str_done) struct str text = { .max = TARGET_MAX };
	const char *mark = strstr(p->forge->api, "%s");

	str_add(&host, p->git.host);
	if (p->git.port != 443)
		str_addf(&host, ":%u", p->git.port);
	str_addf(&text, "%.*s%s%s", (int)(mark - p->forge->api), p->forge->api, str_text(&host),
	         mark + 2);
	const char *api = ask->api ? ask->api : str_text(&text);

	if (weburl_read(span_of(api), &p->api) < 0 || !p->api.is_tls)
		return fail_set(f, FAIL_INVALID, "api: an address such as https://api.example.org");
	return 0;
}

/* "acme/app" of https://HOST/acme/app.git */
static int choose_place(struct pull *p, struct fail *f)
{
	struct weburl u;
	AUTO(str_done) struct str path = { .max = GIT_URL_SIZE };

	if (weburl_read(span_of(p->git.text), &u) < 0)
		return fail_set(f, FAIL_INVALID, "pulls: that repository has no name at a forge");
	size_t n = strlen(u.path);

	while (n > 0 && u.path[n - 1] == '/')
		n--;
	if (n > 4 && strncmp(u.path + n - 4, ".git", 4) == 0)
		n -= 4;
	str_addn(&path, u.path + 1, n > 0 ? n - 1 : 0);
	if (!strchr(str_text(&path), '/'))
		return fail_set(f, FAIL_INVALID, "pulls: that repository has no owner at a forge");
	p->forge->place(p, str_text(&path));
	return 0;
}

static int choose_branches(struct pull *p, const struct pull_ask *ask, struct fail *f)
{
	AUTO(str_done) struct str made = { .max = GIT_REF_MAX + 16 };
	const struct workspace_row *row = &p->w->row;
	const char *branch = ask->branch ? ask->branch : row->branch;
	const char *base = ask->base ? ask->base : p->repo.head;

	if (!branch) {
		str_addf(&made, "caisson/%s", row->key ? row->key : row->id);
		branch = str_text(&made);
	}
	if (!git_ref_is(branch) || !base || !git_ref_is(base))
		return fail_set(f, FAIL_INVALID, "%s: not a name of a branch",
		                git_ref_is(branch) ? "base" : "branch");
	p->branch = arena_strdup(&p->arena, branch);
	p->base = arena_strdup(&p->arena, base);
	return 0;
}

static int check_texts(const struct pull_ask *ask, struct fail *f)
{
	if (!ask->title || !ask->title[0] || strlen(ask->title) > PULL_TITLE_MAX ||
	    strpbrk(ask->title, "\r\n"))
		return fail_set(f, FAIL_INVALID, "title: a line of at most %d bytes is needed",
		                PULL_TITLE_MAX);
	if (ask->text && strlen(ask->text) > PULL_TEXT_MAX)
		return fail_set(f, FAIL_INVALID, "body: at most %u bytes", PULL_TEXT_MAX);
	return 0;
}

static int take(struct pull *p, const struct pull_ask *ask, struct fail *f)
{
	struct err e = { 0 };

	if (check_texts(ask, f) < 0)
		return -1;
	if (!p->w->row.repo || store_repo_get(p->core->store, p->w->row.tenant, p->w->row.repo,
	                                      &p->arena, &p->repo, &e) < 0)
		return fail_set(f, FAIL_CONFLICT, "pulls: the workspace is of no repository");
	if (git_url_read(p->repo.url, &p->git, &e) < 0)
		return fail_err(f, &e);
	if (p->git.is_folder)
		return fail_set(f, FAIL_UNENFORCEABLE, "pulls: %s is a folder of the host",
		                p->repo.url);
	if (choose_forge(p, ask, f) < 0 || choose_api(p, ask, f) < 0 ||
	    choose_branches(p, ask, f) < 0 || choose_place(p, f) < 0)
		return -1;
	p->cred = ask->cred ? arena_strdup(&p->arena, ask->cred) : p->repo.cred;
	json_t *o = p->forge->request(p, ask);

	p->request = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return p->request ? 0 : fail_set(f, FAIL_INVALID, "title, body: UTF-8 is expected");
}

static void run(struct pull *p)
{
	const char *args[] = { p->forge->accept, p->where, p->which, NULL };
	char net[GATE_NAME_SIZE + 8];

	snprintf(net, sizeof net, "%s:%u", p->api.host, p->api.port);
	const struct service_ask ask = { .tenant = p->w->row.tenant,
		                         .script = script,
		                         .args = args,
		                         .net = net,
		                         .cred = p->cred,
		                         .client_fd = -1,
		                         .input = p->request,
		                         .input_len = strlen(p->request),
		                         .timeout_ms = PULL_MS,
		                         .out_max = ANSWER_MAX,
		                         .done = ran,
		                         .arg = p };

	if (!service_start(p->core, &ask, &p->fail))
		finish(p);
}

int pull_start(struct wsx *w, const struct pull_ask *ask, pull_done_fn *done, void *arg,
               struct fail *f)
{
	struct pull *p = mem_alloc(sizeof *p);

	*p =
	    (struct pull){ .core = w->core, .w = w, .forge = &forges[0], .done = done, .arg = arg };
	snprintf(p->actor, sizeof p->actor, "%s", w->core->actor ? w->core->actor : "");
	wsx_ref(w);
	if (take(p, ask, f) < 0) {
		pull_free(p);
		return -1;
	}
	run(p);
	return 0;
}
