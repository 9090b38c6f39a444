/*
 * The n-th kernel call of the vault fails, or kills it. Whatever n is: what was there is there, and
 * the same order then does what it should. TEST_VAULT_EVERY=1 tries every n; else some of them.
 */
#include "test_vault.h"

#define CALLS_MAX 4000

static const char change[] = "echo more >>src/f4; rm -rf docs; mv src/moved src/again; mkdir a; "
			     "echo 1 >a/1; ln a/1 a/2; ln -s x a/l; rm new/n1; chmod 700 bin";

struct story {
	struct rig r;
	char *one, *two; /* what was to be seen at the two points */
};

static enum vault_type relayer(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_RELAYER } };

	p.relayer =
	    (struct vault_relayer){ .new_top = 101, .from = 1, .n_layers = 1, .layers = { 10 } };
	return rig_ask(r, p, -1);
}

static enum vault_type checkpoint(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_CHECKPOINT } };

	p.point = (struct vault_point){ .number = 2, .before = 1 };
	return rig_ask(r, p, -1);
}

static enum vault_type restore(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_RESTORE } };

	p.restore.to = 1;
	return rig_ask(r, p, -1);
}

static void story_begin(struct story *s, bool has_second)
{
	struct rig *r = &s->r;

	rig_begin(r);
	rig_checkpoint(r, 1, 0);
	s->one = rig_look(r);
	rig_do(r, change);
	s->two = rig_look(r);
	if (has_second)
		rig_checkpoint(r, 2, 1);
	rig_kill(r);
}

static void story_end(struct story *s)
{
	free(s->one);
	free(s->two);
	rig_end(&s->r);
}

static bool has_sound_store(struct rig *r)
{
	AUTO(fd_close) int fd = memfd_create("findings", MFD_CLOEXEC);

	if (rig_must(r, (struct vault_packet){ .head = { .type = V_VERIFY } }, fd).files == 0)
		return true;
	char said[1024];
	ssize_t n = pread(fd, said, sizeof said, 0);

	printf("# %.*s\n", (int)(n > 0 ? n : 0), said);
	return false;
}

/* With the fault; 1: the order was done, 0: it failed, -1: the vault was gone before it could. */
static int run_faulty(struct rig *r, char *fault, enum vault_type (*order)(struct rig *r))
{
	int done = -1;

	r->fault = fault;
	rig_spawn(r);
	if (rig_try_open(r) == V_OPENED) {
		rig_attach(r);
		rig_connect(r);
		enum vault_type t = order(r);
		done = t == V_DONE ? 1 : t == V_FAILED ? 0 : -1;
	}
	r->fault = NULL;
	rig_kill(r);
	return done;
}

static void open_sound(struct rig *r)
{
	rig_spawn(r);
	rig_open(r);
	CHECK(has_sound_store(r));
}

static void after_checkpoint(struct story *s)
{
	struct rig *r = &s->r;

	rig_see_same(s->two, rig_look(r), "a checkpoint changes nothing");
	CHECK_INT(checkpoint(r), V_DONE);
	rig_restore(r, 1, 2);
	rig_see_same(s->one, rig_look(r), "the first point");
	rig_restore(r, 2, 1);
	rig_see_same(s->two, rig_look(r), "the second point");
}

static void after_restore(struct story *s)
{
	struct rig *r = &s->r;

	rig_restore(r, 1, 2);
	rig_see_same(s->one, rig_look(r), "restored again");
	rig_restore(r, 2, 1);
	rig_see_same(s->two, rig_look(r), "and back");
}

static void after_relayer(struct story *s)
{
	struct rig *r = &s->r;
	struct vault_packet p = { .head = { .type = V_MOUNT } };

	rig_see_same(s->two, rig_look(r), "the old top");
	CHECK_INT(relayer(r), V_DONE);
	rig_detach(r);
	rig_send(r, r->launcher, &p, -1);
	CHECK_INT(rig_hear(r, r->launcher), V_OPENED);
	rig_attach(r);
	rig_see_same(s->one, rig_look(r), "the new top");
}

/* The first point goes; the second leans on it. Then what only the first held. */
static enum vault_type forget(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_REMOVE_POINTS } };

	p.points = (struct vault_points){ RIG_WORKSPACE, 1, 1 };
	enum vault_type t = rig_ask(r, p, -1);
	return t == V_DONE ? rig_ask(r, (struct vault_packet){ .head = { .type = V_SWEEP } }, -1)
	                   : t;
}

static void after_forget(struct story *s)
{
	struct rig *r = &s->r;

	rig_see_same(s->two, rig_look(r), "the tree");
	CHECK_INT(forget(r), V_DONE);
	rig_do(r, "rm -rf ./*");
	rig_restore(r, 2, 0);
	rig_see_same(s->two, rig_look(r), "the point that stays");
}

static enum vault_type flatten(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_FLATTEN } };

	p.flatten = (struct vault_flatten){ .number = 900, .n_layers = 1, .layers = { 10 } };
	return rig_ask(r, p, -1);
}

/* Over the flat tree there is what was over the other one. */
static void after_flatten(struct story *s)
{
	struct rig *r = &s->r;

	rig_see_same(s->two, rig_look(r), "the tree");
	CHECK_INT(flatten(r), V_DONE);
	rig_kill(r);
	r->open.top = 300;
	char *plain[2];
	for (size_t i = 0; i < COUNT(plain); i++, r->open.top++) {
		r->open.layers[0] = i == 0 ? 10 : 900;
		rig_spawn(r);
		rig_open(r);
		plain[i] = rig_look(r);
		rig_kill(r);
	}
	rig_see_same(plain[0], plain[1], "flat");
	free(plain[0]);
	rig_spawn(r);
	rig_open(r);
}

static const struct plot {
	const char *name;
	enum vault_type (*order)(struct rig *r);
	void (*after)(struct story *s);
	bool has_second;
} plots[] = {
	{ "checkpoint", checkpoint, after_checkpoint, false },
	{ "restore", restore, after_restore, true },
	{ "relayer", relayer, after_relayer, true },
	{ "forget", forget, after_forget, true },
	{ "flatten", flatten, after_flatten, true },
};

static void play(const struct plot *p, const char *how)
{
	const char *every = getenv("TEST_VAULT_EVERY");
	long step = every ? strtol(every, NULL, 10) : 37, n = 1 + (every ? 0 : getpid() % step);

	for (;; n += step) {
		struct story s;
		char fault[64];

		CHECK(n < CALLS_MAX);
		snprintf(fault, sizeof fault, "%s=%ld", how, n);
		story_begin(&s, p->has_second);
		int done = run_faulty(&s.r, fault, p->order);
		printf("# %s, %s: %d\n", p->name, fault, done);
		open_sound(&s.r);
		p->after(&s);
		story_end(&s);
		if (done == 1 && n > 300) /* beyond its last call */
			break;
	}
}

TEST(killed_in_a_checkpoint)
{
	play(&plots[0], "CAISSON_KILL_AT");
}

TEST(killed_in_a_restore)
{
	play(&plots[1], "CAISSON_KILL_AT");
}

TEST(killed_in_a_new_top)
{
	play(&plots[2], "CAISSON_KILL_AT");
}

TEST(a_call_fails_in_a_checkpoint)
{
	play(&plots[0], "CAISSON_FAIL_AT");
}

TEST(a_call_fails_in_a_restore)
{
	play(&plots[1], "CAISSON_FAIL_AT");
}

TEST(a_call_fails_in_a_new_top)
{
	play(&plots[2], "CAISSON_FAIL_AT");
}

TEST(killed_in_a_gc)
{
	play(&plots[3], "CAISSON_KILL_AT");
}

TEST(a_call_fails_in_a_gc)
{
	play(&plots[3], "CAISSON_FAIL_AT");
}

TEST(killed_in_a_flattening)
{
	play(&plots[4], "CAISSON_KILL_AT");
}

TEST(a_call_fails_in_a_flattening)
{
	play(&plots[4], "CAISSON_FAIL_AT");
}
