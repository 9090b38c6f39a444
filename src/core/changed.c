#include "core/changed.h"

#include <sys/mman.h>

#include "base/fd.h"
#include "core/notes.h"
#include "core/workspace-internal.h"
#include "io/journal.h"
#include "os/extent.h"

#define LIST_BYTES_MAX (8u << 20)

struct changed {
	struct changed *next;
	struct wsx *w; /* a reference */
	int fd;
	int64_t files;
	char point[ID_SIZE], process[ID_SIZE], actor[ACTOR_SIZE];
};

/* ---- the list ------------------------------------------------------------------------- */

static const struct {
	const char *status, *name;
} statuses[] = { { "A", "added" },   { "M", "modified" }, { "T", "modified" }, { "D", "deleted" },
	         { "R", "renamed" }, { "mode", "mode" },  { "xattr", "mode" } };

/* No name can have that in it: its quotes are escaped. */
static struct span status_of(struct span line)
{
	static const char key[] = "\",\"status\":\"";
	const char *at = memmem(line.at, line.len, key, sizeof key - 1);
	struct span s = { NULL, 0 };

	if (!at)
		return s;
	s = span_after(line, (size_t)(at - line.at) + sizeof key - 1);
	const char *end = memchr(s.at, '"', s.len);

	s.len = end ? (size_t)(end - s.at) : 0;
	return s;
}

static void count_one(json_t *data, struct span line)
{
	struct span s = status_of(line);

	for (size_t i = 0; s.at && i < COUNT(statuses); i++) {
		if (!span_is(s, statuses[i].status))
			continue;
		json_int_t n = json_integer_value(json_object_get(data, statuses[i].name));

		json_object_set_new(data, statuses[i].name, json_integer(n + 1));
		return;
	}
}

/* As long as it is in a record. */
static void add_name(json_t *names, struct span line, size_t *room)
{
	if (json_array_size(names) >= CHANGED_NAMES_MAX || line.len > *room)
		return;
	json_t *one = json_loadb(line.at, line.len, 0, NULL);
	AUTO(freep) char *text = one ? json_dumps(one, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	if (text && strlen(text) <= *room) {
		*room -= strlen(text);
		json_array_append(names, one);
	}
	json_decref(one);
}

json_t *changed_data(const char *lines, size_t n)
{
	struct span rest = { lines, n };
	json_t *data = json_object(), *names = json_array();
	size_t room = CHANGED_NAMES_BYTES;
	json_int_t count = 0;

	while (rest.len > 0) {
		const char *newline = memchr(rest.at, '\n', rest.len);
		struct span line = { rest.at, newline ? (size_t)(newline - rest.at) : rest.len };

		rest = span_after(rest, line.len + (newline ? 1 : 0));
		count++;
		count_one(data, line);
		add_name(names, line, &room);
	}
	json_object_set_new(data, "files", json_integer(count));
	if (count > (json_int_t)json_array_size(names))
		json_object_set_new(data, "unnamed",
		                    json_integer(count - (json_int_t)json_array_size(names)));
	json_object_set_new(data, "names", names);
	return data;
}

/* ---- asking --------------------------------------------------------------------------- */

static void say(const struct changed *c, json_t *data)
{
	const struct ledger_who who = { .tenant = c->w->row.tenant,
		                        .workspace = c->w->row.id,
		                        .process = c->process,
		                        .actor = c->actor };

	json_object_set_new(data, "point", json_string(c->point));
	ledger_note(c->w->core, LEDGER_WORKSPACE_FILES, &who, data);
}

static json_t *only_count(const struct changed *c, const char *why)
{
	return json_pack("{sI,sI,ss}", "files", (json_int_t)c->files, "unnamed",
	                 (json_int_t)c->files, "reason", why);
}

static json_t *read_list(const struct changed *c)
{
	char *text = mem_alloc(LIST_BYTES_MAX);
	size_t n = 0;
	int r;

	while (n < LIST_BYTES_MAX &&
	       (r = os_pread(c->fd, text + n, LIST_BYTES_MAX - n, (off_t)n)) > 0)
		n += (size_t)r;
	json_t *data = n < LIST_BYTES_MAX ? changed_data(text, n) : only_count(c, "too long");

	free(text);
	return data;
}

static void drop(struct changed *c)
{
	struct changed **at = &c->w->changes;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	fd_close(&c->fd);
	free(c);
}

void changed_close(struct wsx *w)
{
	while (w->changes)
		drop(w->changes);
}

static void listed(void *arg, const struct vault_done *d, const struct err *e)
{
	struct changed *c = arg;
	struct wsx *w = c->w;

	(void)d;
	say(c, e ? only_count(c, "its storage did not answer") : read_list(c));
	drop(c);
	wsx_unref(w);
}

void changed_note(struct wsx *w, const struct point_row *point, const char *process)
{
	struct vault_packet p = { .head.type = V_CHANGES,
		                  .between = { .from = (uint64_t)point->before,
		                               .to = (uint64_t)point->num } };
	struct changed *c = mem_alloc(sizeof *c);

	*c = (struct changed){ .w = w, .fd = -1, .files = point->files };
	snprintf(c->point, sizeof c->point, "%s", point->id);
	snprintf(c->process, sizeof c->process, "%s", process ? process : "");
	snprintf(c->actor, sizeof c->actor, "%s", w->first ? w->first->actor : "");
	bool is_asked = point->files <= CHANGED_FILES_MAX && w->link == WSX_OPEN;

	c->fd = is_asked ? memfd_create("changes", MFD_CLOEXEC) : -1;
	if (c->fd < 0) {
		say(c, only_count(c, is_asked ? "too many open files" : "too many"));
		free(c);
		return;
	}
	c->next = w->changes;
	w->changes = c;
	wsx_ref(w);
	ws_ask(w, &p, c->fd, listed, c);
}
