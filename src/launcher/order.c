#include "launcher/order.h"

#include "base/fd.h"
#include "launcher/slot.h"
#include "launcher/trees.h"

_Static_assert(LAUNCH_LIMITS == LIMIT_COUNT, "a limit is missing in wire/launch.h");
_Static_assert(LAUNCH_SLOTS == SLOT_COUNT, "wire/launch.h knows the number of slots");
_Static_assert(LAUNCH_IDS_INSIDE_MAX == BOX_IDS - 1, "wire/launch.h knows the ids inside");

/* ---- tickets ------------------------------------------------------------------------- */

uint32_t tickets_add(struct tickets *all, struct ticket t)
{
	if (++all->last == 0)
		all->last = 1;
	struct ticket *at = &all->at[all->last % LAUNCH_TICKETS];

	if (at->number != 0)
		fd_close(&at->fd);
	*at = t;
	at->number = all->last;
	return all->last;
}

/* What is not there has number 0. */
static struct ticket take(struct tickets *all, uint32_t number)
{
	struct ticket *at = &all->at[number % LAUNCH_TICKETS];
	struct ticket t = *at;

	if (number == 0 || t.number != number)
		return (struct ticket){ .fd = -1 };
	*at = (struct ticket){ .fd = -1 };
	return t;
}

void tickets_done(struct tickets *all)
{
	for (size_t i = 0; i < COUNT(all->at); i++)
		if (all->at[i].number != 0)
			fd_close(&all->at[i].fd);
	memset(all->at, 0, sizeof all->at);
}

/* ---- the plan ------------------------------------------------------------------------ */

static int give_nothing(const struct launch_mount *m, const struct order_from *from,
                        struct plan_mount *to, struct err *e)
{
	(void)m;
	(void)from;
	(void)to;
	(void)e;
	return 0;
}

static int give_ticket(const struct launch_mount *m, const struct order_from *from,
                       struct plan_mount *to, struct err *e)
{
	struct ticket t = take(from->tickets, m->ticket);

	if (t.number == 0)
		return err_new(e, ERR_INVALID, "fs: ticket %u is void", m->ticket);
	to->source_fd = t.fd;
	to->uid = t.uid;
	to->gid = t.gid;
	to->is_dir = t.is_dir;
	if (m->kind == LAUNCH_OVERLAY && !t.is_dir)
		return err_new(e, ERR_INVALID, "fs: overlay of what is not a folder");
	return 0;
}

static int give_tree(const struct launch_mount *m, const struct order_from *from,
                     struct plan_mount *to, struct err *e)
{
	const struct trees_want want = { .is_writable = !to->is_read_only };

	to->source_fd = trees_open(from->trees_fd, m->tree, want, e);
	return to->source_fd < 0 ? err_wrap(e, "fs") : 0;
}

static const struct {
	enum plan_mount_kind kind;
	int (*give)(const struct launch_mount *m, const struct order_from *from,
	            struct plan_mount *to, struct err *e); /* its source */
} kinds[] = {
	[LAUNCH_EPHEMERAL] = { PLAN_EPHEMERAL, give_nothing },
	[LAUNCH_RO] = { PLAN_RO, give_ticket },
	[LAUNCH_OVERLAY] = { PLAN_OVERLAY, give_ticket },
	[LAUNCH_TREE] = { PLAN_TREE, give_tree },
	[LAUNCH_WORK] = { PLAN_TREE, give_nothing }, /* its keeper is asked for it */
};
_Static_assert(COUNT(kinds) == LAUNCH_MOUNT_KINDS, "a kind of mount has no plan");

static int read_mount(const struct launch_mount *m, const struct order_from *from,
                      struct plan_mount *to, struct err *e)
{
	*to = (struct plan_mount){ .kind = kinds[m->kind].kind,
		                   .source_fd = -1,
		                   .at = m->at,
		                   .is_dir = true,
		                   .is_read_only = m->flags & LAUNCH_READ_ONLY,
		                   .is_ready = m->kind == LAUNCH_WORK };
	return kinds[m->kind].give(m, from, to, e);
}

/* Sealed, with the ids that it has inside. */
static int read_image_tree(uint64_t number, int trees_fd, struct plan *plan, struct err *e)
{
	plan->image = IMAGE_DIR;
	plan->image_fd = trees_open(trees_fd, number, (struct trees_want){ .is_image = true }, e);
	return plan->image_fd < 0 ? err_wrap(e, "image") : 0;
}

static int read_image(uint32_t number, struct tickets *all, struct plan *plan,
                      struct launcher_order *order, struct err *e)
{
	if (number == 0)
		return 0;
	struct ticket t = take(all, number);
	if (t.number == 0)
		return err_new(e, ERR_INVALID, "image: ticket %u is void", number);
	plan->image = IMAGE_DIR;
	plan->image_fd = t.fd;
	if (!t.is_dir)
		return err_new(e, ERR_INVALID, "image: not a folder");
	order->image_uid = t.is_all ? 0 : t.uid;
	order->image_gid = t.is_all ? 0 : t.gid;
	return 0;
}

int order_read(const struct launch_packet *p, const struct order_from *from, struct plan *plan,
               struct launcher_order *order, struct err *e)
{
	const struct launch_make *m = &p->make;
	int r = 0;

	*plan = (struct plan){ .image_fd = -1,
		               .uid = m->uid,
		               .gid = m->gid,
		               .rootful = m->flags & LAUNCH_ROOTFUL,
		               .has_net = m->flags & LAUNCH_NET,
		               .text = { .max = LAUNCH_TEXT_MAX } };
	for (enum limit_id i = 0; i < LIMIT_COUNT; i++) {
		plan->limits[i] = m->limits[i];
		plan->named[i] = m->named >> i & 1;
		plan->weaker[i] = m->weaker >> i & 1;
	}
	str_addn(&plan->text, launch_text(p), m->text_len);
	for (size_t i = 0; i < m->n_mounts; i++) { /* all of them: their tickets are used up */
		struct err other;

		if (read_mount(&m->mounts[i], from, &plan->mounts[i], r < 0 ? &other : e) < 0)
			r = -1;
		plan->n_mounts++;
		if (m->mounts[i].kind == LAUNCH_WORK)
			order->workspace = m->mounts[i].tree;
	}
	order->plan = plan;
	order->root = m->root;
	order->is_kept = m->flags & LAUNCH_KEPT;
	order->id = plan_text(plan, m->id);
	if (r == 0)
		r = m->image_tree ? read_image_tree(m->image_tree, from->trees_fd, plan, e)
		                  : read_image(m->image, from->tickets, plan, order, e);
	return r;
}

void order_give_root(struct plan *plan, int fd)
{
	plan->image = IMAGE_ROOT;
	plan->image_fd = fd;
}

void order_give_work(struct plan *plan, int fd)
{
	for (size_t i = 0; i < plan->n_mounts; i++)
		if (plan->mounts[i].is_ready)
			plan->mounts[i].source_fd = fd;
}
