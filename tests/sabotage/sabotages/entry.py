# SPDX-License-Identifier: MIT
"""What a sabotage is."""

from collections import namedtuple

Sabotage = namedtuple("Sabotage", "name file old new test")
