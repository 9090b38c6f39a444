#include "cli/packer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/escape.h"
#include "cli/pack.h"

ssize_t file_read(void *arg, char *buf, size_t size, struct err *e)
{
	const int *fd = arg;
	ssize_t n;

	do
		n = read(*fd, buf, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, errno, "read") : n;
}

/* In the child: everything of the caller's, nothing of the connection matters. */
static _Noreturn void pack_and_exit(const struct packer *p, int fd)
{
	struct err e = { 0 };

	signal(SIGPIPE, SIG_DFL); /* when the reader gives up */
	int r = p->names ? pack_files(p->path, p->names, fd, &e) : pack_folder(p->path, fd, &e);
	if (r < 0) {
		fprintf(stderr, "caisson: %s\n", escape_brief(e.msg));
		_exit(EXIT_FAILURE);
	}
	_exit(EXIT_SUCCESS);
}

int packer_start(struct packer *p, struct err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	p->pid = fork();
	if (p->pid == 0)
		pack_and_exit(p, fds[1]);
	close(fds[1]);
	p->fd = fds[0];
	if (p->pid < 0) {
		fd_close(&p->fd);
		return err_sys(e, errno, "fork");
	}
	return 0;
}

int packer_wait(struct packer *p)
{
	int status = -1;

	fd_close(&p->fd);
	if (p->pid > 0)
		while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
			;
	p->pid = -1;
	return status;
}

/* An archive that is not whole must not look like one. */
ssize_t packer_read(void *arg, char *buf, size_t size, struct err *e)
{
	struct packer *p = arg;
	ssize_t n = file_read(&p->fd, buf, size, e);

	if (n == 0 && packer_wait(p) != 0)
		return err_new(e, ERR_INVALID, "%s could not be read", p->path);
	return n;
}
