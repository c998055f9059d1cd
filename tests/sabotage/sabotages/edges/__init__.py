# SPDX-License-Identifier: MIT
"""Faults that new users, adversaries and real drivers met, one of each: the mend is undone."""

from . import api, devices, faults, speed

SABOTAGES = [sabotage for area in (api, faults, devices, speed) for sabotage in area.SABOTAGES]
