# SPDX-License-Identifier: MIT
"""Faults in what the agent of the queue does beside running commands."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "a client speaks with a listener of another user", "queue/files/socket.c",
        "    if (peer.uid != geteuid())\n",
        "    if (0)\n",
        "queue/statedir.a_listener_of_another_user"),
    Sabotage(
        "a client does not look for the saved path of the socket", "queue/files/socket.c",
        "    if (!ret || gpq_socket_saved(real, path, &second))\n",
        "    if (1)\n",
        "queue/statedir.the_saved_path_of_the_socket"),
]
