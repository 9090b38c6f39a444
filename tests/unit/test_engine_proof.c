#include "engine/proof.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/box.h"
#include "engine/caps.h"
#include "engine/proof-internal.h"
#include "engine/seccomp.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/proc.h"

#include "test.h"

/* ---- processes of the test's own ---------------------------------------------------- */

/* What a check says in a process that `build` has made walls for: NULL when the wall stands. The
 * walls end with the process: so the check runs in a child. */
static const char *said(const struct proof_check *c, const struct proof_at *at, void (*build)(void))
{
	int status;
	struct err *e = mmap(NULL, sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
	                     -1, 0); /* of the test's process, which is short */

	CHECK(e != MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0) {
		build();
		_exit(c->look(at, e) < 0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status) ? e->msg : NULL;
}

static void nothing(void)
{
}

/* ---- walls, one at a time ------------------------------------------------------------ */

static void no_new_privs(void)
{
	CHECK_INT(os_prctl(PR_SET_NO_NEW_PRIVS, 1), 0);
}

static void filter(void)
{
	struct err e = { 0 };

	no_new_privs();
	if (seccomp_payload(&e) < 0)
		CHECK_STR(e.msg, "");
}

/* Rules that allow everything, but only below a folder where our program is not. */
static void landlock(void)
{
	int abi = os_landlock_abi();
	int rules = os_landlock_ruleset(os_landlock_all(abi), 0);
	int dir = open("/proc", O_PATH | O_CLOEXEC);

	CHECK_INT(os_landlock_allow(rules, dir, os_landlock_all(abi)), 0);
	no_new_privs();
	CHECK_INT(os_landlock_restrict(rules), 0);
}

static void drop_caps(void)
{
	CHECK_INT(os_caps_bound(0), 0);
	CHECK_INT(os_caps_set(0, 0, 0), 0);
}

static void lock_securebits(void)
{
	CHECK_INT(os_prctl(PR_SET_SECUREBITS, caps_securebits(0)), 0);
}

static void set_ids(void)
{
	CHECK_INT(os_set_ids(1000, 1000), 0);
}

static void set_rlimits(void)
{
	CHECK_INT(os_setrlimit(RLIMIT_CORE, 1, 1), 0);
	CHECK_INT(os_setrlimit(RLIMIT_NOFILE, 256, 256), 0);
	CHECK_INT(os_setrlimit(RLIMIT_NPROC, 64, 64), 0);
}

static void close_others(void)
{
	CHECK_INT(close_range(3, ~0u, 0), 0);
	CHECK_INT(open("/dev/null", O_RDONLY), 3);
}

/* Behind a gap: the lowest free number says nothing of it. */
static void leave_one_open(void)
{
	close_others();
	CHECK_INT(fcntl(0, F_DUPFD, 9), 9);
}

/* ---- the table ----------------------------------------------------------------------- */

static struct plan plan = { .uid = 1000, .gid = 1000 };
static const struct command command = { .uid = 1000, .gid = 1000 };
static struct box box = { .plan = &plan };
static const struct proof_at at = { &box, &command, 4 };

static const struct proof_check *check_of(enum wall w)
{
	for (size_t i = 0; i < proof_n_checks; i++)
		if (proof_checks[i].wall == w)
			return &proof_checks[i];
	return NULL;
}

TEST(a_check_sees_its_wall_and_misses_it)
{
	static const struct {
		enum wall wall;
		void (*build)(void); /* that wall alone; NULL: it takes a sandbox */
	} cases[] = {
		{ WALL_NO_NEW_PRIVS, no_new_privs },
		{ WALL_SECCOMP, filter },
		{ WALL_LANDLOCK, landlock },
		{ WALL_CAPS, drop_caps },
		{ WALL_SECUREBITS, lock_securebits },
		{ WALL_IDS, set_ids },
		{ WALL_RLIMITS, set_rlimits },
		{ WALL_DESCRIPTORS, close_others },
		{ WALL_ROOT, NULL },
		{ WALL_HIDEPID, NULL },
	};

	if (geteuid() != 0)
		SKIP("needs root, which has rights to lose");
	plan.limits[LIMIT_FILES] = 256;
	plan.limits[LIMIT_PIDS] = 64;
	struct err e = { 0 };
	CHECK_INT(proof_look_at_host(&box.host, &e), 0);
	/* For close_others() to miss, whatever the caller of this program has left open. */
	AUTO(fd_close) int inherited = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, at.n_fds + 1);
	CHECK(inherited >= 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct proof_check *c = check_of(cases[i].wall);

		printf("# %s\n", wall_name(cases[i].wall));
		CHECK(c != NULL);
		const char *without = said(c, &at, nothing);
		CHECK(without != NULL);
		printf("#   %s\n", without);
		if (!cases[i].build)
			continue;
		const char *with = said(c, &at, cases[i].build);
		CHECK_STR(with ? with : "", "");
	}
}

TEST(a_descriptor_behind_a_gap_is_found)
{
	const char *text = said(check_of(WALL_DESCRIPTORS), &at, leave_one_open);

	CHECK_STR(text ? text : "", "descriptor 9 is open");
}

/* Each namespace of ours is the launcher's, until the last of them is another. */
TEST(every_namespace_of_the_launcher_is_recognised)
{
	struct proof_host host;
	struct err e = { 0 };
	uint32_t proved = 0;

	CHECK_INT(proof_look_at_host(&host, &e), 0);
	for (enum wall w = WALL_USERNS; w < PROOF_NAMESPACES; w++) {
		char want[64];

		snprintf(want, sizeof want, "%s: it is the launcher's", wall_name(w));
		CHECK_INT(proof_namespaces(&host, &proved, &e), -1);
		CHECK_STR(e.msg, want);
		host.namespaces[w]++;
	}
	proved = 0;
	CHECK_INT(proof_namespaces(&host, &proved, &e), 0);
	CHECK_INT(proved, (1u << PROOF_NAMESPACES) - 1);
}

/* Ours is not the sandbox's: nobody has joined a group of that name. */
TEST(a_process_outside_of_the_group_is_found)
{
	struct box other = { .plan = &plan, .promised = 1u << CG_MEMORY };
	struct err e = { 0 };
	uint32_t proved = 0;

	if (cgroup_find(&other.cgroup, true) < 0 || !cgroup_has(&other.cgroup, CG_MEMORY))
		SKIP("needs a memory controller");
	snprintf(other.cgroup.name, sizeof other.cgroup.name, "none");
	CHECK_INT(proof_cgroup(&other, WALL_CGROUP, &proved, &e), -1);
	CHECK_STR(e.msg, "cgroup: not in the sandbox's group for memory");
	other.cgroup.n_trees = 0; /* left out altogether */
	CHECK_INT(proof_cgroup(&other, WALL_CGROUP, &proved, &e), -1);
	CHECK_INT(proved, 0);
	other.promised = 0; /* a host without any: nothing was promised */
	CHECK_INT(proof_cgroup(&other, WALL_CGROUP, &proved, &e), 0);
	CHECK_INT(proved, 0);
}

TEST(every_wall_has_a_name_of_its_own)
{
	for (enum wall w = 0; w < WALL_COUNT; w++)
		for (enum wall v = 0; v < w; v++)
			CHECK(strcmp(wall_name(w), wall_name(v)) != 0);
}
