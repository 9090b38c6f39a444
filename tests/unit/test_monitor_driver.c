/* The driver in real shells, without a sandbox; and what is understood of a report. */
#include "monitor/driver.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "test.h"

/* ---- a shell ----------------------------------------------------------------------- */

static const struct {
	const char *path, *name, *kind;
} kinds[] = { { "/bin/bash", "bash", "bash" }, { "/bin/dash", "sh", "" } };

struct shell {
	pid_t pid;
	int fd, output_fd;
	struct driver_report report;
	struct str state;
	int status;
	bool is_whole;
	char output[4096];
};

/* In the child: the test's own process group; 9 is the socket. */
static _Noreturn void become(size_t kind, int socket_fd, int output_fd)
{
	char *const argv[] = {
		(char *)(uintptr_t)kinds[kind].path, (char *)(uintptr_t) "-c",
		(char *)(uintptr_t)driver_argv[4],   (char *)(uintptr_t)kinds[kind].name,
		(char *)(uintptr_t)driver_argv[5],   NULL
	};
	char *const env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin",
		              (char *)(uintptr_t) "FIRST=1", NULL };

	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(output_fd, 1);
	dup2(output_fd, 2);
	dup2(socket_fd, 9);
	if (chdir("/") == 0)
		execve(argv[0], argv, env);
	_exit(99);
}

/* False: it has ended, and its status is that of waitpid(). */
static bool hear(struct shell *s)
{
	enum driver_word word = DRIVER_PART;
	char bytes[512];

	driver_report_done(&s->report);
	while (word == DRIVER_PART) {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };

		CHECK_INT(poll(&p, 1, TEST_WAIT_MS), 1);
		ssize_t n = recv(s->fd, bytes, sizeof bytes, 0);

		if (n <= 0) {
			CHECK_INT(waitpid(s->pid, &s->status, 0), s->pid);
			s->pid = 0;
			break;
		}
		word = driver_hear(&s->report, bytes, (size_t)n);
		CHECK(word != DRIVER_GARBAGE);
	}
	if (word == DRIVER_WHOLE)
		s->status = driver_read(&s->report, &s->state, &s->is_whole);
	ssize_t n = read(s->output_fd, s->output, sizeof s->output - 1);
	s->output[n > 0 ? n : 0] = '\0';
	return word == DRIVER_WHOLE;
}

static bool send_all(struct shell *s, struct str *text)
{
	bool is_sent = !text->overflow &&
	               send(s->fd, text->data, text->len, MSG_NOSIGNAL) == (ssize_t)text->len;

	str_done(text);
	return is_sent;
}

static bool run(struct shell *s, const char *script)
{
	struct str text = { .max = 1 << 20 };

	driver_script(&text, (struct driver_mode){ 0 }, script);
	return send_all(s, &text) && hear(s);
}

static bool start(struct shell *s, size_t kind)
{
	int fds[2], out[2];

	*s = (struct shell){ .fd = -1 };
	if (access(kinds[kind].path, X_OK) < 0)
		return false;
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	CHECK_INT(pipe2(out, O_CLOEXEC), 0);
	CHECK_INT(fcntl(out[0], F_SETFL, O_NONBLOCK), 0);
	s->pid = fork();
	if (s->pid == 0)
		become(kind, fds[1], out[1]);
	close(fds[1]);
	close(out[1]);
	s->fd = fds[0];
	s->output_fd = out[0];
	CHECK(hear(s)); /* it is there */
	return true;
}

static void stop(struct shell *s)
{
	int status;

	fd_close(&s->fd);
	if (s->pid > 0)
		CHECK_INT(waitpid(s->pid, &status, 0),
		          s->pid); /* nobody is at the other end: it ends */
	fd_close(&s->output_fd);
	driver_report_done(&s->report);
	str_done(&s->state);
}

/* ---- what it does ------------------------------------------------------------------ */

TEST(every_script_ends_with_its_status_and_its_output)
{
	static const struct {
		const char *script;
		int status;
		const char *output; /* NULL: some message */
	} cases[] = {
		{ "echo hi", 0, "hi\n" },
		{ "false", 1, "" },
		{ "(exit 255)", 255, "" },
		{ "", 0, "" },
		{ "\n\n", 0, "" },
		{ "echo a\necho b", 0, "a\nb\n" },
		{ "cat <<E\n.\n-\n-x\nE", 0, ".\n-\n-x\n" },
		{ "printf 'no newline'", 0, "no newline" },
		{ "echo (", 2, NULL },
		{ "echo 'open", 2, NULL },
		{ "nosuchprogram", 127, NULL },
		{ "read x; echo $?", 0, "1\n" },
		{ "continue; echo no", 0, "" },
		{ "f() { return 3; }; f", 3, "" },
		{ "set -f; IFS=:; set -- a b", 0, "" },
		{ "echo $1$2", 0, "ab\n" },
		{ "unset PATH IFS", 0, "" },
		{ "printf() { echo fake; }; read() { echo fake; }", 0, "" },
		{ "exec 9>&-", 0, "" },
		{ "exec 9</dev/null", 0, "" },
		{ "set -a; exported=1", 0, "" },
		{ "/usr/bin/env | /usr/bin/grep -c '^_cs'", 1, "0\n" },
		{ "set +a; set -u", 0, "" },
		{ "echo still", 0, "still\n" },
	};
	struct shell s;

	for (size_t k = 0; k < COUNT(kinds); k++) {
		if (!start(&s, k))
			continue;
		for (size_t i = 0; i < COUNT(cases); i++) {
			printf("# %s: case %zu\n", kinds[k].name, i);
			CHECK(run(&s, cases[i].script));
			CHECK_INT(s.status, cases[i].status);
			if (cases[i].output)
				CHECK_STR(s.output, cases[i].output);
			else
				CHECK(s.output[0] && !strstr(s.output, "_cs"));
			CHECK(s.is_whole);
		}
		stop(&s);
	}
}

TEST(what_ends_the_shell_ends_with_the_true_status)
{
	static const struct {
		const char *script;
		int exit_code, signal;
	} cases[] = {
		{ "exit 3", 3, 0 },         { "set -e\nfalse\necho no", 1, 0 },
		{ "exec /bin/true", 0, 0 }, { "kill -9 $$", 0, 9 },
		{ "break 7", 0, 0 },        { "ulimit -n 4", 125, 0 },
	};
	struct shell s;

	for (size_t k = 0; k < COUNT(kinds); k++) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			if (!start(&s, k))
				continue;
			printf("# %s: case %zu\n", kinds[k].name, i);
			CHECK(!run(&s, cases[i].script));
			CHECK_INT(WIFEXITED(s.status) ? WEXITSTATUS(s.status) : -1,
			          cases[i].signal ? -1 : cases[i].exit_code);
			CHECK_INT(WIFSIGNALED(s.status) ? WTERMSIG(s.status) : 0, cases[i].signal);
			stop(&s);
		}
	}
}

TEST(folder_and_variables_go_to_the_next_shell)
{
	static const char env[] = "FIRST=1\0A-B=2\0PATH=/usr/bin:/bin";
	struct shell s, next;

	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct str text = { .max = 1 << 20 };

		if (!start(&s, k))
			continue;
		CHECK(run(&s, "export A='it'\\''s\n\"b\" $c'; unset FIRST; cd /usr; own=1"));
		CHECK_STR(s.state.data, kinds[k].kind);
		CHECK_STR(shell_text_cwd(s.state.data), "/usr");
		CHECK(start(&next, k));
		driver_restore_env(&text, s.state.data, env, 3);
		CHECK(send_all(&next, &text) && hear(&next));
		CHECK_INT(next.status, 0);
		text = (struct str){ .max = 1 << 20 };
		driver_restore_cwd(&text, s.state.data);
		CHECK(send_all(&next, &text) && hear(&next));
		CHECK_INT(next.status, 0);
		CHECK(run(&next, "echo \"$A|$PWD|${FIRST-none}|${own-none}\""));
		CHECK_STR(next.output, "it's\n\"b\" $c|/usr|none|none\n");
		stop(&next);
		stop(&s);
	}
}

TEST(a_folder_that_is_gone_and_variables_of_another_kind_are_told)
{
	struct shell s;

	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct str text = { .max = 1 << 20 };
		static const char gone[] = "other\0/not/there\0export A=1\n";

		if (!start(&s, k))
			continue;
		driver_restore_env(&text, gone, "", 0);
		CHECK(send_all(&s, &text) && hear(&s));
		CHECK(s.status != 0);
		text = (struct str){ .max = 1 << 20 };
		driver_restore_cwd(&text, gone);
		CHECK(send_all(&s, &text) && hear(&s));
		CHECK(s.status != 0);
		CHECK(run(&s, "echo \"$PWD${A-}\""));
		CHECK_STR(s.output, "/\n");
		stop(&s);
	}
}

/* ---- what is understood ------------------------------------------------------------ */

TEST(only_a_report_is_understood)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum driver_word word;
	} cases[] = {
		{ "", 0, DRIVER_PART },
		{ "12", 2, DRIVER_PART },
		{ "0\0bash\0/", 8, DRIVER_PART },
		{ "0\0bash\0/\0env\0", 13, DRIVER_WHOLE },
		{ "255\0\0\0\0", 7, DRIVER_WHOLE },
		{ "256\0\0\0\0", 7, DRIVER_GARBAGE },
		{ "1234", 4, DRIVER_GARBAGE },
		{ "x\0", 2, DRIVER_GARBAGE },
		{ "-1\0", 3, DRIVER_GARBAGE },
		{ "\0", 1, DRIVER_GARBAGE },
		{ "0\0\0\0\0x", 6, DRIVER_GARBAGE },
		{ "garbage", 7, DRIVER_GARBAGE },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t step = 1; step <= 16; step += 15) { /* byte by byte, and whole */
			struct driver_report r = { 0 };
			enum driver_word word = DRIVER_PART;

			for (size_t at = 0; at < cases[i].n && word != DRIVER_GARBAGE; at += step)
				word = driver_hear(&r, cases[i].bytes + at,
				                   cases[i].n - at < step ? cases[i].n - at : step);
			CHECK_INT(word, cases[i].word);
			driver_report_done(&r);
		}
	}
}

TEST(what_is_too_long_is_not_kept_and_what_was_stays)
{
	enum { PIECES = 64 };
	static char piece[4096];
	struct driver_report r = { 0 };
	struct str state = { .max = SHELL_TEXT_MAX };
	bool is_whole = true;

	str_addn(&state, "bash\0/old\0export A=1\n", 22);
	CHECK(shell_text_is(state.data, state.len));
	memset(piece, 'x', sizeof piece);
	CHECK_INT(driver_hear(&r, "7\0bash\0/new\0", 12), DRIVER_PART);
	for (size_t i = 0; i < PIECES; i++)
		CHECK_INT(driver_hear(&r, piece, sizeof piece), DRIVER_PART);
	CHECK_INT(driver_hear(&r, "", 1), DRIVER_WHOLE);
	CHECK(r.text.len <= SHELL_TEXT_MAX + 8);
	CHECK_INT(driver_read(&r, &state, &is_whole), 7);
	CHECK(!is_whole);
	CHECK_STR(shell_text_cwd(state.data), "/new");
	CHECK_STR(shell_text_env(state.data), "export A=1\n");
	driver_report_done(&r);

	static const char *const folders[] = { "", "relative" };
	for (size_t i = 0; i < COUNT(folders); i++) {
		struct str text = { .max = 4096 };

		str_addn(&text, "0\0\0", 3);
		str_addn(&text, folders[i], strlen(folders[i]) + 1);
		str_addn(&text, "B", 2);
		CHECK_INT(driver_hear(&r, text.data, text.len), DRIVER_WHOLE);
		CHECK_INT(driver_read(&r, &state, &is_whole), 0);
		CHECK_STR(shell_text_cwd(state.data), "/new");
		CHECK_STR(shell_text_env(state.data), "B");
		driver_report_done(&r);
		str_done(&text);
	}
	str_done(&state);
}
