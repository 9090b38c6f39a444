/*
 * early.c - `caisson run` asks the daemon before the C library has started.
 *
 * At its start the C library asks the processor some sixty questions about itself. In a virtual
 * machine each of them is answered by the host: 0.3 ms, a tenth of a short run. So the program
 * begins here. When its words are plain - limits, net and a command - the request leaves at once;
 * and when the answer comes soon and is plain too, the program ends here as well. All else is
 * main()'s: it reads the same words, and finds the request sent and what came so far
 * (cli/daemon.c).
 *
 * There is no libc yet: no function of it, no thread-local variable; and nothing is relocated: no
 * table of addresses. docs/decisions/0023-ask-before-the-library-starts.md
 */
#include "cli/early.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "base/rawcall.h"
#include "wire/stream.h"

/* The linker's name for where a program begins; it goes on to the C library's. */
#if defined(__x86_64__)
__asm__(".pushsection .text.early_start,\"ax\",@progbits\n"
        ".globl early_start\n"
        ".type early_start,@function\n"
        "early_start:\n"
        "	mov %rsp, %rdi\n"
        "	push %rdx\n"
        "	sub $8, %rsp\n"
        "	call early_main\n"
        "	add $8, %rsp\n"
        "	pop %rdx\n"
        "	jmp _start\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text.early_start,\"ax\",@progbits\n"
        ".globl early_start\n"
        ".type early_start,@function\n"
        "early_start:\n"
        "	stp x0, x30, [sp, #-16]!\n"
        "	add x0, sp, #16\n"
        "	bl early_main\n"
        "	ldp x0, x30, [sp], #16\n"
        "	b _start\n"
        ".popsection\n");
#endif

#define BODY_SIZE 4096
#define SOON_MS 15 /* a little longer than the daemon lets its greeting wait */

/* Those that take one plain value. Rows of text: addresses would have to be relocated. */
static const char limits[][8] = { "cpu",  "mem",  "disk",   "inodes", "pids",
	                          "wall", "idle", "output", "files" };
enum { N_LIMITS = sizeof limits / sizeof *limits };

struct early {
	char body[BODY_SIZE];
	size_t len;
	bool is_bad;    /* it does not fit, or JSON would have to be told more about it */
	unsigned given; /* bit per limit */
};

static size_t length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

/* What follows `start` in the text; NULL when it begins otherwise. */
static const char *after(const char *text, const char *start)
{
	while (*start && *text == *start) {
		text++;
		start++;
	}
	return *start ? NULL : text;
}

static bool is_same(const char *a, const char *b)
{
	const char *rest = after(a, b);

	return rest && !*rest;
}

static void put(struct early *e, const char *text)
{
	for (; *text; text++) {
		if (e->len == BODY_SIZE)
			e->is_bad = true;
		else
			e->body[e->len++] = *text;
	}
}

static void put_text(struct early *e, const char *text)
{
	char one[3] = { 0 };

	put(e, "\"");
	for (; *text; text++) {
		bool is_marked = *text == '"' || *text == '\\';

		e->is_bad |= *text < ' ' || *text > '~';
		one[0] = '\\';
		one[is_marked] = *text;
		one[1 + is_marked] = '\0';
		put(e, one);
	}
	put(e, "\"");
}

static const char *variable(const char *const *env, const char *name)
{
	for (; *env; env++) {
		const char *value = after(*env, name);

		if (value && *value == '=' && value[1])
			return value + 1;
	}
	return NULL;
}

/* ---- the words ----------------------------------------------------------------------- */

/* --mem 4g, --mem=4g; how many words it took, 0: it is something else, or said twice. */
static int put_limit(struct early *e, const char *const *argv)
{
	const char *word = after(argv[0], "--");

	for (unsigned i = 0; word && i < N_LIMITS; i++) {
		const char *rest = after(word, limits[i]);
		const char *value = rest && *rest == '=' ? rest + 1 : argv[1];

		if (!rest || (*rest && *rest != '=') || !value || e->given & 1u << i)
			continue;
		put(e, e->given ? "," : "");
		put_text(e, limits[i]);
		put(e, ":");
		put_text(e, value);
		e->given |= 1u << i;
		return *rest ? 1 : 2;
	}
	return 0;
}

/* --net deny, --net allow:HOST,HOST; how many words it took. A preset is looked up by main(). */
static int take_net(const char *const *argv, const char **net)
{
	const char *rest = after(argv[0], "--net");
	const char *value = rest && *rest == '=' ? rest + 1 : argv[1];

	if (!rest || (*rest && *rest != '=') || !value || *net)
		return 0;
	for (const char *p = value; *p; p++)
		if (after(p, "preset:"))
			return 0;
	*net = value;
	return *rest ? 1 : 2;
}

/* The body of POST /v1/run: what cli/remote.c would say of the same words. */
static bool put_body(struct early *e, const char *const *argv)
{
	const char *net = NULL;

	e->len = e->given = 0;
	e->is_bad = false;
	put(e, "{\"spec\":{\"limits\":{");
	while (*argv && **argv == '-' && !is_same(*argv, "--")) {
		int n = put_limit(e, argv);

		if (n == 0)
			n = take_net(argv, &net);
		if (n == 0)
			return false;
		argv += n;
	}
	put(e, "}");
	if (net) {
		put(e, ",\"net\":");
		put_text(e, net);
	}
	put(e, "},\"cmd\":[");
	argv += *argv && is_same(*argv, "--");
	if (!*argv)
		return false;
	for (const char *comma = ""; *argv; argv++, comma = ",") {
		put(e, comma);
		put_text(e, *argv);
	}
	put(e, "],\"brief\":true}");
	return !e->is_bad;
}

/* ---- the daemon ---------------------------------------------------------------------- */

/* Where cli/address.c finds it without looking at anything else. */
static bool find(const char *const *env, struct sockaddr_un *name)
{
	const char *dir = variable(env, "CAISSON_SOCKET"), *file = "";
	size_t n = 0;

	if (variable(env, "CAISSON_HOST"))
		return false;
	if (!dir && raw_call(SYS_geteuid, 0, 0, 0, 0) == 0)
		dir = "/run/caisson/api.sock";
	if (!dir) {
		dir = variable(env, "XDG_RUNTIME_DIR");
		file = "/caisson/api.sock";
	}
	if (!dir || length(dir) + length(file) >= sizeof name->sun_path)
		return false;
	name->sun_family = AF_UNIX;
	for (; *dir; dir++)
		name->sun_path[n++] = *dir;
	for (; *file; file++)
		name->sun_path[n++] = *file;
	name->sun_path[n] = '\0';
	return true;
}

static bool send_all(long fd, struct iovec *iov, size_t n)
{
	const struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
	size_t whole = 0;

	for (size_t i = 0; i < n; i++)
		whole += iov[i].iov_len;
	return raw_call(SYS_sendmsg, fd, (long)&m, MSG_NOSIGNAL, 0) == (long)whole;
}

static bool ask(long fd, struct early *e)
{
	static char head[] = "POST /v1/run HTTP/1.1\r\n"
			     "Host: localhost\r\n"
			     "User-Agent: caisson/" CAISSON_VERSION "\r\n"
			     "Connection: Upgrade\r\n"
			     "Upgrade: caisson-stream\r\n"
			     "Content-Type: application/json\r\n"
			     "Content-Length: 0000\r\n"
			     "\r\n";
	size_t at =
	    sizeof head - 1 - sizeof "\r\n\r\n"; /* the last digit; zeros before it are legal */
	struct iovec iov[] = { { head, sizeof head - 1 }, { e->body, e->len } };

	for (size_t i = 0, n = e->len; i < 4; i++, n /= 10)
		head[at--] = (char)('0' + n % 10);
	return send_all(fd, iov, 2);
}

/* ---- the answer ---------------------------------------------------------------------- */

static void await_answer(struct early_sent *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	struct timespec soon = { .tv_nsec = SOON_MS * 1000000l };

	if (raw_call(SYS_ppoll, (long)&p, 1, (long)&soon, 0) <= 0)
		return;
	long n = raw_call(SYS_read, s->fd, (long)s->in, sizeof s->in, 0);
	s->len = n > 0 ? (size_t)n : 0; /* an end is seen again by the next reader */
}

/* Where the frames begin; 0: it is not the beginning of a stream, or not whole. */
static size_t skip_head(const struct early_sent *s)
{
	const char *rest = s->len > 16 ? after(s->in, "HTTP/1.1 101 ") : NULL;
	size_t at = rest ? 4 : s->len;

	while (at < s->len && !(s->in[at - 4] == '\r' && s->in[at - 3] == '\n' &&
	                        s->in[at - 2] == '\r' && s->in[at - 1] == '\n'))
		at++;
	return at < s->len ? at : 0;
}

/* The whole frame at `at`, its length; 0: there is none. */
static size_t frame_at(const struct early_sent *s, size_t at)
{
	const unsigned char *p = (const unsigned char *)s->in + at;

	if (s->len - at < STREAM_HEAD || p[4] || p[5])
		return 0;
	size_t n = (size_t)p[6] << 8 | p[7];

	return s->len - at < STREAM_HEAD + n ? 0 : STREAM_HEAD + n;
}

/* Nothing but output, ours included, and then the end of a command that exited. */
static size_t find_end(const struct early_sent *s, size_t at)
{
	size_t n;

	while ((n = frame_at(s, at)) > 0 &&
	       (s->in[at] == STREAM_OUT || s->in[at] == STREAM_ERR || s->in[at] == STREAM_NOTE))
		at += n;
	return n > STREAM_HEAD && s->in[at] == STREAM_EXITED && at + n == s->len ? at : 0;
}

/* How much of the frame's data was taken. */
static size_t write_frame(const struct early_sent *s, size_t at)
{
	long n = (long)(frame_at(s, at) - STREAM_HEAD);
	long w = raw_call(SYS_write, s->in[at] == STREAM_OUT ? 1 : 2,
	                  (long)(s->in + at + STREAM_HEAD), n, 0);

	return w > 0 ? (size_t)w : 0;
}

/* The frame at `at` without the first `w` bytes of its data: its head moves up. */
static size_t cut_frame(struct early_sent *s, size_t at, size_t w)
{
	size_t left = frame_at(s, at) - STREAM_HEAD - w;
	char type = s->in[at];

	at += w;
	s->in[at] = type;
	for (int i = 1; i < 6; i++)
		s->in[at + i] = 0;
	s->in[at + 6] = (char)(left >> 8);
	s->in[at + 7] = (char)left;
	return at;
}

/* What is before `at` was dealt with, but for the head of the answer: it moves up. */
static void leave_rest(struct early_sent *s, size_t head, size_t at)
{
	s->from = at - head;
	while (head-- > 0)
		s->in[--at] = s->in[head];
}

/* Ends the program, or leaves it to main(). */
static void finish(struct early_sent *s)
{
	size_t head = skip_head(s), at = head, n;
	size_t end = head ? find_end(s, head) : 0;
	int status = 0;

	if (!end)
		return;
	for (; at < end; at += n) {
		n = frame_at(s, at);
		size_t w = write_frame(s, at);

		if (w + STREAM_HEAD < n) {
			leave_rest(s, head, cut_frame(s, at, w));
			return;
		}
	}
	for (at += STREAM_HEAD; at < s->len; at++)
		status = status * 10 + (s->in[at] - '0');
	raw_call(SYS_exit_group, status & 0xff, 0, 0, 0);
}

/* A link of that name speaks other words (cli/docker.h). */
static bool is_docker(const char *program)
{
	const char *name = program;

	for (; *program; program++)
		if (*program == '/')
			name = program + 1;
	return is_same(name, "docker");
}

void early_main(const long *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);
	const char *const *env = argv + stack[0] + 1;
	struct sockaddr_un name; /* not filled with zeros: that would be a call of memset() */
	struct early e;          /* nor this */

	if (stack[0] < 3 || !is_same(argv[1], "run") || is_docker(argv[0]) || !find(env, &name) ||
	    !put_body(&e, argv + 2))
		return;
	long fd = raw_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0);
	if (fd < 0)
		return;
	/* One of the standard three was closed: main() mends that first. */
	bool is_ours = fd > 2 && raw_call(SYS_connect, fd, (long)&name, sizeof name, 0) == 0;
	if (!is_ours || !ask(fd, &e)) {
		raw_call(SYS_close, fd, 0, 0, 0);
		return;
	}
	early_sent.fd = (int)fd;
	await_answer(&early_sent);
	finish(&early_sent);
}
