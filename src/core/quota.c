#include "core/quota.h"

#include "core/process.h"
#include "store/images.h"
#include "store/workspaces.h"

struct quota quota_needs(const struct spec *s)
{
	return (struct quota){ .of = { [QUOTA_SANDBOXES] = 1,
		                       [QUOTA_CPU] = s->limits[LIMIT_CPU].value,
		                       [QUOTA_MEM] = s->limits[LIMIT_MEM].value,
		                       [QUOTA_PIDS] = s->limits[LIMIT_PIDS].value,
		                       [QUOTA_DISK] = s->limits[LIMIT_DISK].value } };
}

struct count {
	const char *tenant;
	struct quota *sum;
};

static bool is_kept_by_dead(enum quota_id id)
{
	return id == QUOTA_SANDBOXES || id == QUOTA_DISK;
}

static void count_one(void *entry, void *arg)
{
	const struct sbx *s = entry;
	struct count *n = arg;

	if (s->is_spent || s->is_service || strcmp(s->tenant, n->tenant) != 0)
		return;
	for (enum quota_id i = 0; i < QUOTA_COUNT; i++)
		if (is_kept_by_dead(i) || sandbox_state_is_live(s->state))
			n->sum->of[i] += s->needs.of[i];
	for (const struct px *p = s->processes; p; p = p->next)
		n->sum->of[QUOTA_PROCESSES] += !p->has_end;
}

void quota_used(struct core *c, const char *tenant, struct quota *out)
{
	struct count n = { tenant, out };

	struct err e = { 0 };
	int64_t images = 0;

	*out = (struct quota){ 0 };
	roster_each(&c->sandboxes, count_one, &n);
	uint64_t workspaces = 0;

	if (c->store && store_workspace_count(c->store, tenant, &workspaces, &e) == 0)
		out->of[QUOTA_WORKSPACES] = workspaces;
	if (c->store && store_image_bytes(c->store, tenant, &images, &e) == 0)
		out->of[QUOTA_DISK] += (uint64_t)images;
}

static int refuse(const struct core *c, enum quota_id id, const uint64_t amounts[2], struct fail *f)
{
	char more[32], used[32], bound[32];

	quota_text(id, amounts[0], more);
	quota_text(id, amounts[1], used);
	quota_text(id, c->config.quota.of[id], bound);
	fail_set(f, FAIL_QUOTA, "%s: %s more with %s in use, and the quota is %s", quota_name(id),
	         more, used, bound);
	f->is_retry_safe = true;
	return -1;
}

int quota_admit(struct core *c, const char *tenant, const struct quota *more, struct fail *f)
{
	struct quota used;
	uint64_t asked = 0;

	for (enum quota_id i = 0; i < QUOTA_COUNT; i++)
		asked |= c->config.quota.of[i] ? more->of[i] : 0;
	if (!asked) /* of every command: no need to count where there is no bound */
		return 0;
	quota_used(c, tenant, &used);
	for (enum quota_id i = 0; i < QUOTA_COUNT; i++) {
		uint64_t max = c->config.quota.of[i],
			 room = max > used.of[i] ? max - used.of[i] : 0;

		if (max > 0 && more->of[i] > room)
			return refuse(c, i, (uint64_t[]){ more->of[i], used.of[i] }, f);
	}
	return 0;
}

int quota_readmit(struct sbx *s, struct fail *f)
{
	struct quota more = { 0 };

	for (enum quota_id i = 0; i < QUOTA_COUNT && !sandbox_state_is_live(s->state); i++)
		more.of[i] = is_kept_by_dead(i) ? 0 : s->needs.of[i];
	return quota_admit(s->core, s->tenant, &more, f);
}
