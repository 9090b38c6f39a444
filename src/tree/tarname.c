#include "tree/tarname.h"

#include <limits.h>

static bool is_dots(const char *name, size_t n, size_t dots)
{
	return n == dots && memcmp(name, "..", n) == 0;
}

bool tarname_clean(const char *name, char out[PATH_TEXT_MAX], bool *is_top)
{
	size_t used = 0;

	*is_top = false;
	if (name[0] == '/' || !name[0])
		return false;
	while (*name) {
		size_t n = strcspn(name, "/");

		if (is_dots(name, n, 2) || n > NAME_MAX || used + n + 2 > PATH_TEXT_MAX)
			return false;
		if (n > 0 && !is_dots(name, n, 1)) {
			if (used > 0)
				out[used++] = '/';
			memcpy(out + used, name, n);
			used += n;
		}
		name += n + (name[n] == '/');
	}
	out[used] = '\0';
	*is_top = used == 0;
	return used > 0;
}

bool tarname_link_stays(const char *path, const char *target)
{
	size_t up = 0, depth = 0;
	bool has_name = false;

	if (target[0] == '/' || !target[0])
		return false;
	for (; *path; path++)
		depth += *path == '/';
	while (*target) {
		size_t n = strcspn(target, "/");

		if (is_dots(target, n, 2)) {
			if (has_name || ++up > depth)
				return false;
		} else if (n > 0 && !is_dots(target, n, 1)) {
			has_name = true;
		}
		target += n + (target[n] == '/');
	}
	return true;
}
