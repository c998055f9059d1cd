/* SPDX-License-Identifier: MIT */
/* libcudart.c - stands in for a CUDA runtime: the error that is pending in it. fake_cudart_pending
 * may be set by a test. */
extern int fake_cudart_pending;
int fake_cudart_pending;

int cudaGetLastError(void);
int cudaGetLastError(void)
{
    int was = fake_cudart_pending;

    fake_cudart_pending = 0;
    return was;
}
