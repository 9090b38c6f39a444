#include "gate/mask.h"

#include "gate/leg.h"

#define HELD_MAX (4u << 20) /* one read, and what was held */

void mask_done(struct mask *m)
{
	str_wipe(&m->held);
	purse_unref(m->purse);
	m->purse = NULL;
}

void mask_begin(struct mask *m, struct purse *p)
{
	mask_done(m);
	*m = (struct mask){ .purse = p ? purse_ref(p) : NULL };
}

void mask_text(struct mask *m, char *text, size_t n)
{
	size_t unused;

	if (m->purse)
		m->hits += purse_scan(m->purse, text, n, &unused);
}

/* The first `n` bytes of what is held are nobody's concern any more. */
static void mask_pass(struct mask *m, size_t n, struct str *out)
{
	if (n > m->passed)
		str_addn(out, m->held.data + m->passed, n - m->passed);
	m->passed = m->passed > n ? m->passed - n : 0;
	memmove(m->held.data, m->held.data + n, m->held.len - n);
	m->held.len -= n;
}

void mask_feed(struct mask *m, struct span in, struct str *out)
{
	size_t open;

	if (!m->purse) {
		str_addn(out, in.at, in.len);
		return;
	}
	m->held.max = HELD_MAX;
	if (m->held.cap == 0)
		str_room(&m->held, 2ul * LEG_FULL); /* moved, it would be there twice */
	str_addn(&m->held, in.at, in.len);
	m->hits += purse_scan(m->purse, m->held.data, m->held.len, &open);
	mask_pass(m, open, out);
}

size_t mask_waiting(const struct mask *m)
{
	return m->held.len - m->passed;
}

/* As if nothing followed: a value whose end could be the beginning of a code is whole then. */
static void mask_settle(struct mask *m)
{
	size_t unused;

	str_add(&m->held, "\n");
	m->hits += purse_scan(m->purse, m->held.data, m->held.len, &unused);
	m->held.len--;
}

void mask_let_go(struct mask *m, struct str *out)
{
	if (mask_waiting(m) == 0)
		return;
	mask_settle(m);
	str_addn(out, m->held.data + m->passed, mask_waiting(m));
	m->passed = m->held.len;
}

void mask_flush(struct mask *m, struct str *out)
{
	mask_let_go(m, out);
	str_wipe(&m->held);
	m->passed = 0;
}
