/*
 * auth.h - who asks. By the unix socket: the peer's uid. By TCP: a bearer token and nothing else,
 * never a cookie; the Host has to be one of ours, so that a name somebody else controls cannot
 * lead a browser here, and a page of another origin is refused.
 */
#pragma once

#include "api/routes.h"

#define TOKEN_PREFIX "cst_"
#define AUTH_OPERATOR "local" /* the tenant of the UNIX socket, and the only one of admins */

bool auth_names_admin(const char *scopes); /* of a token that is to be made */
/* Fills in tenant, is_operator and is_admin. */
int auth_check(struct call *c, enum scope scope, struct fail *f) MUST_USE;
/* The two parts of it, for who brings his token elsewhere: the Host and the Origin; the token. */
int auth_check_place(struct call *c, struct fail *f) MUST_USE;
int auth_check_token(struct call *c, struct span text, enum scope scope, struct fail *f) MUST_USE;
/* The text of a new token: the prefix and 256 random bits, safe in a URL, a cookie and a shell. */
#define TOKEN_TEXT 64
int auth_token(const char *prefix, char out[TOKEN_TEXT]) MUST_USE;
/* One in hexadecimal digits, 224 bits: clients of E2B look at the form of theirs. */
#define TOKEN_E2B_PREFIX "e2b_"
int auth_token_hex(const char *prefix, char out[TOKEN_TEXT]) MUST_USE;
/* The hash under which a token is stored. */
void auth_hash(const char *token, uint8_t out[STORE_HASH_BYTES]);
