#pragma once
#include "core/sandbox.h"
static inline void gate_took(struct sbx *s, uint64_t at)
{
	(void)s;
	(void)at;
}
