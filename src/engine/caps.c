#include "engine/caps.h"

#include <linux/securebits.h>
#include <sys/prctl.h>

#include "os/caps.h"
#include "os/fault.h"
#include "os/proc.h"

#define ROOTFUL                                                                                    \
	(CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FOWNER) |                    \
	 CAP_BIT(CAP_KILL) | CAP_BIT(CAP_SETGID) | CAP_BIT(CAP_SETUID))

#define LOCKED_ALWAYS                                                                              \
	(SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)
#define LOCKED_UNPRIVILEGED                                                                        \
	(LOCKED_ALWAYS | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |           \
	 SECBIT_NO_SETUID_FIXUP_LOCKED)

uint64_t caps_kept(const struct plan *p, const struct command *c)
{
	return p->rootful && c->uid == 0 ? ROOTFUL : 0;
}

int caps_bound(uint64_t kept, struct err *e)
{
	int r = os_caps_bound(kept);

	return r < 0 ? err_sys(e, -r, "empty the bounding set") : 0;
}

static int drop(uid_t uid, gid_t gid, uint64_t kept, struct err *e)
{
	int r = os_prctl(PR_SET_SECUREBITS, kept ? LOCKED_ALWAYS : LOCKED_UNPRIVILEGED);
	if (r < 0)
		return err_sys(e, -r, "lock the securebits");
	r = os_set_ids(uid, gid);
	if (r < 0)
		return err_sys(e, -r, "become %u:%u", uid, gid);
	r = os_caps_ambient(0);
	if (r >= 0)
		r = os_caps_set(kept, kept, 0);
	return r < 0 ? err_sys(e, -r, "drop capabilities") : 0;
}

static int no_new_privs(struct err *e)
{
	int r = os_prctl(PR_SET_NO_NEW_PRIVS, 1);

	return r < 0 ? err_sys(e, -r, "set no_new_privs") : 0;
}

int caps_drop(const struct plan *p, const struct command *c, struct err *e)
{
	if (fault_layer_off("caps")) {
		int r = os_set_ids(c->uid, c->gid);

		return r < 0 ? err_sys(e, -r, "become %u", c->uid) : no_new_privs(e);
	}
	if (caps_bound(caps_kept(p, c), e) < 0 || drop(c->uid, c->gid, caps_kept(p, c), e) < 0)
		return -1;
	return no_new_privs(e);
}

int caps_drop_all(uid_t uid, gid_t gid, struct err *e)
{
	return drop(uid, gid, 0, e) < 0 ? -1 : no_new_privs(e);
}
