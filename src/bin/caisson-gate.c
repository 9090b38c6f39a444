/*
 * caisson-gate [--ca FILE]... - the network of all sandboxes that have one; descriptor 3 is the
 * launcher, 4 the way to the package cache, 5 the key that secrets are sealed to, if there are
 * such. Servers upstream are trusted by the host's certificates, and by those in FILE.
 *
 * caisson-gate --seal - seals a value for `caisson secret` (gate/sealing.h).
 *
 * It has no rights but to open sockets, and gives up what else a process has before it reads
 * anything (gate/harden.h). Every sandbox has a child of its own, which holds nothing of another.
 */
#include <fcntl.h>
#include <unistd.h>

#include "gate/ends.h"
#include "gate/harden.h"
#include "gate/master.h"
#include "gate/sealing.h"
#include "io/journal.h"

enum { LAUNCHER_FD = 3, CACHE_FD = 4, KEY_FD = 5 };

static int given(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

static int read_options(int argc, char **argv, struct err *e)
{
	for (int i = 1; i < argc; i += 2) {
		if (strcmp(argv[i], "--ca") != 0 || i + 1 == argc)
			return err_new(e, ERR_INVALID, "usage: caisson-gate [--ca FILE]...");
		if (ends_trust(argv[i + 1], e) < 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };

	harden_memory();
	if (argc == 2 && strcmp(argv[1], "--seal") == 0) {
		if (harden_process(&e) == 0 && sealing_run(STDIN_FILENO, STDOUT_FILENO, &e) == 0)
			return 0;
		fprintf(stderr, "caisson-gate: %s\n", e.msg);
		return 125;
	}
	/* Before others have the numbers. */
	const struct master_opts opts = { .launcher_fd = LAUNCHER_FD,
		                          .cache_fd = given(CACHE_FD),
		                          .key_fd = given(KEY_FD) };

	clearenv(); /* libraries listen to it */
	journal_open("caisson-gate", JOURNAL_INFO);
	if (read_options(argc, argv, &e) < 0 || master_run(&opts, &e) < 0) {
		journal(JOURNAL_ERROR, "the gate ended", "reason", e.msg, NULL);
		return 125;
	}
	return 0;
}
