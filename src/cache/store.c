#include "cache/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/hex.h"
#include "cache/storefile.h"
#include "io/journal.h"
#include "os/extent.h"
#include "os/file.h"

#define TEMP_PREFIX "tmp."
#define BLOCK 4096u              /* a file takes at least that */
#define RESERVE_MAX (1ull << 30) /* of the disk, for its host */
#define RESERVE_PART 20          /* or a twentieth of it, if that is less */
#define CHECK_STEP (1u << 20)

static const char *const folder_names[] = {
	[STORE_BLOBS] = "blobs",
	[STORE_URLS] = "urls",
	[STORE_META] = "meta",
};
_Static_assert(COUNT(folder_names) == STORE_FOLDERS, "a folder has no name");

/* How many entries have it. */
struct blob {
	struct blob *next;
	uint8_t sha256[STORE_SHA_SIZE];
	uint64_t bytes;
	size_t n;
};

int64_t store_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- ids ----------------------------------------------------------------------------- */

static void hash_texts(const char *const *texts, size_t n, uint8_t out[STORE_ID_SIZE])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool is_good = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;

	for (size_t i = 0; i < n && is_good; i++)
		is_good = EVP_DigestUpdate(ctx, texts[i], strlen(texts[i]) + 1) == 1;
	if (!is_good || EVP_DigestFinal_ex(ctx, out, NULL) != 1)
		abort(); /* out of memory */
	EVP_MD_CTX_free(ctx);
}

void store_index_id(const char *url, const char *accept, uint8_t out[STORE_ID_SIZE])
{
	hash_texts((const char *const[]){ "index", url, accept }, 3, out);
}

void store_file_id(const char *key, const struct digest *d, uint8_t out[STORE_ID_SIZE])
{
	char digest[DIGEST_TEXT_SIZE];

	digest_print(d, digest);
	hash_texts((const char *const[]){ "file", key, digest }, 3, out);
}

static void claim_key(const char *key, uint8_t out[STORE_KEY_SIZE])
{
	uint8_t whole[STORE_ID_SIZE];

	hash_texts(&key, 1, whole);
	memcpy(out, whole, STORE_KEY_SIZE);
}

void store_claim_add(store_claims *l, const struct weburl *url, const struct digest *d)
{
	AUTO(str_done) struct str key = { .max = WEBURL_TEXT_MAX };
	struct store_claim c = { .digest = *d };

	weburl_key(url, &key);
	claim_key(str_text(&key), c.key);
	vec_push(l, c);
}

/* What is hashed is spread already. */
static size_t place_of(const uint8_t *hash)
{
	return (size_t)(hash[0] << 8 | hash[1]) % STORE_TABLE;
}

/* ---- blobs --------------------------------------------------------------------------- */

static struct blob **blob_at(struct store *s, const uint8_t sha256[STORE_SHA_SIZE])
{
	struct blob **at = &s->blobs[place_of(sha256)];

	while (*at && memcmp((*at)->sha256, sha256, STORE_SHA_SIZE) != 0)
		at = &(*at)->next;
	return at;
}

static uint64_t blocks(uint64_t bytes)
{
	return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static void blob_take(struct store *s, const uint8_t sha256[STORE_SHA_SIZE], uint64_t bytes)
{
	struct blob **at = blob_at(s, sha256);

	if (!*at) {
		*at = mem_alloc(sizeof **at);
		**at = (struct blob){ .bytes = bytes };
		memcpy((*at)->sha256, sha256, STORE_SHA_SIZE);
		s->used += blocks(bytes);
	}
	(*at)->n++;
}

static void remove_file(struct store *s, enum store_folder folder, const uint8_t *id)
{
	char name[STORE_NAME_SIZE];
	int r;

	hex_print(id, STORE_ID_SIZE, name);
	r = os_unlinkat(s->fds[folder], name);
	if (r < 0 && r != -ENOENT)
		journal(JOURNAL_WARN, "a file of the cache stays", "file", name, "reason",
		        strerror(-r), NULL);
}

/* True when nobody has it any more; its file stays. */
static bool blob_forget(struct store *s, const uint8_t sha256[STORE_SHA_SIZE])
{
	struct blob **at = blob_at(s, sha256), *b = *at;

	if (!b || --b->n > 0)
		return false;
	*at = b->next;
	s->used -= blocks(b->bytes);
	free(b);
	return true;
}

static void blob_leave(struct store *s, const uint8_t sha256[STORE_SHA_SIZE])
{
	if (blob_forget(s, sha256))
		remove_file(s, STORE_BLOBS, sha256);
}

/* ---- entries ------------------------------------------------------------------------- */

static void entry_free(struct entry *n)
{
	free(n->url);
	free(n->type);
	free(n->etag);
	free(n->modified);
	free(n->control);
	free(n->host);
	free(n->claims);
	free(n);
}

static void age_leave(struct store *s, struct entry *n)
{
	*(n->older ? &n->older->newer : &s->oldest) = n->newer;
	*(n->newer ? &n->newer->older : &s->newest) = n->older;
	n->older = n->newer = NULL;
}

static void age_enter(struct store *s, struct entry *n)
{
	n->older = s->newest;
	*(n->older ? &n->older->newer : &s->oldest) = n;
	s->newest = n;
}

static void claims_enter(struct store *s, struct entry *n, const store_claims *claims)
{
	n->n_claims = claims->len;
	n->claims = claims->len > 0 ? mem_alloc(claims->len * sizeof *n->claims) : NULL;
	for (size_t i = 0; i < claims->len; i++) {
		struct claim *c = &n->claims[i], **at = &s->claims[place_of(claims->at[i].key)];

		*c = (struct claim){ .next = *at, .by = n, .digest = claims->at[i].digest };
		memcpy(c->key, claims->at[i].key, sizeof c->key);
		*at = c;
	}
	s->n_claims += n->n_claims;
}

static void claims_leave(struct store *s, struct entry *n)
{
	for (size_t i = 0; i < n->n_claims; i++) {
		struct claim **at = &s->claims[place_of(n->claims[i].key)];

		while (*at != &n->claims[i])
			at = &(*at)->next;
		*at = n->claims[i].next;
	}
	s->n_claims -= n->n_claims;
}

/* The path is in a spelling of its own at times (pkg_target). */
static void note_host(struct entry *n)
{
	const char *name = strstr(n->url, "//");
	size_t len = name ? (size_t)(name - n->url) + 2 + strcspn(name + 2, "/") : 0;
	struct weburl u;

	if (weburl_read((struct span){ n->url, len }, &u) < 0)
		return;
	n->host = mem_strdup(u.host);
	n->port = u.port;
	n->is_tls = u.is_tls;
}

static void entry_enter(struct store *s, struct entry *n, const store_claims *claims)
{
	struct entry **at = &s->entries[place_of(n->id)];

	note_host(n);
	n->next = *at;
	*at = n;
	n->size = blocks(n->size);
	s->used += n->size;
	s->n_entries++;
	age_enter(s, n);
	claims_enter(s, n, claims);
	if (!n->is_index)
		blob_take(s, n->sha256, n->bytes);
}

/* Out of the memory; its files stay. */
static void entry_leave(struct store *s, struct entry *n)
{
	struct entry **at = &s->entries[place_of(n->id)];

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	s->used -= n->size;
	s->n_entries--;
	age_leave(s, n);
	claims_leave(s, n);
}

void store_drop(struct store *s, struct entry *n)
{
	entry_leave(s, n);
	remove_file(s, n->is_index ? STORE_META : STORE_URLS, n->id);
	if (!n->is_index)
		blob_leave(s, n->sha256);
	entry_free(n);
}

struct entry *store_find(const struct store *s, const uint8_t id[STORE_ID_SIZE])
{
	struct entry *n = s->entries[place_of(id)];

	while (n && memcmp(n->id, id, STORE_ID_SIZE) != 0)
		n = n->next;
	return n;
}

const struct claim *store_claim(const struct store *s, const char *key, const struct claim *last)
{
	uint8_t want[STORE_KEY_SIZE];
	const struct claim *c;

	claim_key(key, want);
	c = last ? last->next : s->claims[place_of(want)];
	while (c && memcmp(c->key, want, STORE_KEY_SIZE) != 0)
		c = c->next;
	return c;
}

int store_read(struct store *s, struct entry *n)
{
	char name[STORE_NAME_SIZE];

	hex_print(n->is_index ? n->id : n->sha256, STORE_ID_SIZE, name);
	int fd = os_openat(s->fds[n->is_index ? STORE_META : STORE_BLOBS], name,
	                   O_RDONLY | O_NOFOLLOW, 0);
	if (fd == -ENOENT)
		store_drop(s, n);
	return fd;
}

/* The write is also what sets the file's time. */
void store_use(struct store *s, struct entry *n)
{
	char name[STORE_NAME_SIZE], hits[17];
	struct stat st;

	n->hits++;
	n->used_ms = store_now_ms();
	age_leave(s, n);
	age_enter(s, n);
	hex_print(n->id, STORE_ID_SIZE, name);
	AUTO(fd_close)
	int fd = os_openat(s->fds[n->is_index ? STORE_META : STORE_URLS], name,
	                   O_WRONLY | O_NOFOLLOW, 0);
	if (fd < 0 || os_fstatat(fd, "", &st, AT_EMPTY_PATH) < 0 || st.st_size < FOOTER_SIZE)
		return;
	snprintf(hits, sizeof hits, "%016llu", (unsigned long long)n->hits);
	(void)os_pwrite2(fd, hits, 16, NULL, 0, storefile_hits_at(st.st_size)); /* a count */
}

/* ---- room ---------------------------------------------------------------------------- */

static bool has_disk(const struct store *s, uint64_t bytes)
{
	uint64_t left = 0, all = 0;

	if (os_room(s->fds[STORE_BLOBS], &left, &all) < 0)
		return false;
	uint64_t reserve = all / RESERVE_PART < RESERVE_MAX ? all / RESERVE_PART : RESERVE_MAX;

	return left >= reserve && left - reserve >= bytes;
}

static bool is_over(const struct store *s, uint64_t bytes)
{
	bytes += s->promised;
	return s->used + bytes > s->max || s->n_entries >= STORE_ENTRIES_MAX ||
	       s->n_claims >= STORE_CLAIMS_MAX || !has_disk(s, bytes);
}

bool store_make_room(struct store *s, uint64_t bytes)
{
	if (s->promised + bytes > s->max)
		return false;
	while (is_over(s, bytes) && s->oldest)
		store_drop(s, s->oldest);
	return !is_over(s, bytes);
}

uint64_t store_gc(struct store *s, int64_t before_ms, uint64_t max)
{
	uint64_t before = s->used;

	while (s->oldest && (s->oldest->used_ms < before_ms || s->used > max))
		store_drop(s, s->oldest);
	return before - s->used;
}

/* ---- what comes ---------------------------------------------------------------------- */

int temp_open(struct store *s, enum store_folder folder, struct temp *t)
{
	*t = (struct temp){ .folder = folder };
	snprintf(t->name, sizeof t->name, TEMP_PREFIX "%llu", (unsigned long long)s->n_temps++);
	t->fd = os_openat(s->fds[folder], t->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (t->fd >= 0)
		return 0;
	int r = t->fd;

	t->fd = -1;
	return r;
}

void temp_drop(struct store *s, struct temp *t)
{
	if (t->fd < 0)
		return;
	(void)os_unlinkat(s->fds[t->folder], t->name); /* else at the next start */
	fd_close(&t->fd);
}

/* It is whole: from now on it has this name. */
static int temp_settle(struct store *s, struct temp *t, const uint8_t *id, struct err *e)
{
	char name[STORE_NAME_SIZE];
	int r = os_sync(t->fd);

	hex_print(id, STORE_ID_SIZE, name);
	if (r >= 0)
		r = os_rename_in(s->fds[t->folder], t->name, name);
	if (r < 0) {
		temp_drop(s, t);
		return err_sys(e, -r, "keep %s/%s", folder_names[t->folder], name);
	}
	fd_close(&t->fd);
	return 0;
}

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static struct entry *entry_new(const struct store_new *n, bool is_index)
{
	struct entry *made = mem_alloc(sizeof *made);

	*made = (struct entry){ .is_index = is_index,
		                .kind = n->kind,
		                .real = n->real,
		                .bytes = n->bytes,
		                .used_ms = store_now_ms(),
		                .url = mem_strdup(n->url),
		                .type = copy(n->type),
		                .etag = copy(n->etag),
		                .modified = copy(n->modified),
		                .control = copy(n->control) };
	memcpy(made->id, n->id, STORE_ID_SIZE);
	return made;
}

static void replace(struct store *s, struct entry *n, const store_claims *claims)
{
	struct entry *old = store_find(s, n->id);

	if (old) {
		n->hits = old->hits;
		entry_leave(s, old);
	}
	entry_enter(s, n, claims);
	if (old && !old->is_index)
		blob_leave(s, old->sha256);
	if (old)
		entry_free(old);
}

int store_add_file(struct store *s, struct temp *t, const struct store_new *n,
                   const uint8_t sha256[STORE_SHA_SIZE], struct err *e)
{
	static const store_claims none;
	AUTO(str_done) struct str text = { .max = HEADER_MAX };
	struct temp where = { .fd = -1 };

	if (*blob_at(s, sha256))
		temp_drop(s, t);
	else if (temp_settle(s, t, sha256, e) < 0)
		return -1;
	struct entry *made = entry_new(n, false);

	memcpy(made->sha256, sha256, STORE_SHA_SIZE);
	(void)storefile_print(made, NULL, &text);
	made->size = text.len;
	int r = text.overflow ? -E2BIG : temp_open(s, STORE_URLS, &where);
	if (r >= 0)
		r = os_pwrite2(where.fd, text.data, text.len, NULL, 0, 0);
	if (r >= 0 && temp_settle(s, &where, n->id, e) == 0) {
		replace(s, made, &none);
		return 0;
	}
	if (r < 0) {
		temp_drop(s, &where);
		err_sys(e, -r, "note where a file lies");
	}
	if (!*blob_at(s, sha256))
		remove_file(s, STORE_BLOBS, sha256);
	entry_free(made);
	return -1;
}

/* Of an index with what it claims, so that both can be checked. */
static int hash_index(int fd, uint64_t bytes, struct span tail, uint8_t out[STORE_SHA_SIZE])
{
	static char buf[64 << 10];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool is_good = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;
	int n = 0;

	for (uint64_t at = 0; at < bytes && is_good; at += (uint64_t)n) {
		n = os_pread(fd, buf, bytes - at < sizeof buf ? (size_t)(bytes - at) : sizeof buf,
		             (off_t)at);
		if (n <= 0)
			break;
		is_good = EVP_DigestUpdate(ctx, buf, (size_t)n) == 1;
	}
	if (is_good)
		is_good = EVP_DigestUpdate(ctx, tail.at, tail.len) == 1;
	is_good = is_good && n >= 0 && EVP_DigestFinal_ex(ctx, out, NULL) == 1;
	EVP_MD_CTX_free(ctx);
	return is_good ? 0 : -1;
}

int store_add_index(struct store *s, struct temp *t, const struct store_new *n,
                    const store_claims *claims, struct err *e)
{
	AUTO(str_done)
	struct str text = { .max = HEADER_MAX +
		                   claims->len * (DIGEST_TEXT_SIZE + 2ul * STORE_KEY_SIZE + 2) };
	struct entry *made = entry_new(n, true);

	/* The claims are in front of the rest, whatever digest that will name. */
	const size_t of_claims = storefile_print(made, claims, &text);

	if (text.overflow ||
	    hash_index(t->fd, n->bytes, (struct span){ text.data, of_claims }, made->sha256) < 0) {
		entry_free(made);
		temp_drop(s, t);
		return err_new(e, ERR_LIMIT, "an index has too long fields");
	}
	str_clear(&text);
	(void)storefile_print(made, claims, &text);
	made->size = n->bytes + text.len;
	int r = os_pwrite2(t->fd, text.data, text.len, NULL, 0, (off_t)n->bytes);
	if (r < 0) {
		temp_drop(s, t);
		err_sys(e, -r, "write an index");
	}
	if (r < 0 || temp_settle(s, t, n->id, e) < 0) {
		entry_free(made);
		return -1;
	}
	replace(s, made, claims);
	return 0;
}

/* ---- the start ----------------------------------------------------------------------- */

struct found {
	struct entry *entry;
	store_claims claims;
};

static int by_age(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->entry->used_ms < y->entry->used_ms   ? -1
	       : x->entry->used_ms > y->entry->used_ms ? 1
	                                               : 0;
}

typedef VEC(struct found) founds;

static void found_add(founds *out, struct found f)
{
	vec_push(out, f);
}

/* False: it is none, and is removed. */
static bool load_entry(struct store *s, enum store_folder folder, const char *name, founds *out)
{
	struct found f = { .entry = mem_alloc(sizeof *f.entry) };
	struct err e = { 0 };
	AUTO(fd_close) int fd = os_openat(s->fds[folder], name, O_RDONLY | O_NOFOLLOW, 0);

	*f.entry = (struct entry){ .is_index = folder == STORE_META };
	if (fd >= 0 && hex_read(name, f.entry->id, STORE_ID_SIZE) &&
	    storefile_read(fd, f.entry, &f.claims, &e) == 0) {
		found_add(out, f);
		return true;
	}
	entry_free(f.entry);
	vec_done(&f.claims);
	return false;
}

static bool has_entry(struct store *s, const char *name)
{
	uint8_t sha256[STORE_SHA_SIZE];

	return hex_read(name, sha256, sizeof sha256) && *blob_at(s, sha256);
}

static void load_folder(struct store *s, enum store_folder folder, founds *out)
{
	int again = os_openat(s->fds[folder], ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = again < 0 ? NULL : fdopendir(again);

	if (!dir && again >= 0)
		fd_close(&again);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		bool is_good = d->d_name[0] == '.' ||
		               (strlen(d->d_name) == STORE_NAME_SIZE - 1 &&
		                (folder == STORE_BLOBS ? has_entry(s, d->d_name)
		                                       : load_entry(s, folder, d->d_name, out)));

		if (!is_good)
			(void)os_unlinkat(s->fds[folder], d->d_name); /* or it lies there */
	}
	if (dir)
		closedir(dir);
}

/* One whose blob is gone, or has another length, is none. */
static bool has_blob(struct store *s, const struct entry *n)
{
	char name[STORE_NAME_SIZE];
	struct stat st;

	hex_print(n->sha256, STORE_SHA_SIZE, name);
	return n->is_index ||
	       (os_fstatat(s->fds[STORE_BLOBS], name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	        S_ISREG(st.st_mode) && (uint64_t)st.st_size == n->bytes);
}

static void load_all(struct store *s)
{
	founds all = { 0 };

	load_folder(s, STORE_META, &all);
	load_folder(s, STORE_URLS, &all);
	if (all.len > 0)
		qsort(all.at, all.len, sizeof *all.at, by_age);
	for (size_t i = 0; i < all.len; i++) {
		struct entry *n = all.at[i].entry;

		if (has_blob(s, n)) {
			entry_enter(s, n, &all.at[i].claims);
		} else {
			remove_file(s, STORE_URLS, n->id);
			entry_free(n);
		}
		vec_done(&all.at[i].claims);
	}
	vec_done(&all);
	load_folder(s, STORE_BLOBS, NULL);
}

int store_open(struct store *s, int dir_fd, uint64_t max, struct err *e)
{
	*s = (struct store){ .fds = { -1, -1, -1 }, .max = max };
	for (enum store_folder f = 0; f < STORE_FOLDERS; f++) {
		int r = os_mkdirat(dir_fd, folder_names[f], 0700);

		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make %s", folder_names[f]);
		s->fds[f] =
		    os_openat(dir_fd, folder_names[f], O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (s->fds[f] < 0)
			return err_sys(e, -s->fds[f], "open %s", folder_names[f]);
	}
	load_all(s);
	(void)store_make_room(s, 0); /* it may have become smaller */
	return 0;
}

void store_done(struct store *s)
{
	for (struct entry *n = s->oldest, *next; n; n = next) {
		next = n->newer;
		entry_leave(s, n);
		if (!n->is_index)
			(void)blob_forget(s, n->sha256);
		entry_free(n);
	}
	for (enum store_folder f = 0; f < STORE_FOLDERS; f++)
		fd_close(&s->fds[f]);
}

/* ---- checking ------------------------------------------------------------------------ */

void check_done(struct check *c)
{
	EVP_MD_CTX_free(c->hash);
	fd_close(&c->fd);
	*c = (struct check){ .fd = -1 };
}

/* How much of the file the digest is about. */
static uint64_t checked_bytes(const struct check *c)
{
	size_t of_claims = 0, of_json = 0;
	unsigned long long hits = 0;
	char footer[FOOTER_SIZE + 1] = "";
	struct stat st;

	if (os_fstatat(c->fd, "", &st, AT_EMPTY_PATH) < 0)
		return 0;
	if (!c->entry->is_index)
		return (uint64_t)st.st_size;
	(void)!os_pread(c->fd, footer, FOOTER_SIZE, storefile_hits_at(st.st_size));
	(void)!sscanf(footer, "%16llu %10zu %10zu\n", &hits, &of_claims, &of_json);
	return c->entry->bytes + of_claims;
}

static int check_begin(struct store *s, struct check *c)
{
	char name[STORE_NAME_SIZE];

	hex_print(c->entry->is_index ? c->entry->id : c->entry->sha256, STORE_ID_SIZE, name);
	c->fd = os_openat(s->fds[c->entry->is_index ? STORE_META : STORE_BLOBS], name,
	                  O_RDONLY | O_NOFOLLOW, 0);
	if (c->fd < 0)
		return -1;
	c->hash = EVP_MD_CTX_new();
	if (!c->hash || EVP_DigestInit_ex(c->hash, EVP_sha256(), NULL) != 1)
		abort(); /* out of memory */
	c->at = 0;
	return 1;
}

int check_step(struct store *s, struct check *c)
{
	static char buf[CHECK_STEP];
	uint8_t found[STORE_SHA_SIZE];

	if (!c->hash && check_begin(s, c) < 0)
		return -1;
	uint64_t all = checked_bytes(c);
	size_t most = all - c->at < sizeof buf ? (size_t)(all - c->at) : sizeof buf;
	int n = c->at < all ? os_pread(c->fd, buf, most, (off_t)c->at) : 0;

	if (n < 0 || EVP_DigestUpdate(c->hash, buf, (size_t)n) != 1)
		return -1;
	c->at += (uint64_t)n;
	if (n > 0 && c->at < all)
		return 1;
	if (EVP_DigestFinal_ex(c->hash, found, NULL) != 1)
		return -1;
	return memcmp(found, c->entry->sha256, sizeof found) == 0 ? 0 : -1;
}
