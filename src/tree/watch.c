/*
 * watch.c - what changes below a directory, one JSON object per line.
 *
 *   {"event":"create|modify|delete|move_from|move_to","path":…,"dir":…}
 *   {"event":"overflow","why":"kernel|queue|watches"}   something was missed: look again
 *   {"event":"ready"}                                   first, when all watches are in place
 *   {"event":"settled"}                                 for each packet of a body: all that was
 * done before that packet has been said
 *   {"event":"gone"}                                    the watched directory itself is gone; last
 *
 * Equal events within a few milliseconds are one. Memory has a ceiling whatever happens: events
 * that nobody takes, and directories beyond the limit, become one overflow.
 */
#include <linux/openat2.h>
#include <poll.h>
#include <sys/inotify.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/root.h"
#include "tree/sys.h"
#include "tree/undo.h"
#include "tree/verbs.h"
#include "tree/walk.h"

#define WATCH_MASK                                                                                 \
	(IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM |          \
	 IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK |               \
	 IN_DONT_FOLLOW)

#define MERGE_LOOK 64 /* how many waiting events a new one is compared with */
#define READS_MAX 64  /* before what was read is sent */

enum event_kind {
	EVENT_CREATE,
	EVENT_MODIFY,
	EVENT_DELETE,
	EVENT_MOVE_FROM,
	EVENT_MOVE_TO,
};
static const char *const kind_names[] = {
	[EVENT_CREATE] = "create",       [EVENT_MODIFY] = "modify",   [EVENT_DELETE] = "delete",
	[EVENT_MOVE_FROM] = "move_from", [EVENT_MOVE_TO] = "move_to",
};

struct event {
	enum event_kind kind;
	bool is_dir;
	char *path;
};

struct watched {
	int id;     /* of the kernel */
	char *path; /* from the start; "" is the start */
};

struct watcher {
	struct call *call;
	int fd;
	bool is_recursive, is_gone;
	VEC(struct watched) dirs;
	VEC(struct event) events; /* that wait */
	const char *overflow;     /* why, when something was missed */
};

static void events_drop(struct watcher *w)
{
	for (size_t i = 0; i < w->events.len; i++)
		free(w->events.at[i].path);
	w->events.len = 0;
}

static void watcher_done(struct watcher *w)
{
	for (size_t i = 0; i < w->dirs.len; i++)
		free(w->dirs.at[i].path);
	vec_done(&w->dirs);
	events_drop(w);
	vec_done(&w->events);
	fd_close(&w->fd);
}

/* Where the watch is in the list, which is sorted by id, or would be. */
static size_t index_of(const struct watcher *w, int id)
{
	size_t low = 0, high = w->dirs.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->dirs.at[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct watched *find_dir(struct watcher *w, int id)
{
	size_t i = index_of(w, id);

	return i < w->dirs.len && w->dirs.at[i].id == id ? &w->dirs.at[i] : NULL;
}

static void insert_dir(struct watcher *w, struct watched dir)
{
	size_t i = index_of(w, dir.id);

	vec_push(&w->dirs, dir);
	memmove(w->dirs.at + i + 1, w->dirs.at + i, (w->dirs.len - 1 - i) * sizeof dir);
	w->dirs.at[i] = dir;
}

/* By descriptor: the current directory is the one name that cannot be swapped. */
static void watch_dir(struct watcher *w, int dir_fd, const char *path)
{
	if (w->dirs.len >= TREE_WATCHES_MAX) {
		w->overflow = "watches";
		return;
	}
	int id = os_fchdir(dir_fd) < 0 ? -1 : sys_inotify_add_here(w->fd, WATCH_MASK);
	if (id == -ENOSPC)
		w->overflow = "watches";
	struct watched *old = id >= 0 ? find_dir(w, id) : NULL;
	(void)os_fchdir(w->call->conn->root_fd); /* stays nowhere */
	if (old) {
		free(old->path);
		old->path = mem_strdup(path);
	} else if (id >= 0) {
		insert_dir(w, (struct watched){ id, mem_strdup(path) });
	}
}

static void add_event(struct watcher *w, enum event_kind kind, bool is_dir, const char *path)
{
	size_t n = w->events.len, oldest = n > MERGE_LOOK ? n - MERGE_LOOK : 0;

	for (size_t i = n; i-- > oldest;) {
		const struct event *old = &w->events.at[i];

		if (strcmp(old->path, path) != 0)
			continue;
		/* What is new is also modified. */
		if (old->kind == kind || (kind == EVENT_MODIFY && old->kind == EVENT_CREATE))
			return;
		break;
	}
	if (w->events.len == TREE_EVENTS_MAX) {
		events_drop(w);
		w->overflow = "queue";
		return;
	}
	vec_push(&w->events, (struct event){ kind, is_dir, mem_strdup(path) });
}

/* Opened anew each time: as long as somebody has it open, the kernel does not say that a directory
 * was removed. */
static int open_below(const struct watcher *w, const char *path)
{
	const struct call *c = w->call;
	struct err e;
	AUTO(fd_close) int start = root_open_dir(c->conn->root_fd, c->path, &e);

	if (start < 0 || !*path)
		return fd_take(&start);
	return os_openat2(start, path, O_RDONLY | O_DIRECTORY, 0,
	                  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

/* A directory that appeared: what is in it may have come before the watch. */
static int watch_below(struct watcher *w, const char *path, bool is_new, struct err *e)
{
	AUTO(walk_done) struct walk walk = { .fd = -1 };
	const struct walk_how how = { .call = w->call, .with_hidden = true };
	AUTO(str_done) struct str full = { .max = TREE_WALK_PATH_MAX };
	struct walk_entry entry;
	int fd = open_below(w, path);

	if (fd < 0)
		return 0; /* gone again */
	watch_dir(w, fd, path);
	if (!w->is_recursive) {
		fd_close(&fd);
		return 0;
	}
	int r = walk_open(&walk, fd, how, e);
	while (r >= 0 && (r = walk_next(&walk, &entry, e)) > 0) {
		str_clear(&full);
		str_addf(&full, "%s%s%s", path, *path ? "/" : "", entry.path);
		if (is_new)
			add_event(w, EVENT_CREATE, entry.type == DT_DIR, str_text(&full));
		if (entry.type != DT_DIR)
			continue;
		AUTO(fd_close)
		int dir = os_openat(entry.dir_fd, entry.name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (dir >= 0)
			watch_dir(w, dir, str_text(&full));
	}
	return r < 0 && fail_code(e) == TREE_EXPIRED ? -1 : 0;
}

/* A directory went elsewhere: its watches would report wrong names. */
static void forget_below(struct watcher *w, const char *path)
{
	size_t n = strlen(path), kept = 0;

	for (size_t i = 0; i < w->dirs.len; i++) {
		struct watched *d = &w->dirs.at[i];
		bool is_below =
		    strncmp(d->path, path, n) == 0 && (!d->path[n] || d->path[n] == '/');

		if (!is_below) {
			w->dirs.at[kept++] = *d;
			continue;
		}
		(void)sys_inotify_remove(w->fd, d->id); /* it may be gone by itself */
		free(d->path);
	}
	w->dirs.len = kept;
}

static const struct {
	uint32_t bits;
	enum event_kind kind;
} kinds[] = {
	{ IN_CREATE, EVENT_CREATE },    { IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE, EVENT_MODIFY },
	{ IN_DELETE, EVENT_DELETE },    { IN_MOVED_FROM, EVENT_MOVE_FROM },
	{ IN_MOVED_TO, EVENT_MOVE_TO },
};

static void forget_id(struct watcher *w, int id)
{
	struct watched *d = find_dir(w, id);

	if (!d)
		return;
	free(d->path);
	w->dirs.len--;
	memmove(d, d + 1, (size_t)(w->dirs.at + w->dirs.len - d) * sizeof *d);
}

static int take_event(struct watcher *w, const struct inotify_event *ev, struct err *e)
{
	AUTO(str_done) struct str path = { .max = TREE_WALK_PATH_MAX };
	const struct watched *dir = find_dir(w, ev->wd);
	bool is_dir = ev->mask & IN_ISDIR;
	size_t i = 0;

	if (ev->mask & IN_Q_OVERFLOW)
		w->overflow = "kernel";
	if (ev->mask & IN_IGNORED) {
		forget_id(w, ev->wd);
		return 0;
	}
	if (dir && !*dir->path && (ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF)))
		w->is_gone = true;
	while (i < COUNT(kinds) && !(ev->mask & kinds[i].bits))
		i++;
	if (!dir || i == COUNT(kinds) || ev->len == 0 ||
	    strncmp(ev->name, TEMP_PREFIX, strlen(TEMP_PREFIX)) == 0)
		return 0;
	str_addf(&path, "%s%s%s", dir->path, *dir->path ? "/" : "", ev->name);
	add_event(w, kinds[i].kind, is_dir, str_text(&path));
	if (!is_dir || !w->is_recursive)
		return 0;
	if (kinds[i].kind == EVENT_MOVE_FROM)
		forget_below(w, str_text(&path));
	if (kinds[i].kind == EVENT_CREATE || kinds[i].kind == EVENT_MOVE_TO)
		return watch_below(w, str_text(&path), true, e);
	return 0;
}

/* 1: there may be more, and no room for it: the kernel keeps it until this is sent. */
static int read_events(struct watcher *w, struct err *e)
{
	_Alignas(struct inotify_event) char buf[16 << 10];
	const size_t most = sizeof buf / (2 * sizeof(struct inotify_event)); /* with a name */

	for (int i = 0; i < READS_MAX && !w->overflow; i++) {
		if (w->events.len + most > TREE_EVENTS_MAX)
			return 1;
		ssize_t n = os_read(w->fd, buf, sizeof buf);

		if (n == -EAGAIN || n == 0)
			return 0;
		if (n < 0)
			return err_sys(e, (int)-n, "read events");
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *ev = (const void *)(buf + at);

			if (take_event(w, ev, e) < 0)
				return -1;
			at += (ssize_t)(sizeof *ev + ev->len);
		}
	}
	return 0;
}

static int send_line(struct call *c, const json_t *j, struct err *e)
{
	if (call_add_json(c, j, e) < 0)
		return -1;
	return call_add(c, span_of("\n"), e);
}

static int send_word(struct call *c, const char *event, const char *why, struct err *e)
{
	AUTO(json_drop) json_t *j = json_object();

	json_put_text(j, "event", event);
	if (why)
		json_put_text(j, "why", why);
	return send_line(c, j, e);
}

static int send_events(struct watcher *w, struct err *e)
{
	for (size_t i = 0; i < w->events.len; i++) {
		AUTO(json_drop) json_t *j = json_object();
		const struct event *ev = &w->events.at[i];

		json_put_text(j, "event", kind_names[ev->kind]);
		json_put_bytes(j, "path", span_of(ev->path));
		json_put_bool(j, "dir", ev->is_dir);
		if (send_line(w->call, j, e) < 0)
			return -1;
	}
	events_drop(w);
	if (w->overflow && send_word(w->call, "overflow", w->overflow, e) < 0)
		return -1;
	return call_flush(w->call, e);
}

/* After an overflow nobody knows which directories there are. */
static int start_again(struct watcher *w, struct err *e)
{
	bool is_kernel = w->overflow && strcmp(w->overflow, "kernel") == 0;

	w->overflow = NULL;
	return is_kernel ? watch_below(w, "", false, e) : 0;
}

/* The time left in ms; -1: no end. 0: it is over. */
static int time_left(const struct call *c)
{
	uint64_t now = sys_now_ms();

	if (!c->deadline_ms)
		return -1;
	return c->deadline_ms > now ? (int)(c->deadline_ms - now) : 0;
}

/* What was asked before this was read is answered behind what was read. */
static int settle(struct watcher *w, uint32_t *asked, struct err *e)
{
	struct call *c = w->call;

	if (*asked == 0)
		return 0;
	for (; *asked > 0; --*asked)
		if (send_word(c, "settled", NULL, e) < 0)
			return -1;
	return call_flush(c, e);
}

/* Waits for events; the first waits a little for more, which then go with it. */
static int wait_for(struct watcher *w, struct err *e)
{
	struct call *c = w->call;
	bool has_some = w->events.len > 0 || w->overflow;
	int r = has_some ? sys_wait(-1, 0, c->conn->socket_fd, TREE_EVENT_WAIT_MS)
	                 : sys_wait(w->fd, POLLIN, c->conn->socket_fd, time_left(c));

	if (r < 0)
		return err_sys(e, -r, "wait for events");
	if (r & SYS_SOCKET_READY)
		c->looked_ms = 0; /* look now */
	return has_some;
}

/* Until cancelled, or as long as the request says. */
static int run(struct watcher *w, struct err *e)
{
	struct call *c = w->call;
	uint32_t asked = 0;

	for (bool is_over = false; !is_over;) {
		int has_some = wait_for(w, e);

		if (has_some < 0)
			return -1;
		enum call_stop stop = call_stopped(c);
		if (stop == STOP_CANCELLED)
			return call_check(c, e);
		if (stop == STOP_TIME)
			call_forgive(c);
		asked += c->asked;
		c->asked = 0;
		int is_full = read_events(w, e);

		if (is_full < 0)
			return -1;
		is_over = stop == STOP_TIME || w->is_gone;
		if ((has_some || is_full || is_over || asked) &&
		    (send_events(w, e) < 0 || start_again(w, e) < 0))
			return -1;
		if (!is_full && settle(w, &asked, e) < 0)
			return -1;
	}
	return w->is_gone ? send_word(c, "gone", NULL, e) : 0;
}

int verb_watch(struct call *c, struct err *e)
{
	AUTO(watcher_done)
	struct watcher w = {
		.call = c,
		.fd = -1,
		.is_recursive = c->flags & TREE_RECURSIVE,
	};

	c->answer.content = TREE_NDJSON;
	int fd = root_open_dir(c->conn->root_fd, c->path, e);
	if (fd < 0)
		return -1;
	fd_close(&fd);
	w.fd = sys_inotify_init();
	if (w.fd < 0)
		return err_sys(e, -w.fd, "watch");
	if (watch_below(&w, "", false, e) < 0)
		return -1;
	if (w.dirs.len == 0)
		return fail(e, TREE_QUOTA, "no directory can be watched");
	if (send_word(c, "ready", NULL, e) < 0 || call_flush(c, e) < 0)
		return -1;
	return run(&w, e);
}
