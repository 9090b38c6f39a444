#include "wire/git.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static void expect_url(const char *text)
{
	struct git_url u, again;
	struct err e = { 0 };
	char key[64];

	if (git_url_read(text, &u, &e) < 0) {
		expect(strncmp(e.msg, "url: ", 5) == 0);
		return;
	}
	expect(git_url_read(u.text, &again, &e) == 0 && strcmp(u.text, again.text) == 0);
	expect(u.is_folder == (u.text[0] == '/') && u.is_folder == (u.host[0] == '\0'));
	expect(u.is_folder || (strncmp(u.text, "https://", 8) == 0 && !strpbrk(u.text, " @?#\\")));
	for (const char *p = u.text; *p; p++)
		expect((unsigned char)*p >= 0x20 && *p != 0x7f);
	git_url_key(&u, key, sizeof key);
	expect(key[0] && key[0] != '.' && key[0] != '-' && !strchr(key, '/') && !strchr(key, '_'));
}

/* No name is an option, leaves its folder, or means more than one. */
static void expect_ref(const char *text)
{
	if (!git_ref_is(text))
		return;
	expect(text[0] && text[0] != '-' && text[0] != '/' && strlen(text) <= GIT_REF_MAX);
	expect(!strstr(text, "..") && !strstr(text, "@{") && !strpbrk(text, " ~^:?*[\\\n\r\t"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[4096];

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	expect_url(text);
	expect_ref(text);
	expect(!git_pattern_is(text) || strncmp(text, "refs/", 5) == 0);
	expect(!git_person_is(text) || !strpbrk(text, "<>\n\r"));
	expect(!git_sha_is(text, strlen(text)) || strlen(text) >= 40);
	return 0;
}
