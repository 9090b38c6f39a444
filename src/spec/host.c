/*
 * host.c - names and address ranges of the net rules.
 *
 * What a label is, and what is an address in disguise, is said in wire/hostname.h for all. The
 * canonical form is lower case.
 */
#include "spec/opts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <strings.h>

#include "wire/hostname.h"
#include "wire/weburl.h"

#define HOST_BYTES_MAX (GATE_NAME_SIZE - 1)
#define HEADER_RULE_MAX 4096 /* a token is a few hundred bytes, and a head has 64 KiB */

/* These stand for a mode. As a host they would be somebody's slip. */
static const char *const not_hosts[] = { "deny", "allow", "ask", "list", "none", "all", "any" };

/* The port behind a colon, up to the end of the text. */
static int port_check(const char *text, struct err *e)
{
	size_t n = strspn(text, "0123456789");
	unsigned long port = n > 0 && n <= 5 ? strtoul(text, NULL, 10) : 0;

	if (text[n] || text[0] == '0' || port == 0 || port > 65535)
		return err_new(e, ERR_INVALID, "\"%s\" is not a port (1 to 65535)",
		               quote(text).text);
	return 0;
}

static int labels_check(char *name, const char *text, struct err *e)
{
	bool is_first = true;
	char *label;

	while ((label = strsep(&name, "."))) {
		bool is_wild = strcmp(label, "*") == 0 || strcmp(label, "**") == 0;

		if (is_wild && !is_first)
			return err_new(e, ERR_INVALID,
			               "\"%s\" has a * that is not the left-most label",
			               quote(text).text);
		if (!is_wild && !hostname_is_label(label, strlen(label)))
			return err_new(e, ERR_INVALID,
			               "\"%s\" is not a host name (letters, digits, - and _; "
			               "international names as xn--)",
			               quote(text).text);
		if (!name && hostname_is_number(label, strlen(label)))
			return err_new(e, ERR_INVALID, "\"%s\" is an address; use cidr",
			               quote(text).text);
		is_first = false;
	}
	return 0;
}

static bool is_ipv6(const char *text)
{
	return text[0] == '[' || (strchr(text, ':') && strchr(strchr(text, ':') + 1, ':'));
}

int check_host(const struct opt *o, struct arena *a, const char *text, const char **out,
               struct err *e)
{
	(void)o;
	if (text_plain(text, HOST_BYTES_MAX + sizeof ":65535" - 1, e) < 0)
		return -1;
	if (strchr(text, '/'))
		return err_new(e, ERR_INVALID, "\"%s\" is a URL or a range, not a host name",
		               quote(text).text);
	if (is_ipv6(text))
		return err_new(e, ERR_INVALID, "\"%s\" is an address; use cidr", quote(text).text);
	char *host = arena_strdup(a, text);

	for (char *p = host; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	for (size_t i = 0; i < COUNT(not_hosts); i++)
		if (strcmp(host, not_hosts[i]) == 0)
			return err_new(e, ERR_INVALID, "\"%s\" is not a host name", host);
	size_t len = strcspn(host, ":");

	if (len > HOST_BYTES_MAX)
		return err_new(e, ERR_LIMIT, "a host name has at most %d bytes", HOST_BYTES_MAX);
	if (labels_check(arena_strndup(a, host, len), text, e) < 0)
		return -1;
	if (host[len] && port_check(host + len + 1, e) < 0)
		return -1;
	*out = host;
	return 0;
}

/* What frames, routes or upgrades a request is said by the gate and by nobody else. */
static const char *const own_fields[] = {
	"host",    "connection", "content-length", "transfer-encoding", "upgrade", "te",
	"trailer", "expect",     "keep-alive",     "accept-encoding",   "proxy-",  "sec-websocket-",
};

static bool is_field(const char *name, size_t n)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr(marks, name[i]))
			return false;
	for (size_t i = 0; i < COUNT(own_fields); i++) {
		size_t len = strlen(own_fields[i]);
		bool is_prefix = own_fields[i][len - 1] == '-';

		if ((is_prefix ? n >= len : n == len) && strncasecmp(name, own_fields[i], len) == 0)
			return false;
	}
	return n > 0;
}

/* "HOST NAME: TEXT" */
int check_header(const struct opt *o, struct arena *a, const char *text, const char **out,
                 struct err *e)
{
	size_t n = strcspn(text, " ");
	const char *name = text + n + (text[n] ? 1 : 0);
	size_t len = strcspn(name, ":");
	const char *host = NULL, *value = name + len + (name[len] ? 1 : 0);

	value += strspn(value, " ");

	if (strlen(text) > HEADER_RULE_MAX)
		return err_new(e, ERR_LIMIT, "a header has at most %d bytes", HEADER_RULE_MAX);
	if (check_host(o, a, arena_strndup(a, text, n), &host, e) < 0)
		return -1;
	if (name[len] != ':' || name[len + 1] != ' ' || !is_field(name, len))
		return err_new(
		    e, ERR_INVALID,
		    "\"%s\": wants HOST NAME: TEXT, and no field that the gate says itself",
		    quote(host).text);
	if (!*value || value[strlen(value) - 1] == ' ')
		return err_new(e, ERR_INVALID, "\"%s\": the text of a header is missing",
		               quote(host).text);
	for (const char *at = value; *at; at++)
		if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
			return err_new(e, ERR_INVALID, "\"%s\": a header has plain letters only",
			               quote(host).text);
	size_t size = strlen(text) + 1;
	char *rule = arena_alloc(a, size);

	snprintf(rule, size, "%s %.*s: %s", host, (int)len, name, value);
	*out = rule;
	return 0;
}

/* Bits of `addr` after the prefix; there must be none. */
static bool has_host_bits(const unsigned char *addr, size_t size, unsigned prefix)
{
	for (size_t i = 0; i < size; i++) {
		unsigned kept = prefix > 8 * i ? prefix - 8 * (unsigned)i : 0;

		if (kept < 8 && (addr[i] & (0xffu >> kept)))
			return true;
	}
	return false;
}

/* "10.1.2.0/24:5432", "fd00::/8": address/prefix[:port]. */
int check_cidr(const struct opt *o, struct arena *a, const char *text, const char **out,
               struct err *e)
{
	struct in6_addr addr; /* or an in_addr, at its start */
	char shown[INET6_ADDRSTRLEN];

	(void)o;
	char *rest = arena_strdup(a, text);
	const char *ip = strsep(&rest, "/");
	const char *bits = strsep(&rest, ":");
	int family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	size_t size = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	size_t n = bits ? strspn(bits, "0123456789") : 0;
	unsigned long prefix = n > 0 && n <= 3 ? strtoul(bits, NULL, 10) : 999;

	if (inet_pton(family, ip, &addr) != 1 || prefix > 8 * size || bits[n] ||
	    (n > 1 && bits[0] == '0'))
		return err_new(e, ERR_INVALID,
		               "\"%s\" is not a range such as 10.1.2.0/24 or 10.1.2.3/32:5432",
		               quote(text).text);
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&addr))
		return err_new(e, ERR_INVALID, "\"%s\" is an IPv4 range in disguise; write that",
		               quote(text).text);
	if (has_host_bits(addr.s6_addr, size, (unsigned)prefix))
		return err_new(e, ERR_INVALID, "\"%s\" has bits set after the prefix",
		               quote(text).text);
	if (rest && port_check(rest, e) < 0)
		return -1;
	AUTO(str_done) struct str canonical = { .max = NAME_TEXT_MAX };

	str_addf(&canonical, "%s/%lu%s%s", inet_ntop(family, &addr, shown, sizeof shown), prefix,
	         rest ? ":" : "", rest ? rest : "");
	*out = arena_strdup(a, str_text(&canonical));
	return 0;
}

int check_webhook(const struct opt *o, struct arena *a, const char *text, const char **out,
                  struct err *e)
{
	struct weburl url;

	(void)o;
	if (weburl_read(span_of(text), &url) < 0) /* not repeated: it may have a secret in it */
		return err_new(e, ERR_INVALID,
		               "wants a URL of http or https, with the name of a host and "
		               "without a query");
	*out = arena_strdup(a, text);
	return 0;
}
