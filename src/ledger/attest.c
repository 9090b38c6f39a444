#include "ledger/attest.h"

#include <fcntl.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "wire/dsse.h"

#define PIECE (1u << 20) /* longer than any line */
#define TEMP "attested.new"

void attest_start(struct attest_run *r, const struct book *b, const struct ledger_attest *ask)
{
	struct attest_ask of = { .record = ask->record, .ledger = b->id };

	snprintf(of.tenant, sizeof of.tenant, "%s", ask->tenant);
	snprintf(of.workspace, sizeof of.workspace, "%s", ask->workspace);
	*r = (struct attest_run){ .book = b, .next = 1 };
	attest_init(&r->attest, &of);
}

void attest_stop(struct attest_run *r)
{
	attest_done(&r->attest);
}

/* Whole lines; returns how many bytes that was. */
static size_t take_lines(struct attest_run *r, const char *bytes, size_t n)
{
	size_t at = 0;
	const char *end;

	while (at < n && (end = memchr(bytes + at, '\n', n - at))) {
		struct span line = { bytes + at, (size_t)(end - bytes) - at };
		struct ledger_line l;

		at += line.len + 1;
		/* Most are of others: they are not hashed. */
		if (memmem(line.at, line.len, r->attest.ask.workspace,
		           strlen(r->attest.ask.workspace)) &&
		    ledger_parse(line, &l) == 0 && ledger_hash_holds(line, &l))
			attest_feed(&r->attest, &l);
	}
	return at;
}

static int read_file(struct attest_run *r, int fd, struct err *e)
{
	AUTO(freep) char *piece = mem_alloc(PIECE);
	size_t rest = 0;
	off_t at = 0;
	int n;

	while ((n = os_pread(fd, piece + rest, PIECE - rest, at)) > 0) {
		size_t all = rest + (size_t)n, used = take_lines(r, piece, all);

		at += n;
		rest = all - used;
		if (rest == PIECE)
			return err_new(e, ERR_INTERNAL, "a line of the ledger has no end");
		memmove(piece, piece + used, rest);
	}
	return n < 0 ? err_sys(e, -n, "read the ledger") : 0;
}

int attest_step(struct attest_run *r, struct err *e)
{
	uint64_t first = 0, next = 0;
	AUTO(fd_close) int fd = book_file(r->book, r->next, &first, &next, e);

	if (fd < 0 || read_file(r, fd, e) < 0)
		return -1;
	r->next = next;
	return next && !r->attest.is_over ? 1 : 0;
}

/* It is removed before it is handed out: nobody else can come by it. */
static int make_file(const struct book *b, const struct str *text, struct err *e)
{
	int dir_fd = b->opts.dir_fd;
	AUTO(fd_close)
	int fd = os_openat(dir_fd, TEMP, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_write_all(fd, text->data, text->len);
	int shown = r < 0 ? r : os_openat(dir_fd, TEMP, O_RDONLY | O_NOFOLLOW, 0);

	if (fd >= 0)
		(void)os_unlinkat(dir_fd, TEMP); /* the next one begins it anew */
	return shown < 0 ? err_sys(e, -shown, "write what is attested") : shown;
}

int attest_seal(const struct attest_run *r, uint64_t *record, struct err *e)
{
	AUTO(str_done) struct str payload = { .max = ATTEST_BYTES_MAX };
	AUTO(str_done) struct str out = { .max = DSSE_BYTES_MAX };
	const json_t *promotion = json_object_get(r->attest.at, "promotion");

	if (!promotion)
		return err_new(e, ERR_INVALID, "nothing was promoted");
	if (!attest_print(&r->attest, &payload))
		return err_new(e, ERR_LIMIT, "too much to be attested");
	if (dsse_print(&r->book->key, (struct span){ payload.data, payload.len }, &out, e) < 0)
		return -1;
	*record = (uint64_t)json_integer_value(json_object_get(promotion, "record"));
	return make_file(r->book, &out, e);
}
