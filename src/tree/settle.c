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

/* Replaced again: what is written for nobody would only have to be waited for. */
static bool is_gone(int fd)
{
	struct stat st;

	return sys_fstat(fd, &st) == 0 && st.st_nlink == 0;
}

static void drop_gone(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < n_files; i++) {
		if (is_gone(files[i]))
			fd_close(&files[i]);
		else
			files[kept++] = files[i];
	}
	n_files = kept;
}

void settle_now(void)
{
	drop_gone();
	for (size_t i = 0; i < n_files; i++) {
		(void)os_start_writing(files[i]); /* a care, not a promise */
		fd_close(&files[i]);
	}
	n_files = 0;
}

void settle_later(int fd)
{
	if (n_files == FILES_MAX)
		drop_gone();
	if (n_files == FILES_MAX)
		settle_now();
	files[n_files++] = fd;
}
