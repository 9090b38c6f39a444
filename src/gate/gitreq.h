/*
 * gitreq.h - git over HTTPS (gitprotocol-http(5), gitprotocol-pack(5)): which repository a request
 * is about, whether it fetches or pushes, and which refs a push is for. Pure.
 */
#pragma once

#include "base/str.h"
#include "spec/bind.h"
#include "wire/span.h"

enum git_verb {
	GIT_NOT,      /* of another repository, or no request of the smart protocol */
	GIT_FETCH,    /* and the question before it */
	GIT_PUSH_ASK, /* the question before a push */
	GIT_PUSH,     /* its body says for which refs */
};

struct git_request {
	const char *method, *path; /* of http_target_normal() */
	struct span query;
};
/* Of the repositories of the binding. */
enum git_verb git_verb_of(const struct bind *b, const struct git_request *r);

/* Of whatever repository. */
bool git_path_is(const char *path);

#define GIT_COMMANDS_MAX (64u << 10)

/* The body of a push: nothing goes on before every ref in it is one of those that may be. */
struct gitpush {
	bool is_on;
	bool is_judged;  /* all that follows is a pack */
	struct str head; /* of the request, with its secret: nobody is asked before */
	struct str held;
	char *refs; /* patterns, one behind the other, each with its NUL; the last is empty */
	char *asks; /* the same: of those that a person is asked for */
	struct str wanted; /* of these, what it is for, with a blank between them */
	bool is_waiting;   /* all commands are there, and a person has to say yes */
};
void gitpush_begin(struct gitpush *p, const struct bind *b);
void gitpush_done(struct gitpush *p);
/* What can go on is added to `out`, the head not. False: it may not. */
bool gitpush_feed(struct gitpush *p, struct span in, struct str *out);
/* Somebody did: what was held goes on, the head not. */
void gitpush_go_on(struct gitpush *p, struct str *out);
void gitpush_take_head(struct gitpush *p, struct str *out); /* once */
/* There is no more: is what was held the whole of a push? */
bool gitpush_end(const struct gitpush *p);
