/*
 * Any file is a config or is refused with a sentence; a config survives the way to the daemon.
 */
#include "spec/config.h"

static void expect(bool cond)
{
	if (!cond)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *texts[CONFIG_TEXTS_MAX];
	AUTO(config_done) struct config c;
	AUTO(config_done) struct config again;
	struct err e = { 0 };
	char name[64];
	const char *key;

	config_init(&c);
	config_init(&again);
	if (config_yaml(&c, (const char *)data, size, &e) < 0) {
		expect(e.kind != ERR_NONE && e.msg[0]);
		return 0;
	}
	size_t n = config_texts(&c, texts);

	for (size_t i = 0; i < n; i += 2)
		expect(config_flag(&again, texts[i] + 2, texts[i + 1], &e) == 0);
	for (size_t i = 0; (key = config_key(i, name)); i++) {
		AUTO(str_done) struct str a = { .max = 1u << 20 };
		AUTO(str_done) struct str b = { .max = 1u << 20 };

		if (strncmp(key, "tls.", 4) == 0)
			continue; /* a flag with two values: the CLI's business */
		expect(config_value(&c, key, &a) == config_value(&again, key, &b));
		expect(strcmp(str_text(&a), str_text(&b)) == 0);
	}
	return 0;
}
