#include "apply/journal.h"

#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/file.h"
#include "os/node.h"
#include "wire/base64.h"

#define BYTES_MAX (256u << 20)
#define PIECE (64u << 10)
#define LAST_MAX 8192

static const char *const states[] = {
	[JOURNAL_STAGING] = "staging",
	[JOURNAL_READY] = "ready",
	[JOURNAL_DONE] = "done",
};
_Static_assert(COUNT(states) == JOURNAL_STATES, "a state has no name");

static const char *const kinds[] = {
	[OP_REMOVE] = "remove", [OP_RMDIR] = "rmdir",     [OP_MKDIR] = "mkdir",
	[OP_CREATE] = "create", [OP_REPLACE] = "replace", [OP_MODE] = "mode",
};
_Static_assert(COUNT(kinds) == OP_KINDS, "a kind has no name");

/* ---- the folder ---------------------------------------------------------------------- */

/* Every folder of the path. */
static int make_path(const char *path, struct err *e)
{
	AUTO(str_done) struct str part = { .max = 4096 };

	for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		const char *end = strchr(slash + 1, '/');

		str_clear(&part);
		str_addn(&part, path, end ? (size_t)(end - path) : strlen(path));
		int r = os_mkdirat(AT_FDCWD, str_text(&part), 0700);
		if (r < 0 && r != -EEXIST)
			return err_sys(e, -r, "make %s", str_text(&part));
	}
	return 0;
}

int journal_folder(const char *path, struct err *e)
{
	struct stat st;

	if (make_path(path, e) < 0)
		return -1;
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open %s", path);
	int r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "look at %s", path);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_new(e, ERR_DENIED, "%s is not yours alone to write to", path);
	return fd_take(&fd);
}

int journal_lock(int folder_fd, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(folder_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(e, -fd, "open the lock");
	int r = os_lock_byte(fd, 0);
	if (r == -EAGAIN)
		return err_new(e, ERR_DENIED, "another caisson apply of yours is under way");
	if (r < 0)
		return err_sys(e, -r, "lock");
	return fd_take(&fd);
}

/* ---- writing ------------------------------------------------------------------------- */

static void print(const struct journal *j, const struct apply_ops *ops, struct str *out)
{
	str_addf(out, "caisson-apply 1 %s %s ", states[j->state], j->stage);
	base64_encode(j->folder, strlen(j->folder), out);
	str_add(out, "\n");
	for (size_t i = 0; ops && i < ops->list.len; i++) {
		const struct apply_op *op = &ops->list.at[i];

		str_addf(out, "%s %u %o %o %llu %llu %d ", kinds[op->kind], op->number,
		         (unsigned int)op->before, (unsigned int)op->after,
		         (unsigned long long)op->ino_new, (unsigned long long)op->ino_old,
		         op->is_needed);
		base64_encode(op->path, strlen(op->path), out);
		str_add(out, "\n");
	}
}

/* The old one or the new one, and on disk. Whoever writes has the lock. */
static int write_whole(int folder_fd, const char *name, const struct str *text, struct err *e)
{
	static const char part[] = "new";

	if (text->overflow)
		return err_new(e, ERR_LIMIT, "too many files");
	AUTO(fd_close)
	int fd = os_openat(folder_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_write_all(fd, text->data, text->len);
	if (r >= 0)
		r = os_fsync(fd);
	if (r >= 0)
		r = os_rename_in(folder_fd, part, name);
	if (r >= 0)
		r = os_fsync(folder_fd);
	return r < 0 ? err_sys(e, -r, "write the journal") : 0;
}

int journal_write(int folder_fd, const struct journal *j, const struct apply_ops *ops,
                  struct err *e)
{
	AUTO(str_done) struct str text = { .max = BYTES_MAX };

	print(j, ops, &text);
	return write_whole(folder_fd, j->stage, &text, e);
}

int journal_remove(int folder_fd, const struct journal *j, struct err *e)
{
	int r = os_unlinkat(folder_fd, j->stage);

	return r < 0 && r != -ENOENT ? err_sys(e, -r, "remove the journal") : 0;
}

/* ---- reading ------------------------------------------------------------------------- */

/* The next word of a line, ended by a NUL; NULL: there is none. */
static char *next_word(char **rest)
{
	char *word = *rest;

	if (!word || !*word)
		return NULL;
	char *end = word + strcspn(word, " ");
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static int next_number(char **rest, int base, uint64_t *out)
{
	const char *word = next_word(rest);
	char *end;

	if (!word || *word < '0' || *word > '9')
		return -1;
	errno = 0;
	*out = strtoull(word, &end, base);
	return *end || errno ? -1 : 0;
}

static int find(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; word && i < n; i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return -1;
}

static int parse_op(char *line, struct apply_ops *ops)
{
	AUTO(str_done) struct str path = { .max = 4096 };
	int kind = find(kinds, COUNT(kinds), next_word(&line));
	uint64_t number, before, after, ino_new, ino_old, needed;

	if (kind < 0 || next_number(&line, 10, &number) < 0 || next_number(&line, 8, &before) < 0 ||
	    next_number(&line, 8, &after) < 0 || next_number(&line, 10, &ino_new) < 0 ||
	    next_number(&line, 10, &ino_old) < 0 || next_number(&line, 10, &needed) < 0)
		return -1;
	if (number > UINT32_MAX || before > 07777 || after > 07777 || needed > 1 ||
	    !base64_decode(line, strlen(line), &path) || memchr(str_text(&path), '\0', path.len) ||
	    !apply_path_is(str_text(&path)))
		return -1;
	struct apply_op op = { .kind = (enum op_kind)kind,
		               .path = arena_strdup(&ops->arena, str_text(&path)),
		               .number = (uint32_t)number,
		               .before = (mode_t)before,
		               .after = (mode_t)after,
		               .ino_new = ino_new,
		               .ino_old = ino_old,
		               .is_needed = needed };
	vec_push(&ops->list, op);
	return 0;
}

static int parse_head(char *line, struct journal *out)
{
	AUTO(str_done) struct str folder = { .max = JOURNAL_FOLDER_SIZE - 1 };
	const char *magic = next_word(&line), *version = next_word(&line);
	int state = find(states, COUNT(states), next_word(&line));
	const char *stage = next_word(&line), *coded = next_word(&line);

	if (!magic || strcmp(magic, "caisson-apply") != 0 || !version ||
	    strcmp(version, "1") != 0 || state < 0 || !stage || !coded || *line ||
	    strncmp(stage, APPLY_STAGE, strlen(APPLY_STAGE)) != 0 || strchr(stage, '/') ||
	    strlen(stage) >= JOURNAL_STAGE_SIZE || !base64_decode(coded, strlen(coded), &folder))
		return -1;
	out->state = (enum journal_state)state;
	snprintf(out->stage, sizeof out->stage, "%s", stage);
	snprintf(out->folder, sizeof out->folder, "%s", str_text(&folder));
	return 0;
}

int journal_parse(char *text, struct journal *out, struct apply_ops *ops, struct err *e)
{
	bool is_head = true;

	for (char *line = text; *line; is_head = false) {
		size_t n = strcspn(line, "\n");

		if (!line[n])
			return err_new(e, ERR_INTERNAL, "a journal ends in the middle of a line");
		line[n] = '\0';
		if ((is_head ? parse_head(line, out) : parse_op(line, ops)) < 0)
			return err_new(e, ERR_INTERNAL, "a journal has a line that is not ours");
		line += n + 1;
	}
	return is_head ? err_new(e, ERR_INTERNAL, "a journal is empty") : 0;
}

int journal_read(int folder_fd, const char *stage, struct journal *out, struct apply_ops *ops,
                 struct err *e)
{
	AUTO(str_done) struct str text = { .max = BYTES_MAX };
	AUTO(fd_close) int fd = os_openat(folder_fd, stage, O_RDONLY | O_NOFOLLOW, 0);
	char buf[PIECE];
	ssize_t n;

	if (fd < 0)
		return err_sys(e, -fd, "open the journal %s", stage);
	while ((n = os_read(fd, buf, sizeof buf)) > 0)
		str_addn(&text, buf, (size_t)n);
	if (n < 0)
		return err_sys(e, (int)-n, "read the journal %s", stage);
	str_add(&text, "");
	if (text.overflow || !text.data || strlen(text.data) != text.len)
		return err_new(e, ERR_INTERNAL, "the journal %s is damaged", stage);
	if (journal_parse(text.data, out, ops, e) < 0)
		return -1;
	return strcmp(out->stage, stage) == 0
	           ? 0
	           : err_new(e, ERR_INTERNAL, "the journal %s is of another folder", stage);
}

/* ---- what was applied last ----------------------------------------------------------- */

struct last_name {
	char text[JOURNAL_STAGE_SIZE];
};

/* FNV-1a; the key itself is in the file. */
static struct last_name last_name(const char *key)
{
	uint64_t hash = 0xcbf29ce484222325u;
	struct last_name n;

	for (; *key; key++)
		hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
	snprintf(n.text, sizeof n.text, "last.%016llx", (unsigned long long)hash);
	return n;
}

int journal_last(int folder_fd, const char *key, char *out, size_t size, struct err *e)
{
	char text[LAST_MAX];
	int n = os_read_file(folder_fd, last_name(key).text, text, sizeof text);

	if (n == -ENOENT)
		return 0;
	if (n < 0)
		return err_sys(e, -n, "read what was applied last");
	size_t line = strcspn(text, "\n");
	if (!text[line] || line >= size || strcmp(text + line + 1, key) != 0)
		return 0;
	snprintf(out, size, "%.*s", (int)line, text);
	return 1;
}

int journal_remember(int folder_fd, const char *key, const char *line, struct err *e)
{
	AUTO(str_done) struct str text = { .max = LAST_MAX - 1 };

	str_addf(&text, "%s\n%s", line, key);
	return write_whole(folder_fd, last_name(key).text, &text, e);
}
