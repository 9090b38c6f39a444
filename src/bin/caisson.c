/*
 * caisson.c - main() of the program: the table of verbs, and which driver the old ones get.
 */
#include <fcntl.h>
#include <jansson.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include "bin/oneshot.h"
#include "cli/daemon.h"
#include "cli/docker.h"
#include "cli/doctor.h"
#include "cli/gc.h"
#include "cli/help.h"
#include "cli/policy.h"
#include "cli/run.h"
#include "cli/verbs.h"
#include "os/fault.h"
#include "os/file.h"

/* ---- verbs that read their words themselves ------------------------------------------ */

/* The daemon runs it. The test build does all of it in this process, so that one kernel call after
 * the other can be made to fail. */
#ifdef CAISSON_TEST
#define RUN_DRIVER oneshot_driver
#else
#define RUN_DRIVER daemon_driver
#endif

static int main_run(int argc, char **argv)
{
	return run_main(argc, argv, &RUN_DRIVER);
}

/* clang-format off */
static const struct flag run_flags[] = {
	{ 'i',  FLAG_SWITCH,   NULL,      0, NULL, "pass standard input on (else it is /dev/null)", NULL },
	{ 't',  FLAG_SWITCH,   NULL,      0, NULL, "a terminal of its own for the command", NULL },
	{ 'w',  FLAG_TEXT,     "cwd",     0, "DIR", "working directory inside (/work)", NULL },
	{ '\0', FLAG_DURATION, "timeout", 0, "DURATION", "end the command and all it started after this long", NULL },
	{ '\0', FLAG_LIST,     "collect", 0, "PATTERN", "bring back these files before the rest is gone; ** is any depth; output comes at the end", NULL },
	{ '\0', FLAG_LIST,     "allow-exec", 0, "PATTERN", "with --collect: also these, although they execute later; * matches / too", NULL },
	{ '\0', FLAG_TEXT,     "into",    0, "DIR", "where --collect puts them; here unless given", NULL },
	{ '\0', FLAG_SWITCH,   "json",    0, NULL, "print the result as one JSON object", NULL },
};
/* clang-format on */

static const struct verb run = {
	.name = "run",
	.usage = "[options] -- CMD [ARG]...",
	.does = "run a command behind walls of its own",
	.more = "Exit status: the command's own; 124 timeout or wall; 125 our failure or bad "
		"usage; 126 "
		"denied or not executable; 127 not found; 128+n by signal (oom 137).",
	.flags = run_flags,
	.n_flags = COUNT(run_flags),
	.takes_spec = true,
	.main = main_run
};

static int main_policy(int argc, char **argv)
{
	struct err e = { 0 };
	int status = policy_main(argc, argv, &e);

	if (status != 0)
		fprintf(stderr, "caisson: %s\n", e.msg);
	return status;
}

static const struct flag policy_flags[] = {
	{ .name = "resolved",
	  .type = FLAG_SWITCH,
	  .help = "show: with the defaults, and the hosts that presets stand for" },
	{ .name = "allow",
	  .type = FLAG_LIST,
	  .arg = "HOST",
	  .help = "set: one more that may be reached" },
	{ .name = "deny", .type = FLAG_LIST, .arg = "HOST", .help = "set: one that may not" },
	FLAG_JSON,
};

static const struct verb policy = {
	.name = "policy",
	.usage = "show [options] | check [--json] FILE | set SANDBOX "
		 "[--allow HOST] [--deny HOST] [--net RULE] [--spec "
		 "FILE]",
	.does = "print, check or change what a spec means",
	.more = "check also reads the settings of srt (JSON) and Codex (.toml), "
		"prints the spec that they come to, and names what has no "
		"equivalent. set gives a live sandbox new network rules: --net "
		"and --spec replace them, --allow and --deny add to them. They "
		"hold at once, for open connections too; if the gate refuses "
		"them, the old ones stay.",
	.flags = policy_flags,
	.n_flags = COUNT(policy_flags),
	.words = "[show check set]",
	.takes_spec = true,
	.main = main_policy
};

static int main_gc(int argc, char **argv)
{
	return gc_main(argc, argv, &oneshot_driver);
}

static const struct flag gc_flags[] = {
	{ .name = "dry-run", .type = FLAG_SWITCH, .help = "only say what would go, and why" },
	FLAG_JSON,
};

static const struct verb gc = { .name = "gc",
	                        .usage = "[--dry-run] [--json]",
	                        .does = "make room: in the store, and where dead sandboxes were",
	                        .more =
	                            "Where a daemon runs it removes what is over, and above the "
	                            "high mark of its config (`store`) what can be had again. "
	                            "Each decision is explained.",
	                        .flags = gc_flags,
	                        .n_flags = COUNT(gc_flags),
	                        .main = main_gc };

static int main_doctor(int argc, char **argv)
{
	return doctor_main(argc, argv, &oneshot_driver);
}

static const struct flag doctor_flags[] = { FLAG_JSON };

static const struct verb doctor = { .name = "doctor",
	                            .usage = "[--json]",
	                            .does = "what this host can enforce, and what it lacks",
	                            .flags = doctor_flags,
	                            .n_flags = COUNT(doctor_flags),
	                            .main = main_doctor };

static int main_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("caisson " CAISSON_VERSION "\n");
	return 0;
}

static const struct verb version = {
	.name = "version", .usage = "", .does = "the version", .main = main_version
};

/* ---- verbs that need the table ------------------------------------------------------- */

static int main_help(int argc, char **argv);
static int main_completion(int argc, char **argv);

static const struct flag help_flags[] = {
	{ .name = "man", .type = FLAG_SWITCH, .help = "the man page, in roff" },
};

static const struct verb help = { .name = "help",
	                          .usage = "[COMMAND | --man]",
	                          .does = "the commands, or the options of one",
	                          .flags = help_flags,
	                          .n_flags = COUNT(help_flags),
	                          .words = "verb",
	                          .main = main_help };

static const struct verb completion = { .name = "completion",
	                                .usage = "bash | zsh",
	                                .does = "a script that completes words in a shell",
	                                .more = "For bash: . <(caisson completion bash). For zsh, "
	                                        "after compinit: . <(caisson completion "
	                                        "zsh).",
	                                .words = "[bash zsh]",
	                                .main = main_completion };

static const struct verb *const verbs[] = {
	&run,        &cmd_create,  &cmd_exec,      &cmd_sh,
	&cmd_ps,     &cmd_logs,    &cmd_attach,    &cmd_kill,
	&cmd_list,   &cmd_inspect, &cmd_top,       &cmd_stop,
	&cmd_start,  &cmd_pause,   &cmd_resume,    &cmd_replace,
	&cmd_extend, &cmd_rm,      &cmd_read,      &cmd_write,
	&cmd_edit,   &cmd_grep,    &cmd_glob,      &cmd_ls,
	&cmd_cp,     &cmd_ports,   &cmd_port,      &cmd_net,
	&cmd_why,    &cmd_events,  &cmd_approvals, &cmd_approve,
	&cmd_report, &cmd_attest,  &cmd_up,        &cmd_ws,
	&cmd_fork,   &cmd_undo,    &cmd_redo,      &cmd_history,
	&cmd_diff,   &cmd_snap,    &cmd_restore,   &cmd_repo,
	&cmd_commit, &cmd_merge,   &cmd_push,      &cmd_pulls,
	&cmd_apply,  &cmd_export,  &cmd_image,     &cmd_mcp,
	&cmd_docker, &cmd_serve,   &cmd_config,    &cmd_token,
	&cmd_secret, &cmd_cache,   &policy,        &doctor,
	&gc,         &cmd_fsck,    &completion,    &help,
	&version,
};
static const struct verb_table table = { verbs, COUNT(verbs) };

static int main_help(int argc, char **argv)
{
	return help_main(&table, argc, argv);
}

static int main_completion(int argc, char **argv)
{
	return completion_main(&table, argc, argv);
}

/* ---- main ---------------------------------------------------------------------------- */

/* A caller may have closed the standard three: a file of ours must not land there. The rest of
 * what it left open is not for any process of ours. */
static int clean_descriptors(void)
{
	int fd;

	do
		fd =
		    open("/dev/null", O_RDWR); /* inherited on purpose, if it is one of the three */
	while (fd >= 0 && fd < 3);
	if (fd >= 0)
		close(fd);
	return os_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* Jansson would open /dev/urandom for it. */
static void seed_hashes(void)
{
	size_t seed = 0;

	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed && seed != 0)
		json_object_seed(seed);
}

int main(int argc, char **argv)
{
	fault_init();
	seed_hashes();
	signal(SIGCHLD, SIG_DFL); /* ignored by some callers: then no child could be waited for */
	int r = clean_descriptors();
	if (r < 0) {
		fprintf(stderr, "caisson: close what was inherited: %s\n", strerror(-r));
		return 125;
	}
	if (argc > 0 && docker_is(argv[0]))
		return docker_main(argc, argv);
	if (argc < 2)
		return main_help(1, argv);
	const char *name = argv[1];

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0)
		name = "version";
	const struct verb *v = verb_find(&table, name);
	if (!v)
		return verb_unknown(&table, name);
	return v->main ? v->main(argc - 1, argv + 1) : verb_main(v, argc - 1, argv + 1);
}
