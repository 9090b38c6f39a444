#include "base/hex.h"

#include "test.h"

TEST(digits_are_read_as_they_are_printed)
{
	static const struct {
		const char *text;
		bool is_read;
	} rows[] = {
		{ "00ff7a", true },   { "00FF7A", false }, { "00ff7", false },  { "", false },
		{ "00ff7a0", false }, { "00ff7g", false }, { "0 ff7a", false }, { "/:`g00", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t bytes[3];
		char again[2 * sizeof bytes + 1];

		CHECK(hex_read(rows[i].text, bytes, sizeof bytes) == rows[i].is_read);
		if (!rows[i].is_read)
			continue;
		hex_print(bytes, sizeof bytes, again);
		CHECK_STR(again, rows[i].text);
	}
}
