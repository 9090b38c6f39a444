/*
 * pack_send.c - a folder of the caller's as the body of a request.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/pack.h"
#include "wire/escape.h"

ssize_t file_source(void *arg, char *buf, size_t size, struct err *e)
{
	const int *fd = arg;
	ssize_t n;

	do
		n = read(*fd, buf, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, errno, "read") : n;
}

/* A child packs while we send. */
struct packer {
	int fd;
	pid_t pid;
	struct pack_what what;
};

/* In the child: everything of the caller's, nothing of the connection matters. */
static _Noreturn void pack_and_exit(struct pack_what what, int fd)
{
	struct err e = { 0 };

	signal(SIGPIPE, SIG_DFL); /* when the reader gives up */
	int r =
	    what.names ? pack_files(what.path, what.names, fd, &e) : pack_folder(what.path, fd, &e);
	if (r < 0) {
		fprintf(stderr, "caisson: %s\n", escape_brief(e.msg));
		_exit(EXIT_FAILURE);
	}
	_exit(EXIT_SUCCESS);
}

static int packer_start(struct packer *p, struct err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	p->pid = fork();
	if (p->pid == 0)
		pack_and_exit(p->what, fds[1]);
	close(fds[1]);
	p->fd = fds[0];
	if (p->pid < 0) {
		fd_close(&p->fd);
		return err_sys(e, errno, "fork");
	}
	return 0;
}

static int packer_wait(struct packer *p)
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
static ssize_t read_packed(void *arg, char *buf, size_t size, struct err *e)
{
	struct packer *p = arg;
	ssize_t n = file_source(&p->fd, buf, size, e);

	if (n == 0 && packer_wait(p) != 0)
		return err_new(e, ERR_INVALID, "%s could not be read", p->what.path);
	return n;
}

int pack_send(struct client *c, const struct client_ask *ask, struct pack_what what, json_t **out,
              struct err *e)
{
	struct packer packer = { .fd = -1, .what = what };
	struct client_ask full = *ask;

	if (packer_start(&packer, e) < 0)
		return -1;
	full.type = ask->type ? ask->type : "application/x-tar";
	full.source = read_packed;
	full.arg = &packer;
	int r = client_json(c, &full, out, e);
	(void)packer_wait(&packer); /* it has ended, or nobody reads what it says */
	return r;
}
