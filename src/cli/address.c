#include "cli/address.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int set_path(char *out, size_t size, struct err *e, const char *dir, const char *name)
{
	int n = snprintf(out, size, "%s%s", dir, name);

	if (n < 0 || (size_t)n >= size)
		return err_new(e, ERR_INVALID, "the path %.64s... is too long", dir);
	return 0;
}

/* A folder in /tmp may be anybody's: what we say is for a daemon of our own. */
static int check_owner(const char *dir, struct err *e)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "look at %s", dir);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return err_new(e, ERR_DENIED, "%s belongs to somebody else", dir);
	return 0;
}

static int find_run_dir(struct address *a, struct err *e)
{
	const char *runtime = variable("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		return set_path(a->run_dir, sizeof a->run_dir, e, "/run/caisson", "");
	if (runtime)
		return set_path(a->run_dir, sizeof a->run_dir, e, runtime, "/caisson");
	snprintf(a->run_dir, sizeof a->run_dir, "/tmp/caisson-%u", (unsigned int)geteuid());
	return check_owner(a->run_dir, e);
}

static int find_state_dir(struct address *a, struct err *e)
{
	const char *state = variable("XDG_STATE_HOME"), *home = variable("HOME");

	if (geteuid() == 0)
		return set_path(a->state_dir, sizeof a->state_dir, e, "/var/lib/caisson", "");
	if (state)
		return set_path(a->state_dir, sizeof a->state_dir, e, state, "/caisson");
	if (!home)
		return err_new(e, ERR_INVALID, "neither HOME nor XDG_STATE_HOME is set");
	return set_path(a->state_dir, sizeof a->state_dir, e, home, "/.local/state/caisson");
}

int address_find(struct address *a, struct err *e)
{
	const char *socket = variable("CAISSON_SOCKET"), *host = variable("CAISSON_HOST");

	*a = (struct address){ .is_tcp = host != NULL, .is_named = host || socket };
	if (host && socket)
		return err_new(e, ERR_INVALID, "CAISSON_HOST and CAISSON_SOCKET: which one?");
	if (host) {
		a->token = variable("CAISSON_TOKEN");
		return set_path(a->host, sizeof a->host, e, host, "");
	}
	if (socket)
		return set_path(a->path, sizeof a->path, e, socket, "");
	if (find_run_dir(a, e) < 0 || find_state_dir(a, e) < 0)
		return -1;
	return set_path(a->path, sizeof a->path, e, a->run_dir, "/api.sock");
}

/* HOST:PORT, [IPV6]:PORT */
static int split_host(const char *text, char *host, char *port, struct err *e)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (!colon || n == 0 || n >= NAME_TEXT_MAX || !colon[1] || strlen(colon + 1) > 5)
		return err_new(e, ERR_INVALID, "CAISSON_HOST is HOST:PORT, not \"%.64s\"", text);
	if (text[0] == '[' && colon[-1] == ']') {
		text++;
		n -= 2;
	}
	snprintf(host, NAME_TEXT_MAX, "%.*s", (int)n, text);
	snprintf(port, 6, "%s", colon + 1);
	return 0;
}

/* Addresses only: to look up names, a static program would need the shared parts of its libc. */
static socklen_t parse_host(const char *host, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof *v4;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		return sizeof *v6;
	}
	return 0;
}

static int connect_tcp(const struct address *a, struct err *e)
{
	struct sockaddr_storage name = { 0 };
	char host[NAME_TEXT_MAX], port[6], *end = NULL;
	int one = 1;

	if (split_host(a->host, host, port, e) < 0)
		return -1;
	unsigned long number = strtoul(port, &end, 10);
	socklen_t n = parse_host(host, (uint16_t)number, &name);
	if (n == 0 || *end || number == 0 || number > UINT16_MAX)
		return err_new(e, ERR_INVALID,
		               "CAISSON_HOST is an address or localhost, and a port, not \"%.64s\"",
		               a->host);
	AUTO(fd_close) int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&name, n) < 0)
		return err_sys(e, errno, "connect to %s", a->host);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* only speed */
	return fd_take(&fd);
}

int address_connect(const struct address *a, struct err *e)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	if (a->is_tcp)
		return connect_tcp(a, e);
	memcpy(name.sun_path, a->path, sizeof name.sun_path);
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	if (connect(fd, (struct sockaddr *)&name, sizeof name) < 0)
		return err_sys(e, errno, "connect to %s", a->path);
	return fd_take(&fd);
}
