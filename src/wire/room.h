/*
 * room.h - how much of the store's file system stays for the operator. Pure.
 *
 * What sandboxes write to workspaces lies on the file system of the store. Below the reserve the
 * daemon stops who took it (core/reserve.h), and the vault makes no more files than it must.
 */
#pragma once

#include "base/base.h"

/* As statfs(2) says it; a file system without a fixed number of inodes has 0 of them. */
struct room {
	uint64_t inodes, inodes_free, bytes, bytes_free;
};

/* Inodes that stay free; 0: they are not counted. */
static inline uint64_t room_inodes(const struct room *r)
{
	uint64_t share = r->inodes / 16;

	return r->inodes == 0 ? 0 : share < 256 ? 256 : share > 65536 ? 65536 : share;
}

static inline uint64_t room_bytes(const struct room *r)
{
	uint64_t share = r->bytes / 32;

	return share > (2ull << 30) ? 2ull << 30 : share;
}

/* Of these, files that are there to be removed: a writer may be faster than any look. */
static inline uint64_t room_ballast(const struct room *r)
{
	uint64_t half = room_inodes(r) / 2;

	return half > 512 ? 512 : half;
}

static inline bool room_lacks_inodes(const struct room *r)
{
	return r->inodes_free < room_inodes(r);
}

static inline bool room_lacks_bytes(const struct room *r)
{
	return r->bytes_free < room_bytes(r);
}
