#include "core/quota.h"

#include "core/process.h"
#include "test.h"

enum { BOXES = 4, PROCESSES = 3 };

static struct core core;
static struct sbx *boxes[BOXES];

/* Two of t1 that live, one of t1 that is stopped, one of t2. */
static void fill(void)
{
	static const enum sandbox_state states[BOXES] = { SANDBOX_RUNNING, SANDBOX_CREATING,
		                                          SANDBOX_STOPPED, SANDBOX_RUNNING };

	for (size_t i = 0; i < BOXES; i++) {
		struct sbx *s = boxes[i] = mem_alloc(sizeof *s);

		snprintf(s->id, sizeof s->id, "sb_%zu", i);
		snprintf(s->tenant, sizeof s->tenant, "%s", i < 3 ? "t1" : "t2");
		s->entry.key = s->id;
		s->core = &core;
		s->state = states[i];
		s->needs = (struct quota){ .of = { [QUOTA_SANDBOXES] = 1,
			                           [QUOTA_CPU] = 2000,
			                           [QUOTA_MEM] = 1u << 30,
			                           [QUOTA_PIDS] = 64,
			                           [QUOTA_DISK] = 1u << 20 } };
		roster_add(&core.sandboxes, &s->entry);
	}
	for (size_t i = 0; i < PROCESSES; i++) {
		struct px *p = mem_alloc(sizeof *p);

		p->next = boxes[0]->processes;
		boxes[0]->processes = p;
	}
}

static void empty(void)
{
	for (struct px *p = boxes[0]->processes, *next; p; p = next) {
		next = p->next;
		free(p);
	}
	roster_done(&core.sandboxes);
	for (size_t i = 0; i < BOXES; i++)
		free(boxes[i]);
}

TEST(sums_are_of_one_tenant_and_of_what_lives)
{
	static const struct {
		const char *tenant;
		struct quota sum;
	} rows[] = {
		{ "t1", { .of = { 3, 3, 4000, 2ull << 30, 128, 3u << 20 } } },
		{ "t2", { .of = { 1, 0, 2000, 1u << 30, 64, 1u << 20 } } },
		{ "nobody", { .of = { 0 } } },
	};

	fill();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct quota sum;

		quota_used(&core, rows[i].tenant, &sum);
		CHECK_INT(memcmp(&sum, &rows[i].sum, sizeof sum), 0);
	}
	empty();
}

TEST(each_ceiling_holds)
{
	static const struct {
		enum quota_id id;
		uint64_t max;
		const char *says; /* NULL: there is room for one more */
	} rows[] = {
		{ QUOTA_SANDBOXES, 3, "sandboxes: 1 more with 3 in use, and the quota is 3" },
		{ QUOTA_SANDBOXES, 4, NULL },
		{ QUOTA_PROCESSES, 3, "processes: 1 more with 3 in use, and the quota is 3" },
		{ QUOTA_PROCESSES, 4, NULL },
		{ QUOTA_CPU, 5999, "cpu: 2 more with 4 in use, and the quota is 5.999" },
		{ QUOTA_CPU, 6000, NULL },
		{ QUOTA_MEM, 1u << 30, "mem: 1g more with 2g in use, and the quota is 1g" },
		{ QUOTA_MEM, 3ull << 30, NULL },
		{ QUOTA_PIDS, 191, "pids: 64 more with 128 in use, and the quota is 191" },
		{ QUOTA_PIDS, 192, NULL },
		{ QUOTA_DISK, 3u << 20, "disk: 1m more with 3m in use, and the quota is 3m" },
		{ QUOTA_DISK, 4u << 20, NULL },
	};

	fill();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct quota more = boxes[0]->needs;
		struct fail f = { 0 };

		more.of[QUOTA_PROCESSES] = 1;
		core.config.quota = (struct quota){ 0 };
		core.config.quota.of[rows[i].id] = rows[i].max;
		CHECK_INT(quota_admit(&core, "t1", &more, &f), rows[i].says ? -1 : 0);
		CHECK_STR(f.detail, rows[i].says ? rows[i].says : "");
		CHECK_INT(f.code, rows[i].says ? FAIL_QUOTA : FAIL_NONE);
	}
	empty();
}

/* What is counted already is not counted again; what lives again counts. */
TEST(a_stopped_one_needs_room_to_live_again)
{
	struct fail f = { 0 };

	fill();
	core.config.quota = (struct quota){ .of = { [QUOTA_SANDBOXES] = 3, [QUOTA_DISK] = 1 } };
	CHECK_INT(quota_readmit(boxes[2], &f), 0);
	core.config.quota = (struct quota){ .of = { [QUOTA_PIDS] = 128 } };
	CHECK_INT(quota_readmit(boxes[0], &f), 0);
	CHECK_INT(quota_readmit(boxes[2], &f), -1);
	CHECK_STR(f.detail, "pids: 64 more with 128 in use, and the quota is 128");
	empty();
}
