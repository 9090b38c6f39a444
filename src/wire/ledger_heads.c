#include "wire/ledger_heads.h"

#define SIZE_MIN 64

/* FNV-1a. Ids are ours and random: nobody chooses who collides. */
static size_t place_of(const struct ledger_heads *h, struct span sandbox)
{
	uint64_t v = 0xcbf29ce484222325u;

	for (size_t i = 0; i < sandbox.len; i++)
		v = (v ^ (unsigned char)sandbox.at[i]) * 0x100000001b3u;
	return (size_t)(v ^ v >> 32) & (h->size - 1);
}

/* Its place, or the free one where it would be. */
static size_t look(const struct ledger_heads *h, struct span sandbox)
{
	size_t i = place_of(h, sandbox);

	while (h->at[i].sandbox[0] && !span_is(sandbox, h->at[i].sandbox))
		i = (i + 1) & (h->size - 1);
	return i;
}

struct ledger_head *ledger_heads_find(struct ledger_heads *h, struct span sandbox)
{
	size_t i = h->n ? look(h, sandbox) : 0;

	return h->n && h->at[i].sandbox[0] ? &h->at[i] : NULL;
}

static void grow(struct ledger_heads *h)
{
	struct ledger_heads more = { .size = h->size ? h->size * 2 : SIZE_MIN, .n = h->n };

	more.at = mem_alloc(more.size * sizeof *more.at);
	memset(more.at, 0, more.size * sizeof *more.at);
	for (size_t i = 0; i < h->size; i++)
		if (h->at[i].sandbox[0])
			more.at[look(&more, span_of(h->at[i].sandbox))] = h->at[i];
	free(h->at);
	*h = more;
}

struct ledger_head *ledger_heads_take(struct ledger_heads *h, struct span sandbox)
{
	if (h->n * 2 >= h->size)
		grow(h);
	struct ledger_head *head = &h->at[look(h, sandbox)];

	if (head->sandbox[0])
		return head;
	*head = (struct ledger_head){ .hash = LEDGER_ZERO };
	snprintf(head->sandbox, sizeof head->sandbox, "%.*s", (int)sandbox.len, sandbox.at);
	h->n++;
	return head;
}

/* Those behind it may have been pushed on by it: they are placed anew. */
void ledger_heads_drop(struct ledger_heads *h, struct span sandbox)
{
	struct ledger_head *head = ledger_heads_find(h, sandbox);

	if (!head)
		return;
	head->sandbox[0] = '\0';
	h->n--;
	for (size_t i = (size_t)(head - h->at + 1) & (h->size - 1); h->at[i].sandbox[0];
	     i = (i + 1) & (h->size - 1)) {
		struct ledger_head moved = h->at[i];

		h->at[i].sandbox[0] = '\0';
		h->at[look(h, span_of(moved.sandbox))] = moved;
	}
}

void ledger_heads_clear(struct ledger_heads *h)
{
	free(h->at);
	*h = (struct ledger_heads){ 0 };
}
