#include "core/evict.h"

static const char *const names[] = { "trash", "checkout", "files", "points" };
_Static_assert(COUNT(names) == EVICT_KINDS, "a kind has no name");

const char *evict_kind_name(enum evict_kind kind)
{
	return kind < EVICT_KINDS ? names[kind] : "?";
}

/* Without an overflow. */
static uint64_t percent(uint64_t of, uint64_t n)
{
	return of / 100 * n + of % 100 * n / 100;
}

struct evict_marks evict_marks(const struct config_store *config, uint64_t used)
{
	uint64_t high = config->high ? config->high : STORE_HIGH,
		 low = config->low ? config->low : STORE_LOW;

	return (struct evict_marks){ .used = used,
		                     .max = config->max,
		                     .high = percent(config->max, high),
		                     .low = percent(config->max, low) };
}

/* What keeps it, whatever the room is; NULL: nothing does. */
static const char *must_stay(const struct evict_item *i)
{
	const struct {
		bool is_so;
		const char *why;
	} reasons[] = {
		{ i->is_pinned, "it is pinned" },
		{ i->is_open, "somebody works with it" },
		{ i->bytes == 0, "it has no files of its own on disk" },
		{ i->is_closed && !i->is_saved, "what it is, is in no point that is on disk" },
	};

	for (size_t k = 0; k < COUNT(reasons) && i->kind == EVICT_TOP; k++)
		if (reasons[k].is_so)
			return reasons[k].why;
	return NULL;
}

/* The lowest goes first. */
static int rank(const struct evict_item *i)
{
	if (i->kind != EVICT_TOP)
		return 0;
	return i->is_trashed ? 1 : i->is_changed ? 3 : 2;
}

static const char *const reasons_to_go[] = {
	"no workspace stands on it: it is made again when one is to",
	"it is in the trash, and its last point has all of it",
	"it has no changes: its files are made again at its next use",
	"its last point has all of it: its files are made again at its next use",
};

static const char *why_going(const struct evict_item *i)
{
	if (i->kind == EVICT_TOP && !i->is_closed)
		return "it is closed and kept as a point: its files are made again at its next use";
	return reasons_to_go[rank(i)];
}

static bool is_before(const struct evict_item *a, const struct evict_item *b)
{
	int x = rank(a), y = rank(b);

	return x != y ? x < y : a->used_ms < b->used_ms;
}

/* The next to go, or NULL. */
static struct evict_item *next(struct evict_item *items, size_t n)
{
	struct evict_item *first = NULL;

	for (size_t k = 0; k < n; k++)
		if (!items[k].why && (!first || is_before(&items[k], first)))
			first = &items[k];
	return first;
}

uint64_t evict_plan(struct evict_item *items, size_t n, const struct evict_marks *marks)
{
	bool is_high = marks->max > 0 && marks->used > marks->high;
	uint64_t freed = 0;
	struct evict_item *i;

	for (size_t k = 0; k < n; k++) {
		i = &items[k];
		i->why = must_stay(i);
		i->is_going = false;
		if (i->kind == EVICT_TRASH || i->kind == EVICT_POINTS) {
			i->is_going = true;
			i->why = i->kind == EVICT_TRASH ? "its time in the trash is over"
			                                : "no history leads through them";
			freed += i->bytes;
		} else if (!i->why && !is_high) {
			i->why = marks->max ? "the store is below its high mark"
			                    : "the store has no bound";
		}
	}
	while (is_high && marks->used > marks->low + freed && (i = next(items, n))) {
		i->is_going = true;
		i->why = why_going(i);
		freed += i->bytes;
	}
	for (size_t k = 0; k < n; k++)
		if (!items[k].why)
			items[k].why = "there is room enough without it";
	return freed;
}
