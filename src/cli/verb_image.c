/*
 * verb_image.c - images: import, ls, rm.
 */
#include "cli/verbs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/layout.h"
#include "cli/pack.h"
#include "cli/table.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (4u << 20)
#define TAR "application/x-tar"
#define LAYOUT "application/vnd.oci.image.layout.v1+tar"

struct image {
	struct verb_opts common;
	const char *ref;
	bool is_replace;
};

/* ---- import -------------------------------------------------------------------------- */

struct import {
	struct verb_call *call;
	const char *name, *path;
	bool is_oci;
};

static int tell(const struct image *x, json_t *made, struct err *e)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	if (x->common.is_json)
		return print_json(json_incref(made), e);
	str_addf(&out, "%s\n", text_of(made, "name"));
	return print_text(&out, e);
}

static void fill_path(const struct import *im, struct str *path)
{
	const struct image *x = im->call->opts;
	const char *texts[] = { im->name, x->ref ? x->ref : "" };

	client_path(path, x->ref ? "/v1/images/{}?ref={}" : "/v1/images/{}", texts);
	if (x->is_replace)
		str_add(path, x->ref ? "&replace=1" : "?replace=1");
}

/* The files of a folder that are needed; or what `fd` holds, as it is: the worker looks whether it
 * is packed. */
static int send_body(const struct import *im, int fd, bool is_folder, struct err *e)
{
	const struct image *x = im->call->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(arena_done) struct arena a = { 0 };
	AUTO(json_decrefp) json_t *made = NULL;
	struct pack_what what = { .path = im->path };

	fill_path(im, &path);
	struct client_ask ask = { .method = "PUT",
		                  .path = str_text(&path),
		                  .type = im->is_oci ? LAYOUT : TAR,
		                  .source = file_source,
		                  .arg = &fd };

	if (is_folder)
		what.names = layout_files(im->path, x->ref ? x->ref : "", &a, e);
	if (is_folder && !what.names)
		return -1;
	im->call->client.doing = "importing";
	int r = is_folder ? pack_send(&im->call->client, &ask, what, &made, e)
	                  : client_json(&im->call->client, &ask, &made, e);
	return r < 0 ? -1 : tell(x, made, e);
}

static int send_file(const struct import *im, struct err *e)
{
	bool is_stdin = strcmp(im->path, "-") == 0;
	AUTO(fd_close) int fd = is_stdin ? dup(STDIN_FILENO) : open(im->path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %s", im->path);
	if (S_ISDIR(st.st_mode) && !im->is_oci)
		return err_new(
		    e, ERR_INVALID,
		    "%s is a folder: use it as --image dir:%s, or as oci:%s when it is an "
		    "OCI layout",
		    im->path, im->path, im->path);
	return send_body(im, fd, S_ISDIR(st.st_mode), e);
}

/* A key may have an @ as well: what follows the last is a point when it looks like one. */
static bool is_point(const char *text)
{
	static const char *const begins[] = { "cp_", "sn_", "px_" };
	static const char *const words[] = { "base", "head", "origin" };

	for (size_t i = 0; i < COUNT(begins); i++)
		if (strncmp(text, begins[i], strlen(begins[i])) == 0)
			return true;
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

/* WS[@POINT] */
static int take(const struct import *im, const char *from, struct err *e)
{
	const struct image *x = im->call->opts;
	AUTO(freep) char *workspace = mem_strdup(from);
	AUTO(json_decrefp) json_t *made = NULL;
	char *at = strrchr(workspace, '@');

	if (x->ref)
		return err_new(e, ERR_INVALID, "--ref names an image of oci:PATH");
	if (at && is_point(at + 1))
		*at++ = '\0';
	else
		at = NULL;
	im->call->client.doing = "making the image";
	if (client_call(&im->call->client, "POST", "/v1/images",
	                json_pack("{ss,ss,ss?,sb}", "name", im->name, "workspace", workspace,
	                          "point", at, "replace", x->is_replace),
	                &made, e) < 0)
		return -1;
	return tell(x, made, e);
}

static int import(struct verb_call *c, struct err *e)
{
	const struct image *x = c->opts;
	const char *from = c->words.at[2];
	struct import im = { .call = c, .name = c->words.at[1], .path = from };

	if (strncmp(from, "ws:", 3) == 0)
		return take(&im, from + 3, e);
	im.is_oci = strncmp(from, "oci:", 4) == 0;
	im.path = im.is_oci ? from + 4 : from;
	if (x->ref && !im.is_oci)
		return err_new(e, ERR_INVALID, "--ref names an image of oci:PATH");
	return send_file(&im, e);
}

/* ---- ls, rm -------------------------------------------------------------------------- */

static int list(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "NAME", "SOURCE", "SIZE", "FILES",
		                             "AGE",  "DIGEST", NULL };
	const struct image *x = c->opts;
	AUTO(table_clear) struct table t = { 0 };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *image;
	size_t i;

	if (fetch_list(&c->client, "/v1/images", "images", &all, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_pack("{sO}", "images", all), e);
	table_init(&t, heads);
	json_array_foreach(all, i, image)
	{
		char files[32], digest[16];

		snprintf(files, sizeof files, "%lld", (long long)number_of(image, "files"));
		snprintf(digest, sizeof digest, "%.12s",
		         text_of(image, json_is_null(json_object_get(image, "digest")) ? "point"
		                                                                       : "digest"));
		table_cell(&t, text_of(image, "name"));
		table_cell(&t, text_of(image, "source"));
		table_cell(&t, brief_bytes((uint64_t)number_of(image, "bytes")).text);
		table_cell(&t, files);
		table_cell(&t, brief_age(number_of(image, "created_ms")).text);
		table_cell(&t, digest);
	}
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static int remove_images(struct verb_call *c, struct err *e)
{
	for (size_t i = 1; i < c->words.n; i++) {
		const char *texts[] = { c->words.at[i] };
		AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

		client_path(&path, "/v1/images/{}", texts);
		if (client_call(&c->client, "DELETE", str_text(&path), NULL, NULL, e) < 0)
			return err_wrap(e, "%s", c->words.at[i]);
	}
	return 0;
}

static int image_run(struct verb_call *c, struct err *e)
{
	static const struct {
		const char *name;
		size_t words_min, words_max;
		int (*run)(struct verb_call *c, struct err *e);
	} actions[] = { { "import", 3, 3, import },
		        { "ls", 1, 1, list },
		        { "rm", 2, SIZE_MAX, remove_images } };

	for (size_t i = 0; i < COUNT(actions); i++)
		if (strcmp(actions[i].name, c->words.at[0]) == 0 &&
		    c->words.n >= actions[i].words_min && c->words.n <= actions[i].words_max)
			return actions[i].run(c, e);
	return err_new(e, ERR_INVALID, "caisson image %s", c->verb->usage);
}

/* clang-format off */
static const struct flag image_flags[] = {
	{ '\0', FLAG_SWITCH, "replace", offsetof(struct image, is_replace), NULL, "import: an image of that name gives way, when the new one is whole", NULL },
	{ '\0', FLAG_TEXT, "ref",     offsetof(struct image, ref), "NAME", "import: which image of an OCI layout that has several", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_image = {
	.name = "image",
	.usage = "import NAME PATH|oci:PATH|ws:WS[@POINT] | ls | rm NAME...",
	.does = "root file systems by name, for --image NAME",
	.more =
	    "PATH is a tar of a root file system, plain or packed by gzip or zstd; - is standard "
	    "input. oci:PATH is an OCI layout, a folder or a tar of one. It is unpacked inside "
	    "walls, all of it or nothing; setuid bits, and attributes other than user., are "
	    "dropped. ws:WS is the root that the sandboxes of a workspace share with "
	    "--checkpoint all, as it is or was at a point.",
	.flags = image_flags,
	.n_flags = COUNT(image_flags),
	.words = "[import ls rm]",
	.opts_size = sizeof(struct image),
	.words_min = 1,
	.words_max = SIZE_MAX,
	.run = image_run
};
