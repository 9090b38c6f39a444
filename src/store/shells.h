/*
 * shells.h - named shells of a sandbox: what a restarted one gets back.
 */
#pragma once

#include "store/store.h"

struct shell_row {
	int64_t seq;
	const char *sandbox, *name, *tenant;
	const char *node;    /* NULL at put: this store's */
	const char *process; /* whose command started the one that lives, or lived last; or NULL */
	const char *cwd;
	const char *env; /* JSON object, the caller's; NULL is {} */
	int64_t restarts;
};

struct shell_list {
	struct shell_row *rows;
	size_t n;
};

int store_shell_put(struct store *s, const struct shell_row *row, struct store_call call,
                    struct err *e); /* makes or replaces it */
int store_shell_drop(struct store *s, const char *sandbox, const char *name, struct store_call call,
                     struct err *e); /* name NULL: all of them */
int store_shell_list(struct store *s, const char *tenant, const char *sandbox, struct arena *a,
                     struct shell_list *out, struct err *e);
