#include "vault/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/names.h"
#include "vault/trees.h"
#include "vault/verbs.h"
#include "wire/room.h"

bool reserve_lacks_inodes(const struct vault *v)
{
	struct statfs fs;

	if (os_fstatfs(v->blobs_fd, &fs) < 0)
		return false;
	const struct room room = { .inodes = fs.f_files, .inodes_free = fs.f_ffree };

	return room_lacks_inodes(&room);
}

static int reserve_folder(const struct vault *v, struct err *e)
{
	int r = os_mkdirat(v->blobs_fd, RESERVE_FOLDER, 0700);
	int fd = r < 0 && r != -EEXIST ? r
	                               : os_openat(v->blobs_fd, RESERVE_FOLDER,
	                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	return fd < 0 ? err_sys(e, -fd, "open the folder of reserved inodes") : fd;
}

/* Files 0 to n - 1 are there, no others. */
static int reserve_set(int fd, const struct names *there, uint64_t n, struct err *e)
{
	char name[TREE_NAME_MAX];
	int r = 0;

	for (size_t i = 0; i < there->list.len && r >= 0; i++)
		if (strtoull(there->list.at[i].text, NULL, 10) >= n)
			r = os_unlinkat(fd, there->list.at[i].text);
	for (uint64_t i = 0; there->list.len < n && i < n && r >= 0; i++) {
		trees_name(i, name);
		r = os_mknodat(fd, name, S_IFREG | 0400, 0);
		r = r == -EEXIST ? 0 : r;
	}
	return r < 0 ? err_sys(e, -r, "keep inodes in reserve") : 0;
}

int verb_reserve(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                 struct err *e)
{
	AUTO(names_done) struct names there = { 0 };
	AUTO(fd_close) int folder = reserve_folder(v, e);

	(void)fd;
	if (folder < 0 || names_read(folder, &there, e) < 0 ||
	    reserve_set(folder, &there, ask->tree.number, e) < 0)
		return -1;
	done->files = ask->tree.number;
	return 0;
}
