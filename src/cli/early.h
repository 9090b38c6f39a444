/*
 * early.h - `caisson run` asks the daemon before the C library has started (early.c).
 */
#pragma once

#include <stddef.h>

/* The connection over which POST /v1/run was sent for the words of this program, -1: none was; and
 * what has come over it since. Hidden: reached without a table of addresses. */
struct early_sent {
	int fd;
	size_t from, len; /* in `in` */
	char in[8192];
};
extern struct early_sent early_sent __attribute__((visibility("hidden")));

/* In front of the C library's own start. */
void early_main(const long *stack);
