#include "vault/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "io/journal.h"
#include "os/file.h"
#include "os/net.h"
#include "os/sock.h"
#include "vault/harden.h"
#include "vault/overlay.h"
#include "vault/pack.h"
#include "vault/verbs.h"

#define LOOK_EVERY_MS 5000
#define ALONE_MS_MAX 60000
#define QUIET_MS 200

static struct vault vault = {
	.trees_fd = -1,
	.blobs_fd = -1,
	.volumes_fd = -1,
	.volume_fd = -1,
	.image_fd = -1,
	.work_fd = -1,
	.old_fd = -1,
	.lower_fd = -1,
	.points_fd = -1,
	.lock_fd = -1,
	.packs = { .dir_fd = -1, .fd = -1 },
	.launcher.fd = -1,
	.client.fd = -1,
};

/* clang-format off */
static verb *const verbs[V_TYPES] = {
	[V_CHECKPOINT]    = verb_checkpoint,
	[V_RESTORE]       = verb_restore,
	[V_CHANGES]       = verb_changes,
	[V_RELAYER]       = verb_relayer,
	[V_SYNC]          = verb_sync,
	[V_USAGE]         = verb_usage,
	[V_MAKE_TREE]     = verb_make_tree,
	[V_SEAL_TREE]     = verb_seal_tree,
	[V_REMOVE_TREE]   = verb_remove_tree,
	[V_REMOVE_VOLUME] = verb_remove_volume,
	[V_REMOVE_POINTS] = verb_remove_points,
	[V_RESERVE]       = verb_reserve,
	[V_SWEEP]         = verb_sweep,
	[V_VERIFY]        = verb_verify,
	[V_MEND]          = verb_mend,
	[V_CENSUS]        = verb_census,
	[V_FLATTEN]       = verb_flatten,
};
/* clang-format on */

static void hang_up(struct vault *v, struct watch *w)
{
	if (w->fd < 0)
		return;
	loop_remove(&v->loop, w);
	fd_close(&w->fd);
}

static void answer(struct vault *v, struct watch *w, struct vault_packet *p, int fd)
{
	p->head.len = (uint32_t)(vault_size(p) - sizeof p->head);
	int r = os_send(w->fd, p, vault_size(p), &fd, fd >= 0);

	if (r < 0) /* who does not take his answer is no client any more */
		hang_up(v, w);
}

static void fail(struct vault *v, struct watch *w, uint32_t tag, const struct err *e)
{
	struct vault_packet p = { .head = { .type = V_FAILED, .tag = tag } };

	p.err = *e;
	answer(v, w, &p, -1);
}

/* The next packet; 0: none that is of use, the connection may be gone. */
static int receive(struct vault *v, struct watch *w, struct vault_packet *p, int *fd)
{
	size_t n_fds = 1;
	int n = os_recv(w->fd, p, sizeof *p, fd, &n_fds);

	if (n == -EAGAIN)
		return 0;
	if (n_fds == 0)
		*fd = -1;
	if (n <= 0 || !vault_check(p, (size_t)n, n_fds)) {
		fd_close(fd);
		hang_up(v, w);
		return 0;
	}
	return 1;
}

bool vault_has_sandbox(const struct vault *v)
{
	return v->open.workspace && os_any_locked(VAULT_LOCK_FD) != 0;
}

static bool close_all(struct vault *v, struct err *e)
{
	if (vault_has_sandbox(v)) {
		(void)err_sys(e, EBUSY, "a sandbox has the workspace");
		return false;
	}
	v->loop.is_done = true; /* unmounted after the answer: the kernel syncs it then */
	return true;
}

/* A list goes where nobody has to read for it to go on. */
static bool is_file(int fd)
{
	struct stat st;

	return fd < 0 || (os_fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && S_ISREG(st.st_mode));
}

static int serve_verb(struct vault *v, const struct vault_packet *ask, int fd,
                      struct vault_done *done, struct err *e)
{
	if (!v->is_open)
		return err_new(e, ERR_INVALID, "nothing is open");
	if (ask->head.type == V_CLOSE)
		return close_all(v, e) ? 0 : -1;
	if (!verbs[ask->head.type])
		return err_new(e, ERR_INVALID, "this is no order of a client");
	if (!is_file(fd))
		return err_new(e, ERR_INVALID, "the descriptor is no file");
	return verbs[ask->head.type](v, ask, fd, done, e);
}

static void on_client(struct watch *w, uint32_t events)
{
	struct vault *v = &vault;
	static struct vault_packet ask;
	struct vault_packet p = { .head = { .type = V_DONE } };
	struct err e = { 0 };
	AUTO(fd_close) int fd = -1;

	(void)events;
	if (!receive(v, w, &ask, &fd))
		return;
	p.head.tag = ask.head.tag;
	if (serve_verb(v, &ask, fd, &p.done, &e) < 0)
		fail(v, w, ask.head.tag, &e);
	else
		answer(v, w, &p, -1);
	overlay_settle(v); /* after the answer: it may take long */
	if (v->packs.list.len > 0)
		timer_set(&v->timers, &v->unpack, QUIET_MS);
}

static int watch_socket(struct vault *v, struct watch *w, int fd,
                        void (*ready)(struct watch *w, uint32_t events))
{
	hang_up(v, w);
	*w = (struct watch){ .fd = fd, .ready = ready };
	int flags = fcntl(fd, F_GETFL);
	int r = flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;

	if (r >= 0)
		r = loop_add(&v->loop, w, EPOLLIN);
	if (r < 0)
		fd_close(&w->fd);
	return r;
}

static void send_mount(struct vault *v, struct watch *w, struct vault_packet *p, struct err *e)
{
	AUTO(fd_close) int fd = -1;

	if (v->open.workspace && v->is_open) {
		fd = overlay_clone(v, e);
		if (fd < 0) {
			fail(v, w, p->head.tag, e);
			return;
		}
	}
	answer(v, w, p, fd);
}

static void serve_launcher(struct vault *v, struct watch *w, const struct vault_packet *ask,
                           int *fd)
{
	struct vault_packet p = { .head = { .type = V_OPENED, .tag = ask->head.tag } };
	struct err e = { 0 };

	if (ask->head.type == V_CLIENT) {
		(void)watch_socket(v, &v->client, fd_take(fd),
		                   on_client); /* it then hears the end */
		return;
	}
	if (ask->head.type == V_CLOSE) { /* it goes, and nobody comes to ask for us */
		if (!close_all(v, &e))
			fail(v, w, ask->head.tag, &e);
		return;
	}
	if (ask->head.type == V_OPEN && open_workspace(v, &ask->open, *fd, &p.opened, &e) < 0) {
		fail(v, w, ask->head.tag, &e);
		v->loop.is_done = !v->is_open; /* half open is no use: the next one begins anew */
		return;
	}
	if (ask->head.type != V_OPEN && (ask->head.type != V_MOUNT || !v->is_open)) {
		(void)err_new(&e, ERR_INVALID, "this is no order of a launcher");
		fail(v, w, ask->head.tag, &e);
		return;
	}
	send_mount(v, w, &p, &e);
}

static void on_launcher(struct watch *w, uint32_t events)
{
	static struct vault_packet ask;
	AUTO(fd_close) int fd = -1;

	(void)events;
	if (receive(&vault, w, &ask, &fd))
		serve_launcher(&vault, w, &ask, &fd);
}

static void on_listen(struct watch *w, uint32_t events)
{
	int fd = os_accept(w->fd);

	(void)events;
	if (fd >= 0)
		(void)watch_socket(&vault, &vault.launcher, fd, on_launcher);
}

static void look_around(struct timer *t)
{
	struct vault *v = &vault;
	bool is_alone = v->launcher.fd < 0 && v->client.fd < 0 && !vault_has_sandbox(v);
	uint64_t now = timer_now_ms();

	if (!is_alone)
		v->alone_since_ms = 0;
	else if (v->alone_since_ms == 0)
		v->alone_since_ms = now;
	else if (now - v->alone_since_ms >= ALONE_MS_MAX)
		v->loop.is_done = true;
	timer_set(&v->timers, t, LOOK_EVERY_MS);
}

/* Nobody asked for anything in a while. */
static void unpack_some(struct timer *t)
{
	struct vault *v = &vault;
	struct err e = { 0 };
	int r = pack_unpack_some(v, &e);

	if (r < 0)
		journal(JOURNAL_WARN, "a pack stays", "reason", e.msg, NULL);
	if (r > 0)
		timer_set(&v->timers, t, 1);
}

static int start(struct vault *v, struct err *e)
{
	int r = loop_init(&v->loop);

	if (r >= 0)
		r = timers_init(&v->timers, &v->loop);
	if (r >= 0)
		r = watch_socket(v, &v->launcher, VAULT_LAUNCHER_FD, on_launcher);
	v->listen = (struct watch){ .fd = VAULT_LISTEN_FD, .ready = on_listen };
	if (r >= 0)
		r = loop_add(&v->loop, &v->listen, EPOLLIN);
	if (r < 0)
		return err_sys(e, -r, "begin to listen");
	v->unpack.fired = unpack_some;
	v->idle.fired = look_around;
	timer_set(&v->timers, &v->idle, LOOK_EVERY_MS);
	return 0;
}

int vault_run(struct err *e)
{
	struct vault *v = &vault;

	signal(SIGPIPE, SIG_IGN);
	if (harden_start(e) < 0 || start(v, e) < 0)
		return -1;
	int r = loop_run(&v->loop);

	pack_done(v);
	vec_done(&v->unsynced);
	overlay_unmount(v);
	return r < 0 ? err_sys(e, -r, "wait for orders") : 0;
}
