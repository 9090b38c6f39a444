/*
 * caisson-vault - the storage of one workspace, or of all of them; what it finds at its start and
 * what it is asked for: wire/vault.h.
 *
 * It has the right to mount, because layers as they lie on disk are nobody else's business; so it
 * sees no file but those of the store, no network, no name or number that it would interpret.
 */
#include <sys/stat.h>

#include "io/journal.h"
#include "os/fault.h"
#include "vault/serve.h"

int main(void)
{
	struct err e = { 0 };

	fault_init();
	clearenv();
	umask(0);
	journal_open("caisson-vault", JOURNAL_INFO);
	if (vault_run(&e) < 0) {
		journal(JOURNAL_ERROR, "the vault ended", "reason", e.msg, NULL);
		return 125;
	}
	return 0;
}
