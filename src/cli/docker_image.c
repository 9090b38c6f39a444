/*
 * docker_image.c - images by Docker's names, and what is known of the daemon: images, pull,
 * version, info.
 *
 * A name here has no registry in front: `docker.io/library/python:3.12` is `python:3.12`. Without a
 * tag it is what has none, or `latest`.
 */
#include <sys/utsname.h>

#include "cli/docker-internal.h"

#define LATEST ":latest"

/* ---- names --------------------------------------------------------------------------- */

static const char *without_registry(const char *name)
{
	static const char *const fronts[] = { "docker.io/", "index.docker.io/", "library/" };

	for (size_t i = 0; i < COUNT(fronts); i++)
		if (strncmp(name, fronts[i], strlen(fronts[i])) == 0)
			name += strlen(fronts[i]);
	return name;
}

/* The name and its tag; "latest" when it has none. */
static void split(const char *name, char base[NAME_TEXT_MAX], char tag[NAME_TEXT_MAX])
{
	const char *slash = strrchr(name, '/');
	const char *colon = strchr(slash ? slash : name, ':');

	snprintf(base, NAME_TEXT_MAX, "%.*s", (int)(colon ? colon - name : (long)strlen(name)),
	         name);
	snprintf(tag, NAME_TEXT_MAX, "%s", colon ? colon + 1 : "latest");
}

static bool is_same(const char *a, const char *b)
{
	char base[2][NAME_TEXT_MAX], tag[2][NAME_TEXT_MAX];

	split(a, base[0], tag[0]);
	split(b, base[1], tag[1]);
	return strcmp(base[0], base[1]) == 0 && strcmp(tag[0], tag[1]) == 0;
}

static int get_images(struct client *c, json_t **out, struct err *e)
{
	AUTO(json_decrefp) json_t *answer = NULL;

	if (client_call(c, "GET", "/v1/images", NULL, &answer, e) < 0)
		return -1;
	*out = json_incref(json_object_get(answer, "images"));
	return 0;
}

static const json_t *find_in(const json_t *images, const char *name)
{
	const char *plain = without_registry(name);
	json_t *image;
	size_t i;

	json_array_foreach(images, i, image)
	{
		if (strcmp(text_of(image, "name"), name) == 0)
			return image;
	}
	json_array_foreach(images, i, image)
	{
		if (is_same(text_of(image, "name"), plain))
			return image;
	}
	return NULL;
}

static int no_image(const char *name, struct err *e)
{
	return err_new(
	    e, ERR_NOT_FOUND,
	    "No such image: %s%s. Nothing is pulled here; import it: caisson image import "
	    "%s FILE.tar",
	    name, strchr(name, ':') ? "" : LATEST, without_registry(name));
}

void docker_image_done(struct docker_image *i)
{
	json_decref(i->settings);
	i->settings = NULL;
}

int docker_image_find(struct client *c, const char *name, struct docker_image *out, struct err *e)
{
	AUTO(json_decrefp) json_t *images = NULL;

	*out = (struct docker_image){ .settings = NULL };
	if (snprintf(out->name, sizeof out->name, "%s", name) >= (int)sizeof out->name)
		return err_new(e, ERR_INVALID, "the name of the image is too long");
	if (strcmp(name, "host") == 0 || strncmp(name, "dir:", 4) == 0)
		return 0;
	if (get_images(c, &images, e) < 0)
		return -1;
	const json_t *image = find_in(images, name);

	if (!image)
		return no_image(name, e);
	snprintf(out->name, sizeof out->name, "%s", text_of(image, "name"));
	out->settings = json_incref(json_object_get(image, "settings"));
	return 0;
}

/* ---- images -------------------------------------------------------------------------- */

struct images {
	struct verb_opts common;
	bool is_quiet, is_whole, is_all, has_digests;
	const char *format;
	struct flag_list filters;
};

/* Docker's ids are digests; what was never packed has none, and its name stands for it. */
static void image_id(const json_t *image, bool is_whole, char out[DOCKER_ID_SIZE + 8])
{
	const char *digest = text_of(image, "digest");
	const char *colon = strchr(digest, ':');
	char hex[DOCKER_ID_SIZE] = "";
	const char *name = text_of(image, "name");

	for (size_t i = 0; !*digest && i < DOCKER_ID_SIZE / 2 && name[i]; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)name[i]);
	const char *id = *digest ? (colon ? colon + 1 : digest) : hex;

	snprintf(out, DOCKER_ID_SIZE + 8, "%s%.*s", is_whole ? "sha256:" : "",
	         is_whole ? DOCKER_ID_SIZE : DOCKER_SHORT, id);
}

static void size_text(int64_t bytes, char out[32])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double n = (double)bytes;
	size_t i = 0;

	for (; n >= 1000 && i + 1 < COUNT(units); i++)
		n /= 1000;
	snprintf(out, 32, "%.3g%s", n, units[i]);
}

static json_t *image_row(const json_t *image, bool is_whole)
{
	char base[NAME_TEXT_MAX], tag[NAME_TEXT_MAX], id[DOCKER_ID_SIZE + 8], size[32];
	AUTO(str_done) struct str age = { .max = NAME_TEXT_MAX }, made = { .max = NAME_TEXT_MAX };

	split(text_of(image, "name"), base, tag);
	image_id(image, is_whole, id);
	size_text(number_of(image, "bytes"), size);
	docker_ago(number_of(image, "created_ms"), &age);
	str_add(&age, " ago");
	docker_time(number_of(image, "created_ms"), &made);
	return json_pack("{ss,ss,ss,ss,ss,ss,ss,ss}", "Repository", base, "Tag", tag, "ID", id,
	                 "CreatedSince", str_text(&age), "CreatedAt", str_text(&made), "Size", size,
	                 "Containers", "N/A", "Digest",
	                 *text_of(image, "digest") ? text_of(image, "digest") : "<none>");
}

static bool is_wanted(const json_t *image, const struct verb_call *c)
{
	const char *name = text_of(image, "name");
	char base[NAME_TEXT_MAX], tag[NAME_TEXT_MAX];

	if (c->words.n == 0)
		return true;
	split(name, base, tag);
	const char *plain = without_registry(c->words.at[0]);

	return is_same(name, plain) || (!strchr(plain, ':') && strcmp(base, plain) == 0);
}

static int images_run(struct verb_call *c, struct err *e)
{
	const struct images *x = c->opts;
	AUTO(json_decrefp) json_t *images = NULL, *rows = json_array();
	AUTO(json_decrefp)
	json_t *heads =
	    json_pack("{ss,ss,ss,ss,ss,ss,ss,ss}", "Repository", "REPOSITORY", "Tag", "TAG", "ID",
	              "IMAGE ID", "CreatedSince", "CREATED", "CreatedAt", "CREATED AT", "Size",
	              "SIZE", "Containers", "CONTAINERS", "Digest", "DIGEST");
	struct docker_view view = {
		.format = x->is_quiet ? "{{.ID}}" : x->format,
		.otherwise =
		    x->has_digests
			? "table {{.Repository}}\t{{.Tag}}\t{{.Digest}}\t{{.ID}}\t{{.CreatedSince}}"
			  "\t{{.Size}}"
			: "table {{.Repository}}\t{{.Tag}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}",
		.heads = heads
	};
	json_t *image;
	size_t i;

	if (x->filters.len > 0)
		return err_new(e, ERR_INVALID, "--filter is refused: name the image");
	if (get_images(&c->client, &images, e) < 0)
		return -1;
	json_array_foreach(images, i, image)
	{
		if (is_wanted(image, c))
			json_array_append_new(rows, image_row(image, x->is_whole));
	}
	return docker_view_print(&view, rows, e);
}

/* Docker's words for it. */
static json_t *config_of(const json_t *settings)
{
	static const char *const names[][2] = { { "entrypoint", "Entrypoint" },
		                                { "cmd", "Cmd" },
		                                { "cwd", "WorkingDir" },
		                                { "user", "User" } };
	json_t *o = json_object(), *env = json_array(), *v;
	const char *k;

	for (size_t i = 0; i < COUNT(names); i++)
		if (json_object_get(settings, names[i][0]))
			json_object_set(o, names[i][1], json_object_get(settings, names[i][0]));
	json_object_foreach(json_object_get(settings, "env"), k, v)
	{
		AUTO(str_done) struct str pair = { .max = ARGV_BYTES_MAX };

		str_addf(&pair, "%s=%s", k, json_string_value(v));
		json_array_append_new(env, json_string(str_text(&pair)));
	}
	json_object_set_new(o, "Env", env);
	return o;
}

int docker_image_object(struct client *c, const char *name, json_t *list, struct err *e)
{
	AUTO(json_decrefp) json_t *images = NULL;
	AUTO(str_done) struct str made = { .max = NAME_TEXT_MAX };
	char id[DOCKER_ID_SIZE + 8], base[NAME_TEXT_MAX], tag[NAME_TEXT_MAX];

	if (get_images(c, &images, e) < 0)
		return -1;
	const json_t *image = find_in(images, name);

	if (!image)
		return no_image(name, e);
	image_id(image, true, id);
	split(text_of(image, "name"), base, tag);
	str_addf(&made, "%s:%s", base, tag);
	json_t *o = json_pack("{ss,s[s],s[],ss,sI,ss,s{}}", "Id", id, "RepoTags", str_text(&made),
	                      "RepoDigests", "Os", "linux", "Size",
	                      (json_int_t)number_of(image, "bytes"), "Architecture", "", "Config");
	const json_t *settings = json_object_get(image, "settings");

	json_object_set_new(o, "Config", config_of(settings));

	str_clear(&made);
	docker_time(number_of(image, "created_ms"), &made);
	json_object_set_new(o, "Created", json_string(str_text(&made)));
	json_array_append_new(list, o);
	return 0;
}

/* clang-format off */
static const struct flag images_flags[] = {
	{ 'q',  FLAG_SWITCH, "quiet",    offsetof(struct images, is_quiet), NULL, "only their ids", NULL },
	{ 'a',  FLAG_SWITCH, "all",      offsetof(struct images, is_all), NULL, "there are no others", NULL },
	{ '\0', FLAG_SWITCH, "no-trunc", offsetof(struct images, is_whole), NULL, "whole ids", NULL },
	{ '\0', FLAG_SWITCH, "digests",  offsetof(struct images, has_digests), NULL, "with digests", NULL },
	{ '\0', FLAG_TEXT,   "format",   offsetof(struct images, format), "TEMPLATE", "json, table TEMPLATE, or TEMPLATE", NULL },
	{ 'f',  FLAG_LIST,   "filter",   offsetof(struct images, filters), "NAME=VALUE", "refused: name the image", NULL },
};
/* clang-format on */

const struct verb docker_images_cmd = { .name = "images",
	                                .usage = "[OPTIONS] [REPOSITORY[:TAG]]",
	                                .does = "List images",
	                                .flags = images_flags,
	                                .n_flags = COUNT(images_flags),
	                                .opts_size = sizeof(struct images),
	                                .words_max = 1,
	                                .other = docker_word,
	                                .run = images_run };

/* ---- pull ---------------------------------------------------------------------------- */

struct pull {
	struct verb_opts common;
	bool is_quiet;
	const char *platform;
};

static int pull_run(struct verb_call *c, struct err *e)
{
	const struct pull *x = c->opts;
	AUTO(docker_image_done) struct docker_image image = { 0 };
	char base[NAME_TEXT_MAX], tag[NAME_TEXT_MAX];
	AUTO(str_done) struct str out = { .max = DOCKER_PATH_MAX };

	if (docker_image_find(&c->client, c->words.at[0], &image, e) < 0)
		return -1;
	split(image.name, base, tag);
	if (!x->is_quiet)
		str_addf(&out,
		         "%s: it was imported, nothing is pulled\nStatus: Image is up to date for "
		         "%s:%s\n",
		         tag, base, tag);
	str_addf(&out, "%s:%s\n", base, tag);
	return print_text(&out, e);
}

/* clang-format off */
static const struct flag pull_flags[] = {
	{ 'q',  FLAG_SWITCH, "quiet",    offsetof(struct pull, is_quiet), NULL, "only its name", NULL },
	{ '\0', FLAG_TEXT,   "platform", offsetof(struct pull, platform), "OS/ARCH", "that of this host: others could not be imported", NULL },
};
/* clang-format on */

const struct verb docker_pull_cmd = { .name = "pull",
	                              .usage = "[OPTIONS] NAME[:TAG]",
	                              .does = "Find an image that was imported",
	                              .flags = pull_flags,
	                              .n_flags = COUNT(pull_flags),
	                              .opts_size = sizeof(struct pull),
	                              .words_min = 1,
	                              .words_max = 1,
	                              .other = docker_word,
	                              .run = pull_run };

/* ---- version, info ------------------------------------------------------------------- */

struct about {
	struct verb_opts common;
	const char *format;
};

static int print_about(const struct about *x, json_t *o, const char *otherwise, struct err *e)
{
	AUTO(json_decrefp) json_t *list = json_pack("[o]", o);

	return docker_print_objects(
	    list,
	    x->format && *x->format ? (strcmp(x->format, "json") == 0 ? "{{json .}}" : x->format)
				    : otherwise,
	    e);
}

static int version_run(struct verb_call *c, struct err *e)
{
	static const char text[] =
	    "Client: caisson\n Version:           {{.Client.Version}}\n"
	    " OS/Arch:           {{.Client.Os}}/{{.Client.Arch}}\n\n"
	    "Server: caisson\n Engine:\n  Version:          {{.Server.Version}}";
	struct utsname u = { 0 };

	if (client_call(&c->client, "GET", "/v1/health", NULL, NULL, e) < 0)
		return -1;
	uname(&u);
	json_t *one = json_pack("{ss,ss,ss,ss,ss}", "Version", CAISSON_VERSION, "ApiVersion",
	                        "1.47", "APIVersion", "1.47", "Os", "linux", "Arch", u.machine);
	return print_about(c->opts, json_pack("{so,sO}", "Client", one, "Server", one), text, e);
}

static int info_run(struct verb_call *c, struct err *e)
{
	static const char text[] =
	    "Server:\n Containers: {{.Containers}}\n  Running: {{.ContainersRunning}}\n  Paused: "
	    "{{.ContainersPaused}}\n  Stopped: {{.ContainersStopped}}\n Images: {{.Images}}\n "
	    "Server "
	    "Version: {{.ServerVersion}}\n Storage Driver: {{.Driver}}\n Operating System: "
	    "{{.OperatingSystem}}\n OSType: {{.OSType}}\n Architecture: {{.Architecture}}";
	AUTO(box_list_done) struct box_list list = { 0 };
	AUTO(json_decrefp) json_t *images = NULL;
	int count[BOX_STATES] = { 0 };
	struct utsname u = { 0 };

	if (box_all(&c->client, &list, e) < 0 || get_images(&c->client, &images, e) < 0)
		return -1;
	uname(&u);
	for (size_t i = 0; i < list.len; i++)
		count[box_state(&list.at[i])]++;
	json_t *o = json_pack(
	    "{si,si,si,si,sI,ss,ss,ss,ss,ss}", "Containers", (int)list.len, "ContainersRunning",
	    count[BOX_RUNNING], "ContainersPaused", count[BOX_PAUSED], "ContainersStopped",
	    (int)list.len - count[BOX_RUNNING] - count[BOX_PAUSED], "Images",
	    (json_int_t)json_array_size(images), "ServerVersion", CAISSON_VERSION, "Driver",
	    "overlay2", "OperatingSystem", "caisson", "OSType", "linux", "Architecture", u.machine);

	return print_about(c->opts, o, text, e);
}

/* clang-format off */
static const struct flag about_flags[] = {
	{ 'f', FLAG_TEXT, "format", offsetof(struct about, format), "TEMPLATE", "json, or TEMPLATE", NULL },
};
/* clang-format on */

#define ABOUT(word, what, how)                                                                     \
	const struct verb docker_##word##_cmd = { .name = #word,                                   \
		                                  .usage = "[OPTIONS]",                            \
		                                  .does = (what),                                  \
		                                  .flags = about_flags,                            \
		                                  .n_flags = COUNT(about_flags),                   \
		                                  .opts_size = sizeof(struct about),               \
		                                  .other = docker_word,                            \
		                                  .run = (how) }

ABOUT(version, "Show the version information", version_run);
ABOUT(info, "Display system-wide information", info_run);
