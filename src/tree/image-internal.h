/*
 * image-internal.h - what image.c and image_oci.c share.
 */
#pragma once

#include "tree/layer.h"
#include "wire/oci.h"

/* All layers of the layout that the body is; `hex` becomes the digest of its manifest. */
int image_oci(struct layers *l, char hex[OCI_HEX], struct err *e) MUST_USE;
/* The body of a call, for a decoder. */
int image_body(void *call, struct span *out, struct err *e);
