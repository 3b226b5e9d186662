/*
 * An addon that reads behind a block as it is loaded: `make test-asan` must find it, else it finds nothing at all.
 */
#define NAPI_VERSION 8
#include <node_api.h>
#include <stdlib.h>

NAPI_MODULE_INIT()
{
    volatile char *block = malloc(8);
    napi_value sum = NULL;

    block[7] = 1;
    napi_create_int32(env, block[7] + block[8], &sum);
    free((void *)block);
    return sum ? exports : NULL;
}
