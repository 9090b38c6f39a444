/*
 * registry_text.c - what the configuration files of package clients say; pure.
 */
#include <ctype.h>

#include "cli/registry-internal.h"
#include "wire/hostname.h"

/* ---- URLs ---------------------------------------------------------------------------- */

bool hosts_has(const struct hosts *h, const char *host)
{
	for (size_t i = 0; i < h->list->len; i++)
		if (strcmp(h->list->at[i], host) == 0)
			return true;
	return false;
}

static bool is_port(const char *text, size_t n)
{
	unsigned long port = n > 0 && n <= 5 ? strtoul(text, NULL, 10) : 0;

	return strspn(text, "0123456789") >= n && port > 0 && port <= 65535;
}

/* A port that goes without saying is left out: the rule is for the name. */
static bool is_usual(const char *scheme, const char *port, size_t n)
{
	const char *usual = strcmp(scheme, "https") == 0 ? "443" : "80";

	return n == strlen(usual) && memcmp(port, usual, n) == 0;
}

/* Where the host of a URL begins, behind the scheme and what is nobody's to see; NULL: it is not
 * reached by network. */
static const char *authority_of(const char *url, char scheme[8], size_t *len)
{
	const char *slashes = strstr(url, "://");
	const char *begin = url;

	if (!slashes)
		return NULL;
	for (const char *p = url; p < slashes; p++)
		begin = *p == '+' ? p + 1 : begin; /* sparse+https, mirror+http */
	snprintf(scheme, 8, "%.*s", (int)(slashes - begin), begin);
	if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		return NULL;
	const char *at = slashes + 3;

	*len = strcspn(at, "/?#");
	const char *user = memrchr(at, '@', *len);

	if (!user)
		return at;
	*len -= (size_t)(user + 1 - at);
	return user + 1;
}

int hosts_add_url(struct hosts *h, const char *url, struct err *e)
{
	char scheme[8], name[GATE_NAME_SIZE], rule[GATE_NAME_SIZE + 8];
	size_t len = 0;
	const char *at = authority_of(url, scheme, &len);

	if (!at)
		return 0;
	const char *colon = at[0] == '[' ? NULL : memchr(at, ':', len);
	size_t host_len = colon ? (size_t)(colon - at) : len;
	size_t port_len = colon ? len - host_len - 1 : 0;

	if (at[0] == '[' || hostname_is_literal(at, host_len))
		return err_new(e, ERR_INVALID,
		               "a registry is configured by its address; name it with cidr");
	if (!hostname_read(at, host_len, name) || (port_len > 0 && !is_port(colon + 1, port_len)))
		return err_new(e, ERR_INVALID, "the URL of a registry has no proper host");
	bool has_port = port_len > 0 && !is_usual(scheme, colon + 1, port_len);

	snprintf(rule, sizeof rule, "%s%.*s", name, has_port ? (int)port_len + 1 : 0,
	         has_port ? colon : "");
	if (!hosts_has(h, rule))
		vec_push(h->list, arena_strdup(h->arena, rule));
	return 0;
}

int hosts_add_urls(struct hosts *h, const char *text, struct err *e)
{
	static const char between[] = " \t\r\n,|";

	for (text += strspn(text, between); *text; text += strspn(text, between)) {
		size_t n = strcspn(text, between);
		AUTO(str_done) struct str url = { .max = REGISTRY_FILE_MAX };

		str_addn(&url, text, n);
		if (strstr(str_text(&url), "://") && hosts_add_url(h, str_text(&url), e) < 0)
			return -1;
		text += n;
	}
	return 0;
}

/* ---- lines --------------------------------------------------------------------------- */

struct line {
	const char *at;
	size_t len;
};

static struct line trim(const char *at, size_t len)
{
	while (len > 0 && isspace((unsigned char)*at)) {
		at++;
		len--;
	}
	while (len > 0 && isspace((unsigned char)at[len - 1]))
		len--;
	return (struct line){ at, len };
}

/* The next line, without its end. */
static bool next_line(const char **rest, struct line *out)
{
	if (!**rest)
		return false;
	size_t n = strcspn(*rest, "\n");

	*out = (struct line){ *rest, n };
	*rest += n + ((*rest)[n] == '\n');
	return true;
}

static bool is_comment(struct line l)
{
	return l.len == 0 || l.at[0] == '#' || l.at[0] == ';';
}

static bool is_text(struct line l, const char *text)
{
	return l.len == strlen(text) && memcmp(l.at, text, l.len) == 0;
}

/* ---- INI ----------------------------------------------------------------------------- */

static bool is_key(struct line l, const char *key)
{
	if (l.len != strlen(key))
		return false;
	for (size_t i = 0; i < l.len; i++) {
		int c = l.at[i] == '_' ? '-' : tolower((unsigned char)l.at[i]);

		if (c != (unsigned char)key[i])
			return false;
	}
	return true;
}

static struct line unquote(struct line l)
{
	if (l.len >= 2 && (l.at[0] == '"' || l.at[0] == '\'') && l.at[l.len - 1] == l.at[0])
		return (struct line){ l.at + 1, l.len - 2 };
	return l;
}

struct ini {
	const char *section; /* that is looked for; NULL: before the first */
	const char *key;
	struct str *out;
	bool is_inside, is_value, has_any;
};

static void ini_line(struct ini *x, struct line raw)
{
	struct line l = trim(raw.at, raw.len);
	bool is_more = raw.len > 0 && isspace((unsigned char)raw.at[0]);

	if (is_comment(l))
		return;
	if (is_more && x->is_value) {
		str_add(x->out, "\n");
		str_addn(x->out, l.at, l.len);
		return;
	}
	x->is_value = false;
	if (l.at[0] == '[') {
		struct line name = trim(l.at + 1, l.len - 1 - (l.at[l.len - 1] == ']'));

		x->is_inside = x->section && is_text(name, x->section);
		return;
	}
	const char *equals = memchr(l.at, '=', l.len);
	const char *colon = x->section ? memchr(l.at, ':', l.len) : NULL;
	const char *sep = equals && (!colon || equals < colon) ? equals : colon;

	if (!sep || !x->is_inside || !is_key(trim(l.at, (size_t)(sep - l.at)), x->key))
		return;
	struct line v = unquote(trim(sep + 1, l.len - (size_t)(sep - l.at) - 1));

	str_clear(x->out);
	str_addn(x->out, v.at, v.len);
	x->is_value = x->has_any = true;
}

bool ini_get(const char *text, const char *const *sections, const char *key, struct str *out)
{
	bool has_any = false;

	for (size_t i = 0; i == 0 || (sections && sections[i]); i++) {
		struct ini x = { .section = sections ? sections[i] : NULL, .key = key, .out = out };
		const char *rest = text;
		struct line l;

		x.is_inside = !x.section;
		while (next_line(&rest, &l))
			ini_line(&x, l);
		has_any |= x.has_any;
	}
	return has_any;
}

/* ---- npm ----------------------------------------------------------------------------- */

void npmrc_scopes(const char *text, struct str *out)
{
	static const char ending[] = ":registry";
	struct line l;

	while (next_line(&text, &l)) {
		l = trim(l.at, l.len);
		const char *equals = is_comment(l) ? NULL : memchr(l.at, '=', l.len);

		if (!equals)
			continue;
		struct line key = trim(l.at, (size_t)(equals - l.at));
		struct line v = unquote(trim(equals + 1, l.len - (size_t)(equals - l.at) - 1));

		if (key.len <= strlen(ending) || key.at[0] != '@' ||
		    memcmp(key.at + key.len - strlen(ending), ending, strlen(ending)) != 0)
			continue;
		str_addn(out, v.at, v.len);
		str_add(out, "\n");
	}
}

bool npmrc_expand(const char *text, struct str *out)
{
	while (*text) {
		const char *open = strstr(text, "${"), *close = open ? strchr(open, '}') : NULL;
		char name[128];

		if (!close) {
			str_add(out, text);
			return true;
		}
		str_addn(out, text, (size_t)(open - text));
		snprintf(name, sizeof name, "%.*s", (int)(close - open - 2), open + 2);
		const char *value = getenv(name);

		if (!value)
			return false;
		str_add(out, value);
		text = close + 1;
	}
	return true;
}

/* ---- Go ------------------------------------------------------------------------------ */

bool env_file_get(const char *text, const char *key, struct str *out)
{
	bool has_any = false;
	struct line l;

	while (next_line(&text, &l)) {
		const char *equals = memchr(l.at, '=', l.len);

		if (!equals || !is_text((struct line){ l.at, (size_t)(equals - l.at) }, key))
			continue;
		struct line v = trim(equals + 1, l.len - (size_t)(equals - l.at) - 1);

		str_clear(out);
		str_addn(out, v.at, v.len);
		has_any = true;
	}
	return has_any;
}

/* ---- apt ----------------------------------------------------------------------------- */

/* The word that is a URL, behind options in brackets. */
static void apt_entry(struct line l, struct str *out)
{
	const char *end = l.at + l.len;

	if (l.len < 5 || memcmp(l.at, "deb", 3) != 0)
		return;
	const char *at = l.at + 3;

	if (end - at > 4 && memcmp(at, "-src", 4) == 0)
		at += 4;
	if (!isspace((unsigned char)*at))
		return;
	while (at < end && isspace((unsigned char)*at))
		at++;
	if (at < end && *at == '[') {
		while (at < end && *at != ']')
			at++;
		at += at < end;
	}
	while (at < end && isspace((unsigned char)*at))
		at++;
	const char *url = at;

	while (at < end && !isspace((unsigned char)*at))
		at++;
	str_addn(out, url, (size_t)(at - url));
	str_add(out, "\n");
}

void apt_lines(const char *text, struct str *out)
{
	struct line l;

	while (next_line(&text, &l)) {
		l = trim(l.at, l.len);
		if (!is_comment(l))
			apt_entry(l, out);
	}
}

/* A stanza with `Enabled: no` says nothing. */
void apt_fields(const char *text, struct str *out)
{
	AUTO(str_done) struct str urls = { .max = REGISTRY_FILE_MAX };
	bool is_enabled = true, is_value = false, is_more = true;
	struct line raw = { 0 };

	while (is_more) {
		is_more = next_line(&text, &raw);
		struct line l = is_more ? trim(raw.at, raw.len) : (struct line){ "", 0 };

		if (l.len == 0) { /* the end of a stanza */
			str_add(out, is_enabled ? str_text(&urls) : "");
			str_clear(&urls);
			is_enabled = true;
			is_value = false;
			continue;
		}
		if (l.at[0] == '#')
			continue;
		const char *colon = memchr(l.at, ':', l.len);
		bool is_field = colon && !isspace((unsigned char)raw.at[0]);
		struct line v = l;

		if (is_field) {
			struct line key = trim(l.at, (size_t)(colon - l.at));

			v = trim(colon + 1, l.len - (size_t)(colon - l.at) - 1);
			is_value = is_key(key, "uris");
			is_enabled &= !(is_key(key, "enabled") && is_key(v, "no"));
		}
		if (is_value) {
			str_addn(&urls, v.at, v.len);
			str_add(&urls, "\n");
		}
	}
}
