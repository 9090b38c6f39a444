/*
 * schemas_image.c - the objects of images.
 */
#include "api/schemas.h"

/* clang-format off */
const struct member image_members[] = {
	{ "name",       NEEDED, "text",      "for `image` of a spec" },
	{ "source",     NEEDED, "=tar|=oci", "what it was made from" },
	{ "digest",     NEEDED, "hash",      "of the archive as it was sent, or of the manifest" },
	{ "bytes",      NEEDED, "count",     "of its files, unpacked" },
	{ "files",      NEEDED, "count",     "and links, without folders" },
	{ "layers",     NEEDED, "count",     "that lay over each other; it is one tree now" },
	{ "dropped",    NEEDED, "count",     "setuid and setgid bits, and attributes other than `user.`, that were not taken" },
	{ "created_ms", NEEDED, "time",      "when it was imported" },
};
const struct member image_list_members[] = {
	{ "images", NEEDED, "[Image]", "by name" },
};
/* clang-format on */
