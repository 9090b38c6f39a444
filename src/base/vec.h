/*
 * vec.h - a growing array: VEC(struct thing) things = { 0 };
 */
#pragma once

#include "base/base.h"

#define VEC(T)                                                                                     \
	struct {                                                                                   \
		T *at;                                                                             \
		size_t len, cap;                                                                   \
	}

#define vec_push(v, ...)                                                                           \
	do {                                                                                       \
		if ((v)->len == (v)->cap) {                                                        \
			(v)->cap = (v)->cap ? (v)->cap * 2 : 8;                                    \
			(v)->at = mem_grow((v)->at, (v)->cap * sizeof *(v)->at);                   \
		}                                                                                  \
		(v)->at[(v)->len++] = (__VA_ARGS__);                                               \
	} while (0)

#define vec_done(v)                                                                                \
	do {                                                                                       \
		free((v)->at);                                                                     \
		(v)->at = NULL;                                                                    \
		(v)->len = (v)->cap = 0;                                                           \
	} while (0)
