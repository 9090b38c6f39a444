/* What a client says at the lending socket: what passes is paths, each the same as itself. */
#include "wire/lend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct lend_head *head = (const struct lend_head *)data;
	struct err e;

	if (size < sizeof *head || lend_size(head) != size)
		return 0;
	const char *paths = (const char *)data + sizeof *head, *end = (const char *)data + size;
	if (lend_check(paths, size - sizeof *head, &e) < 0)
		return 0;
	for (const char *at = paths; at < end; at += strlen(at) + 1)
		expect(at[0] == '/' && lend_is_same(at, at));
	return 0;
}
