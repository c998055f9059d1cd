# SPDX-License-Identifier: MIT
"""Dispatch of tasks to worker processes, one per GPU or CPU slot."""

__version__ = "0.1.0"
