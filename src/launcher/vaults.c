#include "launcher/vaults.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/userns.h"
#include "launcher/helper.h"
#include "launcher/slot.h"
#include "os/file.h"
#include "os/sock.h"
#include "os/unix.h"

#define RETRY_MS_MIN 4
#define RETRY_MS_MAX 1000
#define WAIT_MS_MAX 2000  /* for those who have the mount of a dead one */
#define LEAVE_MS_MAX 2000 /* for all of them, when the launcher ends */
#define NAME_BYTES 48

struct vault {
	struct watch watch; /* first; fd -1: it is dead, and its number may be in use */
	struct vault *next;
	struct vaults *all;
	uint64_t workspace;
	int work;     /* of its ids; -1: none */
	bool is_open; /* it has the mount */
	uint32_t tag;
	struct vault_ask *asks;    /* it was asked */
	struct vault_ask *waiting; /* it is dead; to be asked of the next */
	uint64_t retry_ms, give_up_ms;
	unsigned int delay_ms;
};

static struct vault *find(const struct vaults *all, uint64_t workspace)
{
	struct vault *v = all->first;

	while (v && v->workspace != workspace)
		v = v->next;
	return v;
}

static struct vault *add(struct vaults *all, uint64_t workspace)
{
	struct vault *v = mem_alloc(sizeof *v);

	*v = (struct vault){ .watch.fd = -1,
		             .next = all->first,
		             .all = all,
		             .workspace = workspace,
		             .work = -1,
		             .delay_ms = RETRY_MS_MIN };
	all->first = v;
	return v;
}

static void forget(struct vault *v)
{
	struct vault **at = &v->all->first;

	while (*at != v)
		at = &(*at)->next;
	*at = v->next;
	free(v);
}

static void name_of(const struct vault *v, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%llu-%d.sock", (unsigned long long)v->workspace, v->work);
}

static void hang_up(struct vault *v)
{
	if (v->watch.fd < 0)
		return;
	loop_remove(v->all->loop, &v->watch);
	fd_close(&v->watch.fd);
}

/* ---- answers --------------------------------------------------------------------------- */

static struct vault_ask *take(struct vault_ask **list, uint32_t tag)
{
	while (*list && (*list)->tag != tag)
		list = &(*list)->next;
	struct vault_ask *a = *list;
	if (a)
		*list = a->next;
	return a;
}

static void fail_all(struct vault_ask *list, const struct err *e)
{
	for (struct vault_ask *a = list, *next; a; a = next) {
		next = a->next;
		a->done(a, -1, e);
	}
}

/* Who asked when it was about to end asks the next one, but not a third. Returns the others. */
static struct vault_ask *wait_again(struct vault *v)
{
	struct vault_ask *others = NULL;

	for (struct vault_ask *a = v->asks, *next; a; a = next) {
		struct vault_ask **to = a->open && !a->is_second ? &v->waiting : &others;

		next = a->next;
		a->is_second = true;
		a->next = *to;
		*to = a;
	}
	v->asks = NULL;
	v->give_up_ms = 0;
	return others;
}

/* Its number stays as long as a sandbox has it, and so does the name that leads to it. */
static void died(struct vault *v)
{
	struct vault_ask *asks = wait_again(v);
	struct err e = { 0 };

	hang_up(v);
	v->is_open = false;
	v->retry_ms = 0; /* soon: its own lock may go a moment after its end of the channel */
	v->delay_ms = RETRY_MS_MIN;
	err_new(&e, ERR_INTERNAL, "the keeper of workspace %llu died",
	        (unsigned long long)v->workspace);
	e.sys = EPIPE;
	fail_all(asks, &e);
}

/* A socket for a client of it, instead of the one before. */
static int make_client(struct vault *v, struct err *e)
{
	const struct vault_head head = { .type = V_CLIENT };
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	r = os_send(v->watch.fd, &head, sizeof head, &theirs, 1);
	return r < 0 ? err_sys(e, -r, "reach the keeper of a workspace") : fd_take(&ours);
}

static void answer(struct vault *v, struct vault_ask *a, int *fd, const struct err *failure)
{
	struct err e = { 0 };
	int given = -1;

	if (!failure && a->open) {
		v->is_open = true;
		given = make_client(v, &e);
	} else if (!failure) {
		given = *fd < 0 ? err_new(&e, ERR_INTERNAL, "no mount came") : fd_take(fd);
	}
	a->done(a, given, failure ? failure : given < 0 ? &e : NULL);
}

static void ready(struct watch *w, uint32_t events)
{
	static struct vault_packet p;
	struct vault *v = (struct vault *)w;
	int fd = -1;
	size_t n_fds = 1;

	(void)events;
	int n = os_recv(w->fd, &p, sizeof p, &fd, &n_fds);
	if (n == -EAGAIN || n == -EINTR)
		return;
	AUTO(fd_close) int owned = n > 0 && n_fds > 0 ? fd : -1;
	bool is_answer = n > 0 && vault_check(&p, (size_t)n, n_fds) &&
	                 (p.head.type == V_OPENED || p.head.type == V_FAILED);
	struct vaults *all = v->all;
	if (is_answer) {
		struct vault_ask *a = take(&v->asks, p.head.tag);

		if (a) /* else nobody waits for it any more */
			answer(v, a, &owned, p.head.type == V_FAILED ? &p.err : NULL);
	} else {
		died(v);
	}
	all->changed(all);
}

/* ---- start ----------------------------------------------------------------------------- */

static int watch_it(struct vault *v, int fd, struct err *e)
{
	v->watch = (struct watch){ .fd = fd, .ready = ready };
	int r = loop_add(v->all->loop, &v->watch, EPOLLIN);

	if (r < 0)
		fd_close(&v->watch.fd);
	return r < 0 ? err_sys(e, -r, "watch the keeper of a workspace") : 0;
}

static int launch(struct vault *v, int lock_fd, struct err *e)
{
	const struct vaults *all = v->all;
	char name[NAME_BYTES];
	pid_t pid;

	name_of(v, name);
	AUTO(fd_close) int listening = os_listen_at(all->vt_fd, name, SOCK_SEQPACKET, 0600);
	if (listening < 0)
		return err_sys(e, -listening, "listen on %s", name);
	const struct helper h = {
		.name = "caisson-vault",
		.is_root = all->is_root,
		.keeps_rights = true,
		.cgroup = all->cgroup,
		.fds = { [VAULT_TREES_FD - 4] = all->trees_fd,
		         [VAULT_BLOBS_FD - 4] = all->blobs_fd,
		         [VAULT_VOLUMES_FD - 4] = all->vol_fd,
		         [VAULT_LISTEN_FD - 4] = listening,
		         [VAULT_LOCK_FD - 4] = lock_fd },
		.n_fds = VAULT_LOCK_FD - 3,
	};
	int fd = helper_start(&h, &pid, e);

	if (fd >= 0 && watch_it(v, fd, e) == 0)
		return 0;
	(void)os_unlinkat(all->vt_fd, name); /* what was started ends: we have hung up */
	return -1;
}

/* A share of its number goes to it, which it holds as long as it lives; ours ends here. */
static int start(struct vault *v, struct err *e)
{
	AUTO(slot_locks_done) struct slot_locks locks = { 0 };

	v->work = slot_take_work(v->all->slots_fd, &locks, e);
	if (v->work < 0)
		return -1;
	if (launch(v, locks.at[0].given_fd, e) == 0)
		return 0;
	slot_locks_end(v->all->slots_fd, &locks);
	v->work = -1;
	return err_wrap(e, "start the keeper of a workspace");
}

/* ---- asking ---------------------------------------------------------------------------- */

/* The number of its ids: its own, or that of another which its sandboxes have as well. */
static int ids_of(const struct vault *v, const struct vault_open *o, struct err *e)
{
	int ids = o->ids_of ? vaults_work(v->all, o->ids_of) : v->work;

	if (ids < 0)
		return err_new(e, ERR_NOT_FOUND, "workspace %llu is not open",
		               (unsigned long long)o->ids_of);
	return ids;
}

/* Of the ids of its sandboxes; -1 and no error: it needs none. */
static int make_map(const struct vault *v, int ids, struct err *e)
{
	const struct userns_range range = { 0, slot_work_id(ids), BOX_IDS };

	e->kind = ERR_NONE;
	return v->all->is_root && v->workspace && !v->is_open ? userns_make(range, range, e) : -1;
}

static void fill_open(const struct vault *v, int ids, const struct vault_open *o,
                      struct vault_open *out)
{
	*out = *o;
	out->ids_of = 0;
	if (v->all->is_root) {
		out->id_base = slot_work_id(ids);
		out->n_ids = BOX_IDS;
	} else {
		out->flags |= VAULT_ROOTLESS;
	}
}

/* 0, or -1: then it is dead if v->watch.fd says so. */
static int put(struct vault *v, struct vault_ask *a, struct err *e)
{
	static struct vault_packet p;
	AUTO(fd_close) int map = -1;

	p.head = (struct vault_head){ .type = a->open ? V_OPEN : V_MOUNT, .tag = ++v->tag };
	p.head.len = (uint32_t)(vault_size(&p) - sizeof p.head);
	if (a->open) {
		int ids = ids_of(v, a->open, e);

		if (ids < 0)
			return -1;
		fill_open(v, ids, a->open, &p.open);
		map = make_map(v, ids, e);
		if (map < 0 && e->kind != ERR_NONE)
			return -1;
	}
	int r = os_send(v->watch.fd, &p, vault_size(&p), &map, map >= 0);
	if (r == -EAGAIN)
		return err_new(e, ERR_LIMIT, "the keeper of workspace %llu has too much to do",
		               (unsigned long long)v->workspace);
	if (r < 0) {
		err_sys(e, -r, "reach the keeper of workspace %llu",
		        (unsigned long long)v->workspace);
		died(v);
		return -1;
	}
	a->tag = v->tag;
	a->next = v->asks;
	v->asks = a;
	return 0;
}

/* Before a program is started for it. */
static bool is_sane(struct vaults *all, const struct vault_open *o)
{
	static struct vault_packet p;
	const struct vault any = { .all = all };

	p.head = (struct vault_head){ .type = V_OPEN, .len = sizeof p.open };
	fill_open(&any, any.work, o, &p.open);
	return vault_check(&p, vault_size(&p), 0);
}

/* The name of a dead one goes when nobody has its number any more. */
static bool is_clear(struct vault *v)
{
	char name[NAME_BYTES];

	if (v->work < 0)
		return true;
	if (!slot_work_clear(v->all->slots_fd, v->work))
		return false;
	name_of(v, name);
	(void)os_unlinkat(v->all->vt_fd, name);
	v->work = -1;
	return true;
}

static void start_for(struct vault *v, struct vault_ask *list)
{
	struct err e = { 0 };

	if (start(v, &e) < 0) {
		forget(v);
		fail_all(list, &e);
		return;
	}
	for (struct vault_ask *a = list, *next; a; a = next) {
		next = a->next;
		if (put(v, a, &e) < 0)
			a->done(a, -1, &e);
	}
}

static void give_up(const struct vault *v, struct vault_ask *list)
{
	struct err e = { 0 };

	err_new(&e, ERR_LIMIT, "workspace %llu is still mounted in a sandbox, and its keeper died",
	        (unsigned long long)v->workspace);
	e.sys = EBUSY;
	fail_all(list, &e);
}

/* It is dead. What is left of it goes with the last who has its number, and then the next one is
 * started, if somebody waits for it. */
static void look_again(struct vault *v, uint64_t now_ms)
{
	struct vault_ask *list = v->waiting;

	if (v->give_up_ms == 0)
		v->give_up_ms = now_ms + WAIT_MS_MAX;
	v->waiting = NULL;
	if (is_clear(v)) {
		if (list)
			start_for(v, list);
		else
			forget(v);
		return;
	}
	v->retry_ms = now_ms + v->delay_ms;
	if (!list)
		v->delay_ms = v->delay_ms * 2 > RETRY_MS_MAX ? RETRY_MS_MAX : v->delay_ms * 2;
	else if (now_ms >= v->give_up_ms)
		give_up(v, list);
	else
		v->waiting = list;
}

int vaults_ask(struct vaults *all, uint64_t workspace, struct vault_ask *a, uint64_t now_ms,
               struct err *e)
{
	struct vault *v = find(all, workspace);

	if (v && v->watch.fd >= 0) {
		if (put(v, a, e) == 0)
			return 0;
		if (v->watch.fd >= 0) /* it lives, and does not take it */
			return -1;
	}
	if (!a->open) {
		err_new(e, ERR_NOT_FOUND, "workspace %llu is not open",
		        (unsigned long long)workspace);
		e->sys = EPIPE; /* it was, for whoever asks */
		return -1;
	}
	if (!is_sane(all, a->open))
		return err_new(e, ERR_INVALID, "that is no workspace");
	if (a->open->ids_of && vaults_work(all, a->open->ids_of) < 0)
		return err_new(e, ERR_NOT_FOUND, "workspace %llu is not open",
		               (unsigned long long)a->open->ids_of);
	if (!v)
		v = add(all, workspace);
	if (!v->waiting)
		v->give_up_ms = 0;
	v->delay_ms = RETRY_MS_MIN;
	a->next = v->waiting;
	v->waiting = a;
	look_again(v, now_ms);
	return 0;
}

static void cancel(struct vault_ask **list, const struct vault_ask *a)
{
	for (; *list; list = &(*list)->next)
		if (*list == a) {
			*list = a->next;
			return;
		}
}

void vaults_cancel(struct vaults *all, const struct vault_ask *a)
{
	for (struct vault *v = all->first; v; v = v->next) {
		cancel(&v->asks, a);
		cancel(&v->waiting, a);
	}
}

int vaults_work(const struct vaults *all, uint64_t workspace)
{
	const struct vault *v = find(all, workspace);

	return v && v->watch.fd >= 0 ? v->work : -1;
}

/* ---- time ------------------------------------------------------------------------------ */

void vaults_tick(struct vaults *all, uint64_t now_ms)
{
	for (struct vault *v = all->first, *next; v; v = next) {
		next = v->next;
		if (v->watch.fd < 0 && v->retry_ms <= now_ms)
			look_again(v, now_ms);
	}
}

uint64_t vaults_due(const struct vaults *all)
{
	uint64_t due = UINT64_MAX;

	for (const struct vault *v = all->first; v; v = v->next)
		if (v->watch.fd < 0 && v->retry_ms < due)
			due = v->retry_ms;
	return due;
}

/* ---- those of the launcher before -------------------------------------------------------- */

/* "WORKSPACE-NUMBER.sock" */
static bool read_name(const char *name, uint64_t *workspace, int *work)
{
	char *end;
	bool is_number = name[0] >= '0' && name[0] <= '9';

	errno = 0;
	*workspace = strtoull(name, &end, 10);
	if (!is_number || errno || *end != '-' || end[1] < '0' || end[1] > '9')
		return false;
	long n = strtol(end + 1, &end, 10);
	*work = (int)n;
	return strcmp(end, ".sock") == 0 && n < SLOT_WORK_COUNT;
}

static int adopt(struct vaults *all, const char *name, struct err *e)
{
	uint64_t workspace;
	int work;

	if (!read_name(name, &workspace, &work) || find(all, workspace))
		return 0;
	struct vault *v = add(all, workspace);
	v->work = work;
	if (is_clear(v)) {
		forget(v);
		return 0;
	}
	int fd = os_connect_at(all->vt_fd, name, SOCK_SEQPACKET);
	if (fd < 0) /* only sandboxes are left that have its mount */
		return 0;
	/* Its launcher may have died before it could say what to open: it is asked as if. */
	return watch_it(v, fd, e);
}

int vaults_init(struct vaults *all, struct err *e)
{
	int fd = os_openat(all->vt_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!dir)
		return err_sys(e, fd < 0 ? -fd : errno, "look for keepers of workspaces");
	for (struct dirent *d = readdir(dir); d && r == 0; d = readdir(dir))
		r = adopt(all, d->d_name, e);
	closedir(dir);
	return r;
}

/* Its lock says whether it lives; who connects to it would take its launcher's place. */
int vaults_sweep(int run_fd, int slots_fd, bool dry_run,
                 void (*found)(const char *what, bool is_gone))
{
	AUTO(fd_close)
	int vt = os_openat(run_fd, "vt", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int again = vt < 0 ? vt : os_openat(vt, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	int n = 0;

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		char what[48];
		uint64_t workspace;
		int work;

		if (!read_name(d->d_name, &workspace, &work) || !slot_work_is_free(slots_fd, work))
			continue;
		snprintf(what, sizeof what, "keeper of workspace %llu",
		         (unsigned long long)workspace);
		bool is_gone = !dry_run && os_unlinkat(vt, d->d_name) >= 0;
		if (found)
			found(what, is_gone);
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Until it has ended or says no, within what is left of `ms`. */
static void await_end(struct vault *v, int *ms)
{
	const struct timespec tick = { .tv_nsec = 1000000 };
	struct vault_head head;
	int n = -EAGAIN;

	for (; n == -EAGAIN && *ms > 0; --*ms) {
		n = os_recv(v->watch.fd, &head, sizeof head, NULL, NULL);
		if (n == -EAGAIN)
			(void)nanosleep(&tick, NULL);
	}
	/* Its lock goes a moment after its end of the channel. */
	for (; n == 0 && !is_clear(v) && *ms > 0; --*ms)
		(void)nanosleep(&tick, NULL);
}

void vaults_done(struct vaults *all)
{
	const struct vault_head close = { .type = V_CLOSE };
	int ms = LEAVE_MS_MAX;

	for (struct vault *v = all->first; v; v = v->next)
		if (v->watch.fd >= 0)
			(void)os_send(v->watch.fd, &close, sizeof close, NULL,
			              0); /* or it is dead */
	for (struct vault *v = all->first, *next; v; v = next) {
		next = v->next;
		if (v->watch.fd >= 0)
			await_end(v, &ms); /* else it ends when it has been alone for a while */
		hang_up(v);
		free(v);
	}
	all->first = NULL;
}
