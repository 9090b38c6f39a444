#include "core/expire.h"

#include "core/sandbox-internal.h"
#include "unit/test_core.h"

/* One whose time is over, and whose monitor the test plays. */
static struct sbx *late_one(uint32_t life, bool can_freeze)
{
	struct sbx *s = sbx_new(&rig_core);
	int fds[2];

	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	id_make(s->id, "sb");
	s->entry.key = s->id;
	snprintf(s->tenant, sizeof s->tenant, "t1");
	s->state = SANDBOX_RUNNING;
	s->life = life;
	s->expires_ms = core_now_ms() - 1;
	CHECK_INT(link_open(&s->link, &fds[0]), 0);
	s->link.ready.can_freeze = can_freeze;
	roster_add(&rig_core.sandboxes, &s->entry);
	expire_start(&rig_core);
	return s;
}

TEST(one_that_cannot_be_frozen_now_is_not_forgotten)
{
	dir_make();
	rig_start();
	struct sbx *s = late_one(LIFE_PAUSE, true);

	RIG_UNTIL(s->change.is_busy);
	CHECK(s->expires_ms > 0); /* nobody has said that it stands still */
	sbx_on_frozen(s, true, EIO);
	CHECK(!s->change.is_busy && s->state == SANDBOX_RUNNING);
	CHECK(s->expires_ms > 0);
	RIG_UNTIL(s->change.is_busy); /* it is asked again */
	sbx_change_end(s, NULL);
	CHECK_INT(s->expires_ms, 0);
	sbx_free(s);
	rig_stop();
	dir_remove();
}

TEST(where_nothing_can_be_frozen_its_files_stay_and_what_runs_does_not)
{
	dir_make();
	rig_start();
	struct sbx *s = late_one(LIFE_PAUSE, false);

	RIG_UNTIL(s->state != SANDBOX_RUNNING);
	CHECK_INT(s->state, SANDBOX_STOPPING);
	sbx_free(s);
	rig_stop();
	dir_remove();
}
