/*
 * caissond.c - main() of the daemon: options, descriptors 3 (the launcher) and 4 (the API's
 * socket), the loop. Started by caisson-launcher, without any right.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/forward.h"
#include "core/core.h"

#define STATUS_USAGE 125
#define LAUNCHER_FD 3
#define API_FD 4
#define LISTEN_MAX 8
#define KEEP_RECORDS_MS (30ull * 24 * 3600 * 1000)

struct options {
	struct core_config config;
	const char *listen[LISTEN_MAX];
	size_t n_listen;
	const char *cert, *key;
};

/* clang-format off */
static const struct {
	const char *name;
	int n_values;
} table[] = {
	{ "--state",     1 },
	{ "--run",       1 },
	{ "--listen",    1 },
	{ "--tls",       2 },
	{ "--idle-exit", 1 },
	{ "--on-demand", 0 },
};
/* clang-format on */

static int set(struct options *o, const char *name, char **values, struct err *e)
{
	if (strcmp(name, "--state") == 0)
		o->config.state_dir = values[0];
	else if (strcmp(name, "--run") == 0)
		o->config.run_dir = values[0];
	else if (strcmp(name, "--idle-exit") == 0)
		o->config.idle_exit_ms = strtoull(values[0], NULL, 10) * 1000;
	else if (strcmp(name, "--tls") == 0) {
		o->cert = values[0];
		o->key = values[1];
	} else if (strcmp(name, "--listen") == 0) {
		if (o->n_listen == LISTEN_MAX)
			return err_new(e, ERR_LIMIT, "more than %d addresses", LISTEN_MAX);
		o->listen[o->n_listen++] = values[0];
	}
	return 0;
}

static int read_options(struct options *o, int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc;) {
		size_t k = 0;

		while (k < COUNT(table) && strcmp(table[k].name, argv[i]) != 0)
			k++;
		if (k == COUNT(table) || i + table[k].n_values >= argc)
			return err_new(e, ERR_INVALID, "%s: unknown, or its value is missing",
			               argv[i]);
		if (set(o, argv[i], argv + i + 1, e) < 0)
			return -1;
		i += table[k].n_values + 1;
	}
	if (!o->config.state_dir || !o->config.run_dir)
		return err_new(e, ERR_INVALID, "--state and --run are needed");
	return 0;
}

static struct loop loop;
static struct core core;
static struct api api;
static struct watch signals;

/* An orderly end: sandboxes that are kept live on, their monitors have all that matters. */
static void on_signal(struct watch *w, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	if (read(w->fd, &info, sizeof info) == (ssize_t)sizeof info && info.ssi_signo != SIGHUP)
		loop.is_done = true;
}

static int watch_signals(struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signals = (struct watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		                  .ready = on_signal };
	int r = signals.fd < 0 ? -errno : loop_add(&loop, &signals, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch signals") : 0;
}

static int listen_all(const struct options *o, struct err *e)
{
	if (server_listen_unix(api.server, API_FD, e) < 0)
		return -1;
	for (size_t i = 0; i < o->n_listen; i++) {
		int port = server_listen_tcp(api.server, o->listen[i], o->cert, o->key, e);

		if (port < 0)
			return err_wrap(e, "listen on %s", o->listen[i]);
		fprintf(stderr, "caissond: listening on %s (port %d)\n", o->listen[i], port);
	}
	return 0;
}

/* Many clients, sandboxes and logs: as many descriptors as there may be. */
static void raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* then it is less */
}

static int serve(const struct options *o, struct err *e)
{
	int r = loop_init(&loop);

	if (r < 0)
		return err_sys(e, -r, "make the loop");
	if (watch_signals(e) < 0 || core_open(&core, &loop, &o->config, LAUNCHER_FD, e) < 0)
		return -1;
	api = (struct api){ .core = &core };
	api_init(&api);
	api.server = server_new(&loop, &api_ops, (struct server_limits){ 0 }, e);
	if (!api.server || forwards_open(&api, e) < 0 || listen_all(o, e) < 0)
		return -1;
	core_ready(&core);
	r = loop_run(&loop);
	server_free(api.server);
	forwards_close();
	core_close(&core);
	return r < 0 ? err_sys(e, -r, "wait") : 0;
}

int main(int argc, char **argv)
{
	struct options o = { .config = { .keep_records_ms = KEEP_RECORDS_MS } };
	struct err e = { 0 };

	(void)prctl(PR_SET_DUMPABLE, 0); /* nobody looks into who parses everybody's requests */
	raise_limits();
	if (read_options(&o, argc, argv, &e) == 0 && serve(&o, &e) == 0)
		return 0;
	fprintf(stderr, "caissond: %s\n", e.msg);
	return STATUS_USAGE;
}
