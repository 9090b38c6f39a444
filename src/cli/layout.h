/*
 * layout.h - which files of an OCI layout one image needs (wire/oci.h). Whoever unpacks them holds
 * them to their digests; here nothing is trusted but that they are worth sending.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* NULL-terminated, in the arena, in the order in which they are read. `ref` "": the only image. */
const char *const *layout_files(const char *path, const char *ref, struct arena *a,
                                struct err *e) MUST_USE;
