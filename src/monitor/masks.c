/*
 * masks.c - what a command writes, on its way to the log: a secret that its sandbox uses, and that
 * came back in some way, becomes stars. The gate has the values; what is here are marks
 * (wire/marks.h), which the gate tells of. Without any, bytes pass as they are.
 *
 * What may be the beginning of one is held for a moment, and let go at the end of the command.
 */
#include "monitor/monitor-internal.h"

#define OUT_MAX (8u << 20)

static struct str out = { .max = OUT_MAX }; /* of whoever writes just now */

static void keep_out(struct stream *s)
{
	for (size_t at = 0; at < out.len; at += LOG_FRAME_DATA_MAX) {
		size_t left = out.len - at;

		streams_keep(s, out.data + at,
		             left < LOG_FRAME_DATA_MAX ? left : LOG_FRAME_DATA_MAX);
	}
	str_clear(&out);
}

static void note_hits(struct stream *s)
{
	struct proc *p = s->proc;
	uint64_t hits = p->streams[0].masking.hits + p->streams[1].masking.hits;

	if (hits == p->masked.hits)
		return;
	p->masked.hits = hits;
	snprintf(p->masked.name, sizeof p->masked.name, "%s", s->masking.name);
	p->due_masked = true;
}

static void flush(struct stream *s)
{
	timer_stop(&s->proc->monitor->timers, &s->hold);
	masking_flush(&s->masking, s->proc->monitor->marker, &out);
	keep_out(s);
	note_hits(s);
}

static void hold_fired(struct timer *t)
{
	struct stream *s = OWNER_OF(t, struct stream, hold);

	flush(s);
	talk_proc(s->proc);
}

void masks_pass(struct stream *s, const void *bytes, size_t n)
{
	struct monitor *m = s->proc->monitor;

	if (!m->marker && s->masking.held.len == 0) {
		streams_keep(s, bytes, n);
		return;
	}
	masking_feed(&s->masking, m->marker, (struct span){ bytes, n }, &out);
	keep_out(s);
	note_hits(s);
	uint32_t wait_ms = masking_wait_ms(&s->masking);

	s->hold.fired = hold_fired;
	if (wait_ms > 0)
		timer_set(&m->timers, &s->hold, wait_ms);
}

/* The log of this command ends here, or that of the process. */
void masks_end(struct proc *p)
{
	for (size_t i = 0; i < COUNT(p->streams); i++) {
		if (!p->streams[i].masking.held.data)
			continue;
		flush(&p->streams[i]);
		masking_done(&p->streams[i].masking);
	}
}

void masks_begin(struct proc *p)
{
	for (size_t i = 0; i < COUNT(p->streams); i++)
		p->streams[i].masking.hits = 0;
	p->masked.hits = 0;
}

void masks_take(struct monitor *m, const struct gate_marks *from)
{
	static struct marks all;

	marks_take(&all, from);
	marker_free(m->marker);
	m->marker = all.n > 0 ? marker_new(&all) : NULL;
}
