#include "gate/webpeek.h"

#include "gate/webbody.h"

_Static_assert(TREE_HASH_TEXT <= GATE_HASH_SIZE, "a hash fits");

void webpeek_done(struct webpeek *p)
{
	str_done(&p->trailers);
	*p = (struct webpeek){ 0 };
}

void webpeek_begin(struct webpeek *p, const struct http_head *h, size_t n)
{
	webpeek_done(p);
	p->is_on = true;
	p->at = n;
	webbody_begin(&p->body, h, &p->trailers);
	hash_init(&p->hash);
	webpeek_hash_query(h->path, p->content.query_hash);
	p->content.is_stream = h->is_upgrade_websocket;
}

static int webpeek_end(struct webpeek *p, bool is_partial)
{
	p->is_on = false;
	p->is_over = true;
	p->content.is_partial = is_partial;
	if (p->content.body_bytes > 0 || is_partial)
		hash_text(&p->hash, p->content.body_hash);
	return HTTP_BODY_DONE;
}

int webpeek_look(struct webpeek *p, struct span in)
{
	int r;

	do {
		struct span rest = span_after(in, p->at);
		struct http_piece piece;

		r = http_body_feed(&p->body, rest.at, rest.len, &piece);
		if (r < 0)
			return r;
		hash_add(&p->hash, piece.data);
		p->content.body_bytes += piece.data.len;
		p->at += piece.consumed;
	} while (r == HTTP_BODY_MORE && p->at < in.len);
	if (r == HTTP_BODY_DONE)
		return webpeek_end(p, false);
	return in.len >= WEBPEEK_MAX ? webpeek_end(p, true) : HTTP_BODY_MORE;
}

struct span webpeek_query(struct span target)
{
	const char *mark = memchr(target.at, '?', target.len);

	return mark ? span_after(target, (size_t)(mark - target.at) + 1)
	            : (struct span){ target.at + target.len, 0 };
}

void webpeek_hash_query(struct span target, char out[GATE_HASH_SIZE])
{
	struct span query = webpeek_query(target);

	out[0] = '\0';
	if (query.len > 0)
		hash_of(query, out);
}

void webpeek_show_query(struct span target, char out[GATE_QUERY_SIZE])
{
	struct span query = webpeek_query(target);
	size_t n = 0, room = GATE_QUERY_SIZE - 1;
	char end[GATE_HASH_SIZE + sizeof "... (sha256:)"], hash[GATE_HASH_SIZE];
	bool is_cut = query.len > room;

	hash_of(query, hash);
	snprintf(end, sizeof end, "... (sha256:%s)", hash);
	if (is_cut)
		room -= strlen(end);
	for (; n < query.len && n < room; n++)
		out[n] = query.at[n];
	out[n] = '\0';
	gate_plain(out); /* the parser lets nothing else through */
	if (is_cut)
		memcpy(out + n, end, strlen(end) + 1);
}
