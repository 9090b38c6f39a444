#include "launcher/lends.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "launcher/child.h"
#include "launcher/slot.h"
#include "os/file.h"
#include "os/net.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/unix.h"

#define LEND_MESSAGE_MAX (sizeof(struct lend_head) + LEND_BYTES_MAX)
#define OWNER_OF(w, type, member) ((type *)(void *)((char *)(w)-offsetof(type, member)))
#define FILE_NAME "lent"
#define FILE_BYTES_MAX (32u << 20) /* LENDS_KEPT_MAX paths of the longest, and more */

struct lend {
	struct watch watch; /* first */
	struct lends *all;
	struct lend *next;
	uid_t uid;
	char *bytes; /* the whole message; NULL: none yet */
	size_t len;
};

/* ---- remembered ------------------------------------------------------------------------ */

static bool is_kept(const struct lends *all, uid_t uid, const char *path)
{
	for (size_t i = 0; i < all->kept.len; i++)
		if (all->kept.at[i].uid == uid && lend_is_same(all->kept.at[i].path, path))
			return true;
	return false;
}

static void forget_oldest(struct lends *all)
{
	free(all->kept.at[0].path);
	memmove(all->kept.at, all->kept.at + 1, --all->kept.len * sizeof *all->kept.at);
}

/* Written whole under another name: a reader finds all of it or what was before. */
static int save(const struct lends *all)
{
	static const char temporary[] = FILE_NAME ".new";
	AUTO(str_done) struct str text = { .max = FILE_BYTES_MAX };

	for (size_t i = 0; i < all->kept.len; i++) {
		str_addf(&text, "%u %s", (unsigned int)all->kept.at[i].uid, all->kept.at[i].path);
		str_addn(&text, "", 1);
	}
	(void)os_unlinkat(all->state_fd, temporary); /* of one that died, or somebody's */
	AUTO(fd_close)
	int fd =
	    os_openat(all->state_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_write_all(fd, text.data, text.len);
	return r < 0 ? r : os_rename_in(all->state_fd, temporary, FILE_NAME);
}

/* Whether it was not known. */
static bool keep(struct lends *all, uid_t uid, const char *path)
{
	if (is_kept(all, uid, path))
		return false;
	if (all->kept.len == LENDS_KEPT_MAX)
		forget_oldest(all);
	vec_push(&all->kept, (struct lends_kept){ uid, mem_strdup(path) });
	return true;
}

/* The daemon may make files in that folder, and replace none of root's: what is not root's is not
 * read. */
static int load(struct lends *all, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int fd = os_openat(all->state_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW, 0);

	if (fd == -ENOENT)
		return 0;
	int r = fd < 0 ? fd : os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "open " FILE_NAME);
	if (st.st_uid != geteuid() || !S_ISREG(st.st_mode) || st.st_mode & 077)
		return err_new(e, ERR_DENIED,
		               FILE_NAME " in the state folder is not the launcher's");
	if (st.st_size <= 0 || (size_t)st.st_size > FILE_BYTES_MAX)
		return 0;
	AUTO(freep) char *text = mem_alloc((size_t)st.st_size);
	ssize_t n = read(fd, text, (size_t)st.st_size);
	if (n <= 0 || text[n - 1] != '\0')
		return 0; /* clients lend again */
	for (const char *at = text; at < text + n; at += strlen(at) + 1) {
		char *path;
		unsigned long uid = strtoul(at, &path, 10);

		if (path > at && path[0] == ' ' && path[1] == '/' && uid < UINT32_MAX)
			(void)keep(all, (uid_t)uid, path + 1);
	}
	return 0;
}

/* ---- the child that has a connection ---------------------------------------------------- */

/* A descriptor that comes along with bytes is closed by whoever reads them, and the close of a
 * socket may take as long as its owner likes. So the launcher reads nothing of a client: a child
 * with the client's rights does, and passes one packet on. */
static size_t read_message(int fd, char *bytes)
{
	size_t len = 0, want = sizeof(struct lend_head);

	while (len < want) {
		ssize_t n = recv(fd, bytes + len, want - len, 0);

		if (n <= 0 && (n == 0 || errno != EINTR))
			return 0;
		len += n > 0 ? (size_t)n : 0;
		if (len >= sizeof(struct lend_head))
			want = lend_size((const struct lend_head *)bytes);
	}
	return want;
}

static int become_client(const struct os_peer *peer, int keep[2])
{
	int r = child_keep(keep, 2);

	if (r >= 0)
		r = os_reset_signals();
	if (r >= 0)
		r = os_set_groups(peer->groups, peer->n_groups);
	if (r >= 0)
		r = os_set_ids(peer->uid, peer->gid);
	return r < 0 ? r : os_prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static _Noreturn void carry(const struct os_peer *peer, int client_fd, int server_fd)
{
	static char bytes[LEND_MESSAGE_MAX];
	int keep[2] = { client_fd, server_fd };
	struct pollfd ends[2] = { { .fd = client_fd, .events = POLLIN },
		                  { .fd = server_fd, .events = POLLIN } };
	char answer;

	if (become_client(peer, keep) < 0 || fcntl(client_fd, F_SETFL, 0) < 0) /* it may block */
		_exit(1);
	alarm(LENDS_S_MAX);
	size_t n = read_message(client_fd, bytes);
	if (n == 0 || os_send(server_fd, bytes, n, NULL, 0) < 0 ||
	    os_recv(server_fd, &answer, 1, NULL, NULL) != 1 ||
	    os_send(client_fd, &answer, 1, NULL, 0) < 0)
		_exit(1);
	alarm(0);
	/* Until either hangs up. A client that says more than one message is sent away. */
	while (poll(ends, COUNT(ends), -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* ---- connections ----------------------------------------------------------------------- */

static const char *paths_of(const struct lend *l)
{
	return l->bytes + sizeof(struct lend_head);
}

static void lend_free(struct lend *l)
{
	loop_remove(l->all->loop, &l->watch);
	fd_close(&l->watch.fd); /* its child ends by that, and is waited for as any other */
	free(l->bytes);
	free(l);
}

static void lend_end(struct lend *l)
{
	struct lend **at = &l->all->first;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	l->all->n--;
	lend_free(l);
}

static int take_message(struct lend *l, const char *bytes, size_t n)
{
	static const char ok = LEND_OK;
	const size_t head = sizeof(struct lend_head);
	struct err e;
	bool is_new = false;

	if (n <= head || lend_size((const struct lend_head *)bytes) != n ||
	    lend_check(bytes + head, n - head, &e) < 0)
		return -1;
	l->bytes = mem_alloc(n);
	l->len = n;
	memcpy(l->bytes, bytes, n);
	for (const char *at = paths_of(l); bytes[0] == LEND_KEEP && at < l->bytes + n;
	     at += strlen(at) + 1)
		is_new = keep(l->all, l->uid, at) || is_new;
	int r = is_new ? save(l->all) : 0;
	if (r < 0)
		fprintf(stderr, "caisson-launcher: lent paths are not remembered: %s\n",
		        strerror(-r));
	return os_send(l->watch.fd, &ok, 1, NULL, 0);
}

static void lend_ready(struct watch *w, uint32_t events)
{
	static char bytes[LEND_MESSAGE_MAX];
	struct lend *l = (struct lend *)w;
	int n = os_recv(w->fd, bytes, sizeof bytes, NULL, NULL);

	(void)events;
	/* A second packet is none of ours; the end is that of the connection. */
	if (n <= 0 || l->bytes || take_message(l, bytes, (size_t)n) < 0)
		lend_end(l);
}

static size_t count_of(const struct lends *all, uid_t uid)
{
	size_t n = 0;

	for (const struct lend *l = all->first; l; l = l->next)
		n += l->uid == uid;
	return n;
}

static int start_child(const struct os_peer *peer, int client_fd)
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return r;
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	r = os_clone((struct clone_opts){ 0 });
	if (r == 0)
		carry(peer, client_fd, theirs);
	return r < 0 ? r : fd_take(&ours);
}

static void door_ready(struct watch *w, uint32_t events)
{
	static struct os_peer peer;
	struct lends *all = OWNER_OF(w, struct lends, door);
	AUTO(fd_close) int fd = os_accept(w->fd);

	(void)events;
	if (fd < 0 || os_peer(fd, &peer) < 0 || slot_is_id(peer.uid) || all->n >= LENDS_MAX ||
	    count_of(all, peer.uid) >= LENDS_OF_ONE_MAX)
		return; /* closed: refused */
	int child = start_child(&peer, fd);
	if (child < 0)
		return;
	struct lend *l = mem_alloc(sizeof *l);
	*l = (struct lend){ .watch = { .fd = child, .ready = lend_ready },
		            .all = all,
		            .next = all->first,
		            .uid = peer.uid };
	all->first = l;
	all->n++;
	if (loop_add(all->loop, &l->watch, EPOLLIN) < 0)
		lend_end(l);
}

static bool is_lent(const struct lends *all, uid_t uid, const char *path)
{
	if (is_kept(all, uid, path))
		return true;
	for (const struct lend *l = all->first; l; l = l->next) {
		if (!l->bytes || l->uid != uid)
			continue;
		for (const char *at = paths_of(l); at < l->bytes + l->len; at += strlen(at) + 1)
			if (lend_is_same(at, path))
				return true;
	}
	return false;
}

int lends_check(const struct lends *all, uid_t uid, const char *path, struct err *e)
{
	if (all->door.fd < 0 || is_lent(all, uid, path))
		return 0;
	return err_new(e, ERR_DENIED,
	               "the client has not lent it to the launcher (docs/operating.md, "
	               "\"Host folders\")");
}

/* ---- birth and end --------------------------------------------------------------------- */

/* Owner root; group and mode as the API's socket has them, where somebody else has made that. */
static int admit_same(int run_fd, int api_fd)
{
	struct stat st;
	AUTO(fd_close) int file = os_bound_file(api_fd);
	int r = file < 0 ? file : os_fstatat(file, "", &st, AT_EMPTY_PATH);

	if (r >= 0 && st.st_uid == geteuid() && st.st_mode & 066) {
		r = os_fchownat(run_fd, LEND_SOCKET, geteuid(), st.st_gid);
		if (r >= 0 && fchmodat(run_fd, LEND_SOCKET, st.st_mode & 0666, 0) < 0)
			r = -errno;
	}
	return r;
}

int lends_open(struct lends *all, int api_fd, struct err *e)
{
	if (load(all, e) < 0)
		return -1;
	int r =
	    os_unlinkat(all->run_fd, LEND_SOCKET); /* of a dead one: we have the folder's lock */
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "remove a stale " LEND_SOCKET);
	all->door.fd = os_listen_at(all->run_fd, LEND_SOCKET, SOCK_STREAM, 0600);
	if (all->door.fd < 0)
		return err_sys(e, -all->door.fd, "listen on " LEND_SOCKET);
	all->door.ready = door_ready;
	r = admit_same(all->run_fd, api_fd);
	if (r >= 0)
		r = loop_add(all->loop, &all->door, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "open " LEND_SOCKET) : 0;
}

void lends_done(struct lends *all)
{
	for (struct lend *l = all->first, *next; l; l = next) {
		next = l->next;
		lend_free(l);
	}
	all->first = NULL;
	if (all->door.fd >= 0) {
		loop_remove(all->loop, &all->door);
		fd_close(&all->door.fd);
		(void)os_unlinkat(all->run_fd, LEND_SOCKET);
	}
	for (size_t i = 0; i < all->kept.len; i++)
		free(all->kept.at[i].path);
	vec_done(&all->kept);
}
