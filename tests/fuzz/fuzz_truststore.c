#include "wire/truststore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* The length of one value, with its head; it has to fill what is given. */
static size_t value_size(const unsigned char *at, size_t n)
{
	size_t size = 0, head = 2;

	expect(n >= 2);
	if (at[1] < 0x80)
		return head + at[1];
	for (size_t i = 0; i < (at[1] & 0x7fu); i++, head++) {
		expect(head < n);
		size = size << 8 | at[head];
	}
	return head + size;
}

/* One sequence and nothing behind it, whatever the bytes were; in no more room than was given. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(str_done) struct str store = { .max = 1 << 20 }, small = { .max = size };

	if (truststore_make((const char *)data, size, &store)) {
		const unsigned char *at = (const unsigned char *)store.data;

		expect(at[0] == 0x30 && value_size(at, store.len) == store.len);
	}
	if (truststore_make((const char *)data, size, &small))
		expect(small.len <= size && small.len == store.len);
	return 0;
}
