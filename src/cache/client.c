#include <fcntl.h>

#include "base/fd.h"
#include "cache/cache-internal.h"
#include "os/extent.h"
#include "os/net.h"

#define PIECE (64u << 10)
#define ROUNDS 8
#define AHEAD_MAX (16u << 10)
#define STALL_MS 600000 /* nothing is asked, or nothing taken */

enum client_state { CLIENT_ASKS, CLIENT_WAITS, CLIENT_GETS };

struct client {
	struct side side;
	struct cache *cache;
	struct client *next, **link; /* of cache->clients */
	struct client *waiting;      /* the next one of fetch */
	struct fetch *fetch;
	struct view *view;
	struct timer timer;
	struct cache_hello server;
	enum pkg_kind kind;
	enum client_state state;
	int file_fd; /* what is sent; -1: none */
	uint64_t sent, ready, size;
	bool is_sized; /* size is known */
	bool is_whole; /* ready is all */
	bool is_head, is_last;
	bool is_over, is_busy;
	bool has_more;                /* to do in the next turn, when others have had theirs */
	char if_none[CACHE_TEXT_MAX]; /* what the client has already; "": nothing */
};

const struct view *client_view(const struct client *c)
{
	return c->view;
}

struct client **client_next(struct client *c)
{
	return &c->waiting;
}

/* ---- ends ---------------------------------------------------------------------------- */

static void client_free(struct client *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->cache->n_clients--;
	timer_stop(&c->cache->timers, &c->timer);
	side_close(&c->side);
	fd_close(&c->file_fd);
	view_leave(c->view);
	free(c);
}

void client_end(struct client *c)
{
	struct fetch *f = c->fetch;

	c->is_over = true;
	c->fetch = NULL;
	if (f)
		fetch_leave(f, c);
	if (!c->is_busy)
		client_free(c);
}

static void run(struct client *c);

/* What was begun is not ended in order: the gate sees that. */
void client_cut(struct client *c)
{
	c->fetch = NULL;
	client_end(c);
}

/* ---- answers ------------------------------------------------------------------------- */

static void print_fields(struct http_print *p, const struct fields *f)
{
	const struct {
		const char *name, *value;
	} all[] = { { "Content-Type", f->type },
		    { "ETag", f->etag },
		    { "Last-Modified", f->modified },
		    { "Cache-Control", f->control } };

	for (size_t i = 0; i < COUNT(all); i++)
		if (all[i].value && all[i].value[0])
			http_print_text(p, all[i].name, all[i].value);
}

/* The head of an answer; how the body comes is in the client. */
static void say_head(struct client *c, int status, const struct fields *f, enum cache_word how)
{
	struct http_print p = http_print_response(leg_out(&c->side.leg), status);
	struct err e;

	print_fields(&p, f);
	http_print_text(&p, CACHE_FIELD, cache_word_name(how));
	if (status != 304)
		http_print_framing(&p, c->is_sized ? HTTP_LENGTH : HTTP_CHUNKED, c->size);
	if (c->is_last)
		http_print_text(&p, "Connection", "close");
	if (http_print_end(&p, &e) < 0)
		c->is_over = true; /* a field of the server's that cannot be said */
}

static void say_text(struct client *c, int status, enum cache_word how, const char *text)
{
	static const struct fields plain = { .type = "text/plain; charset=utf-8",
		                             .control = "no-store" };

	c->is_sized = true;
	c->size = strlen(text);
	say_head(c, status, &plain, how);
	if (!c->is_head)
		str_add(leg_out(&c->side.leg), text);
	c->state = CLIENT_ASKS;
}

static void send_from(struct client *c, int fd)
{
	fd_close(&c->file_fd);
	c->file_fd = fd;
	c->sent = c->ready = 0;
	c->is_whole = false;
	c->state = CLIENT_GETS;
}

void client_begin(struct client *c, const struct fields *f, int fd, const uint64_t *size)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	c->is_over |= own < 0;
	c->is_sized = size != NULL;
	c->size = size ? *size : 0;
	send_from(c, own);
	say_head(c, 200, f, CACHE_MISS);
	run(c);
}

void client_grow(struct client *c, uint64_t ready, bool is_whole)
{
	c->ready = ready;
	c->is_whole = is_whole;
	if (is_whole)
		c->fetch = NULL;
	run(c);
}

/* May end the entry. */
static bool serve(struct client *c, struct entry *n, enum cache_word how)
{
	const struct fields f = { n->type, n->etag, n->modified, n->control };
	AUTO(fd_close) int fd = store_read(&c->cache->store, n);

	if (fd < 0)
		return false;
	c->is_sized = true;
	c->size = n->bytes;
	if (n->etag && strcmp(n->etag, c->if_none) == 0) {
		say_head(c, 304, &f, how);
		c->state = CLIENT_ASKS;
	} else {
		say_head(c, 200, &f, how);
		send_from(c, fd_take(&fd));
		c->ready = c->is_head ? 0 : n->bytes;
		c->size = c->ready;
		c->is_whole = true;
	}
	store_use(&c->cache->store, n);
	return true;
}

void client_serve(struct client *c, struct entry *n, enum cache_word how)
{
	c->fetch = NULL;
	if (serve(c, n, how))
		run(c);
	else
		client_pass(c);
}

static void say_pass(struct client *c)
{
	say_text(c, 421, CACHE_PASS, "");
}

void client_pass(struct client *c)
{
	c->fetch = NULL;
	if (c->state == CLIENT_GETS) {
		client_cut(c);
		return;
	}
	say_pass(c);
	run(c);
}

/* ---- requests ------------------------------------------------------------------------ */

/* The digest that counts for this sandbox: one of an index that its own rules name as such, and for
 * what comes by TLS one that came by TLS too. What is there already comes first. */
static bool find_claim(struct client *c, const char *key, struct wanted *w)
{
	const struct store *s = &c->cache->store;
	bool has_one = false;

	for (const struct claim *claim = NULL; (claim = store_claim(s, key, claim));) {
		uint8_t id[STORE_ID_SIZE];

		if (claim->by->kind != c->kind || !claim->by->host ||
		    (c->server.is_tls && !claim->by->is_tls) ||
		    rules_cached(&c->view->rules, claim->by->host, claim->by->port) != c->kind)
			continue;
		store_file_id(key, &claim->digest, id);
		bool is_there = store_find(s, id);

		if (has_one && !is_there)
			continue;
		has_one = true;
		w->digest = claim->digest;
		memcpy(w->id, id, sizeof id);
		if (is_there)
			break;
	}
	return has_one;
}

/* False: it is not for us. */
static bool understand(struct client *c, const struct http_head *h, struct wanted *w)
{
	const struct span *accept = http_header(h, "Accept");
	AUTO(str_done) struct str text = { .max = WEBURL_TEXT_MAX };

	*w = (struct wanted){ .kind = c->kind,
		              .at = { .is_tls = c->server.is_tls, .port = c->server.port } };
	memcpy(w->at.host, c->server.name, sizeof w->at.host);
	if ((!span_is(h->method, "GET") && !c->is_head) || h->form != HTTP_ORIGIN ||
	    !span_is_nocase(h->host, c->server.name) ||
	    pkg_target(c->kind, h->path, w->at.path) < 0)
		return false;
	weburl_key(&w->at, &text);
	if (find_claim(c, str_text(&text), w))
		return true;
	if (!pkg_is_index(c->kind, w->at.path))
		return false;
	w->is_index = true;
	w->accept = pkg_accept(c->kind, accept ? *accept : (struct span){ 0 });
	str_clear(&text);
	weburl_print(&w->at, &text);
	store_index_id(str_text(&text), w->accept, w->id);
	return true;
}

static void answer(struct client *c, const struct http_head *h)
{
	bool is_offline = c->view->rules.is_offline;
	struct wanted w;
	bool is_ours = understand(c, h, &w);
	struct entry *n = is_ours ? store_find(&c->cache->store, w.id) : NULL;

	if (n && !view_may_see(c->view, &n->real))
		n = NULL;
	if (n && (!n->is_index || is_offline) && serve(c, n, CACHE_HIT))
		return;
	if (is_offline)
		say_text(c, 504, CACHE_ABSENT,
		         "caisson: offline, and this is not in the package cache\n");
	else if (!is_ours || c->is_head || !fetch_for(c->cache, &w, c, c->view, &c->fetch))
		say_pass(c);
}

static void note_have(struct client *c, const struct http_head *h)
{
	const struct span *have = http_header(h, "If-None-Match");

	snprintf(c->if_none, sizeof c->if_none, "%.*s",
	         have && have->len < sizeof c->if_none ? (int)have->len : 0, have ? have->at : "");
}

static bool ask(struct client *c)
{
	static struct http_head h;
	struct leg *leg = &c->side.leg;
	struct span in = leg_input(leg);
	int n = http_request_head(in.at, in.len, &h);

	if (n == 0 && leg_fill(leg))
		return true;
	if (n == 0) {
		c->is_over |= leg->is_eof;
		return false;
	}
	if (n < 0 || h.body != HTTP_NO_BODY) { /* the gate sends no such thing */
		c->is_over = true;
		return false;
	}
	c->is_head = span_is(h.method, "HEAD");
	c->is_last = !h.keep_alive;
	c->state = CLIENT_WAITS;
	note_have(c, &h);
	answer(c, &h);
	leg_take(leg, (size_t)n);
	return true;
}

/* ---- sending ------------------------------------------------------------------------- */

static void sent_all(struct client *c)
{
	if (!c->is_sized)
		http_print_last_chunk(leg_out(&c->side.leg));
	fd_close(&c->file_fd);
	c->state = CLIENT_ASKS;
}

static bool give(struct client *c)
{
	static char buf[PIECE];
	struct leg *leg = &c->side.leg;
	uint64_t left = c->ready - c->sent;

	if (leg_is_full(leg))
		return false;
	if (left == 0 && c->is_whole) {
		sent_all(c);
		return true;
	}
	size_t most = left < sizeof buf ? (size_t)left : sizeof buf;
	int n = most > 0 ? os_pread(c->file_fd, buf, most, (off_t)c->sent) : 0;

	if (n < (int)most) /* it has become shorter */
		c->is_over = true;
	if (n <= 0)
		return false;
	if (c->is_sized)
		str_addn(leg_out(leg), buf, (size_t)n);
	else
		http_print_chunk(leg_out(leg), buf, (size_t)n);
	c->sent += (uint64_t)n;
	return true;
}

/* ---- the loop ------------------------------------------------------------------------ */

/* Nothing is said while it waits, but perhaps an end. */
static bool listen_on(struct client *c)
{
	struct leg *leg = &c->side.leg;
	bool has_moved = leg_fill(leg);

	c->is_over |= leg->is_eof || leg_input(leg).len > AHEAD_MAX;
	return has_moved;
}

static bool step(struct client *c)
{
	struct leg *leg = &c->side.leg;
	bool has_moved = leg_flush(leg);

	if (leg->is_broken || leg->is_deaf) {
		c->is_over = true;
		return false;
	}
	switch (c->state) {
	case CLIENT_ASKS:
		if (c->is_last && leg_unsent(leg) == 0) {
			c->is_over = true;
			return false;
		}
		return (leg_unsent(leg) == 0 && !c->is_last && ask(c)) || has_moved;
	case CLIENT_WAITS:
		return listen_on(c) || has_moved;
	case CLIENT_GETS:
		return listen_on(c) || give(c) || has_moved;
	}
	return false;
}

static void run(struct client *c)
{
	bool has_moved = true;

	if (c->is_busy)
		return; /* who runs it goes on */
	c->is_busy = true;
	for (int i = 0; i < ROUNDS && has_moved && !c->is_over; i++)
		has_moved = step(c);
	c->is_busy = false;
	c->has_more = has_moved;
	if (c->is_over) {
		client_end(c);
		return;
	}
	leg_watch(&c->side.relay, &c->side.leg, true);
	timer_set(&c->cache->timers, &c->timer, has_moved ? 0 : STALL_MS);
}

static void client_ready(struct watch *w, uint32_t events)
{
	struct client *c = OWNER_OF(w, struct client, side.relay.client.watch);

	leg_heard(&c->side.leg, events);
	run(c);
}

static void tick(struct timer *t)
{
	struct client *c = OWNER_OF(t, struct client, timer);

	if (c->has_more || c->state == CLIENT_WAITS)
		run(c);
	else
		client_end(c);
}

/* ---- arrival ------------------------------------------------------------------------- */

static struct view *read_view(struct cache *c, int rules_fd)
{
	AUTO(freep) char *text = mem_alloc(GATE_RULES_MAX + 1);
	struct view *v = mem_alloc(sizeof *v);
	struct err e = { 0 };
	int n = os_pread(rules_fd, text, GATE_RULES_MAX + 1, 0);

	*v = (struct view){ .refs = 1 };
	if (n < 0 || rules_read(&v->rules, text, (size_t)n, &e) < 0) {
		free(v);
		return NULL;
	}
	rules_own(&v->rules, c->own, c->n_own);
	rules_proxy_by(&v->rules, c->proxy); /* whatever a child of the gate says */
	v->dialer = (struct dialer){ &c->loop, &c->timers, &c->lookups, &v->rules };
	return v;
}

void client_start(struct cache *cache, const struct cache_hello *h, int stream_fd, int rules_fd)
{
	AUTO(fd_close) int fd = stream_fd;
	AUTO(fd_close) int rules = rules_fd;
	struct view *v = cache->n_clients < CLIENTS_MAX ? read_view(cache, rules) : NULL;
	enum pkg_kind kind = v ? rules_cached(&v->rules, h->name, h->port) : PKG_NONE;

	if (kind == PKG_NONE || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		view_leave(v);
		return; /* it sees an end, and asks the server itself */
	}
	struct client *c = mem_alloc(sizeof *c);

	*c = (struct client){ .cache = cache,
		              .next = cache->clients,
		              .link = &cache->clients,
		              .view = v,
		              .timer.fired = tick,
		              .server = *h,
		              .kind = kind,
		              .file_fd = -1 };
	if (c->next)
		c->next->link = &c->next;
	cache->clients = c;
	cache->n_clients++;
	side_open(cache, &c->side, fd_take(&fd), client_ready);
	run(c);
}

void clients_done(struct cache *c)
{
	for (struct client *each = c->clients, *next; each; each = next) {
		next = each->next;
		client_end(each);
	}
}
