#include "wire/stream.h"

static const char letters[] = "SONELXQFIZGRK";

int stream_parse(const void *buf, size_t len, struct stream_frame *out)
{
	const unsigned char *p = buf;

	if (len == 0)
		return 0;
	if (p[0] == '\0' || !strchr(letters, p[0]))
		return -1;
	if (len < STREAM_HEAD)
		return 0;
	size_t n = (size_t)p[4] << 24 | (size_t)p[5] << 16 | (size_t)p[6] << 8 | p[7];
	if (p[1] || p[2] || p[3] || n > STREAM_DATA_MAX)
		return -1;
	if (len < STREAM_HEAD + n)
		return 0;
	*out = (struct stream_frame){ (enum stream_type)p[0], p + STREAM_HEAD, n };
	return (int)(STREAM_HEAD + n);
}

void stream_head(unsigned char out[STREAM_HEAD], enum stream_type type, size_t len)
{
	out[0] = (unsigned char)type;
	out[1] = out[2] = out[3] = 0;
	for (int i = 0; i < 4; i++)
		out[4 + i] = (unsigned char)(len >> (24 - 8 * i));
}
