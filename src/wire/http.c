#include "wire/http.h"

#include <arpa/inet.h>

#include "wire/http-internal.h"

/* clang-format off */
const uint8_t http_classes[256] = {
	['\t'] = C_VALUE, [' '] = C_VALUE,
	['!'] = C_TOKEN | C_VALUE | C_TARGET,
	['"'] = C_VALUE,
	['#'] = C_TOKEN | C_VALUE,
	['$' ... '\''] = C_TOKEN | C_VALUE | C_TARGET,
	['(' ... ')'] = C_VALUE | C_TARGET,
	['*' ... '+'] = C_TOKEN | C_VALUE | C_TARGET,
	[','] = C_VALUE | C_TARGET,
	['-' ... '.'] = C_TOKEN | C_VALUE | C_TARGET | C_NAME,
	['/'] = C_VALUE | C_TARGET,
	['0' ... '9'] = C_TOKEN | C_VALUE | C_TARGET | C_NAME,
	[':' ... ';'] = C_VALUE | C_TARGET,
	['<'] = C_VALUE,
	['='] = C_VALUE | C_TARGET,
	['>'] = C_VALUE,
	['?' ... '@'] = C_VALUE | C_TARGET,
	['A' ... 'Z'] = C_TOKEN | C_VALUE | C_TARGET | C_NAME,
	['['] = C_VALUE | C_TARGET,
	['\\'] = C_VALUE,
	[']'] = C_VALUE | C_TARGET,
	['^'] = C_TOKEN | C_VALUE,
	['_'] = C_TOKEN | C_VALUE | C_TARGET | C_NAME,
	['`'] = C_TOKEN | C_VALUE,
	['a' ... 'z'] = C_TOKEN | C_VALUE | C_TARGET | C_NAME,
	['{'] = C_VALUE,
	['|'] = C_TOKEN | C_VALUE,
	['}'] = C_VALUE,
	['~'] = C_TOKEN | C_VALUE | C_TARGET,
	[0x80 ... 0xff] = C_VALUE,
};

static const struct {
	int status;
	const char *text;
} errors[] = {
	[0] = { 500, "no error" },
	[-HTTP_E_LINE] = { 400, "the first line is malformed" },
	[-HTTP_E_METHOD_LONG] = { 501, "the method is too long" },
	[-HTTP_E_TARGET] = { 400, "the target has a byte that must be escaped" },
	[-HTTP_E_TARGET_LONG] = { 414, "the target is too long" },
	[-HTTP_E_FORM] = { 400, "the target has a form that is not taken here" },
	[-HTTP_E_VERSION] = { 505, "the version is neither HTTP/1.1 nor HTTP/1.0" },
	[-HTTP_E_STATUS] = { 400, "the status is malformed or out of place" },
	[-HTTP_E_NEWLINE] = { 400, "a line does not end with CR LF" },
	[-HTTP_E_FOLD] = { 400, "a line begins with white space" },
	[-HTTP_E_NAME] = { 400, "a field name is empty or malformed" },
	[-HTTP_E_VALUE] = { 400, "a field has a control character" },
	[-HTTP_E_FIELDS] = { 431, "there are too many fields" },
	[-HTTP_E_HEAD_LARGE] = { 431, "the head is too long" },
	[-HTTP_E_HOST] = { 400, "the host is missing, doubled or malformed" },
	[-HTTP_E_LENGTH] = { 400, "Content-Length is malformed or doubled" },
	[-HTTP_E_LENGTH_HUGE] = { 413, "Content-Length is too large" },
	[-HTTP_E_CODING] = { 501, "Transfer-Encoding is not chunked, once" },
	[-HTTP_E_FRAMING] = { 400, "the fields contradict each other about the body" },
	[-HTTP_E_CONNECTION] = { 400, "Connection is malformed" },
	[-HTTP_E_EXPECT] = { 417, "Expect is not 100-continue, once" },
	[-HTTP_E_CHUNK] = { 400, "a chunk is malformed or has an extension" },
	[-HTTP_E_TRAILER] = { 400, "fields after the body are not taken" },
	[-HTTP_E_BODY_LARGE] = { 413, "the body is too large" },
	[-HTTP_E_CUT] = { 400, "the connection ended inside the body" },
};
/* clang-format on */
_Static_assert(COUNT(errors) == -HTTP_E_LAST + 1, "an error has no text");

int http_error_status(int error)
{
	return errors[error < 0 && error >= HTTP_E_LAST ? -error : 0].status;
}

const char *http_error_text(int error)
{
	return errors[error < 0 && error >= HTTP_E_LAST ? -error : 0].text;
}

/* Every take_*() returns 1 and steps over what it took, 0 at the end of the bytes, or an error
 * that more bytes could not change. */
struct scan {
	const char *p, *end;
};

struct word {
	int class;
	size_t max;
	int malformed, too_long;
};

static int take_word(struct scan *s, const struct word *w, struct span *out)
{
	const char *p = s->p;

	while (p < s->end && http_is(*p, w->class))
		p++;
	*out = (struct span){ s->p, (size_t)(p - s->p) };
	if (out->len > w->max)
		return w->too_long;
	if (p == s->end)
		return 0;
	s->p = p;
	return out->len > 0 ? 1 : w->malformed;
}

static int take_text(struct scan *s, const char *text, int otherwise)
{
	for (; *text; text++, s->p++) {
		if (s->p == s->end)
			return 0;
		if (*s->p != *text)
			return otherwise;
	}
	return 1;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int take_version(struct scan *s, int *minor)
{
	int r = take_text(s, "HTTP/", HTTP_E_LINE);

	if (r <= 0)
		return r;
	if (s->end - s->p < 3)
		return 0;
	if (!is_digit(s->p[0]) || s->p[1] != '.' || !is_digit(s->p[2]))
		return HTTP_E_LINE;
	if (s->p[0] != '1' || s->p[2] > '1')
		return HTTP_E_VERSION;
	*minor = s->p[2] - '0';
	s->p += 3;
	return 1;
}

/* Visible bytes up to the end of the line, without the white space around them. */
static int take_value(struct scan *s, struct span *out)
{
	const char *from = s->p;

	while (s->p < s->end && http_is(*s->p, C_VALUE))
		s->p++;
	if (s->p == s->end)
		return 0;
	if (*s->p != '\r' && *s->p != '\n')
		return HTTP_E_VALUE;
	const char *to = s->p;

	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	*out = (struct span){ from, (size_t)(to - from) };
	return take_text(s, "\r\n", HTTP_E_NEWLINE);
}

static int take_field(struct scan *s, struct http_field *out)
{
	static const struct word name = { C_TOKEN, HTTP_HEAD_MAX, HTTP_E_NAME, HTTP_E_HEAD_LARGE };

	if (*s->p == ' ' || *s->p == '\t')
		return HTTP_E_FOLD;
	int r = take_word(s, &name, &out->name);

	if (r > 0)
		r = take_text(s, ":", HTTP_E_NAME);
	return r > 0 ? take_value(s, &out->value) : r;
}

static int take_fields(struct scan *s, struct http_head *h)
{
	while (s->p < s->end) {
		if (*s->p == '\r')
			return take_text(s, "\r\n", HTTP_E_NEWLINE);
		if (h->n_fields == HTTP_FIELDS_MAX)
			return HTTP_E_FIELDS;
		int r = take_field(s, &h->fields[h->n_fields]);

		if (r <= 0)
			return r;
		h->n_fields++;
	}
	return 0;
}

static int take_request_line(struct scan *s, struct http_head *h)
{
	static const struct word method = { C_TOKEN, HTTP_METHOD_MAX, HTTP_E_LINE,
		                            HTTP_E_METHOD_LONG };
	static const struct word target = { C_TARGET, HTTP_TARGET_MAX, HTTP_E_TARGET,
		                            HTTP_E_TARGET_LONG };
	int r = take_word(s, &method, &h->method);

	if (r > 0)
		r = take_text(s, " ", HTTP_E_LINE);
	if (r > 0)
		r = take_word(s, &target, &h->target);
	if (r > 0)
		r = take_text(s, " ", *s->p == '\r' || *s->p == '\n' ? HTTP_E_LINE : HTTP_E_TARGET);
	if (r > 0)
		r = take_version(s, &h->minor);
	return r > 0 ? take_text(s, "\r\n", HTTP_E_NEWLINE) : r;
}

static int take_status_line(struct scan *s, struct http_head *h)
{
	int r = take_version(s, &h->minor);

	if (r > 0)
		r = take_text(s, " ", HTTP_E_LINE);
	if (r <= 0)
		return r;
	if (s->end - s->p < 4)
		return 0;
	if (s->p[0] < '1' || s->p[0] > '5' || !is_digit(s->p[1]) || !is_digit(s->p[2]) ||
	    (s->p[3] != ' ' && s->p[3] != '\r')) /* some leave out the space with the words */
		return HTTP_E_STATUS;
	h->status = (s->p[0] - '0') * 100 + (s->p[1] - '0') * 10 + s->p[2] - '0';
	s->p += s->p[3] == ' ' ? 4 : 3;
	return take_value(s, &h->reason);
}

/* A name of labels with 1 to 63 bytes; one dot may end it. IPv4 addresses look like that too. */
static bool is_dns_name(struct span s)
{
	size_t label = 0;

	if (s.len == 0 || s.len > 253 || s.at[0] == '.' || !http_all(s, C_NAME))
		return false;
	for (size_t i = 0; i < s.len; i++) {
		label = s.at[i] == '.' ? 0 : label + 1;
		if (label > 63 || (label == 0 && i > 0 && s.at[i - 1] == '.'))
			return false;
	}
	return true;
}

static bool is_ipv6(struct span s)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct in6_addr unused;

	if (s.len < 2 || s.len - 2 >= sizeof text || s.at[0] != '[' || s.at[s.len - 1] != ']')
		return false;
	memcpy(text, s.at + 1, s.len - 2);
	return strlen(text) == s.len - 2 && inet_pton(AF_INET6, text, &unused) == 1;
}

static bool port_parse(struct span s, uint16_t *out)
{
	uint32_t n = 0;

	if (s.len == 0 || s.len > 5)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!is_digit(s.at[i]))
			return false;
		n = n * 10 + (uint32_t)(s.at[i] - '0');
	}
	*out = (uint16_t)n;
	return n > 0 && n <= UINT16_MAX;
}

bool http_host_split(struct span text, struct span *host, uint16_t *port)
{
	bool is_v6 = text.len > 0 && text.at[0] == '[';
	char until = is_v6 ? ']' : ':';
	size_t n = 0;
	uint16_t number = 0;

	while (n < text.len && text.at[n] != until)
		n++;
	if (is_v6)
		n += n < text.len;
	struct span name = { text.at, n };

	if (!(is_v6 ? is_ipv6(name) : is_dns_name(name)))
		return false;
	if (n < text.len && (text.at[n] != ':' || !port_parse(span_after(text, n + 1), &number)))
		return false;
	*host = name;
	*port = number;
	return true;
}

/* The next element, without white space; `list` keeps the rest. Empty elements are legal. */
static struct span list_next(struct span *list)
{
	size_t n = 0;

	while (n < list->len && list->at[n] != ',')
		n++;
	struct span item = { list->at, n };

	*list = span_after(*list, n < list->len ? n + 1 : n);
	while (item.len > 0 && (*item.at == ' ' || *item.at == '\t'))
		item = span_after(item, 1);
	while (item.len > 0 && (item.at[item.len - 1] == ' ' || item.at[item.len - 1] == '\t'))
		item.len--;
	return item;
}

bool http_list_has(struct span list, const char *token)
{
	while (list.len > 0)
		if (span_is_nocase(list_next(&list), token))
			return true;
	return false;
}

static bool is_token_list(struct span list)
{
	while (list.len > 0)
		if (!http_all(list_next(&list), C_TOKEN))
			return false;
	return true;
}

const struct span *http_header(const struct http_head *h, const char *name)
{
	struct span wanted = span_of(name);

	for (size_t i = 0; i < h->n_fields; i++)
		if (span_same_nocase(h->fields[i].name, wanted))
			return &h->fields[i].value;
	return NULL;
}

size_t http_header_count(const struct http_head *h, const char *name)
{
	struct span wanted = span_of(name);
	size_t count = 0;

	for (size_t i = 0; i < h->n_fields; i++)
		count += span_same_nocase(h->fields[i].name, wanted);
	return count;
}

/* What the fields that mean something to us say, before it is weighed. */
struct facts {
	bool is_request;
	bool has_host, is_chunked, has_expect;
	bool says_close, says_upgrade, says_websocket;
	struct span host;
	uint16_t port;
};

static int on_host(struct http_head *h, struct facts *f, struct span v)
{
	(void)h;
	if (!f->is_request)
		return 0;
	if (f->has_host || !http_host_split(v, &f->host, &f->port))
		return HTTP_E_HOST;
	f->has_host = true;
	return 0;
}

static int on_length(struct http_head *h, struct facts *f, struct span v)
{
	(void)f;
	if (h->has_length || v.len == 0)
		return HTTP_E_LENGTH;
	for (size_t i = 0; i < v.len; i++)
		if (!is_digit(v.at[i]))
			return HTTP_E_LENGTH;
	if (v.len > HTTP_LENGTH_DIGITS_MAX)
		return HTTP_E_LENGTH_HUGE;
	for (size_t i = 0; i < v.len; i++)
		h->length = h->length * 10 + (uint64_t)(v.at[i] - '0');
	h->has_length = true;
	return 0;
}

static int on_coding(struct http_head *h, struct facts *f, struct span v)
{
	(void)h;
	if (f->is_chunked || !span_is_nocase(v, "chunked"))
		return HTTP_E_CODING;
	f->is_chunked = true;
	return 0;
}

static int on_connection(struct http_head *h, struct facts *f, struct span v)
{
	(void)h;
	if (!is_token_list(v))
		return HTTP_E_CONNECTION;
	f->says_close |= http_list_has(v, "close");
	f->says_upgrade |= http_list_has(v, "upgrade");
	return 0;
}

static int on_upgrade(struct http_head *h, struct facts *f, struct span v)
{
	(void)h;
	f->says_websocket |= http_list_has(v, "websocket");
	return 0;
}

static int on_expect(struct http_head *h, struct facts *f, struct span v)
{
	if (!f->is_request || h->minor == 0) /* RFC 9110, 10.1.1: ignored in HTTP/1.0 */
		return 0;
	if (f->has_expect || !span_is_nocase(v, "100-continue"))
		return HTTP_E_EXPECT;
	f->has_expect = true;
	return 0;
}

#define NAMED(text) .name = { text, sizeof(text) - 1 }

static const struct {
	struct span name;
	int (*take)(struct http_head *h, struct facts *f, struct span value);
} meanings[] = {
	{ NAMED("Host"), on_host },
	{ NAMED("Content-Length"), on_length },
	{ NAMED("Transfer-Encoding"), on_coding },
	{ NAMED("Connection"), on_connection },
	{ NAMED("Upgrade"), on_upgrade },
	{ NAMED("Expect"), on_expect },
};

static int read_field(const struct http_field *field, struct http_head *h, struct facts *f)
{
	for (size_t i = 0; i < COUNT(meanings); i++)
		if (span_same_nocase(field->name, meanings[i].name))
			return meanings[i].take(h, f, field->value);
	return 0;
}

/* What holds for both directions. */
static int read_fields(struct http_head *h, struct facts *f)
{
	for (size_t i = 0; i < h->n_fields; i++) {
		int r = read_field(&h->fields[i], h, f);

		if (r < 0)
			return r;
	}
	if (f->is_chunked && (h->has_length || h->minor == 0))
		return HTTP_E_FRAMING;
	h->keep_alive = h->minor == 1 && !f->says_close;
	return 0;
}

static bool span_begins(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len >= n && span_same_nocase((struct span){ s.at, n }, span_of(text));
}

/* http://host:port/path */
static int read_absolute(struct http_head *h)
{
	static const char *const schemes[] = { "http://", "https://" };
	struct span rest = { NULL, 0 };
	size_t n = 0;

	for (size_t i = 0; i < COUNT(schemes); i++)
		if (span_begins(h->target, schemes[i]))
			rest = span_after(h->target, strlen(schemes[i]));
	while (n < rest.len && rest.at[n] != '/')
		n++;
	if (!http_host_split((struct span){ rest.at, n }, &h->host, &h->port))
		return HTTP_E_FORM;
	h->form = HTTP_ABSOLUTE;
	h->path = n < rest.len ? span_after(rest, n) : span_of("/");
	return 0;
}

/* RFC 9112, 3.2: the method decides between the forms. */
static int read_target(struct http_head *h, bool for_proxy)
{
	bool is_connect = span_is(h->method, "CONNECT");

	h->path = h->target;
	if (is_connect && for_proxy) {
		h->form = HTTP_AUTHORITY;
		return http_host_split(h->target, &h->host, &h->port) && h->port ? 0 : HTTP_E_FORM;
	}
	if (span_is(h->target, "*") && span_is(h->method, "OPTIONS")) {
		h->form = HTTP_ASTERISK;
		return 0;
	}
	if (h->target.at[0] == '/' && !is_connect) {
		h->form = HTTP_ORIGIN;
		return 0;
	}
	return for_proxy ? read_absolute(h) : HTTP_E_FORM;
}

/* RFC 9112, 3.2.2 lets an absolute target win over Host. One that differs is a trick. */
static int read_host(struct http_head *h, const struct facts *f)
{
	if (!f->has_host)
		return h->minor == 1 ? HTTP_E_HOST : 0;
	if (h->form == HTTP_ABSOLUTE && (h->port != f->port || !span_same_nocase(h->host, f->host)))
		return HTTP_E_HOST;
	if (h->form == HTTP_ORIGIN || h->form == HTTP_ASTERISK) {
		h->host = f->host;
		h->port = f->port;
	}
	return 0;
}

static int read_request(struct http_head *h, bool for_proxy)
{
	struct facts f = { .is_request = true };
	int r = read_target(h, for_proxy);

	if (r == 0)
		r = read_fields(h, &f);
	if (r == 0)
		r = read_host(h, &f);
	if (r < 0)
		return r;
	bool has_payload = f.is_chunked || h->length > 0;

	if (h->form == HTTP_AUTHORITY && has_payload)
		return HTTP_E_FRAMING;
	if (f.is_chunked)
		h->body = HTTP_CHUNKED;
	else if (h->has_length)
		h->body = HTTP_LENGTH;
	h->expect_continue = f.has_expect && has_payload;
	h->is_upgrade_websocket = f.says_websocket && f.says_upgrade && h->minor == 1 &&
	                          !has_payload && span_is(h->method, "GET");
	return 1;
}

static int read_response(struct http_head *h, enum http_asked asked)
{
	struct facts f = { 0 };
	int r = read_fields(h, &f);
	bool is_bare = h->status < 200 || h->status == 204;

	if (r < 0)
		return r;
	/* RFC 9112, 6.3: these never have a body. One that announces bytes would be read in two
	 * ways. */
	if (is_bare && (f.is_chunked || h->length > 0))
		return HTTP_E_FRAMING;
	h->is_upgrade_websocket = h->status == 101 && f.says_upgrade && f.says_websocket;
	if (h->status == 101 && (!h->is_upgrade_websocket || h->minor == 0))
		return HTTP_E_STATUS;
	if (is_bare || h->status == 304 || asked == HTTP_ASKED_HEAD ||
	    (asked == HTTP_ASKED_CONNECT && h->status < 300))
		return 1;
	if (f.is_chunked)
		h->body = HTTP_CHUNKED;
	else if (h->has_length)
		h->body = HTTP_LENGTH;
	else
		h->body = HTTP_UNTIL_CLOSE;
	h->keep_alive = h->keep_alive && h->body != HTTP_UNTIL_CLOSE;
	return 1;
}

/* Clears all but the fields, which are many. */
static void head_clear(struct http_head *h)
{
	memset(h, 0, offsetof(struct http_head, fields));
}

static struct scan scan_begin(const char *buf, size_t len)
{
	return (struct scan){ buf, buf + (len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX) };
}

/* `r` is what the last step of the scan said. */
static int head_end(const struct scan *s, const char *buf, size_t len, int r)
{
	if (r == 0 && len >= HTTP_HEAD_MAX)
		return HTTP_E_HEAD_LARGE;
	return r <= 0 ? r : (int)(s->p - buf);
}

static int request_head(const char *buf, size_t len, bool for_proxy, struct http_head *out)
{
	if (len == 0) /* `buf` may be NULL then */
		return 0;
	struct scan s = scan_begin(buf, len);

	head_clear(out);
	int r = take_request_line(&s, out);

	if (r > 0)
		r = take_fields(&s, out);
	if (r > 0)
		r = read_request(out, for_proxy);
	return head_end(&s, buf, len, r);
}

int http_trailers(const struct str *raw, struct http_head *out)
{
	struct scan s = { str_text(raw), str_text(raw) + raw->len };
	int r = 1;

	out->n_fields = 0;
	while (r > 0 && s.p < s.end && *s.p != '\r') {
		if (out->n_fields == HTTP_FIELDS_MAX)
			return HTTP_E_FIELDS;
		r = take_field(&s, &out->fields[out->n_fields]);
		out->n_fields += r > 0;
	}
	return r == 0 ? HTTP_E_TRAILER : r < 0 ? r : 0;
}

int http_request_head(const char *buf, size_t len, struct http_head *out)
{
	return request_head(buf, len, false, out);
}

int http_proxy_head(const char *buf, size_t len, struct http_head *out)
{
	return request_head(buf, len, true, out);
}

int http_response_head(const char *buf, size_t len, enum http_asked asked, struct http_head *out)
{
	if (len == 0)
		return 0;
	struct scan s = scan_begin(buf, len);

	head_clear(out);
	int r = take_status_line(&s, out);

	if (r > 0)
		r = take_fields(&s, out);
	if (r > 0)
		r = read_response(out, asked);
	return head_end(&s, buf, len, r);
}
