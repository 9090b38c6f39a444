/*
 * fuzz_docker_template.c - any template of `docker --format`, over a value of our own or one that
 * follows it behind a NUL: it prints or says why not, the same each time, and the value stays as it
 * was.
 */
#include <stdlib.h>

#include "cli/docker_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANGES_MAX = 4, OUT_MAX = 1 << 20 }; /* a range in a range in a range takes its time */

static const char ours[] =
    "{\"ID\":\"abc\",\"N\":3,\"R\":0.5,\"Yes\":true,\"Nil\":null,\"List\":[\"a\",\"b\",[]],"
    "\"Map\":{\"z\":\"1\",\"a.b\":{\"c\":[1]}},\"_labels\":{\"k\":\"v\"}}";

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		n++;
	}
	return n;
}

static int render(const char *text, json_t *value, struct str *out, struct err *e)
{
	int r = template_render(text, value, out, e);

	expect((r == 0) == (e->kind == ERR_NONE) && (r == 0 || e->msg[0]));
	expect(out->len <= OUT_MAX && (r < 0 || !out->overflow));
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(freep) char *text = mem_alloc(size + 1);
	AUTO(str_done) struct str out = { .max = OUT_MAX }, again = { .max = OUT_MAX };
	struct err e = { 0 }, e_again = { 0 };

	memcpy(text, data, size);
	text[size] = '\0';
	size_t n = strlen(text);
	json_t *value =
	    n < size ? json_loadb(text + n + 1, size - n - 1, JSON_DECODE_ANY, NULL) : NULL;
	if (!value)
		value = json_loads(ours, 0, NULL);
	AUTO(freep) char *before = json_dumps(value, JSON_ENCODE_ANY);
	if (count(text, "range") <= RANGES_MAX) {
		int r = render(text, value, &out, &e);

		expect(render(text, value, &again, &e_again) == r);
		expect(strcmp(e.msg, e_again.msg) == 0 && out.len == again.len &&
		       memcmp(str_text(&out), str_text(&again), out.len) == 0);
		AUTO(freep) char *after = json_dumps(value, JSON_ENCODE_ANY);
		expect(strcmp(before, after) == 0);
	}
	json_decref(value);
	return 0;
}
