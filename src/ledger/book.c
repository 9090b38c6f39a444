#include "ledger/book.h"

#include <jansson.h>

#include "base/fd.h"
#include "base/vec.h"
#include "ledger/files.h"
#include "os/extent.h"
#include "os/file.h"
#include "wire/ledger_text.h"

#define LINE_ROOM (LEDGER_LINE_MAX * 4ul) /* what the ledger itself may add to a full tail */
#define HEADS_OF_ONE 100                  /* sandboxes in one record */

/* ---- one record ----------------------------------------------------------------------- */

bool book_has_room(const struct book *b)
{
	return b->tail.len + LINE_ROOM < BOOK_TAIL_MAX;
}

void book_src_note(struct book_src of[BOOK_LIVES], struct span src)
{
	const char *dash = src.at ? memchr(src.at, '-', src.len) : NULL;
	struct book_src now = { .num = 0 };
	size_t i = 0;

	if (!dash || (size_t)(dash - src.at) >= sizeof now.life)
		return;
	snprintf(now.life, sizeof now.life, "%.*s", (int)(dash - src.at), src.at);
	now.num = strtoull(dash + 1, NULL, 10); /* a quote or a NUL is behind it */
	while (i + 1 < BOOK_LIVES && of[i].life[0] && strcmp(of[i].life, now.life) != 0)
		i++;
	memmove(of + 1, of, i * sizeof *of);
	of[0] = now;
}

uint64_t book_src_num(const struct book_src of[BOOK_LIVES], const char *life)
{
	for (size_t i = 0; i < BOOK_LIVES; i++)
		if (strcmp(of[i].life, life) == 0)
			return of[i].num;
	return 0;
}

int book_add(struct book *b, const struct ledger_event *ev, int64_t now_ms, struct err *e)
{
	bool has_sandbox = ev->sandbox && ev->sandbox[0];
	struct ledger_head *h =
	    has_sandbox ? ledger_heads_find(&b->heads, span_of(ev->sandbox)) : NULL;
	struct ledger_place at = { .seq = b->seq + 1, .ts_ms = now_ms, .prev = b->hash };
	char hash[LEDGER_HASH_SIZE];

	if (has_sandbox) {
		at.link_seq = h ? h->seq + 1 : 1;
		at.link_prev = h ? h->hash : LEDGER_ZERO;
	}
	size_t was = b->tail.len;

	if (!ledger_print(&b->tail, ev, &at, hash)) {
		b->tail.len = was;
		b->tail.overflow = false;
		return err_new(e, ERR_INVALID, "not an event that can be recorded");
	}
	b->seq++;
	memcpy(b->hash, hash, sizeof hash);
	if (ev->src)
		book_src_note(b->src, span_of(ev->src));
	if (!has_sandbox)
		return 0;
	if (ev->kind == LEDGER_SANDBOX_GONE) {
		ledger_heads_drop(&b->heads, span_of(ev->sandbox));
		return 0;
	}
	h = ledger_heads_take(&b->heads, span_of(ev->sandbox));
	h->seq = at.link_seq;
	memcpy(h->hash, hash, sizeof hash);
	return 0;
}

int book_say(struct book *b, enum ledger_kind kind, json_t *data, int64_t now_ms, struct err *e)
{
	AUTO(str_done) struct str text = { .max = LEDGER_DATA_MAX };

	ledger_text(data, &text);
	json_decref(data);
	const struct ledger_event ev = { .kind = kind, .data = str_text(&text) };

	return book_add(b, &ev, now_ms, e);
}

/* ---- to the disk ---------------------------------------------------------------------- */

int book_write(struct book *b, struct err *e)
{
	size_t done = (size_t)(b->written - b->synced);

	if (done == b->tail.len) {
		b->seen = b->seq;
		return 0;
	}
	int r = os_pwrite2(b->file_fd, NULL, 0, b->tail.data + done, b->tail.len - done,
	                   (off_t)b->written);
	if (r < 0)
		return err_sys(e, -r, "write the ledger");
	b->written = b->synced + b->tail.len;
	b->seen = b->seq;
	return 0;
}

/* Never ahead of what it speaks of. */
static int write_head(struct book *b, struct err *e)
{
	if (b->head.len == 0 || b->head_seq > b->seq)
		return 0;
	if (file_replace(b->opts.dir_fd, "head", str_text(&b->head), b->head.len, e) < 0)
		return -1;
	str_clear(&b->head);
	return 0;
}

int book_sync(struct book *b, struct err *e)
{
	if (b->written > b->synced) {
		int r = os_sync(b->file_fd);

		if (r < 0) {
			b->written = b->synced; /* all of it once more */
			return err_sys(e, -r, "sync the ledger");
		}
		size_t done = (size_t)(b->written - b->synced);

		memmove(b->tail.data, b->tail.data + done, b->tail.len - done);
		b->tail.len -= done;
		b->tail.data[b->tail.len] = '\0';
		b->synced = b->written;
	}
	return b->tail.len == 0 ? write_head(b, e) : 0;
}

static int write_and_sync(struct book *b, struct err *e)
{
	return book_write(b, e) < 0 ? -1 : book_sync(b, e);
}

/* ---- signed records, files ------------------------------------------------------------ */

int book_seal_kind(struct book *b, enum ledger_kind kind, int64_t now_ms, struct err *e)
{
	const struct ledger_seal seal = { ledger_kind_name(kind), b->id, b->hash, b->seq + 1,
		                          now_ms };
	char sig[LEDGER_SIG_SIZE], src[LEDGER_NAME_SIZE];
	size_t begin = b->tail.len;

	if (ledger_sign(&b->key, &seal, sig, e) < 0)
		return -1;
	json_t *data = json_pack("{ss,ss,ss}", "ledger", b->id, "key", b->key.name, "sig", sig);
	snprintf(src, sizeof src, "%s-%llu", b->src[0].life, (unsigned long long)b->src[0].num);
	if (kind == LEDGER_SEGMENT && b->src[0].num)
		json_object_set_new(data, "src", json_string(src));
	if (book_say(b, kind, data, now_ms, e) < 0)
		return -1;
	b->sealed = b->head_seq = b->seq;
	str_clear(&b->head);
	str_addn(&b->head, b->tail.data + begin, b->tail.len - begin);
	return 0;
}

static int add_heads(struct book *b, int64_t now_ms, struct err *e)
{
	json_t *heads = json_object();

	for (size_t i = 0; i <= b->heads.size; i++) {
		const struct ledger_head *h = i < b->heads.size ? &b->heads.at[i] : NULL;
		size_t n = json_object_size(heads);

		if (h && h->sandbox[0])
			json_object_set_new(heads, h->sandbox,
			                    json_pack("[I,s]", (json_int_t)h->seq, h->hash));
		if (n == 0 || (h && n < HEADS_OF_ONE))
			continue;
		json_t *some = json_pack("{so}", "heads", heads);

		heads = json_object();
		if (book_say(b, LEDGER_HEADS, some, now_ms, e) < 0) {
			json_decref(heads);
			return -1;
		}
	}
	json_decref(heads);
	return 0;
}

/* The records before it are on disk, and whoever looks for a file finds it by its name. */
int book_begin_file(struct book *b, int64_t now_ms, struct err *e)
{
	char name[LEDGER_FILE_SIZE];

	ledger_file_name(b->seq + 1, name);
	int fd = os_openat(b->opts.dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_sync(b->opts.dir_fd);

	if (r < 0) {
		fd_close(&fd);
		return err_sys(e, -r, "make %s", name);
	}
	fd_close(&b->file_fd);
	b->file_fd = fd;
	b->file_seq = b->seq + 1;
	b->synced = b->written = 0;
	if (book_seal_kind(b, LEDGER_SEGMENT, now_ms, e) < 0 || add_heads(b, now_ms, e) < 0)
		return -1;
	return write_and_sync(b, e);
}

/* A record says first what will not be there any more. */
static int prune(struct book *b, int64_t now_ms, struct err *e)
{
	struct files all = { 0 };
	uint64_t bytes = 0;
	size_t gone = 0;
	int r = files_list(b->opts.dir_fd, &all, e);

	for (size_t i = all.len; r == 0 && i-- > 0;) {
		bytes += all.at[i].bytes;
		if (bytes > b->opts.keep_bytes && i + 2 < all.len && gone == 0)
			gone = i + 1;
	}
	if (r == 0 && gone > 0) {
		json_t *data = json_pack("{sI,sI}", "until", (json_int_t)(all.at[gone].seq - 1),
		                         "files", (json_int_t)gone);

		r = book_say(b, LEDGER_PRUNED, data, now_ms, e);
		if (r == 0)
			r = write_and_sync(b, e);
	}
	for (size_t i = 0; r == 0 && i < gone; i++) {
		char name[LEDGER_FILE_SIZE];

		ledger_file_name(all.at[i].seq, name);
		(void)os_unlinkat(b->opts.dir_fd, name); /* again with the next file */
	}
	vec_done(&all);
	return r;
}

int book_seal(struct book *b, int64_t now_ms, struct err *e)
{
	if (b->sealed == b->seq)
		return 0;
	if (book_seal_kind(b, LEDGER_CHECKPOINT, now_ms, e) < 0 || write_and_sync(b, e) < 0)
		return -1;
	if (b->synced < b->opts.file_bytes)
		return 0;
	return book_begin_file(b, now_ms, e) < 0 ? -1 : prune(b, now_ms, e);
}

void book_close(struct book *b, int64_t now_ms)
{
	struct err ignored = { 0 };

	if (b->file_fd >= 0) {
		(void)!book_seal(b, now_ms, &ignored);
		(void)!write_and_sync(b, &ignored); /* what is lost is found to be, next time */
	}
	fd_close(&b->file_fd);
	fd_close(&b->lock_fd);
	ledger_key_done(&b->key);
	ledger_heads_clear(&b->heads);
	str_done(&b->tail);
	str_done(&b->head);
}

int book_file(const struct book *b, uint64_t seq, uint64_t *first, uint64_t *next, struct err *e)
{
	struct files all = { 0 };
	char name[LEDGER_FILE_SIZE];
	size_t i = 0;

	if (files_list(b->opts.dir_fd, &all, e) < 0)
		return -1;
	while (i + 1 < all.len && all.at[i + 1].seq <= seq)
		i++;
	*first = all.len ? all.at[i].seq : 0;
	*next = i + 1 < all.len ? all.at[i + 1].seq : 0;
	vec_done(&all);
	ledger_file_name(*first, name);
	int fd = os_openat(b->opts.dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	return fd < 0 ? err_sys(e, -fd, "open %s", name) : fd;
}
