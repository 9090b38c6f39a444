#include "cli/sealer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "cli/client.h"
#include "io/program.h"

#define PIECE 4096

/* In the child: the caller's rights, and nothing open but the two pipes. */
static _Noreturn void become_sealer(char *program, int in_fd, int out_fd)
{
	static char seal[] = "--seal";
	char *const argv[] = { program, seal, NULL }, *const env[] = { NULL };

	if (dup2(in_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0)
		execve(program, argv, env);
	_exit(126);
}

static int read_answer(int fd, struct str *out, struct err *e)
{
	char buf[PIECE];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) != 0) {
		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "seal the value");
		if (n > 0)
			str_addn(out, buf, (size_t)n);
	}
	return 0;
}

#define PARTS 3 /* the head, what stands beside the value, the value */

/* All of it fits in a pipe: it is written before anything is read. */
static int talk(int *to_fd, int from_fd, const struct span parts[PARTS], struct str *out,
                struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < PARTS && r == 0; i++)
		r = write_all(*to_fd, parts[i].at, parts[i].len, e);
	fd_close(to_fd);
	return r < 0 ? -1 : read_answer(from_fd, out, e);
}

int sealer_run(const uint8_t key[SEAL_KEY_BYTES], struct span aad, struct span value,
               struct str *out, struct err *e)
{
	struct sealing_head head = { .aad_len = (uint32_t)aad.len };
	char program[PATH_TEXT_MAX];
	int in[2], answer[2], status = 0;

	memcpy(head.key, key, sizeof head.key);
	if (program_find("caisson-gate", program, e) < 0)
		return -1;
	if (pipe2(in, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	AUTO(fd_close) int in_read = in[0];
	AUTO(fd_close) int in_write = in[1];
	if (pipe2(answer, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	AUTO(fd_close) int out_read = answer[0];
	AUTO(fd_close) int out_write = answer[1];
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, errno, "fork");
	if (pid == 0)
		become_sealer(program, in_read, out_write);
	fd_close(&in_read);
	fd_close(&out_write);
	const struct span parts[PARTS] = { { (const char *)&head, sizeof head }, aad, value };
	int r = talk(&in_write, out_read, parts, out, e);

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || out->len == 0))
		r = err_new(e, ERR_INTERNAL, "the value could not be sealed");
	return r;
}
