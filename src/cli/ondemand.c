#include "cli/ondemand.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/advice.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "io/program.h"
#include "wire/escape.h"

#define START_MS 30000 /* of a busy machine */
#define LOOK_MS 2
#define AGAIN_MS 50
#define IDLE_EXIT_MS 60000 /* unless the config says something else */
#define LOG_NAME "launcher.log"
#define STATUS_BUSY 3 /* of caisson-launcher: another one has the run folder */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* ---- one starter at a time ----------------------------------------------------------- */

static int open_run_dir(const char *path, struct err *e)
{
	if (mkdir(path, 0711) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make %s", path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_sys(e, errno, "open %s", path) : fd;
}

/* Waits for its turn; the lock goes with the descriptor. */
static int take_turn(int run_fd, int64_t until_ms, struct err *e)
{
	AUTO(fd_close)
	int fd = openat(run_fd, "start.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, errno, "open start.lock");
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(e, errno, "lock start.lock");
		if (now_ms() > until_ms)
			return err_new(e, ERR_INTERNAL,
			               "another client is starting the daemon and "
			               "does not come to an end");
		pause_ms(LOOK_MS);
	}
	return fd_take(&fd);
}

/* ---- the launcher ---------------------------------------------------------------------- */

struct start {
	const struct address *address;
	int run_fd, log_fd;
	char program[PATH_TEXT_MAX];
	char *args[SETTINGS_ARGS_MAX + 1];
	const char *key_variable; /* that the config names for the key of secrets; NULL: none */
	pid_t pid;
};

/* In the child: a session of its own, nothing of the caller's terminal, nothing open but the
 * log. */
static _Noreturn void become_launcher(struct start *s)
{
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	umask(022);
	if (setsid() < 0 || chdir("/") < 0 || null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
	    dup2(null_fd, STDOUT_FILENO) < 0 || dup2(s->log_fd, STDERR_FILENO) < 0)
		_exit(125);
	program_clean_environment(s->key_variable);
	execv(s->program, s->args);
	dprintf(STDERR_FILENO, "execute %s: %s\n", s->program, strerror(errno));
	_exit(125);
}

/* Lines of the journal begin with the time; this is how a program of ours gives up. */
static bool is_end(const char *line)
{
	return strncmp(line, "caissond: ", 10) == 0 || strncmp(line, "caisson-launcher: ", 18) == 0;
}

/* The last line by which somebody gave up: others may have written after it. Else the last. */
static const char *find_words(char *text)
{
	const char *found = "";

	for (char *line; (line = strsep(&text, "\n"));)
		if (line[0] && (is_end(line) || !is_end(found)))
			found = line;
	return found;
}

static void last_words(int log_fd, char out[ONDEMAND_SAID_MAX])
{
	char text[4096];
	struct stat st;
	off_t from = fstat(log_fd, &st) == 0 && st.st_size >= (off_t)sizeof text
	                 ? st.st_size - (off_t)sizeof text + 1
	                 : 0;
	ssize_t n = pread(log_fd, text, sizeof text - 1, from);

	text[n > 0 ? n : 0] = '\0';
	snprintf(out, ONDEMAND_SAID_MAX, "%s", escape_brief(find_words(text)));
}

bool ondemand_said(const struct address *a, char out[ONDEMAND_SAID_MAX])
{
	char path[PATH_TEXT_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", a->run_dir, LOG_NAME);
	AUTO(fd_close)
	int fd = n < (int)sizeof path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

	out[0] = '\0';
	if (fd >= 0)
		last_words(fd, out);
	return is_end(out);
}

/* 0: it lives, or another one has its place; -1 with what it said. */
static int check_alive(struct start *s, struct err *e)
{
	char said[ONDEMAND_SAID_MAX];
	int status = 0;

	if (s->pid <= 0 || waitpid(s->pid, &status, WNOHANG) <= 0)
		return 0;
	s->pid = -1;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == STATUS_BUSY || WEXITSTATUS(status) == 0))
		return 0;
	last_words(s->log_fd, said);
	return err_new(e, ERR_INTERNAL, "the daemon did not start: %s",
	               said[0] ? said : "it said nothing");
}

static int start(struct start *s, struct err *e)
{
	fd_close(&s->log_fd);
	/* Anew, so that nothing somebody put there is written to. */
	if (unlinkat(s->run_fd, LOG_NAME, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "remove the old %s", LOG_NAME);
	s->log_fd =
	    openat(s->run_fd, LOG_NAME, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (s->log_fd < 0)
		return err_sys(e, errno, "make %s", LOG_NAME);
	s->pid = fork();
	if (s->pid < 0)
		return err_sys(e, errno, "fork");
	if (s->pid == 0)
		become_launcher(s);
	return 0;
}

static int await_socket(struct start *s, int64_t until_ms, struct err *e)
{
	while (now_ms() < until_ms) {
		int fd = address_connect(s->address, e);

		if (fd >= 0)
			return fd;
		if (e->sys != ENOENT && e->sys != ECONNREFUSED)
			return -1;
		if (check_alive(s, e) < 0)
			return -1;
		progress_show("starting the daemon", 0);
		pause_ms(s->pid < 0 ? AGAIN_MS : LOOK_MS);
		/* Whoever had its place makes a socket yet, or was about to leave it. */
		if (s->pid < 0 && start(s, e) < 0)
			return -1;
	}
	return err_new(e, ERR_INTERNAL,
	               "the daemon does not answer on %s after %d s; %s/%s tells more",
	               s->address->path, START_MS / 1000, s->address->run_dir, LOG_NAME);
}

static void take_args(struct start *s, struct settings *x)
{
	const char *key = x->all.net.key;

	s->key_variable = key && strncmp(key, "env:", 4) == 0 ? key + 4 : NULL;
	settings_args(x, s->program, s->args);
}

/* The config counts here too; but a client looks for the socket in one place only. */
static int take_settings(struct start *s, struct settings *x, struct err *e)
{
	if (settings_load(x, NULL, e) < 0)
		return -1;
	if (x->all.idle_exit_ms == 0)
		x->all.idle_exit_ms = IDLE_EXIT_MS;
	if (strcmp(x->all.run, s->address->run_dir) != 0)
		return err_new(e, ERR_INVALID,
		               "%s has run: %s, where no command looks for a daemon; start it with "
		               "`caisson serve`, and set CAISSON_SOCKET=%s/api.sock",
		               x->path, x->all.run, x->all.run);
	take_args(s, x);
	size_t n = 0;

	while (s->args[n])
		n++;
	s->args[n] = (char *)"--on-demand";
	s->args[n + 1] = NULL;
	return 0;
}

int ondemand_connect(const struct address *a, struct err *e)
{
	int64_t until_ms = now_ms() + START_MS;
	AUTO(fd_close) int run_fd = open_run_dir(a->run_dir, e);
	AUTO(fd_close) int turn_fd = run_fd < 0 ? -1 : take_turn(run_fd, until_ms, e);
	struct start s = { .address = a, .run_fd = run_fd, .log_fd = -1 };
	AUTO(settings_done) struct settings x;

	settings_init(&x);
	if (turn_fd < 0)
		return -1;
	int fd = address_connect(a, e); /* somebody was faster */
	if (fd >= 0)
		return fd;
	if (program_find("caisson-launcher", s.program, e) == 0 && take_settings(&s, &x, e) == 0 &&
	    start(&s, e) == 0)
		fd = await_socket(&s, until_ms, e);
	fd_close(&s.log_fd);
	progress_end();
	return fd;
}

/* ---- for `caisson serve` --------------------------------------------------------------- */

int ondemand_serve(struct settings *x, struct address *out, struct err *e)
{
	struct address a = { 0 };
	int64_t until_ms = now_ms() + START_MS;
	struct start s = { .address = &a, .run_fd = -1, .log_fd = -1 };

	snprintf(a.run_dir, sizeof a.run_dir, "%s", x->all.run);
	if (snprintf(a.path, sizeof a.path, "%s/api.sock", x->all.run) >= (int)sizeof a.path)
		return err_new(e, ERR_INVALID, "the path %.64s... is too long", x->all.run);
	AUTO(fd_close) int run_fd = open_run_dir(a.run_dir, e);
	AUTO(fd_close) int turn_fd = run_fd < 0 ? -1 : take_turn(run_fd, until_ms, e);
	if (turn_fd < 0)
		return -1;
	AUTO(fd_close) int other = address_connect(&a, e);
	if (other >= 0) {
		err_new(e, ERR_DENIED, "another launcher has %s", a.run_dir);
		return err_advise(e, ADVICE_RUNS_ALREADY);
	}
	s.run_fd = run_fd;
	if (program_find("caisson-launcher", s.program, e) < 0)
		return -1;
	take_args(&s, x);
	int fd = start(&s, e) < 0 ? -1 : await_socket(&s, until_ms, e);
	fd_close(&s.log_fd);
	progress_end();
	*out = a;
	return fd;
}

/* The process that has the lock, when a command has started it; else 0. */
static pid_t find_own(int lock_fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[48], words[8192];

	if (fcntl(lock_fd, F_GETLK, &l) < 0 || l.l_type == F_UNLCK || l.l_pid <= 0)
		return 0;
	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)l.l_pid);
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof words - 1);

	words[n > 0 ? n : 0] = '\0';
	for (const char *word = words; word < words + n; word += strlen(word) + 1)
		if (strcmp(word, "--on-demand") == 0)
			return l.l_pid;
	return 0;
}

int ondemand_dismiss(const char *run_dir, struct err *e)
{
	char path[PATH_TEXT_MAX + 16];
	int64_t until_ms = now_ms() + START_MS;
	pid_t pid;

	snprintf(path, sizeof path, "%s/launcher.lock", run_dir);
	AUTO(fd_close) int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0; /* nobody was ever there, or it is for the launcher to say why not */
	pid = find_own(fd);
	if (pid > 0 && kill(pid, SIGTERM) < 0 && errno != ESRCH)
		return err_sys(e, errno, "end the daemon that a command has started");
	while (pid > 0 && find_own(fd) == pid && now_ms() < until_ms)
		pause_ms(LOOK_MS);
	return 0;
}
