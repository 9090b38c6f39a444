/*
 * The first bytes of a TLS client. What is found must be a name or nothing, and more bytes behind a
 * hello must not change it.
 */
#include "gate/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static void expect_plain(const char *text)
{
	for (; *text; text++)
		expect(*text > ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hello h, again;
	size_t n = size < HELLO_BYTES_MAX - 1 ? size : HELLO_BYTES_MAX - 1;
	enum hello_result r = hello_read(data, n, &h);

	if (r != HELLO_OK)
		return 0;
	char name[GATE_NAME_SIZE];

	expect_plain(h.alpn);
	expect(h.sni.kind != SAID_NAME || (hostname_read(h.sni.name, strlen(h.sni.name), name) &&
	                                   strcmp(name, h.sni.name) == 0));
	uint8_t *more = mem_alloc(n + 1);

	memcpy(more, data, n);
	more[n] = 0x17;
	expect(hello_read(more, n + 1, &again) == HELLO_OK);
	expect(again.sni.kind == h.sni.kind && strcmp(again.alpn, h.alpn) == 0);
	free(more);
	return 0;
}
