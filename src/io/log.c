#include "io/log.h"

#include "os/extent.h"

#define FRAME_MIN 512
#define PAGE_MAX (64u << 10) /* of any file system and processor */

/* ---- writer ------------------------------------------------------------------------ */

void log_create(struct log_writer *w, int fd, uint64_t max_bytes)
{
	*w = (struct log_writer){ .fd = fd, .at = LOG_FRAMES_AT, .max = max_bytes };
}

static uint64_t kept(const struct log_writer *w)
{
	return w->at - LOG_FRAMES_AT - (w->hole.to - w->hole.from);
}

/* The hole takes the oldest frames of the tail until `max` bytes are left. */
static int widen(struct log_writer *w)
{
	struct log_hole h = w->hole;

	while (w->at - LOG_FRAMES_AT - (h.to - h.from) > w->max) {
		struct log_frame f;
		int n = os_pread(w->fd, &f, sizeof f, (off_t)h.to);

		if (n != (int)sizeof f)
			return n < 0 ? n : -EPROTO;
		if (f.len == 0 || f.len > LOG_FRAME_DATA_MAX || h.to + sizeof f + f.len > w->at)
			return -EPROTO;
		h.to += sizeof f + f.len;
		h.bytes += f.len;
	}
	/* Readers look at the head before and after: it is never younger than what it says. */
	int r = os_pwrite2(w->fd, &h, sizeof h, NULL, 0, offsetof(struct log_head, hole));
	if (r < 0)
		return r;
	/* Once more over the page that the last one left because it was not all of it. */
	uint64_t from = w->hole.to & ~(uint64_t)(PAGE_MAX - 1);
	from = from < h.from ? h.from : from;
	w->hole = h;
	return os_punch(w->fd, (off_t)from, (off_t)(h.to - from));
}

/* Not at every frame: an eighth is gathered first. */
static bool is_over(const struct log_writer *w)
{
	return w->max > 0 && w->hole.from > 0 && kept(w) > w->max + w->max / 8;
}

/* A frame is kept whole or not at all, so with a small ceiling frames are small. */
static size_t frame_max(const struct log_writer *w)
{
	uint64_t most =
	    w->max > 0 && w->max / 8 < LOG_FRAME_DATA_MAX ? w->max / 8 : LOG_FRAME_DATA_MAX;

	return most < FRAME_MIN ? FRAME_MIN : (size_t)most;
}

static void add_frame(struct log_writer *w, const struct log_frame *f, const void *bytes)
{
	if (w->is_stuck && kept(w) > w->max) {
		w->dropped += f->len;
		return;
	}
	if (w->hole.from == 0 && w->at >= LOG_FRAMES_AT + w->max / 2)
		w->hole.from = w->hole.to = w->at; /* the tail begins here */
	int r = os_pwrite2(w->fd, f, sizeof *f, bytes, f->len, (off_t)w->at);
	if (r < 0) {
		w->dropped += f->len;
		(void)os_ftruncate(w->fd, (off_t)w->at); /* half a frame would be read as one */
		return;
	}
	w->at += sizeof *f + f->len;
	if (is_over(w) && !w->is_stuck)
		w->is_stuck = widen(w) < 0;
}

void log_add(struct log_writer *w, enum log_stream s, uint64_t ms, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	size_t most = frame_max(w);

	for (; n > 0;) {
		struct log_frame f = { .len = (uint32_t)(n < most ? n : most),
			               .stream = s,
			               .ms = ms };

		add_frame(w, &f, at);
		at += f.len;
		n -= f.len;
	}
}

int log_close(const struct log_writer *w, const struct channel_end *end)
{
	static const uint64_t magic = LOG_MAGIC;
	int r =
	    os_pwrite2(w->fd, end, channel_end_size(end), NULL, 0, offsetof(struct log_head, end));

	return r < 0 ? r : os_pwrite2(w->fd, &magic, sizeof magic, NULL, 0, 0);
}

/* ---- reader ------------------------------------------------------------------------ */

/* What was never written reads as zeros or is behind the end: there is no hole then. */
int log_hole(int fd, struct log_hole *out)
{
	*out = (struct log_hole){ 0 };
	int n = os_pread(fd, out, sizeof *out, offsetof(struct log_head, hole));
	if (n < 0)
		return n;
	if (n < (int)sizeof *out)
		*out = (struct log_hole){ 0 };
	if (out->to < out->from || (out->to > 0 && out->from < LOG_FRAMES_AT) ||
	    out->to > INT64_MAX)
		return -EPROTO;
	return 0;
}

static bool is_in(const struct log_hole *h, uint64_t at)
{
	return at >= h->from && at < h->to;
}

/* 1 with the frame, 0 when it is not whole yet. */
static int read_frame(int fd, uint64_t at, struct log_frame *f, void *buf)
{
	int n = os_pread(fd, f, sizeof *f, (off_t)at);

	if (n < (int)sizeof *f)
		return n < 0 ? n : 0;
	if (f->len == 0 || f->len > LOG_FRAME_DATA_MAX || f->stream >= LOG_STREAMS)
		return -EPROTO;
	n = os_pread(fd, buf, f->len, (off_t)(at + sizeof *f));
	return n < 0 ? n : n == (int)f->len;
}

/* The hole may grow while we read: then what we have may be zeros, and we jump after all. */
int log_next(int fd, uint64_t *at, struct log_frame *f, void *buf, uint64_t *skipped)
{
	struct log_hole before, after;

	*skipped = 0;
	for (;;) {
		int r = log_hole(fd, &before);
		if (r < 0)
			return r;
		if (is_in(&before, *at)) {
			*skipped += before.to - *at;
			*at = before.to;
		}
		if (*at < LOG_FRAMES_AT || *at > INT64_MAX)
			return -EPROTO;
		int got = read_frame(fd, *at, f, buf);
		r = log_hole(fd, &after);
		if (r < 0)
			return r;
		if (is_in(&after, *at))
			continue;
		if (got > 0)
			*at += sizeof *f + f->len;
		return got;
	}
}

bool log_has_end(int fd)
{
	uint64_t magic = 0;

	return os_pread(fd, &magic, sizeof magic, 0) == (int)sizeof magic && magic == LOG_MAGIC;
}

int log_end(int fd, struct channel_end *out)
{
	uint64_t magic = 0;
	unsigned char bytes[sizeof *out];
	int n = os_pread(fd, &magic, sizeof magic, 0);

	if (n < (int)sizeof magic || magic == 0)
		return n < 0 ? n : 0;
	if (magic != LOG_MAGIC)
		return -EPROTO;
	n = os_pread(fd, bytes, sizeof bytes, offsetof(struct log_head, end));
	if (n < 0)
		return n;
	return channel_end_read(out, bytes, (size_t)n) ? 1 : -EPROTO;
}
