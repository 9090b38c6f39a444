#include "wire/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 20 };

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static bool has(const char *path, const char *what)
{
	return strstr(path, what) != NULL;
}

/* A normal path has one meaning: it is its own normal form, and nothing in it climbs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(str_done) struct str once = { .max = TEXT_MAX }, twice = { .max = TEXT_MAX };
	struct span target = { (const char *)data, size };

	if (http_target_normal(target, &once) < 0) {
		expect(once.len == 0);
		return 0;
	}
	const char *path = str_text(&once);

	expect(path[0] == '/' && strlen(path) == once.len && once.len <= size);
	expect(!has(path, "//") && !has(path, "/../") && !has(path, "/./") && !has(path, "\\"));
	expect(!has(path, "%2E") && !has(path, "%2F") && !has(path, "%5C") && !has(path, "%00"));
	expect(!has(path, "?") && !has(path, "#") && !has(path, "/..;"));
	expect(!has(path, "/..%3B") && !has(path, "/..%20/") && !has(path, "%EF%BC%8F"));
	expect(once.len < 3 || strcmp(path + once.len - 3, "/..") != 0);
	expect(http_target_normal((struct span){ path, once.len }, &twice) == 0);
	expect(strcmp(path, str_text(&twice)) == 0);
	return 0;
}
