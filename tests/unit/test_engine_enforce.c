#include "engine/enforce.h"

#include "test.h"

/* ---- hosts of the test's own ------------------------------------------------------- */

enum { ALL = 1u << CG_CPU | 1u << CG_MEMORY | 1u << CG_PIDS };

static const struct cgroup no_cgroup;
static const struct cgroup cgroup_v2 = { .trees = { { .is_v2 = true, .controllers = ALL } },
	                                 .n_trees = 1 };
static const struct cgroup cgroup_v1 = { .trees = { { .controllers = 1u << CG_CPU },
	                                            { .controllers = 1u << CG_MEMORY },
	                                            { .controllers = 1u << CG_PIDS },
	                                            { .is_shared = true } },
	                                 .n_trees = 4 };
static const struct cgroup cgroup_pids = {
	.trees = { { .is_v2 = true, .controllers = 1u << CG_PIDS } }, .n_trees = 1
};

static const struct enforce_host root_v1 = { true, &cgroup_v1, WALLS_ALL, false, 0 };
static const struct enforce_host root_v2 = { true, &cgroup_v2, WALLS_ALL, false, 0 };
static const struct enforce_host root_none = { true, &no_cgroup, WALLS_ALL, false, 0 };
static const struct enforce_host user_v2 = { false, &cgroup_v2, WALLS_ALL, false, 0 };
static const struct enforce_host user_none = { false, &no_cgroup, WALLS_ALL, false, 0 };
static const struct enforce_host user_pids = { false, &cgroup_pids, WALLS_ALL, false, 0 };

/* ---- specs from flags -------------------------------------------------------------- */

static void read_spec(struct spec *s, const char *const *flags)
{
	struct err e = { 0 };

	spec_init(s);
	for (; *flags; flags += 2)
		if (spec_flag(s, flags[0], flags[1], &e) < 0)
			CHECK_STR(e.msg, "");
	if (spec_check(s, &e) < 0)
		CHECK_STR(e.msg, "");
	spec_resolve(s);
}
#define FLAGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void check_refused(const struct spec *s, const struct enforce_host *h, const char *want)
{
	struct err e = { 0 };

	CHECK_INT(enforce_check(s, h, &e), -1);
	CHECK_STR(err_kind_name(e.kind), "unenforceable");
	CHECK_STR(e.msg, want);
}

static void check_taken(const struct spec *s, const struct enforce_host *h)
{
	struct err e = { 0 };

	if (enforce_check(s, h, &e) < 0)
		CHECK_STR(e.msg, "");
}

/* The row of a field; fails when it has none, or two. */
static struct enforce_row row_of(const struct spec *s, const struct enforce_host *h,
                                 const char *field)
{
	struct enforce_row rows[ENFORCE_ROWS_MAX], found = { 0 };
	size_t n = enforce_rows(s, h, rows);
	int count = 0;

	CHECK(n <= ENFORCE_ROWS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rows[i].field, field) == 0) {
			found = rows[i];
			count++;
		}
	}
	printf("# %s: %s\n", field, found.by ? found.by : "none");
	CHECK_INT(count, 1);
	return found;
}

/* ---- limits ------------------------------------------------------------------------ */

#define NO_DEVICE "the scratch space lives in memory; there is no device to bound"

TEST(a_named_limit_without_mechanism_is_refused_and_the_way_out_is_named)
{
	static const struct {
		const struct enforce_host *host;
		const char *field, *value, *reason;
	} cases[] = {
		{ &user_none, "cpu", "1", "no cgroup delegation" },
		{ &user_none, "mem", "1g", "no cgroup delegation" },
		{ &user_pids, "cpu", "1", "no cgroup delegation" },
		{ &user_pids, "mem", "1g", "no cgroup delegation" },
		{ &root_none, "cpu", "1", "this host mounts no cgroup controller for it" },
		{ &root_none, "mem", "1g", "this host mounts no cgroup controller for it" },
		{ &user_none, "io", "1m", NO_DEVICE },
		{ &root_v1, "io", "1m", NO_DEVICE },
		{ &root_v2, "io", "1m", NO_DEVICE },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(spec_done) struct spec s, weaker;
		char want[256];

		read_spec(&s, FLAGS(cases[i].field, cases[i].value));
		snprintf(want, sizeof want, "unenforceable: %s (%s); allow with --allow-weaker %s",
		         cases[i].field, cases[i].reason, cases[i].field);
		check_refused(&s, cases[i].host, want);

		read_spec(&weaker,
		          FLAGS(cases[i].field, cases[i].value, "allow-weaker", cases[i].field));
		check_taken(&weaker, cases[i].host);
		struct enforce_row row = row_of(&weaker, cases[i].host, cases[i].field);
		CHECK(!row.by && row.is_named); /* and the answer says so */
		CHECK_STR(row.reason, cases[i].reason);
	}
}

TEST(accepting_one_field_weaker_accepts_no_other)
{
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS("mem", "1g", "cpu", "1", "allow-weaker", "cpu"));
	check_refused(&s, &user_none,
	              "unenforceable: mem (no cgroup delegation); allow with --allow-weaker mem");
	CHECK_STR(enforce_lacking(&s, &user_none), "mem");
	CHECK_STR(enforce_lacking(&s, &root_v2), NULL);
}

TEST(a_default_without_mechanism_is_reported_and_not_refused)
{
	static const char *const fields[] = { "cpu", "mem" };
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS());
	check_taken(&s, &user_none);
	for (size_t i = 0; i < COUNT(fields); i++) {
		struct enforce_row row = row_of(&s, &user_none, fields[i]);

		CHECK(!row.by && !row.is_named);
		CHECK_STR(row.reason, "no cgroup delegation");
	}
}

TEST(every_limit_says_what_enforces_it)
{
	static const struct {
		const char *field, *value;
		const char *root_v1, *root_v2, *user_v2, *user_none;
	} cases[] = {
		{ "cpu", "1", "cgroup1", "cgroup2", "cgroup2", NULL },
		{ "mem", "1g", "cgroup1", "cgroup2", "cgroup2", NULL },
		{ "pids", "9", "cgroup1, rlimit", "cgroup2, rlimit", "cgroup2, rlimit", "rlimit" },
		{ "disk", "1m", "tmpfs", "tmpfs", "tmpfs", "tmpfs" },
		{ "inodes", "99", "tmpfs", "tmpfs", "tmpfs", "tmpfs" },
		{ "files", "99", "rlimit", "rlimit", "rlimit", "rlimit" },
		{ "wall", "9", "timerfd", "timerfd", "timerfd", "timerfd" },
		{ "idle", "9", "timerfd", "timerfd", "timerfd", "timerfd" },
		{ "output", "1k", "monitor", "monitor", "monitor", "monitor" },
		{ "io", "1m", NULL, NULL, NULL, NULL },
	};

	_Static_assert(COUNT(cases) == LIMIT_COUNT, "a limit is missing");
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(spec_done) struct spec s;

		read_spec(&s, FLAGS(cases[i].field, cases[i].value));
		CHECK_STR(row_of(&s, &root_v1, cases[i].field).by, cases[i].root_v1);
		CHECK_STR(row_of(&s, &root_v2, cases[i].field).by, cases[i].root_v2);
		CHECK_STR(row_of(&s, &user_v2, cases[i].field).by, cases[i].user_v2);
		CHECK_STR(row_of(&s, &user_none, cases[i].field).by, cases[i].user_none);
		CHECK(row_of(&s, &root_v1, cases[i].field).is_named);
	}
}

TEST(memory_of_v1_says_what_it_does_not_count)
{
	AUTO(spec_done) struct spec s;
	struct cgroup without = *root_v1.cgroup;
	struct enforce_host host = root_v1;

	for (size_t i = 0; i < without.n_trees; i++)
		without.trees[i].is_tcp_uncounted = without.trees[i].controllers & 1u << CG_MEMORY;
	host.cgroup = &without;
	read_spec(&s, FLAGS("mem", "1g"));
	CHECK_STR(row_of(&s, &host, "mem").by, "cgroup1, without TCP buffers");
	CHECK_STR(row_of(&s, &root_v1, "mem").by, "cgroup1");
}

/* Nor for output: without a name it bounds what is stored, not what is passed on. */
TEST(no_row_for_a_limit_that_nobody_set)
{
	static const char *const absent[] = { "wall", "idle", "io", "output" };
	struct enforce_row rows[ENFORCE_ROWS_MAX];
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS());
	size_t n = enforce_rows(&s, &root_v2, rows);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < COUNT(absent); k++)
			CHECK(strcmp(rows[i].field, absent[k]) != 0);
}

TEST(all_limits_at_once_fit)
{
	struct enforce_row rows[ENFORCE_ROWS_MAX];
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS("wall", "1", "idle", "1", "io", "1m", "output", "1m"));
	CHECK_INT(enforce_rows(&s, &root_v2, rows), 5 + LIMIT_COUNT);
}

/* ---- the other fields -------------------------------------------------------------- */

TEST(walls_name_their_mechanism)
{
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS());
	CHECK_STR(row_of(&s, &root_v2, "net").by, "netns");
	CHECK_STR(row_of(&s, &root_v2, "fs").by, "mountns, landlock");
	CHECK_STR(row_of(&s, &root_v2, "user").by, "userns, own id range");
	CHECK_STR(row_of(&s, &user_v2, "user").by, "userns, one id");
	CHECK_STR(row_of(&s, &root_v2, "creds").by, "scrubbed environment");
	CHECK_STR(row_of(&s, &root_v2, "syscalls").by, "seccomp");
	CHECK_STR(row_of(&s, &root_v2, "user").reason, NULL);
}

TEST(what_has_no_provider_here_is_refused_on_every_host)
{
	static const struct {
		const char *flag, *value, *field;
	} cases[] = {
		{ "creds", "github", "creds" },
		{ "creds", "github=vault:gh-app", "creds" },
		{ "services", "redis-server", "services" },
		{ "setup", "make", "setup" },
	};
	static const struct enforce_host *const hosts[] = { &root_v1, &root_v2, &user_none };

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t h = 0; h < COUNT(hosts); h++) {
			AUTO(spec_done) struct spec s;
			struct err e = { 0 };
			char want[64];

			read_spec(&s, FLAGS(cases[i].flag, cases[i].value));
			CHECK_INT(enforce_check(&s, hosts[h], &e), -1);
			CHECK_INT(e.kind, ERR_UNENFORCEABLE);
			snprintf(want, sizeof want, "unenforceable: %s (", cases[i].field);
			CHECK_INT(strncmp(e.msg, want, strlen(want)), 0);
		}
	}
}

TEST(a_network_takes_nf_tables)
{
	static const struct enforce_host without = { false, &no_cgroup, true, false, ENOENT };
	static const char *const nets[] = { "allow", "allow:example.org" };

	for (size_t i = 0; i < COUNT(nets); i++) {
		AUTO(spec_done) struct spec s;

		read_spec(&s, FLAGS("net", nets[i]));
		check_taken(&s, &root_v2);
		check_taken(&s, &user_none);
		CHECK_STR(row_of(&s, &user_none, "net").by, "netns, nftables, gate");
		check_refused(&s, &without,
		              "unenforceable: net (nf_tables with tproxy: No such file or "
		              "directory; only net: deny here)");
	}
	AUTO(spec_done) struct spec none;
	read_spec(&none, FLAGS("net", "deny"));
	check_taken(&none, &without);
}

TEST(rootful_takes_root)
{
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS("profile", "rootful"));
	check_taken(&s, &root_v2);
	check_refused(&s, &user_v2,
	              "unenforceable: profile (rootful needs a range of ids, which takes root)");
}

TEST(another_backend_is_refused)
{
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS());
	s.backend = "docker"; /* the spec's own table has no such word yet */
	check_refused(&s, &root_v2, "unenforceable: backend (the native backend is the only one)");
}

TEST(what_is_denied_needs_no_provider)
{
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS("net", "deny", "creds", "none", "backend", "native"));
	check_taken(&s, &user_none);
	check_taken(&s, &root_v1);
}

/* ---- facts ------------------------------------------------------------------------- */

TEST(a_wall_that_was_not_proved_enforces_nothing)
{
	static const struct {
		enum wall without;
		const char *field, *by; /* NULL: nothing does */
	} cases[] = {
		{ WALL_LANDLOCK, "fs", "mountns" },  { WALL_MOUNTNS, "fs", NULL },
		{ WALL_ROOT, "fs", NULL },           { WALL_MASKS, "fs", NULL },
		{ WALL_PROC_READ_ONLY, "fs", NULL }, { WALL_NETNS, "net", NULL },
		{ WALL_NETWALLS, "net", "netns" }, /* net: deny has none */
		{ WALL_SECCOMP, "syscalls", NULL },  { WALL_USERNS, "user", NULL },
		{ WALL_LIMITS, "mem", NULL },        { WALL_CGROUP, "cpu", NULL },
		{ WALL_CGROUP, "pids", "rlimit" },   { WALL_RLIMITS, "pids", "cgroup2" },
		{ WALL_RLIMITS, "files", NULL },     { WALL_DISK, "disk", NULL },
	};
	AUTO(spec_done) struct spec s;

	read_spec(&s, FLAGS("mem", "1g", "cpu", "1", "pids", "64", "files", "64", "disk", "1g"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct enforce_host h = root_v2;

		CHECK(row_of(&s, &h, cases[i].field).by != NULL);
		h.walls &= ~WALL_BIT(cases[i].without);
		struct enforce_row row = row_of(&s, &h, cases[i].field);
		CHECK_STR(row.by, cases[i].by);
		if (!row.by)
			CHECK(row.reason && row.reason[0]);
	}
}
