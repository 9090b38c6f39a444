#include "wire/hostname.h"

#include <arpa/inet.h>

#define LABEL_MAX 63

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	char low = (char)span_lower(c);

	return is_digit(c) || (low >= 'a' && low <= 'f');
}

bool hostname_is_number(const char *label, size_t n)
{
	bool has_x = n > 1 && label[0] == '0' && span_lower(label[1]) == 'x';
	size_t i = has_x ? 2 : 0;

	while (i < n && (has_x ? is_hex(label[i]) : is_digit(label[i])))
		i++;
	return n > 0 && i == n;
}

bool hostname_is_label(const char *label, size_t n)
{
	if (n == 0 || n > LABEL_MAX || label[0] == '-' || label[n - 1] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_digit(label[i]) && !(label[i] >= 'a' && label[i] <= 'z') &&
		    label[i] != '-' && label[i] != '_')
			return false;
	return true;
}

/* The label before the next dot; `rest` keeps what follows it. */
static struct span take_label(struct span *rest)
{
	const char *dot = memchr(rest->at, '.', rest->len);
	struct span label = { rest->at, dot ? (size_t)(dot - rest->at) : rest->len };

	*rest = span_after(*rest, dot ? label.len + 1 : label.len);
	return label;
}

static bool is_name(struct span name)
{
	struct span rest = name, label = { 0 };

	if (name.len == 0 || name.at[name.len - 1] == '.')
		return false;
	while (rest.len > 0) {
		label = take_label(&rest);
		if (!hostname_is_label(label.at, label.len))
			return false;
	}
	return !hostname_is_number(label.at, label.len);
}

bool hostname_read(const void *bytes, size_t n, char out[GATE_NAME_SIZE])
{
	const char *text = bytes;
	char name[GATE_NAME_SIZE] = "";

	if (n > 0 && text[n - 1] == '.')
		n--;
	if (n == 0 || n >= sizeof name)
		return false;
	for (size_t i = 0; i < n; i++)
		name[i] = (char)span_lower(text[i]);
	if (!is_name((struct span){ name, n }))
		return false;
	memcpy(out, name, n);
	out[n] = '\0';
	return true;
}

/* One to four numbers. inet_aton() stops at white space, and so do some who call it. */
static bool is_ipv4(struct span text)
{
	size_t n = 0, parts = 0;

	while (n < text.len && text.at[n] != ' ' && (text.at[n] < '\t' || text.at[n] > '\r'))
		n++;
	if (n > 0 && text.at[n - 1] == '.')
		n--;
	if (n == 0 || text.at[n - 1] == '.')
		return false;
	for (struct span rest = { text.at, n }; rest.len > 0; parts++) {
		struct span label = take_label(&rest);

		if (!hostname_is_number(label.at, label.len))
			return false;
	}
	return parts <= 4;
}

/* With brackets or without, with the name of an interface or without. */
static bool is_ipv6(struct span text)
{
	bool has_brackets = text.len > 1 && text.at[0] == '[' && text.at[text.len - 1] == ']';
	char copy[INET6_ADDRSTRLEN] = "";
	struct in6_addr unused;

	if (has_brackets)
		text = (struct span){ text.at + 1, text.len - 2 };
	const char *zone = text.len > 0 ? memchr(text.at, '%', text.len) : NULL;
	size_t n = zone ? (size_t)(zone - text.at) : text.len;

	if (n == 0 || n >= sizeof copy)
		return false;
	memcpy(copy, text.at, n);
	return strlen(copy) == n && inet_pton(AF_INET6, copy, &unused) == 1;
}

bool hostname_is_literal(const void *bytes, size_t n)
{
	struct span text = { bytes, n };

	return n > 0 && (is_ipv4(text) || is_ipv6(text));
}

struct said said_host(struct span host, uint16_t port)
{
	struct said said = { .port = port };

	if (host.len == 0)
		said.kind = SAID_NOTHING;
	else if (hostname_read(host.at, host.len, said.name))
		said.kind = SAID_NAME;
	else
		said.kind = hostname_is_literal(host.at, host.len) ? SAID_ADDRESS : SAID_BAD;
	return said;
}

struct said said_sni(const void *bytes, size_t n)
{
	return said_host((struct span){ bytes, n }, 0);
}

bool hostname_is_place(const char *text)
{
	char name[GATE_NAME_SIZE];
	size_t n = strcspn(text, ":"), digits = text[n] ? strspn(text + n + 1, "0123456789") : 0;

	return hostname_read(text, n, name) &&
	       (!text[n] || (digits > 0 && digits <= 5 && !text[n + 1 + digits]));
}
