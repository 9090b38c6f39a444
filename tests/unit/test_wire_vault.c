#include "wire/vault.h"

#include "test.h"

static struct vault_packet good(enum vault_type type)
{
	struct vault_packet p;

	memset(&p, 0, sizeof p);
	p.head.type = type;
	p.head.len = (uint32_t)(vault_size(&p) - sizeof p.head);
	if (type == V_OPEN)
		p.open = (struct vault_open){ .workspace = 1,
			                      .top = 2,
			                      .id_base = 65536,
			                      .n_ids = 65535,
			                      .n_layers = 1,
			                      .layers = { VAULT_EMPTY_TREE } };
	if (type == V_CHECKPOINT)
		p.point.number = 1;
	if (type == V_RELAYER)
		p.relayer = (struct vault_relayer){ .new_top = 3, .n_layers = 1, .layers = { 1 } };
	if (type == V_MAKE_TREE || type == V_SEAL_TREE || type == V_REMOVE_TREE ||
	    type == V_REMOVE_VOLUME)
		p.tree.number = 2;
	if (type == V_FLATTEN)
		p.flatten = (struct vault_flatten){ .number = 3, .n_layers = 1, .layers = { 1 } };
	if (type == V_REMOVE_POINTS)
		p.points.workspace = 1;
	if (type == V_FAILED)
		p.err.kind = ERR_INTERNAL;
	return p;
}

static size_t fds_of(enum vault_type type)
{
	return type == V_CLIENT || type == V_CHANGES || type == V_VERIFY || type == V_MEND ||
	       type == V_CENSUS;
}

static bool check(const struct vault_packet *p)
{
	return vault_check(p, vault_size(p), fds_of(p->head.type));
}

TEST(every_type_is_taken_in_its_own_size_only)
{
	for (enum vault_type t = 0; t < V_TYPES; t++) {
		struct vault_packet p = good(t);
		size_t n = vault_size(&p), fds = fds_of(t);

		printf("# type %d\n", (int)t);
		CHECK(vault_check(&p, n, fds));
		CHECK(!vault_check(&p, n - 1, fds));
		CHECK(!vault_check(&p, n + 1, fds));
		CHECK(!vault_check(&p, n, 2));
		CHECK(fds == 0 || !vault_check(&p, n, fds - 1));
		p.head.len++;
		CHECK(!vault_check(&p, n, fds));
		p = good(t);
		p.head.zero = 1;
		CHECK(!check(&p));
	}
}

TEST(flags_that_nobody_knows_are_refused)
{
	struct vault_packet p = good(V_CHANGES);

	p.between.flags = VAULT_PLAIN;
	CHECK(check(&p));
	p.between.flags = 2;
	CHECK(!check(&p));
	p.between.flags = 0;
	p.between.zero = 1;
	CHECK(!check(&p));
}

static const struct row {
	const char *name;
	struct vault_open open;
	bool is_good;
} openings[] = {
	{ "the store", { .workspace = 0 }, true },
	{ "the store with a top", { .top = 1 }, false },
	{ "the store with layers", { .n_layers = 1, .layers = { 1 } }, false },
	{ "no layer", { .workspace = 1, .top = 2, .flags = VAULT_ROOTLESS }, false },
	{ "rootless",
	  { .workspace = 1, .top = 2, .flags = VAULT_ROOTLESS, .n_layers = 1, .layers = { 1 } },
	  true },
	{ "rootless, bounded",
	  { .workspace = 1,
	    .top = 2,
	    .flags = VAULT_ROOTLESS | VAULT_BOUNDED,
	    .bytes = 1,
	    .n_layers = 1,
	    .layers = { 1 } },
	  false },
	{ "no top",
	  { .workspace = 1, .flags = VAULT_ROOTLESS, .n_layers = 1, .layers = { 1 } },
	  false },
	{ "read-only with a top",
	  { .workspace = 1,
	    .top = 2,
	    .flags = VAULT_ROOTLESS | VAULT_READ_ONLY,
	    .n_layers = 1,
	    .layers = { 1 } },
	  false },
	{ "root of the host",
	  { .workspace = 1, .top = 2, .n_ids = 65535, .n_layers = 1, .layers = { 1 } },
	  false },
	{ "ids beyond the last",
	  { .workspace = 1,
	    .top = 2,
	    .id_base = UINT32_MAX - 5,
	    .n_ids = 65535,
	    .n_layers = 1,
	    .layers = { 1 } },
	  false },
	{ "too many layers",
	  { .workspace = 1,
	    .top = 2,
	    .flags = VAULT_ROOTLESS,
	    .n_layers = VAULT_LAYERS_MAX + 1,
	    .layers = { 1 } },
	  false },
	{ "layer 0",
	  { .workspace = 1, .top = 2, .flags = VAULT_ROOTLESS, .n_layers = 2, .layers = { 1 } },
	  false },
	{ "an unknown flag",
	  { .workspace = 1, .top = 2, .flags = 64, .n_layers = 1, .layers = { 1 } },
	  false },
};

TEST(what_is_opened_makes_sense)
{
	for (size_t i = 0; i < COUNT(openings); i++) {
		struct vault_packet p = good(V_OPEN);

		printf("# %s\n", openings[i].name);
		p.open = openings[i].open;
		CHECK_INT(check(&p), openings[i].is_good);
	}
}

TEST(the_empty_tree_stays_what_it_is)
{
	struct vault_packet p = good(V_REMOVE_TREE);

	p.tree.number = VAULT_EMPTY_TREE;
	CHECK(!check(&p));
	p = good(V_CHECKPOINT);
	p.point.number = VAULT_NOW;
	CHECK(!check(&p));
}

TEST(flags_and_numbers_that_make_no_sense)
{
	struct vault_packet p = good(V_CHECKPOINT);

	p.point.flags = VAULT_ALWAYS;
	CHECK(check(&p));
	p.point.flags = VAULT_POINT_FLAGS + 1;
	CHECK(!check(&p));
	p = good(V_OPEN);
	p.open.ids_of = 3; /* the launcher has made ids of it */
	CHECK(!check(&p));

	static const struct {
		uint64_t from, filled;
		uint32_t n_layers;
		bool is_good;
	} flats[] = {
		{ 5, 6, 1, true },
		{ 5, 0, 1, false },
		{ 0, 6, 1, false },
		{ 5, 3, 1, false }, /* the tree itself */
		{ 5, VAULT_EMPTY_TREE, 1, false },
		{ VAULT_NOW, 6, 1, false },
		{ 5, 6, VAULT_LAYERS_MAX, false },
		{ 0, 0, VAULT_LAYERS_MAX, true },
	};
	for (size_t i = 0; i < COUNT(flats); i++) {
		p = good(V_FLATTEN);
		p.flatten.from = flats[i].from;
		p.flatten.filled = flats[i].filled;
		p.flatten.n_layers = flats[i].n_layers;
		for (size_t k = 0; k < VAULT_LAYERS_MAX; k++)
			p.flatten.layers[k] = 10 + k;
		printf("# %zu\n", i);
		CHECK_INT(check(&p), flats[i].is_good);
	}
}
