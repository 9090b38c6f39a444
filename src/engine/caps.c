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

unsigned long caps_securebits(uint64_t kept)
{
	return kept ? LOCKED_ALWAYS : LOCKED_UNPRIVILEGED;
}

int caps_bound(uint64_t kept, struct err *e)
{
	int r = os_caps_bound(kept);

	return r < 0 ? err_sys(e, -r, "empty the bounding set") : 0;
}

/* With fs.suid_dumpable=1 the kernel opens a process that has changed its ids to others of its
 * user. Said while the capabilities are still there: until then nobody inside, who has fewer, may
 * trace it. */
static int become(uid_t uid, gid_t gid, struct err *e)
{
	int r = fault_layer_off("ids") ? 0 : os_set_ids(uid, gid);

	if (r >= 0)
		r = os_prctl(PR_SET_DUMPABLE, 0);
	return r < 0 ? err_sys(e, -r, "become %u:%u", uid, gid) : 0;
}

static int drop(uid_t uid, gid_t gid, uint64_t kept, struct err *e)
{
	int r =
	    fault_layer_off("securebits") ? 0 : os_prctl(PR_SET_SECUREBITS, caps_securebits(kept));
	if (r < 0)
		return err_sys(e, -r, "lock the securebits");
	r = become(uid, gid, e);
	if (r < 0)
		return r;
	r = os_caps_ambient(0);
	if (r >= 0)
		r = os_caps_set(kept, kept, 0);
	return r < 0 ? err_sys(e, -r, "drop capabilities") : 0;
}

static int no_new_privs(struct err *e)
{
	int r = fault_layer_off("nnp") ? 0 : os_prctl(PR_SET_NO_NEW_PRIVS, 1);

	return r < 0 ? err_sys(e, -r, "set no_new_privs") : 0;
}

int caps_drop(const struct plan *p, const struct command *c, struct err *e)
{
	if (fault_layer_off("caps"))
		return become(c->uid, c->gid, e) < 0 ? -1 : no_new_privs(e);
	if (caps_bound(caps_kept(p, c), e) < 0 || drop(c->uid, c->gid, caps_kept(p, c), e) < 0)
		return -1;
	return no_new_privs(e);
}

int caps_drop_all(uid_t uid, gid_t gid, struct err *e)
{
	return drop(uid, gid, 0, e) < 0 ? -1 : no_new_privs(e);
}
