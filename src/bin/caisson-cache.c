/*
 * caisson-cache [--ca FILE]... [--net NAME=VALUE]... - the package cache of all sandboxes.
 *
 * Descriptor 3 is the launcher, 4 is where the gate's children come, 5 the folder that it keeps
 * everything in. --net is what the daemon is told too: `ca`, `cache` and `proxy` of it count here.
 * It has no secrets and no rights but to write that folder and to open sockets.
 */
#include "cache/serve.h"
#include "gate/ends.h"
#include "io/journal.h"
#include "spec/config.h"

enum { LAUNCHER_FD = 3, GATES_FD = 4, DIR_FD = 5 };

static int read_options(int argc, char **argv, struct config *c, struct err *e)
{
	for (int i = 1; i < argc; i += 2) {
		bool is_ca = strcmp(argv[i], "--ca") == 0;

		if ((!is_ca && strcmp(argv[i], "--net") != 0) || i + 1 == argc)
			return err_new(e, ERR_INVALID,
			               "usage: caisson-cache [--ca FILE]... [--net NAME=VALUE]...");
		if (is_ca ? ends_trust(argv[i + 1], e) < 0
		          : config_flag(c, "net", argv[i + 1], e) < 0)
			return -1;
	}
	return c->net.ca ? ends_trust(c->net.ca, e) : 0;
}

int main(int argc, char **argv)
{
	struct config config;
	struct err e = { 0 };

	clearenv(); /* libraries listen to it */
	journal_open("caisson-cache", JOURNAL_INFO);
	config_init(&config);
	int r = read_options(argc, argv, &config, &e);
	const struct serve_opts opts = { .launcher_fd = LAUNCHER_FD,
		                         .gates_fd = GATES_FD,
		                         .dir_fd = DIR_FD,
		                         .max = config_cache_bytes(&config.net),
		                         .proxy = config.net.proxy };

	if (r == 0)
		r = serve_run(&opts, &e);
	config_done(&config);
	if (r < 0) {
		journal(JOURNAL_ERROR, "the package cache ended", "reason", e.msg, NULL);
		return 125;
	}
	return 0;
}
