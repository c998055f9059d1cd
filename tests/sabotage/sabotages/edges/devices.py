# SPDX-License-Identifier: MIT
"""Edges C: what real drivers and machines do."""

from ..entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges C4: a GPU with the machine's memory cannot be read", "lib/device/nvml_sample.c",
        "gpi_nvml_verdict(&s->call, row->gpu, memory(s, row->handle, ret));",
        "memory(s, row->handle, ret);",
        "proc/monitor_nvml.nvml_memory_of_the_machine"),
    Sabotage(
        "edges C4: a call that is refused judges the GPU", "lib/device/nvml_sample.c",
        "    return decides(code) ? code : call->uuid(gpu, uuid, sizeof(uuid));\n",
        "    (void)uuid;\n    return code;\n",
        "unit/nvml_sample.memory_of_the_machine"),
    Sabotage(
        "edges C4: who has the machine's memory is never found lost", "lib/device/nvml_await.c",
        "gpi_nvml_verdict(&s->call, gpu, s->call.memory(gpu, &memory))",
        "s->call.memory(gpu, &memory)",
        "unit/nvml_await.lost_with_the_memory_of_the_machine"),
    Sabotage(
        "edges C4: NVML is asked for the NUMA node", "lib/device/nvml.c",
        "    d->numa_node = gpi_numa_node(\"\", d->pci);\n",
        "    ((int (*)(void *, uint32_t *))"
        "dlsym(dlopen(\"libnvidia-ml.so.1\", RTLD_NOW), \"nvmlDeviceGetNumaNodeId\"))"
        "(handle, &d->numa_node);\n",
        "unit/nvml.node_of_its_own_memory"),
    Sabotage(
        "edges C4: a long PCI domain is cut", "lib/device/numa.c",
        "                   domain, bus, device, function);",
        "                   domain & 0xffff, bus, device, function);",
        "unit/numa.node_beside_a_gpu"),
    Sabotage(
        "edges C6: a monitor clears what a canary would have to", "lib/device/health.c",
        "    if (!spoke && p->looks_only && h->by_xid)\n        return GPI_MEASURE_NONE;\n",
        "",
        "proc/monitor.looker_clears_no_xid"),
    Sabotage(
        "edges C6: workers are processes like any other", "lib/api/monitor.c",
        "    r.worker = gpi_process_is_worker(name);\n",
        "    r.worker = 0;\n",
        "proc/gpus.monitor_knows_workers"),
    Sabotage(
        "edges C6: only one GPU that cannot be opened is named", "lib/device/driver.c",
        "    if (u->n < GPI_UNOPENED_NAMED) {\n",
        "    if (!u->n) {\n",
        "unit/nvml.indices_that_cannot_be_opened"),
    Sabotage(
        "edges C6: gpus ends well where a GPU is lost", "tools/gpudispatch/gpus.c",
        "        if (row_is_out(&l->row[i]))\n",
        "        if (row_is_out(&l->row[i]) && l->driver.lost)\n",
        "tools/gpus.lost_and_reset_are_named"),
    Sabotage(
        "edges C6: gpus ends well where a GPU could not be opened", "tools/gpudispatch/gpus.c",
        "    if (l->driver.lost)\n",
        "    if (l->driver.lost && !l->driver.gpus)\n",
        "tools/gpus.lost_and_reset_are_named"),
    Sabotage(
        "edges C6: heat of a HEALTHY row is not shown", "tools/gpudispatch/gpus.c",
        "        if (row_fact(r, (enum fact)i, text, sizeof text))\n",
        "        if (r->health != GPUD_HEALTH_HEALTHY && "
        "row_fact(r, (enum fact)i, text, sizeof text))\n",
        "tools/gpus.facts_of_healthy_rows"),
    Sabotage(
        "edges C6: who else uses a GPU is not listed", "tools/gpudispatch/gpus.c",
        "        if (!u->user[i].worker)\n",
        "        if (u->user[i].worker)\n",
        "tools/gpus.processes"),
    Sabotage(
        "edges C6: the versions do not stand on top", "tools/gpudispatch/gpus.c",
        "    put_versions(&l->driver);\n",
        "    if (!l->n)\n        put_versions(&l->driver);\n",
        "tools/gpus.table"),
    Sabotage(
        "edges C6: doctor --gpu is content with a lost one", "tools/gpudispatch/doctor_devices.c",
        "    if (d->gpu && !usable(&d->look))\n",
        "    if (d->gpu && !usable(&d->look) && !d->look.n)\n",
        "tools/doctor.gpu_must_be_usable"),
    Sabotage(
        "edges C6: exclusive mode is noted without its effect",
        "tools/gpudispatch/doctor_devices.c",
        ", so a canary and \"\n                \"a worker exclude each other\");",
        "\");",
        "tools/doctor.each_fault"),
    Sabotage(
        "edges C7: numbers are certain where the driver lists others", "lib/device/numbers.c",
        "count_before(address(gpu->pci), directory) == number;",
        "count_before(address(gpu->pci), directory) != UINT32_MAX;",
        "proc/visible.driver_lists_others"),
    Sabotage(
        "edges C7: NVML's own numbers are CUDA's", "lib/device/numbers.c",
        " && gpu->index == number &&\n",
        " &&\n",
        "proc/visible.machine_in_another_order"),
    Sabotage(
        "edges C7: the first start decides for all", "lib/host/numbers.c",
        "    p->visible = GPUD_VISIBLE_UUID;\n",
        "    if (s->incarnation)\n        return;\n    p->visible = GPUD_VISIBLE_UUID;\n",
        "proc/visible.each_start_decides"),
    Sabotage(
        "edges C7: numbers are certain beside a lost GPU", "lib/host/numbers.c",
        "health.state == GPUD_HEALTH_LOST",
        "health.state == GPUD_HEALTH_COUNT",
        "proc/visible.gpu_that_is_lost"),
    Sabotage(
        "edges C7: a lost GPU with a monitor of its own does not count", "lib/host/numbers.c",
        "        if (k->here && k->health.state",
        "        if (k->here && !d->dev.gauge[k->gauge]->single && k->health.state",
        "proc/visible.gpu_that_is_lost_and_let_go"),
    Sabotage(
        "edges C7: another monitor forgets a wrong number", "lib/host/reset.c",
        "        k->silent = false;\n        k->health.deaf",
        "        k->silent = k->doubted = false;\n        k->health.deaf",
        "proc/visible.wrong_number_is_remembered_by_the_next_monitor"),
    Sabotage(
        "edges C7: an MPS daemon counts as the machine does", "lib/keeper/surroundings.c",
        "has_mps() ? GPUD_VISIBLE_UUID",
        "has_mps() ? GPUD_VISIBLE_INDEX",
        "proc/visible.mps_has_numbers_of_its_own"),
    Sabotage(
        "edges C7: a wrong number is tried again and again", "lib/worker/cuda.c",
        "    else if (c.others && by_number(&c))\n        atomic_store(&page->miscounted, 1);\n",
        "",
        "proc/visible.wrong_number_is_not_tried_again"),
    Sabotage(
        "edges C7: a worker on another GPU goes on", "lib/worker/cuda.c",
        "    if (!strncasecmp(digits_of(given), seen, UUID_TEXT - 1))\n",
        "    if (by_number(c) || !strncasecmp(digits_of(given), seen, UUID_TEXT - 1))\n",
        "proc/visible.wrong_number_runs_nothing"),
    Sabotage(
        "edges C7: an instance gets the number of a GPU", "lib/api/devices.c",
        "gpi_choice_pooled(&c, e) : gpi_choice_visible(&c, class->set.visible, e);\n",
        "gpi_choice_pooled(&c, e) : 0;\n",
        "proc/visible.instances_have_no_number"),
    Sabotage(
        "edges C7: numbers lose the order of the set", "lib/host/numbers.c",
        "        p->number[i] = d->dev.row[s->devices[i]].number;\n",
        "        p->number[s->n_devices - 1 - i] = d->dev.row[s->devices[i]].number;\n",
        "proc/visible.numbers_where_all_agree"),
    Sabotage(
        "edges C1: a sticky error goes by the driver's name", "lib/worker/cuda_calls.c",
        '{ code, sticky, "cudaError" #name, advice }',
        '{ code, sticky, "CUDA_ERROR_" #name, advice }',
        "gpu/gpu_faults_rehearsed.illegal_address"),
    Sabotage(
        "edges C1: a sticky error does not end the worker", "lib/worker/fault.c",
        "    if (found == GPI_CUDA_ERROR)\n        return false;\n    snprintf(p->fault_text",
        "    if (found != GPI_CUDA_FINE)\n        return false;\n    snprintf(p->fault_text",
        "gpu/gpu_faults_rehearsed.device_assert"),
    Sabotage(
        "edges C8: a row has no XIDs", "lib/device/row.c",
        "    ret->xids = h->xids;\n",
        "",
        "gpu/gpu_nvml_rehearsed.xid_is_heard"),
    Sabotage(
        "edges C8: the memory of workers is not added up", "lib/host/devices.c",
        "            r->memory_ours += memory;",
        "            r->memory_ours = memory;",
        "gpu/gpu_nvml_rehearsed.workers_are_listed"),
    Sabotage(
        "edges C2: a recovery action that is not known is harmless", "lib/device/health.c",
        " && recovery != GPUD_RECOVERY_IMEX &&\n           recovery != GPI_UNKNOWN32;\n",
        " && recovery < GPUD_RECOVERY_IMEX;\n",
        "unit/health.every_recovery_action"),
    Sabotage(
        "edges C2: a recovery action without a name does not reach the host", "lib/wire/reading.c",
        "        return i->number < GPI_UNKNOWN32;",
        "        return i->number <= GPUD_RECOVERY_IMEX;",
        "unit/reading.only_words_with_a_meaning"),
    Sabotage(
        "edges C3: what cannot be opened any more is not judged", "lib/host/readings.c",
        "    if (g->single && g->m.driver.unopened) {\n",
        "    if (false) {\n",
        "proc/resets.lost_while_it_waits"),
    Sabotage(
        "edges C7: a wrong number fails a canary", "lib/host/keeper.c",
        "    if (atomic_load(&s->ch.page->miscounted))\n",
        "    if (false)\n",
        "proc/visible.wrong_number_is_no_failed_canary"),
    Sabotage(
        "edges C3: the monitor keeps a GPU that waits for a reset", "lib/host/reset.c",
        "            return !may_go(d, pci);\n",
        "            return true;\n",
        "proc/resets.open_nowhere_while_it_waits"),
    Sabotage(
        "edges C3: a GPU that nobody uses here stays open", "lib/host/reset.c",
        "            return !may_go(d, pci);\n    return false;\n",
        "            return !may_go(d, pci);\n    return true;\n",
        "proc/resets.open_only_where_used"),
    Sabotage(
        "edges C3: a look at a GPU that waits does not end", "lib/host/reset.c",
        "    if (may_go(d, g->script)) {\n",
        "    if (g->m.fd < 0 && may_go(d, g->script)) {\n",
        "proc/resets.a_look_at_each_step"),
    Sabotage(
        "edges C3: the heir opens all GPUs", "lib/device/nvml.c",
        "        if (s->only)\n            list_only(&l);\n        else\n",
        "",
        "proc/resets.open_nowhere_while_it_waits"),
    Sabotage(
        "edges C3: nobody hears of the other GPUs", "lib/host/readings.c",
        "if (incident.kind == GPI_INCIDENT_DEAF || !gpi_reset_waits(d, gauge))\n",
        "if (incident.kind == GPI_INCIDENT_DEAF || !g->script)\n",
        "proc/resets.open_nowhere_while_it_waits"),
    Sabotage(
        "edges C3: a GPU is let go of under its task", "lib/host/reset.c",
        "        if (!gpi_health_waits(&k->health) || !is_settled(d, k) || has_workers(d, i))\n",
        "        if (!gpi_health_waits(&k->health) || !is_settled(d, k) || "
        "(has_workers(d, i) && !k->id.pci[0]))\n",
        "proc/resets.the_only_one_after_its_task"),
    Sabotage(
        "edges C3: an XID that asks for a reset keeps the GPU open", "lib/device/health.c",
        "    return gpi_health_is_out(h) && (h->speaks_against || h->by_xid);\n",
        "    return gpi_health_is_out(h) && h->speaks_against;\n",
        "proc/resets.by_the_xid_alone"),
    Sabotage(
        "edges C5: a kind of events that is refused takes the XIDs with it",
        "lib/device/nvml_await.c",
        "        if (!code || code == GPI_NVML_UNKNOWN || says_out(code))\n"
        "            return code;\n",
        "        return code;\n",
        "unit/nvml_await.xids_alone"),
    Sabotage(
        "edges C5: events that were refused are never asked for again", "lib/device/nvml_await.c",
        "    if (code && !is_final(code))\n        ear->again_at",
        "    if (code && is_final(code))\n        ear->again_at",
        "unit/nvml_await.refused_and_allowed"),
    Sabotage(
        "edges C5: a set of events is kept after code 999", "lib/device/nvml_await.c",
        "        ear->spoilt = true;\n",
        "        ear->spoilt = false;\n",
        "unit/nvml_await.a_set_that_is_spoilt"),
    Sabotage(
        "edges C5: MPS errors have no advice", "lib/worker/cuda_abi.h",
        "X(805, MpsConnectionFailed,",
        "X(1805, MpsConnectionFailed,",
        "unit/cuda.drivers_that_do_not_start"),
    Sabotage(
        "edges C5: WSL2 and Tegra get the texts of a common machine", "lib/device/driver.c",
        "    if (is_there(root, \"/dev/dxg\"))\n",
        "    if (is_there(root, \"/dev/dxg0\"))\n",
        "unit/nvml.no_common_machine"),
    Sabotage(
        "edges C3: an heir that dies takes the others with it", "lib/host/monitors.c",
        "    g->takes_over = GPI_NO_GAUGE; /* this heir ends",
        "    if (g->takes_over != GPI_NO_GAUGE)\n        gpi_reset_part(d, g->takes_over, i);\n"
        "    g->takes_over = GPI_NO_GAUGE; /* this heir ends",
        "proc/resets.the_heir_dies"),
    Sabotage(
        "edges C3: a parting loses the reading that a start waits for", "lib/host/reset.c",
        "        if (place != GPI_UNKNOWN32) /* a reading",
        "        if (false) /* a reading",
        "proc/resets.a_wait_for_memory_outlives_the_old_one"),
    Sabotage(
        "edges C3: a GPU without an address is never let go of", "lib/host/reset.c",
        "const char *pci = address_of(d, &m->device[x]);",
        "const char *pci = m->device[x].pci;",
        "proc/resets.the_heir_does_not_know_where"),
    Sabotage(
        "edges C5: the deafness of the old monitor stays", "lib/host/reset.c",
        "        k->health.deaf = false;     /* the next",
        "        k->silent = false; /* the next",
        "proc/resets.the_heir_hears_more"),
    Sabotage(
        "edges C5: what is heard during create is dropped", "lib/api/choose.c",
        "c->gauge->early[c->gauge->n_early++] = incident;",
        "c->gauge->early[c->gauge->n_early] = incident;",
        "proc/resets.deaf_from_the_start"),
    Sabotage(
        "edges C5: waits that have failed twice are the end of it", "lib/device/nvml_await.c",
        "        ear->heard = 0;\n        refused_all(s, code);\n",
        "        give_up(s, code);\n",
        "unit/nvml_await.waits_that_fail"),
    Sabotage(
        "edges C6: a GPU of which nothing is known counts as usable",
        "tools/gpudispatch/doctor_devices.c",
        "(r->health == GPUD_HEALTH_HEALTHY || r->health == GPUD_HEALTH_SUSPECT)",
        "(!row_is_out(r) && r->health != GPUD_HEALTH_REVOKED)",
        "tools/doctor.gpu_must_be_usable"),
]
