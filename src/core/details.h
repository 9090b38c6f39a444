/*
 * details.h - what an end record says beyond numbers, as JSON: children, violations, programs.
 */
#pragma once

#include <jansson.h>

#include "wire/channel.h"
#include "wire/gate.h"
#include "wire/keep.h"
#include "wire/tree.h"

/* {"children":[],"violations":[],"execs":{}}; to be freed. `denials` (or NULL) are violations too.
 */
char *details_of(const struct channel_end *end, const json_t *denials);
/* Adds a denied connection or lookup to a list that begins as NULL; the same again is counted. */
#define DENIALS_MAX 32
void details_deny(json_t **list, const struct gate_record *r, bool is_certain);
/* The same for a program that was not executed, since a rule of `gate.commands` held it. */
struct details_refusal {
	const char *what, *rule, *reason;
	const char *approval; /* "": none */
};
void details_refuse(json_t **list, const struct details_refusal *r);
/* Names, arguments and paths may be any bytes: what is not text is replaced. */
json_t *details_text(const char *text);
/* The arguments as a JSON list, to be freed; of more than ARGV_TEXT_MAX bytes the beginning, and
 * the cut is visible: then the hash of all of them, a NUL behind each, is given too. */
#define ARGV_TEXT_MAX 4096
char *details_argv(const char *const *argv);
void details_argv_hash(const char *const *argv, char out[TREE_HASH_TEXT]);
/* stdout, stderr and encoding of what was kept of both; how many bytes are not in there. Text when
 * both are UTF-8, else both in base64: one `encoding` speaks for both. */
uint64_t details_streams(json_t *o, const struct keep *kept);
