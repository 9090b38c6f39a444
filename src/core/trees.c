#include "core/trees.h"

#include <inttypes.h>

#include "core/vault.h"
#include "io/journal.h"
#include "store/trees.h"
#include "store/workspaces.h"

#define FIRST_NUMBER 16u /* those before have a meaning: VAULT_EMPTY_TREE */
#define NUMBERS_AT_A_TIME 1024u
#define FACT "numbers"

struct trees {
	struct core *core;
	uint64_t next, noted; /* numbers below `noted` may be in use after a crash */
	struct vault *vault;  /* the store's, or NULL */
	struct tree_op *ops;  /* under way */
};

/* ---- numbers ------------------------------------------------------------------------- */

/* The store runs requests in order: whatever row has the number, this was on record before it. */
static void note(struct trees *t)
{
	char text[32];
	struct err e = { 0 };

	t->noted = t->next + NUMBERS_AT_A_TIME;
	snprintf(text, sizeof text, "%" PRIu64, t->noted);
	if (store_meta_set(t->core->store, FACT, text, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, NULL);
}

uint64_t trees_number(struct core *c)
{
	struct trees *t = c->trees;

	if (t->next >= t->noted)
		note(t);
	return t->next++;
}

uint64_t trees_next(const struct core *c)
{
	return c->trees->next;
}

bool trees_skip(struct core *c, uint64_t num)
{
	struct trees *t = c->trees;

	if (num < t->next)
		return false;
	t->next = num + 1;
	note(t);
	return true;
}

bool trees_are_idle(const struct core *c)
{
	return !c->trees->ops;
}

/* ---- the keeper of the store --------------------------------------------------------- */

static void vault_gone(void *arg, const struct err *e)
{
	struct trees *t = arg;

	journal(JOURNAL_WARN, e->msg, NULL);
	vault_close(t->vault);
	t->vault = NULL;
}

void trees_ask(struct core *c, const struct vault_packet *p, int fd, vault_done_fn *done, void *arg)
{
	struct trees *t = c->trees;
	struct vault_open store = { .workspace = 0 };

	if (!t->vault)
		t->vault =
		    vault_open(c, &store, (struct vault_owner){ .gone = vault_gone, .arg = t });
	vault_ask(t->vault, p, fd, done, arg);
}

static void ask_with(struct core *c, const struct vault_packet *p, vault_done_fn *done, void *arg)
{
	trees_ask(c, p, -1, done, arg);
}

static void ask(struct core *c, enum vault_type type, uint64_t num, vault_done_fn *done, void *arg)
{
	struct vault_packet p = { .head.type = type, .tree.number = num };

	ask_with(c, &p, done, arg);
}

/* ---- one change ---------------------------------------------------------------------- */

struct tree_op {
	struct tree_op *next;
	struct core *core;
	uint64_t num;
	tree_done_fn *done; /* one of the two, or none */
	tree_flat_fn *flat;
	void *arg;
	struct timer late; /* the store took nothing: told in the next turn */
};

static struct tree_op *op_new(struct core *c, uint64_t num, tree_done_fn *done, void *arg)
{
	struct tree_op *o = mem_alloc(sizeof *o);

	*o = (struct tree_op){
		.next = c->trees->ops, .core = c, .num = num, .done = done, .arg = arg
	};
	c->trees->ops = o;
	return o;
}

static void op_free(struct tree_op *o)
{
	struct tree_op **at = &o->core->trees->ops;

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	timer_stop(&o->core->timers, &o->late);
	free(o);
}

static void op_end(struct tree_op *o, const struct fail *f)
{
	tree_done_fn *done = o->done;
	void *arg = o->arg;
	uint64_t num = o->num;

	op_free(o);
	if (done)
		done(arg, num, f);
}

static void op_fail(struct tree_op *o, const struct err *e)
{
	struct fail f = { 0 };

	fail_err(&f, e);
	op_end(o, &f);
}

static void fail_late(struct timer *t)
{
	struct tree_op *o = (struct tree_op *)(void *)((char *)t - offsetof(struct tree_op, late));
	struct fail f = { 0 };

	fail_set(&f, FAIL_BACKEND_ERROR, "the store is overloaded");
	f.is_retry_safe = true;
	op_end(o, &f);
}

static void overloaded(struct tree_op *o)
{
	o->late.fired = fail_late;
	timer_set(&o->core->timers, &o->late, 0);
}

/* ---- make, seal, keep ---------------------------------------------------------------- */

static void made(void *arg, const struct vault_done *d, const struct err *e)
{
	struct tree_op *o = arg;

	(void)d;
	if (!e) {
		op_end(o, NULL);
		return;
	}
	tree_remove(o->core, o->num);
	op_fail(o, e);
}

static void inserted(void *arg, const struct store_answer *a)
{
	struct tree_op *o = arg;
	struct fail f = { 0 };

	if (a->code == STORE_OK) {
		ask(o->core, V_MAKE_TREE, o->num, made, o);
		return;
	}
	if (a->code == STORE_EXISTS)
		fail_set(&f, FAIL_EXISTS, "there is such a tree");
	else
		fail_set(&f, FAIL_BACKEND_ERROR, "the tree could not be stored");
	op_end(o, &f);
}

void tree_make(struct core *c, const struct tree_new *from, tree_done_fn *done, void *arg)
{
	struct tree_op *o = op_new(c, trees_number(c), done, arg);
	struct tree_row row = { .num = (int64_t)o->num,
		                .tenant = from->tenant,
		                .kind = from->kind,
		                .owner = from->owner,
		                .key = from->key,
		                .created_ms = core_now_ms() };
	struct err e = { 0 };

	if (store_tree_insert(c->store, &row, (struct store_call){ .done = inserted, .arg = o },
	                      &e) < 0)
		overloaded(o);
}

static void moved(void *arg, const struct store_answer *a)
{
	struct tree_op *o = arg;

	if (a->code == STORE_OK)
		op_end(o, NULL);
	else
		op_fail(o, a->err);
}

static void move(struct tree_op *o, enum tree_state state)
{
	struct err e = { 0 };

	if (store_tree_move(o->core->store, (int64_t)o->num, state, -1,
	                    (struct store_call){ .done = moved, .arg = o }, &e) < 0)
		overloaded(o);
}

static void sealed(void *arg, const struct vault_done *d, const struct err *e)
{
	struct tree_op *o = arg;

	(void)d;
	if (e)
		op_fail(o, e);
	else
		move(o, TREE_READY);
}

void tree_seal(struct core *c, uint64_t num, tree_done_fn *done, void *arg)
{
	ask(c, V_SEAL_TREE, num, sealed, op_new(c, num, done, arg));
}

void tree_keep(struct core *c, uint64_t num, tree_done_fn *done, void *arg)
{
	move(op_new(c, num, done, arg), TREE_READY);
}

/* ---- flatten ------------------------------------------------------------------------- */

static void flattened(void *arg, const struct vault_done *d, const struct err *e)
{
	struct tree_op *o = arg;
	tree_flat_fn *done = o->flat;
	void *whose = o->arg;
	struct fail f = { 0 };

	op_free(o);
	if (e)
		fail_err(&f, e);
	done(whose, e ? 0 : d->files, e ? 0 : d->bytes, e ? &f : NULL);
}

void tree_flatten(struct core *c, const struct tree_flat *how, tree_flat_fn *done, void *arg)
{
	struct tree_op *o = op_new(c, how->num, NULL, arg);
	struct vault_packet p = { .head.type = V_FLATTEN,
		                  .flatten = { .number = how->num,
		                               .from = how->from,
		                               .filled = how->filled,
		                               .n_layers = 1,
		                               .layers = { how->layer } } };

	o->flat = done;
	ask_with(c, &p, flattened, o);
}

/* ---- remove -------------------------------------------------------------------------- */

static void dropped(void *arg, const struct store_answer *a)
{
	(void)a; /* of a row that stays nothing is left: it is tried again */
	op_end(arg, NULL);
}

static void removed(void *arg, const struct vault_done *d, const struct err *e)
{
	struct tree_op *o = arg;
	struct err full = { 0 };

	(void)d;
	if (e) { /* still mounted somewhere: the row says trash, and the next start tries again */
		journal(JOURNAL_WARN, e->msg, NULL);
		op_fail(o, e);
		return;
	}
	if (store_tree_drop(o->core->store, (int64_t)o->num,
	                    (struct store_call){ .done = dropped, .arg = o }, &full) < 0)
		op_end(o, NULL);
}

static void trashed(void *arg, const struct store_answer *a)
{
	struct tree_op *o = arg;

	if (a->code == STORE_OK)
		ask(o->core, V_REMOVE_TREE, o->num, removed, o);
	else
		op_fail(o, a->err);
}

void tree_remove(struct core *c, uint64_t num)
{
	struct tree_op *o = op_new(c, num, NULL, NULL);
	struct err e = { 0 };

	if (store_tree_move(c->store, (int64_t)num, TREE_TRASH, -1,
	                    (struct store_call){ .done = trashed, .arg = o }, &e) < 0)
		overloaded(o);
}

/* ---- points -------------------------------------------------------------------------- */

static void point_removed(void *arg, const struct vault_done *d, const struct err *e)
{
	struct tree_op *o = arg;
	struct err full = { 0 };

	(void)d;
	if (e)
		journal(JOURNAL_WARN, e->msg, NULL);
	else if (o->num > 0) /* a row that stays is found again */
		(void)!store_point_drop(o->core->store, (int64_t)o->num, (struct store_call){ 0 },
		                        &full);
	op_free(o);
}

void trees_drop_points(struct core *c, size_t max)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct point_list list;
	struct err e = { 0 };

	if (c->trees->ops || store_point_useless(c->store, max, &a, &list, &e) < 0)
		return; /* the last ones are still on their way */
	for (size_t i = 0; i < list.n; i++) {
		uint64_t num = (uint64_t)list.rows[i].num;
		struct workspace_row owner;
		struct vault_packet p = { .head.type = V_REMOVE_POINTS,
			                  .points = { .from = num, .to = num } };

		if (store_workspace_by_id(c->store, list.rows[i].workspace, &a, &owner, &e) < 0)
			continue;        /* without its row nobody knows where it lies */
		if (list.rows[i].root) { /* first: its row is what leads to it */
			p.points.from = p.points.to = (uint64_t)list.rows[i].root;
			p.points.workspace = (uint64_t)owner.root_num;
			ask_with(c, &p, point_removed, op_new(c, 0, NULL, NULL));
		}
		p.points.from = p.points.to = num;
		p.points.workspace = (uint64_t)owner.num;
		ask_with(c, &p, point_removed, op_new(c, num, NULL, NULL));
	}
	if (list.n > 0)
		ask_with(c, &(struct vault_packet){ .head.type = V_SWEEP }, point_removed,
		         op_new(c, 0, NULL, NULL));
}

static void drop_range(struct core *c, int64_t workspace, int64_t from)
{
	struct vault_packet p = { .head.type = V_REMOVE_POINTS,
		                  .points = { .workspace = (uint64_t)workspace,
		                              .from = (uint64_t)from,
		                              .to = c->trees->next - 1 } };

	if (workspace > 0 && p.points.from <= p.points.to)
		ask_with(c, &p, point_removed, op_new(c, 0, NULL, NULL));
}

void trees_drop_after(struct core *c, const struct workspace_row *owner, struct trees_last last)
{
	drop_range(c, owner->num, last.num + 1);
	drop_range(c, owner->root_num, last.root + 1);
}

/* ---- life ---------------------------------------------------------------------------- */

int trees_open(struct core *c, struct err *e)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct trees *t = mem_alloc(sizeof *t);
	const char *text = NULL;

	*t = (struct trees){ .core = c, .next = FIRST_NUMBER };
	c->trees = t;
	if (store_meta_get(c->store, FACT, &a, &text, e) < 0)
		return -1;
	if (text)
		t->next = strtoull(text, NULL, 10);
	t->noted = t->next;
	return 0;
}

void trees_recover(struct core *c)
{
	static const enum tree_state states[] = { TREE_MAKING, TREE_TRASH };
	AUTO(arena_done) struct arena a = { 0 };
	struct tree_list list;
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(states); i++) {
		if (store_tree_in(c->store, states[i], &a, &list, &e) < 0)
			continue;
		for (size_t k = 0; k < list.n; k++)
			tree_remove(c, (uint64_t)list.rows[k].num);
	}
}

void trees_close(struct core *c)
{
	struct trees *t = c->trees;

	if (!t)
		return;
	vault_dismiss(t->vault);
	for (struct tree_op *o = t->ops, *next; o; o = next) {
		next = o->next;
		timer_stop(&c->timers, &o->late);
		free(o);
	}
	free(t);
	c->trees = NULL;
}
