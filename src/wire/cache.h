/*
 * cache.h - what the gate and the package cache say to each other.
 *
 * For a connection of a client to a host that is cached, a child of the gate makes a pair of stream
 * sockets and sends one end to the cache: one packet of a SOCK_SEQPACKET socket, struct
 * cache_hello, with two descriptors, that end and the rules document (wire/gate.h) by which the
 * sandbox lives. On the stream the gate speaks HTTP/1.1 as it would with the server itself: GET and
 * HEAD, nothing that says who asks. Every answer has the field CACHE_FIELD, which no client gets.
 */
#pragma once

#include "wire/gate.h"
#include "wire/span.h"

#define CACHE_VERSION 1
#define CACHE_FIELD "Caisson-Cache"

enum { CACHE_STREAM, CACHE_RULES, CACHE_FDS };

struct cache_hello {
	uint32_t version;
	uint16_t port; /* of the server, as the client sees it */
	uint8_t is_tls, zero;
	char name[GATE_NAME_SIZE];
};

/* A packet of `n` bytes with `n_fds` descriptors; its name is one. */
bool cache_hello_check(const struct cache_hello *h, size_t n, size_t n_fds);

/* What the cache did. */
enum cache_word {
	CACHE_NONE,        /* nothing: it was not asked */
	CACHE_HIT,         /* served from it, and nobody else was asked */
	CACHE_REVALIDATED, /* served from it, the server says that it is still so */
	CACHE_MISS,        /* fetched, and kept if it is what it should be */
	CACHE_PASS,        /* not for it: the gate asks the server itself */
	CACHE_ABSENT,      /* offline, and it is not there */
	CACHE_WORDS
};

const char *cache_word_name(enum cache_word w); /* "hit", ...; CACHE_NONE: "" */
enum cache_word cache_word_read(struct span text);
