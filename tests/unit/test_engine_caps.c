#include "engine/caps.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "os/caps.h"
#include "os/proc.h"
#include "test.h"

/* Whatever fs.suid_dumpable makes of a change of ids: here the process is dumpable before, and its
 * ids stay, so that the kernel does not close it by itself. */
TEST(a_process_without_rights_is_closed_to_others)
{
	struct err e = { 0 };

	CHECK_INT(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	CHECK_INT(caps_drop_all(geteuid(), getegid(), &e), 0);
	CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}

TEST(a_command_that_changes_its_ids_is_closed_to_others)
{
	static const struct plan plan;
	const struct command command = { .uid = 65534, .gid = 65534 };
	struct err e = { 0 };

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(caps_drop(&plan, &command, &e), 0);
	CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	CHECK_INT(geteuid(), 65534);
}
