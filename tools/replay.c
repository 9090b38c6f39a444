/*
 * replay.c - runs a fuzz harness over its stored inputs, as an ordinary test.
 *
 *     replay_x CORPUS
 *
 * An input that once broke something, or that reaches a corner, stays in tests/fuzz/corpus. The
 * harness aborts on what it does not like and ASan on the rest; the last name printed is to blame.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An exact copy on the heap, so that ASan sees the first byte read too far. */
static void replay(int dirfd, const char *name)
{
	AUTO(fd_close) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		err(1, "%s", name);
	size_t size = (size_t)st.st_size;
	AUTO(freep) uint8_t *data = malloc(size);

	if (read(fd, data, size) != st.st_size)
		err(1, "%s", name);
	printf("# %s\n", name);
	LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv)
{
	const char *corpus = argc == 2 ? argv[1] : "";
	DIR *dir = opendir(corpus);
	int count = 0;

	if (!dir)
		err(1, "corpus %s", corpus);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		replay(dirfd(dir), entry->d_name);
		count++;
	}
	closedir(dir);
	printf("%s 1 - %d inputs of %s\n1..1\n", count > 0 ? "ok" : "not ok", count, corpus);
	return count > 0 ? 0 : 1;
}
