/*
 * web-internal.h - a connection that speaks HTTP: web.c is its ends, its answers and the loop,
 * web_ask.c its requests, web_hold.c those that a person is asked about.
 */
#pragma once

#include "gate/gitreq.h"
#include "gate/mask.h"
#include "gate/sigv4.h"
#include "gate/web.h"
#include "gate/webpeek.h"
#include "wire/http.h"

#define WEB_AHEAD_MAX (16u << 10) /* of the next request, while one is answered */

enum asking { ASK_HEAD, ASK_BODY, ASK_DONE };
enum answering { ANSWER_NONE, ANSWER_HEAD, ANSWER_BODY, ANSWER_MOCK, ANSWER_MOCK_BODY };

struct web {
	struct conn *conn;
	struct leg client, server;
	struct http_body up, down;
	struct str up_trailers, down_trailers;
	enum asking asking;
	enum answering answering;
	enum http_asked asked;
	enum gate_decision decision; /* of its end */
	enum gate_reason why;
	enum conn_by by;
	uint64_t n_requests;
	uint64_t due_ms;                  /* ANSWER_MOCK: not before; is_closing: not later */
	const struct mock_answer *played; /* ANSWER_MOCK_BODY: while play_count is the same */
	size_t n_played;
	uint64_t play_count;
	char method[GATE_METHOD_SIZE], *path;
	char secret[SECRET_NAME_MAX + 1]; /* that went with this request; "": none */
	struct mask mask;                 /* of its answer */
	struct gitpush push;              /* of its body */
	struct sigv4 sign;                /* the same */
	struct canary_scan scan;          /* of what is said behind its head */
	struct webpeek peek;              /* what a person is shown of its body */
	uint64_t ask;                     /* the number of its question; 0: none */
	struct str again; /* what the cache was asked, for the server if that does not answer */
	enum cache_word cache;   /* what it did */
	bool is_asking_cache;    /* the server is the package cache */
	bool is_recorded;        /* requests are told one by one */
	bool is_upgrade, is_old; /* the client is of HTTP/1.0 */
	bool is_last;            /* nothing follows this answer */
	bool is_held;            /* this request waits for a person */
	bool is_up_whole;        /* held in its body: all of that has come */
	uint8_t asked_for;       /* enum gate_ask_kind: while it is held */
	bool is_first;           /* the same, of a secret: and then never again */
	uint8_t approved;        /* 1 << kind: what a person said yes to, of this request */
	bool has_continued;      /* 100 was said to the client, for the body to be looked at */
	bool is_raw;             /* behind 101 */
	bool is_down_raw;        /* the body is passed without chunks */
	bool is_closing;         /* the last word was said */
	bool is_over, is_reset;
	bool has_reflected; /* an answer had a secret in it */
	bool is_busy;       /* goes on in the next turn, when others have had theirs */
	bool is_told;       /* that the secret of this request goes out */
	bool is_waiting;    /* for a token: the request is still to be taken */
	bool has_answered;  /* something of this answer has gone to the client */
};

/* ---- web.c --------------------------------------------------------------------------- */

bool web_has_server(const struct web *w);
enum gate_decision web_allowed(const struct web *w); /* of what a person, or nobody, was asked */
void web_server_ready(struct watch *watch, uint32_t events);
void web_renew_server(struct web *w); /* the next one is another, and knows nothing of the last */
/* An answer of ours, and then nothing more. What was asked so far is forgotten. */
void web_refuse(struct web *w, int status, enum gate_decision d, enum gate_reason why);
/* Nothing more is said to the client, but all that was is sent. */
void web_leave(struct web *w, enum gate_decision d, enum gate_reason why, enum conn_by by);
/* In the middle of something: nobody may take it for whole. */
void web_cut(struct web *w, enum gate_reason why, enum conn_by by);

/* ---- web_ask.c ----------------------------------------------------------------------- */

struct injection;
bool web_ask(struct web *w);                    /* true when something has moved */
void web_refuse_body(struct web *w, int error); /* of webbody.h */
void web_go_on(struct web *w);                  /* it was held, and somebody said yes */

/* ---- web_hold.c ---------------------------------------------------------------------- */

/* A request whose head is whole: it stays in the client's input. */
struct web_held {
	const struct http_head *head;
	size_t n; /* bytes of the head */
};
bool web_is_approved(const struct web *w, enum gate_ask_kind kind);
void web_hold_request(struct web *w, const struct web_held *held, const struct verdict *v);
/* False: its secret is one that a person has to allow first. */
bool web_may_use(struct web *w, const struct web_held *held, const struct injection *j);
void web_hold_push(struct web *w);
bool web_peek(struct web *w); /* reads more of the body; true when something has moved */
