#include "cache/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "test.h"

#define MAX (64ull << 20)

static struct store s;
static char dir_name[32];
static int dir = -1;

static void open_store(void)
{
	struct err e = { 0 };

	if (store_open(&s, dir, MAX, &e) < 0)
		CHECK_STR(e.msg, "");
}

static void begin(void)
{
	snprintf(dir_name, sizeof dir_name, "/tmp/caisson-test-XXXXXX");
	CHECK(mkdtemp(dir_name));
	dir = open(dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	open_store();
}

static int count(const char *folder)
{
	char path[64];
	int n = -2;

	snprintf(path, sizeof path, "%s/%s", dir_name, folder);
	DIR *d = opendir(path);
	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void end(void)
{
	(void)store_gc(&s, INT64_MAX, 0);
	CHECK_INT(count("blobs") + count("urls") + count("meta"), 0);
	store_done(&s);
	for (const char *const *f = (const char *const[]){ "blobs", "urls", "meta", NULL }; *f; f++)
		CHECK_INT(unlinkat(dir, *f, AT_REMOVEDIR), 0);
	fd_close(&dir);
	CHECK_INT(rmdir(dir_name), 0);
}

static void again(void)
{
	store_done(&s);
	open_store();
}

static void digest_of(const char *text, struct digest *out)
{
	*out = (struct digest){ .kind = DIGEST_SHA256 };
	CHECK(EVP_Digest(text, strlen(text), out->at, NULL, EVP_sha256(), NULL));
}

static struct temp write_temp(enum store_folder folder, const char *text)
{
	struct temp t;

	CHECK_INT(temp_open(&s, folder, &t), 0);
	CHECK_INT(os_pwrite2(t.fd, text, strlen(text), NULL, 0, 0), 0);
	return t;
}

/* A file of these bytes at this place, of whatever index. */
static struct entry *add_file(const char *url, const char *text)
{
	struct temp t = write_temp(STORE_BLOBS, text);
	uint8_t id[STORE_ID_SIZE];
	struct digest d;
	struct err e = { 0 };

	digest_of(text, &d);
	store_file_id(url, &d, id);
	struct store_new n = { .id = id,
		               .kind = PKG_PIP,
		               .url = url,
		               .type = "x/y",
		               .bytes = strlen(text),
		               .real = { .at = { 5, 6, 7, 8 }, .port = 443 } };

	if (store_add_file(&s, &t, &n, d.at, &e) < 0)
		CHECK_STR(e.msg, "");
	struct entry *found = store_find(&s, id);

	CHECK(found);
	return found;
}

static struct entry *add_index(const char *url, const char *text, const char *claims_url,
                               const char *claims_text)
{
	struct temp t = write_temp(STORE_META, text);
	store_claims claims = { 0 };
	uint8_t id[STORE_ID_SIZE];
	struct weburl at;
	struct digest d;
	struct err e = { 0 };

	if (claims_url) {
		CHECK_INT(weburl_read(span_of(claims_url), &at), 0);
		digest_of(claims_text, &d);
		store_claim_add(&claims, &at, &d);
	}
	store_index_id(url, "text/html", id);
	struct store_new n = { .id = id,
		               .kind = PKG_PIP,
		               .url = url,
		               .type = "text/html",
		               .etag = "\"{1}\"",
		               .bytes = strlen(text) };

	if (store_add_index(&s, &t, &n, &claims, &e) < 0)
		CHECK_STR(e.msg, "");
	vec_done(&claims);
	return store_find(&s, id);
}

static const char *read_entry(struct entry *n)
{
	static char text[256];
	AUTO(fd_close) int fd = store_read(&s, n);

	CHECK(fd >= 0);
	int got = os_pread(fd, text, n->bytes, 0);

	text[got < 0 ? 0 : got] = '\0';
	return text;
}

TEST(what_was_kept_is_there_after_a_restart)
{
	struct digest d;

	begin();
	add_index("https://i.test/simple/p/", "<page>", "https://f.test/p.whl", "package");
	struct entry *file = add_file("https://f.test/p.whl", "package");
	uint8_t id[STORE_ID_SIZE];

	memcpy(id, file->id, sizeof id);
	store_use(&s, file);
	store_use(&s, file);
	again();
	file = store_find(&s, id);
	CHECK(file);
	CHECK_STR(read_entry(file), "package");
	CHECK_INT((long)file->hits, 2);
	CHECK_INT(file->real.port, 443);
	CHECK_INT(file->real.at[3], 8);
	CHECK_STR(file->type, "x/y");
	const struct claim *c = store_claim(&s, "https://f.test/p.whl", NULL);
	CHECK(c);
	digest_of("package", &d);
	CHECK(digest_is_same(&c->digest, &d));
	CHECK_STR(c->by->host, "i.test");
	CHECK_INT(c->by->port, 443);
	CHECK_STR(c->by->etag, "\"{1}\"");
	CHECK_STR(read_entry(c->by), "<page>");
	CHECK(!store_claim(&s, "https://f.test/p.whl", c));
	CHECK(!store_claim(&s, "https://f.test/q.whl", NULL));
	end();
}

TEST(a_new_index_takes_the_place_of_the_old_one)
{
	begin();
	add_index("https://i.test/p/", "old", "https://f.test/a", "a");
	add_index("https://i.test/p/", "new!", "https://f.test/b", "b");
	CHECK_INT((long)s.n_entries, 1);
	CHECK(!store_claim(&s, "https://f.test/a", NULL));
	const struct claim *c = store_claim(&s, "https://f.test/b", NULL);
	CHECK(c);
	CHECK_STR(read_entry(c->by), "new!");
	add_index("https://other.test/p/", "x", "https://f.test/b", "other");
	CHECK(store_claim(&s, "https://f.test/b", store_claim(&s, "https://f.test/b", NULL)));
	end();
}

TEST(the_same_bytes_are_kept_once)
{
	begin();
	struct entry *one = add_file("https://f.test/a", "same"),
		     *two = add_file("https://f.test/b", "same");
	CHECK_INT(count("blobs"), 1);
	store_drop(&s, one);
	CHECK_STR(read_entry(two), "same");
	store_drop(&s, two);
	CHECK_INT(count("blobs"), 0);
	CHECK_INT((long)s.used, 0);
	end();
}

TEST(what_a_crash_leaves_is_removed)
{
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
	static const char *const rows[] = { "blobs/tmp.7", "urls/tmp.8",  "meta/tmp.9",
		                            "meta/" ZEROS, "urls/" ZEROS, "blobs/" ZEROS,
		                            "blobs/README" };

	begin();
	add_file("https://f.test/a", "a");
	add_index("https://i.test/p/", "p", NULL, NULL);
	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(os_make_file(dir, rows[i], "half", 4, 0600), 0);
	again();
	CHECK_INT(count("blobs"), 1);
	CHECK_INT(count("urls"), 1);
	CHECK_INT(count("meta"), 1);
	CHECK_INT((long)s.n_entries, 2);
	end();
}

TEST(one_without_its_bytes_is_none)
{
	char name[STORE_NAME_SIZE + 8];

	for (int is_short = 0; is_short < 2; is_short++) {
		begin();
		struct entry *n = add_file("https://f.test/a", "bytes");
		struct digest d;
		char text[DIGEST_TEXT_SIZE];

		digest_of("bytes", &d);
		digest_print(&d, text);
		snprintf(name, sizeof name, "blobs/%s", strchr(text, '-') + 1);
		CHECK_INT(unlinkat(dir, name, 0), 0);
		if (is_short)
			CHECK_INT(os_make_file(dir, name, "by", 2, 0600), 0);
		if (!is_short) {
			CHECK_INT(store_read(&s, n), -ENOENT);
			CHECK_INT((long)s.n_entries, 0);
		} else {
			again();
			CHECK_INT((long)s.n_entries, 0);
		}
		end();
	}
}

TEST(the_least_recently_used_goes_first)
{
	char url[64];

	begin();
	struct entry *first = add_file("https://f.test/0", "0");
	for (int i = 1; i < 8; i++) {
		snprintf(url, sizeof url, "https://f.test/%d", i);
		add_file(url, url);
	}
	store_use(&s, first);
	(void)store_gc(&s, INT64_MIN, s.used / 2);
	CHECK_STR(s.newest->url, "https://f.test/0");
	CHECK_STR(s.oldest->url, "https://f.test/5");
	CHECK_INT((long)s.n_entries, 4);
	CHECK_INT((long)store_gc(&s, store_now_ms() - 3600000, UINT64_MAX), 0);
	CHECK(!store_make_room(&s, MAX + 1));
	CHECK_INT((long)s.n_entries, 4);
	s.promised = MAX;
	CHECK(!store_make_room(&s, 1));
	CHECK_INT((long)s.n_entries, 4);
	s.promised = 0;
	end();
}

static int check_entry(const struct entry *n)
{
	struct check c = { .entry = n, .fd = -1 };
	int r;

	while ((r = check_step(&s, &c)) > 0)
		;
	check_done(&c);
	return r;
}

static void flip(const char *folder, off_t at)
{
	char path[64];
	uint8_t byte;

	snprintf(path, sizeof path, "%s/%s", dir_name, folder);
	DIR *d = opendir(path);
	for (struct dirent *f = readdir(d); f; f = readdir(d)) {
		if (f->d_name[0] == '.')
			continue;
		AUTO(fd_close) int fd = openat(dirfd(d), f->d_name, O_RDWR | O_CLOEXEC);

		CHECK_INT(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		CHECK_INT(pwrite(fd, &byte, 1, at), 1);
	}
	closedir(d);
}

TEST(a_bit_that_was_flipped_is_seen)
{
	begin();
	struct entry *file = add_file("https://f.test/a", "bytes");
	struct entry *page = add_index("https://i.test/p/", "page", "https://f.test/a", "bytes");

	CHECK_INT(check_entry(file), 0);
	CHECK_INT(check_entry(page), 0);
	store_use(&s, page);
	CHECK_INT(check_entry(page), 0);
	flip("blobs", 2);
	CHECK_INT(check_entry(file), -1);
	flip("meta", 1); /* the page */
	CHECK_INT(check_entry(page), -1);
	flip("meta", 1);
	CHECK_INT(check_entry(page), 0);
	flip("meta", 14); /* what it claims */
	CHECK_INT(check_entry(page), -1);
	end();
}
