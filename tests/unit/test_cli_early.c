#include "cli/early.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "cli/remote.h"
#include "spec/spec.h"
#include "test.h"

#define WORDS_MAX 16

struct door {
	char dir[32], socket[96];
	int fd;
};

static void door_open(struct door *d)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	snprintf(d->dir, sizeof d->dir, "/tmp/caisson-early.XXXXXX");
	CHECK(mkdtemp(d->dir) != NULL);
	snprintf(name.sun_path, sizeof name.sun_path, "%s/api.sock", d->dir);
	snprintf(d->socket, sizeof d->socket, "CAISSON_SOCKET=%s", name.sun_path);
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_INT(bind(d->fd, (struct sockaddr *)&name, sizeof name), 0);
	CHECK_INT(listen(d->fd, 8), 0);
}

static void door_close(struct door *d)
{
	unlink(strchr(d->socket, '/'));
	rmdir(d->dir);
	close(d->fd);
}

/* As the kernel leaves them for a program: the count, the words, the environment. */
static void begin(const char *const *words, const char *const *env)
{
	long stack[2 * WORDS_MAX] = { 0 };
	size_t n = 1;

	for (; *words; words++) {
		stack[0]++;
		stack[n++] = (long)*words;
	}
	n++;
	for (; *env; env++)
		stack[n++] = (long)*env;
	early_main(stack);
}

/* The body of what was asked; NULL: nobody came. */
static json_t *asked(const struct door *d)
{
	static char text[16384];
	AUTO(fd_close) int fd = accept(d->fd, NULL, NULL);
	ssize_t n = fd < 0 ? -1 : recv(fd, text, sizeof text - 1, MSG_DONTWAIT);

	if (n <= 0)
		return NULL;
	text[n] = '\0';
	const char *body = strstr(text, "\r\n\r\n") + 4;
	CHECK_INT(strncmp(text, "POST /v1/run HTTP/1.1\r\nHost: localhost\r\n", 40), 0);
	CHECK_INT(strtol(strstr(text, "Content-Length: ") + 16, NULL, 10), (long)strlen(body));
	return json_loads(body, 0, NULL);
}

static void meaning(const json_t *spec, struct str *out)
{
	struct err e = { 0 };
	struct spec s;
	AUTO(freep) char *text = json_dumps(spec, 0);

	spec_init(&s);
	CHECK_INT(spec_json(&s, text, strlen(text), &e), 0);
	CHECK_INT(spec_print(&s, out, &e), 0);
	spec_done(&s);
}

/* Flags as main() reads them, and then its request. */
static json_t *asked_by_main(const char *const *words)
{
	AUTO(str_done) struct str canonical = { .max = 1u << 16 }, body = { .max = 1u << 16 };
	struct err e = { 0 };
	struct spec s;
	const char *const *w = words + 2;

	spec_init(&s);
	for (; *w && **w == '-' && strcmp(*w, "--") != 0; w++) {
		const char *equals = strchr(*w, '=');
		AUTO(freep) char *flag = equals ? strndup(*w + 2, (size_t)(equals - *w) - 2) : NULL;
		const char *name = flag ? flag : *w + 2;

		CHECK_INT(spec_flag(&s, name, equals ? equals + 1 : *++w, &e), 0);
	}
	w += *w && strcmp(*w, "--") == 0;
	CHECK_INT(spec_print(&s, &canonical, &e), 0);
	struct run_setup setup = { .spec_text = str_text(&canonical),
		                   .argv = (char *const *)(uintptr_t)w };
	CHECK_INT(remote_run_body(&setup, &body, &e), 0);
	spec_done(&s);
	return json_loads(str_text(&body), 0, NULL);
}

static void same(const json_t *early, const json_t *late)
{
	AUTO(str_done) struct str a = { .max = 1u << 16 }, b = { .max = 1u << 16 };

	meaning(json_object_get(early, "spec"), &a);
	meaning(json_object_get(late, "spec"), &b);
	CHECK_STR(str_text(&a), str_text(&b));
	CHECK(json_equal(json_object_get(early, "cmd"), json_object_get(late, "cmd")));
	CHECK(json_is_true(json_object_get(early, "brief")));
	CHECK(json_is_true(json_object_get(late, "brief")));
	CHECK_INT(json_object_size(early), 3);
}

TEST(plain_words_are_asked_as_main_would_ask)
{
	/* clang-format off */
	static const char *const rows[][WORDS_MAX] = {
		{ "caisson", "run", "--", "/bin/true" },
		{ "caisson", "run", "true" },
		{ "caisson", "run", "--", "sh", "-c", "echo \"a\\b\" 'c' $d; exit" },
		{ "caisson", "run", "--", "" },
		{ "caisson", "run", "--net", "deny", "true" },
		{ "caisson", "run", "--net=allow:example.org,*.example.net", "--mem", "1g", "--", "true" },
		{ "caisson", "run", "--mem", "4g", "--", "make", "--", "-j" },
		{ "caisson", "run", "--mem=4g", "--pids=20", "--cpu", "1.5", "--wall=5m", "make" },
		{ "caisson", "run", "--disk", "1g", "--inodes=10000", "--idle", "1m", "--output=1m", "--files", "64", "--", "x" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(door_close) struct door d;

		door_open(&d);
		early_sent = (struct early_sent){ .fd = -1 };
		begin(rows[i], (const char *const[]){ "A=b", d.socket, NULL });
		CHECK(early_sent.fd > 2);
		json_t *early = asked(&d), *late = asked_by_main(rows[i]);
		CHECK(early != NULL);
		same(early, late);
		json_decref(early);
		json_decref(late);
		fd_close(&early_sent.fd);
	}
}

TEST(all_else_is_left_to_main)
{
	static char long_word[5000];
	/* clang-format off */
	static const char *const rows[][WORDS_MAX] = {
		{ "caisson" }, { "caisson", "run" }, { "caisson", "run", "--" }, { "caisson", "runs", "--", "true" },
		{ "caisson", "exec", "--", "true" },
		{ "caisson", "run", "--json", "--", "true" }, { "caisson", "run", "-t", "--", "true" },
		{ "caisson", "run", "--net", "allow:preset:pip", "--", "true" }, { "caisson", "run", "--net" },
		{ "caisson", "run", "--net", "deny", "--net", "deny", "true" }, { "caisson", "run", "--nets=deny", "true" },
		{ "caisson", "run", "--fs=ro:/x", "true" },
		{ "caisson", "run", "--memory", "1g", "true" }, { "caisson", "run", "--me=1g", "true" },
		{ "caisson", "run", "--mem", "1g", "--mem", "2g", "true" },
		{ "caisson", "run", "--mem" }, { "caisson", "run", "--mem", "1g" }, { "caisson", "run", "-", "x" },
		{ "caisson", "run", "--", "tab\there" }, { "caisson", "run", "--", "caf\xc3\xa9" },
		{ "caisson", "run", "--", long_word },
	};
	/* clang-format on */

	memset(long_word, 'x', sizeof long_word - 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(door_close) struct door d;

		door_open(&d);
		early_sent = (struct early_sent){ .fd = -1 };
		begin(rows[i], (const char *const[]){ d.socket, NULL });
		CHECK_INT(early_sent.fd, -1);
		CHECK(asked(&d) == NULL);
	}
}

TEST(a_daemon_elsewhere_is_left_to_main)
{
	static const char *const words[] = { "caisson", "run", "true", NULL };
	AUTO(door_close) struct door d;
	static const char *const nowhere[] = { "CAISSON_SOCKET=/nonexistent/x", NULL };

	door_open(&d);
	begin(words, (const char *const[]){ d.socket, "CAISSON_HOST=127.0.0.1:1", NULL });
	CHECK_INT(early_sent.fd, -1);
	begin(words, nowhere);
	CHECK_INT(early_sent.fd, -1);
	close(0); /* the socket would become the command's input */
	begin(words, (const char *const[]){ d.socket, NULL });
	CHECK_INT(early_sent.fd, -1);
}

#define HEAD "HTTP/1.1 101 Switching Protocols\r\nUpgrade: caisson-stream\r\n\r\n"
#define FRAME(letter, len, data) letter "\0\0\0\0\0\0" len data

/* In a process of its own: how it ended, or 300 when it is left to main(), and what it wrote. */
static int answer(const char *bytes, size_t n, int out_fd, struct early_sent *left)
{
	static const char *const words[] = { "caisson", "run", "true", NULL };
	AUTO(door_close) struct door d;
	int pipe_fds[2], status;

	door_open(&d);
	CHECK_INT(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(out_fd, 1);
		begin(words, (const char *const[]){ d.socket, NULL });
		if (early_sent.fd >= 0)
			_exit(write(pipe_fds[1], &early_sent, sizeof early_sent) > 0 ? 99 : 98);
		_exit(97);
	}
	(void)fcntl(d.fd, F_SETFL, 0);
	AUTO(fd_close) int fd = accept(d.fd, NULL, NULL);
	CHECK_INT(send(fd, bytes, n, MSG_NOSIGNAL), (int)n);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	close(pipe_fds[1]);
	if (WEXITSTATUS(status) == 99)
		CHECK_INT(read(pipe_fds[0], left, sizeof *left), (int)sizeof *left);
	close(pipe_fds[0]);
	return WEXITSTATUS(status) == 99 ? 300 : WEXITSTATUS(status);
}

TEST(a_plain_answer_ends_the_program)
{
	static const char quiet[] = HEAD FRAME("Q", "\1", "7");
	static const char loud[] =
	    HEAD FRAME("O", "\3", "out") FRAME("O", "\2", "!\n") FRAME("Q", "\3", "200");
	struct early_sent left = { .fd = -1 };
	char text[16] = "";
	int fds[2];

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(answer(quiet, sizeof quiet - 1, fds[1], &left), 7);
	CHECK_INT(answer(loud, sizeof loud - 1, fds[1], &left), 200);
	CHECK_INT(read(fds[0], text, sizeof text), 5);
	CHECK_STR(text, "out!\n");
}

TEST(any_other_answer_is_left_to_main_whole)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
#define ROW(text) { text, sizeof(text) - 1 }
		ROW("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
		ROW(HEAD),
		ROW(HEAD FRAME("S", "\2", "{}") FRAME("Q", "\1", "0")),
		ROW(HEAD FRAME("O", "\3", "out")),
		ROW(HEAD FRAME("O", "\3", "out") FRAME("X", "\2", "{}")),
		ROW(HEAD FRAME("O", "\7", "out")),
		ROW(HEAD FRAME("Q", "\1", "7") "more"),
		ROW(HEAD "Q\0\0\0\0\1\0\1x"),
		ROW("HTTP/1.1 101 "),
#undef ROW
	};
	struct early_sent left = { .fd = -1 };
	int null_fd = open("/dev/null", O_WRONLY);

	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_INT(answer(rows[i].bytes, rows[i].n, null_fd, &left), 300);
		CHECK_INT(left.len - left.from, rows[i].n);
		CHECK_INT(memcmp(left.in + left.from, rows[i].bytes, rows[i].n), 0);
	}
}

/* A full pipe takes some of it: the rest is a frame again, behind the same head. */
TEST(what_could_not_be_written_is_left_to_main)
{
	static char room[65536];
	static const char talk[] =
	    HEAD FRAME("O", "\3", "one") FRAME("O", "\11", "two three") FRAME("Q", "\1", "0");
	static const char rest[] = HEAD FRAME("O", "\11", "two three") FRAME("Q", "\1", "0");
	struct early_sent left = { .fd = -1 };
	int fds[2];

	CHECK_INT(pipe2(fds, O_NONBLOCK), 0);
	/* All but three bytes, in one page: pipes count pages. */
	CHECK(fcntl(fds[1], F_SETPIPE_SZ, 4096) == 4096);
	CHECK_INT(write(fds[1], room, 4093), 4093);
	CHECK_INT(answer(talk, sizeof talk - 1, fds[1], &left), 300);
	CHECK_INT(left.len - left.from, sizeof rest - 1);
	CHECK_INT(memcmp(left.in + left.from, rest, sizeof rest - 1), 0);
}
