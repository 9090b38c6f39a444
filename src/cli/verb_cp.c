/*
 * verb_cp.c - files and folders between the caller and a sandbox; folders travel as tar.
 */
#include "cli/verbs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "cli/pack.h"
#include "wire/later.h"

#define PATH_BYTES_MAX (32u << 10)

struct cp {
	struct verb_call *call;
	const char *place;
	char sandbox[NAME_TEXT_MAX];
	char remote[PATH_TEXT_MAX], local[PATH_TEXT_MAX];
	char type[32]; /* of the remote one, as the API says it; "" when there is none */
	mode_t mode;
};

/* SANDBOX:PATH; a local name with a colon is written ./a:b. */
static bool is_remote(const char *word)
{
	size_t n = strcspn(word, ":/");

	return word[n] == ':' && n > 0;
}

static int take_remote(struct cp *p, const char *word, struct err *e)
{
	size_t n = strcspn(word, ":");
	int len = snprintf(p->remote, sizeof p->remote, "%s", word + n + 1);

	if (n >= sizeof p->sandbox || len < 1 || (size_t)len >= sizeof p->remote)
		return err_new(e, ERR_INVALID, "SANDBOX:PATH is expected, not \"%.64s\"", word);
	snprintf(p->sandbox, sizeof p->sandbox, "%.*s", (int)n, word);
	p->place = place_of(&p->call->client, p->sandbox, e);
	return p->place ? 0 : -1;
}

static const char *base_of(const char *path)
{
	size_t n = strlen(path);
	static char name[NAME_TEXT_MAX];

	while (n > 0 && path[n - 1] == '/')
		n--;
	size_t from = n;
	while (from > 0 && path[from - 1] != '/')
		from--;
	snprintf(name, sizeof name, "%.*s", (int)(n - from), path + from);
	return name;
}

/* Into a folder that exists, under its own name; a name such as `.` means its content. */
static int go_into(char *to, const char *from, struct err *e)
{
	const char *name = base_of(from);
	size_t n = strlen(to);

	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	int more =
	    snprintf(to + n, PATH_TEXT_MAX - n, "%s%s", n && to[n - 1] == '/' ? "" : "/", name);
	return more < 0 || n + (size_t)more >= PATH_TEXT_MAX
	           ? err_new(e, ERR_INVALID, "the path is too long")
	           : 0;
}

static int look_remote(struct cp *p, struct err *e)
{
	const char *texts[] = { p->place, p->sandbox, place_path(p->place, p->remote) };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *stat = NULL;

	client_path(&path, "/v1/{}/{}/files/{}?relative=1&stat=1", texts);
	if (client_call(&p->call->client, "GET", str_text(&path), NULL, &stat, e) < 0)
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	snprintf(p->type, sizeof p->type, "%s", text_of(stat, "type"));
	/* A link's own mode says nothing of the file behind it. */
	p->mode = strcmp(p->type, "file") == 0
	              ? later_mode((mode_t)strtoul(text_of(stat, "mode"), NULL, 8))
	              : 0666;
	return 0;
}

/* ---- into the sandbox ---------------------------------------------------------------- */

static int send_file(struct cp *p, int fd, mode_t mode, struct err *e)
{
	const char *texts[] = { p->place, p->sandbox, place_path(p->place, p->remote) };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	client_path(&path, "/v1/{}/{}/files/{}?relative=1", texts);
	str_addf(&path, "&mode=%04o", (unsigned int)(mode & 0777));
	struct client_ask ask = { .method = "PUT",
		                  .path = str_text(&path),
		                  .type = "application/octet-stream",
		                  .source = file_source,
		                  .arg = &fd };
	return client_json(&p->call->client, &ask, NULL, e);
}

static int send_folder(struct cp *p, struct err *e)
{
	const char *texts[] = { p->place, p->sandbox, place_path(p->place, p->remote) };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };

	client_path(&path, "/v1/{}/{}/archive?path={}", texts);
	struct client_ask ask = { .method = "PUT", .path = str_text(&path) };
	return pack_send(&p->call->client, &ask, (struct pack_what){ p->local, NULL }, NULL, e);
}

static int copy_in(struct cp *p, struct err *e)
{
	AUTO(fd_close) int fd = open(p->local, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %s", p->local);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_new(e, ERR_INVALID, "%s is neither a file nor a folder", p->local);
	if (look_remote(p, e) < 0)
		return -1;
	bool is_into = strcmp(p->type, "directory") == 0 || p->remote[strlen(p->remote) - 1] == '/';
	if (is_into && go_into(p->remote, p->local, e) < 0)
		return -1;
	p->call->client.doing = "copying";
	return S_ISDIR(st.st_mode) ? send_folder(p, e) : send_file(p, fd, st.st_mode, e);
}

/* ---- out of the sandbox -------------------------------------------------------------- */

/* Under another name first: what is there stays until the new one is whole. */
static int fetch_file(struct cp *p, struct err *e)
{
	const char *texts[] = { p->place, p->sandbox, place_path(p->place, p->remote) };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	char part[PATH_TEXT_MAX + 16];
	mode_t mask = umask(022);

	umask(mask);
	client_path(&path, "/v1/{}/{}/files/{}?relative=1", texts);
	snprintf(part, sizeof part, "%s.XXXXXX", p->local);
	AUTO(fd_close) int fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "make %s", p->local);
	struct client_ask ask = { .method = "GET", .path = str_text(&path) };
	int r = client_fetch(&p->call->client, &ask, fd, e);
	if (r == 0 && (fchmod(fd, p->mode & ~mask) < 0 || rename(part, p->local) < 0))
		r = err_sys(e, errno, "make %s", p->local);
	if (r < 0)
		(void)unlink(part); /* only the attempt */
	return r;
}

struct download {
	struct client *client;
	struct client_answer answer;
};

static long read_archive(void *arg, const void **bytes, struct err *e)
{
	struct download *d = arg;
	struct span piece = { "", 0 };
	int r = client_read(d->client, &d->answer, &piece, e);

	*bytes = piece.at;
	return r > 0 ? (long)piece.len : r;
}

static int fetch_folder(struct cp *p, struct err *e)
{
	const char *texts[] = { p->place, p->sandbox, place_path(p->place, p->remote) };
	struct download d = { .client = &p->call->client };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	struct unpacked got;

	client_path(&path, "/v1/{}/{}/archive?path={}", texts);
	struct client_ask ask = { .method = "GET", .path = str_text(&path) };
	if (client_begin(d.client, &ask, &d.answer, e) < 0 ||
	    client_check(d.client, &d.answer, e) < 0)
		return -1;
	if (mkdir(p->local, 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make %s", p->local);
	AUTO(fd_close) int fd = open(p->local, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open %s", p->local);
	if (unpack_folder(fd, read_archive, &d, &got, e) < 0)
		return -1;
	if (got.left_out > 0)
		fprintf(stderr, "caisson: left out %llu links that lead out, or no files at all\n",
		        (unsigned long long)got.left_out);
	return 0;
}

/* A new file takes the old one's name: /dev/null or /dev/stdout would be gone, and a link that
 * somebody else put there would lead elsewhere. */
static int check_place(const struct cp *p, struct err *e)
{
	struct stat st;

	if (lstat(p->local, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return 0;
	return err_new(e, ERR_INVALID, "%s is neither a file nor a folder", p->local);
}

static int copy_out(struct cp *p, struct err *e)
{
	size_t named = strlen(p->local);
	struct stat st;

	if (look_remote(p, e) < 0)
		return -1;
	if (!p->type[0])
		return err_new(e, ERR_NOT_FOUND, "%s: no such file or folder", p->remote);
	bool is_folder = stat(p->local, &st) == 0 && S_ISDIR(st.st_mode);

	if (is_folder && go_into(p->local, p->remote, e) < 0)
		return -1;
	/* A link to a folder that the caller has named is one. */
	if ((!is_folder || strlen(p->local) > named) && check_place(p, e) < 0)
		return -1;
	p->call->client.doing = "copying";
	return strcmp(p->type, "directory") == 0 ? fetch_folder(p, e) : fetch_file(p, e);
}

static int cp_run(struct verb_call *c, struct err *e)
{
	const char *from = c->words.at[0], *to = c->words.at[1];
	struct cp p = { .call = c };

	if (is_remote(from) == is_remote(to))
		return err_new(e, ERR_INVALID, "one of the two is SANDBOX:PATH: caisson cp %s",
		               c->verb->usage);
	int n = snprintf(p.local, sizeof p.local, "%s", is_remote(from) ? to : from);
	if (n < 1 || (size_t)n >= sizeof p.local)
		return err_new(e, ERR_INVALID, "the path is empty or too long");
	if (take_remote(&p, is_remote(from) ? from : to, e) < 0)
		return -1;
	return is_remote(from) ? copy_out(&p, e) : copy_in(&p, e);
}

const struct verb cmd_cp = { .name = "cp",
	                     .usage = "FILE SANDBOX:PATH | SANDBOX:PATH FILE",
	                     .does = "copy a file or a folder in or out",
	                     .more = "A workspace may stand for a sandbox. A folder is copied "
	                             "whole. Into a folder that exists, it goes "
	                             "under its own name. What comes out keeps no owner, no setuid "
	                             "bit, and no link that leads out of it.",
	                     .words = "remote",
	                     .opts_size = sizeof(struct verb_opts),
	                     .words_min = 2,
	                     .words_max = 2,
	                     .run = cp_run };
