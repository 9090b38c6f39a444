/*
 * docker_cp.c - cp between the caller and a container, and archives on standard input and output.
 *
 * Docker's rules about folders (into one that exists; `dir/.` is what is in it) are those of
 * `caisson cp`, which does the work. What Docker refuses and we would do is refused here.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/docker-internal.h"
#include "cli/pack.h"
#include "cli/verbs.h"
#include "wire/later.h"

struct cp {
	struct verb_opts common;
	bool is_archive, is_following, is_quiet;
};

/* One side of it: CONTAINER:PATH, a path here, or "-". */
struct side {
	struct box box; /* of a container's */
	char path[PATH_TEXT_MAX];
	bool is_inside, is_stream;
};

static void side_done(struct side *s)
{
	box_done(&s->box);
}

/* Inside, a path without a slash in front begins at the root. */
static int take_side(struct client *c, const char *word, struct side *out, struct err *e)
{
	const char *colon = strchr(word, ':');
	char name[NAME_TEXT_MAX];

	out->is_stream = strcmp(word, "-") == 0;
	out->is_inside = colon && colon > word && word[0] != '/' && word[0] != '.' &&
	                 colon - word < (long)sizeof name;
	const char *path = out->is_inside ? colon + 1 : word;

	if (snprintf(out->path, sizeof out->path, "%s%s", out->is_inside && *path != '/' ? "/" : "",
	             path) >= (int)sizeof out->path)
		return err_new(e, ERR_INVALID, "the path is too long");
	if (!out->is_inside)
		return 0;
	snprintf(name, sizeof name, "%.*s", (int)(colon - word), word);
	return box_find(c, name, &out->box, e);
}

static int stat_at(struct client *c, const struct side *s, const char *path, json_t **out,
                   struct err *e)
{
	const char *texts[] = { box_sandbox(&s->box), path };
	AUTO(str_done) struct str at = { .max = DOCKER_PATH_MAX };

	client_path(&at, "/v1/sandboxes/{}/files/{}?stat=1", texts);
	if (client_call(c, "GET", str_text(&at), NULL, out, e) == 0)
		return 0;
	if (e->kind != ERR_NOT_FOUND && e->kind != ERR_INVALID) /* it is no folder */
		return -1;
	*e = (struct err){ 0 };
	*out = json_object();
	return 0;
}

/* What the API says of a file inside; type "" when there is none. A link to a folder is one. */
static int stat_inside(struct client *c, const struct side *s, const char *path, json_t **out,
                       struct err *e)
{
	char below[PATH_TEXT_MAX + 2];
	json_t *behind = NULL;

	if (stat_at(c, s, path, out, e) < 0)
		return -1;
	if (strcmp(text_of(*out, "type"), "symlink") != 0)
		return 0;
	snprintf(below, sizeof below, "%s/.", path);
	if (stat_at(c, s, below, &behind, e) < 0)
		return -1;
	json_t *unused = *text_of(behind, "type") ? *out : behind;

	*out = unused == behind ? *out : behind;
	json_decref(unused);
	return 0;
}

static mode_t mode_of(const json_t *stat)
{
	return later_mode((mode_t)strtoul(text_of(stat, "mode"), NULL, 8));
}

static bool is_folder(const json_t *stat)
{
	return strcmp(text_of(stat, "type"), "directory") == 0;
}

static int no_file(const struct side *s, const char *path, struct err *e)
{
	return err_new(e, ERR_NOT_FOUND, "Could not find the file %s in container %s", path,
	               box_name(&s->box));
}

/* ---- streams ------------------------------------------------------------------------- */

static int unpack_inside(struct client *c, const struct side *to, struct err *e)
{
	const char *texts[] = { box_sandbox(&to->box), to->path };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	AUTO(json_decrefp) json_t *stat = NULL;
	int fd = STDIN_FILENO;

	if (stat_inside(c, to, to->path, &stat, e) < 0)
		return -1;
	if (!is_folder(stat))
		return *text_of(stat, "type")
		           ? err_new(e, ERR_NOT_FOUND, "extraction point is not a directory")
		           : no_file(to, to->path, e);
	client_path(&path, "/v1/sandboxes/{}/archive?path={}", texts);
	const struct client_ask ask = { .method = "PUT",
		                        .path = str_text(&path),
		                        .type = "application/x-tar",
		                        .source = file_source,
		                        .arg = &fd };
	return client_json(c, &ask, NULL, e);
}

struct stream {
	struct client *client;
	struct client_answer answer;
	struct archive *in, *out;
	const char *base; /* the name that everything lies below */
	struct err *e;
};

static la_ssize_t feed(struct archive *a, void *arg, const void **bytes)
{
	struct stream *s = arg;
	struct span piece = { "", 0 };
	int r = client_read(s->client, &s->answer, &piece, s->e);

	if (r < 0)
		archive_set_error(a, EIO, "the daemon's answer ends early");
	*bytes = piece.at;
	return r > 0 ? (la_ssize_t)piece.len : r;
}

static int library_fails(struct stream *s, struct archive *a)
{
	if (s->e->kind != ERR_NONE)
		return -1;
	return err_new(s->e, ERR_INTERNAL, "the archive: %s", archive_error_string(a));
}

/* "./a/b" below its new name. */
static void rename_to(char out[PATH_TEXT_MAX], const char *base, const char *name)
{
	while (strncmp(name, "./", 2) == 0)
		name += 2;
	if (strcmp(name, ".") == 0)
		name = "";
	snprintf(out, PATH_TEXT_MAX, "%s%s%s", base, *base && *name ? "/" : "",
	         *base || *name ? name : ".");
}

static int copy_entry(struct stream *s, struct archive_entry *entry)
{
	static char buf[64u << 10];
	char name[PATH_TEXT_MAX];
	const char *was = archive_entry_pathname(entry);
	la_ssize_t n;

	if (!was || archive_entry_hardlink(entry)) /* the daemon makes neither */
		return err_new(s->e, ERR_INTERNAL, "the daemon's archive is malformed");
	rename_to(name, s->base, was);
	archive_entry_set_pathname(entry, name);
	archive_entry_set_perm(entry, later_mode(archive_entry_perm(entry)));
	/* A warning says that a name is not ASCII: it is then stored as bytes. */
	if (archive_write_header(s->out, entry) < ARCHIVE_WARN)
		return library_fails(s, s->out);
	while ((n = archive_read_data(s->in, buf, sizeof buf)) > 0)
		if (archive_write_data(s->out, buf, (size_t)n) != n)
			return library_fails(s, s->out);
	return n < 0 ? library_fails(s, s->in) : 0;
}

/* The folder itself, which an archive of what is in it does not name. */
static int put_folder(struct stream *s, const json_t *stat)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_set_pathname(entry, *s->base ? s->base : ".");
	archive_entry_set_filetype(entry, AE_IFDIR);
	archive_entry_set_perm(entry, mode_of(stat));
	archive_entry_set_mtime(entry, (time_t)(number_of(stat, "mtime_ms") / 1000), 0);
	int r = archive_write_header(s->out, entry);

	archive_entry_free(entry);
	return r < ARCHIVE_WARN ? library_fails(s, s->out) : 0;
}

static int copy_archive(struct stream *s, const json_t *stat)
{
	struct archive_entry *entry;
	int r;

	if (put_folder(s, stat) < 0)
		return -1;

	archive_read_support_format_tar(s->in);
	if (archive_read_open(s->in, s, NULL, feed, NULL) != ARCHIVE_OK)
		return library_fails(s, s->in);
	while ((r = archive_read_next_header(s->in, &entry)) == ARCHIVE_OK || r == ARCHIVE_WARN)
		if (copy_entry(s, entry) < 0)
			return -1;
	return r == ARCHIVE_EOF ? 0 : library_fails(s, s->in);
}

static int copy_file(struct stream *s, const json_t *stat)
{
	struct archive_entry *entry = archive_entry_new();
	struct span piece;
	int r;

	if (s->answer.length > INT64_MAX) {
		archive_entry_free(entry);
		return err_new(s->e, ERR_INTERNAL, "the daemon does not say how long the file is");
	}
	archive_entry_set_pathname(entry, s->base);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, mode_of(stat));
	archive_entry_set_size(entry, (la_int64_t)s->answer.length);
	archive_entry_set_mtime(entry, (time_t)(number_of(stat, "mtime_ms") / 1000), 0);
	r = archive_write_header(s->out, entry) < ARCHIVE_WARN ? library_fails(s, s->out) : 1;
	archive_entry_free(entry);
	while (r > 0 && (r = client_read(s->client, &s->answer, &piece, s->e)) > 0)
		if (archive_write_data(s->out, piece.at, piece.len) != (la_ssize_t)piece.len)
			r = library_fails(s, s->out);
	return r;
}

/* The last part of a path; "" for the root and for `dir/.`. */
static const char *base_of(const char *path, char out[NAME_TEXT_MAX])
{
	size_t n = strlen(path), from;

	while (n > 1 && path[n - 1] == '/')
		n--;
	for (from = n; from > 0 && path[from - 1] != '/'; from--)
		;
	snprintf(out, NAME_TEXT_MAX, "%.*s", (int)(n - from), path + from);
	return strcmp(out, ".") == 0 || strcmp(out, "/") == 0 ? "" : out;
}

static int pack_outside(struct client *c, const struct side *from, struct err *e)
{
	const char *texts[] = { box_sandbox(&from->box), from->path };
	char name[NAME_TEXT_MAX];
	struct stream s = { .client = c, .base = base_of(from->path, name), .e = e };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	AUTO(json_decrefp) json_t *stat = NULL;

	if (stat_inside(c, from, from->path, &stat, e) < 0)
		return -1;
	if (!*text_of(stat, "type"))
		return no_file(from, from->path, e);
	client_path(&path,
	            is_folder(stat) ? "/v1/sandboxes/{}/archive?path={}"
	                            : "/v1/sandboxes/{}/files/{}",
	            texts);
	const struct client_ask ask = { .method = "GET", .path = str_text(&path) };

	if (client_begin(c, &ask, &s.answer, e) < 0 || client_check(c, &s.answer, e) < 0)
		return -1;
	s.in = archive_read_new();
	s.out = archive_write_new();
	archive_write_set_format_pax_restricted(s.out);
	archive_write_set_bytes_per_block(s.out, 0);
	int r = archive_write_open_fd(s.out, STDOUT_FILENO) == ARCHIVE_OK
	            ? 0
	            : library_fails(&s, s.out);
	if (r == 0)
		r = is_folder(stat) ? copy_archive(&s, stat) : copy_file(&s, stat);
	if (r < 0)
		(void)archive_write_fail(s.out); /* or it would look whole to whoever reads it */
	else if (archive_write_close(s.out) != ARCHIVE_OK)
		r = library_fails(&s, s.out);
	archive_read_free(s.in);
	archive_write_free(s.out);
	return r;
}

/* ---- files and folders --------------------------------------------------------------- */

/* Where it goes must be there: Docker makes one name, not the way to it. A folder gets a slash at
 * its end, so that it is one also behind a link. */
static int check_target(struct client *c, struct side *to, bool is_from_folder, struct err *e)
{
	AUTO(json_decrefp) json_t *stat = NULL, *above = NULL;
	size_t n = strlen(to->path);
	char parent[PATH_TEXT_MAX];

	if (stat_inside(c, to, to->path, &stat, e) < 0)
		return -1;
	const char *type = text_of(stat, "type");

	if (is_folder(stat) && to->path[n - 1] != '/' && n + 1 < sizeof to->path)
		memcpy(to->path + n, "/", 2);
	if (is_folder(stat))
		return 0;
	if (*type && (is_from_folder || to->path[n - 1] == '/'))
		return err_new(e, ERR_INVALID, "cannot copy directory");
	if (!*type && !is_from_folder && to->path[n - 1] == '/')
		return no_file(to, to->path, e);
	while (n > 1 && to->path[n - 1] == '/')
		n--;
	while (n > 1 && to->path[n - 1] != '/')
		n--;
	snprintf(parent, sizeof parent, "%.*s", (int)n, to->path);
	if (stat_inside(c, to, parent, &above, e) < 0)
		return -1;
	return is_folder(above) ? 0 : no_file(to, parent, e);
}

/* A link to a folder is the folder: only with a slash behind it that is what is asked for. */
static int find_source(struct client *c, struct side *from, struct err *e)
{
	AUTO(json_decrefp) json_t *stat = NULL;
	size_t n = strlen(from->path);

	if (stat_inside(c, from, from->path, &stat, e) < 0)
		return -1;
	if (!*text_of(stat, "type"))
		return no_file(from, from->path, e);
	if (is_folder(stat) && from->path[n - 1] != '/' && n + 1 < sizeof from->path)
		memcpy(from->path + n, "/", 2);
	return 0;
}

/* By `caisson cp`, over a connection of its own. */
static int copy(const struct side *from, const struct side *to, struct err *e)
{
	static const char inside[] = "%s:%s", outside[] = "%s%s";
	struct verb_call call = { .verb = &cmd_cp };
	struct verb_opts opts = { 0 };
	char *words[3] = { NULL };
	const struct side *sides[] = { from, to };

	for (size_t i = 0; i < COUNT(sides); i++) {
		const struct side *s = sides[i];
		struct str word = { .max = (size_t)2 * PATH_TEXT_MAX };
		/* A local name with a colon would be taken for a sandbox's. */
		const char *prefix = s->is_inside        ? box_sandbox(&s->box)
		                     : s->path[0] == '/' ? ""
		                                         : "./";

		str_addf(&word, s->is_inside ? inside : outside, prefix, s->path);
		words[i] = word.data;
	}
	client_init(&call.client);
	call.opts = &opts;
	call.words = (struct words){ words, 2 };
	int r = cmd_cp.run(&call, e);
	client_done(&call.client);
	free(words[0]);
	free(words[1]);
	return r;
}

static int cp_run(struct verb_call *c, struct err *e)
{
	const struct cp *x = c->opts;
	AUTO(side_done) struct side from = { 0 }, to = { 0 };
	struct stat st;

	if (take_side(&c->client, c->words.at[0], &from, e) < 0 ||
	    take_side(&c->client, c->words.at[1], &to, e) < 0)
		return -1;
	if (from.is_inside && to.is_inside)
		return err_new(e, ERR_INVALID, "copying between containers is not supported");
	if (!from.is_inside && !to.is_inside)
		return err_new(e, ERR_INVALID,
		               "must specify at least one container source or destination");
	if (x->is_archive)
		docker_warn("-a: owners stay those of whoever copies");
	if (from.is_stream)
		return unpack_inside(&c->client, &to, e);
	if (to.is_stream && isatty(STDOUT_FILENO)) /* names and bytes of somebody else */
		return err_new(e, ERR_INVALID, "an archive is not for a terminal: redirect it");
	if (to.is_stream)
		return pack_outside(&c->client, &from, e);
	if (from.is_inside)
		return find_source(&c->client, &from, e) < 0 ? -1 : copy(&from, &to, e);
	if ((x->is_following ? stat : lstat)(from.path, &st) < 0)
		return err_new(e, ERR_INVALID, "lstat %s: %s", from.path, strerror(errno));
	if (check_target(&c->client, &to, S_ISDIR(st.st_mode), e) < 0)
		return -1;
	return copy(&from, &to, e);
}

/* clang-format off */
static const struct flag cp_flags[] = {
	{ 'a', FLAG_SWITCH, "archive",     offsetof(struct cp, is_archive), NULL, "owners are never copied: says so", NULL },
	{ 'L', FLAG_SWITCH, "follow-link", offsetof(struct cp, is_following), NULL, "what a link leads to", NULL },
	{ 'q', FLAG_SWITCH, "quiet",       offsetof(struct cp, is_quiet), NULL, "nothing is said in any case", NULL },
};
/* clang-format on */

const struct verb docker_cp_cmd = { .name = "cp",
	                            .usage = "[OPTIONS] CONTAINER:SRC_PATH DEST_PATH|- | "
	                                     "SRC_PATH|- CONTAINER:DEST_PATH",
	                            .does =
	                                "Copy files between a container and the local filesystem",
	                            .flags = cp_flags,
	                            .n_flags = COUNT(cp_flags),
	                            .opts_size = sizeof(struct cp),
	                            .words_min = 2,
	                            .words_max = 2,
	                            .other = docker_word,
	                            .run = cp_run };
