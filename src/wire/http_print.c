/*
 * http_print.c - heads and chunks as bytes; nothing that a head cannot hold gets into one.
 */
#include <inttypes.h>

#include "wire/http-internal.h"

/* clang-format off */
static const struct {
	int status;
	const char *words;
} reasons[] = {
	{ 200, "OK" },
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 402, "Payment Required" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 407, "Proxy Authentication Required" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 451, "Unavailable For Legal Reasons" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
	{ 511, "Network Authentication Required" },
};
/* clang-format on */

const char *http_reason(int status)
{
	for (size_t i = 0; i < COUNT(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].words;
	return "";
}

static struct http_print print_begin(struct str *out)
{
	return (struct http_print){ out, out->len, out->overflow ? "the buffer is full" : NULL };
}

struct http_print http_print_request(struct str *out, struct span method, struct span target)
{
	struct http_print p = print_begin(out);

	if (method.len == 0 || !http_all(method, C_TOKEN))
		p.wrong = "the method is malformed";
	if (target.len == 0 || !http_all(target, C_TARGET))
		p.wrong = "the target has a byte that must be escaped";
	if (p.wrong)
		return p;
	str_addn(out, method.at, method.len);
	str_addn(out, " ", 1);
	str_addn(out, target.at, target.len);
	str_add(out, " HTTP/1.1\r\n");
	return p;
}

struct http_print http_print_response(struct str *out, int status)
{
	struct http_print p = print_begin(out);

	if (status < 100 || status > 599)
		p.wrong = "the status is out of range";
	else
		str_addf(out, "HTTP/1.1 %d %s\r\n", status, http_reason(status));
	return p;
}

/* Unchecked: for names and values of our own. */
static void add_field(struct str *out, struct span name, struct span value)
{
	str_addn(out, name.at, name.len);
	str_addn(out, ": ", 2);
	str_addn(out, value.at, value.len);
	str_addn(out, "\r\n", 2);
}

void http_print_field(struct http_print *p, struct span name, struct span value)
{
	if (name.len == 0 || !http_all(name, C_TOKEN))
		p->wrong = "a field name is malformed";
	else if (!http_all(value, C_VALUE))
		p->wrong = "a field has a control character";
	else if (span_is_nocase(name, "Content-Length") ||
	         span_is_nocase(name, "Transfer-Encoding"))
		p->wrong = "a field about the body is not copied";
	if (!p->wrong)
		add_field(p->out, name, value);
}

void http_print_text(struct http_print *p, const char *name, const char *value)
{
	http_print_field(p, span_of(name), span_of(value));
}

void http_print_framing(struct http_print *p, enum http_body_kind kind, uint64_t length)
{
	if (p->wrong)
		return;
	if (kind == HTTP_LENGTH)
		str_addf(p->out, "Content-Length: %" PRIu64 "\r\n", length);
	if (kind == HTTP_CHUNKED)
		add_field(p->out, span_of("Transfer-Encoding"), span_of("chunked"));
}

int http_print_end(struct http_print *p, struct err *e)
{
	struct str *out = p->out;

	if (!p->wrong)
		str_addn(out, "\r\n", 2);
	if (!p->wrong && !out->overflow)
		return 0;
	if (out->data)
		out->data[p->from] = '\0';
	out->len = p->from;
	if (!p->wrong) {
		out->overflow = false; /* it was not when we began */
		return err_new(e, ERR_LIMIT, "print http head: the buffer is full");
	}
	return err_new(e, ERR_INVALID, "print http head: %s", p->wrong);
}

void http_print_chunk(struct str *out, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	str_addf(out, "%zx\r\n", n);
	str_addn(out, bytes, n);
	str_addn(out, "\r\n", 2);
}

void http_print_last_chunk(struct str *out)
{
	str_add(out, "0\r\n\r\n");
}

struct http_print http_print_trailers(struct str *out)
{
	struct http_print p = print_begin(out);

	str_add(out, "0\r\n");
	return p;
}

/* RFC 9110, 7.6.1, and what frames a message. */
static const char *const of_connection[] = {
	"Connection",
	"Keep-Alive",
	"Proxy-Authenticate",
	"Proxy-Authorization",
	"TE",
	"Proxy-Connection",
	"Trailer",
	"Transfer-Encoding",
	"Upgrade",
	"Content-Length",
};

/* A field that Connection names is for the next hop only. */
static bool is_nominated(const struct http_head *h, struct span name)
{
	char text[64];

	if (name.len >= sizeof text)
		return false;
	snprintf(text, sizeof text, "%.*s", (int)name.len, name.at);
	for (size_t i = 0; i < h->n_fields; i++)
		if (span_is_nocase(h->fields[i].name, "Connection") &&
		    http_list_has(h->fields[i].value, text))
			return true;
	return false;
}

bool http_goes_on(const struct http_head *h, struct span name)
{
	for (size_t i = 0; i < COUNT(of_connection); i++)
		if (span_is_nocase(name, of_connection[i]))
			return false;
	return !is_nominated(h, name);
}
