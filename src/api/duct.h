/*
 * duct.h - a connection into a sandbox (core/dial.h) for one request: bytes both ways, and no more
 * memory than one read for each, however slow either side is.
 *
 * What the client sends is given to duct_send(); when the application does not take it, the client
 * is paused until it does. What the application sends comes by got(); when that says DUCT_WAIT,
 * nothing is read until duct_room().
 */
#pragma once

#include "api/server.h"
#include "core/dial.h"

struct duct;

enum duct_next { DUCT_MORE, DUCT_WAIT, DUCT_GONE /* the duct is freed */ };

/* Each may end the duct, and free its owner. */
struct duct_ops {
	void (*opened)(struct duct *d);
	void (*failed)(struct duct *d, const struct fail *f);
	enum duct_next (*got)(struct duct *d, const char *bytes, size_t n);
	/* The application has closed its side; not clean: it is gone, or silent for too long. */
	void (*ended)(struct duct *d, bool is_clean);
};

struct duct {
	struct watch watch; /* first */
	const struct duct_ops *ops;
	struct dial *dial;
	struct request *r;
	struct timer idle;
	uint64_t idle_ms;
	struct str out; /* unsent, from out_from on */
	size_t out_from;
	uint32_t events; /* that are watched; 0: none */
	bool is_open, is_full, is_eof, is_told;
	bool is_shut_due, is_deaf; /* deaf: the application takes no more */
};

/* The request is paused until `opened`, and its owner calls duct_send() then. -1: never opened. */
int duct_start(struct duct *d, struct sbx *s, uint16_t port, struct fail *f) MUST_USE;
void duct_send(struct duct *d, const void *bytes, size_t n);
void duct_shut(struct duct *d); /* the client sends no more */
void duct_room(struct duct *d);
void duct_end(struct duct *d); /* may be called twice */
