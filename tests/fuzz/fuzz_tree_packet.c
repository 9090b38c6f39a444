#include "wire/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the other end sends: refused, or taken apart without a byte too many. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tree_packet p;
	struct err e = { 0 };

	if (tree_packet_parse(data, size, &p, &e) < 0) {
		if (e.kind == ERR_NONE || !e.msg[0])
			abort();
		return 0;
	}
	size_t used = sizeof p.head + p.path.len + p.match.len + p.data.len;

	if (p.head.type == TREE_REQUEST)
		used += sizeof p.request;
	else if (p.head.type == TREE_ANSWER || p.head.type == TREE_END)
		used += sizeof p.answer;
	if (used != size || p.data.len != p.head.len)
		abort();
	if (p.path.len > 0 && memchr(p.path.at, 0, p.path.len))
		abort();
	if (p.answer.hash[0] && strlen(p.answer.hash) != TREE_HASH_TEXT - 1)
		abort();
	return 0;
}
