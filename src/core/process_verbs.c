/*
 * process_verbs.c - what is asked of a process that runs.
 */
#include "core/process.h"

static int refuse_ended(struct fail *f)
{
	return fail_set(f, FAIL_CONFLICT, "the process has ended");
}

static int say(struct px *p, enum channel_type type, const void *bytes, size_t n, struct fail *f)
{
	if (p->has_end || !p->sandbox)
		return refuse_ended(f);
	if (link_send(&p->sandbox->link, type, p->num, bytes, n) == 0)
		return 0;
	return fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
}

size_t px_input_room(const struct px *p)
{
	uint64_t out = p->in_sent - p->in_taken;

	return out >= CHANNEL_INPUT_MAX ? 0 : (size_t)(CHANNEL_INPUT_MAX - out);
}

int px_input(struct px *p, const void *bytes, size_t n, bool is_end, struct fail *f)
{
	const unsigned char *at = bytes;

	if (!p->has_stdin && !(p->is_tty && n == 0)) /* a terminal can be told that nobody types */
		return fail_set(f, FAIL_CONFLICT, "the process was started without standard input");
	if (n > px_input_room(p))
		return fail_set(f, FAIL_BUSY, "the process does not read: %zu bytes fit now",
		                px_input_room(p));
	p->is_waiting_for_input = false;
	while (n > 0) {
		size_t piece = n < CHANNEL_DATA_MAX ? n : CHANNEL_DATA_MAX;

		if (say(p, CH_IN, at, piece, f) < 0)
			return -1;
		p->in_sent += piece;
		at += piece;
		n -= piece;
	}
	return is_end ? say(p, CH_EOF, NULL, 0, f) : 0;
}

int px_signal(struct px *p, int sig, bool is_tree, struct fail *f)
{
	struct channel_signal s = { .sig = sig, .scope = is_tree ? SCOPE_TREE : SCOPE_PROCESS };

	return say(p, CH_SIGNAL, &s, sizeof s, f);
}

int px_kill(struct px *p, struct fail *f)
{
	return say(p, CH_KILL, NULL, 0, f);
}

int px_resize(struct px *p, uint16_t rows, uint16_t cols, struct fail *f)
{
	struct channel_size size = { .rows = rows, .cols = cols };

	return say(p, CH_RESIZE, &size, sizeof size, f);
}

void px_ack(struct px *p, uint64_t position)
{
	if (!p->has_end && p->sandbox)
		(void)link_send(&p->sandbox->link, CH_ACK, p->num, &position, sizeof position);
}

void px_watch_input(struct px *p, bool on)
{
	uint32_t yes = on;

	if (!p->has_end && p->sandbox)
		(void)link_send(&p->sandbox->link, CH_WATCH, p->num, &yes, sizeof yes);
}
