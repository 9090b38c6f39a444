/* The first line is a path, the second the target of a link or nothing, the rest a text. */
#include "wire/later.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static struct span next_line(struct span *rest)
{
	const char *end = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
	struct span line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };

	*rest = span_after(*rest, line.len + (end != NULL));
	return line;
}

/* Neither capitals nor what NTFS cuts off nor a character that some file systems do not see hides a
 * name, at any depth. */
static void expect_spellings(struct span path)
{
	char other[512];
	struct later_file f = { .path = { other, 0 }, .after = span_of("{}") };

	if (path.len == 0 || path.len > 240 || memchr(path.at, '\0', path.len) ||
	    path.at[path.len - 1] == '/')
		return;
	f.path.len = (size_t)snprintf(other, sizeof other, "deep/%.*s. .", (int)path.len, path.at);
	for (char *c = other; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 0x20);
	expect(later_why(&f) != NULL);
	f.path.len =
	    (size_t)snprintf(other, sizeof other, "deep/\xe2\x81\xa0%.*s\xf3\xa0\x84\x80. .",
	                     (int)path.len, path.at);
	expect(later_why(&f) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { (const char *)data, size };
	struct span path = next_line(&rest), target = next_line(&rest);
	char link[4096];
	struct later_file plain = { .path = path, .after = span_of("{}") };
	struct later_file f = {
		.path = path, .mode = 0644, .before = span_of("{}"), .after = rest
	};

	const char *by_name = later_why(&plain);
	if (by_name)
		expect_spellings(path);
	expect(!later_is_git(path) || by_name != NULL);
	/* Its text, its mode and where it leads only ever add a reason. */
	expect(!by_name || later_why(&f) != NULL);
	f.mode = 0755;
	expect(later_why(&f) != NULL);
	if (target.len < sizeof link) {
		memcpy(link, target.at, target.len);
		link[target.len] = '\0';
		f = (struct later_file){ .path = path, .target = link };
		expect(later_why(&f) != NULL || (link[0] != '/' && link[0] != '\0'));
		expect(!by_name || later_why(&f) != NULL);
	}
	return 0;
}
