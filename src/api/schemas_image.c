/*
 * schemas_image.c - the objects of images.
 */
#include "api/schemas.h"

/* clang-format off */
const struct member image_members[] = {
	{ "name",       NEEDED, "text",      "for `image` of a spec" },
	{ "source",     NEEDED, "=tar|=oci|=snapshot", "what it was made from" },
	{ "digest",     NEEDED, "hash|null", "of the archive as it was sent, or of the manifest" },
	{ "point",      NEEDED, "text|null", "of a workspace, that it shows: a snapshot" },
	{ "bytes",      NEEDED, "count",     "of its files, unpacked" },
	{ "files",      NEEDED, "count",     "and links, without folders" },
	{ "layers",     NEEDED, "count",     "that lay over each other; it is one tree now" },
	{ "dropped",    NEEDED, "count",     "setuid and setgid bits, and attributes other than `user.`, that were not taken" },
	{ "created_ms", NEEDED, "time",      "when it was imported" },
};
const struct member image_ask[] = {
	{ "name",      NEEDED, "text",      "for `image` of a spec" },
	{ "workspace", NEEDED, "text",      "id or key; it has a root of its own" },
	{ "point",     0,      "text|null", "of its history: an id, a process, `base`, `head`; now unless given" },
	{ "replace",   0,      "bool|null", "an image of that name gives way" },
};
const struct member image_list_members[] = {
	{ "images", NEEDED, "[Image]", "by name" },
};
/* clang-format on */
