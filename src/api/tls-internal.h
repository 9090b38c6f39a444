/*
 * tls-internal.h - which certificates a server has; the connections themselves are io/tls.h's.
 */
#pragma once

#include "base/err.h"
#include "io/tls.h"

struct tls_context;

/* Adds one to the list, at its front. */
int tls_context_add(struct tls_context **list, const char *cert, const char *key,
                    struct err *e) MUST_USE;
void tls_contexts_free(struct tls_context *list);

struct tls *tls_new(struct tls_context *x, int fd); /* `fd` is borrowed */
