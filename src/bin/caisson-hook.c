/*
 * caisson-hook --approvals webhook=URL [--net NAME=VALUE]... - tells somebody by HTTP what waits
 * for a person (docs/approvals.md).
 *
 * Descriptor 3 is the launcher, which brings the sockets of daemons; 4 its folder, which it does
 * not use; 5 the file with the key that it signs by. Of --net, `ca` and `proxy` count. It has no
 * rights but to open sockets, and reads nothing that a sandbox wrote but what it sends on.
 */
#include "gate/ends.h"
#include "gate/harden.h"
#include "hook/serve.h"
#include "io/journal.h"
#include "spec/config.h"

enum { LAUNCHER_FD = 3, KEY_FD = 5 };

static int read_options(int argc, char **argv, struct config *c, struct err *e)
{
	for (int i = 1; i < argc; i += 2) {
		bool is_known =
		    strcmp(argv[i], "--net") == 0 || strcmp(argv[i], "--approvals") == 0;

		if (!is_known || i + 1 == argc)
			return err_new(e, ERR_INVALID,
			               "usage: caisson-hook --approvals webhook=URL [--net "
			               "NAME=VALUE]...");
		if (config_flag(c, argv[i] + 2, argv[i + 1], e) < 0)
			return -1;
	}
	if (!c->approvals.webhook)
		return err_new(e, ERR_INVALID, "no webhook is named");
	return c->net.ca ? ends_trust(c->net.ca, e) : 0;
}

int main(int argc, char **argv)
{
	struct config config;
	struct err e = { 0 };

	clearenv(); /* libraries listen to it */
	harden_memory();
	journal_open("caisson-hook", JOURNAL_INFO);
	config_init(&config);
	int r = read_options(argc, argv, &config, &e);

	if (r == 0)
		r = serve_run(&(struct serve_opts){ .launcher_fd = LAUNCHER_FD,
		                                    .key_fd = KEY_FD,
		                                    .url = config.approvals.webhook,
		                                    .proxy = config.net.proxy },
		              &e);
	config_done(&config);
	if (r < 0) {
		journal(JOURNAL_ERROR, "the sender of webhooks ended", "reason", e.msg, NULL);
		return 125;
	}
	return 0;
}
