#include "tree/diff.h"
#include "tree/fail.h"
#include "tree/patchtext.h"
#include "tree/splice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (8u << 20)

/* The next part of the input, up to a NUL. */
static struct span part(struct span *rest)
{
	const char *nul = rest->len > 0 ? memchr(rest->at, 0, rest->len) : NULL;
	size_t n = nul ? (size_t)(nul - rest->at) : rest->len;
	struct span out = { rest->at, n };

	*rest = span_after(*rest, nul ? n + 1 : n);
	return out;
}

/* The diff between two texts makes one of the other. */
static void check_diff(struct span before, struct span after)
{
	AUTO(str_done) struct str diff = { .max = OUT_MAX }, again = { .max = OUT_MAX };
	AUTO(hunks_done) struct hunks hunks = { 0 };
	struct hunk_result result = { 0 };
	struct err e;

	if (!diff_add(before, after, &diff) || diff.overflow)
		return;
	if (diff.len == 0) {
		if (before.len != after.len || memcmp(before.at, after.at, after.len) != 0)
			abort();
		return;
	}
	if (patch_parse_hunks(&hunks, (struct span){ diff.data, diff.len }, &e) < 0)
		abort();
	/* A byte order mark is no part of a line there. */
	if (before.len >= 3 && memcmp(before.at, "\xef\xbb\xbf", 3) == 0)
		return;
	if (hunks_apply(before, &hunks, &again, &result, &e) < 0)
		abort();
	/* New lines get the line ends of a file that has only CRLF. */
	if (memchr(before.at, '\r', before.len) || memchr(after.at, '\r', after.len))
		return;
	if (again.len != after.len || (after.len && memcmp(again.data, after.at, after.len) != 0))
		abort();
}

/* A text, what to find, what to put there; a letter before them says whether all of it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { (const char *)data, size };
	bool all = size > 0 && data[0] & 1;

	if (size > 0)
		rest = span_after(rest, 1);
	struct span text = part(&rest);
	struct splice_edit edit = { .from = part(&rest), .to = part(&rest), .all = all };
	AUTO(str_done) struct str out = { .max = OUT_MAX }, lines = { .max = OUT_MAX };
	struct splice_result result = { 0 };
	struct err e = { 0 };

	if (splice_text(text, &edit, &out, &result, &e) == 0) {
		if (result.replaced == 0 || (!all && result.replaced != 1))
			abort();
		check_diff(text, (struct span){ str_text(&out), out.len });
	} else if (!e.msg[0] || fail_code(&e) == TREE_BACKEND_ERROR) {
		abort();
	}
	if (splice_lines(text, size % 5, edit.to, &lines, &e) == 0 &&
	    lines.len < text.len + edit.to.len)
		abort();
	check_diff(edit.from, edit.to);
	return 0;
}
