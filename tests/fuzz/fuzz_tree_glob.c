#include "tree/glob.h"
#include "tree/ignore.h"
#include "tree/tarname.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Lines: a pattern, a path, rules. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_done) struct arena arena = { 0 };
	AUTO(globs_done) struct globs g = { 0 };
	AUTO(ignore_done) struct ignore ig;
	char *text = arena_strndup(&arena, (const char *)data, size);
	char *path = strchr(text, '\n');
	char *rules = path ? strchr(path + 1, '\n') : NULL;
	char clean[PATH_TEXT_MAX];
	struct err e;
	bool is_top;

	ignore_init(&ig, -1, "");
	if (!rules || rules - text > 8192)
		return 0;
	*path++ = '\0';
	*rules++ = '\0';
	if (*text && globs_add(&g, span_of(text), &arena, &e) == 0)
		(void)globs_match(&g, span_of(path));
	ignore_push_text(&ig, span_of(rules), "");
	if (*path)
		(void)ignore_has(&ig, path, size & 1);
	if (tarname_clean(path, clean, &is_top)) {
		if (clean[0] == '/' || strstr(clean, "//") || strstr(clean, "/../") ||
		    strncmp(clean, "../", 3) == 0)
			abort();
		(void)tarname_link_stays(clean, text);
	}
	return 0;
}
