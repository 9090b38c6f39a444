#include "cli/layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "wire/oci.h"

#define NAMES_MAX (OCI_LAYERS_MAX + OCI_DEPTH_MAX + 4)

struct layout {
	int dir_fd;
	struct arena *arena;
	const char **names;
	size_t n;
};

/* One that was named before is sent once: layers may be the same. */
static void add(struct layout *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->names[i], name) == 0)
			return;
	l->names[l->n++] = arena_strdup(l->arena, name);
}

static int read_document(struct layout *l, const char *name, struct str *out, struct err *e)
{
	AUTO(fd_close) int fd = openat(l->dir_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char buf[16 << 10];
	ssize_t n;

	if (fd < 0)
		return err_sys(e, errno, "open %s", name);
	str_clear(out);
	while ((n = read(fd, buf, sizeof buf)) > 0 && !out->overflow)
		str_addn(out, buf, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read %s", name);
	if (out->overflow)
		return err_new(e, ERR_LIMIT, "%s has more than %u bytes", name, OCI_JSON_MAX);
	add(l, name);
	return 0;
}

static int read_blob(struct layout *l, const struct oci_blob *blob, struct str *out, struct err *e)
{
	char name[sizeof OCI_PATH + OCI_HEX];

	snprintf(name, sizeof name, OCI_PATH "%s", blob->hex);
	return read_document(l, name, out, e);
}

static struct span span_str(const struct str *s)
{
	return (struct span){ str_text(s), s->len };
}

static int find_manifest(struct layout *l, const char *ref, struct str *document, struct err *e)
{
	struct oci_want want = { .ref = ref, .arch = oci_arch() };
	struct oci_blob blob;

	if (read_document(l, "index.json", document, e) < 0)
		return -1;
	for (int depth = 0; depth < OCI_DEPTH_MAX; depth++) {
		if (oci_index_read(span_str(document), want, &blob, e) < 0 ||
		    read_blob(l, &blob, document, e) < 0)
			return -1;
		if (blob.media == OCI_MANIFEST)
			return 0;
		want.ref = "";
	}
	return err_new(e, ERR_INVALID, "index: deeper than %d", OCI_DEPTH_MAX);
}

static void add_blob(struct layout *l, const struct oci_blob *blob)
{
	char name[sizeof OCI_PATH + OCI_HEX];

	snprintf(name, sizeof name, OCI_PATH "%s", blob->hex);
	add(l, name);
}

const char *const *layout_files(const char *path, const char *ref, struct arena *a, struct err *e)
{
	static struct oci_manifest manifest; /* large */
	AUTO(str_done) struct str document = { .max = OCI_JSON_MAX };
	AUTO(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct layout l = { .dir_fd = dir,
		            .arena = a,
		            .names = arena_alloc(a, NAMES_MAX * sizeof(char *)) };

	if (dir < 0) {
		err_sys(e, errno, "open %s", path);
		return NULL;
	}
	if (read_document(&l, "oci-layout", &document, e) < 0 ||
	    find_manifest(&l, ref, &document, e) < 0 ||
	    oci_manifest_read(span_str(&document), &manifest, e) < 0) {
		err_wrap(e, "%s", path);
		return NULL;
	}
	add_blob(&l, &manifest.config);
	for (size_t i = 0; i < manifest.n_layers; i++)
		add_blob(&l, &manifest.layers[i]);
	l.names[l.n] = NULL;
	return l.names;
}
