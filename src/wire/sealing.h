/*
 * sealing.h - what `caisson secret` says to the program that seals for it (gate/sealing.h).
 */
#pragma once

#include "wire/seal.h"

struct sealing_head {
	uint8_t key[SEAL_KEY_BYTES]; /* public, of the gate */
	uint32_t aad_len, zero;
};
