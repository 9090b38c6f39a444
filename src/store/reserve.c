/*
 * reserve.c - room on the disk that is ours before it is full.
 *
 * Blocks behind the end of the log and of the database are allocated ahead. When somebody fills
 * the disk, what was committed can still be copied into the database, and changes of existing
 * rows go on: the log is written in circles within its blocks. New rows are refused from the
 * moment on that the reserve cannot be kept, and taken again when it can.
 *
 * The two descriptors live as long as the connections: closing any descriptor of the database
 * would drop the locks that SQLite holds on it (fcntl(2), "Advisory record locking").
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "store/store-internal.h"

#define LOG_RESERVE (16ll << 20)     /* WAL_PAGES_MAX */
#define DATABASE_RESERVE (8ll << 20) /* what a log of WAL_PAGES_GOAL can add to it */

/* Returns false when the disk is full; a file system that cannot do it is not full. */
static bool allocate(int fd, int64_t behind_end)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return true;
	return fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, st.st_size + behind_end) == 0 ||
	       (errno != ENOSPC && errno != EDQUOT);
}

void reserve_keep(struct store *s)
{
	struct stat st = { 0 };
	int64_t log_bytes = 0;

	if (s->reserve.wal_fd >= 0 && fstat(s->reserve.wal_fd, &st) == 0)
		log_bytes = st.st_size; /* it never shrinks while open, so it counts */
	bool has_log =
	    log_bytes >= LOG_RESERVE || allocate(s->reserve.wal_fd, LOG_RESERVE - log_bytes);

	s->reserve.is_tight = !has_log || !allocate(s->reserve.db_fd, DATABASE_RESERVE);
}

void reserve_init(struct store *s)
{
	s->reserve.db_fd = openat(s->dir_fd, "caisson.db", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	s->reserve.wal_fd = openat(s->dir_fd, "caisson.db-wal", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	reserve_keep(s);
}

void reserve_done(struct store *s)
{
	fd_close(&s->reserve.db_fd);
	fd_close(&s->reserve.wal_fd);
}
