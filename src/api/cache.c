/*
 * cache.c - the package cache: what is in it, less of it, whether it is whole.
 */
#include "core/cache.h"
#include "api/handlers.h"

#define PAGE 100

static void answered(void *arg, json_t *answer, const struct fail *f)
{
	struct call *c = arg;

	if (f)
		answer_fail(c, f);
	else
		answer_json(c, 200, json_incref(answer));
	call_unref(c);
}

static bool has_cache(struct call *c)
{
	struct fail f = { 0 };

	if (config_cache_bytes(c->api->core->config.net) > 0)
		return true;
	fail_set(&f, FAIL_CONFLICT, "there is no package cache: net.cache of the config is off");
	answer_fail(c, &f);
	return false;
}

void cache_list(struct call *c)
{
	struct store_page page = { 0 };
	struct fail f = { 0 };

	if (take_page(c, &page, &f) < 0) {
		answer_fail(c, &f);
		return;
	}
	if (!has_cache(c))
		return;
	json_t *ask = json_pack("{ss,sI}", "op", "list", "limit",
	                        (json_int_t)(page.limit ? page.limit : PAGE));

	if (page.cursor)
		json_object_set_new(ask, "after", json_string(page.cursor));
	cache_ask(c->api->core, ask, answered, call_ref(c));
}

void cache_gc(struct call *c)
{
	static const char *const known[] = { "max", "older_than", NULL };
	uint64_t max = UINT64_MAX, older_ms = UINT64_MAX;
	struct fail f = { 0 };

	if (members_known(c->body, known, &f) == 0 && member_size(c->body, "max", &max, &f) == 0 &&
	    member_duration(c->body, "older_than", &older_ms, &f) == 0 && max == UINT64_MAX &&
	    older_ms == UINT64_MAX)
		fail_set(&f, FAIL_INVALID, "max or older_than: how much may stay");
	if (f.code != FAIL_NONE) {
		answer_fail(c, &f);
		return;
	}
	if (!has_cache(c))
		return;
	json_t *ask = json_pack("{ss}", "op", "gc");

	if (max != UINT64_MAX)
		json_object_set_new(ask, "max", json_integer((json_int_t)(max & INT64_MAX)));
	if (older_ms != UINT64_MAX)
		json_object_set_new(ask, "older_ms",
		                    json_integer((json_int_t)(older_ms & INT64_MAX)));
	cache_ask(c->api->core, ask, answered, call_ref(c));
}

void cache_verify(struct call *c)
{
	if (has_cache(c))
		cache_ask(c->api->core, json_pack("{ss}", "op", "verify"), answered, call_ref(c));
}
