#include "core/pace.h"

static void pace_begin(struct pace *p, struct paced *one)
{
	one->state = PACED_ENDING;
	p->n_ending++;
	p->begin(one);
}

void pace_join(struct pace *p, struct paced *one)
{
	struct paced **at = &p->first;

	if (one->state != PACED_NOT)
		return;
	if (p->n_ending < PACE_MAX) {
		pace_begin(p, one);
		return;
	}
	while (*at)
		at = &(*at)->next;
	*at = one;
	one->next = NULL;
	one->state = PACED_WAITING;
}

static void pace_unlink(struct pace *p, struct paced *one)
{
	struct paced **at = &p->first;

	while (*at != one)
		at = &(*at)->next;
	*at = one->next;
}

void pace_leave(struct pace *p, struct paced *one)
{
	if (one->state == PACED_WAITING)
		pace_unlink(p, one);
	else if (one->state == PACED_ENDING)
		p->n_ending--;
	one->state = PACED_NOT;
	while (p->first && p->n_ending < PACE_MAX) { /* its begin() may leave at once */
		struct paced *next = p->first;

		p->first = next->next;
		pace_begin(p, next);
	}
}
