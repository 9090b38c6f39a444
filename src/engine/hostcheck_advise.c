/*
 * hostcheck_advise.c - the way out of a launch that failed, in the words of `caisson doctor`.
 *
 * An errno alone tells little: EPERM is AppArmor's, a container's or a chroot's. What the host's
 * own files say is the better witness, and is looked at only now that something is wrong.
 */
#include "engine/hostcheck-internal.h"

#define CGROUPS "/sys/fs/cgroup/" /* of the paths in errors of engine/cgroup.c */

/* What the kernel answers when a namespace may not be made, or may not be used. */
static bool is_of_namespaces(int error)
{
	return error == EPERM || error == EACCES || error == ENOSPC || error == EUSERS;
}

static const struct host_setting *in_the_way(const struct hostfacts *f)
{
	for (size_t i = 0; i < host_n_settings; i++)
		if (host_settings[i].is_needed &&
		    setting_is_bad(&host_settings[i], &f->settings[i]))
			return &host_settings[i];
	return NULL;
}

bool hostcheck_advise(const char *root, enum host_mode mode, struct err *e)
{
	char fix[SETTING_FIX_MAX];
	struct hostfacts f;

	if (e->kind != ERR_INTERNAL || e->sys == 0)
		return false;
	hostcheck_read(root, mode, &f);
	const struct host_setting *s = is_of_namespaces(e->sys) ? in_the_way(&f) : NULL;
	size_t n = strlen(e->msg);

	if (f.major > 0 && hostcheck_is_old(&f)) {
		snprintf(e->msg + n, sizeof e->msg - n, "; Linux %s is too old: %s", f.release,
		         advice(ADVICE_KERNEL));
	} else if (s) {
		setting_fix(s, fix);
		snprintf(e->msg + n, sizeof e->msg - n, "; as root: %s", fix);
	} else if (e->sys == EROFS && strstr(e->msg, CGROUPS)) {
		err_advise(e, ADVICE_CGROUP_WRITE);
	} else {
		return false;
	}
	return true;
}
