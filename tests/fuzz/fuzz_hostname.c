#include "wire/hostname.h"

#include <arpa/inet.h>

#include "wire/sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* Canonical, and what a resolver would not take for an address. */
static void expect_name(const char *name)
{
	char again[GATE_NAME_SIZE];
	struct in_addr v4;
	struct in6_addr v6;

	expect(hostname_read(name, strlen(name), again) && strcmp(name, again) == 0);
	expect(strlen(name) < GATE_NAME_SIZE && name[0] != '.' && !strstr(name, ".."));
	for (const char *p = name; *p; p++)
		expect((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || strchr(".-_", *p));
	expect(!hostname_is_literal(name, strlen(name)));
	expect(inet_aton(name, &v4) == 0 && inet_pton(AF_INET6, name, &v6) == 0);
}

/* Whatever is called a literal is no name, and whatever libc reads as an address is a literal. */
static void expect_literal(const uint8_t *data, size_t size)
{
	char text[128] = "", name[GATE_NAME_SIZE];
	struct in_addr v4;

	expect(!hostname_is_literal(data, size) || !hostname_read(data, size, name));
	if (size == 0 || size >= sizeof text || memchr(data, '\0', size))
		return;
	memcpy(text, data, size);
	expect(inet_aton(text, &v4) == 0 || hostname_is_literal(text, size));
}

/* More bytes never take an answer back. */
static void expect_sniff(const uint8_t *data, size_t size)
{
	enum sniff found = SNIFF_MORE;

	for (size_t n = 0; n <= size && n <= 2ul * SNIFF_MAX; n++) {
		enum sniff now = sniff(data, n);

		expect(found == SNIFF_MORE || now == found);
		expect(now != SNIFF_MORE || n < SNIFF_MAX);
		found = now;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[GATE_NAME_SIZE];
	struct said said = said_sni(data, size);

	if (hostname_read(data, size, name))
		expect_name(name);
	expect((said.kind == SAID_NAME) == (said.name[0] != '\0'));
	expect((said.kind == SAID_NOTHING) == (size == 0));
	expect_literal(data, size);
	expect_sniff(data, size);
	return 0;
}
