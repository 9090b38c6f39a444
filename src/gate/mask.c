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
	if (m->purse)
		m->hits += purse_mask(m->purse, text, n);
}

void mask_feed(struct mask *m, struct span in, struct str *out)
{
	if (!m->purse || m->seen >= MASK_BYTES) {
		mask_flush(m, out);
		str_addn(out, in.at, in.len);
		return;
	}
	m->held.max = HELD_MAX;
	if (m->held.cap == 0)
		str_room(&m->held, 2ul * LEG_FULL); /* moved, it would be there twice */
	str_addn(&m->held, in.at, in.len);
	m->seen += in.len;
	m->hits += purse_mask(m->purse, m->held.data, m->held.len);
	size_t tail = purse_tail(m->purse, m->held.data, m->held.len);

	str_addn(out, m->held.data, m->held.len - tail);
	memmove(m->held.data, m->held.data + m->held.len - tail, tail);
	m->held.len = tail;
}

void mask_flush(struct mask *m, struct str *out)
{
	if (m->held.len > 0)
		str_addn(out, m->held.data, m->held.len);
	str_wipe(&m->held);
}
