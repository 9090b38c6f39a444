/*
 * caisson-ledger - writes what crossed the wall, and nothing else.
 *
 * Descriptor 3 is the launcher, which brings the sockets of daemons; 4 the folder that is its own.
 * Whoever takes over the daemon can say new things here, and change nothing that was said.
 */
#include <openssl/crypto.h>

#include "io/journal.h"
#include "ledger/serve.h"

enum { LAUNCHER_FD = 3, DIR_FD = 4 };

int main(void)
{
	const struct serve_opts opts = { .launcher_fd = LAUNCHER_FD, .dir_fd = DIR_FD };
	struct err e = { 0 };

	clearenv(); /* libraries listen to it */
	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	journal_open("caisson-ledger", JOURNAL_INFO);
	if (serve_run(&opts, &e) == 0)
		return 0;
	journal(JOURNAL_ERROR, "the ledger ended", "reason", e.msg, NULL);
	return 125;
}
