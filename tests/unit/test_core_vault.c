#include <ctype.h>

#include "test_core.h"

/* What was told to whoever asked, as letters. */
static char told[64];

static void tell(char letter)
{
	size_t n = strlen(told);

	told[n] = letter;
	told[n + 1] = '\0';
}

/* The letter; a capital one when it was done. */
static void done(void *arg, const struct vault_done *d, const struct err *e)
{
	char letter = *(const char *)arg;

	CHECK((d == NULL) != (e == NULL));
	if (e)
		CHECK_INT(e->sys == VAULT_DIED || e->sys == ENOSPC || e->kind == ERR_LIMIT, 1);
	if (d)
		letter = (char)toupper(letter);
	tell(letter);
}

static void opened(void *arg)
{
	(void)arg;
	tell('+');
}

static void gone(void *arg, const struct err *e)
{
	CHECK(e->kind != ERR_NONE);
	tell('-');
	vault_close(*(struct vault **)arg);
	*(struct vault **)arg = NULL;
}

static struct vault *v;

static void start(void)
{
	dir_make();
	rig_start();
	told[0] = '\0';
	rig_deadly.times = 0;
	v = vault_open(&rig_core, &(struct vault_open){ .workspace = 7 },
	               (struct vault_owner){ opened, gone, &v });
}

static void stop(void)
{
	vault_close(v);
	rig_stop();
	dir_remove();
}

/* That much is told, and then no more. */
static void see(const char *want)
{
	RIG_UNTIL(strlen(told) >= strlen(want));
	rig_pass(5);
	CHECK_STR(told, want);
}

static void ask(enum vault_type type, const char *letter)
{
	const struct vault_packet p = { .head.type = type };

	vault_ask(v, &p, -1, done, (void *)(uintptr_t)letter);
}

TEST(what_is_asked_before_it_is_there_waits_and_goes_in_order)
{
	start();
	ask(V_SYNC, "a");
	ask(V_USAGE, "b");
	ask(V_SWEEP, "c");
	CHECK(!vault_is_idle(v));
	see("+ABC");
	CHECK(vault_is_idle(v));
	CHECK_INT(rig_n, 3);
	CHECK_INT(rig_list[0].type, V_SYNC);
	CHECK_INT(rig_list[2].type, V_SWEEP);
	CHECK_INT(rig_opened, 1);
	stop();
}

TEST(whoever_waits_is_told_of_its_death_and_the_owner_last)
{
	start();
	rig_deadly.type = V_USAGE;
	rig_deadly.times = 1;
	ask(V_SYNC, "a");
	ask(V_USAGE, "b");
	ask(V_SWEEP, "c");
	see("+Abc-");
	CHECK(!v);
	stop();
}

TEST(a_death_while_nothing_is_asked_is_seen_too)
{
	start();
	see("+");
	rig_end_keeper(&rig_keepers[0]);
	see("+-");
	stop();
}

TEST(one_that_cannot_be_started_fails_all)
{
	start();
	rig_is_full = true;
	ask(V_SYNC, "a");
	see("a-");
	rig_is_full = false;
	stop();
}

TEST(a_refusal_is_an_answer)
{
	start();
	rig_refused.type = V_SYNC;
	rig_refused.sys = ENOSPC;
	ask(V_SYNC, "a");
	ask(V_USAGE, "b");
	see("+aB");
	rig_refused.sys = 0;
	stop();
}

static void close_it(void *arg, const struct vault_done *d, const struct err *e)
{
	(void)arg;
	(void)d;
	tell(e ? 'x' : 'X');
	vault_close(v);
	v = NULL;
}

/* By whoever hears of an answer, or of its death. */
TEST(it_can_be_closed_from_within)
{
	for (int i = 0; i < 2; i++) {
		start();
		rig_deadly.type = V_SYNC;
		rig_deadly.times = i;
		const struct vault_packet p = { .head.type = V_SYNC };

		vault_ask(v, &p, -1, close_it, NULL);
		ask(V_USAGE, "b");
		/* Who waited behind an answer is told nothing; behind a death everybody is. */
		see(i == 0 ? "+X" : "+xb");
		stop();
	}
}

TEST(one_that_is_closed_before_it_came_is_told_of_nothing)
{
	start();
	ask(V_SYNC, "a");
	vault_close(v);
	v = NULL;
	rig_pass(50);
	CHECK_STR(told, "");
	stop();
}

/* A keeper of ours says nothing out of turn: one that does is not ours any more. */
TEST(an_answer_to_nothing_is_its_end)
{
	struct vault_packet p = { .head = { .type = V_DONE, .tag = 99 } };

	start();
	see("+");
	p.head.len = (uint32_t)(vault_size(&p) - sizeof p.head);
	CHECK(os_send(rig_keepers[0].watch.fd, &p, vault_size(&p), NULL, 0) > 0);
	see("+-");
	stop();
}
