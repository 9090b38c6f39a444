#include "core/net.h"

#include "store/connections.h"
#include "test.h"

TEST(a_record_is_a_row)
{
	static const struct {
		struct gate_record r;
		enum connection_kind kind;
		const char *close, *reason, *decision, *dst, *real;
		int64_t denied, count;
	} rows[] = {
		{ { .kind = GATE_OPENED, .dst = { 198, 18, 0, 2 }, .real = { 192, 0, 2, 7 } },
		  CONNECTION_ONE,
		  "open",
		  NULL,
		  "allow",
		  "198.18.0.2",
		  "192.0.2.7",
		  0,
		  1 },
		{ { .kind = GATE_CLOSED,
		    .close_by = 1,
		    .reason = GATE_RELOADED,
		    .dst = { 198, 18, 0, 2 },
		    .real = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
		  CONNECTION_ONE,
		  "client",
		  "reloaded",
		  "allow",
		  "198.18.0.2",
		  "2001:db8::1",
		  0,
		  1 },
		{ { .kind = GATE_CLOSED, .close_by = 2 },
		  CONNECTION_ONE,
		  "server",
		  NULL,
		  "allow",
		  NULL,
		  NULL,
		  0,
		  1 },
		{ { .kind = GATE_CLOSED,
		    .close_by = 3,
		    .decision = GATE_DENY,
		    .reason = GATE_NO_RULE },
		  CONNECTION_ONE,
		  "gate",
		  "no_rule",
		  "deny",
		  NULL,
		  NULL,
		  1,
		  1 },
		{ { .kind = GATE_CLOSED, .decision = GATE_ASKED_DENY, .reason = GATE_ASK_TIMEOUT },
		  CONNECTION_ONE,
		  "gate",
		  "ask_timeout",
		  "ask_deny",
		  NULL,
		  NULL,
		  1,
		  1 },
		{ { .kind = GATE_LOOKUP,
		    .decision = GATE_DENY,
		    .reason = GATE_NO_RULE,
		    .count = 12 },
		  CONNECTION_LOOKUP,
		  NULL,
		  "no_rule",
		  "deny",
		  NULL,
		  NULL,
		  1,
		  12 },
		{ { .kind = GATE_REQUEST,
		    .request = 3,
		    .decision = GATE_ASKED_ALLOW,
		    .method = "GET",
		    .path = "/a",
		    .status = 204 },
		  CONNECTION_REQUEST,
		  NULL,
		  NULL,
		  "ask_allow",
		  NULL,
		  NULL,
		  0,
		  1 },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct connection_row row;

		net_row(&rows[i].r, &a, &row);
		CHECK_INT(row.kind, rows[i].kind);
		CHECK_STR(row.close ? row.close : "-", rows[i].close ? rows[i].close : "-");
		CHECK_STR(row.reason ? row.reason : "-", rows[i].reason ? rows[i].reason : "-");
		CHECK_STR(row.decision, rows[i].decision);
		CHECK_STR(row.dst ? row.dst : "-", rows[i].dst ? rows[i].dst : "-");
		CHECK_STR(row.real ? row.real : "-", rows[i].real ? rows[i].real : "-");
		CHECK_INT(row.denied, rows[i].denied);
		CHECK_INT(row.count, rows[i].count);
		CHECK_INT(row.status, rows[i].r.status);
		CHECK(!row.name && !row.sni && !row.rule);
	}
	arena_done(&a);
}
