/*
 * forget.c - checkpoints that nobody needs are removed, and then what only they held.
 *
 * A checkpoint that stays and says only what differs from one that goes is written whole first; so
 * a removal that was cut short has removed some of them, and the rest can be read.
 */
#include "base/vec.h"
#include "vault/points.h"
#include "vault/verbs.h"

struct removal {
	const struct vault_points *which;
	VEC(uint64_t) going;
	VEC(uint64_t) leaning; /* stay, and are based on one that goes */
	struct err *e;
};

static bool is_going(const struct vault_points *w, uint64_t number)
{
	return number >= w->from && number <= w->to;
}

static void leave(struct removal *r, uint64_t number)
{
	vec_push(&r->going, number);
}

static void stay(struct removal *r, uint64_t number, const struct manifest_head *head)
{
	if (head->base && is_going(r->which, head->base))
		vec_push(&r->leaning, number);
}

/* What makes no sense a loss of power left, and nobody else's has the number. What cannot be read
 * just now may lean on one that goes: then none goes. */
static int sort_point(void *ctx, uint64_t number, struct span bytes, const struct err *why)
{
	struct removal *r = ctx;
	struct manifest_head head;
	struct err ignored = { 0 };
	bool is_read = !why && manifest_parse_head(bytes, &head, &ignored) == 0;

	if (is_read && head.workspace != r->which->workspace)
		return 0;
	if (why && why->sys && !is_going(r->which, number)) {
		*r->e = *why;
		return -1;
	}
	if (is_going(r->which, number))
		leave(r, number);
	else if (is_read)
		stay(r, number, &head);
	return 0;
}

static int make_whole(struct vault *v, uint64_t number, struct err *e)
{
	AUTO(manifest_done) struct manifest m = { 0 };

	if (points_load(v, number, &m, e) < 0)
		return -1;
	return points_save(v, &m, NULL, e);
}

/* Bases change: what the vault remembers of its last one is not true any more. */
static int remove_points(struct vault *v, struct removal *r, struct vault_done *done, struct err *e)
{
	for (size_t i = 0; i < r->leaning.len; i++)
		if (make_whole(v, r->leaning.at[i], e) < 0)
			return -1;
	for (size_t i = r->going.len; i-- > 0;) {
		if (points_remove(v, r->going.at[i], e) < 0)
			return -1;
		done->files++;
	}
	return 0;
}

int verb_remove_points(struct vault *v, const struct vault_packet *ask, int fd,
                       struct vault_done *done, struct err *e)
{
	struct removal r = { .which = &ask->points, .e = e };

	(void)fd;
	if (v->open.workspace && ask->points.workspace != v->open.workspace)
		return err_new(e, ERR_INVALID, "these are checkpoints of another workspace");
	manifest_done(&v->index); /* what it knows may be about to go */
	if (points_lock_alone(v, e) < 0)
		return -1;
	int status = points_all(v, sort_point, &r, e);
	if (status >= 0)
		status = remove_points(v, &r, done, e);
	points_unlock(v);
	vec_done(&r.going);
	vec_done(&r.leaning);
	return status < 0 ? -1 : 0;
}
