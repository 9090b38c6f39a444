/*
 * template.c - names, tags and ends of templates; template_build.c makes them.
 */
#include "core/template-internal.h"

#include <ctype.h>
#include <sys/random.h>

#include "base/hex.h"
#include "core/image.h"

#define NAME_MAX_BYTES 128
#define TAG_MAX_BYTES 128

static bool is_word(const char *text, size_t len, size_t max)
{
	if (len == 0 || len > max || !isalnum((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return false;
	return true;
}

bool template_owns(const char *image)
{
	return strncmp(image, TEMPLATE_FILES, strlen(TEMPLATE_FILES)) == 0 ||
	       strncmp(image, TEMPLATE_IMAGE, strlen(TEMPLATE_IMAGE)) == 0;
}

bool template_name_is(const char *text, size_t len)
{
	return is_word(text, len, NAME_MAX_BYTES);
}

bool template_tag_is(const char *text, size_t len)
{
	return is_word(text, len, TAG_MAX_BYTES);
}

/* As a UUID of version 4, since clients read it as one. */
static void make_build_id(char out[TEMPLATE_ID_SIZE])
{
	uint8_t random[16];
	char hex[2 * sizeof random + 1];

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		abort(); /* the kernel's generator does not fail once it is up */
	random[6] = (random[6] & 0x0f) | 0x40;
	random[8] = (random[8] & 0x3f) | 0x80;
	hex_print(random, sizeof random, hex);
	snprintf(out, TEMPLATE_ID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
	         hex + 16, hex + 20);
}

/* ---- look ---------------------------------------------------------------------------- */

int template_find(struct core *c, const char *tenant, const char *name, struct arena *a,
                  struct template_row *out, struct fail *f)
{
	size_t n = strcspn(name, ":");
	const char *bare = arena_strndup(a, name, n);
	struct err e = { 0 };
	int r = id_is(bare, n, "tp") ? store_template_get(c->store, tenant, bare, a, out, &e)
	                             : store_template_by_name(c->store, tenant, bare, a, out, &e);

	if (r == 0)
		return 0;
	if (e.kind == ERR_NOT_FOUND)
		return fail_set(f, FAIL_NOT_FOUND, "template '%.64s' not found", name);
	return fail_err(f, &e);
}

int template_made(struct core *c, const char *tenant, const char *name, struct arena *a,
                  struct build_row *out, struct fail *f)
{
	const char *tag = strchr(name, ':');
	struct template_row row;
	struct build_row build;
	struct err e = { 0 };

	if (template_find(c, tenant, name, a, &row, f) < 0)
		return -1;
	if (store_build_by_tag(c->store, row.id, tag ? tag + 1 : TEMPLATE_TAG, a, &build, &e) < 0)
		return e.kind == ERR_NOT_FOUND
		           ? fail_set(f, FAIL_NOT_FOUND,
		                      "template '%.64s' has no build that is ready", name)
		           : fail_err(f, &e);
	*out = build;
	return 0;
}

/* ---- begin --------------------------------------------------------------------------- */

int template_begin(struct core *c, struct template_new *t, struct store_call call, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	AUTO(freep) char *tags = json_dumps(t->tags, JSON_COMPACT);
	struct template_row row;
	struct err e = { 0 };
	int r = store_template_by_name(c->store, t->tenant, t->name, &a, &row, &e);

	if (r < 0 && e.kind != ERR_NOT_FOUND)
		return fail_err(f, &e);
	if (r < 0)
		id_make(t->template, "tp");
	else
		snprintf(t->template, sizeof t->template, "%s", row.id);
	make_build_id(t->build);
	const struct template_row new = {
		.id = t->template, .tenant = t->tenant, .name = t->name, .created_ms = core_now_ms()
	};
	const struct build_row build = { .id = t->build,
		                         .tenant = t->tenant,
		                         .template = t->template,
		                         .state = BUILD_WAITING,
		                         .tags = tags,
		                         .created_ms = core_now_ms() };

	if ((r < 0 && store_template_insert(c->store, &new, (struct store_call){ 0 }, &e) < 0) ||
	    store_build_insert(c->store, &build, call, &e) < 0)
		return fail_err(f, &e);
	return 0;
}

/* ---- end ----------------------------------------------------------------------------- */

/* Builds of it that are under way notice it, and what they have made goes with them. */
static void end_builds(struct core *c, const char *id)
{
	for (const struct template_build *b = c->builds; b; b = b->next) {
		struct sbx *s =
		    strcmp(b->template, id) == 0 ? roster_find(&c->sandboxes, b->sandbox) : NULL;

		if (s)
			sbx_end_after(s, AT_END_DELETE);
	}
}

int template_delete(struct core *c, const char *tenant, const char *id, struct store_call call,
                    struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct build_list all;
	struct fail ignored;
	struct err e = { 0 };

	if (store_build_list(c->store, id, &a, &all, &e) < 0)
		return fail_err(f, &e);
	for (size_t i = 0; i < all.n; i++) /* all of it, or nothing */
		if (all.rows[i].image && image_check_unused(c, tenant, all.rows[i].image, f) < 0)
			return -1;
	if (store_template_drop(c->store, tenant, id, call, &e) < 0)
		return fail_err(f, &e);
	end_builds(c, id);
	for (size_t i = 0; i < all.n; i++) {
		if (all.rows[i].state == BUILD_BUILDING)
			continue; /* its own end does it */
		if (all.rows[i].image)
			(void)!image_retire(c, tenant, all.rows[i].image, &ignored);
		template_discard(c, tenant, all.rows[i].workspace);
	}
	return 0;
}
