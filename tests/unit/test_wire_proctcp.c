#include "wire/proctcp.h"

#include "test.h"

#define REST " 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1"

TEST(a_line_of_the_kernel_is_read)
{
	static const struct {
		const char *line;
		uint16_t port;
		bool is_v6;
		unsigned int state;
		uint8_t first, last; /* bytes of the address */
	} rows[] = {
		{ "   0: 0100007F:0BB8" REST, 3000, false, 10, 127, 1 },
		{ "  12: 00000000:FFFF" REST, 65535, false, 10, 0, 0 },
		{ "   1: 0100007F:0016 0100007F:C350 01 00", 22, false, 1, 127, 1 },
		{ "   0: 00000000000000000000000001000000:1F40 "
		  "00000000000000000000000000000000:0000 0A 0",
		  8000, true, 10, 0, 1 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct proctcp t;

		CHECK(proctcp_line(span_of(rows[i].line), &t));
		CHECK_INT(t.port, rows[i].port);
		CHECK_INT(t.is_v6, rows[i].is_v6);
		CHECK_INT(t.state, rows[i].state);
		CHECK_INT(t.address[0], rows[i].first);
		CHECK_INT(t.address[t.is_v6 ? 15 : 3], rows[i].last);
	}
}

TEST(anything_else_is_refused)
{
	static const char *const lines[] = {
		"",
		"  sl  local_address rem_address   st tx_queue rx_queue",
		"   0:",
		"   0: 0100007F",
		"   0: 0100007F:",
		"   0: 0100007F:0BB8",
		"   0: 0100007F:0BB8 00000000:0000",
		"   0: 0100007F:0BB8 00000000:0000 1AB",
		"   0: 0100007F:10000" REST,
		"   0: 0100007:0BB8" REST,
		"   0: 0100007F0:0BB8" REST,
		"   0: 0100007g:0BB8" REST,
		"   0: 0100007F:0BB8\n 00000000:0000 0A",
		"   0 0100007F:0BB8" REST,
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		struct proctcp t;

		CHECK(!proctcp_line(span_of(lines[i]), &t));
	}
}
