#include "core/output.h"

#include <unistd.h>

void scan_done(struct scan *s)
{
	free(s->block);
	s->block = NULL;
}

/* `need` bytes at s->at, in the block. 1, 0: not there yet, -errno. */
static int fill(struct scan *s, size_t need)
{
	if (s->at >= s->block_at && s->at + need <= s->block_at + s->block_len)
		return 1;
	struct log_frame first;
	ssize_t n;

	if (!s->block) { /* many write nothing at all: no block for them */
		n = pread(s->fd, &first, sizeof first, (off_t)s->at);
		if (n < (ssize_t)sizeof first)
			return n < 0 ? -errno : 0;
		s->block = mem_alloc(SCAN_BLOCK);
	}
	n = pread(s->fd, s->block, SCAN_BLOCK, (off_t)s->at);
	if (n < 0)
		return -errno;
	s->block_at = s->at;
	s->block_len = (size_t)n;
	return s->block_len >= need;
}

static const unsigned char *here(const struct scan *s)
{
	return s->block + (s->at - s->block_at);
}

/* Inside the hole everything reads as zero: a frame of no length. Step over it. */
static int step_over(struct scan *s)
{
	struct log_hole hole;

	if (log_hole(s->fd, &hole) < 0 || s->at < hole.from || s->at >= hole.to)
		return 0;
	s->skipped = hole.bytes;
	s->at = hole.to;
	return 1;
}

static int read_frame(struct scan *s, struct log_frame *f)
{
	int r = fill(s, sizeof *f);

	if (r <= 0)
		return r;
	memcpy(f, here(s), sizeof *f);
	if (f->len == 0) /* never written: a hole, or a frame that is on its way */
		return 0;
	if (f->len > LOG_FRAME_DATA_MAX || f->stream >= LOG_STREAMS)
		return -EPROTO;
	return 1;
}

/* The next frame, stepping over the hole. */
static int find_frame(struct scan *s, struct log_frame *f)
{
	int r = read_frame(s, f);

	s->skipped = 0;
	/* A hole, or bytes that were read before it was made. */
	if (r <= 0 && r != -EIO && step_over(s)) {
		s->block_len = 0;
		s->part = 0;
		r = read_frame(s, f);
	}
	return r;
}

void scan_init(struct scan *s, int fd, uint64_t after)
{
	struct log_frame f;

	*s = (struct scan){ .fd = fd, .at = LOG_FRAMES_AT };
	while (s->at < after && find_frame(s, &f) > 0) {
		uint64_t end = s->at + sizeof f + f.len;

		if (after < end) { /* inside of this one */
			s->part = after - s->at > sizeof f ? (size_t)(after - s->at - sizeof f) : 0;
			return;
		}
		s->at = end;
	}
}

int scan_next(struct scan *s, struct scan_piece *out)
{
	struct log_frame f;
	int r = find_frame(s, &f);

	if (r > 0)
		r = fill(s, sizeof f + f.len);
	if (r <= 0)
		return r;
	*out = (struct scan_piece){ .stream = (enum log_stream)f.stream,
		                    .ms = f.ms,
		                    .bytes = here(s) + sizeof f + s->part,
		                    .len = f.len - s->part,
		                    .seq = s->at + sizeof f + f.len };
	s->at = out->seq;
	s->part = 0;
	return 1;
}

bool output_keep(struct scan *s, struct keep kept[LOG_STREAMS])
{
	uint64_t from = s->at;
	struct scan_piece p;

	while (s->at - from < SCAN_TURN) {
		if (scan_next(s, &p) <= 0)
			return true;
		if (s->skipped > 0) /* of which stream nobody knows any more */
			keep_skip(&kept[LOG_OUT], s->skipped);
		keep_add(&kept[p.stream], p.bytes, p.len);
	}
	return false;
}
