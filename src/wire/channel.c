#include "wire/channel.h"

static const char *const state_names[] = {
	[RUN_EXITED] = "exited", [RUN_SIGNALED] = "signaled", [RUN_TIMEOUT] = "timeout",
	[RUN_OOM] = "oom",       [RUN_KILLED] = "killed",     [RUN_EXPIRED] = "expired",
	[RUN_LOST] = "lost",
};
_Static_assert(COUNT(state_names) == RUN_LOST + 1, "a state has no name");

const char *run_state_name(enum run_state s)
{
	return (size_t)s < COUNT(state_names) ? state_names[s] : "lost";
}

int run_exit_status(const struct channel_end *end)
{
	switch ((enum run_state)end->state) {
	case RUN_EXITED:
	case RUN_SIGNALED:
	case RUN_KILLED:
		return end->signal ? 128 + end->signal : end->exit_code;
	case RUN_TIMEOUT:
	case RUN_EXPIRED:
		return 124;
	case RUN_OOM:
		return 137;
	case RUN_LOST:
		break;
	}
	return 125;
}
