#include "spec/bind.h"

#include "spec/opts.h"
#include "wire/canary.h"
#include "wire/http.h"
#include "wire/target.h"
#include "wire/weburl.h"

#define LIST_MAX 64
#define APP_MAX 128
#define AWS_PLACE_MAX 81 /* both parts: 40 */
#define TTL_MS_MAX (366ull * 24 * 3600 * 1000)

/* ---- values -------------------------------------------------------------------------- */

/* One host, exactly: a secret for whatever there may be below a domain is a secret for a guest. */
static int check_bound(const struct opt *o, struct arena *a, const char *text, const char **out,
                       struct err *e)
{
	static const char https[] = "https://";

	if (strncmp(text, "http://", 7) == 0)
		return err_new(e, ERR_INVALID,
		               "\"%s\": a secret is sent by https and by nothing else",
		               quote(text).text);
	if (strncmp(text, https, sizeof https - 1) == 0)
		text += sizeof https - 1;
	if (check_host(o, a, text, out, e) < 0)
		return -1;
	if (strchr(*out, '*'))
		return err_new(e, ERR_INVALID,
		               "\"%s\": a secret is bound to hosts by their whole name",
		               quote(text).text);
	return 0;
}

static int check_field_name(const char *name, struct err *e)
{
	static const struct http_head none;
	AUTO(str_done) struct str probe = { .max = HTTP_HEAD_MAX };
	struct http_print p = http_print_response(&probe, 200);

	http_print_text(&p, name, "");
	if (p.wrong || !http_goes_on(&none, span_of(name)) || strcasecmp(name, "Host") == 0)
		return err_new(e, ERR_INVALID, "\"%s\" is no field that a request can have",
		               quote(name).text);
	return 0;
}

/* What needs no escape, so that there is one way to write it. */
static int check_query_key(const char *key, struct err *e)
{
	for (const char *p = key; *p; p++)
		if (!(span_lower(*p) >= 'a' && span_lower(*p) <= 'z') &&
		    !(*p >= '0' && *p <= '9') && !strchr("-_.~", *p))
			return err_new(e, ERR_INVALID,
			               "\"%s\" is not a key of letters, digits and -_.~",
			               quote(key).text);
	return 0;
}

static int check_user_part(const char *user, struct err *e)
{
	return strchr(user, ':')
	           ? err_new(e, ERR_INVALID, "a user of basic authentication has no colon")
	           : 0;
}

/* "eu-west-3" or "eu-west-3/s3" */
static int check_aws(const char *place, struct err *e)
{
	size_t n = strcspn(place, "/");

	if (place[n] && (n == 0 || !place[n + 1] || strchr(place + n + 1, '/')))
		n = 0;
	for (const char *p = place; *p && n > 0; p++)
		if (!(*p >= 'a' && *p <= 'z') && !(*p >= '0' && *p <= '9') && *p != '-' &&
		    *p != '/')
			n = 0;
	if (place[0] && (n == 0 || strlen(place) > AWS_PLACE_MAX))
		return err_new(e, ERR_INVALID, "\"%s\" is not REGION or REGION/SERVICE",
		               quote(place).text);
	return 0;
}

/* "12345/678" or "Iv1.abc/678": what it is called, and where it is installed. */
static int check_app(const char *app, struct err *e)
{
	size_t n = strcspn(app, "/"), digits = app[n] ? strspn(app + n + 1, "0123456789") : 0;
	bool is_app = n > 0 && digits > 0 && !app[n + 1 + digits] && strlen(app) <= APP_MAX;

	for (size_t i = 0; is_app && i < n; i++)
		is_app = (span_lower(app[i]) >= 'a' && span_lower(app[i]) <= 'z') ||
		         (app[i] >= '0' && app[i] <= '9') || strchr(".-_", app[i]);
	return is_app ? 0
	              : err_new(e, ERR_INVALID, "\"%s\" is not APP/INSTALLATION, as 12345/678",
	                        quote(app).text);
}

/* clang-format off */
enum arg { ARG_NONE, ARG_SOME, ARG_ANY };
static const struct {
	const char *word;
	enum arg arg;
	int (*check)(const char *arg, struct err *e);
} hows[] = {
	[BIND_BEARER] = { "bearer", ARG_NONE, NULL },
	[BIND_BASIC]  = { "basic",  ARG_SOME, check_user_part },
	[BIND_HEADER] = { "header", ARG_SOME, check_field_name },
	[BIND_QUERY]  = { "query",  ARG_SOME, check_query_key },
	[BIND_AWS]    = { "aws",    ARG_ANY,  check_aws },
	[BIND_APP]    = { "github-app", ARG_SOME, check_app },
};
/* clang-format on */
_Static_assert(COUNT(hows) == BIND_HOWS, "a way has no word");

static const char *const how_words[] = { "bearer", "basic:",      "header:", "query:",
	                                 "aws",    "github-app:", NULL };

static int inject_read(const char *text, enum bind_how *how, const char **arg, struct err *e)
{
	size_t n = strcspn(text, ":");

	for (size_t i = 0; i < COUNT(hows); i++) {
		if (strlen(hows[i].word) != n || strncmp(hows[i].word, text, n) != 0)
			continue;
		*how = (enum bind_how)i;
		*arg = text[n] ? text + n + 1 : "";
		if ((hows[i].arg == ARG_SOME && !**arg) || (text[n] && !**arg) ||
		    (text[n] && hows[i].arg == ARG_NONE))
			break;
		return hows[i].check ? hows[i].check(*arg, e) : 0;
	}
	return err_new(e, ERR_INVALID,
	               "\"%s\": wants bearer, basic:USER, header:NAME, query:KEY, aws or "
	               "github-app:APP/INSTALLATION%s",
	               quote(text).text, hint(text, how_words).text);
}

static int check_inject(const struct opt *o, struct arena *a, const char *text, const char **out,
                        struct err *e)
{
	enum bind_how how;
	const char *arg;

	(void)o;
	if (text_plain(text, NAME_TEXT_MAX, e) < 0 || inject_read(text, &how, &arg, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

static int check_format(const struct opt *o, struct arena *a, const char *text, const char **out,
                        struct err *e)
{
	const char *place = strstr(text, "{}");

	(void)o;
	if (text_plain(text, NAME_TEXT_MAX, e) < 0)
		return -1;
	if (!place || strstr(place + 2, "{}"))
		return err_new(e, ERR_INVALID, "\"%s\" has not one {}, where the value goes",
		               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

static int check_ttl(const struct opt *o, struct arena *a, const char *text, const char **out,
                     struct err *e)
{
	uint64_t ms = 0;

	(void)o;
	if (duration_parse(text, &ms, e) < 0)
		return -1;
	if (ms == 0 || ms > TTL_MS_MAX)
		return err_new(e, ERR_INVALID, "is not between 1ms and a year");
	*out = arena_strdup(a, text);
	return 0;
}

/* "acme/app": as it stands in URLs, without slashes around it and without .git. */
static int check_repo(const struct opt *o, struct arena *a, const char *text, const char **out,
                      struct err *e)
{
	size_t n = strlen(text);
	AUTO(str_done) struct str path = { .max = 3ul * PATH_TEXT_MAX };

	(void)o;
	if (text_plain(text, PATH_TEXT_MAX - 8, e) < 0)
		return -1;
	str_addf(&path, "/%s", text);
	AUTO(str_done) struct str normal = { .max = 3ul * PATH_TEXT_MAX };

	if (text[0] == '/' || text[n - 1] == '/' || (n > 4 && strcmp(text + n - 4, ".git") == 0) ||
	    strpbrk(text, "*?#%") ||
	    http_target_normal((struct span){ str_text(&path), path.len }, &normal) < 0 ||
	    strcmp(str_text(&normal), str_text(&path)) != 0)
		return err_new(e, ERR_INVALID,
		               "\"%s\" is not a repository such as acme/app, without .git",
		               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

/* "refs/heads/agent/" and stars: patterns are those of paths, where ** is any depth. */
static int check_ref(const struct opt *o, struct arena *a, const char *text, const char **out,
                     struct err *e)
{
	(void)o;
	if (text_plain(text, NAME_TEXT_MAX, e) < 0)
		return -1;
	if (strncmp(text, "refs/", 5) != 0 || strpbrk(text, " ~^:?[\\") || strstr(text, ".."))
		return err_new(e, ERR_INVALID, "\"%s\" is not a pattern such as refs/heads/agent/*",
		               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

static int check_canary(const struct opt *o, struct arena *a, const char *text, const char **out,
                        struct err *e)
{
	(void)o;
	if (canary_check(text, e) < 0)
		return -1;
	*out = arena_strdup(a, text);
	return 0;
}

static int check_api(const struct opt *o, struct arena *a, const char *text, const char **out,
                     struct err *e)
{
	struct weburl u;

	(void)o;
	if (text_plain(text, PATH_TEXT_MAX, e) < 0)
		return -1;
	if (weburl_read(span_of(text), &u) < 0 || !u.is_tls)
		return err_new(e, ERR_INVALID,
		               "\"%s\" is not a base such as https://api.example.org",
		               quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

/* ---- the document -------------------------------------------------------------------- */

static const char *const approve_words[] = { "each", "first", NULL };

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct bind, name)

static const struct opt rows[] = {
	{ .key = "hosts", .type = &opt_list, .check = check_bound, FIELD(hosts), .max = BIND_HOSTS_MAX },
	{ .key = "inject", .type = &opt_text, .check = check_inject, FIELD(inject) },
	{ .key = "format", .type = &opt_text, .check = check_format, FIELD(format) },
	{ .key = "methods", .type = &opt_list, .check = check_word, .words = http_methods, FIELD(methods) },
	{ .key = "paths", .type = &opt_list, .check = check_url_path, FIELD(paths), .max = LIST_MAX },
	{ .key = "git", .type = &opt_list, .check = check_repo, FIELD(git), .max = LIST_MAX },
	{ .key = "push", .type = &opt_list, .check = check_ref, FIELD(push), .max = LIST_MAX },
	{ .key = "push_ask", .type = &opt_list, .check = check_ref, FIELD(push_ask), .max = LIST_MAX },
	{ .key = "approve", .type = &opt_text, .check = check_word, .words = approve_words, FIELD(approve) },
	{ .key = "only_bound", .type = &opt_bool, FIELD(is_only_bound) },
	{ .key = "env", .type = &opt_text, .check = check_env_name, FIELD(env) },
	{ .key = "ttl", .type = &opt_text, .check = check_ttl, FIELD(ttl) },
	{ .key = "canary", .type = &opt_text, .check = check_canary, FIELD(canary) },
	{ .key = "file", .type = &opt_text, .check = check_mount_point, FIELD(file) },
	{ .key = "api", .type = &opt_text, .check = check_api, FIELD(api) },
	{ .key = "workspaces", .type = &opt_list, .check = check_name, FIELD(workspaces), .max = LIST_MAX },
};
/* clang-format on */

static const struct opt_table table = { rows, COUNT(rows) };
static const struct doc_kind kind = {
	.table = &table,
	.noun = "the binding",
	.keys = "hosts, inject",
	.when_empty = "hosts",
};

static int check_planted(struct bind *b, struct err *e)
{
	b->arg = "";
	if (b->hosts.len + b->methods.len + b->paths.len + b->git.len + b->push.len > 0 ||
	    b->inject || b->format || b->ttl || b->is_only_bound)
		return err_new(e, ERR_INVALID,
		               "canary: it is sent nowhere; env, file and workspaces go with it");
	if (!b->env && !b->file)
		return err_new(e, ERR_INVALID, "canary: where is it placed? say env or file");
	return 0;
}

static int check_whole(struct bind *b, struct err *e)
{
	if (b->canary)
		return check_planted(b, e);
	if (b->file)
		return err_new(e, ERR_INVALID, "file: is for a canary");
	if (b->hosts.len == 0)
		return err_new(e, ERR_INVALID, "hosts: a secret is bound to one at least");
	if (!b->inject)
		b->inject = "bearer";
	if (inject_read(b->inject, &b->how, &b->arg, e) < 0)
		return -1;
	if ((b->api != NULL) != (b->how == BIND_APP))
		return err_new(e, ERR_INVALID, "api: goes with inject github-app:APP/INSTALLATION");
	if (b->env && b->how == BIND_AWS)
		return err_new(e, ERR_INVALID,
		               "env: of aws it is AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
	if (b->format && b->how != BIND_HEADER)
		return err_new(e, ERR_INVALID, "format: is for inject header:NAME");
	if (b->push.len + b->push_ask.len > 0 && b->git.len == 0)
		return err_new(e, ERR_INVALID, "push: to which repository? name it with git");
	if (b->git.len > 0 && (b->methods.len > 0 || b->paths.len > 0))
		return err_new(
		    e, ERR_INVALID,
		    "git: says which requests they are; methods and paths do not go with it");
	return b->ttl ? duration_parse(b->ttl, &b->ttl_ms, e) : 0;
}

int bind_read(struct bind *b, const char *text, size_t n, struct err *e)
{
	AUTO(bind_done) struct bind next = { 0 };

	if (n > BIND_TEXT_MAX)
		return err_new(e, ERR_LIMIT, "the binding has more than %u bytes", BIND_TEXT_MAX);
	if (doc_json(&kind, &next.arena, &next, (struct span){ text, n }, e) < 0 ||
	    check_whole(&next, e) < 0)
		return -1;
	*b = next;
	next = (struct bind){ 0 };
	return 0;
}

static int json_write(const char *bytes, size_t n, void *out)
{
	str_addn(out, bytes, n);
	return 0;
}

int bind_print(const struct bind *b, struct str *out, struct err *e)
{
	AUTO(json_decrefp) json_t *o = members_get(&table, b);

	if (json_dump_callback(o, json_write, out, JSON_COMPACT) < 0 || out->overflow)
		return err_new(e, ERR_LIMIT, "the binding has more than %u bytes", BIND_TEXT_MAX);
	return 0;
}

void bind_done(struct bind *b)
{
	struct text_list *lists[] = { &b->hosts, &b->methods,  &b->paths,     &b->git,
		                      &b->push,  &b->push_ask, &b->workspaces };

	for (size_t i = 0; i < COUNT(lists); i++)
		vec_done(lists[i]);
	arena_done(&b->arena);
	*b = (struct bind){ 0 };
}

/* ---- names --------------------------------------------------------------------------- */

int secret_name_check(const char *name, struct err *e)
{
	AUTO(arena_done) struct arena a = { 0 };
	const char *unused;

	if (strlen(name) > SECRET_NAME_MAX)
		return err_new(e, ERR_INVALID, "the name of a secret has at most %d bytes",
		               SECRET_NAME_MAX);
	return secret_word_check(&a, name, &unused, e);
}

void secret_aad(const char *tenant, const char *name, const char *bind, struct str *out)
{
	str_addn(out, tenant, strlen(tenant) + 1);
	str_addn(out, name, strlen(name) + 1);
	str_add(out, bind);
}
