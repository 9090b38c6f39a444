#include "wire/forward.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TAG "0123abcd"

static const char *const prefixes[] = { "cst_", NULL };
static const struct forward_way way = { .tag = TAG, .carry = { .prefixes = prefixes } };

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* What comes out is one head for the strict parser, and has nothing of what stays outside. */
static void expect_request(const struct http_head *in)
{
	AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
	struct http_head h;
	struct err e = { 0 };

	if (forward_request(in, &way, &out, &e) < 0)
		return;
	int n = http_request_head(out.data, out.len, &h);

	if (n == HTTP_E_FIELDS || n == HTTP_E_HEAD_LARGE)
		return; /* three fields more than there were, and longer names */
	expect(n == (int)out.len);
	expect(h.body == in->body && h.length == in->length);
	expect(!http_header(&h, FORWARD_TOKEN) && http_header_count(&h, "Cookie") <= 1);
	expect(http_header_count(&h, "Connection") == 1 && http_header_count(&h, "Host") <= 1);
	expect(h.is_upgrade_websocket == in->is_upgrade_websocket);
	const struct span *bearer = http_header(&h, "Authorization");

	expect(!bearer || !memmem(bearer->at, bearer->len, prefixes[0], 4));
}

static void expect_answer(const struct http_head *in)
{
	AUTO(arena_done) struct arena a = { 0 };
	AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
	const char *fields[FORWARD_FIELDS];
	struct err e = { 0 };
	struct http_print p = http_print_response(&out, 200);

	forward_answer(in, TAG, &a, fields);
	for (size_t i = 0; fields[i]; i += 2) {
		http_print_text(&p, fields[i], fields[i + 1]);
		if (span_is_nocase(span_of(fields[i]), "Set-Cookie"))
			expect(strncmp(fields[i + 1], "cp" TAG "_", 11) == 0 &&
			       strcasestr(fields[i + 1], "; httponly"));
	}
	expect(http_print_end(&p, &e) == 0); /* what was read can be said */
}

/* A cookie that goes out and comes back is what it was. */
static void expect_cookie(struct span field)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 }, in = { .max = 1u << 20 };

	if (!cookie_out(field, TAG, &out))
		return;
	struct span rest = { out.data, out.len }, name, value;

	expect(cookie_next(&rest, &name, &value));
	cookie_in((struct span){ name.at, (size_t)(value.at + value.len - name.at) }, TAG, &in);
	expect(in.len == 0 || in.len == name.len - 11 + 1 + value.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct http_head h;

	if (http_request_head(text, size, &h) > 0) {
		expect_request(&h);
		(void)forward_is_own_page(&h);
	}
	if (http_response_head(text, size, HTTP_ASKED_BODY, &h) > 0)
		expect_answer(&h);
	if (size > 0 && !memchr(data, '\r', size) && !memchr(data, '\n', size))
		expect_cookie((struct span){ text, size });
	return 0;
}
