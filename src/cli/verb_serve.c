/*
 * verb_serve.c - the daemon in the foreground: this process becomes its launcher.
 */
#include "cli/verbs.h"

#include <signal.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/ondemand.h"

struct serve {
	struct verb_opts common; /* without --json: there is no answer */
	struct flag_list listen, host_paths;
	const char *tls[2], *state, *run;
};

struct args {
	char **at;
	size_t len, cap;
};

static void add(struct args *a, const char *word)
{
	vec_push(a, (char *)(uintptr_t)word); /* execv(3) changes none of them */
}

static void add_each(struct args *a, const char *option, const struct flag_list *values)
{
	for (size_t i = 0; i < values->len; i++) {
		add(a, option);
		add(a, values->at[i]);
	}
}

/* An absolute path: the launcher changes its folder. */
static int absolute(const char *given, const char *own, char out[PATH_TEXT_MAX], struct err *e)
{
	char here[PATH_TEXT_MAX] = "";
	const char *path = given ? given : own;

	if (path[0] != '/' && !getcwd(here, sizeof here))
		return err_sys(e, errno, "find the working directory");
	int n = snprintf(out, PATH_TEXT_MAX, "%s%s%s", here, here[0] ? "/" : "", path);
	return n < 0 || n >= PATH_TEXT_MAX ? err_new(e, ERR_INVALID, "%.64s... is too long", path)
	                                   : 0;
}

static int serve_run(struct verb_call *c, struct err *e)
{
	const struct serve *x = c->opts;
	char program[PATH_TEXT_MAX], state[PATH_TEXT_MAX], run[PATH_TEXT_MAX];
	struct address own = { 0 };
	struct args args = { 0 };

	if (!x->state || !x->run) {
		(void)unsetenv("CAISSON_SOCKET"); /* where others look, not where this one is */
		(void)unsetenv("CAISSON_HOST");
		if (address_find(&own, e) < 0)
			return -1;
	}
	if (absolute(x->state, own.state_dir, state, e) < 0 ||
	    absolute(x->run, own.run_dir, run, e) < 0 ||
	    ondemand_find("caisson-launcher", program, e) < 0)
		return -1;
	add(&args, program);
	add(&args, "--state");
	add(&args, state);
	add(&args, "--run");
	add(&args, run);
	add_each(&args, "--listen", &x->listen);
	add_each(&args, "--host-path", &x->host_paths);
	if (x->tls[0]) {
		add(&args, "--tls");
		add(&args, x->tls[0]);
		add(&args, x->tls[1]);
	}
	add(&args, NULL);
	signal(SIGPIPE, SIG_DFL); /* what is ignored would stay ignored */
	execv(program, args.at);
	int saved = errno;
	vec_done(&args);
	return err_sys(e, saved, "execute %s", program);
}

/* clang-format off */
static const struct flag serve_flags[] = {
	{ '\0', FLAG_LIST, "listen",    offsetof(struct serve, listen), "ADDRESS", "also here: unix:PATH or HOST:PORT", NULL },
	{ '\0', FLAG_TWO,  "tls",       offsetof(struct serve, tls), "CERT KEY", "TLS for HOST:PORT, with these PEM files", NULL },
	{ '\0', FLAG_TEXT, "state",     offsetof(struct serve, state), "DIR", "where it keeps its records", NULL },
	{ '\0', FLAG_TEXT, "run",       offsetof(struct serve, run), "DIR", "where its sockets are; DIR/api.sock is the API", NULL },
	{ '\0', FLAG_LIST, "host-path", offsetof(struct serve, host_paths), "DIR", "a folder of the host that tokens may name", NULL },
};
/* clang-format on */

const struct verb cmd_serve = {
	.name = "serve",
	.usage = "[options]",
	.does = "run the daemon in the foreground",
	.more = "Without it, the first command that needs a daemon starts one of the caller's own, "
		"which ends when it is idle and has nothing to keep.",
	.flags = serve_flags,
	.n_flags = COUNT(serve_flags),
	.words = "",
	.opts_size = sizeof(struct serve),
	.run = serve_run
};
