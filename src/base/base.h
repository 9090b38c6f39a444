/*
 * base.h - the words that every file of ours starts from.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AUTO(done) __attribute__((cleanup(done), unused)) /* clang: the cleanup is no use of it */
#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* For AUTO(freep) char *p = NULL. */
static inline void freep(void *p)
{
	void **at = p;

	free(*at);
	*at = NULL;
}

/* Heap failure ends the process (docs/decisions/0004-abort-on-oom.md): sizes from outside have
 * ceilings. */
void *mem_alloc(size_t size) MUST_USE;
void *mem_grow(void *p, size_t size) MUST_USE;
char *mem_strdup(const char *s) MUST_USE;

#include "base/banned.h"
