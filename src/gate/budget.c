#include "gate/budget.h"

void bucket_set(struct bucket *b, uint32_t most, uint32_t per_ms)
{
	uint64_t whole = (uint64_t)b->most * b->per_ms, next = (uint64_t)most * per_ms;

	if (whole > 0)
		b->spent = (uint64_t)((double)b->spent / (double)whole * (double)next);
	b->most = most;
	b->per_ms = per_ms;
}

/* One costs per_ms, and a millisecond brings back `most`. */
bool bucket_take(struct bucket *b, uint64_t now_ms)
{
	uint64_t passed = now_ms - b->at_ms, whole = (uint64_t)b->most * b->per_ms;

	if (b->most == 0)
		return true;
	b->at_ms = now_ms;
	b->spent =
	    passed >= b->per_ms || passed * b->most >= b->spent ? 0 : b->spent - passed * b->most;
	if (b->spent + b->per_ms > whole)
		return false;
	b->spent += b->per_ms;
	return true;
}
