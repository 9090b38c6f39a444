#include "core/core.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/fd.h"
#include "core/approval.h"
#include "core/birth.h"
#include "core/cache.h"
#include "core/census.h"
#include "core/checkout.h"
#include "core/expire.h"
#include "core/flatten.h"
#include "core/fsck.h"
#include "core/gc.h"
#include "core/image.h"
#include "core/ledger.h"
#include "core/maker.h"
#include "core/notes.h"
#include "core/process.h"
#include "core/repo.h"
#include "core/reserve.h"
#include "core/scanner.h"
#include "core/secret.h"
#include "core/template.h"
#include "core/trees.h"
#include "core/workspace.h"
#include "os/file.h"

#define TAKE_OVER_MS 10000
#define NUDGE_MS 5

int64_t core_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint64_t core_mono_ms(void)
{
	return timer_now_ms();
}

/* ---- folders ------------------------------------------------------------------------- */

static int open_dir(const char *dir, const char *name, struct err *e)
{
	AUTO(fd_close) int at = os_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);

	if (at < 0)
		return err_sys(e, -at, "open %s", dir);
	int r = os_mkdirat(at, name, 0700);
	if (r < 0 && r != -EEXIST)
		return err_sys(e, -r, "make %s/%s", dir, name);
	int fd = os_openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd < 0 ? err_sys(e, -fd, "open %s/%s", dir, name) : fd;
}

static int read_boot_id(struct core *c, struct err *e)
{
	int n = os_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", c->boot_id,
	                     sizeof c->boot_id);

	if (n <= 0)
		return err_sys(e, n < 0 ? -n : EIO, "read the boot id");
	c->boot_id[strcspn(c->boot_id, "\n")] = '\0';
	return 0;
}

/* The launcher's folder: we may go through it, and connect to what is in there. */
static int open_sockets(const char *run_dir, struct err *e)
{
	char path[PATH_TEXT_MAX];

	snprintf(path, sizeof path, "%s/sb", run_dir);
	int fd = os_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd < 0 ? err_sys(e, -fd, "open %s", path) : fd;
}

/* The worker's program lies beside ours, or where `make install` puts it. */
static int find_tree(struct core *c, struct err *e)
{
	char self[PATH_TEXT_MAX];
	int r = os_readlinkat(AT_FDCWD, "/proc/self/exe", self, sizeof self);

	if (r < 0)
		return err_sys(e, -r, "find our own program");
	*strrchr(self, '/') = '\0';
	AUTO(fd_close) int dir = os_openat(AT_FDCWD, self, O_PATH | O_DIRECTORY, 0);
	c->tree_fd = dir < 0 ? dir : os_openat(dir, "caisson-tree", O_RDONLY, 0);
	if (c->tree_fd >= 0)
		return 0;
	err_sys(e, -c->tree_fd, "open caisson-tree beside %s", self);
	return err_advise(e, ADVICE_PROGRAMS);
}

/* ---- recovery ------------------------------------------------------------------------ */

static uint32_t random_gap(void)
{
	uint32_t n = 0;

	(void)!getrandom(&n, sizeof n, GRND_NONBLOCK); /* 0 will do, mostly */
	return n & NUM_GAP_RANDOM;
}

static void adopt_processes(struct core *c, struct sbx *s)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct process_list list;
	struct err e = { 0 };
	int64_t num = 0, at_end = 0;

	if (store_process_running_of(c->store, s->id, &a, &list, &e) == 0)
		for (size_t i = 0; i < list.n; i++)
			(void)px_adopt(s, &list.rows[i]);
	if (store_process_num_max(c->store, s->id, s->generation, &num, &e) == 0)
		s->next_num = (uint32_t)num + NUM_GAP + random_gap();
	if (store_process_at_end(c->store, s->id, s->generation, &at_end, &e) == 0)
		s->at_end = (int)at_end; /* done at the first look */
}

/* Its monitor answers, or it does not: three different answers, and no guess. */
static void reach(struct core *c, struct sbx *s)
{
	bool is_other_boot = strcmp(s->boot_id, c->boot_id) != 0;
	int r = is_other_boot ? -ENOENT : link_connect(&s->link, c->sb_fd, s->socket_name);

	if (r == 0) { /* READY comes, then SYNC settles the rest */
		sbx_await(s);
		return;
	}
	if (r == -ECONNREFUSED || r == -ENOENT) { /* nobody has it open: the monitor is dead */
		px_lose_all(s, PROCESS_LOST,
		            is_other_boot ? "the host was restarted"
		                          : "the monitor of the sandbox died");
		if (!is_other_boot && s->slot >= 0)
			maker_clean(c, s->slot);
		sbx_settle_dead(s, is_other_boot ? "the host was restarted" : "its monitor died");
		return;
	}
	sbx_set_state(s, SANDBOX_UNREACHABLE, strerror(-r));
}

struct stranger {
	const char *name;
	bool is_known;
};

static void compare_name(void *entry, void *arg)
{
	struct stranger *st = arg;

	st->is_known |= strcmp(((struct sbx *)entry)->socket_name, st->name) == 0;
}

/* Monitors of sandboxes that were being made when the daemon died: no row knows their names, so
 * nobody will ever ask for them. */
static int dismiss_strangers(struct core *c, struct err *e)
{
	int fd = openat(c->sb_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return err_sys(e, errno, "read the folder of sockets");
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		struct stranger st = { .name = d->d_name };
		char *end;
		long slot = strtol(d->d_name, &end, 10);

		if (end == d->d_name || *end != '-')
			continue;
		roster_each(&c->sandboxes, compare_name, &st);
		if (st.is_known)
			continue;
		link_dismiss(c->sb_fd, d->d_name);
		maker_clean(c, (int)slot);
	}
	closedir(dir);
	return 0;
}

static int recover(struct core *c, struct err *e)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct sandbox_query q = {
		.page = { .is_all_tenants = true, .is_oldest_first = true, .limit = STORE_LIST_MAX }
	};
	struct sandbox_list list;

	do {
		if (store_sandbox_list(c->store, &q, &a, &list, e) < 0)
			return -1;
		for (size_t i = 0; i < list.n; i++) {
			struct sbx *s = sbx_adopt(c, &list.rows[i]);

			if (!s)
				continue;
			adopt_processes(c, s);
			reach(c, s);
		}
		q.page.cursor = list.next;
	} while (list.next);
	return 0;
}

/* ---- life ---------------------------------------------------------------------------- */

static void store_ready(struct watch *w, uint32_t events)
{
	struct core *c = (struct core *)(void *)((char *)w - offsetof(struct core, store_watch));

	(void)events;
	store_dispatch(c->store);
}

static void nudge_fired(struct timer *t)
{
	struct core *c = (struct core *)(void *)((char *)t - offsetof(struct core, nudge));

	store_nudge(c->store);
}

void core_nudge_soon(struct core *c)
{
	if (c->nudge.at_ms == 0)
		timer_set(&c->timers, &c->nudge, NUDGE_MS);
}

/* The daemon before us may not have noticed yet that its launcher is dead. */
static struct store *open_store(const char *dir, struct err *e)
{
	uint64_t begin = core_mono_ms();
	struct store *s = store_open(dir, e);

	while (!s && e->kind == ERR_DENIED && core_mono_ms() - begin < TAKE_OVER_MS) {
		usleep(10000);
		s = store_open(dir, e);
	}
	return s;
}

int core_open(struct core *c, struct loop *l, const struct core_config *config, int launcher_fd,
              struct err *e)
{
	*c = (struct core){
		.loop = l, .config = *config, .logs_fd = -1, .sb_fd = -1, .tree_fd = -1
	};
	c->busy_ms = core_mono_ms();
	c->nudge.fired = nudge_fired;
	c->pace.begin = sbx_end_begin;
	int r = timers_init(&c->timers, l);
	if (r < 0)
		return err_sys(e, -r, "make the timer");
	c->store = open_store(config->state_dir, e);
	if (!c->store)
		return -1;
	c->logs_fd = open_dir(config->state_dir, "logs", e);
	c->sb_fd = c->logs_fd < 0 ? -1 : open_sockets(config->run_dir, e);
	if (c->sb_fd < 0 || read_boot_id(c, e) < 0 || find_tree(c, e) < 0)
		return -1;
	c->store_watch = (struct watch){ .fd = store_fd(c->store), .ready = store_ready };
	r = loop_add(l, &c->store_watch, EPOLLIN);
	if (r < 0)
		return err_sys(e, -r, "watch the store");
	if (trees_open(c, e) < 0 || maker_open(c, launcher_fd, e) < 0)
		return -1;
	if (ledger_open(c, e) < 0 || approvals_open(c, e) < 0)
		return -1;
	note_started(c);
	if (recover(c, e) < 0 || dismiss_strangers(c, e) < 0)
		return -1;
	wsx_recover(c);
	images_sweep(c);
	birth_recover(c);
	repo_recover(c);
	note_recovered(c);
	return 0;
}

void core_ready(struct core *c)
{
	expire_start(c);
	c->is_open = true;
	approvals_ready(c);
	maker_ready(c);
	templates_recover(c);
	wsx_end_orphans(c);
}

static void look_for_unsettled(void *entry, void *arg)
{
	const struct sbx *s = entry;

	*(bool *)arg |= s->is_unsettled && s->state != SANDBOX_UNREACHABLE;
}

bool core_is_ready(struct core *c)
{
	bool is_any = false;

	roster_each(&c->sandboxes, look_for_unsettled, &is_any);
	return c->is_open && !is_any;
}

static void free_sandbox(void *entry, void *arg)
{
	(void)arg;
	sbx_free(entry);
}

void core_close(struct core *c)
{
	c->is_closing = true;
	store_close(c->store); /* all that was said is on record, and whoever waits has been told */
	note_stopped(c);
	ledger_close(c);
	c->store = NULL;
	approvals_close(c);
	checkout_close(c);
	repo_close(c);
	templates_close(c);
	image_takings_close(c);
	roster_each(&c->sandboxes, free_sandbox, NULL);
	roster_done(&c->sandboxes);
	roster_done(&c->processes);
	cache_asks_done(c);
	wsx_close_all(c);
	images_close(c);
	gc_close(c);
	flatten_close(c);
	fsck_close(c);
	census_close(c);
	secrets_close(c);
	scanners_close(c);
	trees_close(c);
	reserve_close(c);
	maker_close(c);
	timers_done(&c->timers, c->loop);
	fd_close(&c->logs_fd);
	fd_close(&c->sb_fd);
	fd_close(&c->tree_fd);
}
