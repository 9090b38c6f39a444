/*
 * log.h - the record of one process: what it wrote and how it ended, in one file.
 *
 *   head          LOG_FRAMES_AT bytes; the end record is written there once, the magic last; at
 *                 LOG_BIRTH_AT, of some, what the client wrote of the birth: JSON and a NUL
 *   frames        struct log_frame, then `len` bytes of one stream
 *
 * The client makes the file (empty, open for reading and writing) and passes it to the sandbox's
 * monitor, who writes; the client, and whoever comes after a crash of either, reads. A position in
 * the file is the `seq` of the API: it only grows, and a reader who has it goes on from there.
 *
 * Past `max` bytes the head and the tail are kept, half and half: the middle is a hole, which
 * begins and ends at a frame. Positions stay what they are. A reader who is never further behind
 * than half of `max` meets no hole.
 *
 * A reader trusts nothing in here but the numbers' ranges: they are checked against the size.
 * Reading and writing it: io/log.h.
 */
#pragma once

#include "wire/channel.h"

#define LOG_FRAMES_AT 16384u
#define LOG_BIRTH_AT 12288u
#define LOG_BIRTH_MAX (LOG_FRAMES_AT - LOG_BIRTH_AT)
#define LOG_FRAME_DATA_MAX (64u << 10)
#define LOG_MAGIC 0x313067736961632eu

enum log_stream { LOG_OUT, LOG_ERR, LOG_STREAMS };

struct log_frame {
	uint32_t len;    /* never 0 */
	uint32_t stream; /* enum log_stream */
	uint64_t ms;     /* since the process was started */
};

struct log_hole {
	uint64_t from, to; /* equal: none */
	uint64_t bytes;    /* of the process, in it */
};

struct log_head {
	uint64_t magic; /* LOG_MAGIC once the end below is whole */
	struct log_hole hole;
	struct channel_end end;
};
_Static_assert(sizeof(struct log_head) <= LOG_BIRTH_AT, "the head has its room");
