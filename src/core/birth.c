#include "core/birth.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/extent.h"
#include "wire/log.h"

#define LATE_S 10

static char *text_of(const struct px *p, const char *argv)
{
	json_t *o = json_pack("{ss,ss,sI,sI,ss,ss,ss?,sI}", "tenant", p->tenant, "sandbox",
	                      p->sandbox_id, "generation", (json_int_t)p->generation, "num",
	                      (json_int_t)p->num, "argv", argv, "cwd", p->cwd, "label", p->label,
	                      "created_ms", (json_int_t)p->created_ms);
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return text;
}

int birth_write(const struct px *p)
{
	AUTO(freep) char *text = text_of(p, p->argv);

	if (!text || strlen(text) >= LOG_BIRTH_MAX) { /* not text, or too long: without the words */
		free(text);
		text = text_of(p, "[\"...\"]");
	}
	if (!text || strlen(text) >= LOG_BIRTH_MAX)
		return -ENAMETOOLONG;
	return os_pwrite2(p->log_fd, text, strlen(text) + 1, NULL, 0, LOG_BIRTH_AT);
}

/* A row that points into `o`; false: no writer of ours has written that. */
static bool row_of(const json_t *o, const char *id, struct process_row *out)
{
	*out = (struct process_row){
		.id = id,
		.tenant = json_string_value(json_object_get(o, "tenant")),
		.sandbox = json_string_value(json_object_get(o, "sandbox")),
		.generation = json_integer_value(json_object_get(o, "generation")),
		.num = json_integer_value(json_object_get(o, "num")),
		.state = PROCESS_RUNNING,
		.argv = json_string_value(json_object_get(o, "argv")),
		.cwd = json_string_value(json_object_get(o, "cwd")),
		.label = json_string_value(json_object_get(o, "label")),
		.exit_code = -1,
		.created_ms = json_integer_value(json_object_get(o, "created_ms")),
		.log_id = id,
	};
	out->started_ms = out->created_ms;
	return out->tenant && out->sandbox && out->argv && out->created_ms > 0;
}

static void recover_one(struct core *c, const char *id)
{
	char text[LOG_BIRTH_MAX] = "";
	AUTO(arena_done) struct arena a = { 0 };
	AUTO(fd_close) int fd = openat(c->logs_fd, id, O_RDONLY | O_CLOEXEC);
	struct process_row row, known;
	struct err e = { 0 };

	if (fd < 0 || os_pread(fd, text, sizeof text - 1, LOG_BIRTH_AT) <= 0 || text[0] != '{')
		return; /* its row came first */
	json_t *o = json_loads(text, 0, NULL);
	if (row_of(o, id, &row) && store_process_get(c->store, row.tenant, id, &a, &known, &e) < 0)
		px_revive(c, &row);
	json_decref(o);
}

/* A row comes some milliseconds late: what was written long before the last one has its own. */
static bool is_recent(const struct core *c, const char *id)
{
	struct stat st;

	return fstatat(c->logs_fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_mtime >= store_last_write(c->store) - LATE_S;
}

void birth_recover(struct core *c)
{
	int fd = store_was_clean(c->store)
	             ? -1
	             : openat(c->logs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		if (id_is(d->d_name, strlen(d->d_name), "px") && is_recent(c, d->d_name))
			recover_one(c, d->d_name);
	if (dir)
		closedir(dir);
}
