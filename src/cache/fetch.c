#include <openssl/evp.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "cache/cache-internal.h"
#include "io/journal.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/net.h"

#define HEAD_MS 60000
#define STALL_MS 60000
#define LIFE_MS 7200000
#define SYNC_BYTES (8ul << 20) /* then the disk has to have it: no long wait at the end */
#define ROUNDS 16
#define FILE_PART 2 /* one file may take at most that part of all */

enum fetch_state { FETCH_DIALS, FETCH_HEAD, FETCH_BODY };

struct fetch {
	struct line *line; /* NULL: it dials */
	struct cache *cache;
	struct fetch *next, **link;
	struct client *clients;
	struct view *view; /* of the first who asked */
	struct wanted wanted;
	struct dial *dial;
	struct rules_addr real;
	struct timer timer;
	uint64_t until_ms;
	enum fetch_state state;
	struct http_body body;
	struct temp temp;
	uint64_t written, synced, size;
	uint64_t promised; /* of the store's room */
	bool is_sized, is_over, is_busy;
	bool has_more;         /* to do in the next turn, when others have had theirs */
	bool is_used;          /* the line was another's before */
	bool is_kept_alive;    /* as its server says */
	bool is_reusable;      /* and may be another's after */
	EVP_MD_CTX *hashes[2]; /* SHA-256; what its index has, if that is another */
	char type[CACHE_TEXT_MAX], etag[CACHE_TEXT_MAX], modified[CACHE_TEXT_MAX],
	    control[CACHE_TEXT_MAX];
};

/* ---- who waits ----------------------------------------------------------------------- */

static void fetch_free(struct fetch *f)
{
	*f->link = f->next;
	if (f->next)
		f->next->link = f->link;
	f->cache->n_fetches--;
	dial_cancel(f->dial);
	timer_stop(&f->cache->timers, &f->timer);
	if (f->line && f->is_reusable)
		line_leave(f->line);
	else
		line_close(f->line);
	temp_drop(&f->cache->store, &f->temp);
	f->cache->store.promised -= f->promised;
	for (size_t i = 0; i < COUNT(f->hashes); i++)
		EVP_MD_CTX_free(f->hashes[i]);
	view_leave(f->view);
	free(f);
}

void fetch_leave(struct fetch *f, struct client *client)
{
	struct client **at = &f->clients;

	while (*at && *at != client)
		at = client_next(*at);
	if (*at)
		*at = *client_next(client);
	if (!f->clients && !f->is_busy)
		fetch_free(f); /* for nobody */
}

/* All of them, one after the other; each may end. */
static void each(struct fetch *f, void (*tell)(struct fetch *f, struct client *c), bool is_last)
{
	struct client *all = f->clients;

	if (is_last)
		f->clients = NULL;
	for (struct client *c = all, *next; c; c = next) {
		next = *client_next(c);
		tell(f, c);
	}
}

static void tell_pass(struct fetch *f, struct client *c)
{
	(void)f;
	client_pass(c);
}

static void tell_cut(struct fetch *f, struct client *c)
{
	(void)f;
	client_cut(c);
}

static void tell_whole(struct fetch *f, struct client *c)
{
	client_grow(c, f->written, true);
}

static void tell_growth(struct fetch *f, struct client *c)
{
	client_grow(c, f->written > 0 ? f->written - 1 : 0, false);
}

static void tell_begin(struct fetch *f, struct client *c)
{
	const struct fields fields = { f->type, f->etag, f->modified, f->control };

	client_begin(c, &fields, f->temp.fd, f->is_sized ? &f->size : NULL);
}

static void tell_stored(struct fetch *f, struct client *c)
{
	struct entry *n = store_find(&f->cache->store, f->wanted.id);

	if (n)
		client_serve(c, n, CACHE_REVALIDATED);
	else
		client_pass(c);
}

/* Who may not see where it comes from asks by itself, and is told why not. */
static void tell_real(struct fetch *f, struct client *c)
{
	if (view_may_see(client_view(c), &f->real))
		return;
	struct client **at = &f->clients;

	while (*at != c)
		at = client_next(*at);
	*at = *client_next(c);
	client_pass(c);
}

/* Nothing was said yet: the gate is to ask by itself. Else what was said is not ended. */
static void fail(struct fetch *f)
{
	f->is_over = true;
	each(f, f->state == FETCH_BODY ? tell_cut : tell_pass, true);
}

/* ---- the end ------------------------------------------------------------------------- */

static bool is_as_claimed(struct fetch *f, uint8_t sha256[STORE_SHA_SIZE])
{
	const struct digest *want = &f->wanted.digest;
	uint8_t other[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(f->hashes[0], sha256, NULL) != 1)
		return false;
	if (!f->hashes[1])
		return memcmp(sha256, want->at, STORE_SHA_SIZE) == 0;
	return EVP_DigestFinal_ex(f->hashes[1], other, NULL) == 1 &&
	       memcmp(other, want->at, digest_size(want->kind)) == 0;
}

static struct store_new describe(struct fetch *f, struct str *url)
{
	weburl_print(&f->wanted.at, url);
	return (struct store_new){ .id = f->wanted.id,
		                   .kind = f->wanted.kind,
		                   .url = str_text(url),
		                   .type = f->type,
		                   .etag = f->etag[0] ? f->etag : NULL,
		                   .modified = f->modified[0] ? f->modified : NULL,
		                   .control = f->control[0] ? f->control : NULL,
		                   .bytes = f->written,
		                   .real = f->real };
}

static void complain(const char *words, const struct store_new *n, const struct err *e)
{
	journal(JOURNAL_WARN, words, "url", n->url, "reason", e ? e->msg : NULL, NULL);
}

static void end_file(struct fetch *f)
{
	AUTO(str_done) struct str url = { .max = WEBURL_TEXT_MAX };
	struct store_new n = describe(f, &url);
	uint8_t sha256[STORE_SHA_SIZE];
	struct err e = { 0 };

	if (!is_as_claimed(f, sha256)) {
		complain("a file is not what its index says", &n, NULL);
		fail(f);
		return;
	}
	if (store_add_file(&f->cache->store, &f->temp, &n, sha256, &e) < 0)
		complain("a file was not kept", &n, &e);
	each(f, tell_whole, true);
}

static void on_claim(void *arg, const struct weburl *url, const struct digest *d)
{
	store_claims *l = arg;

	if (l->len < STORE_CLAIMS_OF_ONE_MAX)
		store_claim_add(l, url, d);
}

/* Of cargo's index: where its config.json says that files are. */
static const char *find_dl(struct fetch *f, char out[WEBURL_PATH_SIZE])
{
	AUTO(str_done) struct str url = { .max = WEBURL_TEXT_MAX };
	AUTO(freep) char *text = NULL;
	uint8_t id[STORE_ID_SIZE];
	struct weburl at;

	if (f->wanted.kind != PKG_CARGO || pkg_cargo_config(&f->wanted.at, &at) < 0)
		return NULL;
	weburl_print(&at, &url);
	store_index_id(str_text(&url), f->wanted.accept, id);
	struct entry *n = store_find(&f->cache->store, id);
	AUTO(fd_close) int fd = n ? store_read(&f->cache->store, n) : -1;

	if (fd < 0 || n->bytes > HTTP_HEAD_MAX)
		return NULL;
	text = mem_alloc(n->bytes + 1);
	int got = os_pread(fd, text, n->bytes, 0);

	return got > 0 && pkg_cargo_dl((struct span){ text, (size_t)got }, out) == 0 ? out : NULL;
}

/* False: what it says is malformed; then it is served and not kept. */
static bool read_claims(struct fetch *f, store_claims *out)
{
	char dl[WEBURL_PATH_SIZE];
	struct pkg_page page = { .kind = f->wanted.kind,
		                 .type = span_of(f->type),
		                 .at = &f->wanted.at,
		                 .dl = find_dl(f, dl) };
	void *text = NULL;

	if (f->written == 0)
		return false;
	if (os_map_shared(f->temp.fd, f->written, &text) < 0)
		return false;
	page.text = (struct span){ text, f->written };
	int r = pkg_read(&page, on_claim, out);

	(void)munmap(text, f->written);
	return r == 0;
}

static void end_index(struct fetch *f)
{
	AUTO(str_done) struct str url = { .max = WEBURL_TEXT_MAX };
	struct store_new n = describe(f, &url);
	store_claims claims = { 0 };
	struct err e = { 0 };

	if (!read_claims(f, &claims))
		complain("an index is not kept: it is malformed", &n, NULL);
	else if (store_add_index(&f->cache->store, &f->temp, &n, &claims, &e) < 0)
		complain("an index was not kept", &n, &e);
	vec_done(&claims);
	each(f, tell_whole, true);
}

static void finish(struct fetch *f)
{
	f->is_reusable = f->is_kept_alive;
	f->is_over = true; /* who asks again now begins another one, or finds it */
	if (f->wanted.is_index)
		end_index(f);
	else
		end_file(f);
}

/* ---- the body ------------------------------------------------------------------------ */

/* Room that nobody else gets. */
static bool promise(struct fetch *f, uint64_t bytes)
{
	if (!store_make_room(&f->cache->store, bytes))
		return false;
	f->promised += bytes;
	f->cache->store.promised += bytes;
	return true;
}

static bool keep(struct fetch *f, struct span data)
{
	for (size_t i = 0; i < COUNT(f->hashes); i++)
		if (f->hashes[i] && EVP_DigestUpdate(f->hashes[i], data.at, data.len) != 1)
			return false;
	if (os_pwrite2(f->temp.fd, data.at, data.len, NULL, 0, (off_t)f->written) < 0)
		return false;
	f->written += data.len;
	if (f->written - f->synced < SYNC_BYTES)
		return true;
	f->synced = f->written;
	return os_sync(f->temp.fd) >= 0 && (f->is_sized || promise(f, SYNC_BYTES));
}

static bool take_body(struct fetch *f)
{
	struct leg *leg = &f->line->side.leg;
	int r = HTTP_BODY_MORE;
	bool is_kept = true;

	do {
		struct span in = leg_input(leg);
		struct http_piece piece = { 0 };

		r = http_body_feed(&f->body, in.at, in.len, &piece);
		if (piece.data.len > 0)
			is_kept = keep(f, piece.data);
		leg_take(leg, piece.consumed);
	} while (r == HTTP_BODY_MORE && is_kept && leg_input(leg).len > 0);
	if (r == HTTP_BODY_MORE && is_kept && leg->is_eof)
		r = http_body_eof(&f->body);
	if (r < 0 || !is_kept) {
		fail(f);
		return false;
	}
	if (r == HTTP_BODY_DONE) {
		finish(f);
		return false;
	}
	each(f, tell_growth, false);
	return leg_fill(leg);
}

/* ---- the head ------------------------------------------------------------------------ */

static void note(const struct http_head *h, const char *name, char out[CACHE_TEXT_MAX])
{
	const struct span *v = http_header(h, name);

	out[0] = '\0';
	if (v && v->len < CACHE_TEXT_MAX && http_header_count(h, name) == 1)
		snprintf(out, CACHE_TEXT_MAX, "%.*s", (int)v->len, v->at);
}

static uint64_t most_bytes(const struct fetch *f)
{
	return f->wanted.is_index ? STORE_INDEX_MAX : f->cache->store.max / FILE_PART;
}

/* Is it what was asked for, in a form that can be kept? */
static bool is_fine(const struct fetch *f, const struct http_head *h)
{
	const struct span *coding = http_header(h, "Content-Encoding");

	if (h->status != 200 || (coding && !span_is_nocase(*coding, "identity")))
		return false;
	if (f->wanted.is_index && !pkg_is_index_type(f->wanted.kind, span_of(f->type)))
		return false;
	/* Where the end is not said, half of a page would look like a page. */
	if (f->wanted.is_index && h->body == HTTP_UNTIL_CLOSE)
		return false;
	return !h->has_length || h->length <= most_bytes(f);
}

static EVP_MD_CTX *hash_begin(enum digest_kind k)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (!ctx || EVP_DigestInit_ex(ctx, EVP_get_digestbyname(digest_name(k)), NULL) != 1)
		abort(); /* out of memory */
	return ctx;
}

static bool begin_body(struct fetch *f, const struct http_head *h)
{
	enum store_folder folder = f->wanted.is_index ? STORE_META : STORE_BLOBS;

	if (!is_fine(f, h) || !promise(f, h->has_length ? h->length : SYNC_BYTES) ||
	    temp_open(&f->cache->store, folder, &f->temp) < 0)
		return false;
	http_body_init(&f->body, h, most_bytes(f));
	f->body.skips_extensions = true;
	f->is_sized = h->body == HTTP_LENGTH;
	f->size = h->length;
	if (!f->wanted.is_index)
		f->hashes[0] = hash_begin(DIGEST_SHA256);
	if (!f->wanted.is_index && f->wanted.digest.kind != DIGEST_SHA256)
		f->hashes[1] = hash_begin(f->wanted.digest.kind);
	f->state = FETCH_BODY;
	each(f, tell_begin, false);
	return true;
}

static void take_answer(struct fetch *f, const struct http_head *h)
{
	if (h->status < 200 && h->status != 101)
		return;
	note(h, "Content-Type", f->type);
	note(h, "ETag", f->etag);
	note(h, "Last-Modified", f->modified);
	note(h, "Cache-Control", f->control);
	f->is_kept_alive = h->keep_alive && h->body != HTTP_UNTIL_CLOSE;
	if (h->status == 304 && f->wanted.is_index) {
		f->is_reusable = f->is_kept_alive;
		f->is_over = true;
		each(f, tell_stored, true);
	} else if (!begin_body(f, h)) {
		fail(f);
	}
}

static void dial(struct fetch *f);

/* The server is gone. One that had waited for us may have been so all the time. */
static void lost(struct fetch *f)
{
	bool is_new =
	    !f->is_used || f->state != FETCH_HEAD || leg_input(&f->line->side.leg).len > 0;

	if (is_new) {
		fail(f);
		return;
	}
	line_close(f->line);
	f->line = NULL;
	f->is_used = false;
	dial(f);
}

static bool take_head(struct fetch *f)
{
	static struct http_head h;
	struct leg *leg = &f->line->side.leg;
	struct span in = leg_input(leg);
	int n = http_response_head(in.at, in.len, HTTP_ASKED_BODY, &h);

	if (n > 0) {
		take_answer(f, &h);
		leg_take(leg, (size_t)n); /* the fields of the head lie in it */
		return true;
	}
	if (n == 0 && leg_fill(leg))
		return true;
	if (n < 0 || leg->is_eof)
		lost(f);
	return false;
}

/* ---- the loop ------------------------------------------------------------------------ */

static bool step(struct fetch *f)
{
	struct leg *leg = &f->line->side.leg;
	bool has_moved = leg_flush(leg);

	if (leg->is_broken) {
		lost(f);
		return false;
	}
	return (f->state == FETCH_HEAD ? take_head(f) : take_body(f)) || has_moved;
}

static void run(struct fetch *f)
{
	bool has_moved = true;

	f->is_busy = true;
	for (int i = 0; i < ROUNDS && has_moved && !f->is_over && f->line; i++)
		has_moved = step(f);
	f->is_busy = false;
	f->has_more = has_moved;
	if (f->is_over || !f->clients) {
		fetch_free(f);
		return;
	}
	if (!f->line) { /* it dials */
		timer_stop(&f->cache->timers, &f->timer);
		return;
	}
	leg_watch(&f->line->side.relay, &f->line->side.leg, true);
	timer_set(&f->cache->timers, &f->timer, has_moved ? 0 : STALL_MS);
}

static void server_ready(void *owner)
{
	run(owner);
}

/* Either there is more to do, or nothing came for too long. */
static void tick(struct timer *t)
{
	struct fetch *f = OWNER_OF(t, struct fetch, timer);

	if (f->has_more && timer_now_ms() < f->until_ms) {
		run(f);
		return;
	}
	f->is_busy = true;
	fail(f);
	fetch_free(f);
}

/* ---- the start ----------------------------------------------------------------------- */

static void print_request(struct fetch *f)
{
	const struct wanted *w = &f->wanted;
	const struct entry *have = w->is_index ? store_find(&f->cache->store, w->id) : NULL;
	struct http_print p =
	    http_print_request(leg_out(&f->line->side.leg), span_of("GET"), span_of(w->at.path));
	char host[GATE_NAME_SIZE + sizeof ":65535"];
	struct err e;

	if (w->at.port == (w->at.is_tls ? 443 : 80))
		snprintf(host, sizeof host, "%s", w->at.host);
	else
		snprintf(host, sizeof host, "%s:%u", w->at.host, w->at.port);
	http_print_text(&p, "Host", host);
	http_print_text(&p, "User-Agent", "caisson-cache/" CAISSON_VERSION);
	http_print_text(&p, "Accept", w->is_index ? w->accept : "*/*");
	http_print_text(&p, "Accept-Encoding", "identity");
	if (have && have->etag)
		http_print_text(&p, "If-None-Match", have->etag);
	if (have && have->modified)
		http_print_text(&p, "If-Modified-Since", have->modified);
	if (http_print_end(&p, &e) < 0)
		fail(f);
}

/* The line is there. */
static void begin(struct fetch *f)
{
	f->is_busy = true;
	f->state = FETCH_HEAD;
	f->line->ready = server_ready;
	f->line->owner = f;
	f->real = f->line->real;
	each(f, tell_real, false);
	print_request(f);
	if (f->is_over) {
		fetch_free(f);
		return;
	}
	timer_set(&f->cache->timers, &f->timer, HEAD_MS);
	run(f);
}

static void dialled(void *owner, int fd, enum gate_reason why, const struct rules_addr *real)
{
	static const struct rules_addr unknown;
	struct fetch *f = owner;
	bool is_direct = f->view->rules.proxy == PROXY_NONE;

	(void)why; /* the gate finds out, and says so */
	f->dial = NULL;
	if (fd >= 0)
		f->line = line_open(f->cache, &f->wanted.at, fd, is_direct ? real : &unknown);
	if (f->line) {
		begin(f);
		return;
	}
	f->is_busy = true;
	fail(f);
	fetch_free(f);
}

static void dial(struct fetch *f)
{
	f->state = FETCH_DIALS;
	f->dial = dial_start(&f->view->dialer,
	                     &(struct dial_to){ f->wanted.at.host, { .port = f->wanted.at.port } },
	                     dialled, f);
}

/* In a turn of its own: whoever asks has to know first that it waits. */
static void start(struct timer *t)
{
	struct fetch *f = OWNER_OF(t, struct fetch, timer);

	t->fired = tick;
	f->line = line_take(f->cache, &f->wanted.at, f->view);
	f->is_used = f->line;
	if (f->line)
		begin(f);
	else
		dial(f);
}

static void join(struct fetch *f, struct client *client)
{
	*client_next(client) = f->clients;
	f->clients = client;
	if (f->state != FETCH_BODY)
		return;
	/* The client is just asking, and looks again when it is told so. */
	tell_begin(f, client);
	tell_growth(f, client);
}

static struct fetch *find(struct cache *c, const struct wanted *w, const struct view *view)
{
	struct fetch *f = c->fetches;

	while (f && (f->is_over || memcmp(f->wanted.id, w->id, STORE_ID_SIZE) != 0 ||
	             (f->state != FETCH_DIALS && !view_may_see(view, &f->real))))
		f = f->next;
	return f;
}

bool fetch_for(struct cache *c, const struct wanted *w, struct client *client, struct view *view,
               struct fetch **out)
{
	struct fetch *f = find(c, w, view);

	if (!f && c->n_fetches >= FETCHES_MAX)
		return false;
	if (f) {
		*out = f;
		join(f, client);
		return true;
	}
	f = mem_alloc(sizeof *f);
	*f = (struct fetch){ .cache = c,
		             .next = c->fetches,
		             .link = &c->fetches,
		             .view = view_take(view),
		             .wanted = *w,
		             .timer.fired = start,
		             .until_ms = timer_now_ms() + LIFE_MS,
		             .temp.fd = -1 };
	if (f->next)
		f->next->link = &f->next;
	c->fetches = f;
	c->n_fetches++;
	*out = f;
	join(f, client);
	timer_set(&c->timers, &f->timer, 0);
	return true;
}

void fetches_done(struct cache *c)
{
	for (struct fetch *f = c->fetches, *next; f; f = next) {
		next = f->next;
		fetch_free(f);
	}
}
