/*
 * verb_fsck.c - fsck: is the store of workspaces whole?
 */
#include "cli/table.h"
#include "cli/verbs.h"
#include "wire/escape.h"

#define TEXT_MAX (64u << 20)

struct fsck {
	struct verb_opts common;
	bool is_repair;
};

static void add_finding(struct table *t, const json_t *row, bool is_repair)
{
	bool is_mended = json_is_true(json_object_get(row, "mended"));

	table_cell(t, text_of(row, "kind"));
	table_cell(t, text_of(row, "id"));
	table_cell(t, is_mended ? "mended" : is_repair ? "not mended" : "");
	table_cell(t, text_of(row, "problem"));
}

/* 1 while something is not as it should be. */
static int fsck_run(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "KIND", "ID", "", "PROBLEM", NULL };
	const struct fsck *x = c->opts;
	AUTO(json_decrefp) json_t *answer = NULL;
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *row;
	size_t i;

	c->client.doing = "reading everything again";
	if (client_call(&c->client, "POST", "/v1/fsck", json_pack("{sb}", "repair", x->is_repair),
	                &answer, e) < 0)
		return -1;
	int64_t n_found = number_of(answer, "found"), n_mended = number_of(answer, "mended");
	int status = n_found > n_mended ? EXIT_REFUSED : 0;

	if (x->common.is_json)
		return print_json(json_incref(answer), e) < 0 ? -1 : status;
	table_init(&t, heads);
	json_array_foreach(json_object_get(answer, "findings"), i, row)
	    add_finding(&t, row, x->is_repair);
	if (n_found > 0)
		table_print(&t, terminal_width(), &out);
	str_addf(&out, "%lld workspaces, %lld points, %lld trees: %lld found, %lld mended\n",
	         (long long)number_of(answer, "workspaces"), (long long)number_of(answer, "points"),
	         (long long)number_of(answer, "trees"), (long long)n_found, (long long)n_mended);
	return print_text(&out, e) < 0 ? -1 : status;
}

/* clang-format off */
static const struct flag flags[] = {
	{ '\0', FLAG_SWITCH, "repair", offsetof(struct fsck, is_repair), NULL, "mend what can be mended without a loss", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_fsck = {
	.name = "fsck",
	.usage = "[--repair] [--json]",
	.does = "check every workspace, point, layer and row of the daemon's store",
	.more =
	    "All that points keep is read again. The exit status is 0 when nothing was found, or "
	    "all of it is mended, and 1 when something is left. A workspace that is in use is "
	    "looked at and not touched.",
	.flags = flags,
	.n_flags = COUNT(flags),
	.opts_size = sizeof(struct fsck),
	.run = fsck_run
};
