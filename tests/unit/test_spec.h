/*
 * test_spec.h - tables of what a spec takes and refuses.
 *
 * A document is tried as JSON and as YAML: every JSON text of the tables is YAML too, so the two
 * readers must agree on it.
 */
#pragma once

#include "spec/opts.h"
#include "test.h"

enum { TEXT_MAX = 8 << 20 };

typedef int spec_reader(struct spec *s, const char *text, size_t len, struct err *e);

static inline void check_printed(const struct spec *s, const char *want)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	struct err e = { 0 };

	CHECK_INT(spec_print(s, &out, &e), 0);
	CHECK_STR(str_text(&out), want);
}

/* Fails unless the document is taken and printed as `want`. */
static inline void takes_by(spec_reader *read, const char *text, const char *want)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	printf("# %s\n", quote(text).text);
	spec_init(&s);
	if (read(&s, text, strlen(text), &e) < 0 || spec_check(&s, &e) < 0)
		CHECK_STR(e.msg, "");
	check_printed(&s, want);
}

/* Fails unless the document is refused with a message that contains `part`. */
static inline void refuses_by(spec_reader *read, const char *text, size_t len, const char *part)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	printf("# %s\n", quote(text).text);
	spec_init(&s);
	int r = read(&s, text, len, &e);

	if (r == 0)
		r = spec_check(&s, &e);
	CHECK_INT(r, -1);
	CHECK(e.kind == ERR_INVALID || e.kind == ERR_LIMIT);
	if (!strstr(e.msg, part))
		CHECK_STR(e.msg, part);
}

static inline void takes(const char *text, const char *want)
{
	takes_by(spec_json, text, want);
	takes_by(spec_yaml, text, want);
}

static inline void refuses(const char *text, const char *part)
{
	refuses_by(spec_json, text, strlen(text), part);
	refuses_by(spec_yaml, text, strlen(text), part);
}

/* One flag on an empty spec. */
static inline void flag_takes(const char *flag, const char *value, const char *want)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	printf("# --%s %s\n", flag, quote(value).text);
	spec_init(&s);
	if (spec_flag(&s, flag, value, &e) < 0 || spec_check(&s, &e) < 0)
		CHECK_STR(e.msg, "");
	check_printed(&s, want);
}

static inline void flag_refuses(const char *flag, const char *value, const char *part)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	printf("# --%s %s\n", flag, quote(value).text);
	spec_init(&s);
	int r = spec_flag(&s, flag, value, &e);

	if (r == 0)
		r = spec_check(&s, &e);
	CHECK_INT(r, -1);
	if (!strstr(e.msg, part))
		CHECK_STR(e.msg, part);
}

/* The canonical form around one part that differs. */
#define CANON(net, fs, creds, limits, rest)                                                        \
	"{\"net\":" net ",\"fs\":" fs ",\"creds\":" creds ",\"limits\":" limits                    \
	",\"user\":\"agent\"" rest "}"
#define DENY "{\"mode\":\"deny\"}"
#define WITH_NET(net) CANON(net, "[]", "[]", "{}", "")
#define WITH_FS(fs) CANON(DENY, fs, "[]", "{}", "")
#define WITH_CREDS(creds) CANON(DENY, "[]", creds, "{}", "")
#define WITH_LIMITS(limits) CANON(DENY, "[]", "[]", limits, "")
#define WITH(rest) CANON(DENY, "[]", "[]", "{}", "," rest)
