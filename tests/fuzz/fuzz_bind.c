/* What a secret is bound to: whatever is taken is printed as a text that means the same. */
#include "spec/bind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static void expect_hosts(const struct bind *b)
{
	expect(b->hosts.len > 0 && b->hosts.len <= BIND_HOSTS_MAX);
	for (size_t i = 0; i < b->hosts.len; i++)
		expect(b->hosts.at[i][0] && !strpbrk(b->hosts.at[i], "*/@ \r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(bind_done) struct bind b = { 0 };
	AUTO(bind_done) struct bind again = { 0 };
	AUTO(str_done) struct str text = { .max = BIND_TEXT_MAX };
	AUTO(str_done) struct str second = { .max = BIND_TEXT_MAX };
	struct err e = { 0 };

	if (bind_read(&b, (const char *)data, size, &e) < 0) {
		expect(e.msg[0]);
		return 0;
	}
	expect_hosts(&b);
	expect(b.how < BIND_HOWS && b.arg && strcmp(b.inject, "") != 0);
	expect(b.push.len == 0 || b.git.len > 0);
	if (bind_print(&b, &text, &e) < 0)
		return 0; /* longer than it came */
	expect(bind_read(&again, str_text(&text), text.len, &e) == 0);
	expect(bind_print(&again, &second, &e) == 0);
	expect(strcmp(str_text(&text), str_text(&second)) == 0);
	return 0;
}
