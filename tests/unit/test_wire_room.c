#include "wire/room.h"

#include "test.h"

TEST(a_reserve_has_bounds)
{
	static const struct {
		uint64_t inodes, reserve, ballast;
	} rows[] = {
		{ 0, 0, 0 },        { 100, 256, 128 },        { 4096, 256, 128 },
		{ 8192, 512, 256 }, { 1u << 20, 65536, 512 }, { 1ull << 40, 65536, 512 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct room r = { .inodes = rows[i].inodes };

		CHECK_INT(room_inodes(&r), rows[i].reserve);
		CHECK_INT(room_ballast(&r), rows[i].ballast);
	}
	CHECK_INT(room_bytes(&(struct room){ .bytes = 1u << 30 }), 32 << 20);
	CHECK_INT(room_bytes(&(struct room){ .bytes = 1ull << 50 }), 2ll << 30);
}

TEST(what_is_not_counted_is_never_short)
{
	const struct room btrfs = { .bytes = 100, .bytes_free = 100 };
	const struct room full = {
		.inodes = 8192, .inodes_free = 511, .bytes = 3200, .bytes_free = 99
	};

	CHECK(!room_lacks_inodes(&btrfs) && !room_lacks_bytes(&btrfs));
	CHECK(room_lacks_inodes(&full) && room_lacks_bytes(&full));
}
