# SPDX-License-Identifier: MIT
"""Faults in lib/device/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "the loader's words are read in the host's language", "lib/device/nvml.c",
        "before = uselocale(plain);",
        "before = uselocale((locale_t)0);",
        "unit/nvml.no_library_in_another_language"),
    # ---- devices: choice and judgement ----
    Sabotage(
        "the list of visible devices is not cut", "lib/device/visible.c",
        "            break; /* the list is cut here, as CUDA does */\n",
        "            continue;\n",
        "unit/select.visible"),
    Sabotage(
        "visible numbers count in the order of the enumeration", "lib/device/numbers.c",
        "(other < own || (other == own && i < place))",
        "((void)own, (void)other, i < place)",
        "unit/select.visible_in_pci_order"),
    Sabotage(
        "a GPU is taken twice", "lib/device/select.c",
        "    else if (c->owner[place])\n",
        "    else if (c->owner[place] > 1000)\n",
        "unit/select.twice"),
    Sabotage(
        "a GPU in MIG mode is taken as a whole", "lib/device/select.c",
        "    return !gpi_device_is_instance(d) && d->mig_parts != 0;\n",
        "    return false && d->mig_parts != 0;\n",
        "unit/select.instances"),
    Sabotage(
        "hidden devices are chosen by UUID", "lib/device/select.c",
        "        if (visible_number(c, places[i]) != GPI_NO_ROW)\n",
        "        if (visible_number(c, places[i]) != 77)\n",
        "unit/select.visible"),
    Sabotage(
        "what cannot be read is healthy", "lib/device/health_state.c",
        "    gpi_health_enter(h, h->readable ? GPUD_HEALTH_HEALTHY : GPUD_HEALTH_UNKNOWN, now);\n",
        "    gpi_health_enter(h, GPUD_HEALTH_HEALTHY, now);\n",
        "unit/health_walks.random_walks"),
    Sabotage(
        "one canary brings a device back", "lib/device/health.c",
        "    } else if (h->passes < p->passes) {\n",
        "    } else if (h->passes < 1) {\n",
        "unit/health.back_by_canaries"),
    Sabotage(
        "canaries outrank the driver's word", "lib/device/health.c",
        "    if (h->speaks_against) { /* the evidence stays */\n",
        "    if (h->speaks_against && h->passes < p->passes) {\n",
        "unit/health.word_forbids"),
    Sabotage(
        "a reading from before the fault clears it", "lib/device/health.c",
        "if (is_cpu(h) || (h->fault_at && s->at <= h->fault_at))",
        "if (is_cpu(h))",
        "unit/health.old_readings"),
    Sabotage(
        "an incident that is still to come makes every reading an old one", "lib/device/health.c",
        "if (at > gpi_time_add(now, p->stale))",
        "if (at > gpi_time_add(now, p->stale) && at < now)",
        "unit/health.an_incident_that_is_still_to_come"),
    Sabotage(
        "a canary is owed where there are none", "lib/device/health_state.c",
        "h->canary_due = p->passes > 0;",
        "h->canary_due = true;",
        "unit/health_walks.a_way_back_without_canaries"),
    Sabotage(
        "our own kill is a fault of the device", "lib/device/health.c",
        "    return (xid == 43 || xid == 45) && "
        "h->killed_at && now - h->killed_at < p->own_kill;\n",
        "    return xid == 0 && h->killed_at && now - h->killed_at < p->own_kill;\n",
        "unit/health.our_own_kills"),
    Sabotage(
        "the waits for a device do not double", "lib/device/health_state.c",
        "h->tries, p->backoff_cap);",
        "h->tries ? 0 : 0, p->backoff_cap);",
        "unit/health.waits_double"),
    Sabotage(
        "a lost device is never looked at again", "lib/device/health_state.c",
        "    h->look_at = canary ? GPI_NEVER : at;\n",
        "    h->look_at = GPI_NEVER;\n",
        "unit/health_walks.a_way_back_from_anywhere"),
    Sabotage(
        "a lost GPU leaves its instances in use", "lib/device/kin.c",
        "    if (!gpi_device_is_instance(at) || i->kind != GPI_INCIDENT_XID)\n"
        "        return true;\n",
        "    if (!gpi_device_is_instance(at) && i->kind != GPI_INCIDENT_XID)\n"
        "        return true;\n",
        "unit/kin.concerns"),
    Sabotage(
        "a context switch that timed out is ignored", "lib/device/xid.c",
        "X(109, 109, RESET,",
        "X(109, 109, IGNORE,",
        "unit/xid.against_common_lists"),
    # ---- where devices are read from ----
    Sabotage(
        "a question is asked before the XID is told", "lib/device/nvml_await.c",
        "            ear->look[i] = true;\n",
        "            look(s, i);\n",
        "unit/nvml_await.xid_of_a_device_that_hangs"),
    Sabotage(
        "no state is read behind registration", "lib/device/nvml_await.c",
        "    ear->look[row] |= !ear->out[row];\n",
        "",
        "unit/nvml_await.state_behind_registration"),
    Sabotage(
        "one failed wait makes deaf", "lib/device/nvml_await.c",
        "if (!found && ear->failed_before) {",
        "if (!found) {",
        "unit/nvml_await.waits_that_fail"),
    Sabotage(
        "a GPU that is to be reset is waited for as if all were well", "lib/device/nvml_await.c",
        "    ear->missed |= ear->out[row];\n",
        "    ear->missed |= reading == GPI_READ_LOST;\n",
        "unit/nvml_await.reset_and_back"),
    Sabotage(
        "while one GPU is lost all are registered every second", "lib/device/nvml_await.c",
        "if (ear->back)",
        "if (ear->back || ear->missed)",
        "unit/nvml_await.a_lost_device_costs_little"),
    Sabotage(
        "an index that cannot be opened ends the enumeration", "lib/device/nvml.c",
        "        list_opened(l, handle, i, code);\n",
        "        list_opened(l, handle, i, code);\n        if (code)\n            break;\n",
        "unit/nvml.indices_that_cannot_be_opened"),
    Sabotage(
        "early 535 drivers are asked for what they write wrongly", "lib/device/nvml.c",
        "s->second_process_list = major == 535 && minor < 104;",
        "s->second_process_list = major == 535 && minor < 4;",
        "unit/nvml_sample.processes_of_535"),
    Sabotage(
        "all process entries have 24 bytes", "lib/device/nvml_sample.c",
        "return wide > narrow ? 32 : 24;",
        "return wide > narrow ? 24 : 24;",
        "unit/nvml_sample.processes_in_32_bytes"),
    Sabotage(
        "the driver's reserve counts for nobody", "lib/device/nvml_sample.c",
        "two.free, two.used + two.reserved);",
        "two.free, two.used);",
        "unit/nvml_sample.values_of_a_sample"),
    Sabotage(
        "a field that is not available is zero", "lib/device/nvml_sample.c",
        "ret[i] = value < GPI_UNKNOWN32 ? (uint32_t)value : GPI_UNKNOWN32;",
        "ret[i] = value < GPI_UNKNOWN32 ? (uint32_t)value : 0;",
        "unit/nvml_sample.values_of_a_sample"),
    Sabotage(
        "a lost GPU is one that cannot be read", "lib/device/driver.c",
        "    case GPI_NVML_GPU_IS_LOST:\n",
        "",
        "unit/nvml_sample.what_codes_mean"),
    Sabotage(
        "of two lines of a script the upper one counts", "lib/device/fake/script.c",
        "(at->time == l->time && at->line > l->line)",
        "(at->time == l->time && at->line < l->line)",
        "unit/script.the_later_line_counts"),
    Sabotage(
        "a file of a script is seen again and again", "lib/device/fake/script.c",
        "if (fired[i] == GPI_NEVER && !access(",
        "if (!access(",
        "unit/script.files_are_waited_for"),
    Sabotage(
        "instances hear nothing of their GPU", "lib/device/kin.c",
        "    if (!are_on_one_gpu(at, d))\n",
        "    if (!are_on_one_gpu(at, d) || gpi_device_is_part_of(d, at))\n",
        "unit/kin.concerns"),
    Sabotage(
        "the script of a fake begins when it is opened", "lib/device/fake/fake.c",
        "    f->zero = zero;\n",
        "    f->zero = gpi_now();\n",
        "unit/fake.counts_from_its_zero"),
    Sabotage(
        "a GPU in MIG mode without instances is a whole one", "lib/device/nvml.c",
        "    parent->mig_parts = GPI_UNKNOWN32; /* until it has some it runs nothing */\n",
        "",
        "unit/nvml.mig_mode_without_instances"),
]
