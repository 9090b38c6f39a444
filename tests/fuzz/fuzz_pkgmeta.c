#include "wire/pkgmeta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* What is claimed is of one spelling: printed and read it is the same. */
static void claim(void *arg, const struct weburl *url, const struct digest *d)
{
	AUTO(str_done) struct str text = { .max = WEBURL_TEXT_MAX };
	AUTO(str_done) struct str key = { .max = WEBURL_TEXT_MAX };
	char digest[DIGEST_TEXT_SIZE];
	struct digest again;
	struct weburl same;

	(void)arg;
	digest_print(d, digest);
	expect(digest_read(digest, &again) && digest_is_same(d, &again));
	weburl_print(url, &text);
	weburl_key(url, &key);
	expect(!text.overflow && !key.overflow && url->port > 0 && url->path[0] == '/');
	if (weburl_read(span_of(str_text(&text)), &same) < 0) {
		expect(strlen(str_text(&text)) >= WEBURL_PATH_SIZE);
		return;
	}
	expect(strcmp(same.host, url->host) == 0 && strcmp(same.path, url->path) == 0);
}

/* The first byte says what it is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = { "text/html", "application/vnd.pypi.simple.v1+json" };
	char path[WEBURL_PATH_SIZE];
	struct weburl at;

	if (size == 0)
		return 0;
	struct span text = { (const char *)data + 1, size - 1 };
	struct pkg_page page = { .kind = PKG_PIP + data[0] % (PKG_KINDS - PKG_PIP),
		                 .text = text,
		                 .type = span_of(types[data[0] / 8 % 2]),
		                 .at = &at,
		                 .dl = data[0] & 64 ? "https://d.test/{crate}/{version}"
		                                    : "https://d.test" };

	expect(weburl_read(span_of("https://i.test/index/ab/cd/abcd"), &at) == 0);
	(void)!pkg_read(&page, claim, NULL);
	(void)!pkg_cargo_dl(text, path);
	if (pkg_target(page.kind, text, path) == 0) {
		char again[WEBURL_PATH_SIZE];

		expect(pkg_target(page.kind, span_of(path), again) == 0 &&
		       strcmp(path, again) == 0);
	}
	return 0;
}
