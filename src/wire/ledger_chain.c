#include "wire/ledger_chain.h"

#include <jansson.h>

static const char *const names[] = {
	[LEDGER_SOUND] = "sound",
	[LEDGER_FAULT_FORM] = "form",
	[LEDGER_FAULT_CHANGED] = "changed",
	[LEDGER_FAULT_MISSING] = "missing",
	[LEDGER_FAULT_ORDER] = "order",
	[LEDGER_FAULT_LINK] = "link",
	[LEDGER_FAULT_SANDBOX] = "sandbox",
	[LEDGER_FAULT_SIGNATURE] = "signature",
	[LEDGER_FAULT_FOREIGN] = "foreign",
	[LEDGER_FAULT_TORN] = "torn",
	[LEDGER_FAULT_TRUNCATED] = "truncated",
	[LEDGER_FAULT_SEGMENT] = "segment",
};
_Static_assert(COUNT(names) == LEDGER_FAULTS, "a fault has no name");

const char *ledger_fault_name(enum ledger_fault fault)
{
	return names[fault];
}

/* What one line is found to be; they are few. */
struct findings {
	struct ledger_finding *at;
	size_t n;
};

static void add(struct findings *f, enum ledger_fault fault, uint64_t seq)
{
	if (f->n < LEDGER_FINDINGS_MAX)
		f->at[f->n++] = (struct ledger_finding){ .fault = fault, .seq = seq };
}

static void add_range(struct findings *f, enum ledger_fault fault, uint64_t from, uint64_t to)
{
	add(f, fault, to);
	f->at[f->n - 1].from = from;
	f->at[f->n - 1].to = to;
}

static void keep(char *to, size_t size, struct span text)
{
	snprintf(to, size, "%.*s", (int)text.len, text.at);
}

/* ---- signatures ----------------------------------------------------------------------- */

static enum ledger_fault check_seal(struct ledger_chain *c, const struct ledger_line *l,
                                    const json_t *data)
{
	const char *ledger = json_string_value(json_object_get(data, "ledger"));
	const char *key = json_string_value(json_object_get(data, "key"));
	const char *sig = json_string_value(json_object_get(data, "sig"));
	char kind[LEDGER_KIND_SIZE], prev[LEDGER_HASH_SIZE];

	if (!ledger || !key || !sig || strlen(ledger) >= sizeof c->ledger)
		return LEDGER_FAULT_SIGNATURE;
	if (!c->ledger[0])
		keep(c->ledger, sizeof c->ledger, span_of(ledger));
	if (strcmp(ledger, c->ledger) != 0 || (c->key && strcmp(key, c->key->name) != 0))
		return LEDGER_FAULT_FOREIGN;
	keep(kind, sizeof kind, l->kind);
	keep(prev, sizeof prev, l->prev);
	const struct ledger_seal seal = {
		.kind = kind, .ledger = ledger, .prev = prev, .seq = l->seq, .ts_ms = l->ts_ms
	};

	return !c->key || ledger_sign_holds(c->key, &seal, span_of(sig)) ? LEDGER_SOUND
	                                                                 : LEDGER_FAULT_SIGNATURE;
}

static void take_heads(struct ledger_chain *c, const json_t *data)
{
	const char *sandbox;
	json_t *pair;

	json_object_foreach((json_t *)json_object_get(data, "heads"), sandbox, pair)
	{
		const char *hash = json_string_value(json_array_get(pair, 1));

		if (!hash || strlen(hash) != LEDGER_HASH_SIZE - 1 || !sandbox[0] ||
		    strlen(sandbox) >= LEDGER_NAME_SIZE)
			continue;
		struct ledger_head *h = ledger_heads_take(&c->heads, span_of(sandbox));

		if (h->seq == 0) { /* the file before, where it was, has the last word */
			h->seq = (uint64_t)json_integer_value(json_array_get(pair, 0));
			keep(h->hash, sizeof h->hash, span_of(hash));
		}
	}
}

/* A writer that found its signed head at odds with the records has said so, and what it found is
 * in no line: repeat it, unless the gap that is left shows the same. */
static void take_damaged(const json_t *data, uint64_t seq, struct findings *f)
{
	const char *file = json_string_value(json_object_get(data, "file"));
	const char *fault = json_string_value(json_object_get(data, "fault"));
	uint64_t from = (uint64_t)json_integer_value(json_object_get(data, "from"));
	uint64_t to = (uint64_t)json_integer_value(json_object_get(data, "to"));

	if (!file || !fault || strcmp(file, "head") != 0 || f->n > 0)
		return;
	for (int i = LEDGER_SOUND + 1; i < LEDGER_FAULTS; i++)
		if (strcmp(fault, names[i]) == 0) {
			add_range(f, (enum ledger_fault)i, from, to);
			f->at[f->n - 1].seq = seq;
		}
}

/* The records of the ledger itself; few, so that they can be read at leisure. */
static void take_own(struct ledger_chain *c, const struct ledger_line *l, enum ledger_kind kind,
                     struct findings *f)
{
	json_t *data = json_loadb(l->data.at, l->data.len, 0, NULL);
	enum ledger_fault fault = LEDGER_SOUND;

	if (kind == LEDGER_SEGMENT && c->is_adrift) { /* the records behind it say where we are */
		ledger_heads_clear(&c->heads);
		c->is_adrift = false;
	}
	if (kind == LEDGER_HEADS)
		take_heads(c, data);
	if (kind == LEDGER_PRUNED)
		c->pruned_until = (uint64_t)json_integer_value(json_object_get(data, "until"));
	if (kind == LEDGER_DAMAGED)
		take_damaged(data, l->seq, f);
	if (kind == LEDGER_SEGMENT || kind == LEDGER_CHECKPOINT) {
		fault = check_seal(c, l, data);
		if (fault == LEDGER_SOUND) {
			c->n_signatures++;
			c->signed_seq = l->seq;
		} else {
			add_range(f, fault, c->signed_seq + 1, l->seq);
		}
	}
	json_decref(data);
}

/* ---- links ---------------------------------------------------------------------------- */

static void follow_sandbox(struct ledger_chain *c, const struct ledger_line *l, bool is_checked,
                           struct findings *f)
{
	struct ledger_head *h = ledger_heads_take(&c->heads, l->sandbox);

	if (is_checked && !c->is_adrift &&
	    (l->link_seq != h->seq + 1 || !span_is(l->link_prev, h->hash)))
		add(f, LEDGER_FAULT_SANDBOX, l->seq);
	h->seq = l->link_seq;
	keep(h->hash, sizeof h->hash, l->hash);
	if (span_is(l->kind, ledger_kind_name(LEDGER_SANDBOX_GONE)))
		ledger_heads_drop(&c->heads, l->sandbox);
}

/* Returns false when the line is not where it belongs, and the chain goes on without it. */
static bool follow(struct ledger_chain *c, const struct ledger_line *l, struct findings *f)
{
	if (c->seq == 0) {
		c->first = l->seq;
		if (l->seq == 1 && !span_is(l->prev, LEDGER_ZERO))
			add(f, LEDGER_FAULT_LINK, l->seq);
		return true;
	}
	if (l->seq <= c->seq) {
		add(f, LEDGER_FAULT_ORDER, l->seq);
		c->is_adrift = true;
		return false;
	}
	if (l->seq > c->seq + 1 + (c->is_blind ? 1 : 0)) {
		add_range(f, LEDGER_FAULT_MISSING, c->seq + 1, l->seq - 1);
		c->is_adrift = true;
	} else if (!c->is_blind && !span_is(l->prev, c->hash)) {
		add(f, LEDGER_FAULT_LINK, l->seq);
		c->is_adrift = true;
	}
	return true;
}

size_t ledger_chain_feed(struct ledger_chain *c, struct span line,
                         struct ledger_finding found[LEDGER_FINDINGS_MAX])
{
	struct findings f = { found, 0 };
	struct ledger_line l;

	if (ledger_parse(line, &l) < 0) {
		add(&f, LEDGER_FAULT_FORM, c->seq + 1);
		c->is_blind = c->is_adrift = true;
		return f.n;
	}
	bool is_changed = !ledger_hash_holds(line, &l);

	if (is_changed)
		add(&f, LEDGER_FAULT_CHANGED, l.seq);
	if (!follow(c, &l, &f))
		return f.n;
	bool is_linked = f.n == 0;

	c->is_blind = false;
	c->n++;
	c->seq = l.seq;
	keep(c->hash, sizeof c->hash, l.hash);
	if (l.link_seq)
		follow_sandbox(c, &l, is_linked, &f);
	enum ledger_kind kind = l.kind.at[0] == 'l' ? ledger_kind_of(l.kind) : LEDGER_KINDS;
	if (kind != LEDGER_KINDS && ledger_is_own(kind) && !is_changed)
		take_own(c, &l, kind, &f);
	return f.n;
}

struct ledger_finding ledger_chain_head(struct ledger_chain *c, struct span line)
{
	struct ledger_finding none = { 0 }, bad = { .fault = LEDGER_FAULT_FOREIGN };
	struct ledger_line l;

	if (ledger_parse(line, &l) < 0 || !ledger_hash_holds(line, &l))
		return (struct ledger_finding){ .fault = LEDGER_FAULT_FORM };
	json_t *data = json_loadb(l.data.at, l.data.len, 0, NULL);
	enum ledger_fault fault = check_seal(c, &l, data);

	json_decref(data);
	bad.seq = l.seq;
	bad.fault = fault;
	if (fault != LEDGER_SOUND)
		return bad;
	if (l.seq > c->seq)
		return (struct ledger_finding){ .fault = LEDGER_FAULT_TRUNCATED,
			                        .seq = l.seq,
			                        .from = c->seq + 1,
			                        .to = l.seq };
	return none;
}

struct ledger_finding ledger_chain_start(const struct ledger_chain *c)
{
	uint64_t from = c->pruned_until + 1;

	if (c->first <= from)
		return (struct ledger_finding){ 0 };
	return (struct ledger_finding){
		.fault = LEDGER_FAULT_MISSING, .seq = c->first, .from = from, .to = c->first - 1
	};
}

void ledger_chain_done(struct ledger_chain *c)
{
	ledger_heads_clear(&c->heads);
}
