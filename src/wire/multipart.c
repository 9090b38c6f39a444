#include "wire/multipart.h"

static const char media[] = "multipart/form-data";

/* RFC 2046, 5.1.1: bchars, without the space that may not be the last */
static bool is_boundary(struct span b)
{
	static const char others[] = "'()+_,-./:=?";

	if (b.len == 0 || b.len > MULTIPART_BOUNDARY_MAX)
		return false;
	for (size_t i = 0; i < b.len; i++) {
		char c = b.at[i];
		bool is_plain =
		    (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!is_plain && (!c || !strchr(others, c)))
			return false;
	}
	return true;
}

static struct span trim(struct span s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
		s = span_after(s, 1);
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* The next parameter behind a semicolon: NAME=token or NAME="quoted"; a quoted one is unescaped
 * into `out`. False at the end, or when it is none. */
static bool next_param(struct span *rest, struct span *name, char *out, size_t size)
{
	struct span s = trim(*rest);
	size_t n = 0;

	if (s.len == 0 || s.at[0] != ';')
		return false;
	s = trim(span_after(s, 1));
	const char *equals = memchr(s.at, '=', s.len);
	if (!equals)
		return false;
	*name = (struct span){ s.at, (size_t)(equals - s.at) };
	s = span_after(s, name->len + 1);
	bool is_quoted = s.len > 0 && s.at[0] == '"';
	if (is_quoted)
		s = span_after(s, 1);
	while (s.len > 0 && (is_quoted ? s.at[0] != '"' : s.at[0] != ';')) {
		if (is_quoted && s.at[0] == '\\' && s.len > 1)
			s = span_after(s, 1);
		if (n + 1 >= size || !s.at[0])
			return false;
		out[n++] = s.at[0];
		s = span_after(s, 1);
	}
	if (is_quoted && s.len == 0)
		return false;
	out[n] = '\0';
	*rest = is_quoted ? span_after(s, 1) : s;
	return true;
}

bool multipart_init(struct multipart *m, struct span type)
{
	char value[MULTIPART_BOUNDARY_MAX + 2];
	struct span name;

	*m = (struct multipart){ .step = MULTIPART_FIRST };
	if (type.len < strlen(media) ||
	    !span_is_nocase((struct span){ type.at, strlen(media) }, media))
		return false;
	type = span_after(type, strlen(media));
	while (next_param(&type, &name, value, sizeof value)) {
		if (!span_is_nocase(name, "boundary"))
			continue;
		if (!is_boundary(span_of(value)))
			return false;
		m->len = (size_t)snprintf(m->delimiter, sizeof m->delimiter, "\r\n--%s", value);
		return true;
	}
	return false;
}

/* What follows a delimiter: 1 another part, 2 the end, 0 not known yet, -1 neither. */
static int after_delimiter(struct span s, size_t *n)
{
	if (s.len < 2)
		return 0;
	*n = 2;
	return memcmp(s.at, "\r\n", 2) == 0 ? 1 : memcmp(s.at, "--", 2) == 0 ? 2 : -1;
}

static int take_disposition(struct span value, struct multipart_event *out)
{
	static const char form[] = "form-data";
	char text[MULTIPART_TEXT_MAX];
	struct span name;

	if (value.len < strlen(form) ||
	    !span_is_nocase((struct span){ value.at, strlen(form) }, form))
		return -1;
	value = span_after(value, strlen(form));
	while (next_param(&value, &name, text, sizeof text)) {
		if (span_is_nocase(name, "name")) {
			if (strlen(text) >= sizeof out->name)
				return -1;
			snprintf(out->name, sizeof out->name, "%s", text);
		} else if (span_is_nocase(name, "filename")) {
			snprintf(out->filename, sizeof out->filename, "%s", text);
		}
	}
	return trim(value).len == 0 && out->name[0] ? 0 : -1;
}

/* A line at a time; the empty one is the last. */
static int take_head(struct multipart *m, struct span *in, struct multipart_event *out)
{
	static const char field[] = "Content-Disposition:";
	const char *end = memmem(in->at, in->len, "\r\n\r\n", 4);

	if (!end)
		return in->len > MULTIPART_HEAD_MAX ? -1 : 0;
	struct span head = { in->at, (size_t)(end - in->at) + 2 };
	if (head.len > MULTIPART_HEAD_MAX)
		return -1;
	*out = (struct multipart_event){ .type = MULTIPART_PART };
	while (head.len > 0) {
		const char *line_end = memmem(head.at, head.len, "\r\n", 2);
		struct span line = { head.at, (size_t)(line_end - head.at) };

		if (line.len >= strlen(field) &&
		    span_is_nocase((struct span){ line.at, strlen(field) }, field) &&
		    take_disposition(trim(span_after(line, strlen(field))), out) < 0)
			return -1;
		head = span_after(head, line.len + 2);
	}
	if (!out->name[0])
		return -1;
	*in = span_after(*in, (size_t)(end - in->at) + 4);
	m->step = MULTIPART_BODY;
	return 1;
}

/* All up to the delimiter, or to where one may have begun. */
static int take_body(struct multipart *m, struct span *in, struct multipart_event *out)
{
	const char *at = in->len >= m->len ? memmem(in->at, in->len, m->delimiter, m->len) : NULL;
	size_t n = at ? (size_t)(at - in->at) : in->len >= m->len ? in->len - (m->len - 1) : 0;
	size_t skip = 0;

	*out = (struct multipart_event){ .type = MULTIPART_DATA };
	if (n > 0) {
		out->data = (struct span){ in->at, n };
		*in = span_after(*in, n);
		return 1;
	}
	if (!at)
		return 0;
	int next = after_delimiter(span_after(*in, m->len), &skip);
	if (next <= 0)
		return next;
	*in = span_after(*in, m->len + skip);
	out->type = MULTIPART_END;
	m->step = next == 1 ? MULTIPART_HEAD : MULTIPART_DONE;
	return 1;
}

/* The first has no line before it. */
static int take_first(struct multipart *m, struct span *in)
{
	size_t n = m->len - 2, skip = 0;

	if (in->len < n)
		return 0;
	if (memcmp(in->at, m->delimiter + 2, n) != 0)
		return -1;
	int next = after_delimiter(span_after(*in, n), &skip);
	if (next <= 0)
		return next;
	*in = span_after(*in, n + skip);
	m->step = next == 1 ? MULTIPART_HEAD : MULTIPART_DONE;
	return 1;
}

static int take_tail(struct span *in)
{
	if (in->len > 2 || memcmp(in->at, "\r\n", in->len) != 0)
		return -1;
	if (in->len == 2)
		*in = span_after(*in, 2);
	return 0;
}

int multipart_next(struct multipart *m, struct span *in, bool is_end, struct multipart_event *out)
{
	int r = 0;

	if (m->step == MULTIPART_FIRST && (r = take_first(m, in)) <= 0)
		return r < 0 || is_end ? -1 : 0;
	if (m->step == MULTIPART_HEAD)
		r = take_head(m, in, out);
	else if (m->step == MULTIPART_BODY)
		r = take_body(m, in, out);
	else
		return take_tail(in);
	return r == 0 && is_end ? -1 : r;
}
