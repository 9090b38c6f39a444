#include "gate/purse.h"

#include <assert.h>

#include "gate/sigv4.h"
#include "os/secret.h"
#include "wire/base64.h"
#include "wire/spelling.h"

#define PAGE 4096ul
#define TOKEN_MAX 1024ul /* they have 40 to 520 bytes */
#define SLOT (20 * TOKEN_MAX)
#define GIT_USER "x-access-token" /* by which a forge knows that the password is a token */

/* ---- locked bytes -------------------------------------------------------------------- */

/* What one value can become: itself, as it is said (escaped: three times as long), and for the
 * marks five copies, three codes of a third more, and hex. */
static size_t room_for(const struct cred_rule *c, size_t n)
{
	if (c->bind.how == BIND_APP)
		return 2 * SLOT;
	size_t extra = strlen(c->bind.arg) + (c->bind.format ? strlen(c->bind.format) : 0) + 64;

	return 20 * n + 4 * extra;
}

static struct span take(struct purse *p, const void *bytes, size_t n)
{
	uint8_t *at = p->at + p->used;

	assert(bytes || n == 0);
	if (n > 0)
		memcpy(at, bytes, n);
	p->used += n;
	return (struct span){ (const char *)at, n };
}

static struct span add(struct purse *p, struct span to, const char *bytes, size_t n)
{
	(void)take(p, bytes, n); /* right behind it */
	return (struct span){ to.at, to.len + n };
}

/* base64_encode() builds in a str, which is memory like any other: wiped here. */
static struct span encode(struct purse *p, struct span bytes)
{
	struct str text = { .max = 4ul * SECRET_VALUE_MAX };

	base64_encode(bytes.at, bytes.len, &text);
	struct span s = take(p, str_text(&text), text.len);

	str_wipe(&text);
	return s;
}

/* ---- how it is said ------------------------------------------------------------------ */

static struct span say_bearer(struct purse *p, const struct bind *b, struct span value)
{
	(void)b;
	return add(p, take(p, "Bearer ", 7), value.at, value.len);
}

static struct span say_basic(struct purse *p, const struct bind *b, struct span value)
{
	struct span both = take(p, b->arg, strlen(b->arg));

	both = add(p, both, ":", 1);
	both = add(p, both, value.at, value.len);
	struct span word = take(p, "Basic ", 6), code = encode(p, both);

	return (struct span){ word.at, word.len + code.len };
}

static struct span say_header(struct purse *p, const struct bind *b, struct span value)
{
	const char *format = b->format ? b->format : "{}", *place = strstr(format, "{}");
	struct span said = take(p, format, (size_t)(place - format));

	said = add(p, said, value.at, value.len);
	return add(p, said, place + 2, strlen(place + 2));
}

static bool is_unreserved(char c)
{
	return (span_lower(c) >= 'a' && span_lower(c) <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_.~", c));
}

static struct span say_query(struct purse *p, const struct bind *b, struct span value)
{
	static const char digits[] = "0123456789ABCDEF";
	struct span said = take(p, "", 0);

	(void)b;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.at[i];
		char escaped[3] = { '%', digits[c >> 4], digits[c & 15] };

		said = is_unreserved(value.at[i]) ? add(p, said, value.at + i, 1)
		                                  : add(p, said, escaped, 3);
	}
	return said;
}

/* It is signed with. */
static struct span say_key(struct purse *p, const struct bind *b, struct span value)
{
	(void)p;
	(void)b;
	return value;
}

static struct span (*const says[])(struct purse *p, const struct bind *b, struct span value) = {
	[BIND_BEARER] = say_bearer, [BIND_BASIC] = say_basic, [BIND_HEADER] = say_header,
	[BIND_QUERY] = say_query,   [BIND_AWS] = say_key,     [BIND_APP] = say_key,
};
_Static_assert(COUNT(says) == BIND_HOWS, "a way cannot be said");

/* ---- marks --------------------------------------------------------------------------- */

static void mark(struct purse *p, struct purse_entry *e, struct span s)
{
	if (s.len < SECRET_LEN_MIN || e->n_marks == PURSE_MARKS)
		return;
	e->marks[e->n_marks++] = s;
	for (int c = 0; c <= UINT8_MAX; c++)
		p->begins[c] |=
		    c == '%' || c == '\\' || c == '&' || spelling_fold((char)c) == s.at[0];
}

/* Of a text that has the value after `shift` bytes: the digits that depend on the value alone. */
static struct span mark_base64(struct purse *p, struct span value, size_t shift)
{
	static const size_t skip[] = { 0, 2, 3 };
	size_t from = p->used;

	take(p, "\0\0", shift);
	take(p, value.at, value.len);
	struct span text = { (const char *)p->at + from, shift + value.len };
	struct span code = encode(p, text);
	size_t sure = 8 * (shift + value.len) / 6;

	return (struct span){ code.at + skip[shift], sure - skip[shift] };
}

/* Folded where it lies, which is memory of ours. */
static struct span fold(struct span s)
{
	char *at = (char *)(uintptr_t)s.at;

	for (size_t i = 0; i < s.len; i++)
		at[i] = spelling_fold(at[i]);
	return s;
}

/* The value as somebody reads it who decodes what is no code: "a%41" is "aa". */
static struct span decode(struct purse *p, struct span value)
{
	struct span read = take(p, "", 0);

	for (size_t at = 0, used; at < value.len; at += used) {
		int c = spelling_next(span_after(value, at), SPELLING_DECODED, &used);
		char byte = (char)(c < 0 ? value.at[at] : c);

		used = c < 0 ? 1 : used;
		read = add(p, read, &byte, 1);
	}
	return read;
}

static struct span mark_hex(struct purse *p, struct span value)
{
	static const char digits[] = "0123456789abcdef";
	struct span code = take(p, "", 0);

	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.at[i];

		code = add(p, code, (char[]){ digits[c >> 4], digits[c & 15] }, 2);
	}
	return code;
}

static void mark_all(struct purse *p, struct purse_entry *e, struct span value)
{
	struct span plain = fold(take(p, value.at, value.len)), read = fold(decode(p, value));

	mark(p, e, plain);
	if (read.len != plain.len)
		mark(p, e, read);
	for (size_t shift = 0; shift < 3; shift++)
		mark(p, e, fold(mark_base64(p, value, shift)));
	mark(p, e, mark_hex(p, value));
}

/* Of a key its id is no secret. */
static int mark_value(struct purse *p, struct purse_entry *entry, const struct bind *b,
                      struct span value, struct err *e)
{
	struct sigv4_key key;

	if (b->how != BIND_AWS) {
		mark_all(p, entry, value);
		return 0;
	}
	if (!sigv4_key_read(value, &key))
		return err_new(e, ERR_INVALID, "it is not ID:SECRET or ID:SECRET:TOKEN");
	mark_all(p, entry, key.secret);
	if (key.token.len > 0)
		mark_all(p, entry, key.token);
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------- */

static int check_value(struct span value, struct err *e)
{
	if (value.len < SECRET_LEN_MIN)
		return err_new(e, ERR_INVALID, "it has less than %d bytes", SECRET_LEN_MIN);
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.at[i] < 0x20 || value.at[i] == 0x7f)
			return err_new(e, ERR_INVALID, "it has bytes that no request can carry");
	return 0;
}

static size_t size_of(const struct rules *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->creds.len; i++)
		n += room_for(&r->creds.at[i], 3 * strlen(r->creds.at[i].sealed) / 4);
	return (n + SECRET_VALUE_MAX + PAGE) / PAGE * PAGE;
}

static int fill(struct purse *p, size_t i, const struct cred_rule *c, int n, struct err *e)
{
	struct purse_entry *entry = &p->entries[i];
	struct span value = { (const char *)p->at + p->used, (size_t)n };

	if (check_value(value, e) < 0)
		return -1;
	snprintf(entry->name, sizeof entry->name, "%s", c->name);
	if (c->bind.how == BIND_APP) { /* that it opens is all that counts now */
		explicit_bzero(p->at + p->used, (size_t)n);
		entry->slots = p->used;
		p->used += 2 * SLOT;
		return 0;
	}
	p->used += value.len;
	entry->said = says[c->bind.how](p, &c->bind, value);
	return mark_value(p, entry, &c->bind, value, e);
}

static struct purse *purse_empty(size_t n, size_t size, struct err *e)
{
	size_t bytes = sizeof(struct purse) + n * sizeof(struct purse_entry);
	struct purse *p = mem_alloc(bytes);
	void *at = NULL;

	memset(p, 0, bytes);
	p->refs = 1;
	p->n = n;
	int r = size > 0 ? os_secret_map(size, false, &at) : 0;

	if (r < 0) {
		err_sys(e, -r, "lock %zu bytes for secrets", size);
		free(p);
		return NULL;
	}
	p->at = at;
	p->size = size;
	return p;
}

struct purse *purse_new(const struct rules *r, const struct purse_opts *o, struct err *e)
{
	struct purse *p = purse_empty(r->creds.len, r->creds.len > 0 ? size_of(r) : 0, e);

	for (size_t i = 0; p && i < r->creds.len; i++) {
		const struct cred_rule *c = &r->creds.at[i];
		int n = o->open(o->arg, c, p->at + p->used, e);

		if ((n >= 0 && fill(p, i, c, n, e) == 0) || !o->is_strict)
			continue;
		err_wrap(e, "secret %s", c->name);
		purse_unref(p);
		return NULL;
	}
	return p;
}

struct purse *purse_ref(struct purse *p)
{
	p->refs++;
	return p;
}

void purse_unref(struct purse *p)
{
	if (!p || --p->refs > 0)
		return;
	os_secret_unmap(p->at, p->size);
	free(p);
}

/* ---- tokens -------------------------------------------------------------------------- */

bool purse_token_is(struct span token)
{
	struct err unused;

	return token.len <= TOKEN_MAX && check_value(token, &unused) == 0;
}

void purse_set_token(struct purse *p, size_t i, struct span token, int64_t until_ms)
{
	static const struct bind git = { .arg = GIT_USER };
	struct purse_entry *e = &p->entries[i];
	struct span old[PURSE_MARKS];
	size_t n_old = e->n_fresh, used = p->used;

	memcpy(old, e->marks, sizeof old);
	p->used = e->slots + (e->n_turns++ % 2) * SLOT;
	explicit_bzero(p->at + p->used, SLOT);
	e->n_marks = 0;
	struct span value = take(p, token.at, token.len);

	e->said = say_bearer(p, &git, value);
	e->said_git = say_basic(p, &git, value);
	mark_all(p, e, value);
	e->n_fresh = e->n_marks;
	for (size_t k = 0; k < n_old; k++)
		mark(p, e, old[k]);
	e->until_ms = until_ms;
	e->again_ms = 0;
	p->used = used;
}

static bool is_same(const struct cred_rule *a, const struct cred_rule *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->tenant, b->tenant) == 0 &&
	       strcmp(a->bind_text, b->bind_text) == 0 && strcmp(a->sealed, b->sealed) == 0;
}

void purse_keep_tokens(struct purse *p, const struct rules *r, const struct purse *from,
                       const struct rules *from_rules)
{
	static const size_t word = sizeof "Bearer " - 1;

	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; from && k < from->n; k++) {
			const struct purse_entry *old = &from->entries[k];

			if (r->creds.at[i].bind.how != BIND_APP || old->said.len <= word ||
			    !is_same(&r->creds.at[i], &from_rules->creds.at[k]))
				continue;
			purse_set_token(p, i, span_after(old->said, word), old->until_ms);
		}
}

/* ---- answers ------------------------------------------------------------------------- */

/* What stands at the beginning of `in`; *how it is spelled and *used, its bytes. */
static enum spelled find_at(const struct purse *p, struct span in, enum spelling_how *how,
                            size_t *used)
{
	enum spelled found = SPELLED_NOT;
	const bool is_special = spelling_is_special(in.at[0]);
	const char first = spelling_fold(in.at[0]);

	for (size_t i = 0; i < p->n * SPELLING_HOWS; i++) {
		const struct purse_entry *e = &p->entries[i / SPELLING_HOWS];

		*how = (enum spelling_how)(i % SPELLING_HOWS);
		for (size_t k = 0; k < e->n_marks; k++) {
			if (!is_special && e->marks[k].at[0] != first)
				continue;
			enum spelled r = spelling_match(e->marks[k], in, *how, used);

			if (r == SPELLED_WHOLE)
				return r;
			found = r == SPELLED_PART ? r : found;
		}
	}
	return found;
}

size_t purse_scan(const struct purse *p, char *text, size_t n, size_t *open)
{
	size_t hits = 0;

	*open = n;
	for (size_t i = 0; i < n; i++) {
		enum spelling_how how;
		size_t used = 0;

		if (!p->begins[(unsigned char)text[i]])
			continue;
		enum spelled found = find_at(p, (struct span){ text + i, n - i }, &how, &used);

		if (found == SPELLED_PART && i < *open)
			*open = i;
		if (found != SPELLED_WHOLE)
			continue;
		spelling_mask(text + i, used, how);
		hits++;
		i += used - 1;
	}
	return hits;
}
