/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - checks of the queue for verb doctor: they change nothing and start no agent.
 */
#ifndef GPQ_CLIENT_DOCTOR_H
#define GPQ_CLIENT_DOCTOR_H

enum gpq_verdict { GPQ_OK, GPQ_NOTE, GPQ_PROBLEM };

struct gpq_doctor {
    const char *root; /* "", or that of the files of systemd */
    /* `remedy` may be NULL. */
    void (*finding)(enum gpq_verdict verdict, const char *name, const char *remedy,
                    const char *text, void *user);
    void *user;
};

void gpq_doctor(const struct gpq_doctor *d);

#endif
