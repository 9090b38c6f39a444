#include "wire/vault.h"

_Static_assert(sizeof(struct vault_head) == 16, "the body is aligned");
_Static_assert(sizeof(struct vault_open) % 8 == 0, "no padding at the end");

static bool check_layers(const uint64_t *layers, uint32_t n)
{
	if (n > VAULT_LAYERS_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (layers[i] == 0)
			return false;
	return true;
}

static bool check_open(const struct vault_packet *p)
{
	const struct vault_open *o = &p->open;
	bool is_rootless = o->flags & VAULT_ROOTLESS, is_bounded = o->flags & VAULT_BOUNDED;

	if ((o->flags & ~VAULT_OPEN_FLAGS) || (is_rootless && is_bounded) || o->ids_of)
		return false;
	if (is_bounded != (o->bytes > 0))
		return false;
	if (o->workspace == 0)
		return o->top == 0 && o->n_layers == 0 && o->from == 0 && !is_bounded;
	if (!is_rootless && (o->id_base < 65536 || o->n_ids == 0 || o->n_ids > 65536 ||
	                     o->id_base > UINT32_MAX - o->n_ids))
		return false;
	if ((o->flags & VAULT_READ_ONLY) ? o->top || o->from || is_bounded : o->top == 0)
		return false;
	return o->n_layers > 0 && check_layers(o->layers, o->n_layers);
}

static bool check_opened(const struct vault_packet *p)
{
	return p->opened.is_new <= 1 && p->opened.zero == 0;
}

static bool check_point(const struct vault_packet *p)
{
	return p->point.number > 0 && p->point.number != VAULT_NOW &&
	       p->point.number != p->point.before && (p->point.flags & ~VAULT_POINT_FLAGS) == 0 &&
	       p->point.zero == 0;
}

static bool check_restore(const struct vault_packet *p)
{
	return (p->restore.flags & ~VAULT_RESTORE_FLAGS) == 0 && p->restore.zero == 0 &&
	       p->restore.to != VAULT_NOW;
}

static bool check_between(const struct vault_packet *p)
{
	return (p->between.flags & ~VAULT_BETWEEN_FLAGS) == 0 && p->between.zero == 0;
}

static bool check_relayer(const struct vault_packet *p)
{
	const struct vault_relayer *r = &p->relayer;

	return r->zero == 0 && r->new_top > 0 && r->n_layers > 0 &&
	       check_layers(r->layers, r->n_layers);
}

static bool check_points(const struct vault_packet *p)
{
	return p->points.workspace > 0 && p->points.from <= p->points.to;
}

static bool check_tree(const struct vault_packet *p)
{
	return p->tree.number > VAULT_EMPTY_TREE;
}

static bool check_volume(const struct vault_packet *p)
{
	return p->tree.number > 0;
}

static bool check_flatten(const struct vault_packet *p)
{
	const struct vault_flatten *f = &p->flatten;

	if ((f->from != 0) != (f->filled != 0) || f->from == VAULT_NOW || f->filled == f->number ||
	    f->filled == VAULT_EMPTY_TREE)
		return false;
	return f->zero == 0 && f->number > VAULT_EMPTY_TREE && f->n_layers > 0 &&
	       check_layers(f->layers, f->n_layers) &&
	       (f->from == 0 || f->n_layers < VAULT_LAYERS_MAX);
}

static bool check_failed(const struct vault_packet *p)
{
	unsigned int kind = 0; /* an enum from outside is a number until it is in range */

	memcpy(&kind, &p->err.kind, sizeof kind);
	return kind > ERR_NONE && kind <= ERR_INTERNAL &&
	       memchr(p->err.msg, '\0', sizeof p->err.msg);
}

static bool check_reserve(const struct vault_packet *p)
{
	return p->tree.number <= VAULT_RESERVE_MAX;
}

/* clang-format off */
static const struct row {
	size_t size, fds_min, fds_max;
	bool (*check)(const struct vault_packet *p); /* NULL: nothing to check */
} rows[] = {
	[V_OPEN]          = { sizeof(struct vault_open),    0, 1, check_open },
	[V_CLIENT]        = { 0,                            1, 1, NULL },
	[V_MOUNT]         = { 0,                            0, 0, NULL },
	[V_CHECKPOINT]    = { sizeof(struct vault_point),   0, 0, check_point },
	[V_RESTORE]       = { sizeof(struct vault_restore), 0, 0, check_restore },
	[V_CHANGES]       = { sizeof(struct vault_between), 1, 1, check_between },
	[V_RELAYER]       = { sizeof(struct vault_relayer), 0, 0, check_relayer },
	[V_SYNC]          = { 0,                            0, 0, NULL },
	[V_USAGE]         = { 0,                            0, 0, NULL },
	[V_MAKE_TREE]     = { sizeof(struct vault_tree),    0, 0, check_tree },
	[V_SEAL_TREE]     = { sizeof(struct vault_tree),    0, 0, check_tree },
	[V_REMOVE_TREE]   = { sizeof(struct vault_tree),    0, 0, check_tree },
	[V_REMOVE_VOLUME] = { sizeof(struct vault_tree),    0, 0, check_volume },
	[V_REMOVE_POINTS] = { sizeof(struct vault_points),  0, 0, check_points },
	[V_RESERVE]       = { sizeof(struct vault_tree),    0, 0, check_reserve },
	[V_SWEEP]         = { 0,                            0, 0, NULL },
	[V_VERIFY]        = { 0,                            1, 1, NULL },
	[V_MEND]          = { 0,                            1, 1, NULL },
	[V_CENSUS]        = { 0,                            1, 1, NULL },
	[V_FLATTEN]       = { sizeof(struct vault_flatten), 0, 0, check_flatten },
	[V_CLOSE]         = { 0,                            0, 0, NULL },
	[V_OPENED]        = { sizeof(struct vault_opened),  0, 1, check_opened },
	[V_DONE]          = { sizeof(struct vault_done),    0, 0, NULL },
	[V_FAILED]        = { sizeof(struct err),           0, 0, check_failed },
};
_Static_assert(COUNT(rows) == V_TYPES, "a type has no row");
/* clang-format on */

bool vault_check(const struct vault_packet *p, size_t n, size_t n_fds)
{
	if (n < sizeof p->head || p->head.type >= V_TYPES || p->head.zero)
		return false;
	const struct row *row = &rows[p->head.type];

	return p->head.len == row->size && n == sizeof p->head + row->size &&
	       n_fds >= row->fds_min && n_fds <= row->fds_max && (!row->check || row->check(p));
}

size_t vault_size(const struct vault_packet *p)
{
	return sizeof p->head + (p->head.type < V_TYPES ? rows[p->head.type].size : 0);
}
