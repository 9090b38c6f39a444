/*
 * user.c - who runs inside. Parsed whole or not at all: "1:0x0" once became root in a runtime
 * whose parser stopped at the x.
 */
#include "spec/opts.h"

#include <ctype.h>

#define USER_NAME_MAX 32
#define ID_NONE UINT32_MAX /* (uid_t)-1 means "leave as it is" to the kernel */

static int bad_user(const char *text, struct err *e)
{
	return err_new(e, ERR_INVALID,
	               "\"%s\" is not a user; write a name ([a-z_][a-z0-9_-]*), uid or uid:gid",
	               quote(text).text);
}

/* The decimal id at *p, which is moved behind it. */
static int id_parse(const char **p, uint32_t *out)
{
	const char *start = *p;
	uint64_t n = 0;

	while (isdigit((unsigned char)**p) && *p - start < 10)
		n = n * 10 + (uint64_t)(*(*p)++ - '0');
	if (*p == start || (start[0] == '0' && *p > start + 1) || n >= ID_NONE)
		return -1;
	*out = (uint32_t)n;
	return 0;
}

static bool is_user_name(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return n > 0 && n <= USER_NAME_MAX && !text[n] &&
	       (islower((unsigned char)*text) || *text == '_');
}

int user_parse(const char *text, struct user_ref *out, struct err *e)
{
	struct user_ref ref = { 0 };
	const char *p = text;

	if (is_user_name(text)) {
		*out = (struct user_ref){ .name = text };
		return 0;
	}
	if (id_parse(&p, &ref.uid) < 0)
		return bad_user(text, e);
	if (*p == ':') {
		p++;
		ref.has_gid = true;
		if (id_parse(&p, &ref.gid) < 0)
			return bad_user(text, e);
	}
	if (*p)
		return bad_user(text, e);
	*out = ref;
	return 0;
}
