// What the files of this sample share.
#pragma once

#include "stepscope_plugin.h"

#define GATED_DOMAIN "sample"
#define GATED_PARTS 16  // rows are cut into so many, whatever the number of threads

extern const ssp_pass fuse_gated_rms_norm;  // pass.c
extern const ssp_option least_columns;
