#include "wire/oci.h"

#include <jansson.h>

#include "base/str.h"

#define REF_NAME "org.opencontainers.image.ref.name"
#define SHOWN 80 /* bytes of a stranger's text in a sentence of ours */

static inline void json_drop(json_t **j)
{
	json_decref(*j);
	*j = NULL;
}

/* ---- words --------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
	const char *name;
	enum oci_media media;
} medias[] = {
	{ "application/vnd.oci.image.index.v1+json",                        OCI_INDEX },
	{ "application/vnd.docker.distribution.manifest.list.v2+json",      OCI_INDEX },
	{ "application/vnd.oci.image.manifest.v1+json",                     OCI_MANIFEST },
	{ "application/vnd.docker.distribution.manifest.v2+json",           OCI_MANIFEST },
	{ "application/vnd.oci.image.config.v1+json",                       OCI_CONFIG },
	{ "application/vnd.docker.container.image.v1+json",                 OCI_CONFIG },
	{ "application/vnd.oci.image.layer.v1.tar",                         OCI_TAR },
	{ "application/vnd.docker.image.rootfs.diff.tar",                   OCI_TAR },
	{ "application/vnd.oci.image.layer.v1.tar+gzip",                    OCI_TAR_GZIP },
	{ "application/vnd.docker.image.rootfs.diff.tar.gzip",              OCI_TAR_GZIP },
	{ "application/vnd.oci.image.layer.v1.tar+zstd",                    OCI_TAR_ZSTD },
	{ "application/vnd.docker.image.rootfs.diff.tar.zstd",              OCI_TAR_ZSTD },
};
/* clang-format on */

const char *oci_arch(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#else
#error "which architecture is this?"
#endif
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* For a sentence: bounded, and without what a terminal would obey. */
static void add_shown(struct str *s, const char *text)
{
	for (size_t i = 0; text[i] && i < SHOWN; i++)
		str_addn(s, (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? "?" : text + i, 1);
}

static int refuse_word(const char *what, const char *word, struct err *e)
{
	AUTO(str_done) struct str shown = { .max = SHOWN + 1 };

	add_shown(&shown, word);
	return err_new(e, ERR_INVALID, "%s \"%s\" is not known", what, str_text(&shown));
}

static int read_media(const char *name, enum oci_media *out, struct err *e)
{
	for (size_t i = 0; i < COUNT(medias); i++) {
		if (strcmp(medias[i].name, name) == 0) {
			*out = medias[i].media;
			return 0;
		}
	}
	return refuse_word("media type", name, e);
}

static bool is_hex(const char *text)
{
	size_t n = strspn(text, "0123456789abcdef");

	return n == OCI_HEX - 1 && !text[n];
}

static int read_digest(const char *text, char out[OCI_HEX], struct err *e)
{
	if (strncmp(text, "sha256:", 7) != 0 || !is_hex(text + 7))
		return refuse_word("digest", text, e);
	memcpy(out, text + 7, OCI_HEX);
	return 0;
}

const char *oci_blob_name(const char *path)
{
	size_t n = strlen(OCI_PATH);

	return strncmp(path, OCI_PATH, n) == 0 && is_hex(path + n) ? path + n : NULL;
}

/* ---- documents ----------------------------------------------------------------------- */

/* An object; a key that comes twice would be read in two ways. */
static json_t *load(struct span text, struct err *e)
{
	json_error_t why;

	if (text.len > OCI_JSON_MAX) {
		err_new(e, ERR_LIMIT, "more than %u bytes", OCI_JSON_MAX);
		return NULL;
	}
	json_t *j = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, &why);

	if (json_is_object(j))
		return j;
	if (j)
		err_new(e, ERR_INVALID, "no object");
	else
		err_new(e, ERR_INVALID, "no JSON, line %d", why.line);
	json_decref(j);
	return NULL;
}

static int check_version(const json_t *document, struct err *e)
{
	if (json_integer_value(json_object_get(document, "schemaVersion")) != 2)
		return err_new(e, ERR_INVALID, "schemaVersion is not 2");
	return 0;
}

/* A document may repeat what it is; then it has to be that. */
static int check_own_media(const json_t *document, enum oci_media wanted, struct err *e)
{
	const char *name = text_of(document, "mediaType");
	enum oci_media media = wanted;

	if (*name && read_media(name, &media, e) < 0)
		return -1;
	return media == wanted ? 0 : refuse_word("here the media type", name, e);
}

static int read_blob(const json_t *descriptor, struct oci_blob *out, struct err *e)
{
	json_int_t size = json_integer_value(json_object_get(descriptor, "size"));

	if (!json_is_object(descriptor) || !json_is_integer(json_object_get(descriptor, "size")))
		return err_new(e, ERR_INVALID, "no descriptor with a size");
	if (size < 0 || (uint64_t)size > OCI_BLOB_MAX)
		return err_new(e, ERR_INVALID, "a size of %lld bytes", (long long)size);
	out->size = (uint64_t)size;
	if (read_media(text_of(descriptor, "mediaType"), &out->media, e) < 0)
		return -1;
	return read_digest(text_of(descriptor, "digest"), out->hex, e);
}

int oci_layout_read(struct span json, struct err *e)
{
	AUTO(json_drop) json_t *j = load(json, e);

	if (!j)
		return err_wrap(e, "oci-layout");
	if (strcmp(text_of(j, "imageLayoutVersion"), "1.0.0") != 0)
		return refuse_word("oci-layout: version", text_of(j, "imageLayoutVersion"), e);
	return 0;
}

/* ---- index --------------------------------------------------------------------------- */

static const char *ref_of(const json_t *descriptor)
{
	return text_of(json_object_get(descriptor, "annotations"), REF_NAME);
}

/* One without a platform may be for any; its config tells. */
static bool is_for(const json_t *descriptor, struct oci_want want)
{
	const json_t *platform = json_object_get(descriptor, "platform");

	if (want.ref[0] && strcmp(ref_of(descriptor), want.ref) != 0)
		return false;
	return !platform || (strcmp(text_of(platform, "os"), "linux") == 0 &&
	                     strcmp(text_of(platform, "architecture"), want.arch) == 0);
}

static void add_names(struct str *s, const json_t *manifests)
{
	const json_t *descriptor;
	size_t i;

	json_array_foreach(manifests, i, descriptor)
	{
		const json_t *platform = json_object_get(descriptor, "platform");

		str_add(s, i ? ", " : "");
		add_shown(s, ref_of(descriptor));
		if (!platform)
			continue;
		str_add(s, ref_of(descriptor)[0] ? " for " : "");
		add_shown(s, text_of(platform, "os"));
		str_add(s, "/");
		add_shown(s, text_of(platform, "architecture"));
	}
}

static int refuse_choice(const json_t *manifests, struct oci_want want, bool is_none, struct err *e)
{
	AUTO(str_done) struct str names = { .max = 400 };
	AUTO(str_done) struct str ref = { .max = SHOWN + 1 };

	add_names(&names, manifests);
	add_shown(&ref, want.ref);
	if (is_none)
		return err_new(e, ERR_INVALID, "no image%s%s for linux/%s; there are: %s",
		               want.ref[0] ? " " : "", str_text(&ref), want.arch, str_text(&names));
	return err_new(e, ERR_INVALID, "more than one image; name one of: %s", str_text(&names));
}

int oci_index_read(struct span json, struct oci_want want, struct oci_blob *out, struct err *e)
{
	AUTO(json_drop) json_t *j = load(json, e);
	const json_t *manifests = json_object_get(j, "manifests"), *descriptor;
	struct oci_blob blob, found = { 0 };
	size_t i;

	if (!j || check_version(j, e) < 0 || check_own_media(j, OCI_INDEX, e) < 0)
		return err_wrap(e, "index");
	json_array_foreach(manifests, i, descriptor)
	{
		if (!is_for(descriptor, want))
			continue;
		if (read_blob(descriptor, &blob, e) < 0)
			return err_wrap(e, "index");
		if (blob.media != OCI_MANIFEST && blob.media != OCI_INDEX)
			return err_new(e, ERR_INVALID, "index: it names what is no image");
		if (found.hex[0] && strcmp(found.hex, blob.hex) != 0)
			return refuse_choice(manifests, want, false, e);
		found = blob;
	}
	if (!found.hex[0])
		return refuse_choice(manifests, want, true, e);
	*out = found;
	return 0;
}

/* ---- manifest and config ------------------------------------------------------------- */

static int read_layers(const json_t *layers, struct oci_manifest *m, struct err *e)
{
	const json_t *descriptor;
	size_t i;

	if (json_array_size(layers) == 0 || json_array_size(layers) > OCI_LAYERS_MAX)
		return err_new(e, ERR_INVALID, "%zu layers; 1 to %d can be read",
		               json_array_size(layers), OCI_LAYERS_MAX);
	json_array_foreach(layers, i, descriptor)
	{
		struct oci_blob *layer = &m->layers[i];

		if (read_blob(descriptor, layer, e) < 0)
			return err_wrap(e, "layer %zu", i + 1);
		if (layer->media < OCI_TAR)
			return refuse_word("layer: media type", text_of(descriptor, "mediaType"),
			                   e);
		m->n_layers++;
	}
	return 0;
}

int oci_manifest_read(struct span json, struct oci_manifest *out, struct err *e)
{
	AUTO(json_drop) json_t *j = load(json, e);

	out->n_layers = 0;
	if (!j || check_version(j, e) < 0 || check_own_media(j, OCI_MANIFEST, e) < 0)
		return err_wrap(e, "manifest");
	if (read_blob(json_object_get(j, "config"), &out->config, e) < 0)
		return err_wrap(e, "manifest: config");
	if (out->config.media != OCI_CONFIG)
		return err_new(e, ERR_INVALID, "manifest: its config is not that of an image");
	return read_layers(json_object_get(j, "layers"), out, e) < 0 ? err_wrap(e, "manifest") : 0;
}

/* Takes the list when it is one of texts; false: it is something else. */
static bool set_words(json_t *into, const char *key, json_t *list)
{
	json_t *word;
	size_t i;

	if (!list || json_is_null(list))
		return true;
	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, word)
	{
		if (!json_is_string(word))
			return false;
	}
	return json_array_size(list) == 0 || json_object_set(into, key, list) == 0;
}

/* A list of NAME=VALUE. */
static bool set_env(json_t *into, const json_t *list)
{
	json_t *env = json_object(), *pair;
	bool is_good = !list || json_is_null(list) || json_is_array(list);
	size_t i;

	json_array_foreach(list, i, pair)
	{
		const char *text = json_string_value(pair),
			   *equals = text ? strchr(text, '=') : NULL;

		is_good &= equals && equals > text &&
		           json_object_setn_new(env, text, (size_t)(equals - text),
		                                json_string(equals + 1)) == 0;
	}
	if (json_object_size(env) > 0)
		json_object_set(into, "env", env);
	json_decref(env);
	return is_good;
}

static int read_settings(const json_t *config, char out[OCI_SETTINGS_MAX], struct err *e)
{
	AUTO(json_drop) json_t *o = json_object();
	AUTO(freep) char *text = NULL;

	out[0] = '\0';
	if (!set_words(o, "entrypoint", json_object_get(config, "Entrypoint")) ||
	    !set_words(o, "cmd", json_object_get(config, "Cmd")) ||
	    !set_env(o, json_object_get(config, "Env")))
		return err_new(e, ERR_INVALID,
		               "config: Entrypoint, Cmd and Env are lists of texts");
	if (*text_of(config, "WorkingDir"))
		json_object_set_new(o, "cwd", json_string(text_of(config, "WorkingDir")));
	if (*text_of(config, "User"))
		json_object_set_new(o, "user", json_string(text_of(config, "User")));
	if (json_object_size(o) == 0)
		return 0;
	text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	if (!text || strlen(text) >= OCI_SETTINGS_MAX)
		return err_new(e, ERR_LIMIT, "config: its settings are more than %u bytes",
		               OCI_SETTINGS_MAX);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

int oci_config_read(struct span json, const char *arch, size_t n_layers, struct oci_config *out,
                    struct err *e)
{
	AUTO(json_drop) json_t *j = load(json, e);
	const json_t *rootfs = json_object_get(j, "rootfs"), *id;
	const json_t *ids = json_object_get(rootfs, "diff_ids");
	size_t i;

	if (!j)
		return err_wrap(e, "config");
	if (strcmp(text_of(j, "os"), "linux") != 0)
		return refuse_word("config: os", text_of(j, "os"), e);
	if (strcmp(text_of(j, "architecture"), arch) != 0)
		return err_new(e, ERR_INVALID, "config: it is not for linux/%s", arch);
	if (strcmp(text_of(rootfs, "type"), "layers") != 0 || json_array_size(ids) != n_layers ||
	    n_layers > OCI_LAYERS_MAX)
		return err_new(e, ERR_INVALID, "config: it knows %zu layers, the manifest has %zu",
		               json_array_size(ids), n_layers);
	out->n = n_layers;
	json_array_foreach(ids, i, id)
	{
		const char *text = json_string_value(id);

		if (read_digest(text ? text : "", out->diff_ids[i], e) < 0)
			return err_wrap(e, "config");
	}
	return read_settings(json_object_get(j, "config"), out->settings, e);
}
