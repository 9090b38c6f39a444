#include "hook/sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "wire/base64.h"

static const char prefix[] = "whsec_";

int sign_key(struct span text, uint8_t key[SIGN_KEY_MAX], struct err *e)
{
	AUTO(str_done) struct str bytes = { .max = SIGN_KEY_MAX };
	size_t skip = strlen(prefix);

	if (text.len > 0 && text.at[text.len - 1] == '\n')
		text.len--;
	str_room(&bytes, SIGN_KEY_MAX); /* it is wiped: nothing may lie elsewhere */
	if (text.len <= skip || memcmp(text.at, prefix, skip) != 0)
		str_addn(&bytes, text.at, text.len);
	else if (!base64_decode(text.at + skip, text.len - skip, &bytes))
		return err_new(e, ERR_INVALID, "the key of the webhook is no base64");
	int n = bytes.overflow ? SIGN_KEY_MAX + 1 : (int)bytes.len;

	if (n >= SIGN_KEY_MIN && n <= SIGN_KEY_MAX)
		memcpy(key, bytes.data, (size_t)n);
	if (bytes.data)
		explicit_bzero(bytes.data, bytes.cap);
	if (n < SIGN_KEY_MIN || n > SIGN_KEY_MAX)
		return err_new(e, ERR_INVALID, "the key of the webhook needs %d to %d bytes",
		               SIGN_KEY_MIN, SIGN_KEY_MAX);
	return n;
}

void sign_text(struct span key, const char *id, int64_t unix_s, struct span body, struct str *out)
{
	AUTO(str_done) struct str all = { .max = body.len + 256 };
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	str_addf(&all, "%s.%lld.", id, (long long)unix_s);
	str_addn(&all, body.at, body.len);
	if (!HMAC(EVP_sha256(), key.at, (int)key.len, (const unsigned char *)str_text(&all),
	          all.len, sum, &n))
		abort(); /* a built-in digest does not fail */
	str_add(out, "v1,");
	base64_encode(sum, n, out);
}
