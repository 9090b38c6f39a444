/*
 * caisson-vault - the storage of one workspace, or of all of them; what it finds at its start and
 * what it is asked for: wire/vault.h.
 *
 * It has the right to mount, because layers as they lie on disk are nobody else's business; so it
 * sees no file but those of the store, no network, no name or number that it would interpret.
 */
#include <jansson.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "io/journal.h"
#include "os/fault.h"
#include "vault/serve.h"

int main(void)
{
	struct err e = { 0 };

	fault_init();
	size_t seed = 0;

	clearenv();
	(void)!getrandom(&seed, sizeof seed, 0);
	json_object_seed(seed | 1); /* else the library would look for /dev/urandom */
	umask(0);
	journal_open("caisson-vault", JOURNAL_INFO);
	if (vault_run(&e) < 0) {
		journal(JOURNAL_ERROR, "the vault ended", "reason", e.msg, NULL);
		return 125;
	}
	return 0;
}
