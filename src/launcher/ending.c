#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include "base/fd.h"
#include "launcher/server-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define DELAY_MS_MIN 2
#define DELAY_MS_MAX 1000 /* what cannot be killed is asked again, and keeps its slot */

static void remove_socket(struct server *s, const char *name)
{
	(void)os_unlinkat(s->dirs.sb_fd, name); /* only kept ones have one */
}

/* Names of sockets begin with the slot: what dead launchers left of this one. */
static void remove_sockets_of(struct server *s, int slot)
{
	int fd = os_openat(s->dirs.sb_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char prefix[16];
	int n = snprintf(prefix, sizeof prefix, "%d-", slot);

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		if (strncmp(d->d_name, prefix, (size_t)n) == 0)
			remove_socket(s, d->d_name);
	if (dir)
		closedir(dir);
}

static void tell(struct server *s, const struct live *l)
{
	if (l->tell == TELL_GONE) {
		struct launch_gone gone = { .slot = l->slot, .pid = l->pid, .status = l->status };

		memcpy(gone.name, l->name, sizeof gone.name);
		server_send(s, (struct launch_head){ .type = L_GONE, .len = sizeof gone }, &gone,
		            -1);
	} else if (l->tell == TELL_DONE) {
		struct launch_done done = { .count = 1 };

		server_send(
		    s, (struct launch_head){ .type = L_DONE, .len = sizeof done, .tag = l->tag },
		    &done, -1);
	}
}

/* True when nothing is left and the sandbox is forgotten. */
static bool end_round(struct server *s, struct live *l, uint64_t now_ms)
{
	if (l->name[0])
		remove_socket(s, l->name);
	else
		remove_sockets_of(s, l->slot);
	if (!launcher_end_round(&s->kit.common, &l->hold, &s->kit.host.cgroup)) {
		l->due_ms = now_ms + l->delay_ms;
		l->delay_ms = l->delay_ms * 2 > DELAY_MS_MAX ? DELAY_MS_MAX : l->delay_ms * 2;
		return false;
	}
	tell(s, l);
	s->live[l->slot] = NULL;
	free(l);
	return true;
}

void ending_begin(struct server *s, struct live *l)
{
	l->is_ending = true;
	l->delay_ms = DELAY_MS_MIN;
	if (end_round(s, l, server_now()))
		return;
	l->next = s->ending;
	s->ending = l;
}

void ending_tick(struct server *s, uint64_t now_ms)
{
	for (struct live **at = &s->ending; *at;) {
		struct live *l = *at;
		struct live *next = l->next;

		if (l->due_ms <= now_ms && end_round(s, l, now_ms))
			*at = next;
		else
			at = &l->next;
	}
}

uint64_t ending_due(const struct server *s)
{
	uint64_t due = UINT64_MAX;

	for (const struct live *l = s->ending; l; l = l->next)
		if (l->due_ms < due)
			due = l->due_ms;
	return due;
}

bool ending_is_idle(const struct server *s)
{
	for (size_t i = 0; i < COUNT(s->live); i++)
		if (s->live[i] && (s->live[i]->is_ending || !s->live[i]->is_kept))
			return false;
	return true;
}

bool ending_take_dead(struct server *s, int slot, enum live_tell tell_what, uint32_t tag)
{
	struct launcher_hold hold;

	if (!launcher_take_dead(&s->kit.common, slot, &hold))
		return false;
	struct live *l = mem_alloc(sizeof *l);

	*l = (struct live){ .hold = hold, .slot = slot, .tell = tell_what, .tag = tag };
	s->live[slot] = l;
	ending_begin(s, l);
	return true;
}

/* ---- kill ----------------------------------------------------------------------------- */

bool ending_kill(struct server *s, int slot, const char *name)
{
	const struct live *l = s->live[slot];

	if (l && l->hold.pid > 0) /* our child, not waited for: the number is its own */
		return strcmp(l->name, name) == 0 && os_kill(l->hold.pid, SIGKILL) == 0;
	AUTO(fd_close) int pidfd = slot_find_monitor(s->kit.common.run_fd, slot, name);
	return pidfd >= 0 && os_pidfd_signal(pidfd, SIGKILL) == 0;
}

/* ---- sweep --------------------------------------------------------------------------- */

struct sweep {
	struct server *server;
	size_t count;
};

/* A number and what follows it; -1 without one. */
static int slot_of(const char *name, char after)
{
	char *end;
	long slot = strtol(name, &end, 10);

	return end != name && *end == after && slot >= 0 && slot < SLOT_COUNT ? (int)slot : -1;
}

static void sweep_slot(struct sweep *w, int slot)
{
	if (slot >= 0 && ending_take_dead(w->server, slot, TELL_NONE, 0))
		w->count++;
}

static void sweep_name(const char *name, void *arg)
{
	sweep_slot(arg, slot_of(name, '\0'));
}

size_t ending_sweep(struct server *s)
{
	struct sweep w = { .server = s };
	int fd = os_openat(s->dirs.sb_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	cgroup_each_name(&s->kit.host.cgroup, sweep_name, &w);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		sweep_slot(&w, slot_of(d->d_name, '-'));
	if (dir)
		closedir(dir);
	return w.count;
}

/* ---- what the daemon asks for ---------------------------------------------------------- */

static void send_count(struct server *s, uint32_t tag, size_t count)
{
	struct launch_done done = { .count = (uint32_t)count };
	struct launch_head head = { .type = L_DONE, .len = sizeof done, .tag = tag };

	server_send(s, head, &done, -1);
}

void ending_on_clean(struct server *s, const struct launch_packet *p, int fd)
{
	(void)fd;
	if (!ending_take_dead(s, p->slot.slot, TELL_DONE, p->head.tag))
		send_count(s, p->head.tag, 0);
}

void ending_on_kill(struct server *s, const struct launch_packet *p, int fd)
{
	(void)fd;
	send_count(s, p->head.tag, ending_kill(s, p->kill.slot, p->kill.name));
}

void ending_on_sweep(struct server *s, const struct launch_packet *p, int fd)
{
	(void)fd;
	send_count(s, p->head.tag, ending_sweep(s));
}
