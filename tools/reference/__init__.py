# SPDX-License-Identifier: MIT
"""The reference, read from the public headers: Markdown pages and manual pages."""
