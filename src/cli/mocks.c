#include "cli/mocks.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "cli/policy.h"
#include "spec/mock.h"
#include "wire/base64.h"

#define LEVELS_MAX 32

static int open_name(int at, const char *name, int flags)
{
	return openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags);
}

/* Below the folder of the spec. */
static int open_below(const char *spec, const char *file)
{
	const char *slash = strrchr(spec, '/');
	AUTO(freep) char *dir = mem_strdup(spec);
	AUTO(freep) char *rest_of = mem_strdup(file);
	char *rest = rest_of;

	dir[slash ? slash - spec + 1 : 0] = '\0';
	AUTO(fd_close) int at = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (at >= 0 && rest) {
		const char *name = strsep(&rest, "/");
		int next = open_name(at, name, rest ? O_DIRECTORY : 0);
		int errnum = errno;

		fd_close(&at);
		at = next;
		errno = errnum;
	}
	return fd_take(&at);
}

/* ---- a folder ------------------------------------------------------------------------ */

struct tree {
	json_t *files;
	size_t bytes;
};

static int add_file(struct tree *t, int fd, const char *path, struct err *e)
{
	AUTO(str_done) struct str bytes = { .max = MOCK_BYTES_MAX - t->bytes };
	AUTO(str_done) struct str text = { .max = 2ul * MOCK_BYTES_MAX };

	if (json_object_size(t->files) >= MOCK_FILES_MAX)
		return err_new(e, ERR_LIMIT, "more than %d files", MOCK_FILES_MAX);
	if (policy_read(fd, path, &bytes, e) < 0)
		return bytes.overflow ? err_new(e, ERR_LIMIT, "the files have more than %u bytes",
		                                MOCK_BYTES_MAX)
		                      : -1;
	t->bytes += bytes.len;
	base64_encode(str_text(&bytes), bytes.len, &text);
	if (json_object_set_new(t->files, path, json_stringn(str_text(&text), text.len)) < 0)
		return err_new(e, ERR_INVALID, "the name of a file is not UTF-8");
	return 0;
}

static int add_folder(struct tree *t, int *fd, const char *path, int levels, struct err *e);

static int add_entry(struct tree *t, int at, const char *name, const char *path, int levels,
                     struct err *e)
{
	AUTO(fd_close) int fd = open_name(at, name, 0);
	struct stat st;

	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		return err_new(e, ERR_INVALID, "%s is neither a file nor a folder", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %s", path);
	if (S_ISDIR(st.st_mode))
		return add_folder(t, &fd, path, levels - 1, e);
	if (!S_ISREG(st.st_mode))
		return err_new(e, ERR_INVALID, "%s is neither a file nor a folder", path);
	return add_file(t, fd, path, e);
}

static void dir_close(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Takes fd. `path` is relative to the top, and "" there. */
static int add_folder(struct tree *t, int *fd, const char *path, int levels, struct err *e)
{
	AUTO(dir_close) DIR *d = fdopendir(*fd);
	const struct dirent *entry;

	if (!d)
		return err_sys(e, errno, "list %s", path);
	*fd = -1;
	if (levels == 0)
		return err_new(e, ERR_LIMIT, "more than %d folders in each other", LEVELS_MAX);
	while ((errno = 0, entry = readdir(d))) {
		AUTO(str_done) struct str below = { .max = PATH_TEXT_MAX };

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		str_addf(&below, "%s%s%s", path, path[0] ? "/" : "", entry->d_name);
		if (below.overflow)
			return err_new(e, ERR_LIMIT, "a path is too long");
		if (add_entry(t, dirfd(d), entry->d_name, str_text(&below), levels, e) < 0)
			return -1;
	}
	return errno ? err_sys(e, errno, "list %s", path) : 0;
}

/* The same folder is the same text. */
static int read_folder(int *fd, char **out, struct err *e)
{
	AUTO(json_decrefp) json_t *doc = json_object();
	struct tree t = { .files = json_object() };

	json_object_set_new(doc, "files", t.files);
	if (add_folder(&t, fd, "", LEVELS_MAX, e) < 0)
		return -1;
	*out = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	return *out ? 0 : err_new(e, ERR_INTERNAL, "print the files");
}

/* ---- a mock -------------------------------------------------------------------------- */

static int read_rules(int fd, const char *file, char **out, struct err *e)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };

	if (policy_read(fd, file, &text, e) < 0)
		return -1;
	if (strlen(str_text(&text)) != text.len)
		return err_new(e, ERR_INVALID, "is not text");
	*out = mem_strdup(str_text(&text));
	return 0;
}

static int read_mock(struct spec *s, const char *path, const char *file, struct err *e)
{
	AUTO(freep) char *text = NULL;
	AUTO(fd_close) int fd = open_below(path, file);
	AUTO(mock_done) struct mock m = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "net.mock: open %s", file);
	int r = S_ISDIR(st.st_mode) ? read_folder(&fd, &text, e) : read_rules(fd, file, &text, e);

	if (r < 0 || mock_read(&m, text, strlen(text), e) < 0)
		return err_wrap(e, "net.mock: %s", file);
	struct text_pair pair = { file, arena_strdup(&s->arena, text) };

	vec_push(&s->net.mocks, pair);
	return 0;
}

static bool has_mock(const struct net_spec *net, const char *file)
{
	for (size_t i = 0; i < net->mocks.len; i++)
		if (strcmp(net->mocks.at[i].key, file) == 0)
			return true;
	return false;
}

int mocks_read(struct spec *s, const char *path, struct err *e)
{
	for (size_t i = 0; i < s->net.mock.len; i++) {
		const char *file = s->net.mock.at[i].value;

		if (!has_mock(&s->net, file) && read_mock(s, path, file, e) < 0)
			return -1;
	}
	return 0;
}
