#include "wire/ledger_export.h"

#include "test.h"
#include "wire/ledger_text.h"

/* A record with all names. */
static struct span record(enum ledger_kind kind, const char *data)
{
	static struct str line;
	const struct ledger_event ev = { .kind = kind,
		                         .tenant = "anna",
		                         .sandbox = "sb_1",
		                         .workspace = "ws_1",
		                         .process = "px_1",
		                         .actor = "uid:0",
		                         .src = "ab-2",
		                         .data = data };
	const struct ledger_place at = { .seq = 7,
		                         .ts_ms = 1500,
		                         .prev = LEDGER_ZERO,
		                         .link_seq = 1,
		                         .link_prev = LEDGER_ZERO };
	char hash[LEDGER_HASH_SIZE];

	str_done(&line);
	line.max = LEDGER_LINE_MAX;
	CHECK(ledger_print(&line, &ev, &at, hash));
	return (struct span){ line.data, line.len - 1 };
}

static json_int_t number_at(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* What the classes of OCSF 1.3 need, beyond what all of them do. */
static const struct {
	int class;
	const char *needs[4];
} classes[] = {
	{ 1007, { "actor", "device", "process" } },
	{ 3004, { "entity" } },
	{ 4001, { "dst_endpoint" } },
	{ 4002, { "dst_endpoint", "http_request" } },
	{ 4003, { "query" } },
	{ 6002, { "app" } },
	{ 6003, { "actor", "api", "src_endpoint" } },
};

static void check_class(const json_t *o)
{
	json_int_t class = number_at(o, "class_uid");
	size_t i = 0;

	while (i < COUNT(classes) && classes[i].class != class)
		i++;
	CHECK(i < COUNT(classes));
	for (size_t k = 0; k < COUNT(classes[i].needs) && classes[i].needs[k]; k++)
		CHECK(json_is_object(json_object_get(o, classes[i].needs[k])));
}

TEST(every_kind_is_an_event_of_ocsf_that_has_what_its_class_needs)
{
	for (enum ledger_kind k = 0; k < LEDGER_KINDS; k++) {
		json_t *o = ledger_ocsf(record(k, "{\"name\":\"example.org\",\"status\":200}"));
		const json_t *metadata = json_object_get(o, "metadata");

		CHECK(o);
		CHECK_INT(number_at(o, "category_uid"), number_at(o, "class_uid") / 1000);
		CHECK_INT(number_at(o, "type_uid"),
		          number_at(o, "class_uid") * 100 + number_at(o, "activity_id"));
		CHECK_INT(number_at(o, "time"), 1500);
		CHECK_INT(number_at(o, "severity_id"), 1);
		CHECK_STR(json_string_value(json_object_get(metadata, "version")), "1.3.0");
		CHECK_STR(json_string_value(json_object_get(metadata, "event_code")),
		          ledger_kind_name(k));
		CHECK_INT(number_at(metadata, "sequence"), 7);
		CHECK(json_object_get(json_object_get(o, "unmapped"), "data"));
		check_class(o);
		json_decref(o);
	}
}

TEST(what_was_denied_is_worse)
{
	static const struct {
		const char *data;
		int severity, disposition, otlp;
	} rows[] = { { "{\"decision\":\"allow\"}", 1, 1, 9 },
		     { "{\"decision\":\"deny\"}", 3, 2, 13 },
		     { "{\"decision\":7}", 1, 1, 9 },
		     { "{}", 1, 1, 9 } };

	for (size_t i = 0; i < COUNT(rows); i++) {
		json_t *o = ledger_ocsf(record(LEDGER_NET_CONNECTION, rows[i].data));
		json_t *l = ledger_otlp(record(LEDGER_NET_CONNECTION, rows[i].data));

		CHECK_INT(number_at(o, "severity_id"), rows[i].severity);
		CHECK_INT(number_at(o, "disposition_id"), rows[i].disposition);
		CHECK_INT(number_at(l, "severityNumber"), rows[i].otlp);
		json_decref(o);
		json_decref(l);
	}
}

TEST(records_of_one_request_to_a_collector)
{
	json_t *list = json_array();

	for (int i = 0; i < 3; i++)
		json_array_append_new(list, ledger_otlp(record(LEDGER_EXEC_STARTED, "{}")));
	json_t *o = ledger_otlp_request(list);
	const json_t *logs = json_array_get(json_object_get(o, "resourceLogs"), 0);
	const json_t *scope = json_array_get(json_object_get(logs, "scopeLogs"), 0);
	const json_t *one = json_array_get(json_object_get(scope, "logRecords"), 2);

	CHECK_INT((long long)json_array_size(json_object_get(scope, "logRecords")), 3);
	CHECK_STR(json_string_value(json_object_get(one, "timeUnixNano")), "1500000000");
	CHECK_STR(json_string_value(json_object_get(json_object_get(one, "body"), "stringValue")),
	          "exec.started");
	CHECK(json_array_size(json_object_get(one, "attributes")) >= 8);
	json_decref(o);
}

TEST(foreign_text_stays_on_its_line_in_every_form)
{
	static const char data[] = "{\"argv\":[\"\\u001b]52;c;AAAA\\u0007\",\"\\u202e\","
				   "\"\\u009b\",\"a\\nb\",\"\\u007f\"]}";
	json_t *forms[] = { ledger_ocsf(record(LEDGER_EXEC_STARTED, data)),
		            ledger_otlp(record(LEDGER_EXEC_STARTED, data)) };

	for (size_t i = 0; i < COUNT(forms); i++) {
		AUTO(str_done) struct str text = { .max = 4ul * LEDGER_LINE_MAX };

		ledger_text(forms[i], &text);
		for (size_t k = 0; k < text.len; k++)
			CHECK(text.data[k] >= ' ' && text.data[k] <= '~');
		json_decref(forms[i]);
	}
}

TEST(what_is_no_record_is_nothing)
{
	static const char *const lines[] = { "", "{}", "{\"seq\":1}", "x" };

	for (size_t i = 0; i < COUNT(lines); i++) {
		CHECK(!ledger_ocsf(span_of(lines[i])));
		CHECK(!ledger_otlp(span_of(lines[i])));
	}
	/* In form a record, and its data is no JSON. */
	CHECK(!ledger_ocsf(record(LEDGER_EXEC_STARTED, "{x}")));
	CHECK(!ledger_otlp(record(LEDGER_EXEC_STARTED, "{x}")));
}
