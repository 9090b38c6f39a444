#include "vault/pack.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/blob.h"
#include "vault/names.h"
#include "vault/reserve.h"
#include "vault/trees.h"

#define MAGIC "caissonk"
#define AT_ONCE 2 /* each waits for the disk, and a checkpoint may wait for them */

struct pack_head {
	char magic[8];
	uint64_t workspace;
};

struct pack_record {
	uint8_t hash[BLOB_HASH];
	uint64_t size;
};

int pack_open(struct vault *v, struct err *e)
{
	int r = os_mkdirat(v->blobs_fd, "k", 0700);

	v->packs.dir_fd = r < 0 && r != -EEXIST
	                      ? r
	                      : os_openat(v->blobs_fd, "k", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return v->packs.dir_fd < 0 ? err_sys(e, -v->packs.dir_fd, "open the packs") : 0;
}

void pack_done(struct vault *v)
{
	pack_drop(v);
	vec_done(&v->packs.list);
	fd_close(&v->packs.dir_fd);
}

static void temp_name(const struct vault *v, char out[TREE_NAME_MAX + 8])
{
	snprintf(out, TREE_NAME_MAX + 8, "tmp-%llu", (unsigned long long)v->open.workspace);
}

static const struct packed *find(const struct vault *v, const uint8_t hash[BLOB_HASH])
{
	for (size_t i = v->packs.list.len; i-- > 0;)
		if (memcmp(v->packs.list.at[i].hash, hash, BLOB_HASH) == 0)
			return &v->packs.list.at[i];
	return NULL;
}

/* Another vault, or a sweep, may have unpacked it since: then the blob has to be found by its name.
 */
static bool pack_is_there(const struct vault *v, uint64_t number)
{
	char name[TREE_NAME_MAX];
	struct stat st;

	trees_name(number, name);
	return os_fstatat(v->packs.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool pack_has(const struct vault *v, const uint8_t hash[BLOB_HASH])
{
	const struct packed *p = find(v, hash);

	return p && (p->pack == 0 || pack_is_there(v, p->pack)); /* 0: it is being written */
}

static int begin(struct vault *v, struct err *e)
{
	struct pack_head head = { .workspace = v->open.workspace };
	char temp[TREE_NAME_MAX + 8];

	memcpy(head.magic, MAGIC, sizeof head.magic);
	temp_name(v, temp);
	int fd = os_openat(v->packs.dir_fd, temp, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_pwrite2(fd, &head, sizeof head, NULL, 0, 0);
	if (r < 0) {
		fd_close(&fd);
		return err_sys(e, -r, "begin a pack");
	}
	v->packs.fd = fd;
	v->packs.end = sizeof head;
	v->packs.n_before = v->packs.list.len;
	return 0;
}

int pack_add(struct vault *v, const uint8_t hash[BLOB_HASH], const void *bytes, size_t n,
             struct err *e)
{
	struct pack_record record = { .size = n };
	struct packed p = { .size = n };

	if (v->packs.fd < 0 && begin(v, e) < 0)
		return -1;
	memcpy(record.hash, hash, BLOB_HASH);
	memcpy(p.hash, hash, BLOB_HASH);
	int r = os_pwrite2(v->packs.fd, &record, sizeof record, bytes, n, (off_t)v->packs.end);
	if (r < 0)
		return err_sys(e, -r, "write a pack");
	p.at = v->packs.end + sizeof record;
	v->packs.end = p.at + n;
	vec_push(&v->packs.list, p); /* its pack has no number yet */
	return 0;
}

void pack_drop(struct vault *v)
{
	char temp[TREE_NAME_MAX + 8];

	if (v->packs.fd < 0)
		return;
	v->packs.list.len = v->packs.n_before;
	fd_close(&v->packs.fd);
	temp_name(v, temp);
	(void)os_unlinkat(v->packs.dir_fd, temp); /* else the next one begins with it */
}

int pack_commit(struct vault *v, uint64_t number, struct err *e)
{
	char temp[TREE_NAME_MAX + 8], name[TREE_NAME_MAX];
	struct stat st;

	if (v->packs.fd < 0)
		return 0;
	temp_name(v, temp);
	trees_name(number, name);
	/* The same checkpoint, made by one who died: others may need what it found. */
	int r = os_fstatat(v->packs.dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "look for pack %s", name);
	if (r == 0 && pack_unpack_all(v, e) < 0)
		return -1;
	r = os_renameat2((struct os_names){ v->packs.dir_fd, temp, v->packs.dir_fd, name }, 0);
	if (r < 0)
		return err_sys(e, -r, "name a pack");
	for (size_t i = v->packs.n_before; i < v->packs.list.len; i++)
		v->packs.list.at[i].pack = number;
	fd_close(&v->packs.fd);
	return 0;
}

/* ---- reading ----------------------------------------------------------------------- */

typedef VEC(struct packed) packed_list;

static void add_packed(packed_list *l, struct packed one)
{
	vec_push(l, one);
}

/* Up to a record that is not whole: a power loss. */
static void read_records(int fd, uint64_t number, packed_list *out)
{
	struct pack_record record;

	for (uint64_t at = sizeof(struct pack_head);; at += record.size) {
		int n = os_pread(fd, &record, sizeof record, (off_t)at);

		if (n < (int)sizeof record || record.size > PACK_MAX)
			return;
		at += sizeof record;
		struct packed p = { .pack = number, .at = at, .size = record.size };
		memcpy(p.hash, record.hash, BLOB_HASH);
		add_packed(out, p);
	}
}

/* What a pack holds; nothing when it is gone, or not of this workspace (0: any). */
static int read_pack(const struct vault *v, uint64_t number, uint64_t workspace, packed_list *out,
                     struct err *e)
{
	char name[TREE_NAME_MAX];
	struct pack_head head;

	trees_name(number, name);
	AUTO(fd_close) int fd = os_openat(v->packs.dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : err_sys(e, -fd, "open pack %s", name);
	int n = os_pread(fd, &head, sizeof head, 0);
	if (n < 0)
		return err_sys(e, -n, "read pack %s", name);
	bool is_pack = n == (int)sizeof head && memcmp(head.magic, MAGIC, sizeof head.magic) == 0;
	if (is_pack && (!workspace || head.workspace == workspace))
		read_records(fd, number, out);
	return 0;
}

static int read_all(const struct vault *v, uint64_t workspace, packed_list *out, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };
	int r = names_read(v->packs.dir_fd, &names, e);

	for (size_t i = 0; i < names.list.len && r >= 0; i++) {
		char *end;
		uint64_t number = strtoull(names.list.at[i].text, &end, 10);

		if (*end == '\0')
			r = read_pack(v, number, workspace, out, e);
	}
	return r;
}

int pack_load(struct vault *v, struct err *e)
{
	packed_list list = { 0 };
	int r = v->open.workspace ? read_all(v, v->open.workspace, &list, e) : 0;

	for (size_t i = 0; i < list.len && r >= 0; i++)
		vec_push(&v->packs.list, list.at[i]);
	vec_done(&list);
	return r;
}

static int open_pack(const struct vault *v, const struct packed *p)
{
	char name[TREE_NAME_MAX];

	trees_name(p->pack, name);
	return os_openat(v->packs.dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);
}

/* In the packs of others: those of a fork's parent, say. */
static int find_anywhere(const struct vault *v, const uint8_t hash[BLOB_HASH], struct packed *out,
                         struct err *e)
{
	packed_list others = { 0 };
	int r = read_all(v, 0, &others, e), found = 0;

	for (size_t i = 0; i < others.len && r >= 0 && !found; i++) {
		found = memcmp(others.at[i].hash, hash, BLOB_HASH) == 0;
		*out = others.at[i];
	}
	vec_done(&others);
	return r < 0 ? -1 : found;
}

int pack_find(const struct vault *v, const uint8_t hash[BLOB_HASH], int *fd, uint64_t *at,
              struct err *e)
{
	const struct packed *known = find(v, hash);
	struct packed p;

	if (known) {
		p = *known;
	} else {
		int r = find_anywhere(v, hash, &p, e);

		if (r <= 0)
			return r;
	}
	int opened = open_pack(v, &p);
	if (opened < 0)
		return opened == -ENOENT ? 0 : err_sys(e, -opened, "open a pack");
	*fd = opened;
	*at = p.at;
	return 1;
}

/* ---- unpacking --------------------------------------------------------------------- */

static int unpack_one(struct vault *v, const struct packed *p, struct err *e)
{
	AUTO(fd_close) int fd = open_pack(v, p);

	if (fd < 0)
		return fd == -ENOENT ? 0 : err_sys(e, -fd, "open a pack");
	return blob_make(v, p->hash, fd, p->at, (size_t)p->size, e);
}

static int remove_pack(const struct vault *v, uint64_t number, struct err *e)
{
	char name[TREE_NAME_MAX];

	trees_name(number, name);
	int r = os_unlinkat(v->packs.dir_fd, name);
	return r < 0 && r != -ENOENT ? err_sys(e, -r, "remove pack %s", name) : 0;
}

/* The oldest pack's are first in the list; it goes when its last one is a blob. */
int pack_unpack_some(struct vault *v, struct err *e)
{
	if (reserve_lacks_inodes(v)) /* a pack is one file, its blobs are many */
		return 0;
	size_t n = v->packs.list.len < AT_ONCE ? v->packs.list.len : AT_ONCE, done = 0;

	for (; done < n; done++) {
		const struct packed *p = &v->packs.list.at[done];
		bool is_last = done + 1 == v->packs.list.len || p[1].pack != p->pack;

		if (unpack_one(v, p, e) < 0 || (is_last && remove_pack(v, p->pack, e) < 0))
			return -1;
	}
	memmove(v->packs.list.at, v->packs.list.at + done,
	        (v->packs.list.len - done) * sizeof *v->packs.list.at);
	v->packs.list.len -= done;
	return v->packs.list.len > 0;
}

int pack_unpack_all(struct vault *v, struct err *e)
{
	packed_list list = { 0 };
	int r = read_all(v, 0, &list, e);

	if (r >= 0 && list.len > 0 && reserve_lacks_inodes(v))
		r = err_sys(e, ENOSPC, "make files of packs");

	for (size_t i = 0; i < list.len && r >= 0; i++) {
		r = unpack_one(v, &list.at[i], e);
		if (r >= 0 && (i + 1 == list.len || list.at[i + 1].pack != list.at[i].pack))
			r = remove_pack(v, list.at[i].pack, e);
	}
	vec_done(&list);
	return r;
}
