#include "wire/launch.h"

_Static_assert(sizeof(struct launch_head) == 16, "the body is aligned");
_Static_assert(offsetof(struct launch_packet, bytes) == sizeof(struct launch_head), "no gap");

static int wrong(struct err *e, const char *what)
{
	return err_new(e, ERR_INVALID, "launch: %s", what);
}

/* ---- daemon to launcher ------------------------------------------------------------ */

static int check_mount(const struct launch_mount *m, uint32_t text_len, struct err *e)
{
	static const struct {
		bool has_ticket, has_tree;
		uint32_t flags;
	} kinds[] = {
		[LAUNCH_EPHEMERAL] = { 0 },
		[LAUNCH_RO] = { .has_ticket = true },
		[LAUNCH_OVERLAY] = { .has_ticket = true },
		[LAUNCH_TREE] = { .has_tree = true, .flags = LAUNCH_READ_ONLY },
		[LAUNCH_WORK] = { .has_tree = true, .flags = LAUNCH_READ_ONLY },
	};
	_Static_assert(COUNT(kinds) == LAUNCH_MOUNT_KINDS, "a kind of mount has no shape");

	if (m->kind >= LAUNCH_MOUNT_KINDS)
		return wrong(e, "kind of mount");
	if (kinds[m->kind].has_ticket != (m->ticket != 0) ||
	    kinds[m->kind].has_tree != (m->tree != 0))
		return wrong(e, "source of a mount");
	if (m->flags & ~kinds[m->kind].flags)
		return wrong(e, "flags of a mount");
	return m->at >= text_len ? wrong(e, "path of a mount") : 0;
}

/* Absolute, without empty, "." or ".." names: the launcher looks it up below the skeleton with
 * root's rights, and pid 1 takes it apart at its slashes. */
static bool is_place(const char *path)
{
	size_t len = strlen(path);

	if (path[0] != '/' || len >= PATH_TEXT_MAX)
		return false;
	while (*path) {
		size_t n = strcspn(++path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
	}
	return true;
}

/* Ends with a NUL, so that a string begins at every offset. */
static int check_text(const struct launch_packet *p, struct err *e)
{
	const struct launch_make *m = &p->make;

	if (m->text_len == 0 || m->text_len > LAUNCH_TEXT_MAX ||
	    p->head.len != sizeof *m + m->text_len)
		return wrong(e, "length of the text");
	if (launch_text(p)[m->text_len - 1] != '\0' || m->id >= m->text_len)
		return wrong(e, "text");
	return 0;
}

static int check_make(const struct launch_packet *p, struct err *e)
{
	const struct launch_make *m = &p->make;

	if (check_text(p, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(m->limits); i++)
		if (m->limits[i] > LAUNCH_LIMIT_MAX)
			return wrong(e, "limit");
	if (m->named >> LAUNCH_LIMITS || m->weaker >> LAUNCH_LIMITS)
		return wrong(e, "names of limits");
	if (m->flags & ~LAUNCH_MAKE_FLAGS || m->zero)
		return wrong(e, "flags");
	if ((m->image != 0) + (m->image_tree != 0) + (m->root != 0) > 1)
		return wrong(e, "two images");
	if (m->uid > LAUNCH_IDS_INSIDE_MAX || m->gid > LAUNCH_IDS_INSIDE_MAX)
		return wrong(e, "ids");
	if (m->n_mounts > COUNT(m->mounts))
		return wrong(e, "number of mounts");
	uint32_t n_works = 0;
	for (size_t i = 0; i < m->n_mounts; i++) {
		if (check_mount(&m->mounts[i], m->text_len, e) < 0)
			return -1;
		if (!is_place(launch_text(p) + m->mounts[i].at))
			return wrong(e, "path of a mount");
		n_works += m->mounts[i].kind == LAUNCH_WORK;
	}
	if (m->root && n_works == 0)
		return wrong(e, "a root without a workspace");
	return n_works > 1 ? wrong(e, "two workspaces") : 0;
}

static int check_open(const struct launch_packet *p, struct err *e)
{
	const struct launch_open *o = &p->open;
	const char *path = launch_path(p);

	if (o->want >= LAUNCH_WANTS)
		return wrong(e, "what to open");
	if (o->path_len < 2 || o->path_len > PATH_TEXT_MAX ||
	    p->head.len != sizeof *o + o->path_len)
		return wrong(e, "length of the path");
	if (path[0] != '/' || memchr(path, '\0', o->path_len) != path + o->path_len - 1)
		return wrong(e, "path");
	return 0;
}

static int check_slot(const struct launch_packet *p, struct err *e)
{
	return p->slot.slot < 0 || p->slot.slot >= LAUNCH_SLOTS ? wrong(e, "slot") : 0;
}

/* The rest is checked when it is whole: vault_check(). */
static int check_vault(const struct launch_packet *p, struct err *e)
{
	const struct vault_open *o = &p->vault;

	if (o->id_base || o->n_ids || o->flags & VAULT_ROOTLESS)
		return wrong(e, "what is not the daemon's to say");
	if (o->ids_of && (o->workspace == 0 || o->ids_of == o->workspace))
		return wrong(e, "whose ids");
	return o->n_layers > VAULT_LAYERS_MAX ? wrong(e, "layers") : 0;
}

/* ---- launcher to daemon ------------------------------------------------------------ */

static bool is_name(const char name[LAUNCH_NAME_MAX])
{
	return name[0] != '\0' && memchr(name, '\0', LAUNCH_NAME_MAX) && !strchr(name, '/');
}

static int check_kill(const struct launch_packet *p, struct err *e)
{
	if (p->kill.slot < 0 || p->kill.slot >= LAUNCH_SLOTS)
		return wrong(e, "slot");
	return is_name(p->kill.name) ? 0 : wrong(e, "name");
}

static int check_made(const struct launch_packet *p, struct err *e)
{
	const struct launch_made *m = &p->made;

	if (m->slot < 0 || m->slot >= LAUNCH_SLOTS || m->pid <= 0)
		return wrong(e, "slot");
	return is_name(m->name) ? 0 : wrong(e, "name");
}

static int check_opened(const struct launch_packet *p, struct err *e)
{
	return p->opened.ticket == 0 || p->opened.is_dir > 1 ? wrong(e, "ticket") : 0;
}

static int check_host(const struct launch_packet *p, struct err *e)
{
	const struct launch_host *h = &p->host;

	for (size_t i = 0; i < COUNT(h->by); i++)
		if (h->by[i] > 2)
			return wrong(e, "controller");
	if (h->net_error > 4095) /* MAX_ERRNO of the kernel */
		return wrong(e, "network");
	if (h->is_root > 1 || !memchr(h->release, '\0', sizeof h->release))
		return wrong(e, "host");
	return 0;
}

static int check_failed(const struct launch_packet *p, struct err *e)
{
	const struct err *f = &p->err;

	/* An enum from outside is a number until it is known to be in range. */
	unsigned int kind = 0;
	memcpy(&kind, &f->kind, sizeof kind);
	if (kind == ERR_NONE || kind > ERR_INTERNAL || !memchr(f->msg, '\0', sizeof f->msg))
		return wrong(e, "error");
	return 0;
}

static int check_gone(const struct launch_packet *p, struct err *e)
{
	const struct launch_gone *g = &p->gone;

	if (g->slot < 0 || g->slot >= LAUNCH_SLOTS || g->pid <= 0)
		return wrong(e, "slot");
	return is_name(g->name) ? 0 : wrong(e, "name");
}

/* ---- both -------------------------------------------------------------------------- */

struct shape {
	size_t size; /* of the fixed part */
	bool has_text, is_order;
	size_t fds_min, fds_max;
	int (*check)(const struct launch_packet *p, struct err *e); /* NULL: nothing to check */
};

/* clang-format off */
static const struct shape shapes[] = {
	[L_MAKE]   = { sizeof(struct launch_make),   true,  true,  0, 0, check_make },
	[L_OPEN]   = { sizeof(struct launch_open),   true,  true,  0, 1, check_open },
	[L_CLEAN]  = { sizeof(struct launch_slot),   false, true,  0, 0, check_slot },
	[L_KILL]   = { sizeof(struct launch_kill),   false, true,  0, 0, check_kill },
	[L_SWEEP]  = { 0,                            false, true,  0, 0, NULL },
	[L_HOST]   = { 0,                            false, true,  0, 0, NULL },
	[L_GATE]   = { 0,                            false, true,  0, 0, NULL },
	[L_LEDGER] = { 0,                            false, true,  0, 0, NULL },
	[L_HOOK]   = { 0,                            false, true,  0, 0, NULL },
	[L_CACHE]  = { 0,                            false, true,  0, 0, NULL },
	[L_VAULT]  = { sizeof(struct vault_open),    false, true,  0, 0, check_vault },
	[L_READY]  = { 0,                            false, true,  0, 0, NULL },
	[L_MADE]   = { sizeof(struct launch_made),   false, false, 1, 1, check_made },
	[L_OPENED] = { sizeof(struct launch_opened), false, false, 1, 1, check_opened },
	[L_DONE]   = { sizeof(struct launch_done),   false, false, 0, 0, NULL },
	[L_HOSTED] = { sizeof(struct launch_host),   false, false, 0, 0, check_host },
	[L_GATED]  = { 0,                            false, false, 1, 1, NULL },
	[L_LEDGERED] = { 0,                          false, false, 1, 1, NULL },
	[L_HOOKED] = { 0,                            false, false, 1, 1, NULL },
	[L_CACHED] = { 0,                            false, false, 1, 1, NULL },
	[L_VAULTED] = { 0,                           false, false, 1, 1, NULL },
	[L_FAILED] = { sizeof(struct err),           false, false, 0, 0, check_failed },
	[L_GONE]   = { sizeof(struct launch_gone),   false, false, 0, 0, check_gone },
};
/* clang-format on */
_Static_assert(COUNT(shapes) == L_TYPES, "a message has no shape");

static int check(const struct launch_packet *p, size_t n, size_t n_fds, bool is_order,
                 struct err *e)
{
	if (n < sizeof p->head || n > sizeof *p || p->head.len != n - sizeof p->head)
		return wrong(e, "length");
	if (p->head.type >= L_TYPES || p->head.zero)
		return wrong(e, "type");
	const struct shape *s = &shapes[p->head.type];

	if (s->is_order != is_order)
		return wrong(e, "type");
	if (s->has_text ? p->head.len < s->size : p->head.len != s->size)
		return wrong(e, "length");
	if (n_fds < s->fds_min || n_fds > s->fds_max)
		return wrong(e, "number of descriptors");
	return s->check ? s->check(p, e) : 0;
}

int launch_check_order(const struct launch_packet *p, size_t n, size_t n_fds, struct err *e)
{
	return check(p, n, n_fds, true, e);
}

int launch_check_answer(const struct launch_packet *p, size_t n, size_t n_fds, struct err *e)
{
	return check(p, n, n_fds, false, e);
}
