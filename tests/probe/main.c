/*
 * main.c - finds the row, runs it, prints what happened.
 *
 * Exit: 0 at least one attempt is open, 1 all were stopped, 2 the probe failed.
 */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#define DETAIL_MAX 1600

static const struct row *const tables[] = {
	cap_rows, sys_rows, census_rows, nsp_rows, prc_rows,
	dev_rows, fds_rows, cgr_rows,    net_rows, verb_rows,
};

static struct {
	const char *id;
	int argc;
	char **argv;
	int open;
} run;

char memory_canary[32] = "caisson-memory-canary";

const char *arg(int n)
{
	return n < run.argc ? run.argv[n] : NULL;
}

long arg_number(int n, long otherwise)
{
	return arg(n) ? strtol(arg(n), NULL, 0) : otherwise;
}

long fill_file(int fd, long mib)
{
	static char block[1 << 20];
	long done = 0, all = mib * (long)sizeof block;

	while (done < all) {
		ssize_t n = write(fd, block, sizeof block);

		if (n <= 0)
			break;
		done += n;
	}
	return done / (long)sizeof block;
}

static void print_json_text(const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
}

static const char *err_name(int err)
{
	if (err == 0)
		return "0";
	const char *name = err > 0 ? strerrorname_np(err) : sigabbrev_np(-err);

	return name ? name : "?";
}

void report(const char *op, int err, bool open, const char *fmt, ...)
{
	char detail[DETAIL_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	printf("{\"id\":\"%s\",\"op\":\"", run.id);
	print_json_text(op);
	printf("\",\"errno\":\"%s%s\",\"open\":%s,\"detail\":\"", err < 0 ? "SIG" : "",
	       err_name(err), open ? "true" : "false");
	print_json_text(detail);
	printf("\"}\n");
	fflush(stdout);
	run.open += open;
}

static bool listed(const int *errnos, int err)
{
	for (; errnos && *errnos; errnos++)
		if (*errnos == err)
			return true;
	return false;
}

void attempt(const char *op, long r, const int *pass)
{
	int err = r < 0 ? errno : 0;

	report(op, err, r >= 0 || listed(pass, err), "%ld", r);
}

struct outcome {
	long r;
	int err;
};

void attempt_forked(const struct try *t)
{
	struct outcome o = { .r = -1, .err = EIO };
	int pipe_fd[2], status = 0;

	if (pipe(pipe_fd) < 0) {
		report(t->op, errno, false, "pipe");
		return;
	}
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		alarm(5);
		o.r = t->fn();
		o.err = errno;
		_exit(write(pipe_fd[1], &o, sizeof o) == (ssize_t)sizeof o ? 0 : 1);
	}
	close(pipe_fd[1]);
	ssize_t n = pid < 0 ? 0 : read(pipe_fd[0], &o, sizeof o);

	close(pipe_fd[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (n != (ssize_t)sizeof o) {
		report(t->op, WIFSIGNALED(status) ? -WTERMSIG(status) : EIO, false, "ended");
		return;
	}
	errno = o.err;
	attempt(t->op, o.r, t->pass);
}

int attempt_all(const struct try *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		attempt_forked(&t[i]);
	return 0;
}

static const struct raw *current;

static long call_current(void)
{
	const uintptr_t *a = current->args;

	return syscall(current->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int attempt_raw(const struct raw *t, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct try one = { .op = t[i].op, .fn = call_current };

		memcpy(one.pass, t[i].pass, sizeof one.pass);
		current = &t[i];
		attempt_forked(&one);
	}
	return 0;
}

long slurp(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;
	ssize_t n = fd < 0 ? -1 : 0;

	while (fd >= 0 && len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	int err = errno;

	if (fd >= 0)
		close(fd);
	buf[len] = '\0';
	errno = err;
	return n < 0 && len == 0 ? -1 : (long)len;
}

long open_for_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

void wait_for_host(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		continue;
}

int run_self(const char *path, const char *const *words)
{
	char *argv[8] = { (char *)(uintptr_t)path };
	int status = 0;

	for (size_t i = 0; i < COUNT(argv) - 2 && words[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)words[i];
	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		execv(path, argv);
		_exit(errno == EPERM ? 126 : 127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* "@hold" as the last word: stay after the attempts until the host has looked around. */
static bool take_hold(void)
{
	if (run.argc == 0 || strcmp(run.argv[run.argc - 1], "@hold") != 0)
		return false;
	run.argc--;
	return true;
}

static const struct row *find_row(const char *id)
{
	for (size_t i = 0; i < COUNT(tables); i++)
		for (const struct row *r = tables[i]; r->id; r++)
			if (strcmp(r->id, id) == 0)
				return r;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct row *row = argc < 2 ? NULL : find_row(argv[1]);

	if (!row)
		return fprintf(stderr, "usage: probe ID [ARG...]; the ids are in rows.py\n"), 2;
	run.id = row->id;
	run.argc = argc - 2;
	run.argv = argv + 2;
	bool hold = take_hold();

	if (row->run() < 0)
		return fprintf(stderr, "probe %s: %m\n", run.id), 2;
	if (hold) {
		puts("{\"id\":\"hold\"}");
		fflush(stdout);
		wait_for_host();
	}
	return run.open ? 0 : 1;
}
