#include "gate/sealing.h"

#include <unistd.h>

#include "gate/safe.h"
#include "os/file.h"
#include "os/secret.h"

struct buffer {
	struct sealing_head head;
	char bytes[SAFE_AAD_MAX + SECRET_VALUE_MAX + 1]; /* one more: it is too long */
};

static int read_all(int fd, struct buffer *b, struct err *e)
{
	size_t n = 0;

	for (;;) {
		ssize_t r = read(fd, (char *)b + n, sizeof *b - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return err_sys(e, errno, "read");
		if (r == 0)
			break;
		n += (size_t)r;
	}
	if (n < sizeof b->head || n == sizeof *b || b->head.aad_len > SAFE_AAD_MAX ||
	    n - sizeof b->head < b->head.aad_len)
		return err_new(e, ERR_INVALID, "that is nothing to seal");
	return (int)(n - sizeof b->head - b->head.aad_len);
}

static int seal(const struct buffer *b, size_t n, int out_fd, struct err *e)
{
	const struct seal_frame frame = { span_of(SECRET_INFO), { b->bytes, b->head.aad_len } };
	AUTO(str_done) struct str sealed = { .max = SAFE_SEALED_MAX };
	AUTO(str_done) struct str text = { .max = 2ul * SAFE_SEALED_MAX };

	if (seal_close(b->head.key, &frame, (struct span){ b->bytes + b->head.aad_len, n }, &sealed,
	               e) < 0)
		return -1;
	base64_encode(sealed.data, sealed.len, &text);
	int r = os_write_all(out_fd, text.data, text.len);

	return r < 0 ? err_sys(e, -r, "write") : 0;
}

int sealing_run(int in_fd, int out_fd, struct err *e)
{
	void *at = NULL;
	int r = os_secret_map(sizeof(struct buffer), false, &at);

	if (r < 0)
		return err_sys(e, -r, "lock memory for a secret");
	int n = read_all(in_fd, at, e);

	r = n < 0 ? -1 : seal(at, (size_t)n, out_fd, e);
	os_secret_unmap(at, sizeof(struct buffer));
	return r;
}
