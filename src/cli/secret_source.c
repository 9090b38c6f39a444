#include "cli/secret_source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/settings.h"

/* Its complaints are the caller's to read. */
static _Noreturn void become_command(const char *command, int out_fd)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(126);
}

static int start(struct secret_source *s, const char *command, struct err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	AUTO(fd_close) int from = fds[0];
	AUTO(fd_close) int to = fds[1];
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, errno, "fork");
	if (pid == 0)
		become_command(command, to);
	*s = (struct secret_source){ fd_take(&from), pid };
	return 0;
}

int secret_source_begin(struct secret_source *s, const char *name, struct err *e)
{
	AUTO(settings_done) struct settings settings;

	settings_init(&settings);
	if (settings_file(&settings, NULL, e) < 0)
		return -1;
	const struct pair_list *all = &settings.file.secrets;

	for (size_t i = 0; i < all->len; i++)
		if (strcmp(all->at[i].key, name) == 0)
			return start(s, all->at[i].value, e);
	return err_new(e, ERR_INVALID, "--from-config: %s has no secrets.%s",
	               settings.path[0] ? settings.path : "there is no config, which", name);
}

int secret_source_end(struct secret_source *s, struct err *e)
{
	int status = 0;

	fd_close(&s->fd);
	if (s->pid <= 0)
		return 0;
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_new(e, ERR_INVALID, "the command of the config failed with %d",
	               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
