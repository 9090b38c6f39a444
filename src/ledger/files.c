#include "ledger/files.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/fd.h"
#include "os/file.h"
#include "wire/ledger.h"

static int by_seq(const void *a, const void *b)
{
	const struct file_entry *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* What is no segment is none of ours. */
static void add_file(int dir_fd, const char *name, struct files *out)
{
	struct file_entry f = { .seq = ledger_file_seq(name) };
	struct stat st;

	if (f.seq == 0 || os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return;
	f.bytes = (uint64_t)st.st_size;
	vec_push(out, f);
}

int files_list(int dir_fd, struct files *out, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return err_sys(e, fd < 0 ? -fd : errno, "list the ledger");
	(void)fd_take(&fd);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		add_file(dir_fd, d->d_name, out);
	closedir(dir);
	if (out->len > 1)
		qsort(out->at, out->len, sizeof *out->at, by_seq);
	return 0;
}

int file_replace(int dir_fd, const char *name, const void *bytes, size_t n, struct err *e)
{
	char temp[64];

	snprintf(temp, sizeof temp, "%s.new", name);
	AUTO(fd_close)
	int fd = os_openat(dir_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_write_all(fd, bytes, n);

	if (r >= 0)
		r = os_sync(fd);
	if (r >= 0)
		r = os_rename_in(dir_fd, temp, name);
	return r < 0 ? err_sys(e, -r, "write %s", name) : 0;
}
