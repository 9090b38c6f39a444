#include "io/loop.h"

#include "base/fd.h"
#include "os/pulse.h"
#include "os/ret.h"

int loop_init(struct loop *l)
{
	OS_FAULT("epoll_create1");
	*l = (struct loop){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	return os_ret(l->epoll_fd) < 0 ? -errno : 0;
}

int loop_pulse(struct loop *l)
{
	int r = os_pulse_init();

	l->has_pulse = r >= 0;
	return r;
}

void loop_close(struct loop *l)
{
	fd_close(&l->epoll_fd);
}

static int control(struct loop *l, int op, struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	OS_FAULT("epoll_ctl");
	return os_ret(epoll_ctl(l->epoll_fd, op, w->fd, &ev));
}

int loop_add(struct loop *l, struct watch *w, uint32_t events)
{
	return control(l, EPOLL_CTL_ADD, w, events);
}

int loop_change(struct loop *l, struct watch *w, uint32_t events)
{
	return control(l, EPOLL_CTL_MOD, w, events);
}

void loop_remove(struct loop *l, struct watch *w)
{
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	/* Its owner may be freed before its event comes up in this batch. */
	for (int i = 0; i < l->n_events; i++)
		if (l->events[i].data.ptr == w)
			l->events[i].data.ptr = NULL;
}

int loop_run(struct loop *l)
{
	while (!l->is_done) {
		l->n_events = epoll_wait(l->epoll_fd, l->events, LOOP_BATCH, -1);
		if (l->n_events < 0 && errno != EINTR)
			return -errno;
		if (l->has_pulse)
			os_pulse_on();
		for (int i = 0; i < l->n_events; i++) {
			struct watch *w = l->events[i].data.ptr;

			if (w)
				w->ready(w, l->events[i].events);
		}
		if (l->has_pulse)
			os_pulse_off();
		l->n_events = 0;
	}
	return 0;
}
