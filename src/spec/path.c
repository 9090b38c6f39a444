/*
 * path.c - paths of mounts, inside and outside. Text only: what is there is the engine's business.
 */
#include "spec/opts.h"

struct reserved {
	const char *path, *why;
};

/* Ours inside. A mount there would replace a wall, or the programs that stand behind it. */
static const struct reserved inside[] = {
	{ "/proc", "the sandbox has its own" },
	{ "/sys", "the sandbox has its own" },
	{ "/dev", "the sandbox has its own" },
	{ "/run/caisson", "the door to the monitor is there" },
	{ "/etc", "it belongs to the image" },
	{ "/usr", "it belongs to the image" },
	{ "/bin", "it leads to /usr" },
	{ "/sbin", "it leads to /usr" },
	{ "/lib", "it leads to /usr" },
	{ "/lib32", "it leads to /usr" },
	{ "/lib64", "it leads to /usr" },
	{ "/libx32", "it leads to /usr" },
};

/* Outside. The host's own view of its kernel: reading it is already an escape. */
static const struct reserved outside[] = {
	{ "/proc", "it shows the host's processes" },
	{ "/sys", "it shows the host's devices" },
};

/* True when `path` is `top` or lies below it; both are normal. */
static bool is_within(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int refuse_reserved(const char *path, const struct reserved *list, size_t count,
                           struct err *e)
{
	for (size_t i = 0; i < count; i++)
		if (is_within(path, list[i].path) || is_within(list[i].path, path))
			return err_new(e, ERR_INVALID, "\"%s\" is reserved: %s, %s",
			               quote(path).text, list[i].path, list[i].why);
	return 0;
}

/* Absolute and normal: "//", "/./" and a trailing "/" go, ".." is refused. */
int check_path(const struct opt *o, struct arena *a, const char *text, const char **out,
               struct err *e)
{
	(void)o;
	if (text_plain(text, PATH_TEXT_MAX - 1, e) < 0)
		return -1;
	if (text[0] != '/')
		return err_new(e, ERR_INVALID, "\"%s\" is relative; write \"/%s\"",
		               quote(text).text, quote(text).text);
	const char *whole = text;
	char *path = arena_alloc(a, strlen(text) + 2);
	size_t len = 0;

	while (*text) {
		text += strspn(text, "/");
		size_t n = strcspn(text, "/");

		if (n == 2 && memcmp(text, "..", 2) == 0)
			return err_new(e, ERR_INVALID, "\"%s\": \"..\" is not allowed in a path",
			               quote(whole).text);
		if (n > 0 && !(n == 1 && text[0] == '.')) {
			path[len++] = '/';
			memcpy(path + len, text, n);
			len += n;
		}
		text += n;
	}
	if (len == 0)
		path[0] = '/';
	*out = path;
	return 0;
}

int check_mount_point(const struct opt *o, struct arena *a, const char *text, const char **out,
                      struct err *e)
{
	const char *path = NULL;

	if (check_path(o, a, text, &path, e) < 0)
		return -1;
	if (strcmp(path, "/") == 0)
		return err_new(e, ERR_INVALID, "\"/\" is reserved: the root is the image");
	if (refuse_reserved(path, inside, COUNT(inside), e) < 0)
		return -1;
	*out = path;
	return 0;
}

int check_source(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e)
{
	const char *path = NULL;

	if (check_path(o, a, text, &path, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(outside); i++)
		if (is_within(path, outside[i].path))
			return err_new(e, ERR_INVALID, "\"%s\" cannot be mounted: %s",
			               quote(path).text, outside[i].why);
	*out = path;
	return 0;
}
