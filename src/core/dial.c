#include "core/dial.h"

#include <sys/socket.h>

#include "base/fd.h"
#include "os/pulse.h"
#include "os/sock.h"

#define LEAVE_MS 2000 /* then the worker is ended: it hangs on somebody who reads nothing */

static void dial_free(struct dial *d)
{
	timer_stop(&d->core->timers, &d->deadline);
	fd_close(&d->fd);
	free(d);
}

static void tell(struct dial *d)
{
	if (!d->is_left && d->changed)
		d->changed(d);
}

/* ---- what the worker says ------------------------------------------------------------ */

static void explain(struct dial *d, enum tree_code code)
{
	unsigned int port = (unsigned int)d->job.ask.request.from;

	if (code == TREE_NOT_FOUND)
		fail_set(&d->fail, FAIL_NOT_FOUND, "nothing listens on port %u", port);
	else if (code == TREE_EXPIRED)
		fail_set(&d->fail, FAIL_EXPIRED, "port %u takes no connection", port);
	else
		fail_set(&d->fail, FAIL_SANDBOX_UNAVAILABLE, "no connection could be made");
	d->fail.is_retry_safe = true;
}

static void answered(struct job *j, const struct tree_packet *p, bool is_last)
{
	struct dial *d = (struct dial *)j;

	if (p->answer.code != TREE_OK || is_last) {
		explain(d, (enum tree_code)p->answer.code);
		return; /* its end follows at once, or its worker's */
	}
	d->is_connected = true;
	tell(d);
}

static void far_closed(struct job *j, struct span bytes)
{
	struct dial *d = (struct dial *)j;

	(void)bytes;
	if (!d->is_connected || d->is_far_closed)
		return;
	d->is_far_closed = true;
	tell(d);
}

static void over(struct job *j, const struct tree_answer *a)
{
	struct dial *d = (struct dial *)j;

	(void)a; /* whether all had come, is_far_closed says */
	d->is_over = true;
	if (!d->is_connected && d->fail.code == FAIL_NONE)
		explain(d, TREE_BACKEND_ERROR);
	if (d->is_left)
		dial_free(d);
	else
		tell(d);
}

/* ---- life ---------------------------------------------------------------------------- */

static void leave_late(struct timer *t)
{
	struct dial *d = (struct dial *)(void *)((char *)t - offsetof(struct dial, deadline));

	files_cancel(&d->job);
	dial_free(d);
}

struct dial *dial_start(struct sbx *s, uint16_t port, uint32_t time_ms, struct fail *f)
{
	int ends[2];

	if (sbx_check_running(s, f) < 0)
		return NULL;
	if (os_socketpair(ends, SOCK_STREAM) < 0) {
		fail_set(f, FAIL_BACKEND_ERROR, "too many open files");
		return NULL;
	}
	AUTO(fd_close) int theirs = ends[1];
	(void)os_refuse_fds(ends[0]);
	struct dial *d = mem_alloc(sizeof *d);

	*d = (struct dial){ .core = s->core, .fd = ends[0] };
	d->job = (struct job){
		.answer = answered, .data = far_closed, .over = over, .fd = theirs, .is_long = true
	};
	d->job.ask.flags = TREE_FD;
	d->job.ask.request =
	    (struct tree_request){ .verb = TREE_DIAL, .from = port, .time_ms = time_ms };
	d->deadline.fired = leave_late;
	int r = files_start(s, &d->job, f);
	if (r == 0 && d->is_over) { /* its worker took nothing */
		*f = d->fail;
		r = -1;
	}
	if (r < 0) {
		dial_free(d);
		return NULL;
	}
	return d;
}

void dial_end(struct dial *d)
{
	if (d->is_over) {
		dial_free(d);
		return;
	}
	d->is_left = true;
	fd_close(&d->fd);
	timer_set(&d->core->timers, &d->deadline, d->is_connected ? LEAVE_MS : 0);
}
