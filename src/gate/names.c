#include "gate/names.h"

#include <sys/mman.h>

#include "os/extent.h"
#include "os/file.h"
#include "wire/hostname.h"

#define NAMES_MAGIC 0x3173656d616e7363ull /* "csnames1" */
#define NAMES_VERSION 1u
#define NAMES_FIRST 0xc6120002u /* 198.18.0.2 */
#define ENTRY_SIZE 256
#define SLOTS_MIN 256

struct names_map {
	uint64_t magic; /* written last of the head */
	uint32_t version;
	uint32_t count; /* written last of an entry */
	uint64_t seq;   /* the last one that was given */
	uint64_t bytes[2];
	uint8_t zero[24];
	char at[NAMES_MAX][ENTRY_SIZE];
};
_Static_assert(GATE_NAME_SIZE <= ENTRY_SIZE, "a name fits");

/* ---- index ---- */

/* Seeded with where the map lies: whoever chooses names does not choose slots. */
static size_t slot_of(const struct names *t, const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull ^ (uintptr_t)t->map;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	return (size_t)(h ^ h >> 32) & (t->n_slots - 1);
}

/* The slot of the name, or the free one where it belongs. */
static uint32_t *slot_find(const struct names *t, const char *name)
{
	size_t i = slot_of(t, name);

	while (t->slots[i] && strcmp(t->map->at[t->slots[i] - 1], name) != 0)
		i = (i + 1) & (t->n_slots - 1);
	return &t->slots[i];
}

/* At most half full. */
static void slots_grow(struct names *t, size_t entries)
{
	size_t n = t->n_slots ? t->n_slots : SLOTS_MIN;

	while (n < 2 * entries)
		n *= 2;
	if (n == t->n_slots)
		return;
	free(t->slots);
	t->slots = mem_alloc(n * sizeof *t->slots);
	memset(t->slots, 0, n * sizeof *t->slots);
	t->n_slots = n;
	for (uint32_t i = 0; i < t->map->count; i++)
		*slot_find(t, t->map->at[i]) = i + 1;
}

/* ---- the shared part ---- */

static int map_open(int memfd, struct names_map **out, struct err *e)
{
	struct stat st = { 0 };
	void *at = NULL;
	int r = os_fstatat(memfd, "", &st, AT_EMPTY_PATH);

	if (r == 0 && st.st_size == 0) {
		r = os_ftruncate(memfd, sizeof(struct names_map));
		st.st_size = sizeof(struct names_map);
	}
	if (r < 0)
		return err_sys(e, -r, "size of the table of names");
	if (st.st_size != sizeof(struct names_map))
		return err_new(e, ERR_INTERNAL, "the table of names has another size");
	r = os_map_shared(memfd, sizeof(struct names_map), &at);
	if (r < 0)
		return err_sys(e, -r, "map the table of names");
	*out = at;
	return 0;
}

static bool is_entry(const char at[ENTRY_SIZE])
{
	const char *end = memchr(at, '\0', GATE_NAME_SIZE);
	char name[GATE_NAME_SIZE];

	return end && hostname_read(at, (size_t)(end - at), name) && strcmp(name, at) == 0;
}

/* Also fills the index. */
static int map_check(struct names *t, struct err *e)
{
	struct names_map *m = t->map;

	if (m->magic == 0 && m->count == 0) {
		m->version = NAMES_VERSION;
		__atomic_store_n(&m->magic, NAMES_MAGIC, __ATOMIC_RELEASE);
	}
	if (m->magic != NAMES_MAGIC || m->version != NAMES_VERSION || m->count > NAMES_MAX ||
	    m->seq > INT64_MAX)
		return err_new(e, ERR_INTERNAL, "the table of names is damaged");
	uint32_t count = m->count;

	for (uint32_t i = 0; i < count; i++)
		if (!is_entry(m->at[i]))
			return err_new(e, ERR_INTERNAL, "entry %u of the table is no name", i);
	t->n_slots = 0;
	slots_grow(t, count);
	for (uint32_t i = 0; i < count; i++)
		if (*slot_find(t, m->at[i]) != i + 1)
			return err_new(e, ERR_INTERNAL, "entry %u of the table is there twice", i);
	return 0;
}

int names_open(struct names *t, int memfd, struct err *e)
{
	AUTO(names_done) struct names made = { 0 };

	if (map_open(memfd, &made.map, e) < 0 || map_check(&made, e) < 0)
		return -1;
	*t = made;
	made = (struct names){ 0 };
	return 0;
}

void names_done(struct names *t)
{
	if (t->map)
		(void)munmap(t->map, sizeof *t->map); /* cannot fail: it is mapped */
	free(t->slots);
	*t = (struct names){ 0 };
}

static void address_of(uint32_t entry, uint8_t out[4])
{
	uint32_t n = NAMES_FIRST + entry;

	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(n >> (24 - 8 * i));
}

bool names_give(struct names *t, const char *name, uint8_t out[4])
{
	uint32_t *slot = slot_find(t, name);
	uint32_t entry = t->map->count;

	if (*slot) {
		address_of(*slot - 1, out);
		return true;
	}
	if (entry >= NAMES_MAX || strlen(name) >= GATE_NAME_SIZE)
		return false;
	memcpy(t->map->at[entry], name, strlen(name) + 1);
	__atomic_store_n(&t->map->count, entry + 1, __ATOMIC_RELEASE);
	*slot = entry + 1;
	slots_grow(t, entry + 2);
	address_of(entry, out);
	return true;
}

bool names_has(const struct names *t, const char *name)
{
	return *slot_find(t, name);
}

const char *names_find(const struct names *t, const uint8_t addr[4])
{
	uint32_t n =
	    (uint32_t)addr[0] << 24 | (uint32_t)addr[1] << 16 | (uint32_t)addr[2] << 8 | addr[3];

	return n - NAMES_FIRST < t->map->count ? t->map->at[n - NAMES_FIRST] : NULL;
}

size_t names_count(const struct names *t)
{
	return t->map->count;
}

uint64_t names_next_seq(struct names *t)
{
	return __atomic_add_fetch(&t->map->seq, 1, __ATOMIC_RELAXED);
}

uint64_t *names_bytes(struct names *t, bool is_down)
{
	return &t->map->bytes[is_down];
}
