#include "launcher/launcher.h"

#include "os/caps.h"
#include "os/proc.h"
#include "test.h"

/* The mode as a child sees it that has lost `caps`, and root if told: 1 root, 0 rootless, -1. */
static int mode_without(uint64_t caps, bool lose_root, struct err *e)
{
	struct {
		int mode;
		struct err e;
	} answer = { 0 };
	int fds[2];

	CHECK_INT(pipe(fds), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		uint64_t effective, permitted, inheritable;
		bool is_root = false;

		if (os_caps_get(&effective, &permitted, &inheritable) < 0 ||
		    os_caps_set(effective & ~caps, permitted & ~caps, 0) < 0 ||
		    (lose_root && os_set_ids(54321, 54321) < 0))
			_exit(1);
		answer.mode = launcher_mode(&is_root, &answer.e) < 0 ? -1 : is_root;
		_exit(write(fds[1], &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
	}
	close(fds[1]);
	CHECK_INT(read(fds[0], &answer, sizeof answer), sizeof answer);
	close(fds[0]);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	*e = answer.e;
	return answer.mode;
}

TEST(root_with_all_rights_is_root_and_anybody_else_is_not)
{
	struct err e;

	CHECK_INT(mode_without(0, false, &e), geteuid() == 0);
	if (geteuid() == 0)
		CHECK_INT(mode_without(0, true, &e), 0);
}

/* The one id of a rootless sandbox is the caller's: host root would be mapped inside. */
TEST(root_without_a_right_that_it_needs_is_refused_and_not_taken_for_a_user)
{
	static const unsigned int needed[] = { CAP_SYS_ADMIN, CAP_SETUID,       CAP_SETGID,
		                               CAP_CHOWN,     CAP_DAC_OVERRIDE, CAP_KILL };
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	for (size_t i = 0; i < COUNT(needed); i++) {
		CHECK_INT(mode_without(CAP_BIT(needed[i]), false, &e), -1);
		CHECK_INT(e.kind, ERR_DENIED);
	}
	CHECK_INT(mode_without(CAP_BIT(CAP_SYS_TIME), false, &e), 1);
}
