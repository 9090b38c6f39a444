#include "core/spool.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "os/extent.h"
#include "os/file.h"

struct entry {
	uint32_t n, zero; /* of the packet behind it */
	char life[LEDGER_LIFE_SIZE];
};

static bool is_entry(const struct entry *x, uint64_t left)
{
	return x->n <= left && x->n <= LEDGER_PACKET_MAX && memchr(x->life, '\0', sizeof x->life);
}

/* What is torn, or of another program, ends it. */
static void read_all(const struct spool *s, spool_fn *found, void *arg)
{
	union ledger_packet *p = mem_alloc(sizeof *p);
	struct entry x;
	uint64_t at = 0;

	while (s->bytes - at >= sizeof x && os_pread(s->fd, &x, sizeof x, (off_t)at) == sizeof x &&
	       is_entry(&x, s->bytes - at - sizeof x) &&
	       os_pread(s->fd, p, x.n, (off_t)(at + sizeof x)) == (int)x.n &&
	       ledger_append_check(&p->append, x.n)) {
		found(arg, x.life, &p->append, x.n);
		at += sizeof x + x.n;
	}
	free(p);
}

int spool_open(struct spool *s, const char *state_dir, spool_fn *found, void *arg, struct err *e)
{
	char path[PATH_TEXT_MAX];
	struct stat st;

	*s = (struct spool){ .fd = -1 };
	snprintf(path, sizeof path, "%s/ledger.spool", state_dir);
	s->fd = os_openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	int r = s->fd < 0 ? s->fd : os_fstatat(s->fd, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "open %s", path);
	s->bytes = (uint64_t)st.st_size;
	s->has_old = s->bytes > 0;
	read_all(s, found, arg);
	return 0;
}

/* A full disk is the writer's to tell of; what is said goes on its way all the same. */
bool spool_add(struct spool *s, const char *life, const struct ledger_append *packet, size_t n)
{
	struct entry x = { .n = (uint32_t)n };

	if (s->fd < 0 || s->bytes + sizeof x + n > SPOOL_BYTES_MAX)
		return false;
	snprintf(x.life, sizeof x.life, "%s", life);
	if (os_pwrite2(s->fd, &x, sizeof x, packet, n, (off_t)s->bytes) < 0)
		return false;
	s->bytes += sizeof x + n;
	return true;
}

void spool_clear(struct spool *s)
{
	if (s->fd < 0 || s->bytes == 0 || (s->bytes < SPOOL_KEPT && !s->has_old))
		return;
	if (os_ftruncate(s->fd, 0) < 0)
		return;
	s->bytes = 0;
	s->has_old = false;
}

void spool_close(struct spool *s)
{
	fd_close(&s->fd);
}
