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
	{ "settings",   NEEDED, "ImageSettings|null", "how its commands are meant to begin, of an OCI layout; only `caisson docker` begins them so" },
};
const struct member image_settings[] = {
	{ "entrypoint", 0, "[text]", "what goes before every command" },
	{ "cmd",        0, "[text]", "what is run when no command is given" },
	{ "env",        0, "{text}", "variables" },
	{ "cwd",        0, "text",   "the working folder" },
	{ "user",       0, "text",   "who runs it" },
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
