/*
 * verb_cache.c - the package cache: ls, gc, verify.
 */
#include "cli/table.h"
#include "cli/verbs.h"
#include "wire/escape.h"

#define TEXT_MAX (64u << 20)

struct cache_opts {
	struct verb_opts common;
	const char *max, *older_than;
};

static void add_entry(struct table *t, const json_t *row)
{
	char hits[24];

	snprintf(hits, sizeof hits, "%lld", (long long)number_of(row, "hits"));
	table_cell(t, text_of(row, "kind"));
	table_cell(t, text_of(row, "type"));
	table_cell(t, brief_bytes((uint64_t)number_of(row, "bytes")).text);
	table_cell(t, hits);
	table_cell(t, brief_age(number_of(row, "used_ms")).text);
	table_cell(t, text_of(row, "url"));
}

static int list(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "KIND", "TYPE", "BYTES", "HITS", "USED", "URL", NULL };
	const struct cache_opts *x = c->opts;
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *row;
	size_t i;

	if (fetch_list(&c->client, "/v1/cache", "entries", &all, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "entries", all), e);
	table_init(&t, heads);
	json_array_foreach(all, i, row) add_entry(&t, row);
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int gc(struct verb_call *c, struct err *e)
{
	const struct cache_opts *x = c->opts;
	AUTO(json_decrefp) json_t *body = json_object();
	AUTO(json_decrefp) json_t *answer = NULL;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	if (!x->max && !x->older_than)
		return err_new(e, ERR_INVALID, "--max or --older-than: how much may stay");
	if ((x->max && json_object_set_new(body, "max", json_string(x->max)) < 0) ||
	    (x->older_than &&
	     json_object_set_new(body, "older_than", json_string(x->older_than)) < 0))
		return err_new(e, ERR_INVALID, "--max, --older-than: not UTF-8");
	if (client_call(&c->client, "POST", "/v1/cache/gc", json_incref(body), &answer, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(answer), e);
	str_addf(&out, "removed %lld, ", (long long)number_of(answer, "removed"));
	str_addf(&out, "%s freed, ", brief_bytes((uint64_t)number_of(answer, "freed_bytes")).text);
	str_addf(&out, "%s left\n", brief_bytes((uint64_t)number_of(answer, "bytes")).text);
	return print_text(&out, e);
}

/* 1 when something was bad: it is gone now. */
static int verify(struct verb_call *c, struct err *e)
{
	const struct cache_opts *x = c->opts;
	AUTO(json_decrefp) json_t *answer = NULL;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *row;
	size_t i;

	if (client_call(&c->client, "POST", "/v1/cache/verify", json_object(), &answer, e) < 0)
		return -1;
	const json_t *bad = json_object_get(answer, "bad");
	int status = json_array_size(bad) > 0 ? EXIT_REFUSED : 0;

	if (x->common.is_json)
		return print_json(json_incref(answer), e) < 0 ? -1 : status;
	json_array_foreach(bad, i, row)
	    str_addf(&out, "bad, removed: %s %s\n", text_of(row, "sha256"), text_of(row, "url"));
	str_addf(&out, "checked %lld, bad %zu\n", (long long)number_of(answer, "checked"),
	         json_array_size(bad));
	return print_text(&out, e) < 0 ? -1 : status;
}

static int cache_run(struct verb_call *c, struct err *e)
{
	static const struct {
		const char *name;
		int (*run)(struct verb_call *c, struct err *e);
	} actions[] = { { "ls", list }, { "gc", gc }, { "verify", verify } };

	for (size_t i = 0; i < COUNT(actions); i++)
		if (strcmp(actions[i].name, c->words.at[0]) == 0)
			return actions[i].run(c, e);
	return err_new(e, ERR_INVALID, "caisson cache %s", c->verb->usage);
}

/* clang-format off */
static const struct flag cache_flags[] = {
	{ '\0', FLAG_TEXT, "max",        offsetof(struct cache_opts, max), "SIZE", "gc: remove the least recently used until this much is left", NULL },
	{ '\0', FLAG_TEXT, "older-than", offsetof(struct cache_opts, older_than), "DURATION", "gc: remove what was not used for this long", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_cache = {
	.name = "cache",
	.usage = "ls | gc [--max SIZE] [--older-than DURATION] | verify",
	.does = "the package cache: what is in it, less of it, is it whole",
	.more =
	    "Packages that sandboxes fetch from the registries of presets are kept and shared by "
	    "all of them. verify reads everything again; what is not what it should be is named "
	    "and removed, and the exit status is 1.",
	.flags = cache_flags,
	.n_flags = COUNT(cache_flags),
	.words = "[ls gc verify]",
	.opts_size = sizeof(struct cache_opts),
	.words_min = 1,
	.words_max = 1,
	.run = cache_run
};
