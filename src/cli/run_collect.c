#include "cli/run_collect.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "cli/client.h"
#include "cli/pack.h"
#include "cli/remote.h"
#include "wire/base64.h"
#include "wire/escape.h"
#include "wire/later.h"

#define BODY_MAX (8u << 20)
#define FILE_MAX (64u << 20)
#define OUTPUT_MAX (16u << 20)

/* ---- what is asked ------------------------------------------------------------------- */

static int put_patterns(json_t *body, const char *key, const struct flag_list *patterns,
                        struct err *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < patterns->len; i++)
		json_array_append_new(list, json_string(patterns->at[i]));
	bool is_whole = json_array_size(list) == patterns->len;

	json_object_set_new(body, key, list);
	return is_whole ? 0 : err_new(e, ERR_INVALID, "%s: a pattern is not UTF-8", key);
}

static int body_of(const struct run_setup *setup, const struct run_collect *want, json_t **out,
                   struct err *e)
{
	AUTO(str_done) struct str text = { .max = BODY_MAX };

	if (remote_run_body(setup, &text, e) < 0)
		return -1;
	AUTO(json_decrefp) json_t *body = json_loads(str_text(&text), 0, NULL);

	if (put_patterns(body, "collect", &want->patterns, e) < 0 ||
	    put_patterns(body, "allow_exec", &want->allow, e) < 0)
		return -1;
	json_object_set_new(body, "output", json_pack("{ss}", "inline", "4m"));
	*out = json_incref(body);
	return 0;
}

/* ---- what came back ------------------------------------------------------------------ */

/* As an archive, so that it is unpacked as every other one: no name of it is trusted. */
static int put_file(struct archive *a, const json_t *file, struct err *e)
{
	const json_t *coded = json_object_get(file, "base64");
	const json_t *name = json_object_get(file, "path_base64");
	const char *path = json_string_value(json_object_get(file, "path"));
	const char *mode = json_string_value(json_object_get(file, "mode"));
	AUTO(str_done) struct str bytes = { .max = FILE_MAX };
	AUTO(str_done) struct str exact = { .max = PATH_TEXT_MAX };

	if (!path || !coded)
		return 0;
	if (!base64_decode(json_string_value(coded), json_string_length(coded), &bytes) ||
	    (name && !base64_decode(json_string_value(name), json_string_length(name), &exact)))
		return err_new(e, ERR_INTERNAL, "the daemon's answer is not base64");
	path = name ? str_text(&exact) : path;
	struct archive_entry *entry = archive_entry_new();

	archive_entry_copy_pathname(entry, path + strspn(path, "/"));
	archive_entry_set_filetype(entry, S_IFREG);
	archive_entry_set_perm(entry, mode ? later_mode((mode_t)strtoul(mode, NULL, 8)) : 0644);
	archive_entry_set_mtime(entry, time(NULL), 0);
	archive_entry_set_size(entry, (la_int64_t)bytes.len);
	/* A warning says that a name is not ASCII: it is then stored as bytes. */
	bool is_done = archive_write_header(a, entry) >= ARCHIVE_WARN &&
	               archive_write_data(a, str_text(&bytes), bytes.len) == (la_ssize_t)bytes.len;

	archive_entry_free(entry);
	return is_done ? 0 : err_new(e, ERR_INTERNAL, "%s: %s", path, archive_error_string(a));
}

static int pack_files_of(const json_t *process, int fd, struct err *e)
{
	struct archive *a = archive_write_new();
	const json_t *file;
	int r = 0;
	size_t i;

	if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
	    archive_write_open_fd(a, fd) != ARCHIVE_OK)
		r = err_new(e, ERR_INTERNAL, "make an archive: %s", archive_error_string(a));
	json_array_foreach(json_object_get(process, "collected"), i, file)
	{
		if (r == 0)
			r = put_file(a, file, e);
	}
	if (archive_write_close(a) != ARCHIVE_OK && r == 0)
		r = err_new(e, ERR_INTERNAL, "make an archive: %s", archive_error_string(a));
	archive_write_free(a);
	return r;
}

static long more(void *arg, const void **bytes, struct err *e)
{
	static char buf[64u << 10];
	ssize_t n = read(*(const int *)arg, buf, sizeof buf);

	*bytes = buf;
	return n < 0 ? err_sys(e, errno, "read") : (long)n;
}

static int keep_files(const json_t *process, const char *into, struct err *e)
{
	struct unpacked done = { 0 };
	AUTO(fd_close) int fd = memfd_create("collected", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "memfd_create");
	if (pack_files_of(process, fd, e) < 0)
		return -1;
	if (into && mkdir(into, 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make %s", into);
	AUTO(fd_close) int dir_fd = open(into ? into : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, errno, "open %s", into ? into : ".");
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "seek");
	return unpack_folder(dir_fd, more, &fd, &done, e);
}

/* ---- what is told -------------------------------------------------------------------- */

static int show(const json_t *process, const char *stream, int fd, struct err *e)
{
	const json_t *text = json_object_get(process, stream);
	const char *encoding = json_string_value(json_object_get(process, "encoding"));
	AUTO(str_done) struct str bytes = { .max = OUTPUT_MAX };

	if (!encoding || strcmp(encoding, "base64") != 0)
		return write_all(fd, json_string_value(text), json_string_length(text), e);
	if (!base64_decode(json_string_value(text), json_string_length(text), &bytes))
		return err_new(e, ERR_INTERNAL, "the daemon's answer is not base64");
	return write_all(fd, str_text(&bytes), bytes.len, e);
}

static void tell_one(const json_t *file)
{
	const char *path = json_string_value(json_object_get(file, "path"));
	const char *why = json_string_value(json_object_get(file, "executes_later"));
	bool is_left = json_is_true(json_object_get(file, "skipped"));
	unsigned long mode = strtoul(json_string_value(json_object_get(file, "mode")), NULL, 8);

	if (!why && is_left)
		fprintf(stderr, "caisson: too large to collect: %s\n", escape_brief(path));
	if (!why || (!is_left && (mode & 0111)))
		return;
	fprintf(stderr, "caisson: %s: %s", is_left ? "left out" : "not executable here",
	        escape_brief(path));
	fprintf(stderr, ": %s (--allow-exec PATTERN)\n", escape_brief(why));
}

static void tell_missing(const json_t *process)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(process, "missing"), i, one) fprintf(
	    stderr, "caisson: nothing to collect: %s\n", escape_brief(json_string_value(one)));
	json_array_foreach(json_object_get(process, "collected"), i, one) tell_one(one);
}

static int tell(const json_t *process, bool is_json, struct err *e)
{
	json_t *one;
	size_t i;

	if (!is_json) {
		if (show(process, "stdout", STDOUT_FILENO, e) < 0 ||
		    show(process, "stderr", STDERR_FILENO, e) < 0)
			return -1;
		tell_missing(process);
		return 0;
	}
	json_array_foreach(json_object_get(process, "collected"), i, one)
	    json_object_del(one, "base64");
	AUTO(freep) char *text = json_dumps(process, JSON_COMPACT);

	return write_all(STDOUT_FILENO, text, strlen(text), e) < 0
	           ? -1
	           : write_all(STDOUT_FILENO, "\n", 1, e);
}

int run_collect(const struct run_setup *setup, const struct run_collect *want, struct err *e)
{
	struct client client;
	AUTO(json_decrefp) json_t *process = NULL;
	json_t *body = NULL;

	if (setup->has_stdin || setup->is_tty)
		return err_new(e, ERR_INVALID, "--collect: neither with -i nor with -t");
	if (body_of(setup, want, &body, e) < 0)
		return -1;
	client_init(&client);
	client.doing = "run";
	int r = client_call(&client, "POST", "/v1/run", body, &process, e);

	client_done(&client);
	if (r < 0 || keep_files(process, want->into, e) < 0 || tell(process, want->is_json, e) < 0)
		return -1;
	return remote_exit_status(process);
}
