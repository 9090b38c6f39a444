/*
 * images.h - the rows of images: a name of a tenant's, and the sealed tree that it stands for
 * (store/trees.h). A name that is given to another tree leaves the old one to those who still use
 * it: what no row names and no sandbox has is removed (store_image_loose).
 */
#pragma once

#include "store/store.h"

#define STORE_SETTINGS_MAX (32u << 10) /* OCI_SETTINGS_MAX */
#define STORE_PASSWD_MAX (64u << 10)   /* TREE_PASSWD_MAX of the worker that reads it */

struct image_row {
	const char *tenant;
	const char *node; /* NULL at insert: this store's */
	const char *name; /* one for each tenant */
	int64_t tree;
	const char *source; /* "tar", "oci" */
	const char *digest; /* SHA-256 of the archive, or of the manifest */
	int64_t bytes, files, layers, dropped;
	const char *settings; /* how its commands are meant to begin (wire/oci.h), JSON; or NULL */
	const char *passwd;   /* its /etc/passwd, for those who name a user; or NULL */
	int64_t created_ms;
};

struct image_list {
	struct image_row *rows;
	size_t n;
};

/* STORE_EXISTS when the name is taken and may not be replaced. */
int store_image_put(struct store *s, const struct image_row *row, bool is_replace,
                    struct store_call call, struct err *e);
/* That tree only: who was replaced meanwhile is another one. STORE_NOT_FOUND. */
int store_image_drop(struct store *s, const char *tenant, const char *name, int64_t tree,
                     struct store_call call, struct err *e);

int store_image_get(struct store *s, const char *tenant, const char *name, struct arena *a,
                    struct image_row *out, struct err *e);
/* All of a tenant, by name. */
int store_image_list(struct store *s, const char *tenant, struct arena *a, struct image_list *out,
                     struct err *e);
/* Trees of images that are ready and have no name. */
struct number_list {
	int64_t *at;
	size_t n;
};
int store_image_loose(struct store *s, struct arena *a, struct number_list *out, struct err *e);
/* What all images of a tenant take. */
int store_image_bytes(struct store *s, const char *tenant, int64_t *out, struct err *e);
