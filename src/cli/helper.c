#include "cli/helper.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "io/program.h"

/* In the child: the caller's rights; what it prints goes to the pipe. */
static _Noreturn void become(const char *program, const char *const *argv, int out_fd)
{
	char *const env[] = { NULL };

	if (dup2(out_fd, STDOUT_FILENO) >= 0)
		execve(program, (char *const *)(uintptr_t)argv, env);
	_exit(126);
}

static int read_all(int fd, struct str *out, struct err *e)
{
	char buf[16384];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) != 0) {
		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "read");
		if (n > 0)
			str_addn(out, buf, (size_t)n);
	}
	return out->overflow ? err_new(e, ERR_LIMIT, "it says too much") : 0;
}

int helper_ask(const char *const *argv, struct str *out, struct err *e)
{
	char program[PATH_TEXT_MAX];
	int fds[2], status = 0;

	if (program_find(argv[0], program, e) < 0)
		return -1;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	AUTO(fd_close) int read_fd = fds[0];
	AUTO(fd_close) int write_fd = fds[1];
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, errno, "fork");
	if (pid == 0)
		become(program, argv, write_fd);
	fd_close(&write_fd);
	int r = read_all(read_fd, out, e);

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return -1;
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return err_new(e, ERR_INTERNAL, "%s failed", argv[0]);
	return WEXITSTATUS(status);
}
