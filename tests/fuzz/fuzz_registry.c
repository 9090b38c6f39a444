/*
 * Whatever stands in the configuration of a package client: what comes of it are hosts that a rule
 * may name.
 */
#include "cli/registry-internal.h"

#include "wire/hostname.h"

static void expect(bool cond)
{
	if (!cond)
		abort();
}

static void check_hosts(const char *text)
{
	struct arena a = { 0 };
	struct text_list list = { 0 };
	struct hosts h = { &a, &list };
	struct err e = { 0 };

	if (hosts_add_urls(&h, text, &e) < 0)
		expect(e.msg[0]);
	for (size_t i = 0; i < list.len; i++) {
		char name[GATE_NAME_SIZE];

		expect(hostname_read(list.at[i], strcspn(list.at[i], ":"), name));
	}
	vec_done(&list);
	arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const sections[] = { "global", "install", NULL };
	AUTO(freep) char *text = mem_alloc(size + 1);
	AUTO(str_done) struct str out = { .max = REGISTRY_FILE_MAX };

	if (size > 0)
		memcpy(text, data, size);
	check_hosts(text);
	(void)ini_get(text, sections, "index-url", &out);
	check_hosts(str_text(&out));
	str_clear(&out);
	(void)ini_get(text, NULL, "registry", &out);
	npmrc_scopes(text, &out);
	check_hosts(str_text(&out));
	str_clear(&out);
	(void)npmrc_expand(text, &out);
	str_clear(&out);
	(void)env_file_get(text, "GOPROXY", &out);
	apt_lines(text, &out);
	apt_fields(text, &out);
	check_hosts(str_text(&out));
	return 0;
}
