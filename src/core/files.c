#include "core/files.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/workspace.h"
#include "os/net.h"
#include "os/pulse.h"
#include "os/sock.h"

struct worker {
	struct watch watch; /* first */
	struct sbx *sandbox;
	struct worker *next;
	struct job *job; /* NULL: idle */
	struct timer idle;
	bool is_full; /* a packet found no room */
	bool is_paused;
	bool is_long; /* its job is one */
};

struct files {
	struct worker *workers;
	size_t n_workers, n_long;  /* n_long: of the workers */
	struct job *first, **last; /* that wait for a worker */
	size_t n_waiting;
};

#define LABEL_MAX 160

static const bool changes[TREE_VERBS] = {
	[TREE_WRITE] = true,  [TREE_EDIT] = true,  [TREE_DELETE] = true, [TREE_MOVE] = true,
	[TREE_COPY] = true,   [TREE_MKDIR] = true, [TREE_BATCH] = true,  [TREE_PATCH] = true,
	[TREE_TAR_IN] = true, [TREE_MARK] = true,  [TREE_UNZIP] = true,
};

static bool give(struct worker *w, struct job *j);
static void feed(struct sbx *s);

/* ---- workers ------------------------------------------------------------------------- */

static void want(struct worker *w)
{
	(void)loop_change(w->sandbox->core->loop, &w->watch,
	                  (w->is_paused ? 0 : EPOLLIN) | (w->is_full ? EPOLLOUT : 0));
}

/* Closing its socket ends it. */
static void worker_done(struct worker *w)
{
	struct job *j = w->job;

	loop_remove(w->sandbox->core->loop, &w->watch);
	timer_stop(&w->sandbox->core->timers, &w->idle);
	fd_close(&w->watch.fd);
	free(w);
	if (j) {
		j->worker = NULL;
		j->over(j, NULL);
	}
}

static void worker_end(struct worker *w)
{
	struct sbx *s = w->sandbox;

	for (struct worker **at = &s->files->workers; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			s->files->n_workers--;
			s->files->n_long -= w->is_long;
			break;
		}
	}
	worker_done(w);
	feed(s);
}

static void idle_long(struct timer *t)
{
	worker_end((struct worker *)(void *)((char *)t - offsetof(struct worker, idle)));
}

/* Out of those that wait for a worker: NULL when it is not among them. */
static struct job *unqueue(struct files *files, struct job *wanted)
{
	for (struct job **at = &files->first; *at; at = &(*at)->next) {
		struct job *j = *at;

		if (j != wanted)
			continue;
		*at = j->next;
		if (!j->next)
			files->last = at;
		files->n_waiting--;
		return j;
	}
	return NULL;
}

static void requeue(struct files *files, struct job *j)
{
	j->next = files->first;
	files->first = j;
	if (!j->next)
		files->last = &j->next;
	files->n_waiting++;
}

/* The next job, or none for a while. One that it has no room for yet waits on. */
static void worker_next(struct worker *w)
{
	struct files *files = w->sandbox->files;
	struct job *j = unqueue(files, files->first);

	if (!j)
		timer_set(&w->sandbox->core->timers, &w->idle, FILES_IDLE_MS);
	else if (!give(w, j))
		requeue(files, j);
}

static void worker_free(struct worker *w)
{
	w->sandbox->files->n_long -= w->is_long;
	w->job = NULL;
	w->is_paused = w->is_long = false;
	want(w);
	worker_next(w);
}

bool files_may_change(enum tree_verb verb)
{
	return changes[verb];
}

/* It is one of the steps that can be undone, as a command is. */
static void note_change(struct sbx *s, const struct job *j)
{
	const struct tree_ask *ask = &j->ask;
	char label[LABEL_MAX];
	size_t n = (size_t)snprintf(label, sizeof label, "%s ",
	                            tree_verb_name((enum tree_verb)ask->request.verb));

	if (!changes[ask->request.verb] || !s->workspace || !wsx_wants_point(s))
		return;
	for (size_t i = 0; i < ask->path.len && n < sizeof label - 1; i++) {
		char c = ask->path.at[i];

		label[n++] = c;
		if (c < 0x20 || c == 0x7f) /* also what is not ASCII: a label is for people */
			label[n - 1] = '?';
	}
	label[n] = '\0';
	wsx_point(s->workspace, &(struct wsx_point_ask){ .label = label }, NULL, NULL);
}

static void take(struct worker *w, const struct tree_packet *p)
{
	struct job *j = w->job;
	bool is_last = p->head.flags & TREE_LAST;

	if (!j || p->head.id != j->ask.id)
		return;
	if (p->head.type == TREE_ANSWER && !j->is_answered) {
		j->is_answered = true;
		j->answer(j, p, is_last);
		if (!is_last || w->job != j)
			return;
	} else if (p->head.type == TREE_DATA && j->is_answered) {
		j->data(j, p->data);
		return;
	} else if (p->head.type != TREE_END || !j->is_answered) {
		worker_end(w);
		return;
	}
	j->worker = NULL;
	note_change(w->sandbox, j);
	worker_free(w);
	j->over(j, &p->answer); /* last: it may start the next job, or end the sandbox */
}

static void ready(struct watch *watch, uint32_t events)
{
	static unsigned char packet[TREE_PACKET_MAX];
	struct worker *w = (struct worker *)watch;
	struct tree_packet p;
	struct err e;

	if (events & EPOLLOUT) {
		w->is_full = false;
		want(w);
		if (!w->job)
			worker_next(w);
		else if (w->job->room)
			w->job->room(w->job);
		return; /* the worker may be gone; what else there is comes again */
	}
	int n = os_recv_some(watch->fd, packet, sizeof packet);
	if (n == -EAGAIN)
		return;
	if (n <= 0 || tree_packet_parse(packet, (size_t)n, &p, &e) < 0)
		worker_end(w);
	else
		take(w, &p);
}

static struct worker *worker_new(struct sbx *s, struct fail *f)
{
	int ends[2];

	if (os_socketpair(ends, SOCK_SEQPACKET) < 0) {
		fail_set(f, FAIL_BACKEND_ERROR, "too many open files");
		return NULL;
	}
	AUTO(fd_close) int ours = ends[0];
	AUTO(fd_close) int theirs = ends[1];
	const char *root = s->is_service ? WORKSPACE_FOLDER : "/";
	struct channel_head head = { .type = CH_TREE, .num = ++s->next_num };
	struct link_fds fds = { .fd = { theirs, s->core->tree_fd }, .n = 2 };
	head.len = (uint32_t)strlen(root) + 1;
	if (link_send_fds(&s->link, head, root, fds) < 0) {
		fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
		f->is_retry_safe = true;
		return NULL;
	}
	struct worker *w = mem_alloc(sizeof *w);
	(void)os_refuse_fds(ours);
	*w = (struct worker){ .watch = { .fd = fd_take(&ours), .ready = ready }, .sandbox = s };
	w->idle.fired = idle_long;
	(void)fcntl(w->watch.fd, F_SETFL, O_NONBLOCK);
	(void)loop_add(s->core->loop, &w->watch, EPOLLIN);
	w->next = s->files->workers;
	s->files->workers = w;
	s->files->n_workers++;
	return w;
}

/* ---- jobs ---------------------------------------------------------------------------- */

static bool put_with(struct worker *w, const void *packet, size_t n, const int *fds, size_t n_fds)
{
	int r = os_send(w->watch.fd, packet, n, fds, n_fds);

	w->is_full = r == -EAGAIN || r == -ENOBUFS;
	if (w->is_full)
		want(w);
	return !w->is_full; /* any other failure: its end of the socket tells */
}

static bool put(struct worker *w, const void *packet, size_t n)
{
	return put_with(w, packet, n, NULL, 0);
}

bool files_body(struct job *j, const void *bytes, size_t n, bool is_last)
{
	static unsigned char packet[TREE_PACKET_MAX];
	struct tree_head head = { .type = TREE_BODY,
		                  .flags = is_last ? TREE_LAST : 0,
		                  .id = j->ask.id,
		                  .len = (uint32_t)n };

	if (!j->worker || j->worker->is_full)
		return false;
	size_t len = tree_piece_build(head, bytes, packet);
	return put(j->worker, packet, len);
}

/* What did not fit into the first packet. */
static void push_body(struct job *j)
{
	while (j->sent < j->ask.body.len) {
		size_t left = j->ask.body.len - j->sent;
		size_t n = left < TREE_PIECE_MAX ? left : TREE_PIECE_MAX;

		if (!files_body(j, j->ask.body.at + j->sent, n, n == left && !j->ask.has_more))
			return;
		j->sent += n;
	}
}

/* False: it has no room. One that refused a body may not have read the rest of it yet. */
static bool give(struct worker *w, struct job *j)
{
	static unsigned char packet[TREE_PACKET_MAX];
	static uint32_t ids;
	struct err e = { 0 };
	size_t taken = 0;

	if (w->is_full)
		return false;
	j->ask.id = ++ids;
	int n = tree_ask_build(&j->ask, packet, &taken, &e);
	size_t n_fds = j->ask.flags & TREE_FD ? 1 : 0;
	if (n < 0 || !put_with(w, packet, (size_t)n, &j->fd, n_fds))
		return false;
	timer_stop(&w->sandbox->core->timers, &w->idle);
	if (w->sandbox->workspace && changes[j->ask.request.verb])
		w->sandbox->workspace->is_kept = false; /* until the point after it */
	w->job = j;
	w->is_long = j->is_long;
	w->sandbox->files->n_long += w->is_long;
	j->worker = w;
	j->sent = taken;
	if (!j->room)
		j->room = push_body;
	push_body(j);
	if (j->room != push_body) /* what came while it waited */
		j->room(j);
	return true;
}

/* Those with a long job do not count for the others. */
static bool may_start(const struct files *files, bool is_long)
{
	return is_long ? files->n_long < FILES_LONG_MAX
	               : files->n_workers - files->n_long < FILES_WORKERS_MAX;
}

/* A worker has ended: whoever waits gets another one. */
static void feed(struct sbx *s)
{
	struct fail f;

	while (s->files && s->files->first && may_start(s->files, false)) {
		struct job *j = unqueue(s->files, s->files->first);
		struct worker *w = worker_new(s, &f);

		if (!w || !give(w, j))
			j->over(j, NULL);
	}
}

/* What the worker would refuse is refused here: then its first packet can be made. */
static int check_ask(const struct job *j, struct fail *f)
{
	static unsigned char packet[TREE_PACKET_MAX];
	struct tree_ask ask = j->ask;
	struct err e = { 0 };
	size_t taken;

	ask.body = (struct span){ 0 };
	return tree_ask_build(&ask, packet, &taken, &e) < 0 ? fail_err(f, &e) : 0;
}

int files_start(struct sbx *s, struct job *j, struct fail *f)
{
	bool is_open = s->state == SANDBOX_STOPPED && s->link.watch.fd >= 0;

	if (check_ask(j, f) < 0 || (!is_open && sbx_check_running(s, f) < 0))
		return -1;
	if (!s->files) {
		s->files = mem_alloc(sizeof *s->files);
		s->files->last = &s->files->first;
	}
	for (struct worker *w = s->files->workers; w; w = w->next)
		if (!w->job && give(w, j))
			return 0;
	if (may_start(s->files, j->is_long)) {
		struct worker *w = worker_new(s, f);

		if (!w)
			return -1;
		return give(w, j) ? 0 : fail_set(f, FAIL_BUSY, "the file worker takes nothing");
	}
	if (j->is_long)
		return fail_set(f, FAIL_BUSY, "too many connections into the sandbox");
	if (s->files->n_waiting >= FILES_WAITING_MAX)
		return fail_set(f, FAIL_BUSY, "too many requests about files wait already");
	j->next = NULL;
	j->sandbox = s;
	*s->files->last = j;
	s->files->last = &j->next;
	s->files->n_waiting++;
	return 0;
}

void files_pause(struct job *j, bool is_paused)
{
	if (!j->worker)
		return;
	j->worker->is_paused = is_paused;
	want(j->worker);
}

void files_cancel(struct job *j)
{
	struct worker *w = j->worker;

	if (w) {
		w->job = NULL;
		worker_end(w);
	} else if (j->sandbox && j->sandbox->files) {
		(void)unqueue(j->sandbox->files, j); /* it waited for its turn */
	}
}

bool files_are_idle(const struct sbx *s)
{
	for (const struct worker *w = s->files ? s->files->workers : NULL; w; w = w->next)
		if (w->job)
			return false;
	return true;
}

void files_close(struct sbx *s)
{
	struct job *j;

	if (!s->files)
		return;
	while ((j = unqueue(s->files, s->files->first)))
		j->over(j, NULL);
	while (s->files->workers) {
		struct worker *w = s->files->workers;

		s->files->workers = w->next;
		worker_done(w);
	}
	free(s->files);
	s->files = NULL;
}
