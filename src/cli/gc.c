#include "cli/gc.h"

#include <unistd.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "wire/escape.h"

#define TEXT_MAX (64u << 20)

static bool is_json, is_dry;
static int left;

/* ---- what dead sandboxes left -------------------------------------------------------- */

static void found(const char *what, bool is_gone)
{
	left += !is_gone;
	if (!is_json)
		printf("%s: %s\n", what, is_gone ? "removed" : is_dry ? "left over" : "resists");
}

/* ---- the store of workspaces --------------------------------------------------------- */

/* Nobody is started for it: where no daemon runs, nothing is added either. */
static bool has_daemon(struct client *c)
{
	struct err e = { 0 };
	int fd = address_find(&c->address, &e) < 0 ? -1 : address_connect(&c->address, &e);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Those that keep nothing on disk are not worth a line. */
static void add_decision(struct table *t, const json_t *row)
{
	if (number_of(row, "bytes") == 0 && strcmp(text_of(row, "action"), "keep") == 0)
		return;
	table_cell(t, text_of(row, "kind"));
	table_cell(t, text_of(row, "id"));
	table_cell(t, text_of(row, "key"));
	table_cell(t, brief_bytes((uint64_t)number_of(row, "bytes")).text);
	table_cell(t, text_of(row, "action"));
	table_cell(t, text_of(row, "why"));
}

static int print_store(const json_t *answer, struct err *e)
{
	static const char *const heads[] = { "KIND", "ID", "KEY", "BYTES", "ACTION", "WHY", NULL };
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	const json_t *rows = json_object_get(answer, "decisions");
	json_t *row;
	size_t i;

	table_init(&t, heads);
	json_array_foreach(rows, i, row) add_decision(&t, row);
	if (t.cells.len > t.n_columns)
		table_print(&t, terminal_width(), &out);
	str_addf(&out, "workspaces: %s", brief_bytes((uint64_t)number_of(answer, "bytes")).text);
	if (number_of(answer, "max") > 0)
		str_addf(&out, " of %s", brief_bytes((uint64_t)number_of(answer, "max")).text);
	str_addf(&out, ", %s %s\n", brief_bytes((uint64_t)number_of(answer, "freed_bytes")).text,
	         is_dry ? "would be freed" : "freed");
	return print_text(&out, e);
}

/* *answer stays NULL where there is no daemon. */
static int ask_daemon(json_t **answer, struct err *e)
{
	struct client c;
	int r = 0;

	client_init(&c);
	c.doing = "looking through the store";
	if (has_daemon(&c))
		r = client_call(&c, "POST", "/v1/gc", json_pack("{sb}", "dry_run", is_dry), answer,
		                e);
	client_done(&c);
	return r;
}

/* ---- both ---------------------------------------------------------------------------- */

static int read_options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--dry-run") == 0) {
			is_dry = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			is_json = true;
		} else {
			fprintf(stderr,
			        "caisson: unknown option %s: caisson gc [--dry-run] [--json]\n",
			        argv[i]);
			return -1;
		}
	}
	return 0;
}

static int complain(const struct err *e)
{
	fprintf(stderr, "caisson: %s\n", escape_brief(e->msg));
	return EXIT_OURS;
}

int gc_main(int argc, char **argv, const struct driver *driver)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	struct err e = { 0 };

	if (read_options(argc, argv) < 0)
		return EXIT_OURS;
	if (ask_daemon(&answer, &e) < 0 || (answer && !is_json && print_store(answer, &e) < 0))
		return complain(&e);
	int n = driver->sweep(is_dry, found);

	if (n < 0) {
		fprintf(stderr, "caisson: cannot look for leftovers here\n");
		return EXIT_OURS;
	}
	if (!is_json) {
		printf("%d found, %d removed\n", n, n - left);
	} else {
		json_t *o = json_pack("{si,si}", "found", n, "removed", n - left);

		if (answer)
			json_object_set(o, "store", answer);
		if (print_json(o, &e) < 0)
			return complain(&e);
	}
	return left > 0 && !is_dry ? 1 : 0;
}
