/*
 * fuzz_launch.c - whatever the daemon sends: what passes the check can be used without another.
 *
 * The first byte is the number of descriptors, the rest the packet.
 */
#include "wire/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void use_order(const struct launch_packet *p)
{
	if (p->head.type == L_VAULT)
		for (size_t i = 0; i < p->vault.n_layers; i++)
			sink += p->vault.layers[i];
	if (p->head.type == L_OPEN)
		sink += strlen(launch_path(p));
	if (p->head.type != L_MAKE)
		return;
	sink += strlen(launch_text(p) + p->make.id);
	for (size_t i = 0; i < p->make.n_mounts; i++)
		sink += strlen(launch_text(p) + p->make.mounts[i].at) + p->make.mounts[i].tree;
}

static void use_answer(const struct launch_packet *p)
{
	if (p->head.type == L_MADE)
		sink += strlen(p->made.name);
	if (p->head.type == L_GONE)
		sink += strlen(p->gone.name);
	if (p->head.type == L_HOSTED)
		sink += strlen(p->host.release);
	if (p->head.type == L_FAILED)
		sink += strlen(p->err.msg) + strlen(err_kind_name(p->err.kind));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;

	if (size < 1 || size - 1 > sizeof(struct launch_packet))
		return 0;
	/* As large as what came, so that a read behind it is seen. */
	size_t n = size - 1;
	struct launch_packet *p = mem_alloc(n < sizeof p->head ? sizeof p->head : n);
	memcpy(p, data + 1, n);
	if (launch_check_order(p, n, data[0], &e) == 0)
		use_order(p);
	if (launch_check_answer(p, n, data[0], &e) == 0)
		use_answer(p);
	free(p);
	return 0;
}
