#include "core/reserve.h"

#include <inttypes.h>
#include <sys/statfs.h>

#include "core/trees.h"
#include "core/workspace-internal.h"
#include "io/journal.h"
#include "wire/room.h"

#define NEAR_MS 100
#define FAR_MS 1000      /* while eight times the reserve is free */
#define SMALL (1u << 20) /* inodes: a file system whose last half can go between two looks */
#define REASON                                                                                     \
	"stopped: its workspace took the reserve of the store's file system (docs/operating.md)"

enum reserve_hold { HOLD_UNKNOWN, HOLD_KEPT, HOLD_FREED };

struct reserve {
	struct core *core;
	struct timer look;
	struct room room;   /* at the last look */
	struct room before; /* when all workspaces had been judged */
	enum reserve_hold hold;
	bool is_asking;    /* the keeper of the store */
	bool is_low;       /* at the last look, */
	bool is_settled;   /* and nobody is left to be stopped */
	size_t n_counting; /* workspaces whose count is under way */
};

/* ---- the file system ------------------------------------------------------------------- */

static int reserve_read(const struct core *c, struct room *out)
{
	AUTO(str_done) struct str path = { .max = PATH_TEXT_MAX };
	struct statfs fs;

	str_addf(&path, "%s/trees", c->config.state_dir);
	if (statfs(str_text(&path), &fs) < 0)
		return -1;
	*out = (struct room){ .inodes = fs.f_files,
		              .inodes_free = fs.f_ffree,
		              .bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize,
		              .bytes_free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize };
	return 0;
}

static bool reserve_lacks(const struct room *r)
{
	return room_lacks_inodes(r) || room_lacks_bytes(r);
}

/* ---- the ballast ------------------------------------------------------------------------- */

static void reserve_held(void *arg, const struct vault_done *d, const struct err *e)
{
	struct reserve *r = arg;

	(void)d;
	r->is_asking = false;
	if (!e)
		return;
	r->hold = HOLD_UNKNOWN; /* tried again */
	journal(JOURNAL_WARN, e->msg, NULL);
}

static void reserve_hold(struct reserve *r, enum reserve_hold hold)
{
	struct vault_packet p = { .head.type = V_RESERVE };

	if (r->hold == hold || r->is_asking)
		return;
	p.tree.number = hold == HOLD_KEPT ? room_ballast(&r->room) : 0;
	r->hold = hold;
	r->is_asking = true;
	trees_ask(r->core, &p, -1, reserve_held, r);
}

/* ---- who took it ------------------------------------------------------------------------- */

/* Twice the reserve; once the ballast is gone, half of that is much. */
static bool reserve_is_much(const struct reserve *r, const struct wsx *w)
{
	uint64_t inodes =
	    r->hold == HOLD_FREED ? room_ballast(&r->room) / 2 : 2 * room_inodes(&r->room);

	return (room_lacks_inodes(&r->room) && w->held_files >= inodes) ||
	       (room_lacks_bytes(&r->room) && w->held_bytes >= 2 * room_bytes(&r->room));
}

/* A sandbox that was stopped keeps its mount and writes nothing. */
static bool reserve_has_writer(const struct wsx *w)
{
	for (const struct sbx *s = w->attached; s; s = s->next_attached)
		if (!s->is_service && s->state != SANDBOX_STOPPED && s->state != SANDBOX_FAILED)
			return true;
	return false;
}

static void reserve_stopped(void *arg, struct sbx *s, const struct fail *f)
{
	(void)arg;
	if (!f)
		sbx_set_state(s, SANDBOX_STOPPED, REASON);
}

/* Those that change just now are met by the next look. */
static void reserve_stop(struct wsx *w)
{
	struct sbx *next;

	journal(JOURNAL_WARN,
	        "the store's file system lacks room; the workspace that took it stops", "workspace",
	        w->row.id, "tenant", w->row.tenant, NULL);
	for (struct sbx *s = w->attached; s; s = next) {
		struct fail f = { 0 };

		next = s->next_attached;
		if (!s->is_service && sbx_stop(s, reserve_stopped, NULL, &f) < 0 &&
		    s->state == SANDBOX_RUNNING && !s->change.is_busy)
			(void)sbx_delete(s, NULL, NULL, &f); /* a sandbox of one command */
	}
}

struct reserve_worst {
	const struct reserve *r;
	struct wsx *w;
	bool is_inodes;
};

static void reserve_compare(void *entry, void *arg)
{
	struct reserve_worst *x = arg;
	struct wsx *w = entry;

	if (!reserve_has_writer(w) || !reserve_is_much(x->r, w))
		return;
	if (!x->w ||
	    (x->is_inodes ? w->held_files > x->w->held_files : w->held_bytes > x->w->held_bytes))
		x->w = w;
}

static void reserve_judge(struct reserve *r)
{
	struct reserve_worst x = { .r = r, .is_inodes = room_lacks_inodes(&r->room) };

	if (r->core->is_closing)
		return;
	roster_each(&r->core->workspaces, reserve_compare, &x);
	if (x.w) {
		reserve_stop(x.w);
		return;
	}
	r->is_settled = true;
	r->before = r->room;
	reserve_hold(r, HOLD_FREED);
}

static void reserve_counted(void *arg, struct wsx *w, const struct wsx_usage *u,
                            const struct fail *f)
{
	struct reserve *r = arg;

	(void)f; /* a keeper that died has no sandbox any more, or is asked again */
	if (u) {
		w->held_files = u->files;
		w->held_bytes = u->bytes;
	}
	if (--r->n_counting == 0)
		reserve_judge(r);
}

static void reserve_count_one(void *entry, void *arg)
{
	struct reserve *r = arg;
	struct wsx *w = entry;

	if (!reserve_has_writer(w))
		return;
	r->n_counting++;
	wsx_usage(w, reserve_counted, r);
}

/* ---- looking ----------------------------------------------------------------------------- */

static bool reserve_fell(const struct reserve *r)
{
	return r->room.inodes_free + room_inodes(&r->room) / 16 < r->before.inodes_free ||
	       r->room.bytes_free + room_bytes(&r->room) / 16 < r->before.bytes_free;
}

static void reserve_is_short(struct reserve *r)
{
	if (!r->is_low)
		r->is_settled = false;
	r->is_low = true;
	if (r->is_settled && r->room.inodes_free > r->before.inodes_free)
		r->before.inodes_free = r->room.inodes_free; /* the ballast is there now */
	if (r->n_counting > 0 || (r->is_settled && !reserve_fell(r)))
		return;
	r->is_settled = false;
	r->n_counting = 1; /* ours: an answer may come from within the call */
	roster_each(&r->core->workspaces, reserve_count_one, r);
	if (--r->n_counting == 0)
		reserve_judge(r);
}

static void reserve_any_writer(void *entry, void *arg)
{
	*(bool *)arg |= reserve_has_writer(entry);
}

static bool reserve_is_far(const struct room *r)
{
	return r->inodes_free >= 8 * room_inodes(r) && r->bytes_free >= 8 * room_bytes(r);
}

static void reserve_look(struct timer *t)
{
	struct reserve *r = (struct reserve *)(void *)((char *)t - offsetof(struct reserve, look));
	bool is_any = false;

	roster_each(&r->core->workspaces, reserve_any_writer, &is_any);
	if (reserve_read(r->core, &r->room) < 0)
		return; /* there is no store yet: the next sandbox looks again */
	if (reserve_lacks(&r->room)) {
		reserve_is_short(r);
	} else if (r->room.inodes_free >= room_inodes(&r->room) + room_ballast(&r->room)) {
		r->is_low = false;
		if (!reserve_is_far(&r->room) || r->room.inodes < SMALL)
			reserve_hold(r, HOLD_KEPT);
	}
	if (is_any || r->n_counting > 0 || r->is_asking)
		timer_set(&r->core->timers, &r->look, reserve_is_far(&r->room) ? FAR_MS : NEAR_MS);
}

void reserve_watch(struct core *c)
{
	struct reserve *r = c->reserve;

	if (!r) {
		r = c->reserve = mem_alloc(sizeof *r);
		*r = (struct reserve){ .core = c, .look.fired = reserve_look };
	}
	r->is_settled = false;
	if (r->look.at_ms == 0)
		timer_set(&c->timers, &r->look, 0);
}

int reserve_check(const struct wsx *w, struct fail *f)
{
	const struct reserve *r = w->core->reserve;
	struct room now;

	if (!r || reserve_read(w->core, &now) < 0 || !reserve_lacks(&now) || !reserve_is_much(r, w))
		return 0;
	fail_set(f, FAIL_QUOTA,
	         "the store's file system lacks room, and this workspace holds %" PRIu64
	         " files: remove some, or the workspace",
	         w->held_files);
	f->is_retry_safe = true;
	return -1;
}

void reserve_close(struct core *c)
{
	if (c->reserve)
		timer_stop(&c->timers, &c->reserve->look);
	free(c->reserve);
	c->reserve = NULL;
}
