/*
 * verb_secret.c - secrets: set, rotate, canary, ls, rm. A value is read here, sealed here to the
 * gate's key, and wiped; what is sent opens nothing but there.
 */
#include "cli/verbs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/sealer.h"
#include "cli/secret_canary.h"
#include "cli/secret_source.h"
#include "cli/table.h"
#include "spec/bind.h"
#include "wire/base64.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (4u << 20)
#define VALUE_MIN 8 /* shorter ones would be found in every answer */

struct secret {
	struct verb_opts common;
	const char *file, *inject, *format, *env, *ttl, *like, *at, *approve, *api;
	bool is_stdin, is_config, is_only_bound;
	struct flag_list hosts, methods, paths, git, push, push_ask, workspaces;
};

/* ---- the value ----------------------------------------------------------------------- */

struct value {
	char bytes[SECRET_VALUE_MAX + 2]; /* one more, and the end of a line */
	size_t len;
};

static void value_done(struct value *v)
{
	explicit_bzero(v, sizeof *v);
}

static int read_value(int fd, struct value *v, struct err *e)
{
	ssize_t n = 1;

	while (n > 0 && v->len < sizeof v->bytes) {
		n = read(fd, v->bytes + v->len, sizeof v->bytes - v->len);
		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "read the value");
		v->len += n > 0 ? (size_t)n : 0;
		if (isatty(fd) && v->len > 0 && v->bytes[v->len - 1] == '\n')
			break;
	}
	if (v->len > 0 && v->bytes[v->len - 1] == '\n')
		v->len--;
	if (v->len < VALUE_MIN || v->len > SECRET_VALUE_MAX)
		return err_new(e, ERR_INVALID, "the value has %zu bytes: it needs %d to %u", v->len,
		               VALUE_MIN, SECRET_VALUE_MAX);
	return 0;
}

/* Not shown while it is typed. */
static int ask_value(const char *name, struct value *v, struct err *e)
{
	struct termios was, quiet;
	bool is_terminal = tcgetattr(STDIN_FILENO, &was) == 0;

	if (!is_terminal)
		return read_value(STDIN_FILENO, v, e);
	quiet = was;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	fprintf(stderr, "value of %s: ", name);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet); /* then it is seen */
	int r = read_value(STDIN_FILENO, v, e);

	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
	fprintf(stderr, "\n");
	return r;
}

/* What a command of the config prints. */
static int fetch_value(const char *name, struct value *v, struct err *e)
{
	struct secret_source source = { .fd = -1 };
	struct err again = { 0 };
	int r = secret_source_begin(&source, name, e);

	if (r == 0)
		r = read_value(source.fd, v, e);
	if (secret_source_end(&source, &again) == 0)
		return r;
	*e = again; /* that is why there was no value */
	return -1;
}

static int take_value(const struct secret *x, const char *name, struct value *v, struct err *e)
{
	/* Best effort: this process lives for a moment. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)mlock(v, sizeof *v);
	if ((x->file != NULL) + x->is_stdin + x->is_config > 1)
		return err_new(e, ERR_INVALID, "one of --file, --from-stdin and --from-config");
	if (x->is_config)
		return fetch_value(name, v, e);
	if (!x->file)
		return ask_value(name, v, e);
	AUTO(fd_close) int fd = open(x->file, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_sys(e, errno, "open %s", x->file) : read_value(fd, v, e);
}

/* ---- what it is for ------------------------------------------------------------------ */

static int put_text(json_t *o, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(o, key, json_string(text)) < 0)
		return err_new(e, ERR_INVALID, "%s: not UTF-8", key);
	return 0;
}

static int put_list(json_t *o, const char *key, const struct flag_list *l, struct err *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->len; i++)
		if (json_array_append_new(list, json_string(l->at[i])) < 0) {
			json_decref(list);
			return err_new(e, ERR_INVALID, "%s: not UTF-8", key);
		}
	if (l->len > 0)
		json_object_set(o, key, list);
	json_decref(list);
	return 0;
}

static int describe(const struct secret *x, json_t *o, struct err *e)
{
	const struct {
		const char *key;
		const struct flag_list *list;
	} lists[] = { { "hosts", &x->hosts },
		      { "methods", &x->methods },
		      { "paths", &x->paths },
		      { "git", &x->git },
		      { "push", &x->push },
		      { "push_ask", &x->push_ask },
		      { "workspaces", &x->workspaces } };
	const struct {
		const char *key, *text;
	} texts[] = { { "inject", x->inject }, { "format", x->format },   { "env", x->env },
		      { "ttl", x->ttl },       { "approve", x->approve }, { "api", x->api } };

	for (size_t i = 0; i < COUNT(lists); i++)
		if (put_list(o, lists[i].key, lists[i].list, e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(texts); i++)
		if (put_text(o, texts[i].key, texts[i].text, e) < 0)
			return -1;
	if (x->is_only_bound)
		json_object_set_new(o, "only_bound", json_true());
	return 0;
}

/* Canonical, so that rotate writes what set has written. */
static int bind_text(const json_t *o, struct str *out, struct err *e)
{
	AUTO(freep) char *text = json_dumps(o, JSON_COMPACT);
	AUTO(bind_done) struct bind b = { 0 };

	return bind_read(&b, text, strlen(text), e) < 0 ? -1 : bind_print(&b, out, e);
}

/* ---- set and rotate ------------------------------------------------------------------ */

static int seal(const json_t *sealing, const char *name, const char *bind, const struct value *v,
                struct str *out, struct err *e)
{
	AUTO(str_done) struct str key = { .max = SEAL_KEY_BYTES };
	AUTO(str_done) struct str aad = { .max = 2ul * BIND_TEXT_MAX };
	const char *text = text_of(sealing, "key");

	if (!base64_decode(text, strlen(text), &key) || key.len != SEAL_KEY_BYTES)
		return err_new(e, ERR_INTERNAL, "the daemon's key is none");
	secret_aad(text_of(sealing, "tenant"), name, bind, &aad);
	return sealer_run((const uint8_t *)key.data, (struct span){ str_text(&aad), aad.len },
	                  (struct span){ v->bytes, v->len }, out, e);
}

static int store(struct verb_call *c, const char *name, const char *bind, struct err *e)
{
	const struct secret *x = c->opts;
	AUTO(value_done) struct value v = { .len = 0 };
	AUTO(json_decrefp) json_t *sealing = NULL;
	AUTO(json_decrefp) json_t *made = NULL;
	AUTO(str_done) struct str sealed = { .max = 4ul * SECRET_VALUE_MAX };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	const char *texts[] = { name };

	if (secret_name_check(name, e) < 0 || take_value(x, name, &v, e) < 0 ||
	    client_call(&c->client, "GET", "/v1/sealing", NULL, &sealing, e) < 0 ||
	    seal(sealing, name, bind, &v, &sealed, e) < 0)
		return -1;
	value_done(&v);
	client_path(&path, "/v1/secrets/{}", texts);
	json_t *body = json_pack("{ss,ss}", "bind", bind, "sealed", str_text(&sealed));

	if (client_call(&c->client, "PUT", str_text(&path), body, &made, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(made), e) : 0;
}

static int set(struct verb_call *c, struct err *e)
{
	AUTO(json_decrefp) json_t *o = json_object();
	AUTO(str_done) struct str bind = { .max = BIND_TEXT_MAX };

	if (describe(c->opts, o, e) < 0 || bind_text(o, &bind, e) < 0)
		return -1;
	return store(c, c->words.at[1], str_text(&bind), e);
}

static int get(struct verb_call *c, const char *name, json_t **out, struct err *e)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	const char *texts[] = { name };

	client_path(&path, "/v1/secrets/{}", texts);
	return client_call(&c->client, "GET", str_text(&path), NULL, out, e);
}

/* Another value for the same purpose. */
static int rotate(struct verb_call *c, struct err *e)
{
	AUTO(json_decrefp) json_t *known = NULL;
	AUTO(json_decrefp) json_t *said = json_object();
	AUTO(str_done) struct str bind = { .max = BIND_TEXT_MAX };

	if (describe(c->opts, said, e) < 0)
		return -1;
	if (json_object_size(said) > 0)
		return err_new(e, ERR_INVALID,
		               "rotate changes the value; what it is for is said with set");
	if (get(c, c->words.at[1], &known, e) < 0 ||
	    bind_text(json_object_get(known, "bind"), &bind, e) < 0)
		return -1;
	return store(c, c->words.at[1], str_text(&bind), e);
}

/* ---- canary -------------------------------------------------------------------------- */

static int canary(struct verb_call *c, struct err *e)
{
	const struct secret *x = c->opts;
	const struct canary_opts opts = { .like = x->like, .env = x->env, .at = x->at };
	AUTO(json_decrefp) json_t *o = json_object();
	AUTO(json_decrefp) json_t *made = NULL;
	AUTO(str_done) struct str bind = { .max = BIND_TEXT_MAX };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	const char *texts[] = { c->words.at[1] };

	if (secret_name_check(texts[0], e) < 0 || describe(x, o, e) < 0 ||
	    secret_canary(texts[0], &opts, o, e) < 0 || bind_text(o, &bind, e) < 0)
		return -1;
	client_path(&path, "/v1/secrets/{}", texts);
	json_t *body = json_pack("{ss}", "bind", str_text(&bind));

	if (client_call(&c->client, "PUT", str_text(&path), body, &made, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(made), e) : 0;
}

/* ---- ls, rm -------------------------------------------------------------------------- */

static void add_hosts(struct table *t, const json_t *bind)
{
	AUTO(str_done) struct str text = { .max = 1024 };
	const json_t *host;
	size_t i;

	json_array_foreach(json_object_get(bind, "hosts"), i, host)
	    str_addf(&text, "%s%s", i > 0 ? "," : "", json_string_value(host));
	table_cell(t, str_text(&text));
}

static int list(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "NAME", "HOSTS", "INJECT", "ENV",
		                             "AGE",  "USED",  "USES",   NULL };
	const struct secret *x = c->opts;
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *secret;
	size_t i;

	if (fetch_list(&c->client, "/v1/secrets", "secrets", &all, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "secrets", all), e);
	table_init(&t, heads);
	json_array_foreach(all, i, secret)
	{
		const json_t *bind = json_object_get(secret, "bind");
		char uses[32];

		snprintf(uses, sizeof uses, "%lld", (long long)number_of(secret, "uses"));
		table_cell(&t, text_of(secret, "name"));
		add_hosts(&t, bind);
		table_cell(&t,
		           json_object_get(bind, "canary") ? "canary" : text_of(bind, "inject"));
		table_cell(&t, text_of(bind, "env"));
		table_cell(&t, brief_age(number_of(secret, "changed_ms")).text);
		table_cell(&t, brief_age(number_of(secret, "last_used_ms")).text);
		table_cell(&t, uses);
	}
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int remove_secrets(struct verb_call *c, struct err *e)
{
	for (size_t i = 1; i < c->words.n; i++) {
		const char *texts[] = { c->words.at[i] };
		AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

		client_path(&path, "/v1/secrets/{}", texts);
		if (client_call(&c->client, "DELETE", str_text(&path), NULL, NULL, e) < 0)
			return -1;
	}
	return 0;
}

static int secret_run(struct verb_call *c, struct err *e)
{
	static const struct {
		const char *name;
		size_t words_min, words_max;
		int (*run)(struct verb_call *c, struct err *e);
	} actions[] = { { "set", 2, 2, set },
		        { "rotate", 2, 2, rotate },
		        { "canary", 2, 2, canary },
		        { "ls", 1, 1, list },
		        { "rm", 2, SIZE_MAX, remove_secrets } };

	for (size_t i = 0; i < COUNT(actions); i++)
		if (strcmp(actions[i].name, c->words.at[0]) == 0 &&
		    c->words.n >= actions[i].words_min && c->words.n <= actions[i].words_max)
			return actions[i].run(c, e);
	return err_new(e, ERR_INVALID, "caisson secret %s", c->verb->usage);
}

/* clang-format off */
static const struct flag secret_flags[] = {
	{ '\0', FLAG_SWITCH, "from-stdin", offsetof(struct secret, is_stdin), NULL, "set, rotate: the value is read from standard input, as it is without --file", NULL },
	{ '\0', FLAG_SWITCH, "from-config", offsetof(struct secret, is_config), NULL, "set, rotate: the value is what the command prints that the config has for it", NULL },
	{ '\0', FLAG_TEXT, "file",      offsetof(struct secret, file), "FILE", "set, rotate: the value is read from a file", NULL },
	{ '\0', FLAG_LIST, "host",      offsetof(struct secret, hosts), "HOST[:PORT]", "set: where it may go, by https and nothing else", NULL },
	{ '\0', FLAG_TEXT, "inject",    offsetof(struct secret, inject), "HOW", "set: bearer (unless given), basic:USER, header:NAME, query:KEY, aws[:REGION[/SERVICE]], which signs with ID:SECRET[:TOKEN], or github-app:APP/INSTALLATION, whose value is the app's key", "bearer basic: header: query: aws github-app:" },
	{ '\0', FLAG_TEXT, "format",    offsetof(struct secret, format), "TEXT", "set: of header:NAME, with {} where the value goes", NULL },
	{ '\0', FLAG_LIST, "method",    offsetof(struct secret, methods), "METHOD", "set: only with these", "GET HEAD POST PUT PATCH DELETE OPTIONS" },
	{ '\0', FLAG_LIST, "path",      offsetof(struct secret, paths), "PATH", "set: only there; * is one segment, ** any depth", NULL },
	{ '\0', FLAG_LIST, "git",       offsetof(struct secret, git), "REPO", "set: only this repository, by git's protocol: acme/app", NULL },
	{ '\0', FLAG_LIST, "push",      offsetof(struct secret, push), "REF", "set: refs that may be pushed to it: refs/heads/agent/*", NULL },
	{ '\0', FLAG_LIST, "push-ask",  offsetof(struct secret, push_ask), "REF", "set: refs that may be pushed to it once a person has said yes: refs/heads/main", NULL },
	{ '\0', FLAG_SWITCH, "only-bound", offsetof(struct secret, is_only_bound), NULL, "set: refuse every request to its hosts that no binding covers", NULL },
	{ '\0', FLAG_TEXT, "approve",   offsetof(struct secret, approve), "WHEN", "set: a person is asked for each request, or for the first one of a sandbox", "each first" },
	{ '\0', FLAG_TEXT, "env",       offsetof(struct secret, env), "NAME", "set, canary: the variable inside that has the placeholder, or the canary", NULL },
	{ '\0', FLAG_TEXT, "ttl",       offsetof(struct secret, ttl), "DURATION", "set: usable for this long of a sandbox's life", NULL },
	{ '\0', FLAG_TEXT, "api",       offsetof(struct secret, api), "URL", "set: of github-app, the base of the forge's API: https://api.example.org", NULL },
	{ '\0', FLAG_LIST, "workspace", offsetof(struct secret, workspaces), "WORKSPACE", "set: only sandboxes with one of these", NULL },
	{ '\0', FLAG_TEXT, "like",      offsetof(struct secret, like), "WHAT", "canary: what it looks like: aws, github, npm, ..., or a text of that shape", "aws aws-secret github gitlab npm pypi slack stripe llm" },
	{ '\0', FLAG_TEXT, "at",        offsetof(struct secret, at), "PATH", "canary: a file inside that has it", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_secret = {
	.name = "secret",
	.usage = "set NAME --host HOST | rotate NAME | canary NAME | ls | rm NAME...",
	.does = "credentials that a sandbox uses and never sees, for --creds NAME",
	.more =
	    "The value is read from standard input or a file and sealed before it is sent: only "
	    "the "
	    "gate can open it. It goes to its hosts with requests that its binding covers; inside "
	    "there is a placeholder. rotate sets another value for the same purpose. canary makes "
	    "one that is good for nothing: whatever carries it out is stopped, and on record.",
	.flags = secret_flags,
	.n_flags = COUNT(secret_flags),
	.words = "[set rotate canary ls rm]",
	.opts_size = sizeof(struct secret),
	.words_min = 1,
	.words_max = SIZE_MAX,
	.run = secret_run
};
