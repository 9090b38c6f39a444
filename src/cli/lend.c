#include "cli/lend.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/lend.h"

/* ---- which paths ----------------------------------------------------------------------- */

static void add_path(struct str *out, const char *path)
{
	if (path && path[0] == '/')
		str_addn(out, path, strlen(path) + 1);
}

/* "ro:/opt/tc:/at"; a path with a colon is written as an object. */
static void add_entry(struct str *out, const json_t *entry)
{
	static const char *const kinds[] = { "ro:", "overlay:" };
	const char *text = json_string_value(entry);

	if (json_is_object(entry))
		add_path(out, json_string_value(json_object_get(entry, "src")));
	for (size_t i = 0; text && i < COUNT(kinds); i++) {
		size_t n = strlen(kinds[i]);

		if (strncmp(text, kinds[i], n) != 0)
			continue;
		AUTO(freep) char *path = mem_strdup(text + n);
		path[strcspn(path, ":")] = '\0';
		add_path(out, path);
	}
}

static void add_prefixed(struct str *out, const json_t *value, const char *prefix)
{
	const char *text = json_string_value(value);

	if (text && strncmp(text, prefix, strlen(prefix)) == 0)
		add_path(out, text + strlen(prefix));
}

/* Of a spec, of a repository, of a workspace. */
static void add_paths(struct str *out, const json_t *o)
{
	static const char *const folders[] = { "url", "repo" };
	json_t *fs = json_object_get(o, "fs"), *entry;
	size_t i;

	if (json_is_array(fs))
		json_array_foreach(fs, i, entry) add_entry(out, entry);
	else
		add_entry(out, fs);
	add_prefixed(out, json_object_get(o, "image"), "dir:");
	for (i = 0; i < COUNT(folders); i++) {
		add_prefixed(out, json_object_get(o, folders[i]), "");
		add_prefixed(out, json_object_get(o, folders[i]), "file://");
	}
}

/* ---- to the launcher ------------------------------------------------------------------- */

static int connect_beside(const struct address *a)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const char *slash = strrchr(a->path, '/');
	int n = snprintf(name.sun_path, sizeof name.sun_path, "%.*s/" LEND_SOCKET,
	                 slash ? (int)(slash - a->path) : 1, slash ? a->path : ".");
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || n >= (int)sizeof name.sun_path ||
	    connect(fd, (struct sockaddr *)&name, sizeof name) < 0)
		return -1;
	return fd_take(&fd);
}

/* A launcher that hangs up is an answer, not a signal. */
static bool send_whole(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			return false;
		at += sent > 0 ? sent : 0;
		n -= sent > 0 ? (size_t)sent : 0;
	}
	return true;
}

static int say(int fd, char kind, const struct str *paths, struct err *e)
{
	const size_t n = paths->len;
	const struct lend_head head = { .kind = (unsigned char)kind,
		                        .len = { n & 255, n >> 8 & 255, n >> 16 & 255, n >> 24 } };
	char answer = 0;
	ssize_t got = 0;

	if (send_whole(fd, &head, sizeof head) && send_whole(fd, paths->data, n))
		while ((got = read(fd, &answer, 1)) < 0 && errno == EINTR)
			;
	return got == 1 && answer == LEND_OK
	           ? 0
	           : err_new(e, ERR_DENIED, "the launcher does not take the host paths");
}

int lend_for(struct client *c, const struct client_ask *ask, struct err *e)
{
	AUTO(str_done) struct str paths = { .max = LEND_BYTES_MAX };

	if (c->address.is_tcp || ask->type || ask->body.len == 0 || ask->body.at[0] != '{')
		return 0;
	AUTO(json_decrefp) json_t *body = json_loadb(ask->body.at, ask->body.len, 0, NULL);
	add_paths(&paths, body);
	add_paths(&paths, json_object_get(body, "spec"));
	if (paths.len == 0 || paths.overflow)
		return 0; /* nothing, or more than any spec may have: the daemon says so */
	fd_close(&c->lend_fd);
	c->lend_fd = connect_beside(&c->address);
	if (c->lend_fd < 0)
		return 0; /* the daemon is of our own user, and needs nobody's word */
	bool is_once = strcmp(ask->path, "/v1/run") == 0;
	return say(c->lend_fd, is_once ? LEND_ONCE : LEND_KEEP, &paths, e);
}
