/*
 * describe.h - what a route takes and gives, in full: the route table has it in a word, or not at
 * all where the worker reads the body or the answer has several forms.
 */
#pragma once

#include "api/routes.h"

struct param {
	const char *name, *type,
	    *help; /* type: as in schemas.h; "flag": being there is its value */
};

struct body_form {
	const char *media, *type;
	bool is_needed;
};

#define ANSWER_FORMS_MAX 8
struct answer_form {
	handler_fn *run;
	int status;
	const char *media, *type; /* media NULL: no body */
	const char *help;
	const char *headers; /* "ETag Content-Range" */
};

struct group {
	const char *title, *help;
};

/* The i-th of a list with spaces between: "limit cursor label". */
bool name_at(const char *list, size_t i, char out[32]);

void name_lower(const char *name, char out[64]); /* ASCII */

const struct param *query_param(const char *name);                 /* NULL: it is not described */
const struct param *route_header(const struct route *r, size_t i); /* of requests; NULL: no more */
const char *answer_header_help(const char *name);                  /* NULL: it is not described */
bool route_body(const struct route *r, struct body_form *out);
size_t route_answers(const struct route *r, struct answer_form out[ANSWER_FORMS_MAX]);
const struct group *route_group(const struct route *r);
const struct group *group_at(size_t i); /* NULL: no more */
void route_name(const struct route *r,
                struct str *out); /* "sandbox_file_get": the operation's id */
void route_path(const struct route *r, struct str *out); /* "{path*}" is "{path}" */
