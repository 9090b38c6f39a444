/* Any bytes as the end of a zip archive and as its directory: what is accepted lies within. */
#include <stdlib.h>

#include "wire/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span all = { (const char *)data, size };
	struct zip_end end;
	struct zip_entry entry;
	struct err e = { 0 };

	if (zip_end(all, size, &end, &e) < 0)
		return 0;
	if (end.at + end.len > size)
		abort();
	struct span rest = { all.at + end.at, (size_t)end.len };
	while (zip_next(&rest, &entry, &e) > 0) {
		if (entry.name.at < all.at || entry.name.at + entry.name.len > all.at + size)
			abort();
		if (entry.at + ZIP_LOCAL_BYTES <= size)
			(void)!zip_local(all.at + entry.at, &e);
	}
	return 0;
}
