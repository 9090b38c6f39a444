#include "wire/pkgmeta.h"

#include "wire/base64.h"
#include "wire/http-internal.h"
#include "wire/jsonwalk.h"
#include "wire/target.h"

#define HREF_MAX WEBURL_PATH_SIZE
#define METADATA ".metadata" /* PEP 658 */

/* ---- digests ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t size;
} digests[] = {
	[DIGEST_SHA256] = { "sha256", 32 },
	[DIGEST_SHA384] = { "sha384", 48 },
	[DIGEST_SHA512] = { "sha512", 64 },
};
_Static_assert(COUNT(digests) == DIGESTS, "a digest has no name");

size_t digest_size(enum digest_kind k)
{
	return digests[k].size;
}

const char *digest_name(enum digest_kind k)
{
	return digests[k].name;
}

void digest_print(const struct digest *d, char out[DIGEST_TEXT_SIZE])
{
	int n = snprintf(out, DIGEST_TEXT_SIZE, "%s-", digests[d->kind].name);

	for (size_t i = 0; i < digests[d->kind].size; i++)
		n += snprintf(out + n, DIGEST_TEXT_SIZE - (size_t)n, "%02x", d->at[i]);
}

static bool read_hex(struct span text, enum digest_kind k, struct digest *out)
{
	*out = (struct digest){ .kind = k };
	if (text.len != 2 * digests[k].size)
		return false;
	for (size_t i = 0; i < digests[k].size; i++) {
		int high = http_hex(text.at[2 * i]), low = http_hex(text.at[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out->at[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* "sha256", one of `signs`, hexadecimal digits. */
static bool read_named(struct span text, char sign, struct digest *out)
{
	for (enum digest_kind k = 0; k < DIGESTS; k++) {
		size_t n = strlen(digests[k].name);

		if (text.len > n && memcmp(text.at, digests[k].name, n) == 0 && text.at[n] == sign)
			return read_hex(span_after(text, n + 1), k, out);
	}
	return false;
}

bool digest_read(const char *text, struct digest *out)
{
	return read_named(span_of(text), '-', out);
}

bool digest_is_same(const struct digest *a, const struct digest *b)
{
	return a->kind == b->kind && memcmp(a->at, b->at, digests[a->kind].size) == 0;
}

/* ---- kinds --------------------------------------------------------------------------- */

static bool ends_with(struct span s, const char *end)
{
	size_t n = strlen(end);

	return s.len >= n && memcmp(s.at + s.len - n, end, n) == 0;
}

static bool has(struct span s, const char *what)
{
	return s.len > 0 && memmem(s.at, s.len, what, strlen(what));
}

static bool is_pip_index(const char *path)
{
	return ends_with(span_of(path), "/");
}

static bool is_npm_index(const char *path)
{
	return !strstr(path, "/-/") && !ends_with(span_of(path), ".tgz") &&
	       !ends_with(span_of(path), "/");
}

/* "1/a", "2/ab", "3/a/abc", "ab/cd/abcd"; how long that is at the end of the path, or 0. */
static size_t cargo_tail(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	size_t n = strlen(name), all = strlen(path);
	char tail[3 * 64 + 8], lower[64];

	if (n == 0 || n >= sizeof lower)
		return 0;
	for (size_t i = 0; i <= n; i++)
		lower[i] = (char)span_lower(name[i]);
	if (n < 3)
		snprintf(tail, sizeof tail, "/%zu/%s", n, lower);
	else if (n == 3)
		snprintf(tail, sizeof tail, "/3/%c/%s", lower[0], lower);
	else
		snprintf(tail, sizeof tail, "/%.2s/%.2s/%s", lower, lower + 2, lower);
	size_t len = strlen(tail);

	return len <= all && strcmp(path + all - len, tail) == 0 ? len : 0;
}

static bool is_cargo_index(const char *path)
{
	return ends_with(span_of(path), "/config.json") || cargo_tail(path) > 0;
}

#define PIP_HTML "application/vnd.pypi.simple.v1+html"
#define PIP_JSON "application/vnd.pypi.simple.v1+json"
#define NPM_SHORT "application/vnd.npm.install-v1+json"

static const struct {
	const char *name;
	bool (*is_index)(const char *path);
	const char *wish, *rich, *plain; /* Accept with that in it; what is asked for then; else */
	const char *types[4];            /* none: any */
} kinds[] = {
	[PKG_NONE] = { "none", NULL, "", "", "", { NULL } },
	[PKG_PIP] = { "pip",
	              is_pip_index,
	              PIP_JSON,
	              PIP_JSON ", " PIP_HTML "; q=0.1, text/html; q=0.01",
	              "text/html",
	              { "text/html", PIP_HTML, PIP_JSON } },
	[PKG_NPM] = { "npm",
	              is_npm_index,
	              NPM_SHORT,
	              NPM_SHORT "; q=1.0, application/json; q=0.8",
	              "application/json",
	              { "application/json", NPM_SHORT } },
	[PKG_CARGO] = { "cargo", is_cargo_index, "", "*/*", "*/*", { NULL } },
};
_Static_assert(COUNT(kinds) == PKG_KINDS, "a kind is missing");

const char *pkg_name(enum pkg_kind k)
{
	return kinds[k].name;
}

enum pkg_kind pkg_find(const char *name, size_t n)
{
	for (enum pkg_kind k = PKG_NONE + 1; k < PKG_KINDS; k++)
		if (span_is((struct span){ name, n }, kinds[k].name))
			return k;
	return PKG_NONE;
}

/* "/@scope/name", normal, as npm asks for it. */
static bool respell_scoped(struct str *path)
{
	char *name = strrchr(path->data, '/');

	*name = '\0';
	char *scope = strrchr(path->data, '/');
	bool is_scoped = scope && scope[1] == '@' && scope[2] && name[1];
	AUTO(freep) char *rest = mem_strdup(name + 1);

	path->len = (size_t)(name - path->data);
	str_addf(path, "%%2f%s", rest);
	return is_scoped;
}

int pkg_target(enum pkg_kind k, struct span target, char out[WEBURL_PATH_SIZE])
{
	AUTO(str_done) struct str path = { .max = 3ul * WEBURL_PATH_SIZE };
	char plain[WEBURL_PATH_SIZE];

	if (target.len >= sizeof plain || memchr(target.at, '?', target.len) ||
	    memchr(target.at, '\0', target.len))
		return -1;
	snprintf(plain, sizeof plain, "%.*s", (int)target.len, target.at);
	char *slash = k == PKG_NPM ? strcasestr(plain, "%2f") : NULL;

	if (slash) {
		*slash = '/';
		memmove(slash + 1, slash + 3, strlen(slash + 3) + 1);
	}
	if (http_target_normal(span_of(plain), &path) < 0 || (slash && !respell_scoped(&path)) ||
	    path.len >= WEBURL_PATH_SIZE)
		return -1;
	memcpy(out, path.data, path.len + 1);
	return 0;
}

bool pkg_is_index(enum pkg_kind k, const char *path)
{
	return kinds[k].is_index && kinds[k].is_index(path);
}

const char *pkg_accept(enum pkg_kind k, struct span accept)
{
	return has(accept, kinds[k].wish) ? kinds[k].rich : kinds[k].plain;
}

/* Without its parameters. */
static struct span bare_type(struct span type)
{
	size_t n = 0;

	while (n < type.len && type.at[n] != ';' && type.at[n] != ' ')
		n++;
	return (struct span){ type.at, n };
}

bool pkg_is_index_type(enum pkg_kind k, struct span type)
{
	struct span bare = bare_type(type);

	if (!kinds[k].types[0])
		return true;
	for (size_t i = 0; i < COUNT(kinds[k].types) && kinds[k].types[i]; i++)
		if (span_is_nocase(bare, kinds[k].types[i]))
			return true;
	return false;
}

/* ---- claims -------------------------------------------------------------------------- */

struct reading {
	const struct pkg_page *page;
	pkg_claim_fn *claim;
	void *arg;
	struct weburl base;
	/* of the file that is being read; "": not said */
	char url[HREF_MAX], name[128], version[128];
	struct digest digest, metadata;
	bool has_digest, has_metadata;
};

static void begin_file(struct reading *r)
{
	r->url[0] = r->name[0] = r->version[0] = '\0';
	r->has_digest = r->has_metadata = false;
}

static void end_file(struct reading *r)
{
	struct weburl u;

	if (r->url[0] && weburl_resolve(&r->base, span_of(r->url), &u) == 0 && u.host[0]) {
		size_t n = strlen(u.path);

		if (r->has_digest)
			r->claim(r->arg, &u, &r->digest);
		if (r->has_metadata && n + sizeof METADATA <= sizeof u.path) {
			memcpy(u.path + n, METADATA, sizeof METADATA);
			r->claim(r->arg, &u, &r->metadata);
		}
	}
	begin_file(r);
}

/* ---- pip: a page --------------------------------------------------------------------- */

/* The byte that "amp;" or "#38;" stands for, and how long it is; 0: none that we know. */
static int entity(struct span s, size_t *len)
{
	static const struct {
		const char *name;
		char c;
	} known[] = { { "amp;", '&' }, { "lt;", '<' }, { "gt;", '>' }, { "quot;", '"' } };
	int c = 0;

	for (size_t i = 0; i < COUNT(known); i++) {
		*len = strlen(known[i].name);
		if (s.len >= *len && memcmp(s.at, known[i].name, *len) == 0)
			return known[i].c;
	}
	if (s.len < 3 || s.at[0] != '#')
		return 0;
	bool is_hex = span_lower(s.at[1]) == 'x';
	size_t i = is_hex ? 2 : 1;

	for (; i < s.len && i < 8 && s.at[i] != ';'; i++) {
		int digit = http_hex(s.at[i]);

		if (digit < 0 || (!is_hex && digit > 9))
			return 0;
		c = c * (is_hex ? 16 : 10) + digit;
	}
	*len = i + 1;
	return i < s.len && s.at[i] == ';' && c > ' ' && c <= '~' ? c : 0;
}

/* The value of an attribute; what is not ASCII, or too long, is as if it had not been said. */
static void plain_value(struct span in, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < in.len; i++) {
		int c = (unsigned char)in.at[i];
		size_t len = 0;

		if (c == '&') {
			c = entity(span_after(in, i + 1), &len);
			i += len;
		}
		if (c <= ' ' || c > '~' || n + 1 >= size) {
			n = 0;
			break;
		}
		out[n++] = (char)c;
	}
	out[n] = '\0';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static void skip_spaces(struct span *s)
{
	while (s->len > 0 && is_space(s->at[0]))
		*s = span_after(*s, 1);
}

static struct span take_until(struct span *s, const char *any)
{
	size_t n = 0;

	while (n < s->len && s->at[n] && !strchr(any, s->at[n]))
		n++;
	struct span out = { s->at, n };

	*s = span_after(*s, n);
	return out;
}

/* The next attribute of a tag; false at its end, which is stepped over. */
static bool take_attribute(struct span *s, struct span *name, struct span *value)
{
	*value = (struct span){ 0 };
	do {
		skip_spaces(s);
		*name = take_until(s, " \t\r\n\f=>/");
		if (name->len > 0)
			break;
		bool is_end = s->len == 0 || s->at[0] == '>';

		*s = span_after(*s, s->len > 0);
		if (is_end)
			return false;
	} while (true);
	skip_spaces(s);
	if (s->len == 0 || s->at[0] != '=')
		return true;
	*s = span_after(*s, 1);
	skip_spaces(s);
	if (s->len > 0 && (s->at[0] == '"' || s->at[0] == '\'')) {
		const char quote[] = { s->at[0], '\0' };

		*s = span_after(*s, 1);
		*value = take_until(s, quote);
		*s = span_after(*s, s->len > 0);
	} else {
		*value = take_until(s, " \t\r\n\f>");
	}
	return true;
}

static void take_fragment(struct reading *r)
{
	char *sharp = strchr(r->url, '#');

	if (!sharp)
		return;
	r->has_digest = read_named(span_of(sharp + 1), '=', &r->digest);
	*sharp = '\0';
}

static void read_link(struct reading *r, struct span *s)
{
	struct span name, value;
	char text[DIGEST_TEXT_SIZE];

	begin_file(r);
	while (take_attribute(s, &name, &value)) {
		if (span_is_nocase(name, "href")) {
			plain_value(value, r->url, sizeof r->url);
			take_fragment(r);
		} else if (span_is_nocase(name, "data-core-metadata") ||
		           span_is_nocase(name, "data-dist-info-metadata")) {
			plain_value(value, text, sizeof text);
			r->has_metadata |= read_named(span_of(text), '=', &r->metadata);
		}
	}
	end_file(r);
}

static void read_base(struct reading *r, struct span *s)
{
	struct span name, value;
	char text[HREF_MAX];

	while (take_attribute(s, &name, &value)) {
		if (!span_is_nocase(name, "href"))
			continue;
		plain_value(value, text, sizeof text);
		if (weburl_resolve(&r->page->at[0], span_of(text), &r->base) < 0)
			r->base.host[0] = '\0'; /* then no relative link means anything */
	}
}

static void skip_comment(struct span *s)
{
	const char *end = s->len > 0 ? memmem(s->at, s->len, "-->", 3) : NULL;

	*s = span_after(*s, end ? (size_t)(end - s->at) + 3 : s->len);
}

static int read_html(struct reading *r, struct span s)
{
	while (s.len > 0) {
		const char *tag = memchr(s.at, '<', s.len);

		if (!tag)
			break;
		s = span_after(s, (size_t)(tag - s.at) + 1);
		if (s.len >= 3 && memcmp(s.at, "!--", 3) == 0) {
			skip_comment(&s);
			continue;
		}
		struct span name = take_until(&s, " \t\r\n\f>/");

		if (span_is_nocase(name, "a"))
			read_link(r, &s);
		else if (span_is_nocase(name, "base"))
			read_base(r, &s);
	}
	return 0;
}

/* ---- pip: JSON ----------------------------------------------------------------------- */

static bool is_at(const struct jsonwalk_path *p, size_t i, const char *key)
{
	return p->keys[i].at && span_is(p->keys[i], key);
}

static void keep(struct span raw, char *out, size_t size)
{
	if (jsonwalk_ascii(raw, out, size) < 0)
		out[0] = '\0';
}

static bool take_hex(struct span raw, struct digest *out)
{
	return read_hex(raw, DIGEST_SHA256, out);
}

/* files[].url, .hashes.sha256, .core-metadata.sha256 */
static void pip_text(void *arg, const struct jsonwalk_path *p, struct span raw)
{
	struct reading *r = arg;

	if (p->depth < 3 || !is_at(p, 0, "files") || p->keys[1].at)
		return;
	if (p->depth == 3 && is_at(p, 2, "url"))
		keep(raw, r->url, sizeof r->url);
	if (p->depth != 4 || !is_at(p, 3, "sha256"))
		return;
	if (is_at(p, 2, "hashes"))
		r->has_digest = take_hex(raw, &r->digest);
	if (is_at(p, 2, "core-metadata") || is_at(p, 2, "dist-info-metadata") ||
	    is_at(p, 2, "data-dist-info-metadata"))
		r->has_metadata |= take_hex(raw, &r->metadata);
}

static void pip_closed(void *arg, const struct jsonwalk_path *p)
{
	struct reading *r = arg;

	if (p->depth == 2 && is_at(p, 0, "files") && !p->keys[1].at) {
		char *sharp = strchr(r->url, '#');

		if (sharp)
			*sharp = '\0';
		end_file(r);
	}
}

static int read_pip(struct reading *r)
{
	static const struct jsonwalk_ops ops = { pip_text, pip_closed };

	if (span_is_nocase(bare_type(r->page->type), PIP_JSON))
		return jsonwalk(r->page->text, &ops, r);
	return read_html(r, r->page->text);
}

/* ---- npm ----------------------------------------------------------------------------- */

/* "sha1-... sha512-...": the strongest that we know. */
static bool take_integrity(struct span raw, struct digest *out)
{
	char text[512];
	bool has_one = false;

	if (jsonwalk_ascii(raw, text, sizeof text) < 0)
		return false;
	for (char *rest = text, *word; (word = strsep(&rest, " "));)
		for (enum digest_kind k = 0; k < DIGESTS; k++) {
			AUTO(str_done) struct str bytes = { .max = DIGEST_SIZE_MAX + 1 };
			size_t n = strlen(digests[k].name);

			if (strncmp(word, digests[k].name, n) != 0 || word[n] != '-' ||
			    (has_one && k < out->kind))
				continue;
			word[n + 1 + strcspn(word + n + 1, "?")] = '\0'; /* options */
			if (!base64_decode(word + n + 1, strlen(word + n + 1), &bytes) ||
			    bytes.len != digests[k].size)
				continue;
			*out = (struct digest){ .kind = k };
			memcpy(out->at, bytes.data, bytes.len);
			has_one = true;
		}
	return has_one;
}

/* versions.VERSION.dist.tarball; of a single version dist.tarball */
static bool is_dist(const struct jsonwalk_path *p, size_t depth)
{
	if (p->depth != depth + 1 && p->depth != depth + 3)
		return false;
	return p->depth == depth + 1 ? is_at(p, 0, "dist")
	                             : is_at(p, 0, "versions") && is_at(p, 2, "dist");
}

static void npm_text(void *arg, const struct jsonwalk_path *p, struct span raw)
{
	struct reading *r = arg;

	if (!is_dist(p, 1))
		return;
	if (is_at(p, p->depth - 1, "tarball"))
		keep(raw, r->url, sizeof r->url);
	else if (is_at(p, p->depth - 1, "integrity"))
		r->has_digest = take_integrity(raw, &r->digest);
}

static void npm_closed(void *arg, const struct jsonwalk_path *p)
{
	if (is_dist(p, 0))
		end_file(arg);
}

static int read_npm(struct reading *r)
{
	static const struct jsonwalk_ops ops = { npm_text, npm_closed };

	return jsonwalk(r->page->text, &ops, r);
}

/* ---- cargo --------------------------------------------------------------------------- */

static void cargo_text(void *arg, const struct jsonwalk_path *p, struct span raw)
{
	struct reading *r = arg;

	if (p->depth != 1)
		return;
	if (is_at(p, 0, "name"))
		keep(raw, r->name, sizeof r->name);
	else if (is_at(p, 0, "vers"))
		keep(raw, r->version, sizeof r->version);
	else if (is_at(p, 0, "cksum"))
		r->has_digest = take_hex(raw, &r->digest);
}

/* With the markers of its `dl`, or behind it; the prefix markers are for indexes that we pass. */
static void cargo_url(struct reading *r)
{
	AUTO(str_done) struct str out = { .max = HREF_MAX };
	const char *dl = r->page->dl;

	if (strstr(dl, "{prefix}") || strstr(dl, "{lowerprefix}") ||
	    strstr(dl, "{sha256-checksum}"))
		return;
	for (const char *p = dl; *p;) {
		bool is_crate = strncmp(p, "{crate}", 7) == 0;
		bool is_version = strncmp(p, "{version}", 9) == 0;

		str_addf(&out, "%.*s", is_crate || is_version ? 0 : 1, p);
		str_add(&out, is_crate ? r->name : is_version ? r->version : "");
		p += is_crate ? 7 : is_version ? 9 : 1;
	}
	if (!strchr(dl, '{'))
		str_addf(&out, "/%s/%s/download", r->name, r->version);
	if (!out.overflow)
		snprintf(r->url, sizeof r->url, "%s", str_text(&out));
}

static void cargo_closed(void *arg, const struct jsonwalk_path *p)
{
	struct reading *r = arg;

	if (p->depth != 0)
		return;
	if (r->name[0] && r->version[0])
		cargo_url(r);
	end_file(r);
}

static int read_cargo(struct reading *r)
{
	static const struct jsonwalk_ops ops = { cargo_text, cargo_closed };
	struct span rest = r->page->text;

	if (!r->page->dl || cargo_tail(r->page->at->path) == 0)
		return 0;
	while (rest.len > 0) {
		struct span line = take_until(&rest, "\n");

		rest = span_after(rest, rest.len > 0);
		begin_file(r);
		if (line.len > 0 && jsonwalk(line, &ops, r) < 0)
			return -1;
	}
	return 0;
}

static void dl_text(void *arg, const struct jsonwalk_path *p, struct span raw)
{
	if (p->depth == 1 && is_at(p, 0, "dl"))
		keep(raw, arg, WEBURL_PATH_SIZE);
}

int pkg_cargo_dl(struct span config, char out[WEBURL_PATH_SIZE])
{
	static const struct jsonwalk_ops ops = { dl_text, NULL };

	out[0] = '\0';
	return jsonwalk(config, &ops, out) == 0 && out[0] ? 0 : -1;
}

int pkg_cargo_config(const struct weburl *at, struct weburl *out)
{
	static const char name[] = "/config.json";
	size_t tail = cargo_tail(at->path), n = strlen(at->path) - tail;

	if (tail == 0 || n + sizeof name > sizeof out->path)
		return -1;
	*out = *at;
	memcpy(out->path + n, name, sizeof name);
	return 0;
}

/* ---- all ----------------------------------------------------------------------------- */

int pkg_read(const struct pkg_page *page, pkg_claim_fn *claim, void *arg)
{
	static int (*const readers[])(struct reading * r) = {
		[PKG_PIP] = read_pip,
		[PKG_NPM] = read_npm,
		[PKG_CARGO] = read_cargo,
	};
	struct reading r = { .page = page, .claim = claim, .arg = arg, .base = *page->at };

	_Static_assert(COUNT(readers) == PKG_KINDS, "a kind has no reader");
	return readers[page->kind] ? readers[page->kind](&r) : -1;
}
