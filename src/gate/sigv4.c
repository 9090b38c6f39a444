#include "gate/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "base/hex.h"
#include "base/vec.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define CANONICAL_MAX (4ul * (HTTP_HEAD_MAX + HTTP_TARGET_MAX))
#define KEY_TEXT_MAX (4u << 10)
#define DATE_LEN 8 /* of a stamp */
#define FIELDS_MAX (HTTP_FIELDS_MAX + 4)
#define CHUNK_LINE_MAX 128

/* ---- what it is signed with ---------------------------------------------------------- */

static struct span until(struct span s, char mark)
{
	const char *end = s.len > 0 ? memchr(s.at, mark, s.len) : NULL;

	return (struct span){ s.at, end ? (size_t)(end - s.at) : s.len };
}

/* What follows `first` and the mark behind it; empty when there is none. */
static struct span rest_of(struct span s, struct span first)
{
	return span_after(s, first.len + (first.len < s.len));
}

bool sigv4_key_read(struct span value, struct sigv4_key *out)
{
	struct sigv4_key key = { .id = until(value, ':') };
	struct span rest = rest_of(value, key.id);

	key.secret = until(rest, ':');
	key.token = rest_of(rest, key.secret);
	if (key.id.len < 8 || key.secret.len < 8 || memchr(key.id.at, '/', key.id.len))
		return false;
	*out = key;
	return true;
}

static bool is_word(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!(s.at[i] >= 'a' && s.at[i] <= 'z') && !(s.at[i] >= '0' && s.at[i] <= '9') &&
		    s.at[i] != '-')
			return false;
	return s.len > 0 && s.len <= SIGV4_WORD_MAX;
}

bool sigv4_bound_is(const char *text)
{
	struct span all = span_of(text), region = until(all, '/');

	return all.len == 0 ||
	       (is_word(region) && (region.len == all.len || is_word(rest_of(all, region))));
}

/* Of "ALGORITHM Credential=ID/DATE/REGION/SERVICE/aws4_request, ...": what follows the '='. */
static struct span credential_of(struct span value)
{
	static const char begin[] = ALGORITHM " ", mark[] = "Credential=";
	struct span none = { "", 0 };

	if (value.len < sizeof begin || memcmp(value.at, begin, sizeof begin - 1) != 0)
		return none;
	const char *at = memmem(value.at, value.len, mark, sizeof mark - 1);

	if (!at || !strchr(" ,", at[-1]))
		return none;
	at += sizeof mark - 1;
	return until((struct span){ at, (size_t)(value.at + value.len - at) }, ',');
}

bool sigv4_is_by(struct span value, const char *id)
{
	return span_is(until(credential_of(value), '/'), id);
}

static void set_word(char out[SIGV4_WORD_MAX + 1], struct span word)
{
	if (!out[0] && is_word(word))
		snprintf(out, SIGV4_WORD_MAX + 1, "%.*s", (int)word.len, word.at);
}

static void scope_by_client(struct sigv4 *s, struct span value)
{
	struct span rest = credential_of(value);
	struct span parts[4];

	for (size_t i = 0; i < COUNT(parts); i++) {
		parts[i] = until(rest, '/');
		rest = rest_of(rest, parts[i]);
	}
	set_word(s->region, parts[2]);
	set_word(s->service, parts[3]);
}

/* "eu-west-3", "us-gov-east-1": words, and a number. */
static bool is_region(struct span label)
{
	return label.len >= 9 && is_word(label) && label.at[2] == '-' &&
	       label.at[label.len - 2] == '-' && label.at[label.len - 1] >= '1' &&
	       label.at[label.len - 1] <= '9';
}

static void scope_by_name(struct sigv4 *s, const char *name)
{
	struct span rest = span_of(name), last = { "", 0 };

	while (rest.len > 0) {
		struct span label = until(rest, '.');

		if (is_region(label)) {
			set_word(s->region, label);
			set_word(s->service, last);
			return;
		}
		last = label;
		rest = rest_of(rest, label);
	}
}

static bool find_scope(struct sigv4 *s, const struct sigv4_ask *q)
{
	struct span bound = span_of(q->bound), region = until(bound, '/');
	const struct span *field = http_header(q->head, "Authorization");

	set_word(s->region, region);
	set_word(s->service, rest_of(bound, region));
	if (field)
		scope_by_client(s, *field);
	scope_by_name(s, q->name);
	return s->region[0] && s->service[0];
}

static bool is_s3(const struct sigv4 *s)
{
	return strncmp(s->service, "s3", 2) == 0;
}

/* ---- the request, in the one way that it can be written ------------------------------ */

static bool is_unreserved(char c)
{
	return (span_lower(c) >= 'a' && span_lower(c) <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_.~", c));
}

static int digit_of(char c)
{
	return hex_digit((char)span_lower(c));
}

/* `also`: a letter that stays, or 0. What was escaped is first decoded, unless it is to be twice.
 */
static void encode(struct span in, char also, bool is_twice, struct str *out)
{
	for (size_t i = 0; i < in.len; i++) {
		char c = in.at[i];

		if (!is_twice && c == '%' && in.len - i > 2 && digit_of(in.at[i + 1]) >= 0 &&
		    digit_of(in.at[i + 2]) >= 0) {
			c = (char)(digit_of(in.at[i + 1]) * 16 + digit_of(in.at[i + 2]));
			i += 2;
		}
		if (is_unreserved(c) || (also && c == also))
			str_addn(out, &c, 1);
		else
			str_addf(out, "%%%02X", (unsigned char)c);
	}
}

/* Without empty, "." and ".." segments. */
static void normalize(struct span path, struct str *out)
{
	bool has_end = path.len > 0 && path.at[path.len - 1] == '/';
	struct span rest = rest_of(path, (struct span){ path.at, 0 }); /* behind the slash */

	while (rest.len > 0) {
		struct span part = until(rest, '/');

		rest = rest_of(rest, part);
		if (part.len == 0 || span_is(part, "."))
			continue;
		if (!span_is(part, "..")) {
			str_add(out, "/");
			str_addn(out, part.at, part.len);
			continue;
		}
		while (out->len > 0 && out->data[--out->len] != '/')
			;
	}
	if (has_end || out->len == 0)
		str_add(out, "/");
}

static void add_path(const struct sigv4 *s, struct span path, struct str *out)
{
	AUTO(str_done) struct str normal = { .max = HTTP_TARGET_MAX + 2 };

	if (is_s3(s)) {
		encode(path, '/', false, out);
	} else {
		normalize(path, &normal);
		encode((struct span){ str_text(&normal), normal.len }, '/', true, out);
	}
	str_add(out, "\n");
}

struct part {
	size_t at, name_len, len; /* of "name=value" in a text that has them all */
};

static const char *part_texts; /* what qsort(3) has no argument for */

static int compare_spans(struct span a, struct span b)
{
	int r = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);

	return r != 0 ? r : (a.len > b.len) - (a.len < b.len);
}

static int compare_parts(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	int r = compare_spans((struct span){ part_texts + a->at, a->name_len },
	                      (struct span){ part_texts + b->at, b->name_len });

	return r != 0 ? r
	              : compare_spans((struct span){ part_texts + a->at, a->len },
	                              (struct span){ part_texts + b->at, b->len });
}

/* False at the end. */
static bool next_part(struct span *query, struct str *texts, struct part *p)
{
	struct span whole = until(*query, '&');

	for (; whole.len == 0 && query->len > 0; whole = until(*query, '&'))
		*query = rest_of(*query, whole);
	struct span name = until(whole, '=');

	*query = rest_of(*query, whole);
	p->at = texts->len;
	encode(name, 0, false, texts);
	p->name_len = texts->len - p->at;
	str_add(texts, whole.len > 0 ? "=" : "");
	encode(rest_of(whole, name), 0, false, texts);
	p->len = texts->len - p->at;
	return whole.len > 0;
}

static void add_query(struct span query, struct str *out)
{
	AUTO(str_done) struct str texts = { .max = CANONICAL_MAX };
	VEC(struct part) parts = { 0 };

	struct part p;

	while (next_part(&query, &texts, &p))
		vec_push(&parts, p);
	part_texts = str_text(&texts);
	if (parts.len > 1)
		qsort(parts.at, parts.len, sizeof *parts.at, compare_parts);
	for (size_t i = 0; i < parts.len; i++) {
		str_add(out, i > 0 ? "&" : "");
		str_addn(out, part_texts + parts.at[i].at, parts.at[i].len);
	}
	str_add(out, "\n");
	vec_done(&parts);
}

/* ---- its fields ---- */

bool sigv4_replaces(struct span field)
{
	return span_is_nocase(field, "X-Amz-Date") || span_is_nocase(field, "Date") ||
	       span_is_nocase(field, "X-Amz-Content-Sha256") ||
	       span_is_nocase(field, "X-Amz-Security-Token");
}

static bool is_signed(struct span name)
{
	return span_is_nocase(name, "Content-Type") || span_is_nocase(name, "Content-MD5") ||
	       (name.len > 6 && span_is_nocase((struct span){ name.at, 6 }, "x-amz-") &&
	        !sigv4_replaces(name));
}

struct signed_field {
	struct http_field f;
	size_t number;
};

static int compare_fields(const void *x, const void *y)
{
	const struct signed_field *a = x, *b = y;
	size_t n = a->f.name.len < b->f.name.len ? a->f.name.len : b->f.name.len;
	int r = strncasecmp(a->f.name.at, b->f.name.at, n);

	if (r == 0)
		r = (a->f.name.len > b->f.name.len) - (a->f.name.len < b->f.name.len);
	return r != 0 ? r : (a->number > b->number) - (a->number < b->number);
}

static void add_lower(struct span s, struct str *out)
{
	for (size_t i = 0; i < s.len; i++)
		str_addn(out, &(char){ (char)span_lower(s.at[i]) }, 1);
}

/* Of spaces in a row one counts. */
static void add_value(struct span s, struct str *out)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] != ' ' || i == 0 || s.at[i - 1] != ' ')
			str_addn(out, s.at + i, 1);
}

static void add_sorted(struct sigv4 *s, struct signed_field *all, size_t n)
{
	qsort(all, n, sizeof *all, compare_fields);
	for (size_t i = 0; i < n; i++) {
		bool is_same = i > 0 && span_same_nocase(all[i].f.name, all[i - 1].f.name);

		if (!is_same) {
			str_add(&s->canonical, i > 0 ? "\n" : "");
			add_lower(all[i].f.name, &s->canonical);
			str_add(&s->names, i > 0 ? ";" : "");
			add_lower(all[i].f.name, &s->names);
		}
		str_add(&s->canonical, is_same ? "," : ":");
		add_value(all[i].f.value, &s->canonical);
	}
	str_add(&s->canonical, "\n\n");
	str_addn(&s->canonical, str_text(&s->names), s->names.len);
	str_add(&s->canonical, "\n");
}

static void add_fields(struct sigv4 *s, const struct http_head *h, const struct sigv4_key *key)
{
	struct signed_field all[FIELDS_MAX];
	char host[512];
	size_t n = 0;

	snprintf(host, sizeof host, h->port > 0 ? "%.*s:%u" : "%.*s", (int)h->host.len, h->host.at,
	         h->port);
	const struct http_field ours[] = {
		{ span_of("host"), span_of(host) },
		{ span_of("x-amz-date"), span_of(s->stamp) },
		{ span_of("x-amz-content-sha256"), span_of(s->said) },
		{ span_of("x-amz-security-token"), key->token },
	};

	for (size_t i = 0; i < COUNT(ours); i++)
		if (ours[i].value.len > 0)
			all[n++] = (struct signed_field){ ours[i], 0 };
	for (size_t i = 0; i < h->n_fields; i++)
		if (is_signed(h->fields[i].name) && http_goes_on(h, h->fields[i].name))
			all[n++] = (struct signed_field){ h->fields[i], i };
	add_sorted(s, all, n);
}

/* ---- signatures ---------------------------------------------------------------------- */

struct mac {
	uint8_t bytes[HASH_BYTES];
};

static struct mac mac_of(struct span key, struct span text)
{
	struct mac m = { { 0 } };

	(void)HMAC(EVP_sha256(), key.at, (int)key.len, (const uint8_t *)text.at, text.len, m.bytes,
	           NULL); /* fails for no key and no text */
	return m;
}

static struct span mac_span(const struct mac *m)
{
	return (struct span){ (const char *)m->bytes, sizeof m->bytes };
}

static struct mac signing_key(const struct sigv4 *s)
{
	struct sigv4_key key = { 0 };
	uint8_t first[KEY_TEXT_MAX + 4] = "AWS4";

	(void)sigv4_key_read(s->value, &key); /* it could be, at the beginning */
	size_t n = key.secret.len < KEY_TEXT_MAX ? key.secret.len : 0;

	if (n > 0)
		memcpy(first + 4, key.secret.at, n);
	struct mac m = mac_of((struct span){ (const char *)first, n + 4 },
	                      (struct span){ s->stamp, DATE_LEN });

	OPENSSL_cleanse(first, sizeof first);
	m = mac_of(mac_span(&m), span_of(s->region));
	m = mac_of(mac_span(&m), span_of(s->service));
	return mac_of(mac_span(&m), span_of("aws4_request"));
}

/* `rest`: what follows the scope. */
static void sign(struct sigv4 *s, const char *what, const char *rest)
{
	AUTO(str_done) struct str text = { .max = 1024 };
	struct mac key = signing_key(s);

	str_addf(&text, "%s\n%s\n%.*s/%s/%s/aws4_request\n%s", what, s->stamp, DATE_LEN, s->stamp,
	         s->region, s->service, rest);
	struct mac m = mac_of(mac_span(&key), (struct span){ str_text(&text), text.len });

	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(s->signature + 2 * i, 3, "%02x", m.bytes[i]);
	OPENSSL_cleanse(&key, sizeof key);
}

static void sign_request(struct sigv4 *s, const char *payload)
{
	char hash[TREE_HASH_TEXT];

	str_add(&s->canonical, payload);
	hash_of((struct span){ str_text(&s->canonical), s->canonical.len }, hash);
	sign(s, ALGORITHM, hash);
}

/* ---- a request ----------------------------------------------------------------------- */

static bool is_hash(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (digit_of(s.at[i]) < 0)
			return false;
	return s.len == 2ul * HASH_BYTES;
}

static const struct {
	const char *word;
	enum sigv4_payload payload;
} words[] = {
	{ "UNSIGNED-PAYLOAD", SIGV4_SAID },
	{ "STREAMING-UNSIGNED-PAYLOAD-TRAILER", SIGV4_SAID },
	{ "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", SIGV4_CHUNKS },
};
_Static_assert(sizeof((struct sigv4 *)0)->said >= sizeof "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
               "no room for a word");

static bool choose_payload(struct sigv4 *s, const struct http_head *h, struct str *hash)
{
	const struct span *said = http_header(h, "X-Amz-Content-Sha256");
	bool has_body = h->body == HTTP_CHUNKED || (h->body == HTTP_LENGTH && h->length > 0);

	if (!said && !is_s3(s) && has_body) {
		s->payload = SIGV4_HELD;
		return true;
	}
	if (!said && !is_s3(s)) {
		char empty[TREE_HASH_TEXT];

		hash_of((struct span){ "", 0 }, empty);
		str_add(hash, empty);
		return true;
	}
	struct span word = said ? *said : span_of(words[0].word);

	for (size_t i = 0; i < COUNT(words); i++)
		if (span_is(word, words[i].word)) {
			s->payload = words[i].payload;
			str_add(hash, words[i].word);
			return true;
		}
	str_addn(hash, word.at, word.len);
	return is_hash(word);
}

static void set_stamp(struct sigv4 *s, int64_t now_ms)
{
	time_t now = (time_t)(now_ms / 1000);
	struct tm t;

	gmtime_r(&now, &t);
	strftime(s->stamp, sizeof s->stamp, "%Y%m%dT%H%M%SZ", &t);
}

bool sigv4_begin(struct sigv4 *s, const struct sigv4_ask *q, size_t *all)
{
	AUTO(str_done) struct str hash = { .max = 80 };
	struct span path = until(q->head->path, '?');
	struct sigv4_key key;

	sigv4_done(s);
	*s = (struct sigv4){ .value = q->value,
		             .canonical.max = CANONICAL_MAX,
		             .names.max = HTTP_HEAD_MAX,
		             .all = all };
	str_room(&s->canonical, CANONICAL_MAX);
	memset(s->signature, '0', sizeof s->signature - 1);
	set_stamp(s, q->now_ms);
	if (!sigv4_key_read(q->value, &key) || !find_scope(s, q) ||
	    !choose_payload(s, q->head, &hash)) {
		sigv4_done(s);
		return false;
	}
	/* S3 wants it said; elsewhere it is said as the client did. */
	if (is_s3(s) || http_header(q->head, "X-Amz-Content-Sha256"))
		snprintf(s->said, sizeof s->said, "%s", str_text(&hash));
	str_addf(&s->canonical, "%.*s\n", (int)q->head->method.len, q->head->method.at);
	add_path(s, path, &s->canonical);
	add_query(rest_of(q->head->path, path), &s->canonical);
	add_fields(s, q->head, &key);
	s->is_on = !s->canonical.overflow && !s->names.overflow;
	if (s->is_on && s->payload != SIGV4_HELD)
		sign_request(s, str_text(&hash));
	return s->is_on;
}

static void let_go(struct sigv4 *s, size_t n)
{
	if (s->all)
		*s->all -= n;
}

void sigv4_done(struct sigv4 *s)
{
	let_go(s, s->body.len);
	str_wipe(&s->canonical); /* a token is in both */
	str_wipe(&s->head);
	str_done(&s->names);
	str_done(&s->body);
	*s = (struct sigv4){ 0 };
}

void sigv4_print(struct sigv4 *s, struct http_print *p)
{
	AUTO(str_done) struct str text = { .max = 2ul * HTTP_HEAD_MAX };
	struct sigv4_key key = { 0 };

	(void)sigv4_key_read(s->value, &key);
	http_print_text(p, "X-Amz-Date", s->stamp);
	if (s->said[0])
		http_print_text(p, "X-Amz-Content-Sha256", s->said);
	if (key.token.len > 0)
		http_print_field(p, span_of("X-Amz-Security-Token"), key.token);
	str_addf(&text,
	         ALGORITHM " Credential=%.*s/%.*s/%s/%s/aws4_request, SignedHeaders=%s, Signature=",
	         (int)key.id.len, key.id.at, DATE_LEN, s->stamp, s->region, s->service,
	         str_text(&s->names));
	str_add(&text, s->signature);
	http_print_text(p, "Authorization", str_text(&text));
	s->signature_at = p->out->len - (sizeof "\r\n" - 1) - strlen(s->signature);
}

/* ---- its body ------------------------------------------------------------------------ */

static int hold(struct sigv4 *s, struct span in, size_t most)
{
	if (in.len > most - s->body.len || in.len > SIGV4_ALL_MAX - *s->all)
		return SIGV4_LARGE;
	s->body.max = most;
	str_addn(&s->body, in.at, in.len);
	*s->all += in.len;
	return 0;
}

/* "SIZE;chunk-signature=HEX": the size, or -1. */
static int64_t chunk_size(struct span line)
{
	static const char mark[] = "chunk-signature=";
	struct span size = until(line, ';'), rest = rest_of(line, size);
	int64_t n = 0;

	for (size_t i = 0; i < size.len; i++) {
		int digit = digit_of(size.at[i]);

		if (digit < 0 || n > SIGV4_CHUNK_MAX)
			return -1;
		n = n * 16 + digit;
	}
	if (size.len == 0 || rest.len != sizeof mark - 1 + 2ul * HASH_BYTES ||
	    memcmp(rest.at, mark, sizeof mark - 1) != 0)
		return -1;
	return n;
}

static void sign_chunk(struct sigv4 *s, struct span size, struct span data, struct str *out)
{
	AUTO(str_done) struct str rest = { .max = 512 };
	char hash[TREE_HASH_TEXT];

	str_addf(&rest, "%s\n", s->signature);
	hash_of((struct span){ "", 0 }, hash);
	str_addf(&rest, "%s\n", hash);
	hash_of(data, hash);
	str_add(&rest, hash);
	sign(s, ALGORITHM "-PAYLOAD", str_text(&rest));
	str_addf(out, "%.*s;chunk-signature=%s\r\n", (int)size.len, size.at, s->signature);
	str_addn(out, data.at, data.len);
	str_add(out, "\r\n");
}

/* One chunk from the beginning of what is held: its bytes; 0: it is not whole; or an error. */
static int take_chunk(struct sigv4 *s, struct span held, struct str *out)
{
	size_t most = held.len < CHUNK_LINE_MAX ? held.len : CHUNK_LINE_MAX;
	const char *end = memmem(held.at, most, "\r\n", 2);

	if (s->is_last)
		return SIGV4_BAD;
	if (!end)
		return most == CHUNK_LINE_MAX ? SIGV4_BAD : 0;
	struct span line = { held.at, (size_t)(end - held.at) };
	int64_t n = chunk_size(line);

	if (n < 0 || n > SIGV4_CHUNK_MAX)
		return n < 0 ? SIGV4_BAD : SIGV4_LARGE;
	size_t whole = line.len + 2 + (size_t)n + 2;

	if (held.len < whole)
		return 0;
	if (memcmp(held.at + whole - 2, "\r\n", 2) != 0)
		return SIGV4_BAD;
	sign_chunk(s, until(line, ';'), (struct span){ end + 2, (size_t)n }, out);
	s->is_last = n == 0;
	return (int)whole;
}

static int feed_chunks(struct sigv4 *s, struct span in, struct str *out)
{
	int r = hold(s, in, 2ul * SIGV4_CHUNK_MAX + HTTP_HEAD_MAX);
	size_t done = 0;

	while (r >= 0 && done < s->body.len) {
		r = take_chunk(s, (struct span){ s->body.data + done, s->body.len - done }, out);
		if (r == 0)
			break;
		done += r > 0 ? (size_t)r : 0;
	}
	if (r < 0)
		return r;
	memmove(s->body.data, s->body.data + done, s->body.len - done);
	s->body.len -= done;
	let_go(s, done);
	return 0;
}

int sigv4_feed(struct sigv4 *s, struct span in, struct str *out)
{
	switch (s->payload) {
	case SIGV4_HELD:
		return hold(s, in, SIGV4_BODY_MAX);
	case SIGV4_CHUNKS:
		return feed_chunks(s, in, out);
	case SIGV4_SAID:
		break;
	}
	str_addn(out, in.at, in.len);
	return 0;
}

int sigv4_end(struct sigv4 *s, struct str *head, struct str *out)
{
	char hash[TREE_HASH_TEXT];

	if (s->payload == SIGV4_CHUNKS)
		return s->is_last && s->body.len == 0 ? 0 : SIGV4_BAD;
	if (s->payload != SIGV4_HELD)
		return 0;
	hash_of((struct span){ str_text(&s->body), s->body.len }, hash);
	sign_request(s, hash);
	memcpy(s->head.data + s->signature_at, s->signature, strlen(s->signature));
	str_room(head, s->head.len + s->body.len + HTTP_HEAD_MAX); /* what is wiped does not move */
	str_addn(head, s->head.data, s->head.len);
	str_addn(out, str_text(&s->body), s->body.len);
	return 0;
}
