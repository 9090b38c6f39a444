#include "core/flatten.h"

#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"
#include "store/trees.h"
#include "wire/hash.h"

#define LOOK_MS 3000
#define STACKS_AT_A_TIME 16

struct flatten {
	struct core *core;
	char *stack; /* the old one */
	uint64_t layers[VAULT_LAYERS_MAX];
	uint32_t n;
	uint64_t num; /* the flat tree */
	char key[TREE_HASH_TEXT], text[32];
	bool is_holding; /* the rows are being changed */
};

static void end(struct flatten *f, const char *why)
{
	struct core *c = f->core;

	if (why)
		journal(JOURNAL_WARN, why, NULL);
	c->flatten = NULL;
	c->flattened_ms = core_mono_ms();
	free(f->stack);
	free(f);
}

/* ---- who is in the way --------------------------------------------------------------- */

bool flatten_holds(const struct wsx *w)
{
	const struct flatten *f = w->core->flatten;

	return f && f->is_holding && strcmp(f->stack, w->row.stack) == 0;
}

struct search {
	const struct flatten *f;
	bool is_found;
};

static void compare(void *entry, void *arg)
{
	const struct wsx *w = entry;
	struct search *s = arg;
	uint64_t layers[VAULT_LAYERS_MAX];
	int n = ws_is_idle(w) ? 0 : ws_layers(w->row.stack, layers);

	for (int i = 0; i < n; i++)
		for (uint32_t k = 0; k < s->f->n; k++)
			s->is_found |= layers[i] == s->f->layers[k];
}

static bool is_used(const struct flatten *f)
{
	struct search s = { .f = f };

	roster_each(&f->core->workspaces, compare, &s);
	return s.is_found;
}

/* ---- the rows ------------------------------------------------------------------------ */

static void take_stack(void *entry, void *arg)
{
	const struct flatten *f = arg;
	struct wsx *w = entry;

	if (strcmp(w->row.stack, f->stack) == 0)
		ws_text(&w->stack, f->text, &w->row.stack);
}

static void pump(void *entry, void *arg)
{
	(void)arg;
	ws_pump(entry);
}

static void replaced(void *arg, const struct store_answer *a)
{
	struct flatten *f = arg;
	struct core *c = f->core;
	bool is_well = a->code == STORE_OK;

	if (is_well) {
		roster_each(&c->workspaces, take_stack, f);
		journal(JOURNAL_INFO, "a long stack of layers is one now", "stack", f->text, NULL);
	}
	f->is_holding = false;
	end(f, is_well ? NULL : a->err->msg);
	roster_each(&c->workspaces, pump, NULL);
}

/* It may have been opened meanwhile: the tree stays for the next time. */
static void replace(struct flatten *f)
{
	struct err e = { 0 };

	if (is_used(f)) {
		tree_keep(f->core, f->num, NULL, NULL);
		end(f, NULL);
		return;
	}
	f->is_holding = true;
	snprintf(f->text, sizeof f->text, "[%llu]", (unsigned long long)f->num);
	if (store_stack_replace(f->core->store,
	                        &(struct stack_change){ f->stack, f->text, (int64_t)f->num },
	                        (struct store_call){ .done = replaced, .arg = f }, &e) < 0)
		replaced(f, &(struct store_answer){ .code = STORE_BROKEN, .err = &e });
}

/* ---- the tree ------------------------------------------------------------------------ */

static void linked(void *arg, const struct vault_done *d, const struct err *e)
{
	struct flatten *f = arg;

	(void)d;
	if (!e) {
		replace(f);
		return;
	}
	tree_remove(f->core, f->num);
	end(f, e->msg);
}

static void inserted(void *arg, const struct store_answer *a)
{
	struct flatten *f = arg;
	struct vault_packet p = { .head.type = V_FLATTEN,
		                  .flatten = { .number = f->num, .n_layers = f->n } };

	if (a->code != STORE_OK) {
		end(f, a->err->msg);
		return;
	}
	memcpy(p.flatten.layers, f->layers, sizeof p.flatten.layers);
	trees_ask(f->core, &p, -1, linked, f);
}

static void begin(struct flatten *f, const char *tenant)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct tree_row row = { .tenant = tenant,
		                .kind = "layer",
		                .owner = FLAT_OWNER,
		                .key = f->key,
		                .created_ms = core_now_ms() },
			found;
	struct hash h;
	struct err e = { 0 };

	hash_init(&h);
	hash_add(&h, (struct span){ f->stack, strlen(f->stack) });
	hash_text(&h, f->key);
	f->core->flatten = f;
	if (store_tree_by_key(f->core->store, &row, &a, &found, &e) == 0 &&
	    found.state == TREE_READY) {
		f->num = (uint64_t)found.num;
		replace(f);
		return;
	}
	f->num = trees_number(f->core);
	row.num = (int64_t)f->num;
	if (store_tree_insert(f->core->store, &row,
	                      (struct store_call){ .done = inserted, .arg = f }, &e) < 0)
		end(f, e.msg);
}

/* ---- now and then -------------------------------------------------------------------- */

static bool try_stack(struct core *c, const struct workspace_row *row)
{
	struct flatten *f = mem_alloc(sizeof *f);
	*f = (struct flatten){ .core = c, .stack = mem_strdup(row->stack) };
	int n = ws_layers(row->stack, f->layers);

	f->n = n < 0 ? 0 : (uint32_t)n;
	if (n > 0 && !is_used(f)) {
		begin(f, row->tenant);
		return true;
	}
	free(f->stack);
	free(f);
	return false;
}

void flatten_look(struct core *c)
{
	AUTO(arena_done) struct arena a = { 0 };
	uint64_t most = c->config.disk.layers ? c->config.disk.layers : STORE_LAYERS;
	struct workspace_list list;
	struct err e = { 0 };

	if (c->flatten || core_mono_ms() - c->flattened_ms < LOOK_MS)
		return;
	c->flattened_ms = core_mono_ms();
	if (store_stack_long(c->store, most, STACKS_AT_A_TIME, &a, &list, &e) < 0)
		return;
	for (size_t i = 0; i < list.n; i++)
		if (try_stack(c, &list.rows[i]))
			return;
}

void flatten_close(struct core *c)
{
	if (c->flatten)
		end(c->flatten, NULL);
}
