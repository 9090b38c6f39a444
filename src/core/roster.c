#include "core/roster.h"

#define FIRST_BUCKETS 64

/* FNV-1a. Keys are random ids of our own making: nobody can choose collisions. */
static size_t bucket_of(const struct roster *t, const char *key)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 0x100000001b3u;
	return (size_t)(h % t->n_buckets);
}

static void put(struct roster *t, struct roster_entry *e)
{
	struct roster_entry **at = &t->buckets[bucket_of(t, e->key)];

	e->next = *at;
	*at = e;
}

static void grow(struct roster *t)
{
	struct roster old = *t;

	t->n_buckets = old.n_buckets ? old.n_buckets * 2 : FIRST_BUCKETS;
	t->buckets = mem_alloc(t->n_buckets * sizeof(void *));
	for (size_t i = 0; i < old.n_buckets; i++) {
		struct roster_entry *next;

		for (struct roster_entry *e = old.buckets[i]; e; e = next) {
			next = e->next;
			put(t, e);
		}
	}
	free(old.buckets);
}

void roster_add(struct roster *t, struct roster_entry *e)
{
	if (t->n >= t->n_buckets)
		grow(t);
	put(t, e);
	t->n++;
}

void roster_remove(struct roster *t, struct roster_entry *e)
{
	if (!e->key || t->n_buckets == 0)
		return;
	for (struct roster_entry **at = &t->buckets[bucket_of(t, e->key)]; *at; at = &(*at)->next) {
		if (*at == e) {
			*at = e->next;
			t->n--;
			return;
		}
	}
}

void *roster_find(const struct roster *t, const char *key)
{
	if (t->n_buckets == 0)
		return NULL;
	for (struct roster_entry *e = t->buckets[bucket_of(t, key)]; e; e = e->next)
		if (strcmp(e->key, key) == 0)
			return e;
	return NULL;
}

void roster_each(const struct roster *t, void (*found)(void *entry, void *arg), void *arg)
{
	for (size_t i = 0; i < t->n_buckets; i++) {
		struct roster_entry *next;

		for (struct roster_entry *e = t->buckets[i]; e; e = next) {
			next = e->next;
			found(e, arg);
		}
	}
}

void roster_done(struct roster *t)
{
	free(t->buckets);
	*t = (struct roster){ 0 };
}
