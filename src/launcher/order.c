#include "launcher/order.h"

#include "base/fd.h"
#include "launcher/slot.h"

_Static_assert(LAUNCH_LIMITS == LIMIT_COUNT, "a limit is missing in wire/launch.h");
_Static_assert(LAUNCH_SLOTS == SLOT_COUNT, "wire/launch.h knows the number of slots");
_Static_assert(LAUNCH_IDS_INSIDE_MAX == BOX_IDS - 1, "wire/launch.h knows the ids inside");

static const enum plan_mount_kind kinds[] = {
	[LAUNCH_EPHEMERAL] = PLAN_EPHEMERAL,
	[LAUNCH_RO] = PLAN_RO,
	[LAUNCH_OVERLAY] = PLAN_OVERLAY,
};
_Static_assert(COUNT(kinds) == LAUNCH_MOUNT_KINDS, "a kind of mount has no plan");

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

static int read_mount(const struct launch_mount *from, struct tickets *all, struct plan_mount *to,
                      struct err *e)
{
	*to = (struct plan_mount){
		.kind = kinds[from->kind], .source_fd = -1, .at = from->at, .is_dir = true
	};
	if (from->kind == LAUNCH_EPHEMERAL)
		return 0;
	struct ticket t = take(all, from->ticket);
	if (t.number == 0)
		return err_new(e, ERR_INVALID, "fs: ticket %u is void", from->ticket);
	to->source_fd = t.fd;
	to->uid = t.uid;
	to->gid = t.gid;
	to->is_dir = t.is_dir;
	if (from->kind == LAUNCH_OVERLAY && !t.is_dir)
		return err_new(e, ERR_INVALID, "fs: overlay of what is not a folder");
	return 0;
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

int order_read(const struct launch_packet *p, struct tickets *all, struct plan *plan,
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

		if (read_mount(&m->mounts[i], all, &plan->mounts[i], r < 0 ? &other : e) < 0)
			r = -1;
		plan->n_mounts++;
	}
	order->plan = plan;
	order->is_kept = m->flags & LAUNCH_KEPT;
	order->id = plan_text(plan, m->id);
	return r < 0 ? -1 : read_image(m->image, all, plan, order, e);
}
