/*
 * live_frames.c - the dialect of our CLI (wire/stream.h).
 */
#include "api/live-internal.h"

static bool frame(struct live *l, enum stream_type type, const void *bytes, size_t n)
{
	unsigned char head[STREAM_HEAD];

	stream_head(head, type, n);
	(void)reply_write(l->call->r, head, sizeof head);
	return reply_write(l->call->r, bytes, n);
}

static bool piece(struct live *l, const struct scan_piece *p)
{
	char text[24];

	if (l->scan.skipped > 0) {
		int n = snprintf(text, sizeof text, "%llu", (unsigned long long)l->scan.skipped);

		(void)frame(l, STREAM_LOST, text, (size_t)n);
	}
	return frame(l, p->stream == LOG_OUT ? STREAM_OUT : STREAM_ERR, p->bytes, p->len);
}

/* An object may be longer than a frame: then it comes in several of the same letter. */
static void json(struct live *l, enum stream_type type, const char *text)
{
	size_t n = strlen(text);

	do {
		size_t some = n < STREAM_DATA_MAX ? n : STREAM_DATA_MAX;

		(void)frame(l, type, text, some);
		text += some;
		n -= some;
	} while (n > 0);
}

static void end(struct live *l)
{
	(void)l; /* the object was the last word */
}

static long number(const struct stream_frame *f, char text[32], char **rest)
{
	snprintf(text, 32, "%.*s", (int)(f->len < 31 ? f->len : 31), (const char *)f->data);
	return strtol(text, rest, 10);
}

static bool take_one(struct live *l, const struct stream_frame *f)
{
	char text[32], *rest;
	struct fail ignored;
	long n;

	switch (f->type) {
	case STREAM_IN:
		return live_input(l, f->data, f->len);
	case STREAM_EOF:
		live_eof(l);
		break;
	case STREAM_SIGNAL:
		n = number(f, text, &rest);
		if (n > 0 && n < 65)
			(void)px_signal(l->p, (int)n, false, &ignored); /* it may have ended */
		break;
	case STREAM_RESIZE:
		n = number(f, text, &rest);
		live_resize(l, n, strtol(rest, NULL, 10));
		break;
	case STREAM_KILL:
		(void)px_kill(l->p, &ignored);
		break;
	case STREAM_STARTED:
	case STREAM_OUT:
	case STREAM_NOTE:
	case STREAM_ERR:
	case STREAM_LOST:
	case STREAM_END:
	case STREAM_EXITED:
	case STREAM_FAIL:
		break; /* not a client's to say */
	}
	return true;
}

static bool take(struct live *l)
{
	struct stream_frame f;
	size_t at = 0;
	int n;

	while ((n = stream_parse(l->in + at, l->in_len - at, &f)) > 0 && take_one(l, &f))
		at += (size_t)n;
	memmove(l->in, l->in + at, l->in_len - at);
	l->in_len -= at;
	return n >= 0;
}

const struct dialect dialect_frames = { piece, json, end, take };
