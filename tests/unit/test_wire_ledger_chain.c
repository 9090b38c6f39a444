#include "wire/ledger_chain.h"

#include "base/vec.h"
#include "test.h"

/* A ledger in memory, made as the writer makes one. */
struct book {
	const struct ledger_key *key;
	const char *id;
	struct ledger_heads heads;
	VEC(char *) lines;
	char prev[LEDGER_HASH_SIZE];
	uint64_t seq;
};

static struct ledger_key key;

static void book_begin(struct book *b, const char *id)
{
	struct err e = { 0 };

	*b = (struct book){ .key = &key, .id = id, .prev = LEDGER_ZERO };
	if (!key.pkey)
		CHECK_INT(ledger_key_make(&key, &e), 0);
}

static void book_end(struct book *b)
{
	for (size_t i = 0; i < b->lines.len; i++)
		free(b->lines.at[i]);
	vec_done(&b->lines);
	ledger_heads_clear(&b->heads);
}

static void put(struct book *b, enum ledger_kind kind, const char *sandbox, const char *data)
{
	AUTO(str_done) struct str line = { .max = LEDGER_LINE_MAX };
	struct ledger_event ev = { kind, "t", sandbox, "", "", "", "", data };
	struct ledger_place at = { .seq = ++b->seq, .ts_ms = 1000, .prev = b->prev };
	struct ledger_head *h = sandbox[0] ? ledger_heads_take(&b->heads, span_of(sandbox)) : NULL;
	char hash[LEDGER_HASH_SIZE];

	if (h) {
		at.link_seq = ++h->seq;
		at.link_prev = h->hash;
	}
	CHECK(ledger_print(&line, &ev, &at, hash));
	memcpy(b->prev, hash, sizeof hash);
	if (h)
		memcpy(h->hash, hash, sizeof hash);
	line.data[line.len - 1] = '\0';
	vec_push(&b->lines, mem_strdup(line.data));
}

static void put_seal(struct book *b, enum ledger_kind kind)
{
	struct ledger_seal s = { ledger_kind_name(kind), b->id, b->prev, b->seq + 1, 1000 };
	char sig[LEDGER_SIG_SIZE], data[512];
	struct err e = { 0 };

	CHECK_INT(ledger_sign(b->key, &s, sig, &e), 0);
	snprintf(data, sizeof data, "{\"key\":\"%s\",\"ledger\":\"%s\",\"sig\":\"%s\"}",
	         b->key->name, b->id, sig);
	put(b, kind, "", data);
}

/* 1 segment, 2..9 of two sandboxes, 10 checkpoint, 11..14, 15 checkpoint */
static void fill(struct book *b, const char *word)
{
	char data[64];

	put_seal(b, LEDGER_SEGMENT);
	for (int i = 0; i < 12; i++) {
		snprintf(data, sizeof data, "{\"%s\":%d}", word, i);
		put(b, LEDGER_EXEC_STARTED, i % 2 ? "sb_b" : "sb_a", data);
		if (i == 7 || i == 11)
			put_seal(b, LEDGER_CHECKPOINT);
	}
}

struct seen {
	struct ledger_finding all[64];
	size_t n;
	struct ledger_chain chain;
};

static void read_all(struct seen *s, const struct book *b)
{
	*s = (struct seen){ .chain.key = &key };
	for (size_t i = 0; i < b->lines.len; i++) {
		struct ledger_finding f[LEDGER_FINDINGS_MAX];
		size_t n = ledger_chain_feed(&s->chain, span_of(b->lines.at[i]), f);

		for (size_t k = 0; k < n && s->n < COUNT(s->all); k++)
			s->all[s->n++] = f[k];
	}
	ledger_chain_done(&s->chain);
}

static void check_found(const struct seen *s, const struct ledger_finding *want)
{
	for (size_t i = 0; i < s->n; i++)
		printf("# %s at %llu, %llu to %llu\n", ledger_fault_name(s->all[i].fault),
		       (unsigned long long)s->all[i].seq, (unsigned long long)s->all[i].from,
		       (unsigned long long)s->all[i].to);
	size_t n = 0;

	for (; want[n].fault; n++) {
		CHECK(n < s->n);
		CHECK_STR(ledger_fault_name(s->all[n].fault), ledger_fault_name(want[n].fault));
		CHECK_INT((long long)s->all[n].seq, (long long)want[n].seq);
		CHECK_INT((long long)s->all[n].from, (long long)want[n].from);
	}
	CHECK_INT((long long)s->n, (long long)n);
}

/* ---- what is done to it --------------------------------------------------------------- */

static size_t at(uint64_t seq)
{
	return (size_t)seq - 1;
}

static void nothing(struct book *b)
{
	(void)b;
}

static void flip(struct book *b)
{
	strstr(b->lines.at[at(5)], "\"w\":")[4] ^= 1;
}

static void flip_seal(struct book *b)
{
	char *sig = strstr(b->lines.at[at(10)], "\"sig\":\"") + 12;

	*sig = *sig == 'A' ? 'B' : 'A';
}

static void drop_at(struct book *b, uint64_t seq)
{
	free(b->lines.at[at(seq)]);
	memmove(&b->lines.at[at(seq)], &b->lines.at[at(seq) + 1],
	        (b->lines.len - seq) * sizeof *b->lines.at);
	b->lines.len--;
}

static void drop(struct book *b)
{
	drop_at(b, 6);
}

static void drop_two(struct book *b)
{
	drop_at(b, 6);
	drop_at(b, 6);
}

static void swap(struct book *b)
{
	char *t = b->lines.at[at(5)];

	b->lines.at[at(5)] = b->lines.at[at(6)];
	b->lines.at[at(6)] = t;
}

static void replay(struct book *b)
{
	free(b->lines.at[at(8)]);
	b->lines.at[at(8)] = mem_strdup(b->lines.at[at(4)]);
}

static void repeat(struct book *b)
{
	vec_push(&b->lines, mem_strdup(b->lines.at[at(4)]));
}

static void garbage(struct book *b)
{
	free(b->lines.at[at(4)]);
	b->lines.at[at(4)] = mem_strdup("not a record");
}

/* The same numbers, of another ledger: its first or last lines, or all of it. */
static void graft(struct book *b)
{
	struct book other;

	book_begin(&other, "00000000000000000000000000000002");
	fill(&other, "x");
	for (uint64_t seq = 11; seq <= 15; seq++) {
		free(b->lines.at[at(seq)]);
		b->lines.at[at(seq)] = mem_strdup(other.lines.at[at(seq)]);
	}
	book_end(&other);
}

/* By somebody who knows the format and has no key: all hashes are right again. */
static void rewrite(struct book *b)
{
	struct book made;
	char *old = b->lines.at[at(10)];

	book_begin(&made, b->id);
	put_seal(&made, LEDGER_SEGMENT);
	for (int i = 0; i < 8; i++)
		put(&made, LEDGER_EXEC_STARTED, "", "{\"lie\":1}");
	const char *data = strstr(old, "\"data\":") + 7;
	AUTO(freep) char *copy = mem_strdup(data);

	*strstr(copy, ",\"prev\"") = '\0';
	put(&made, LEDGER_CHECKPOINT, "", copy);
	book_end(b);
	*b = made;
}

static void other_key(struct book *b)
{
	struct ledger_key theirs = { 0 };
	struct book made;
	struct err e = { 0 };

	CHECK_INT(ledger_key_make(&theirs, &e), 0);
	book_begin(&made, b->id);
	made.key = &theirs;
	put_seal(&made, LEDGER_SEGMENT);
	book_end(b);
	*b = made;
	b->key = &key;
	ledger_key_done(&theirs);
}

TEST(tampering_is_found_and_located)
{
#define F(fault, seq, from)                                                                        \
	{                                                                                          \
		LEDGER_FAULT_##fault, seq, from, 0                                                 \
	}
	static const struct {
		const char *name;
		void (*tamper)(struct book *b);
		struct ledger_finding want[4];
	} rows[] = {
		{ "nothing", nothing, { { 0 } } },
		{ "flip", flip, { F(CHANGED, 5, 0) } },
		{ "flip a signature", flip_seal, { F(CHANGED, 10, 0) } },
		{ "drop", drop, { F(MISSING, 6, 6) } },
		{ "drop two", drop_two, { F(MISSING, 7, 6) } },
		{ "swap", swap, { F(MISSING, 5, 5), F(ORDER, 5, 0) } },
		{ "replay", replay, { F(ORDER, 4, 0), F(MISSING, 8, 8) } },
		{ "repeat at the end", repeat, { F(ORDER, 4, 0) } },
		{ "garbage", garbage, { F(FORM, 4, 0) } },
		{ "splice from another ledger", graft, { F(LINK, 11, 0), F(FOREIGN, 15, 11) } },
		{ "rewrite without the key", rewrite, { F(SIGNATURE, 10, 2) } },
		{ "another key", other_key, { F(FOREIGN, 1, 1) } },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct book b;
		struct seen s;

		printf("# %s\n", rows[i].name);
		book_begin(&b, "00000000000000000000000000000001");
		fill(&b, "w");
		rows[i].tamper(&b);
		read_all(&s, &b);
		check_found(&s, rows[i].want);
		book_end(&b);
	}
	ledger_key_done(&key);
}

/* Every bit of every line: no change goes unseen. */
TEST(no_bit_can_be_flipped_unseen)
{
	struct book b;
	struct seen s;

	book_begin(&b, "00000000000000000000000000000001");
	fill(&b, "w");
	for (size_t line = 0; line < b.lines.len; line++)
		for (size_t i = 0, n = strlen(b.lines.at[line]); i < n; i += 7) {
			char was = b.lines.at[line][i];

			b.lines.at[line][i] = (char)(was ^ 1 << (i + line) % 7);
			if (!b.lines.at[line][i])
				b.lines.at[line][i] = 1;
			read_all(&s, &b);
			CHECK(s.n > 0);
			CHECK(s.all[0].seq >= line && s.all[0].seq <= line + 100);
			b.lines.at[line][i] = was;
		}
	read_all(&s, &b);
	CHECK_INT((long long)s.n, 0);
	book_end(&b);
	ledger_key_done(&key);
}

TEST(a_signed_head_tells_of_what_was_cut_off)
{
	struct ledger_finding f[LEDGER_FINDINGS_MAX];
	struct ledger_chain c = { .key = &key };
	struct book b;

	book_begin(&b, "00000000000000000000000000000001");
	fill(&b, "w");
	for (size_t i = 0; i < 12; i++)
		CHECK_INT((long long)ledger_chain_feed(&c, span_of(b.lines.at[i]), f), 0);
	struct ledger_finding cut = ledger_chain_head(&c, span_of(b.lines.at[at(15)]));

	CHECK_INT(cut.fault, LEDGER_FAULT_TRUNCATED);
	CHECK_INT((long long)cut.from, 13);
	CHECK_INT((long long)cut.to, 15);
	CHECK_INT(ledger_chain_head(&c, span_of(b.lines.at[at(10)])).fault, LEDGER_SOUND);
	CHECK_INT(ledger_chain_head(&c, span_of("{}")).fault, LEDGER_FAULT_FORM);
	CHECK_INT(ledger_chain_start(&c).fault, LEDGER_SOUND);
	ledger_chain_done(&c);
	book_end(&b);
	ledger_key_done(&key);
}

TEST(what_the_ledger_removed_itself_is_not_missing)
{
	struct ledger_finding f[LEDGER_FINDINGS_MAX];
	struct book b;

	book_begin(&b, "00000000000000000000000000000001");
	fill(&b, "w");
	put_seal(&b, LEDGER_SEGMENT);
	put(&b, LEDGER_HEADS, "", "{}");
	put(&b, LEDGER_PRUNED, "", "{\"until\":15}");
	put_seal(&b, LEDGER_CHECKPOINT);
	for (int has_word = 0; has_word < 2; has_word++) {
		struct ledger_chain c = { .key = &key };

		for (size_t i = at(16); i < b.lines.len; i++)
			if (has_word || i != at(18))
				(void)!ledger_chain_feed(&c, span_of(b.lines.at[i]), f);
		CHECK_INT(ledger_chain_start(&c).fault,
		          has_word ? LEDGER_SOUND : LEDGER_FAULT_MISSING);
		ledger_chain_done(&c);
	}
	book_end(&b);
	ledger_key_done(&key);
}

TEST(heads_are_found_again_whoever_was_dropped)
{
	struct ledger_heads h = { 0 };
	char name[32];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "sb_%d", i);
		ledger_heads_take(&h, span_of(name))->seq = (uint64_t)i + 1;
	}
	for (int i = 0; i < 1000; i += 3) {
		snprintf(name, sizeof name, "sb_%d", i);
		ledger_heads_drop(&h, span_of(name));
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "sb_%d", i);
		const struct ledger_head *head = ledger_heads_find(&h, span_of(name));

		CHECK(i % 3 == 0 ? !head : head && head->seq == (uint64_t)i + 1);
	}
	ledger_heads_clear(&h);
	CHECK(!ledger_heads_find(&h, span_of("sb_1")));
}

TEST(keys_are_read_as_they_are_written)
{
	struct ledger_key a = { 0 }, b = { 0 };
	AUTO(str_done) struct str own = { .max = LEDGER_PEM_MAX };
	AUTO(str_done) struct str public = { .max = LEDGER_PEM_MAX };
	struct ledger_seal s = { "ledger.checkpoint", "1", LEDGER_ZERO, 1, 2 };
	char sig[LEDGER_SIG_SIZE];
	struct err e = { 0 };

	CHECK_INT(ledger_key_make(&a, &e), 0);
	CHECK_INT(ledger_key_print(&a, true, &own, &e), 0);
	CHECK_INT(ledger_key_print(&a, false, &public, &e), 0);
	CHECK(strstr(str_text(&public), "BEGIN PUBLIC KEY"));
	CHECK_INT(ledger_sign(&a, &s, sig, &e), 0);
	CHECK_INT(ledger_key_read(&b, span_of(str_text(&public)), false, &e), 0);
	CHECK_STR(a.name, b.name);
	CHECK(ledger_sign_holds(&b, &s, span_of(sig)));
	s.seq++;
	CHECK(!ledger_sign_holds(&b, &s, span_of(sig)));
	CHECK(!ledger_sign_holds(&b, &s, span_of("AAAA")));
	ledger_key_done(&b);
	CHECK_INT(ledger_key_read(&b, span_of(str_text(&own)), true, &e), 0);
	CHECK_STR(a.name, b.name);
	ledger_key_done(&b);
	CHECK_INT(ledger_key_read(&b, span_of("no key"), false, &e), -1);
	CHECK_INT(ledger_key_read(&b, span_of(str_text(&own)), false, &e), -1);
	ledger_key_done(&a);
}
