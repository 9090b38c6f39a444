/*
 * mocks.h - what net.mock of a spec file names: rules files and folders beside it, with the rights
 * of the caller, become texts of net.mocks (spec/mock.h).
 *
 * Nothing is followed that is a link: whoever may write there need not be able to have read what
 * the caller can. In a folder a link is an error, and so is whatever is neither file nor folder.
 */
#pragma once

#include "spec/spec.h"

/* `path` is of the spec file. */
int mocks_read(struct spec *s, const char *path, struct err *e) MUST_USE;
