/*
 * caisson-tree [ROOT] - the tree worker; descriptor 3 is its one connection.
 *
 * Started inside finished walls by the sandbox's monitor; it gives up nothing because it has
 * nothing. Not dumpable: the sandbox's other processes run as the same user, and what they could
 * read or write in this one would be words put into its mouth.
 */
#include <jansson.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "os/file.h"
#include "os/proc.h"
#include "tree/serve.h"
#include "tree/sys.h"

#define SOCKET_FD 3

int main(int argc, char **argv)
{
	if (os_prctl(PR_SET_DUMPABLE, 0) < 0)
		return 125;
	umask(0);                                   /* modes are what requests say */
	json_object_seed((size_t)sys_random() | 1); /* 0 would make the library open /dev/urandom */
	int root_fd = os_openat(AT_FDCWD, argc > 1 ? argv[1] : "/", O_PATH | O_DIRECTORY, 0);

	if (root_fd < 0)
		return 125;
	tree_serve(SOCKET_FD, root_fd);
	return 0;
}
