/*
 * check.c - rules between fields, and the defaults.
 */
#include "spec/opts.h"

#include <assert.h>

static uint64_t limit_default(enum limit_id id)
{
	const struct opt *o = opt_by_limit(id);
	uint64_t value = 0;
	struct err e;

	if (!o->dflt)
		return 0;
	int r = o->limit.unit->parse(o->dflt, &value, &e);

	assert(r == 0); /* the table is ours */
	(void)r;
	return value;
}

static uint64_t limit_effective(const struct spec *s, enum limit_id id)
{
	return s->limits[id].value ? s->limits[id].value : limit_default(id);
}

static int check_mounts(const struct spec *s, struct err *e)
{
	for (size_t i = 0; i < s->fs.len; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(s->fs.at[i].at, s->fs.at[k].at) == 0)
				return err_new(
				    e, ERR_INVALID,
				    "fs[%zu].at: two mounts at \"%s\"; the first is fs[%zu]", i,
				    quote(s->fs.at[i].at).text, k);
	return 0;
}

/* The scratch space is a tmpfs: it cannot hold more than the memory that it is made of. */
static int check_disk(const struct spec *s, struct err *e)
{
	uint64_t disk = s->limits[LIMIT_DISK].value;
	uint64_t mem = limit_effective(s, LIMIT_MEM);
	char disk_text[32], mem_text[32];

	if (!s->limits[LIMIT_DISK].named || disk <= mem)
		return 0;
	unit_size.print(disk, disk_text);
	unit_size.print(mem, mem_text);
	return err_new(e, ERR_INVALID,
	               "limits.disk: \"%s\" is larger than mem (%s%s), where the scratch space "
	               "lives; raise mem to %s or lower disk",
	               disk_text, mem_text, s->limits[LIMIT_MEM].named ? "" : ", the default",
	               disk_text);
}

int spec_check(const struct spec *s, struct err *e)
{
	if (check_mounts(s, e) < 0 || check_disk(s, e) < 0)
		return -1;
	return 0;
}

/* A scratch space that nobody asked for leaves half of the memory. */
static void halve_disk(struct spec *s)
{
	uint64_t half = s->limits[LIMIT_MEM].value / 2;

	if (!s->limits[LIMIT_DISK].named && s->limits[LIMIT_DISK].value > half)
		s->limits[LIMIT_DISK].value = half;
}

static void resolve_limits(struct spec *s)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (s->limits[i].value == 0)
			s->limits[i].value = limit_default((enum limit_id)i);
	halve_disk(s);
}

/* Gives the field of a row its default, the way a person would write it. */
static void resolve_row(struct spec *s, const struct opt *o)
{
	struct input in = { .arena = &s->arena };
	AUTO(json_decrefp) json_t *now = o->type->get(o, s);
	AUTO(json_decrefp) json_t *dflt = o->dflt ? json_string(o->dflt) : NULL;
	struct err e;

	if (!dflt || (now && (!json_is_array(now) || json_array_size(now) > 0)))
		return;
	int r = opt_set(&in, o, s, dflt, &e);

	assert(r == 0); /* the table is ours */
	(void)r;
}

/* A workspace that is named and mounted nowhere is at /work, unless something else is. */
static void resolve_workspace(struct spec *s)
{
	struct fs_entry entry = { .kind = FS_WORKSPACE, .at = "/work" };

	for (size_t i = 0; i < s->fs.len; i++)
		if (s->fs.at[i].kind == FS_WORKSPACE || strcmp(s->fs.at[i].at, entry.at) == 0)
			return;
	vec_push(&s->fs, entry);
}

void spec_resolve(struct spec *s)
{
	bool profile_named = s->profile_named;

	if (s->workspace)
		resolve_workspace(s);
	for (size_t i = 0; i < top_table.count; i++)
		resolve_row(s, &top_table.at[i]);
	s->profile_named = profile_named;
	resolve_limits(s);
	s->resolved = true;
}

/* ---- what the operator says ---- */

void spec_default(struct spec *s, const struct limit defaults[LIMIT_COUNT])
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (s->limits[i].value == 0)
			s->limits[i].value = defaults[i].value;
}

int spec_bound(struct spec *s, const struct limit most[LIMIT_COUNT], struct err *e)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		struct limit *l = &s->limits[i];
		char value[32], bound[32];

		if (most[i].value == 0 || (l->value > 0 && l->value <= most[i].value))
			continue;
		if (!l->named) {
			l->value = most[i].value;
			continue;
		}
		limit_text((enum limit_id)i, l->value, value);
		limit_text((enum limit_id)i, most[i].value, bound);
		return err_new(e, ERR_INVALID,
		               "limits.%s: \"%s\" is more than the operator allows, the most is %s",
		               limit_name((enum limit_id)i), value, bound);
	}
	halve_disk(s); /* memory may have become less */
	return 0;
}

bool spec_weaker(const struct spec *s, const char *field)
{
	for (size_t i = 0; i < s->allow_weaker.len; i++)
		if (strcmp(s->allow_weaker.at[i], field) == 0)
			return true;
	return false;
}
