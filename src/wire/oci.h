/*
 * oci.h - the documents of an OCI image layout: oci-layout, index.json, manifests, configs.
 *
 * A layout is a folder, or a tar of it: `index.json` names manifests, a manifest names a config and
 * layers, each by its SHA-256 and size, and each lies in blobs/sha256/. All of it is written by
 * strangers: what is not understood is refused, and whoever uses a blob holds it to its digest. Of
 * Docker's own media types those are known that say the same.
 */
#pragma once

#include "base/err.h"
#include "wire/span.h"

#define OCI_LAYERS_MAX 128        /* Docker's own ceiling is 127 */
#define OCI_JSON_MAX (4u << 20)   /* bytes of one document; registries take as much */
#define OCI_DEPTH_MAX 3           /* an index may name an index */
#define OCI_HEX 65                /* SHA-256 in hex, NUL-terminated */
#define OCI_PATH "blobs/sha256/"  /* where blobs lie in a layout */
#define OCI_REF_MAX 64            /* bytes of the name of an image in an index */
#define OCI_BLOB_MAX (1ull << 40) /* a size that nobody means is no size */

enum oci_media {
	OCI_INDEX,
	OCI_MANIFEST,
	OCI_CONFIG,
	OCI_TAR,
	OCI_TAR_GZIP,
	OCI_TAR_ZSTD,
	OCI_MEDIA_COUNT
};

struct oci_blob {
	enum oci_media media;
	char hex[OCI_HEX];
	uint64_t size;
};

struct oci_manifest {
	struct oci_blob config;
	struct oci_blob layers[OCI_LAYERS_MAX]; /* the lowest first */
	size_t n_layers;
};

#define OCI_SETTINGS_MAX (32u << 10)

struct oci_config {
	char diff_ids[OCI_LAYERS_MAX][OCI_HEX]; /* of the layers, unpacked; in the same order */
	size_t n;
	/* How a command is meant to begin, JSON: {entrypoint,cmd,env,cwd,user}, what there is of
	 * it; "" when there is nothing. */
	char settings[OCI_SETTINGS_MAX];
};

struct oci_want {
	const char
	    *ref; /* org.opencontainers.image.ref.name; "": whatever there is, if it is one */
	const char *arch; /* as Go calls it: oci_arch() */
};

const char *oci_arch(void); /* this machine's */

int oci_layout_read(struct span json, struct err *e) MUST_USE;
/* The one image that is wanted: a manifest, or another index. */
int oci_index_read(struct span json, struct oci_want want, struct oci_blob *out,
                   struct err *e) MUST_USE;
int oci_manifest_read(struct span json, struct oci_manifest *out, struct err *e) MUST_USE;
/* Linux, this architecture, and one id for each of `n_layers`. */
int oci_config_read(struct span json, const char *arch, size_t n_layers, struct oci_config *out,
                    struct err *e) MUST_USE;

/* "blobs/sha256/HEX": the digits, or NULL. */
const char *oci_blob_name(const char *path);
