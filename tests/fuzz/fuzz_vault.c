/*
 * fuzz_vault.c - whatever comes to a vault, or from one: what passes the check can be used without
 * another.
 *
 * The first byte is the number of descriptors, the rest the packet.
 */
#include "wire/vault.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void use(const struct vault_packet *p)
{
	if (p->head.type == V_OPEN)
		for (uint32_t i = 0; i < p->open.n_layers; i++)
			sink += p->open.layers[i];
	if (p->head.type == V_RELAYER)
		for (uint32_t i = 0; i < p->relayer.n_layers; i++)
			sink += p->relayer.layers[i];
	if (p->head.type == V_FLATTEN)
		for (uint32_t i = 0; i < p->flatten.n_layers; i++)
			sink += p->flatten.layers[i];
	if (p->head.type == V_FAILED)
		sink += strlen(p->err.msg) + strlen(err_kind_name(p->err.kind));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size - 1 > sizeof(struct vault_packet))
		return 0;
	/* As large as what came, so that a read behind it is seen. */
	size_t n = size - 1;
	struct vault_packet *p = mem_alloc(n < sizeof p->head ? sizeof p->head : n);
	memcpy(p, data + 1, n);
	if (vault_check(p, n, data[0]))
		use(p);
	free(p);
	return 0;
}
