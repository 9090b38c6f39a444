#include "tree/settle.h"

#include "base/fd.h"
#include "tree/sys.h"

#define FILES_MAX 16

static int files[FILES_MAX];
static size_t n_files;

bool settle_is_due(void)
{
	return n_files > 0;
}

void settle_now(void)
{
	for (size_t i = 0; i < n_files; i++) {
		(void)sys_start_writing(files[i]); /* a care, not a promise */
		fd_close(&files[i]);
	}
	n_files = 0;
}

void settle_later(int fd)
{
	if (n_files == FILES_MAX)
		settle_now();
	files[n_files++] = fd;
}
