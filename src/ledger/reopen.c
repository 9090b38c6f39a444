/*
 * reopen.c - a ledger is opened: made, or found as its last writer left it.
 */
#include <fcntl.h>
#include <jansson.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/fd.h"
#include "ledger/book.h"
#include "ledger/files.h"
#include "os/extent.h"
#include "os/file.h"
#include "wire/hash.h"
#include "wire/ledger_chain.h"

#define TORN_NAME_SIZE 40

/* ---- the key -------------------------------------------------------------------------- */

static int read_key(struct book *b, struct err *e)
{
	char pem[LEDGER_PEM_MAX];
	int n = os_read_file(b->opts.dir_fd, "key", pem, sizeof pem);

	if (n < 0)
		return n == -ENOENT ? 1 : err_sys(e, -n, "read the key of the ledger");
	int r = ledger_key_read(&b->key, (struct span){ pem, (size_t)n }, true, e);

	explicit_bzero(pem, sizeof pem);
	return r;
}

/* The public half first: who finds a key finds both. */
static int make_key(struct book *b, struct err *e)
{
	AUTO(str_done) struct str own = { .max = LEDGER_PEM_MAX };
	AUTO(str_done) struct str public = { .max = LEDGER_PEM_MAX };

	if (ledger_key_make(&b->key, e) < 0 || ledger_key_print(&b->key, false, &public, e) < 0 ||
	    ledger_key_print(&b->key, true, &own, e) < 0)
		return -1;
	int r = file_replace(b->opts.dir_fd, "key.pub", public.data, public.len, e);

	if (r == 0)
		r = file_replace(b->opts.dir_fd, "key", own.data, own.len, e);
	explicit_bzero(own.data, own.len);
	return r;
}

static int open_key(struct book *b, bool is_new, struct err *e)
{
	int r = read_key(b, e);

	if (r <= 0)
		return r;
	if (!is_new)
		return err_new(e, ERR_DENIED, "the ledger has records and no key");
	return make_key(b, e);
}

/* ---- what the last writer left --------------------------------------------------------- */

struct rest {
	struct ledger_chain chain;
	size_t end; /* of the last line that is a record as it was written */
	size_t size;
	enum ledger_fault worst; /* of what is not a torn end */
	uint64_t worst_seq;
	struct book_src src[BOOK_LIVES];
};

static void take_src(struct rest *r, const struct ledger_line *l)
{
	book_src_note(r->src, l->src);
	if (!span_is(l->kind, ledger_kind_name(LEDGER_SEGMENT)))
		return;
	json_t *data = json_loadb(l->data.at, l->data.len, 0, NULL);
	const char *src = json_string_value(json_object_get(data, "src"));

	if (src)
		book_src_note(r->src, span_of(src));
	json_decref(data);
}

static void read_lines(struct rest *r, const char *bytes, size_t size)
{
	struct ledger_finding f[LEDGER_FINDINGS_MAX], pending = { 0 };
	size_t at = 0;

	r->size = size;
	while (at < size) {
		const char *newline = memchr(bytes + at, '\n', size - at);
		struct span line = { bytes + at, newline ? (size_t)(newline - bytes) - at : 0 };
		struct ledger_line l;

		if (!newline)
			break;
		size_t n = ledger_chain_feed(&r->chain, line, f);

		at += line.len + 1;
		if (n > 0 && pending.fault == LEDGER_SOUND)
			pending = f[0];
		if (ledger_parse(line, &l) < 0 || !ledger_hash_holds(line, &l))
			continue;
		r->end = at;
		take_src(r, &l);
		if (r->worst == LEDGER_SOUND && pending.fault) { /* not the end: damage */
			r->worst = pending.fault;
			r->worst_seq = pending.seq;
		}
	}
}

static int read_file(struct book *b, const char *name, struct rest *r, struct err *e)
{
	struct stat st;
	void *bytes = NULL;

	b->file_fd = os_openat(b->opts.dir_fd, name, O_RDWR | O_NOFOLLOW, 0);
	int x = b->file_fd < 0 ? b->file_fd : os_fstatat(b->file_fd, "", &st, AT_EMPTY_PATH);

	if (x < 0)
		return err_sys(e, -x, "open %s", name);
	if (st.st_size == 0)
		return 0;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, b->file_fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(e, errno, "map %s", name);
	read_lines(r, bytes, (size_t)st.st_size);
	if (r->end < r->size) { /* the chain ends where the records do */
		size_t end = r->end;

		ledger_chain_done(&r->chain);
		*r = (struct rest){ 0 };
		read_lines(r, bytes, end);
		r->size = (size_t)st.st_size;
	}
	(void)munmap(bytes, (size_t)st.st_size);
	return 0;
}

/* The bytes behind the last record: aside, and out of the way. */
static int set_aside(struct book *b, const struct rest *r, uint64_t file_seq, json_t **told,
                     struct err *e)
{
	size_t n = r->size - r->end;
	AUTO(freep) char *torn = mem_alloc(n);
	char name[TORN_NAME_SIZE], hash[LEDGER_HASH_SIZE];
	int got = os_pread(b->file_fd, torn, n, (off_t)r->end);

	if (got != (int)n)
		return err_sys(e, got < 0 ? -got : EIO, "read the end of the ledger");
	snprintf(name, sizeof name, "%020llu.torn", (unsigned long long)file_seq);
	hash_of((struct span){ torn, n }, hash);
	if (file_replace(b->opts.dir_fd, name, torn, n, e) < 0)
		return -1;
	int x = os_ftruncate(b->file_fd, (off_t)r->end);
	if (x >= 0)
		x = os_sync(b->file_fd);
	*told = json_pack("{ss,sI,ss}", "file", name, "bytes", (json_int_t)n, "sha256", hash);
	return x < 0 ? err_sys(e, -x, "seal the end of the ledger") : 0;
}

static void go_on(struct book *b, struct rest *r, uint64_t file_seq)
{
	b->seq = r->chain.seq;
	b->sealed = r->chain.signed_seq;
	b->file_seq = file_seq;
	b->heads = r->chain.heads;
	r->chain.heads = (struct ledger_heads){ 0 };
	memcpy(b->hash, r->chain.hash, sizeof b->hash);
	memcpy(b->id, r->chain.ledger, sizeof b->id);
	b->synced = b->written = r->end;
	memcpy(b->src, r->src, sizeof b->src);
}

/* ---- the signed head -------------------------------------------------------------------- */

/* Looks for the hash of record `seq` in the file that has it: in the record itself, or as `prev` of
 * the one behind it. False: neither is there. */
static bool head_hash_at(struct span bytes, uint64_t seq, char out[LEDGER_HASH_SIZE])
{
	for (size_t at = 0; at < bytes.len;) {
		const char *newline = memchr(bytes.at + at, '\n', bytes.len - at);
		struct span line = { bytes.at + at,
			             newline ? (size_t)(newline - bytes.at) - at : 0 };
		struct ledger_line l;

		if (!newline)
			return false;
		at += line.len + 1;
		if (ledger_parse(line, &l) < 0 || (l.seq != seq && l.seq != seq + 1))
			continue;
		struct span hash = l.seq == seq ? l.hash : l.prev;

		snprintf(out, LEDGER_HASH_SIZE, "%.*s", (int)hash.len, hash.at);
		return true;
	}
	return false;
}

/* Compares the head with the record of its number. Only the last file is read as a rule: a head is
 * older than that when it could not be written for long. Records that retention removed pass. */
static enum ledger_fault head_compare(const struct book *b, const struct files *all,
                                      const struct ledger_line *l)
{
	char name[LEDGER_FILE_SIZE], hash[LEDGER_HASH_SIZE];
	size_t i = all->len - 1;
	struct stat st;

	if (l->seq + 1 < all->at[0].seq)
		return LEDGER_SOUND;
	while (i > 0 && all->at[i].seq > l->seq)
		i--;
	ledger_file_name(all->at[i].seq, name);
	AUTO(fd_close) int fd = os_openat(b->opts.dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);

	if (fd < 0 || os_fstatat(fd, "", &st, AT_EMPTY_PATH) < 0 || st.st_size == 0)
		return LEDGER_FAULT_MISSING;
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED)
		return LEDGER_FAULT_MISSING;
	bool is_there = head_hash_at((struct span){ bytes, (size_t)st.st_size }, l->seq, hash);

	(void)munmap(bytes, (size_t)st.st_size);
	if (!is_there)
		return LEDGER_FAULT_MISSING;
	return span_is(l->hash, hash) ? LEDGER_SOUND : LEDGER_FAULT_CHANGED;
}

/* Continues behind the last record that was signed, not behind the last that is left: no number is
 * given out twice, and everybody who verifies later finds the gap. */
static void head_skip_lost(struct book *b, const struct ledger_line *l)
{
	json_t *data = json_loadb(l->data.at, l->data.len, 0, NULL);
	const char *id = json_string_value(json_object_get(data, "ledger"));

	b->seq = l->seq;
	snprintf(b->hash, sizeof b->hash, "%.*s", (int)l->hash.len, l->hash.at);
	snprintf(b->id, sizeof b->id, "%s", id ? id : "");
	json_decref(data);
}

/* The head is never ahead of the records on disk (write_head()). One that is, or that no record
 * agrees with, proves that the files were changed since. A ledger whose writer was killed before
 * its second signature may have none. */
static int head_check(struct book *b, const struct files *all, struct ledger_finding *out,
                      struct err *e)
{
	char text[LEDGER_LINE_MAX];
	int n = os_read_file(b->opts.dir_fd, "head", text, sizeof text);
	struct ledger_chain chain = { .key = &b->key, .seq = b->seq };
	struct ledger_line l;

	if (n == -ENOENT) {
		if (b->sealed > 1)
			*out = (struct ledger_finding){ .fault = LEDGER_FAULT_MISSING };
		return 0;
	}
	if (n < 0)
		return err_sys(e, -n, "read the head of the ledger");
	struct span line = { text, n > 0 ? (size_t)n - 1 : 0 };

	memcpy(chain.ledger, b->id, sizeof b->id);
	*out = ledger_chain_head(&chain, line);
	if (out->fault == LEDGER_FAULT_TRUNCATED && ledger_parse(line, &l) == 0)
		head_skip_lost(b, &l);
	if (out->fault != LEDGER_SOUND || ledger_parse(line, &l) < 0)
		return 0;
	out->fault = head_compare(b, all, &l);
	out->seq = l.seq;
	return 0;
}

/* Records what the head proves, before anything is signed: a signature would vouch for what is
 * left. */
static int head_tell(struct book *b, const struct ledger_finding *f, int64_t now_ms, struct err *e)
{
	json_t *data = json_pack("{ss,ss,sI}", "file", "head", "fault", ledger_fault_name(f->fault),
	                         "record", (json_int_t)f->seq);

	if (f->from) {
		json_object_set_new(data, "from", json_integer((json_int_t)f->from));
		json_object_set_new(data, "to", json_integer((json_int_t)f->to));
	}
	return book_say(b, LEDGER_DAMAGED, data, now_ms, e);
}

/* Begins another file behind a record of damage, so that the next start does not find and tell it
 * again. */
static int leave_damaged(struct book *b, int64_t now_ms, struct err *e)
{
	if (book_write(b, e) < 0 || book_sync(b, e) < 0)
		return -1;
	return book_begin_file(b, now_ms, e);
}

/* From the last file that has a record. One without is what a loss of power left of a new
 * one. */
static int find_again(struct book *b, const struct files *all, int64_t now_ms, struct err *e)
{
	for (size_t i = all->len; i-- > 0;) {
		char name[LEDGER_FILE_SIZE];
		struct rest r = { 0 };
		json_t *torn = NULL;

		ledger_file_name(all->at[i].seq, name);
		int x = read_file(b, name, &r, e);
		if (x == 0 && r.end < r.size)
			x = set_aside(b, &r, all->at[i].seq, &torn, e);
		if (x == 0 && r.end == 0) {
			json_decref(torn);
			ledger_chain_done(&r.chain);
			fd_close(&b->file_fd);
			(void)os_unlinkat(b->opts.dir_fd, name); /* it is empty now */
			continue;
		}
		if (x == 0 && !r.chain.ledger[0])
			x = err_new(e, ERR_INTERNAL, "%s: the ledger cannot be read", name);
		if (x == 0)
			go_on(b, &r, all->at[i].seq);
		if (x == 0 && torn)
			x = book_say(b, LEDGER_SEALED, json_incref(torn), now_ms, e);
		if (x == 0 && r.worst != LEDGER_SOUND)
			x = book_say(b, LEDGER_DAMAGED,
			             json_pack("{ss,ss,sI}", "file", name, "fault",
			                       ledger_fault_name(r.worst), "record",
			                       (json_int_t)r.worst_seq),
			             now_ms, e);
		b->is_damaged = r.worst != LEDGER_SOUND;
		json_decref(torn);
		ledger_chain_done(&r.chain);
		return x;
	}
	return 0;
}

static int make_id(struct book *b, struct err *e)
{
	uint8_t raw[(LEDGER_ID_SIZE - 1) / 2];

	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		return err_sys(e, errno, "name the ledger");
	for (size_t i = 0; i < sizeof raw; i++)
		snprintf(b->id + 2 * i, 3, "%02x", raw[i]);
	return 0;
}

static int lock(struct book *b, struct err *e)
{
	b->lock_fd = os_openat(b->opts.dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	int r = b->lock_fd < 0 ? b->lock_fd : os_lock_byte(b->lock_fd, 0);

	if (r == -EAGAIN)
		r = -EBUSY;
	return r < 0 ? err_sys(e, -r, "lock the ledger") : 0;
}

int book_open(struct book *b, const struct book_opts *o, int64_t now_ms, struct err *e)
{
	struct files all = { 0 };

	*b = (struct book){ .opts = *o,
		            .lock_fd = -1,
		            .file_fd = -1,
		            .hash = LEDGER_ZERO,
		            .tail.max = BOOK_TAIL_MAX,
		            .head.max = LEDGER_LINE_MAX };
	if (!b->opts.file_bytes)
		b->opts.file_bytes = BOOK_FILE_BYTES;
	if (!b->opts.keep_bytes)
		b->opts.keep_bytes = BOOK_KEEP_BYTES;
	int r = lock(b, e);

	if (r == 0)
		r = files_list(o->dir_fd, &all, e);
	if (r == 0)
		r = open_key(b, all.len == 0, e);
	if (r == 0)
		r = find_again(b, &all, now_ms, e);
	if (r == 0)
		r = head_check(b, &all, &b->head_fault, e);
	vec_done(&all);
	if (r == 0 && b->file_fd < 0)
		r = !b->id[0] && make_id(b, e) < 0 ? -1 : book_begin_file(b, now_ms, e);
	if (r == 0 && b->head_fault.fault != LEDGER_SOUND)
		r = head_tell(b, &b->head_fault, now_ms, e);
	if (r == 0 && (b->is_damaged || b->head_fault.fault != LEDGER_SOUND))
		r = leave_damaged(b, now_ms, e);
	if (r == 0)
		r = book_write(b, e);
	if (r == 0)
		r = book_sync(b, e);
	return r;
}
