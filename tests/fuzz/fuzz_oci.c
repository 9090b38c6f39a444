#include "wire/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* What is read can be used as a name in a layout. */
static void expect_blob(const struct oci_blob *b)
{
	char path[128];

	snprintf(path, sizeof path, OCI_PATH "%s", b->hex);
	expect(oci_blob_name(path) && b->size <= OCI_BLOB_MAX && b->media < OCI_MEDIA_COUNT);
}

/* The first byte says which document the others are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct oci_manifest manifest;
	static struct oci_config config;
	struct oci_blob blob;
	struct err e = { 0 };

	if (size == 0)
		return 0;
	struct span json = { (const char *)data + 1, size - 1 };
	struct oci_want want = { data[0] & 4 ? "tag" : "", "amd64" };
	int r = -1;

	switch (data[0] & 3) {
	case 0:
		r = oci_index_read(json, want, &blob, &e);
		if (r == 0)
			expect_blob(&blob);
		break;
	case 1:
		r = oci_manifest_read(json, &manifest, &e);
		for (size_t i = 0; r == 0 && i < manifest.n_layers; i++)
			expect_blob(&manifest.layers[i]);
		break;
	case 2:
		r = oci_config_read(json, "amd64", 2, &config, &e);
		expect(r < 0 || config.n == 2);
		break;
	default:
		r = oci_layout_read(json, &e);
	}
	expect(r == 0 || (r < 0 && e.kind != ERR_NONE && e.msg[0]));
	for (const char *p = e.msg; *p; p++)
		expect((unsigned char)*p >= 0x20);
	return 0;
}
