/*
 * git.h - where a repository is, and names in it: strict, since they end up on a command line.
 *
 * A URL is https://HOST[:PORT]/PATH, file:///PATH or an absolute path; nothing else can be asked
 * for: no user or password in it, no other transport, no helper. HOST is a name.
 */
#pragma once

#include "base/err.h"
#include "wire/gate.h"

#define GIT_URL_SIZE 2049
#define GIT_REF_MAX 200 /* bytes of a name; git itself takes what a file name takes */
#define GIT_SHA_SIZE 65

struct git_url {
	bool is_folder;
	char text[GIT_URL_SIZE]; /* canonical; of a folder: its path */
	char host[GATE_NAME_SIZE];
	uint16_t port;
};
int git_url_read(const char *text, struct git_url *out, struct err *e) MUST_USE;
/* A key (core/id.h) for it, from the last two parts of the path: "owner-app". */
void git_url_key(const struct git_url *u, char *out, size_t size);

/* As git-check-ref-format(1) has it, and shorter: a branch, a tag, refs/... of any kind. */
bool git_ref_is(const char *name);
/* "refs/heads/" and so on; one * at most, as a whole last part or in the middle. */
bool git_pattern_is(const char *pattern);
bool git_sha_is(const char *text, size_t n); /* 40 or 64 digits, lower case */
/* The name or address of an author: text without what would end it. */
bool git_person_is(const char *text);
