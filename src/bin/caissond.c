/*
 * caissond.c - main() of the daemon: options, descriptors 3 (the launcher) and 4 (the API's
 * socket), the loop. Started by caisson-launcher, without any right.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/forward.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/str.h"
#include "compat/compat.h"
#include "core/core.h"
#include "e2b/e2b.h"
#include "io/journal.h"
#include "mcp/mcp.h"
#include "spec/config.h"

#define STATUS_USAGE 125
#define LAUNCHER_FD 3
#define API_FD 4
/* What the launcher passes on; the values are the config's (spec/config.h). */
/* clang-format off */
static const struct {
	const char *name;
	int n_values;
} table[] = {
	{ "--state",        1 },
	{ "--run",          1 },
	{ "--listen",       1 },
	{ "--tls",          2 },
	{ "--idle-exit",    1 },
	{ "--ttl",          1 },
	{ "--keep-records", 1 },
	{ "--keep-trash",   1 },
	{ "--process-events", 1 },
	{ "--domain",       1 },
	{ "--ports",        1 },
	{ "--log",          1 },
	{ "--net",          1 },
	{ "--approvals",    1 },
	{ "--quota",        1 },
	{ "--store",        1 },
	{ "--default",      1 },
	{ "--most",         1 },
	{ "--on-demand",    0 },
};
/* clang-format on */

static int set_tls(struct config *c, char **values, struct err *e)
{
	static const char *const parts[] = { "cert", "key" };

	for (size_t i = 0; i < COUNT(parts); i++) {
		char text[PATH_TEXT_MAX + 8];

		snprintf(text, sizeof text, "%s=%s", parts[i], values[i]);
		if (config_flag(c, "tls", text, e) < 0)
			return -1;
	}
	return 0;
}

static int set(struct config *c, const char *name, char **values, int n, struct err *e)
{
	if (n == 2)
		return set_tls(c, values, e);
	return n == 1 ? config_flag(c, name + 2, values[0], e) : 0;
}

static int read_options(struct config *c, int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc;) {
		size_t k = 0;

		while (k < COUNT(table) && strcmp(table[k].name, argv[i]) != 0)
			k++;
		if (k == COUNT(table) || i + table[k].n_values >= argc)
			return err_new(e, ERR_INVALID, "%s: unknown, or its value is missing",
			               argv[i]);
		if (set(c, argv[i], argv + i + 1, table[k].n_values, e) < 0)
			return -1;
		i += table[k].n_values + 1;
	}
	if (!c->state || !c->run)
		return err_new(e, ERR_INVALID, "--state and --run are needed");
	config_resolve(c);
	return 0;
}

static struct core_config core_config_of(const struct config *c)
{
	struct core_config out = { .state_dir = c->state,
		                   .run_dir = c->run,
		                   .quota = c->quota,
		                   .disk = c->store,
		                   .net = &c->net,
		                   .ttl_ms = c->ttl_ms,
		                   .keep_records_ms = c->keep_records_ms,
		                   .keep_trash_ms = c->keep_trash_ms,
		                   .has_webhook = c->approvals.webhook != NULL,
		                   .has_process_events = strcmp(c->process_events, "on") == 0,
		                   .idle_exit_ms = c->idle_exit_ms };

	memcpy(out.defaults, c->defaults.limits, sizeof out.defaults);
	memcpy(out.most, c->most.limits, sizeof out.most);
	return out;
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

/* http: is without TLS, though there is a certificate for the others. */
static int listen_at(const struct config *c, const char *address, struct err *e)
{
	if (strncmp(address, "unix:", 5) == 0)
		return server_listen_path(api.server, address + 5, e);
	if (strncmp(address, "http:", 5) == 0)
		return server_listen_tcp(api.server, address + 5, NULL, NULL, e);
	return server_listen_tcp(api.server, address, c->tls.cert, c->tls.key, e);
}

static int listen_all(const struct config *c, struct err *e)
{
	if (server_listen_unix(api.server, API_FD, e) < 0)
		return -1;
	for (size_t i = 0; i < c->listen.len; i++) {
		const char *address = c->listen.at[i];
		int port = listen_at(c, address, e);

		if (port < 0)
			return -1;
		AUTO(str_done) struct str words = { .max = (size_t)2 * PATH_TEXT_MAX };

		str_addf(&words, "listening on %s", address);
		if (port > 0)
			str_addf(&words, " (port %d)", port);
		journal(JOURNAL_INFO, str_text(&words), NULL);
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

/* It is the gate that reads it, which is nobody either: said now, and not by the first sandbox. */
static int check_ca(const char *path, struct err *e)
{
	AUTO(fd_close) int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	return path && fd < 0 ? err_sys(e, errno, "net.ca: open %s", path) : 0;
}

static int serve(const struct config *c, struct err *e)
{
	static const struct annex *const annexes[] = { &e2b_host_annex, &e2b_annex,   &mcp_annex,
		                                       &rex_annex,      &hands_annex, NULL };
	const struct core_config config = core_config_of(c);

	if (check_ca(c->net.ca, e) < 0)
		return -1;
	int r = loop_init(&loop);

	if (r >= 0)
		r = loop_pulse(&loop);
	if (r < 0)
		return err_sys(e, -r, "make the loop");
	if (watch_signals(e) < 0 || core_open(&core, &loop, &config, LAUNCHER_FD, e) < 0)
		return -1;
	api = (struct api){ .core = &core, .annexes = annexes };
	if (config_ports(c->ports, &api.ports, e) < 0)
		return -1;
	api_init(&api);
	api.server = server_new(&loop, &api_ops, (struct server_limits){ 0 }, e);
	if (!api.server || forwards_open(&api, e) < 0 || e2b_open(&api, c->domain, e) < 0 ||
	    listen_all(c, e) < 0)
		return -1;
	core_ready(&core);
	journal(JOURNAL_INFO, "requests are answered", NULL);
	r = loop_run(&loop);
	journal(JOURNAL_INFO, "the end", NULL);
	server_free(api.server);
	forwards_close();
	core_close(&core);
	return r < 0 ? err_sys(e, -r, "wait") : 0;
}

int main(int argc, char **argv)
{
	struct config c;
	struct err e = { 0 };

	(void)prctl(PR_SET_DUMPABLE, 0); /* nobody looks into who parses everybody's requests */
	raise_limits();
	config_init(&c);
	int r = read_options(&c, argc, argv, &e);
	if (r == 0)
		journal_open("caissond", journal_level_of(c.log));
	if (r == 0 && serve(&c, &e) == 0)
		return 0;
	fprintf(stderr, "caissond: %s\n", e.msg);
	return STATUS_USAGE;
}
