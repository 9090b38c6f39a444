#include "gate/safe.h"

#include <sys/socket.h>
#include <time.h>

#include "base/fd.h"
#include "base/hex.h"
#include "gate/jwt.h"
#include "os/extent.h"
#include "os/pulse.h"
#include "os/secret.h"
#include "os/sock.h"

#define PAGE 4096

/* The one page that a forked child does not get. */
static struct {
	uint8_t key[SEAL_KEY_BYTES];
	char text[2 * SEAL_KEY_BYTES + 2]; /* and what follows: a line break, or too much */
} * safe;

/* ---- the master ---------------------------------------------------------------------- */

static int read_digits(int n, struct err *e)
{
	if (n == 2 * SEAL_KEY_BYTES + 1 && safe->text[n - 1] == '\n')
		n--;
	safe->text[n < 2 * SEAL_KEY_BYTES ? n : 2 * SEAL_KEY_BYTES] = '\0';
	bool is_key = n == 2 * SEAL_KEY_BYTES && hex_read(safe->text, safe->key, SEAL_KEY_BYTES);

	explicit_bzero(safe->text, sizeof safe->text);
	return is_key ? 0 : err_new(e, ERR_INVALID, "the key of the gate is not 64 digits");
}

int safe_init(int fd, struct err *e)
{
	void *page = NULL;

	if (fd < 0)
		return 0;
	int r = os_secret_map(PAGE, true, &page);
	if (r < 0)
		return err_sys(e, -r, "lock memory for the key");
	safe = page;
	r = os_pread(fd, safe->text, sizeof safe->text, 0);
	return r < 0 ? err_sys(e, -r, "read the key") : read_digits(r, e);
}

static bool is_whole(const struct safe_ask *a, size_t n)
{
	return n >= offsetof(struct safe_ask, bytes) && a->zero == 0 &&
	       a->aad_len <= SAFE_AAD_MAX && a->sealed_len <= SAFE_SEALED_MAX &&
	       n == offsetof(struct safe_ask, bytes) + a->aad_len + a->sealed_len;
}

/* What a child gets of it. The binding was sealed with it: it is as good as the value. */
static int usable(const struct safe_ask *a, struct safe_answer *out, int n)
{
	struct span rest = { a->bytes, a->aad_len };
	AUTO(bind_done) struct bind b = { 0 };
	struct err e = { 0 };

	for (int i = 0; i < 2; i++) { /* behind tenant and name: secret_aad() */
		const char *end = memchr(rest.at, '\0', rest.len);

		if (!end)
			return -1;
		rest = span_after(rest, (size_t)(end - rest.at) + 1);
	}
	if (bind_read(&b, rest.at, rest.len, &e) < 0)
		return -1;
	if (b.how != BIND_APP)
		return n;
	char issuer[64];
	const struct jwt_claims claims = { issuer, time(NULL) };

	snprintf(issuer, sizeof issuer, "%.*s", (int)strcspn(b.arg, "/"), b.arg);
	n = jwt_sign((struct span){ (const char *)out->bytes, (size_t)n }, &claims, out->bytes,
	             sizeof out->bytes, &e);
	explicit_bzero(out->bytes + (n > 0 ? n : 0), sizeof out->bytes - (size_t)(n > 0 ? n : 0));
	return n;
}

static int answer_to(const struct safe_ask *a, struct safe_answer *out)
{
	const struct seal_frame frame = { span_of(SECRET_INFO), { a->bytes, a->aad_len } };
	struct span sealed = { a->bytes + a->aad_len, a->sealed_len };
	struct err e = { 0 };

	if (!safe)
		return -1;
	if (a->op == SAFE_PUBLIC)
		return seal_public(safe->key, out->bytes, &e) < 0 ? -1 : SEAL_KEY_BYTES;
	int n = a->op == SAFE_OPEN ? seal_open(safe->key, &frame, sealed, out->bytes, &e) : -1;

	return n < 0 ? -1 : usable(a, out, n);
}

void safe_serve(int fd)
{
	static struct safe_ask ask;
	static struct safe_answer *answer; /* locked; a child that is forked meanwhile has zeros */
	void *page = answer;
	int reply = -1;
	size_t n_fds = 1;
	int n = os_recv(fd, &ask, sizeof ask, &reply, &n_fds);
	AUTO(fd_close) int to = n_fds == 1 ? reply : -1;

	if (n <= 0 || to < 0 || !is_whole(&ask, (size_t)n))
		return; /* its socket closes: that is the answer */
	if (!answer && os_secret_map(sizeof *answer, true, &page) < 0)
		return;
	answer = page;
	answer->n = answer_to(&ask, answer);
	size_t len = answer->n > 0 ? (size_t)answer->n : 0;

	/* The socket is the child's own choice: one that is full must not hold up the others. */
	(void)send(to, answer, offsetof(struct safe_answer, bytes) + len,
	           MSG_NOSIGNAL | MSG_DONTWAIT);
	explicit_bzero(answer, sizeof *answer);
}

/* ---- a child ------------------------------------------------------------------------- */

/* Room for the answer is the caller's, and locked. */
static int ask_master(int fd, const struct safe_ask *ask, struct safe_answer *out, struct err *e)
{
	size_t n = offsetof(struct safe_ask, bytes) + ask->aad_len + ask->sealed_len;
	int fds[2];
	int r = fd < 0 ? -EBADF : os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "ask for a secret");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];

	r = os_send(fd, ask, n, &theirs, 1);
	fd_close(&theirs);
	struct pollfd wait = { .fd = ours, .events = POLLIN };

	if (r >= 0)
		r = os_poll(&wait, 1, SAFE_WAIT_MS) == 1 ? 0 : -ETIMEDOUT;
	if (r >= 0)
		r = os_recv(ours, out, sizeof *out, NULL, NULL);
	if (r < (int)offsetof(struct safe_answer, bytes))
		return err_sys(e, r < 0 ? -r : EPIPE, "ask for a secret");
	if (out->n < 0 || (size_t)r != offsetof(struct safe_answer, bytes) + (size_t)out->n)
		return err_new(
		    e, ERR_INVALID,
		    "it does not open: sealed for another gate, bound to something else, or not "
		    "the key of an app");
	return out->n;
}

int safe_public(int fd, uint8_t out[SEAL_KEY_BYTES], struct err *e)
{
	static struct safe_ask ask;
	static struct safe_answer answer; /* nothing of it is secret */

	ask = (struct safe_ask){ .op = SAFE_PUBLIC };
	int n = ask_master(fd, &ask, &answer, e);

	if (n < 0)
		return -1;
	if (n != SEAL_KEY_BYTES)
		return err_new(e, ERR_INTERNAL, "that is no key");
	memcpy(out, answer.bytes, SEAL_KEY_BYTES);
	return 0;
}

int safe_unseal(int fd, struct span aad, struct span sealed, uint8_t *out, struct err *e)
{
	static struct safe_ask ask;
	void *page = NULL;

	if (aad.len > SAFE_AAD_MAX || sealed.len > SAFE_SEALED_MAX)
		return err_new(e, ERR_LIMIT, "it is too long");
	int r = os_secret_map(sizeof(struct safe_answer), false, &page);
	if (r < 0)
		return err_sys(e, -r, "lock memory for a secret");
	struct safe_answer *answer = page;

	ask = (struct safe_ask){ .op = SAFE_OPEN,
		                 .aad_len = (uint32_t)aad.len,
		                 .sealed_len = (uint32_t)sealed.len };
	memcpy(ask.bytes, aad.at, aad.len);
	memcpy(ask.bytes + aad.len, sealed.at, sealed.len);
	r = ask_master(fd, &ask, answer, e);
	if (r >= 0)
		memcpy(out, answer->bytes, (size_t)r);
	os_secret_unmap(page, sizeof *answer);
	return r;
}
