/*
 * test_ledger.h - a folder for a ledger, and what anybody with its public key finds there.
 */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "ledger/book.h"
#include "ledger/files.h"
#include "os/file.h"
#include "test.h"
#include "wire/ledger_chain.h"

static inline int ledger_dir_in(const char *folder)
{
	char name[64];

	snprintf(name, sizeof name, "%s/caisson-ledger-XXXXXX", folder);
	CHECK(mkdtemp(name));
	int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static inline int ledger_dir(void)
{
	return ledger_dir_in("/tmp");
}

static inline void ledger_dir_remove(int fd)
{
	char self[64], path[256];

	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(self, path, sizeof path - 1);

	CHECK(n > 0);
	path[n] = '\0';
	close(fd);
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/rm", "rm", "-rf", path, NULL);
		_exit(1);
	}
	CHECK_INT(waitpid(pid, NULL, 0), pid);
}

struct read_ledger {
	size_t n_found;
	struct ledger_finding first;
	uint64_t n, first_seq, last_seq, n_files, unsigned_records;
	size_t of[LEDGER_KINDS];
	char hash[LEDGER_HASH_SIZE]; /* of the last */
};

static inline char *read_whole(int dir_fd, const char *name, size_t *n)
{
	int fd = os_openat(dir_fd, name, O_RDONLY, 0);
	struct stat st;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	char *bytes = mem_alloc((size_t)st.st_size + 1);

	*n = (size_t)read(fd, bytes, (size_t)st.st_size);
	bytes[*n] = '\0';
	close(fd);
	return bytes;
}

static inline void note_finding(struct read_ledger *r, const struct ledger_finding *f)
{
	if (f->fault == LEDGER_SOUND)
		return;
	printf("# %s at %llu, %llu to %llu\n", ledger_fault_name(f->fault),
	       (unsigned long long)f->seq, (unsigned long long)f->from, (unsigned long long)f->to);
	if (r->n_found++ == 0)
		r->first = *f;
}

static inline void read_segment(struct read_ledger *r, struct ledger_chain *c, char *bytes)
{
	char *save = NULL;

	for (char *line = strtok_r(bytes, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct ledger_finding f[LEDGER_FINDINGS_MAX];
		size_t n = ledger_chain_feed(c, span_of(line), f);
		struct ledger_line l;

		for (size_t i = 0; i < n; i++)
			note_finding(r, &f[i]);
		if (ledger_parse(span_of(line), &l) == 0 && ledger_kind_of(l.kind) < LEDGER_KINDS)
			r->of[ledger_kind_of(l.kind)]++;
	}
}

static inline struct read_ledger read_with_head(int dir_fd, bool has_head)
{
	struct read_ledger r = { 0 };
	struct ledger_key key = { 0 };
	struct ledger_chain c = { .key = &key };
	struct files all = { 0 };
	struct err e = { 0 };
	size_t n;
	char *pem = read_whole(dir_fd, "key.pub", &n), *head;

	CHECK_INT(ledger_key_read(&key, span_of(pem), false, &e), 0);
	CHECK_INT(files_list(dir_fd, &all, &e), 0);
	for (size_t i = 0; i < all.len; i++) {
		char name[LEDGER_FILE_SIZE];

		ledger_file_name(all.at[i].seq, name);
		char *bytes = read_whole(dir_fd, name, &n);

		read_segment(&r, &c, bytes);
		free(bytes);
	}
	struct ledger_finding f = ledger_chain_start(&c);

	note_finding(&r, &f);
	head = has_head ? read_whole(dir_fd, "head", &n) : NULL;
	if (head) {
		CHECK(n > 0 && head[n - 1] == '\n');
		f = ledger_chain_head(&c, (struct span){ head, n - 1 });
		note_finding(&r, &f);
	}
	r.n = c.n;
	r.first_seq = c.first;
	r.last_seq = c.seq;
	r.n_files = all.len;
	r.unsigned_records = c.seq - c.signed_seq;
	memcpy(r.hash, c.hash, sizeof r.hash);
	free(pem);
	free(head);
	vec_done(&all);
	ledger_chain_done(&c);
	ledger_key_done(&key);
	return r;
}

static inline struct read_ledger read_ledger(int dir_fd)
{
	return read_with_head(dir_fd, true);
}
