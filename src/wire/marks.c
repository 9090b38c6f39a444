#include "wire/marks.h"

#include "wire/hash.h"
#include "wire/spelling.h"

#define HASH_BLOCK 64
#define HEADS (1u << 16)
#define HELD_MAX (4u << 20)

/* ---- sums ---------------------------------------------------------------------------- */

static void sum_with(const uint8_t key[MARKS_KEY], uint8_t pad, struct span bytes,
                     uint8_t out[HASH_BYTES])
{
	uint8_t block[HASH_BLOCK];
	struct hash h;

	for (size_t i = 0; i < sizeof block; i++)
		block[i] = (uint8_t)((i < MARKS_KEY ? key[i] : 0) ^ pad);
	hash_init(&h);
	hash_add(&h, (struct span){ (const char *)block, sizeof block });
	hash_add(&h, bytes);
	hash_bytes(&h, out);
}

/* HMAC of RFC 2104. */
static void sum_of(const uint8_t key[MARKS_KEY], struct span bytes, uint8_t out[MARKS_SUM])
{
	uint8_t inner[HASH_BYTES], outer[HASH_BYTES];

	sum_with(key, 0x36, bytes, inner);
	sum_with(key, 0x5c, (struct span){ (const char *)inner, sizeof inner }, outer);
	memcpy(out, outer, MARKS_SUM);
}

/* A polynomial in a number that only the key's owners know, so that the next window follows from
 * the last one. */
struct roll {
	uint64_t by;      /* odd */
	uint64_t leaving; /* by^MARKS_HEAD */
	uint64_t stir;    /* odd */
};

static struct roll roll_of(const uint8_t key[MARKS_KEY])
{
	struct roll r = { .leaving = 1 };
	uint8_t sum[MARKS_SUM];

	sum_of(key, span_of("head"), sum);
	memcpy(&r.by, sum, sizeof r.by);
	memcpy(&r.stir, sum + sizeof r.by, sizeof r.stir);
	r.by |= 1;
	r.stir |= 1;
	for (int i = 0; i < MARKS_HEAD; i++)
		r.leaving *= r.by;
	return r;
}

static uint64_t roll_first(const struct roll *r, const char *text)
{
	uint64_t h = 0;

	for (int i = 0; i < MARKS_HEAD; i++)
		h = h * r->by + (uint8_t)text[i];
	return h;
}

static uint64_t roll_next(const struct roll *r, uint64_t h, const char *text)
{
	return h * r->by + (uint8_t)text[MARKS_HEAD] - r->leaving * (uint8_t)text[0];
}

static uint16_t head_of(const struct roll *r, uint64_t h)
{
	h ^= h >> 29;
	return (uint16_t)((h * r->stir) >> 48);
}

/* ---- marks --------------------------------------------------------------------------- */

void marks_begin(struct marks *m, const uint8_t key[MARKS_KEY])
{
	memset(m, 0, sizeof *m);
	memcpy(m->key, key, MARKS_KEY);
}

bool marks_add(struct marks *m, const char *name, struct span form)
{
	bool is_new = m->n_names == 0 || strcmp(m->names[m->n_names - 1], name) != 0;
	const struct roll roll = roll_of(m->key);

	if (form.len < MARKS_HEAD || form.len > MARK_LEN_MAX || m->n == MARKS_MAX ||
	    (is_new && m->n_names == MARKS_NAMES))
		return false;
	if (is_new)
		snprintf(m->names[m->n_names++], MARK_NAME_SIZE, "%s", name);
	struct mark *k = &m->at[m->n++];
	struct str folded = { .max = MARK_LEN_MAX };

	str_room(&folded, form.len);
	for (size_t i = 0; i < form.len; i++)
		str_addn(&folded, &(char){ spelling_fold(form.at[i]) }, 1);
	*k = (struct mark){ .len = (uint32_t)form.len,
		            .head = head_of(&roll, roll_first(&roll, folded.data)),
		            .name = (uint16_t)(m->n_names - 1) };
	sum_of(m->key, (struct span){ folded.data, folded.len }, k->sum);
	str_wipe(&folded);
	return true;
}

bool marks_check(const struct gate_marks *m)
{
	if (m->is_first > 1 || m->n > MARKS_EACH || (m->n == 0 && !m->is_first))
		return false;
	for (size_t i = 0; i < m->n; i++)
		if (m->at[i].len < MARKS_HEAD || m->at[i].len > MARK_LEN_MAX || m->at[i].name != 0)
			return false;
	return true;
}

void marks_tell(const struct marks *m, uint32_t name, struct gate_marks *out)
{
	*out = (struct gate_marks){ .is_first = name == 0 };
	memcpy(out->key, m->key, MARKS_KEY);
	if (name < m->n_names)
		memcpy(out->name, m->names[name], MARK_NAME_SIZE);
	for (size_t i = 0; i < m->n && out->n < MARKS_EACH; i++)
		if (m->at[i].name == name) {
			out->at[out->n] = m->at[i];
			out->at[out->n++].name = 0;
		}
}

void marks_take(struct marks *m, const struct gate_marks *from)
{
	if (from->is_first || memcmp(m->key, from->key, MARKS_KEY) != 0)
		marks_begin(m, from->key);
	if (from->n == 0 || m->n_names == MARKS_NAMES || m->n + from->n > MARKS_MAX)
		return;
	memcpy(m->names[m->n_names], from->name, MARK_NAME_SIZE);
	m->names[m->n_names][MARK_NAME_SIZE - 1] = '\0';
	for (size_t i = 0; i < from->n; i++) {
		m->at[m->n] = from->at[i];
		m->at[m->n++].name = (uint16_t)m->n_names;
	}
	m->n_names++;
}

/* ---- looking ------------------------------------------------------------------------- */

struct marker {
	struct marks marks;
	struct roll roll;
	uint64_t heads[HEADS / 64]; /* which heads there are */
	char fold[UINT8_MAX + 1];
	bool is_special[UINT8_MAX + 1]; /* may be no character, or the beginning of one */
};

struct marker *marker_new(const struct marks *m)
{
	struct marker *k = mem_alloc(sizeof *k);

	*k = (struct marker){ .marks = *m, .roll = roll_of(m->key) };
	for (size_t i = 0; i < m->n; i++)
		k->heads[m->at[i].head / 64] |= 1ull << (m->at[i].head % 64);
	for (int c = 0; c <= UINT8_MAX; c++) {
		k->fold[c] = spelling_fold((char)c);
		k->is_special[c] = spelling_is_special((char)c);
	}
	return k;
}

void marker_free(struct marker *k)
{
	free(k);
}

void masking_done(struct masking *x)
{
	str_done(&x->held);
	str_done(&x->read);
	str_done(&x->from);
	*x = (struct masking){ .hits = x->hits };
}

static const uint32_t *masking_from(const struct masking *x)
{
	return (const uint32_t *)(const void *)x->from.data;
}

/* The characters of what is held, and where each of them begins; behind the last one, where what
 * cannot be read yet does. Most bytes are characters: these are not asked about one by one. */
static void masking_read(struct masking *x, const struct marker *k, enum spelling_how how)
{
	const struct span in = { x->held.data, x->held.len };
	size_t at = 0, n = 0, used;

	x->read.max = HELD_MAX;
	x->from.max = sizeof(uint32_t) * HELD_MAX;
	x->read.len = x->from.len = 0;
	str_room(&x->read, in.len);
	str_room(&x->from, (in.len + 1) * sizeof(uint32_t));
	uint32_t *from = (uint32_t *)(void *)x->from.data;

	for (; at < in.len; at += used) {
		unsigned char byte = (unsigned char)in.at[at];
		int c = (unsigned char)k->fold[byte];

		used = 1;
		if (k->is_special[byte])
			c = spelling_next(span_after(in, at), how, &used);
		if (c == SPELLING_MORE)
			break;
		x->read.data[n] = (char)c;
		from[n] = (uint32_t)at;
		n += c != SPELLING_NONE;
	}
	from[n] = (uint32_t)at;
	x->read.len = n;
}

/* What begins at `at` with that head: the length of one that is there, or 0; *may_be: there are
 * too few characters to say. */
static size_t match(struct masking *x, const struct marker *k, size_t at, uint16_t head,
                    bool *may_be)
{
	size_t left = x->read.len - at;

	for (size_t i = 0; i < k->marks.n; i++) {
		const struct mark *m = &k->marks.at[i];
		uint8_t sum[MARKS_SUM];

		if (m->head != head)
			continue;
		if (m->len > left) {
			*may_be = true;
			continue;
		}
		sum_of(k->marks.key, (struct span){ x->read.data + at, m->len }, sum);
		if (memcmp(sum, m->sum, sizeof sum) == 0) {
			x->name = k->marks.names[m->name];
			return m->len;
		}
	}
	return 0;
}

/* Stars for `n` characters, also for those that have gone on: found once. */
static void masking_star(struct masking *x, enum spelling_how how, size_t at, size_t n)
{
	uint32_t from = masking_from(x)[at], last = masking_from(x)[at + n - 1];
	size_t used;

	(void)spelling_next((struct span){ x->held.data + last, x->held.len - last }, how, &used);
	spelling_mask(x->held.data + from, last + used - from, how);
	x->hits++;
}

/* Masks all that is whole; from where on something may follow that makes it one. */
static size_t look_as(struct masking *x, const struct marker *k, enum spelling_how how)
{
	masking_read(x, k, how);
	const char *text = x->read.data;
	size_t n = x->read.len, open = n;
	uint64_t h = 0;
	bool is_first = true;

	if (n < MARKS_HEAD)
		return masking_from(x)[0];
	for (size_t i = 0; i + MARKS_HEAD <= n; i++) {
		bool may_be = false;

		h = is_first ? roll_first(&k->roll, text + i)
		             : roll_next(&k->roll, h, text + i - 1);
		is_first = false;
		uint16_t head = head_of(&k->roll, h);

		if (!(k->heads[head / 64] >> (head % 64) & 1))
			continue;
		size_t len = match(x, k, i, head, &may_be);

		if (len > 0) {
			masking_star(x, how, i, len);
			i += len - 1;
			is_first = true; /* what follows is another text */
		} else if (may_be && i < open) {
			open = i;
			x->is_likely = true;
		}
	}
	size_t tail = n - (MARKS_HEAD - 1);

	return masking_from(x)[open < tail ? open : tail];
}

static size_t look(struct masking *x, const struct marker *k)
{
	x->is_likely = false;
	size_t open = look_as(x, k, SPELLING_LITERAL);

	if (!spelling_is_coded((struct span){ x->held.data, x->held.len }))
		return open;
	size_t decoded = look_as(x, k, SPELLING_DECODED);

	return decoded < open ? decoded : open;
}

/* The first `n` bytes are nobody's concern any more. */
static void pass(struct masking *x, size_t n, struct str *out)
{
	if (n > x->passed)
		str_addn(out, x->held.data + x->passed, n - x->passed);
	x->passed = x->passed > n ? x->passed - n : 0;
	memmove(x->held.data, x->held.data + n, x->held.len - n);
	x->held.len -= n;
}

void masking_feed(struct masking *x, const struct marker *k, struct span in, struct str *out)
{
	if (!k || k->marks.n == 0) {
		masking_flush(x, NULL, out);
		masking_done(x);
		str_addn(out, in.at, in.len);
		return;
	}
	x->held.max = HELD_MAX;
	str_addn(&x->held, in.at, in.len);
	pass(x, look(x, k), out);
}

/* Looked at as if nothing followed: a value whose end could be the beginning of a code is whole
 * then. */
void masking_flush(struct masking *x, const struct marker *k, struct str *out)
{
	if (x->held.len == x->passed)
		return;
	if (k) {
		str_add(&x->held, "\n");
		(void)look(x, k);
		x->held.len--;
	}
	str_addn(out, x->held.data + x->passed, x->held.len - x->passed);
	x->passed = x->held.len;
}

uint32_t masking_wait_ms(const struct masking *x)
{
	size_t n = x->held.len - x->passed;

	return n == 0 ? 0 : x->is_likely ? MARKS_HELD_MS : MARKS_TAIL_MS;
}
