/*
 * verb_serve.c - the daemon in the foreground: this process becomes its launcher. And what the
 * config says about it, without starting one.
 */
#include "cli/verbs.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/ondemand.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "io/program.h"
#include "wire/escape.h"

#define GIVEN_FD 3 /* sd_listen_fds(3) */
#define TEXT_MAX (1u << 20)

struct serve {
	struct verb_opts common;
	const char *config, *tls[2];
	bool is_detached;
	struct settings settings;
};

static void serve_init(void *opts)
{
	settings_init(&((struct serve *)opts)->settings);
}

static void serve_done(void *opts)
{
	settings_done(&((struct serve *)opts)->settings);
}

/* ---- flags --------------------------------------------------------------------------- */

/* An absolute path: the launcher changes its folder. */
static int absolute(const char *path, char out[PATH_TEXT_MAX], struct err *e)
{
	char here[PATH_TEXT_MAX] = "";

	if (path[0] != '/' && !getcwd(here, sizeof here))
		return err_sys(e, errno, "find the working directory");
	int n = snprintf(out, PATH_TEXT_MAX, "%s%s%s", here, here[0] ? "/" : "", path);
	return n < 0 || n >= PATH_TEXT_MAX ? err_new(e, ERR_INVALID, "%.64s... is too long", path)
	                                   : 0;
}

static bool is_path(const char *flag)
{
	return strcmp(flag, "state") == 0 || strcmp(flag, "run") == 0 ||
	       strcmp(flag, "host-path") == 0;
}

/* --name VALUE, --name=VALUE of the config's table. */
static int serve_other(void *opts, int argc, char **argv, int *i, struct err *e)
{
	struct serve *x = opts;
	const char *word = argv[*i];
	size_t len = strcspn(word, "=");
	char name[64], path[PATH_TEXT_MAX];

	snprintf(name, sizeof name, "%.*s", (int)len, word);
	if (strncmp(name, "--", 2) != 0 || !config_is_flag(name + 2))
		return 0;
	if (!word[len] && *i + 1 >= argc)
		return err_new(e, ERR_INVALID, "%s needs a value", word);
	const char *value = word[len] ? word + len + 1 : argv[++*i];

	if (is_path(name + 2) && absolute(value, path, e) < 0)
		return -1;
	if (is_path(name + 2))
		value = path;
	return config_flag(&x->settings.flags, name + 2, value, e) < 0 ? -1 : 1;
}

static int take_tls(struct serve *x, struct err *e)
{
	static const char *const members[] = { "cert", "key" };

	for (size_t i = 0; i < COUNT(members) && x->tls[0]; i++) {
		char path[PATH_TEXT_MAX], text[PATH_TEXT_MAX + 8];

		if (absolute(x->tls[i], path, e) < 0)
			return -1;
		snprintf(text, sizeof text, "%s=%s", members[i], path);
		if (config_flag(&x->settings.flags, "tls", text, e) < 0)
			return -1;
	}
	return 0;
}

static int load(struct serve *x, struct err *e)
{
	return take_tls(x, e) < 0 ? -1 : settings_load(&x->settings, x->config, e);
}

/* ---- serve --------------------------------------------------------------------------- */

/* A socket that systemd made for this very process goes on to the launcher, which looks at it. */
static void pass_given(void)
{
	if (getenv("LISTEN_FDS"))
		(void)fcntl(GIVEN_FD, F_SETFD, 0); /* none is there: then none is passed on */
}

/* Ends when it answers: then its addresses are listened on, too. */
static int detach(struct verb_call *c, struct serve *x, struct err *e)
{
	const struct client_ask ask = { .method = "GET", .path = "/v1/health" };
	struct client_answer answer;

	c->client.fd = ondemand_serve(&x->settings, &c->client.address, e);
	if (c->client.fd < 0)
		return -1;
	return client_begin(&c->client, &ask, &answer,
	                    e); /* whatever it says: it may recover yet */
}

static int serve_run(struct verb_call *c, struct err *e)
{
	struct serve *x = c->opts;
	char program[PATH_TEXT_MAX], *args[SETTINGS_ARGS_MAX];

	if (load(x, e) < 0 || program_find("caisson-launcher", program, e) < 0 ||
	    ondemand_dismiss(x->settings.all.run, e) < 0)
		return -1;
	if (x->is_detached)
		return detach(c, x, e);
	settings_args(&x->settings, program, args);
	pass_given();
	signal(SIGPIPE, SIG_DFL); /* what is ignored would stay ignored */
	execv(program, args);
	return err_sys(e, errno, "execute %s", program);
}

/* clang-format off */
#define FLAG_CONFIG { '\0', FLAG_TEXT, "config", offsetof(struct serve, config), "FILE", "the config file; none: without one", NULL }
#define FLAG_TLS { '\0', FLAG_TWO, "tls", offsetof(struct serve, tls), "CERT KEY", "TLS for HOST:PORT, with these PEM files", NULL }
/* clang-format on */

static const struct flag serve_flags[] = {
	FLAG_CONFIG,
	FLAG_TLS,
	{ 'd', FLAG_SWITCH, "detach", offsetof(struct serve, is_detached), NULL,
	  "in the background: returns when it answers; it says more in launcher.log of its run "
	  "folder",
	  NULL },
};

const struct verb cmd_serve = {
	.name = "serve",
	.usage = "[options]",
	.does = "run the daemon, in the foreground unless --detach",
	.more = "What is no flag comes from the config file: /etc/caisson/config.yaml for root, "
		"else $XDG_CONFIG_HOME/caisson/config.yaml. Without serve, the first command that "
		"needs a daemon starts one of the caller's own, which ends when it is idle and has "
		"nothing to keep, or when serve takes its place.",
	.flags = serve_flags,
	.n_flags = COUNT(serve_flags),
	.words = "",
	.takes_config = true,
	.opts_size = sizeof(struct serve),
	.init = serve_init,
	.done = serve_done,
	.other = serve_other,
	.run = serve_run
};

/* ---- config -------------------------------------------------------------------------- */

static const char *source_of(const struct settings *s, const char *key)
{
	AUTO(str_done) struct str ignored = { .max = TEXT_MAX };

	if (config_value(&s->flags, key, &ignored))
		return "flag";
	return config_value(&s->file, key, &ignored) ? "file" : "default";
}

static int show(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "KEY", "VALUE", "FROM", NULL };
	struct serve *x = c->opts;
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *rows = json_array();
	const char *key;
	char name[64];

	table_init(&t, heads);
	if (load(x, e) < 0) {
		json_decref(rows);
		return -1;
	}
	for (size_t i = 0; (key = config_key(i, name)); i++) {
		AUTO(str_done) struct str value = { .max = TEXT_MAX };
		bool is_set = config_value(&x->settings.all, key, &value);
		const char *from = source_of(&x->settings, key);

		table_cell(&t, key);
		table_cell(&t, is_set ? str_text(&value) : NULL);
		table_cell(&t, from);
		json_array_append_new(
		    rows,
		    json_pack("{ss,so,ss}", "key", key, "value",
		              is_set ? json_string(str_text(&value)) : json_null(), "from", from));
	}
	const char *file = x->settings.path[0] ? x->settings.path : NULL;
	json_t *answer =
	    json_pack("{so,so}", "file", file ? json_string(escape_brief(file)) : json_null(),
	              "values", rows);

	if (x->common.is_json)
		return print_json(answer, e);
	json_decref(answer);
	str_addf(&out, "file: %s\n", file ? escape_brief(file) : "none");
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int check(struct verb_call *c, struct err *e)
{
	const struct serve *x = c->opts;
	const char *path = c->words.at[1];
	AUTO(config_done) struct config config;
	struct err bad = { 0 };
	int r;

	config_init(&config);
	r = settings_read(&config, path, &bad);
	if (x->common.is_json && print_json(r < 0 ? json_pack("{sb,ss}", "ok", 0, "error", bad.msg)
	                                          : json_pack("{sb}", "ok", 1),
	                                    e) < 0)
		return -1;
	if (r < 0) {
		fprintf(stderr, "caisson: %s\n", escape_brief(bad.msg));
		return EXIT_REFUSED;
	}
	if (!x->common.is_json)
		printf("%s: ok\n", escape_brief(path));
	return 0;
}

static int config_run(struct verb_call *c, struct err *e)
{
	if (strcmp(c->words.at[0], "show") == 0 && c->words.n == 1)
		return show(c, e);
	if (strcmp(c->words.at[0], "check") == 0 && c->words.n == 2)
		return check(c, e);
	return err_new(e, ERR_INVALID, "caisson config %s", c->verb->usage);
}

static const struct flag config_flags[] = { FLAG_CONFIG, FLAG_TLS, FLAG_JSON };

const struct verb cmd_config = {
	.name = "config",
	.usage = "show [options of serve] [--json] | check FILE [--json]",
	.does = "what the config of a daemon says",
	.more =
	    "show prints every key with its value and where that comes from: a flag, the file or "
	    "the default. check reads a file and says what is wrong with it.",
	.flags = config_flags,
	.n_flags = COUNT(config_flags),
	.words = "[show check]",
	.takes_config = true,
	.opts_size = sizeof(struct serve),
	.words_min = 1,
	.words_max = 2,
	.init = serve_init,
	.done = serve_done,
	.other = serve_other,
	.run = config_run
};
