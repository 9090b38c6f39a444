#include "core/net.h"

#include "store/connections.h"
#include "test.h"

static const struct {
	struct gate_record r;
	enum connection_kind kind;
	const char *close, *reason, *decision, *dst, *real;
	int64_t denied, count;
} records[] = {
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
	{ { .kind = GATE_CLOSED, .close_by = 3, .decision = GATE_DENY, .reason = GATE_NO_RULE },
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
	{ { .kind = GATE_LOOKUP, .decision = GATE_DENY, .reason = GATE_NO_RULE, .count = 12 },
	  CONNECTION_LOOKUP,
	  NULL,
	  "no_rule",
	  "deny",
	  NULL,
	  NULL,
	  1,
	  12 },
	{ { .kind = GATE_USE, .request = 3, .decision = GATE_ALLOW, .method = "GET", .path = "/a" },
	  CONNECTION_REQUEST,
	  "open",
	  NULL,
	  "allow",
	  NULL,
	  NULL,
	  0,
	  1 },
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

TEST(a_record_is_a_row)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < COUNT(records); i++) {
		struct connection_row row;

		net_row(&records[i].r, &a, &row);
		CHECK_INT(row.kind, records[i].kind);
		CHECK_STR(row.close ? row.close : "-", records[i].close ? records[i].close : "-");
		CHECK_STR(row.reason ? row.reason : "-",
		          records[i].reason ? records[i].reason : "-");
		CHECK_STR(row.decision, records[i].decision);
		CHECK_STR(row.dst ? row.dst : "-", records[i].dst ? records[i].dst : "-");
		CHECK_STR(row.real ? row.real : "-", records[i].real ? records[i].real : "-");
		CHECK_INT(row.denied, records[i].denied);
		CHECK_INT(row.count, records[i].count);
		CHECK_INT(row.status, records[i].r.status);
		CHECK(!row.name && !row.sni && !row.rule);
	}
	arena_done(&a);
}
