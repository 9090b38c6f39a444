#include "ledger/verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/vec.h"

struct reading {
	const struct verify_look *look;
	struct verify_seen *out;
	struct ledger_chain chain;
	struct ledger_key key;
	int dir_fd;
	bool has_expected; /* the record that was expected is there */
	VEC(uint64_t) files;
};

static void note(struct reading *r, const struct ledger_finding *what, const char *file,
                 uint64_t line, uint64_t offset)
{
	struct verify_seen *out = r->out;

	if (what->fault == LEDGER_SOUND)
		return;
	if (out->n_found < VERIFY_FOUND_MAX) {
		struct verify_found *f = &out->found[out->n_found];

		*f = (struct verify_found){ .what = *what, .line = line, .offset = offset };
		snprintf(f->file, sizeof f->file, "%s", file);
	}
	out->n_found++;
}

/* ---- bytes ---------------------------------------------------------------------------- */

static int map(int dir_fd, const char *name, struct span *out, struct err *e)
{
	AUTO(fd_close) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	*out = (struct span){ NULL, 0 };
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %s", name);
	if (st.st_size == 0)
		return 0;
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return err_sys(e, errno, "read %s", name);
	*out = (struct span){ at, (size_t)st.st_size };
	return 0;
}

static void unmap(struct span s)
{
	if (s.at)
		(void)munmap((void *)(uintptr_t)s.at, s.len);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int list(struct reading *r, struct err *e)
{
	int fd = dup(r->dir_fd);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return err_sys(e, errno, "list %s", r->look->dir);
	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		if (ledger_file_seq(d->d_name))
			vec_push(&r->files, ledger_file_seq(d->d_name));
	closedir(dir);
	if (r->files.len == 0)
		return err_new(e, ERR_NOT_FOUND, "%s: no ledger is there", r->look->dir);
	qsort(r->files.at, r->files.len, sizeof *r->files.at, by_number);
	return 0;
}

/* ---- the key -------------------------------------------------------------------------- */

static int read_key(struct reading *r, struct err *e)
{
	struct span pem;

	if (map(r->look->key ? AT_FDCWD : r->dir_fd, r->look->key ? r->look->key : "key.pub", &pem,
	        e) < 0)
		return -1;
	int x = ledger_key_read(&r->key, pem, false, e);

	unmap(pem);
	return x;
}

/* ---- records -------------------------------------------------------------------------- */

/* "SEQ:HASH", said by somebody who saw it once. */
static void compare(struct reading *r, const char *file, uint64_t line, uint64_t offset)
{
	const char *colon = r->look->expect ? strchr(r->look->expect, ':') : NULL;

	if (!colon || strtoull(r->look->expect, NULL, 10) != r->chain.seq)
		return;
	r->has_expected = true;
	if (strcmp(colon + 1, r->chain.hash) == 0)
		return;
	const struct ledger_finding f = { .fault = LEDGER_FAULT_CHANGED, .seq = r->chain.seq };

	note(r, &f, file, line, offset);
}

static void read_lines(struct reading *r, const char *name, struct span bytes, bool is_last)
{
	struct ledger_finding f[LEDGER_FINDINGS_MAX];
	uint64_t line = 1;

	for (size_t at = 0; bytes.at && at < bytes.len; line++) {
		const char *end = memchr(bytes.at + at, '\n', bytes.len - at);
		struct span one = { bytes.at + at,
			            end ? (size_t)(end - bytes.at) - at : bytes.len - at };

		if (!end && is_last) {
			const struct ledger_finding torn = { .fault = LEDGER_FAULT_TORN,
				                             .seq = r->chain.seq + 1 };

			note(r, &torn, name, line, at);
			return;
		}
		size_t n = ledger_chain_feed(&r->chain, one, f);

		for (size_t i = 0; i < n; i++)
			note(r, &f[i], name, line, at);
		compare(r, name, line, at);
		at += one.len + 1;
	}
}

static int read_file(struct reading *r, size_t i, struct err *e)
{
	char name[LEDGER_FILE_SIZE];
	struct span bytes;
	struct ledger_line l;

	ledger_file_name(r->files.at[i], name);
	if (map(r->dir_fd, name, &bytes, e) < 0)
		return -1;
	const char *end = bytes.at ? memchr(bytes.at, '\n', bytes.len) : NULL;
	struct span first = { bytes.at, end ? (size_t)(end - bytes.at) : 0 };

	if (bytes.at)
		(void)madvise((void *)(uintptr_t)bytes.at, bytes.len, MADV_SEQUENTIAL);
	if (ledger_parse(first, &l) < 0 || l.seq != r->files.at[i] ||
	    !span_is(l.kind, ledger_kind_name(LEDGER_SEGMENT))) {
		const struct ledger_finding f = { .fault = LEDGER_FAULT_SEGMENT,
			                          .seq = r->files.at[i] };

		note(r, &f, name, 1, 0);
	}
	read_lines(r, name, bytes, i + 1 == r->files.len);
	unmap(bytes);
	return 0;
}

/* `line` was read before the files: a writer that goes on makes them longer, not shorter. */
static void read_head(struct reading *r, struct span line)
{
	struct ledger_finding f = { .fault = LEDGER_FAULT_FORM };

	if (line.len > 0)
		f = ledger_chain_head(&r->chain, (struct span){ line.at, line.len - 1 });
	note(r, &f, "head", 1, 0);
}

/* From the last file that begins at or before it. */
static size_t first_file(const struct reading *r)
{
	size_t i = 0;

	while (i + 1 < r->files.len && r->files.at[i + 1] <= r->look->from)
		i++;
	return i;
}

static int read_files(struct reading *r, struct err *e)
{
	struct err ignored = { 0 };
	struct span head = { 0 };
	int x = 0;

	(void)!map(r->dir_fd, "head", &head, &ignored); /* none is a finding */
	if (list(r, e) < 0 || read_key(r, e) < 0)
		x = -1;
	r->chain.key = &r->key;
	for (size_t i = x == 0 ? first_file(r) : 0; x == 0 && i < r->files.len; i++)
		x = read_file(r, i, e);
	if (x == 0)
		read_head(r, head);
	if (head.at)
		unmap(head);
	return x;
}

static int read_all(struct reading *r, struct err *e)
{
	if (read_files(r, e) < 0)
		return -1;
	struct ledger_finding f = ledger_chain_start(&r->chain);

	if (r->look->from < r->chain.first)
		note(r, &f, "", 0, 0);
	if (r->look->expect && !r->has_expected) {
		f = (struct ledger_finding){ .fault = LEDGER_FAULT_TRUNCATED,
			                     .seq = strtoull(r->look->expect, NULL, 10),
			                     .from = r->chain.seq + 1 };
		f.to = f.seq;
		note(r, &f, "", 0, 0);
	}
	return 0;
}

static void sum_up(struct reading *r)
{
	struct verify_seen *out = r->out;
	const struct ledger_chain *c = &r->chain;

	out->n_files = r->files.len;
	out->n = c->n;
	out->first = c->first;
	out->last = c->seq;
	out->n_unsigned = c->seq - c->signed_seq;
	out->n_signatures = c->n_signatures;
	out->pruned_until = c->pruned_until;
	memcpy(out->hash, c->hash, sizeof out->hash);
	memcpy(out->ledger, c->ledger, sizeof out->ledger);
	memcpy(out->key, r->key.name, sizeof out->key);
}

int verify_files(const struct verify_look *look, struct verify_seen *out, struct err *e)
{
	struct reading r = { .look = look, .out = out };

	*out = (struct verify_seen){ 0 };
	r.dir_fd = open(look->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r.dir_fd < 0)
		return err_sys(e, errno, "open %s", look->dir);
	int x = read_all(&r, e);

	if (x == 0)
		sum_up(&r);
	fd_close(&r.dir_fd);
	vec_done(&r.files);
	ledger_chain_done(&r.chain);
	ledger_key_done(&r.key);
	return x;
}
