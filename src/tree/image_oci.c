/*
 * image_oci.c - an OCI layout, which comes as a tar in any order.
 *
 * Its blobs are put aside in files without a name, and held to the digests that they are called by;
 * only when all that the manifest names is there and true, the first layer is unpacked. A layer is
 * held to its second digest as well, the one of its unpacked bytes.
 */
#include <archive.h>
#include <archive_entry.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/image-internal.h"
#include "tree/limits.h"
#include "tree/sys.h"
#include "tree/tarname.h"
#include "wire/hash.h"

#define PIECE (64u << 10)

struct stored {
	char hex[OCI_HEX];
	uint64_t size;
	int fd;
};

struct layout {
	struct layers *l;
	struct archive *archive;
	struct decode decode;
	VEC(struct stored) blobs;
	struct str version, index; /* the two documents with a name */
	struct oci_manifest manifest;
	struct oci_config config;
	struct err *e;
};

static void layout_done(struct layout *o)
{
	archive_read_free(o->archive);
	decode_done(&o->decode);
	for (size_t i = 0; i < o->blobs.len; i++)
		fd_close(&o->blobs.at[i].fd);
	vec_done(&o->blobs);
	str_done(&o->version);
	str_done(&o->index);
}

/* What strangers' documents say is wrong with them: the caller's input. */
static int bad(struct err *e)
{
	char text[sizeof e->msg];

	snprintf(text, sizeof text, "%s", e->msg);
	return fail(e, e->kind == ERR_LIMIT ? TREE_TOO_LARGE : TREE_INVALID, "%s", text);
}

/* ---- the body is put aside ------------------------------------------------------------ */

static la_ssize_t get(struct archive *archive, void *data, const void **bytes)
{
	struct layout *o = data;
	struct span piece = { "", 0 };
	int r = decode_next(&o->decode, &piece, o->e);

	*bytes = piece.at;
	if (r >= 0)
		return r > 0 ? (la_ssize_t)piece.len : 0;
	archive_set_error(archive, EIO, "it ends early");
	return -1;
}

static int archive_fails(struct layout *o)
{
	if (o->e->kind != ERR_NONE)
		return -1;
	return fail(o->e, TREE_INVALID, "the archive: %s", archive_error_string(o->archive));
}

/* A file of the new tree that nobody ever finds there. */
static int nameless(struct layout *o)
{
	char name[TEMP_NAME];

	temp_name(name);
	int fd = os_openat(o->l->dest.root_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_unlinkat(o->l->dest.root_fd, name);
	if (r >= 0)
		return fd;
	fd_close(&fd);
	return err_sys(o->e, -r, "put a blob aside");
}

static const struct stored *find(const struct layout *o, const char *hex)
{
	for (size_t i = 0; i < o->blobs.len; i++)
		if (strcmp(o->blobs.at[i].hex, hex) == 0)
			return &o->blobs.at[i];
	return NULL;
}

/* Its bytes go on; `take` may fail. */
static int each_piece(struct layout *o, int (*take)(struct layout *o, void *arg, struct span piece),
                      void *arg)
{
	static char buf[PIECE];

	for (;;) {
		la_ssize_t n = archive_read_data(o->archive, buf, sizeof buf);

		if (n < 0)
			return archive_fails(o);
		if (n == 0)
			return 0;
		if (take(o, arg, (struct span){ buf, (size_t)n }) < 0 ||
		    call_check(o->l->call, o->e) < 0)
			return -1;
	}
}

struct keeping {
	struct stored *blob;
	struct hash hash;
};

static int keep_piece(struct layout *o, void *arg, struct span piece)
{
	struct keeping *k = arg;

	if (layers_count(o->l, piece.len, o->e) < 0)
		return -1;
	int r = os_write_all(k->blob->fd, piece.at, piece.len);
	hash_add(&k->hash, piece);
	k->blob->size += piece.len;
	return r < 0 ? err_sys(o->e, -r, "put a blob aside") : 0;
}

static int keep_blob(struct layout *o, const char *hex)
{
	struct stored blob = { .fd = -1 };
	struct keeping k = { .blob = &blob };
	char is[OCI_HEX];

	if (find(o, hex))
		return fail(o->e, TREE_INVALID, "blob %.12s: twice", hex);
	if (o->blobs.len >= TREE_BLOBS_MAX)
		return fail(o->e, TREE_TOO_LARGE, "more than %d blobs", TREE_BLOBS_MAX);
	memcpy(blob.hex, hex, OCI_HEX);
	blob.fd = nameless(o);
	if (blob.fd < 0)
		return -1;
	vec_push(&o->blobs, blob);
	k.blob = &o->blobs.at[o->blobs.len - 1];
	hash_init(&k.hash);
	if (each_piece(o, keep_piece, &k) < 0)
		return -1;
	hash_text(&k.hash, is);
	return strcmp(is, hex) == 0
	           ? 0
	           : fail(o->e, TREE_INVALID, "blob %.12s: its digest is not the one it has", hex);
}

static int keep_text(struct layout *o, void *arg, struct span piece)
{
	struct str *s = arg;

	str_addn(s, piece.at, piece.len);
	return s->overflow
	           ? fail(o->e, TREE_TOO_LARGE, "a document of more than %u bytes", OCI_JSON_MAX)
	           : 0;
}

/* What else there is belongs to other programs, and is skipped. */
static int take_entry(struct layout *o, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	char path[PATH_TEXT_MAX];
	bool is_top;

	if (++o->l->entries > TREE_ARCHIVE_ENTRIES_MAX)
		return fail(o->e, TREE_TOO_LARGE, "more than %d entries", TREE_ARCHIVE_ENTRIES_MAX);
	if (!name || (!tarname_clean(name, path, &is_top) && !is_top))
		return fail(o->e, TREE_INVALID, "\"%.200s\": a name that is not taken",
		            name ? name : "");
	if (is_top || archive_entry_filetype(entry) == AE_IFDIR)
		return 0;
	if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
		return fail(o->e, TREE_INVALID, "%s: not a file", path);
	struct str *document = strcmp(path, "oci-layout") == 0   ? &o->version
	                       : strcmp(path, "index.json") == 0 ? &o->index
	                                                         : NULL;
	if (document && document->len > 0)
		return fail(o->e, TREE_INVALID, "%s: twice", path);
	if (document)
		return each_piece(o, keep_text, document);
	const char *hex = oci_blob_name(path);
	return hex ? keep_blob(o, hex) : 0;
}

static int put_aside(struct layout *o)
{
	struct archive_entry *entry;
	struct span rest;
	int r;

	decode_open(&o->decode, DECODE_AUTO, image_body, o->l->call);
	archive_read_support_format_tar(o->archive);
	if (archive_read_open(o->archive, o, NULL, get, NULL) != ARCHIVE_OK)
		return archive_fails(o);
	while ((r = archive_read_next_header(o->archive, &entry)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN) {
		if (take_entry(o, entry) < 0 || call_check(o->l->call, o->e) < 0)
			return -1;
	}
	if (r != ARCHIVE_EOF)
		return archive_fails(o);
	while ((r = decode_next(&o->decode, &rest, o->e)) > 0)
		;
	return r;
}

/* ---- what it says --------------------------------------------------------------------- */

static const struct stored *need(struct layout *o, const struct oci_blob *blob)
{
	const struct stored *s = find(o, blob->hex);

	if (!s)
		fail(o->e, TREE_INVALID, "blob %.12s: it is not there", blob->hex);
	else if (s->size != blob->size)
		fail(o->e, TREE_INVALID, "blob %.12s: %llu bytes, and not %llu", blob->hex,
		     (unsigned long long)s->size, (unsigned long long)blob->size);
	return s && s->size == blob->size ? s : NULL;
}

static int read_document(struct layout *o, const struct oci_blob *blob, struct str *out)
{
	const struct stored *s = need(o, blob);

	if (!s)
		return -1;
	if (s->size > OCI_JSON_MAX)
		return fail(o->e, TREE_TOO_LARGE, "a document of more than %u bytes", OCI_JSON_MAX);
	AUTO(freep) char *bytes = mem_alloc((size_t)s->size + 1);
	int n = os_pread(s->fd, bytes, (size_t)s->size, 0);
	if (n < 0)
		return err_sys(o->e, -n, "read a blob");
	str_clear(out);
	str_addn(out, bytes, (size_t)n);
	return 0;
}

static struct span span_str(const struct str *s)
{
	return (struct span){ str_text(s), s->len };
}

/* From index.json to a manifest, by way of other indexes. */
static int find_manifest(struct layout *o, struct str *document, struct oci_blob *out)
{
	struct oci_want want = { .ref = o->l->call->path, .arch = oci_arch() };

	str_addn(document, str_text(&o->index), o->index.len);
	for (int depth = 0; depth < OCI_DEPTH_MAX; depth++) {
		if (oci_index_read(span_str(document), want, out, o->e) < 0)
			return bad(o->e);
		if (read_document(o, out, document) < 0)
			return -1;
		if (out->media == OCI_MANIFEST)
			return 0;
		want.ref = "";
	}
	return fail(o->e, TREE_INVALID, "index: deeper than %d", OCI_DEPTH_MAX);
}

/* Everything that will be used is there, before any of it is. */
static int read_all(struct layout *o, char hex[OCI_HEX])
{
	AUTO(str_done) struct str document = { .max = OCI_JSON_MAX + 1 };
	struct oci_blob manifest;

	if (o->version.len == 0 || o->index.len == 0)
		return fail(o->e, TREE_INVALID, "no OCI layout: %s is not there",
		            o->version.len == 0 ? "oci-layout" : "index.json");
	if (oci_layout_read(span_str(&o->version), o->e) < 0)
		return bad(o->e);
	if (find_manifest(o, &document, &manifest) < 0)
		return -1;
	memcpy(hex, manifest.hex, OCI_HEX);
	if (oci_manifest_read(span_str(&document), &o->manifest, o->e) < 0)
		return bad(o->e);
	for (size_t i = 0; i < o->manifest.n_layers; i++)
		if (!need(o, &o->manifest.layers[i]))
			return -1;
	if (read_document(o, &o->manifest.config, &document) < 0)
		return -1;
	if (oci_config_read(span_str(&document), oci_arch(), o->manifest.n_layers, &o->config,
	                    o->e) < 0)
		return bad(o->e);
	return 0;
}

/* ---- its layers ----------------------------------------------------------------------- */

static const enum decode_kind decodes[] = {
	[OCI_TAR] = DECODE_PLAIN,
	[OCI_TAR_GZIP] = DECODE_GZIP,
	[OCI_TAR_ZSTD] = DECODE_ZSTD,
};

struct reading {
	int fd;
	off_t at;
	char bytes[PIECE];
};

static int read_blob(void *arg, struct span *out, struct err *e)
{
	struct reading *r = arg;
	int n = os_pread(r->fd, r->bytes, sizeof r->bytes, r->at);

	if (n < 0)
		return err_sys(e, -n, "read a blob");
	r->at += n;
	*out = (struct span){ r->bytes, (size_t)n };
	return n > 0;
}

static int apply(struct layout *o, size_t i)
{
	const struct oci_blob *blob = &o->manifest.layers[i];
	char is[OCI_HEX];
	struct reading from = { .fd = find(o, blob->hex)->fd };
	const struct layer_ask ask = { .source = read_blob,
		                       .arg = &from,
		                       .kind = decodes[blob->media],
		                       .has_whiteouts = true,
		                       .hex = is };

	if (layers_apply(o->l, &ask, o->e) < 0)
		return err_wrap(o->e, "layer %zu", i + 1);
	if (strcmp(is, o->config.diff_ids[i]) != 0)
		return fail(o->e, TREE_INVALID,
		            "layer %zu: unpacked it is not what its config says", i + 1);
	return 0;
}

int image_oci(struct layers *l, char hex[OCI_HEX], struct str *settings, struct err *e)
{
	static struct layout o; /* a manifest is large, and there is one */
	int r;

	o = (struct layout){ .l = l,
		             .archive = archive_read_new(),
		             .version = { .max = OCI_JSON_MAX },
		             .index = { .max = OCI_JSON_MAX },
		             .e = e };
	if (!o.archive)
		abort();
	r = put_aside(&o);
	if (r == 0)
		r = read_all(&o, hex);
	l->dest.bytes = 0; /* of what stays; what was put aside had the same bound */
	for (size_t i = 0; r == 0 && i < o.manifest.n_layers; i++)
		r = apply(&o, i);
	if (r == 0)
		str_add(settings, o.config.settings);
	layout_done(&o);
	return r;
}
