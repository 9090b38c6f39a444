/*
 * fuzz_ledger.c - whatever stands in a file of the ledger: a line that is read, and whose hash
 * holds, is one that we print, byte for byte; a chain of any lines can be checked; what others get
 * of a line has no byte that ends one.
 */
#include <assert.h>

#include "wire/ledger_chain.h"
#include "wire/ledger_export.h"
#include "wire/ledger_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *copy(struct span s)
{
	char *text = mem_alloc(s.len + 1);

	if (s.len > 0)
		memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	return text;
}

static void print_again(struct span line, const struct ledger_line *l)
{
	AUTO(str_done) struct str out = { .max = 2ul * LEDGER_LINE_MAX };
	AUTO(freep) char *tenant = copy(l->tenant);
	AUTO(freep) char *sandbox = copy(l->sandbox);
	AUTO(freep) char *workspace = copy(l->workspace);
	AUTO(freep) char *process = copy(l->process);
	AUTO(freep) char *actor = copy(l->actor);
	AUTO(freep) char *src = copy(l->src);
	AUTO(freep) char *body = copy(l->data);
	AUTO(freep) char *prev = copy(l->prev);
	AUTO(freep) char *link_prev = copy(l->link_prev);
	struct ledger_event ev = {
		ledger_kind_of(l->kind), tenant, sandbox, workspace, process, actor, src, body
	};
	struct ledger_place at = { l->seq, l->ts_ms, prev, l->link_seq, link_prev };
	char hash[LEDGER_HASH_SIZE];

	if (ev.kind == LEDGER_KINDS)
		return;
	bool is_printed = ledger_print(&out, &ev, &at, hash);

	assert(is_printed && out.len == line.len + 1);
	assert(memcmp(out.data, line.at, l->hashed) == 0);
}

static void export(json_t *o)
{
	AUTO(str_done) struct str out = { .max = 16ul * LEDGER_LINE_MAX };

	if (!o)
		return;
	ledger_text(o, &out);
	for (size_t i = 0; i < out.len; i++)
		assert(out.data[i] >= ' ' && out.data[i] <= '~');
	json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ledger_chain c = { 0 };
	const char *at = (const char *)data, *end = at + size;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct span line = { at, (size_t)((newline ? newline : end) - at) };
		struct ledger_finding f[LEDGER_FINDINGS_MAX];
		struct ledger_line l;

		if (ledger_parse(line, &l) == 0) {
			print_again(line, &l);
			export(ledger_ocsf(line));
			export(ledger_otlp(line));
		}
		size_t n = ledger_chain_feed(&c, line, f);

		assert(n <= LEDGER_FINDINGS_MAX);
		at += line.len + 1;
	}
	ledger_chain_done(&c);
	return 0;
}
