/*
 * Any file is a policy of srt or Codex, or is not, or is refused with a sentence; what it comes to
 * is a spec that is printed and read back.
 */
#include "cli/import.h"

#include "base/limits.h"

static void expect(bool cond)
{
	if (!cond)
		abort();
}

/* By another name the same bytes are TOML. */
static void read_as(const char *name, struct span text)
{
	AUTO(str_done) struct str out = { .max = SPEC_BYTES_MAX };
	AUTO(import_done) struct import x = { 0 };
	AUTO(spec_done) struct spec s;
	AUTO(spec_done) struct spec again;
	struct err e = { 0 };

	spec_init(&s);
	spec_init(&again);
	int r =
	    import_read(&x, &s, name, text, (struct import_places){ "/work/app", "/home/me" }, &e);

	if (r < 0)
		expect(e.kind != ERR_NONE && e.msg[0]);
	if (r <= 0)
		return;
	for (size_t i = 0; i < x.notes.len; i++)
		expect(x.notes.at[i][0]);
	if (spec_print(&s, &out, &e) == 0)
		expect(spec_json(&again, str_text(&out), out.len, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = { (const char *)data, size };

	read_as("settings.json", text);
	read_as("config.toml", text);
	return 0;
}
