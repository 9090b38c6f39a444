#include "wire/zip.h"

#define END_BYTES 22u
#define END_MARK 0x06054b50u
#define CENTRAL_MARK 0x02014b50u
#define LOCAL_MARK 0x04034b50u
#define FLAG_ENCRYPTED 1u

static uint32_t number(const char *at, size_t bytes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n |= (uint32_t)(unsigned char)at[i] << (8 * i);
	return n;
}

int zip_end(struct span tail, uint64_t size, struct zip_end *out, struct err *e)
{
	size_t at = tail.len;

	/* The last one whose comment reaches to the end. */
	for (; at >= END_BYTES; at--) {
		const char *p = tail.at + at - END_BYTES;

		if (number(p, 4) == END_MARK && number(p + 20, 2) == tail.len - at)
			break;
	}
	if (at < END_BYTES)
		return err_new(e, ERR_INVALID, "it is not a zip archive");
	const char *p = tail.at + at - END_BYTES;
	*out = (struct zip_end){ .entries = number(p + 10, 2),
		                 .len = number(p + 12, 4),
		                 .at = number(p + 16, 4) };
	if (number(p + 4, 2) != 0 || number(p + 6, 2) != 0 || number(p + 8, 2) != out->entries)
		return err_new(e, ERR_INVALID, "a zip archive of several parts");
	if (out->entries == 0xffff || out->len == UINT32_MAX || out->at == UINT32_MAX)
		return err_new(e, ERR_INVALID, "a Zip64 archive, which is not taken");
	if (out->at + out->len > size)
		return err_new(e, ERR_INVALID, "a zip archive that is not whole");
	return 0;
}

int zip_next(struct span *directory, struct zip_entry *out, struct err *e)
{
	struct span d = *directory;

	if (d.len == 0)
		return 0;
	if (d.len < ZIP_CENTRAL_BYTES || number(d.at, 4) != CENTRAL_MARK)
		return err_new(e, ERR_INVALID, "the directory of the zip archive is broken");
	size_t name = number(d.at + 28, 2);
	size_t whole = ZIP_CENTRAL_BYTES + name + number(d.at + 30, 2) + number(d.at + 32, 2);
	uint32_t method = number(d.at + 10, 2);

	if (d.len < whole)
		return err_new(e, ERR_INVALID, "the directory of the zip archive is broken");
	*out = (struct zip_entry){ .name = { d.at + ZIP_CENTRAL_BYTES, name },
		                   .method = (enum zip_method)method,
		                   .crc = number(d.at + 16, 4),
		                   .packed = number(d.at + 20, 4),
		                   .size = number(d.at + 24, 4),
		                   .at = number(d.at + 42, 4) };
	if (number(d.at + 8, 2) & FLAG_ENCRYPTED ||
	    (method != ZIP_STORED && method != ZIP_DEFLATED))
		return err_new(e, ERR_INVALID,
		               "an entry that is encrypted, or packed in a way "
		               "that is not taken");
	if (out->packed == UINT32_MAX || out->size == UINT32_MAX || out->at == UINT32_MAX)
		return err_new(e, ERR_INVALID, "a Zip64 archive, which is not taken");
	if (method == ZIP_STORED && out->packed != out->size)
		return err_new(e, ERR_INVALID, "the directory of the zip archive is broken");
	*directory = span_after(d, whole);
	return 1;
}

int zip_local(const void *head, struct err *e)
{
	const char *p = head;

	if (number(p, 4) != LOCAL_MARK)
		return err_new(e, ERR_INVALID,
		               "an entry of the zip archive is not where it should be");
	return (int)(number(p + 26, 2) + number(p + 28, 2));
}
