/*
 * verify_print.c - what was found in a ledger, in sentences or as JSON.
 */
#include <jansson.h>

#include "ledger/verify.h"
#include "wire/ledger_text.h"

static const char *const sentences[] = {
	[LEDGER_SOUND] = "",
	[LEDGER_FAULT_FORM] = "is no record",
	[LEDGER_FAULT_CHANGED] = "was changed",
	[LEDGER_FAULT_MISSING] = "records before it are missing",
	[LEDGER_FAULT_ORDER] = "stands where it does not belong: moved, or a second time",
	[LEDGER_FAULT_LINK] = "does not follow the record before it",
	[LEDGER_FAULT_SANDBOX] = "does not follow the record before it of its sandbox",
	[LEDGER_FAULT_SIGNATURE] =
	    "the signature is wrong: something since the one before is not as it was",
	[LEDGER_FAULT_FOREIGN] = "signed by another key, or for another ledger",
	[LEDGER_FAULT_TORN] =
	    "the last line has no end; the next start of the daemon puts it aside",
	[LEDGER_FAULT_TRUNCATED] = "the end was cut off",
	[LEDGER_FAULT_SEGMENT] = "the file does not begin with the record that it is named after",
};
_Static_assert(COUNT(sentences) == LEDGER_FAULTS, "a fault has no sentence");

static void print_found(const struct verify_found *f, struct str *out)
{
	const struct ledger_finding *w = &f->what;

	str_addf(out, "%s", f->file[0] ? f->file : "ledger");
	if (f->line)
		str_addf(out, ":%llu (byte %llu)", (unsigned long long)f->line,
		         (unsigned long long)f->offset);
	str_add(out, ": ");
	if (w->seq)
		str_addf(out, "record %llu: ", (unsigned long long)w->seq);
	str_addf(out, "%s: %s", ledger_fault_name(w->fault), sentences[w->fault]);
	if (w->from)
		str_addf(out, " (%llu to %llu)", (unsigned long long)w->from,
		         (unsigned long long)w->to);
	str_add(out, "\n");
}

void verify_print_json(const struct verify_seen *s, struct str *out)
{
	json_t *found = json_array();

	for (size_t i = 0; i < s->n_found && i < VERIFY_FOUND_MAX; i++) {
		const struct verify_found *f = &s->found[i];

		json_array_append_new(
		    found,
		    json_pack("{ss,ss,sI,sI,sI,sI,sI}", "fault", ledger_fault_name(f->what.fault),
		              "file", f->file, "line", (json_int_t)f->line, "offset",
		              (json_int_t)f->offset, "record", (json_int_t)f->what.seq, "from",
		              (json_int_t)f->what.from, "to", (json_int_t)f->what.to));
	}
	json_t *o = json_pack("{sb,sI,sI,sI,sI,sI,sI,sI,ss,ss,ss,so}", "sound", s->n_found == 0,
	                      "records", (json_int_t)s->n, "first", (json_int_t)s->first, "last",
	                      (json_int_t)s->last, "files", (json_int_t)s->n_files, "signatures",
	                      (json_int_t)s->n_signatures, "unsigned", (json_int_t)s->n_unsigned,
	                      "removed_until", (json_int_t)s->pruned_until, "hash", s->hash,
	                      "ledger", s->ledger, "key", s->key, "findings", found);

	ledger_text(o, out);
	str_add(out, "\n");
	json_decref(o);
}

void verify_print(const struct verify_seen *s, bool is_own_key, struct str *out)
{
	for (size_t i = 0; i < s->n_found && i < VERIFY_FOUND_MAX; i++)
		print_found(&s->found[i], out);
	if (s->n_found > VERIFY_FOUND_MAX)
		str_addf(out, "and %zu more\n", s->n_found - VERIFY_FOUND_MAX);
	str_addf(out, "%s: %llu records, %llu to %llu, in %zu files; %llu signatures by key %s%s",
	         s->n_found ? "NOT SOUND" : "sound", (unsigned long long)s->n,
	         (unsigned long long)s->first, (unsigned long long)s->last, s->n_files,
	         (unsigned long long)s->n_signatures, s->key,
	         is_own_key ? " (of the ledger's own folder: --key names one that you trust)" : "");
	if (s->n_unsigned)
		str_addf(out, "; the last %llu are not signed yet",
		         (unsigned long long)s->n_unsigned);
	str_addf(out, "\nlast: %llu:%s\n", (unsigned long long)s->last, s->hash);
}
