/*
 * caisson-launcher.c - main() of the one program with rights: its options, and the wiring.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "io/program.h"
#include "launcher/sealkey.h"
#include "launcher/server.h"
#include "launcher/slot.h"
#include "monitor/monitor.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/proc.h"

#define STATUS_OURS 125
#define STATUS_BUSY 3 /* another launcher has this run folder: connect to its socket instead */
#define GIVEN_FD 3    /* sd_listen_fds(3) */
#define ARGS_MAX 384

struct options {
	struct server_opts server;
	bool is_on_demand;
	char *argv[ARGS_MAX]; /* of the daemon */
	size_t argc;
	char *cache_argv[ARGS_MAX]; /* of the package cache */
	size_t cache_argc;
	char *ledger_argv[5];
	int ledger_argc;
	char *hook_argv[ARGS_MAX]; /* of the sender of webhooks */
	size_t hook_argc;
	bool has_webhook;
};

/* clang-format off */
static const char usage[] =
	"usage: caisson-launcher --state DIR --run DIR [--listen ADDR]... [--tls CERT KEY]\n"
	"           [--host-path DIR]... [--service-id N] [--on-demand] [--idle-exit TIME]\n"
	"           [--ttl TIME] [--keep-records TIME] [--keep-trash TIME] [--keep-ledger SIZE]\n"
	"           [--ledger-burst N] [--process-events on|off] [--domain NAME] [--ports FIRST-LAST]\n"
	"           [--log LEVEL]\n"
	"           [--net NAME=VALUE]... [--approvals NAME=VALUE]...\n"
	"           [--quota NAME=N]... [--store NAME=N]... [--default LIMIT=N]... [--most LIMIT=N]...\n";
/* clang-format on */

static int set_state(struct options *o, char **values, struct err *e)
{
	(void)e;
	o->server.state = values[0];
	return 0;
}

static int set_run(struct options *o, char **values, struct err *e)
{
	(void)e;
	o->server.run = values[0];
	return 0;
}

static int add_host_path(struct options *o, char **values, struct err *e)
{
	if (o->server.n_host_paths == SERVER_HOST_PATHS_MAX)
		return err_new(e, ERR_LIMIT, "more than %d host paths", SERVER_HOST_PATHS_MAX);
	o->server.host_paths[o->server.n_host_paths++] = values[0];
	return 0;
}

/* Not root, and not an id that a sandbox may have; nor are the next four, which are of the gate,
 * of the package cache, of the ledger and of the sender of webhooks. */
static int set_service_id(struct options *o, char **values, struct err *e)
{
	char *end;
	unsigned long id = strtoul(values[0], &end, 10);

	if (*end || end == values[0] || values[0][0] == '-' || id == 0 || id >= SLOT_ID_BASE - 4)
		return err_new(e, ERR_INVALID, "--service-id %s: 1 to %u", values[0],
		               SLOT_ID_BASE - 5);
	o->server.service_id = (uid_t)id;
	return 0;
}

/* What of it is for whom, they know; the gate's own arguments are ours to give. */
static int add_net(struct options *o, char **values, struct err *e)
{
	static char flag[] = "--net";

	if (o->cache_argc + 3 >= ARGS_MAX || o->hook_argc + 3 >= ARGS_MAX)
		return err_new(e, ERR_LIMIT, "too many options");
	if (strncmp(values[0], "ca=", 3) == 0)
		o->server.gate_ca = values[0] + 3;
	if (strncmp(values[0], "key=", 4) == 0)
		o->server.gate_key = values[0] + 4;
	o->cache_argv[o->cache_argc++] = flag;
	o->cache_argv[o->cache_argc++] = values[0];
	o->hook_argv[o->hook_argc++] = flag;
	o->hook_argv[o->hook_argc++] = values[0];
	return 0;
}

static int add_approvals(struct options *o, char **values, struct err *e)
{
	static char flag[] = "--approvals";

	if (strncmp(values[0], "key=", 4) == 0) {
		o->server.hook_key = values[0] + 4;
		return 0;
	}
	if (o->hook_argc + 3 >= ARGS_MAX)
		return err_new(e, ERR_LIMIT, "too many options");
	o->has_webhook |= strncmp(values[0], "webhook=", 8) == 0;
	o->hook_argv[o->hook_argc++] = flag;
	o->hook_argv[o->hook_argc++] = values[0];
	return 0;
}

static int add_ledger(struct options *o, char *flag, char *value, struct err *e)
{
	if (o->ledger_argc + 2 >= (int)COUNT(o->ledger_argv))
		return err_new(e, ERR_INVALID, "%s: twice", flag);
	o->ledger_argv[o->ledger_argc++] = flag;
	o->ledger_argv[o->ledger_argc++] = value;
	return 0;
}

static int set_keep_ledger(struct options *o, char **values, struct err *e)
{
	static char flag[] = "--keep-ledger";

	return add_ledger(o, flag, values[0], e);
}

static int set_ledger_burst(struct options *o, char **values, struct err *e)
{
	static char flag[] = "--ledger-burst";

	return add_ledger(o, flag, values[0], e);
}

static int set_on_demand(struct options *o, char **values, struct err *e)
{
	(void)values;
	(void)e;
	o->is_on_demand = true;
	return 0;
}

/* What the daemon is told too. */
/* clang-format off */
static const struct option {
	const char *name;
	int n_values;
	bool is_daemons;
	int (*set)(struct options *o, char **values, struct err *e); /* NULL: only the daemon's */
} table[] = {
	{ "--state",        1, true,  set_state },
	{ "--run",          1, true,  set_run },
	{ "--listen",       1, true,  NULL },
	{ "--tls",          2, true,  NULL },
	{ "--idle-exit",    1, true,  NULL },
	{ "--ttl",          1, true,  NULL },
	{ "--keep-records", 1, true,  NULL },
	{ "--keep-trash",   1, true,  NULL },
	{ "--keep-ledger",  1, false, set_keep_ledger },
	{ "--ledger-burst", 1, false, set_ledger_burst },
	{ "--process-events", 1, true, NULL },
	{ "--domain", 1, true, NULL },
	{ "--ports",        1, true,  NULL },
	{ "--log",          1, true,  NULL },
	{ "--net",          1, true,  add_net },
	{ "--approvals",    1, true,  add_approvals },
	{ "--quota",        1, true,  NULL },
	{ "--store",        1, true,  NULL },
	{ "--default",      1, true,  NULL },
	{ "--most",         1, true,  NULL },
	{ "--on-demand",    0, true,  set_on_demand },
	{ "--host-path",    1, false, add_host_path },
	{ "--service-id",   1, false, set_service_id },
};
/* clang-format on */

static const struct option *find(const char *name)
{
	for (size_t i = 0; i < COUNT(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

static int read_options(struct options *o, int argc, char **argv, struct err *e)
{
	static char name[] = "caissond";

	o->argv[o->argc++] = name;
	for (int i = 1; i < argc;) {
		const struct option *opt = find(argv[i]);

		if (!opt)
			return err_new(e, ERR_INVALID, "unknown option %s", argv[i]);
		if (i + opt->n_values >= argc)
			return err_new(e, ERR_INVALID, "%s wants %d value%s", opt->name,
			               opt->n_values, opt->n_values == 1 ? "" : "s");
		if (opt->set && opt->set(o, argv + i + 1, e) < 0)
			return -1;
		if (o->argc + 3 >= ARGS_MAX)
			return err_new(e, ERR_LIMIT, "too many options");
		for (int j = 0; j <= opt->n_values && opt->is_daemons; j++)
			o->argv[o->argc++] = argv[i + j];
		i += opt->n_values + 1;
	}
	if (!o->server.state || !o->server.run)
		return err_new(e, ERR_INVALID, "--state and --run are needed");
	return 0;
}

/* A socket that systemd made comes as descriptor 3 and is announced to this very process. */
static int take_given(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	char own[16];

	snprintf(own, sizeof own, "%d", getpid());
	if (!pid || !n || strcmp(pid, own) != 0 || strcmp(n, "1") != 0)
		return -1;
	return fcntl(GIVEN_FD, F_GETFD) < 0 ? -1 : GIVEN_FD;
}

/* The standard three exist, and nothing else of the caller's reaches a child. */
static int clean_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR); /* inherited on purpose, if one of the three */
	while (fd >= 0 && fd < 3);
	if (fd >= 0)
		close(fd);
	return os_close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
}

/* Started by a command of a user: not of its session, its terminal or its folder. */
static void leave_session(void)
{
	(void)os_setsid(); /* fails for a leader, who needs it not */
	(void)os_chdir("/");
}

int main(int argc, char **argv)
{
	static const char *const not_daemons[] = { "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS",
		                                   "LISTEN_FDNAMES" };
	struct options o = { .server = { .service_id = SERVER_ID, .api_fd = -1 } };
	char daemon[PATH_TEXT_MAX], notify[PATH_TEXT_MAX] = "";
	struct err e = { 0 };

	fault_init();
	umask(022); /* folders of cgroups are read by monitors; all else says its mode */
	signal(SIGCHLD, SIG_DFL); /* ignored by some callers: then no child could be waited for */
	if (read_options(&o, argc, argv, &e) < 0) {
		fprintf(stderr, "caisson-launcher: %s\n%s", e.msg, usage);
		return STATUS_OURS;
	}
	o.server.api_fd = take_given(); /* before the numbers are used for something else */
	int r = clean_descriptors();
	if (r < 0) {
		fprintf(stderr, "caisson-launcher: close what was inherited: %s\n", strerror(-r));
		return STATUS_OURS;
	}
	if (o.is_on_demand)
		leave_session();
	if (getenv("NOTIFY_SOCKET"))
		snprintf(notify, sizeof notify, "%s", getenv("NOTIFY_SOCKET"));
	for (size_t i = 0; i < COUNT(not_daemons); i++)
		unsetenv(not_daemons[i]);
	o.server.notify = notify[0] ? notify : NULL;
	o.server.daemon = daemon;
	o.server.argv = o.argv;
	o.server.cache_args = o.cache_argv;
	o.server.ledger_args = o.ledger_argv;
	o.server.hook_args = o.has_webhook ? o.hook_argv : NULL;
	r = sealkey_take(o.server.gate_key, &e);
	/* Every monitor has our memory, and the daemon our environment: neither needs a token. */
	program_clean_environment(NULL);
	o.server.env = environ;
	if (r == 0)
		r = program_find("caissond", daemon, &e);
	if (r == 0)
		r = server_run(&o.server, monitor_main, &e);
	if (r < 0)
		fprintf(stderr, "caisson-launcher: %s\n", e.msg);
	return r >= 0 ? r : e.sys == EBUSY ? STATUS_BUSY : STATUS_OURS;
}
