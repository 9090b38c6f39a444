/*
 * image-internal.h - what image.c and image_oci.c share.
 */
#pragma once

#include "tree/layer.h"
#include "wire/oci.h"

/* All layers of the layout that the body is; `hex` becomes the digest of its manifest,
 * `settings` what its config says of commands (wire/oci.h). */
int image_oci(struct layers *l, char hex[OCI_HEX], struct str *settings, struct err *e) MUST_USE;
/* The body of a call, for a decoder. */
int image_body(void *call, struct span *out, struct err *e);
