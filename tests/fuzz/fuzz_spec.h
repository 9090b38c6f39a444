/*
 * fuzz_spec.h - what must hold for every spec that is accepted, and for every message.
 */
#pragma once

#include "spec/spec.h"

enum { PRINTED_MAX = 8 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A message is printable ASCII, whatever the input was. */
static inline void expect_message(const struct err *e)
{
	if (e->kind == ERR_NONE || e->kind == ERR_INTERNAL || !e->msg[0])
		abort();
	for (const char *p = e->msg; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			abort();
}

/* Prints; false when the spec is too long for that. */
static inline bool printed(const struct spec *s, struct str *json, struct str *yaml)
{
	struct err e = { 0 };

	if (spec_print(s, json, &e) == 0 && spec_print_yaml(s, yaml, &e) == 0)
		return true;
	if (e.kind != ERR_LIMIT)
		abort();
	return false;
}

/* Reading what was printed and printing it again changes nothing. */
static inline void expect_fixpoint(const struct spec *s)
{
	AUTO(str_done) struct str json = { .max = PRINTED_MAX };
	AUTO(str_done) struct str yaml = { .max = PRINTED_MAX };
	AUTO(str_done) struct str again = { .max = PRINTED_MAX };
	AUTO(spec_done) struct spec from_json, from_yaml;
	struct err e = { 0 };

	spec_init(&from_json);
	spec_init(&from_yaml);
	if (!printed(s, &json, &yaml))
		return;
	if (spec_json(&from_json, json.data, json.len, &e) < 0 ||
	    spec_yaml(&from_yaml, yaml.data, yaml.len, &e) < 0)
		abort();
	if (spec_print(&from_json, &again, &e) < 0 || strcmp(again.data, json.data) != 0)
		abort();
	str_clear(&again);
	if (spec_print(&from_yaml, &again, &e) < 0 || strcmp(again.data, json.data) != 0)
		abort();
}

/* `r` is what the reader of `s` returned. */
static inline void expect_spec(struct spec *s, int r, const struct err *e)
{
	struct err why = { 0 };

	if (r < 0) {
		expect_message(e);
		return;
	}
	expect_fixpoint(s);
	if (spec_check(s, &why) < 0) {
		expect_message(&why);
		return;
	}
	spec_resolve(s);
	if (spec_check(s, &why) < 0)
		abort();
	expect_fixpoint(s);
}
