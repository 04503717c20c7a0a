"""Hosts on this machine: network namespaces with addresses of their own, joined by a bridge in the first."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

NETWORK = "10.231.77"


def missing() -> str | None:
    """Return why this machine can have none, or None."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and iproute2 for network namespaces"
    probe = f"lockgate-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", probe], check=True)
    return None


class Hosts:
    """So many hosts; the first has the address NETWORK.1, and each reaches all others and nothing else."""

    def __init__(self, count: int) -> None:
        self.names = [f"lockgate-{os.getpid()}-{number}" for number in range(count)]
        front = self.names[0]
        try:
            for name in self.names:
                _ip("netns", "add", name)
                _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", front, "link", "add", "bridge", "type", "bridge")
            _ip("-n", front, "addr", "add", f"{self.address(0)}/24", "dev", "bridge")
            _ip("-n", front, "link", "set", "bridge", "up")
            for number, name in enumerate(self.names[1:], 1):
                port = f"port{number}"
                _ip("-n", front, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
                _ip("-n", front, "link", "set", port, "master", "bridge", "up")
                _ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
                _ip("-n", name, "link", "set", "eth0", "up")
        except subprocess.CalledProcessError:
            self.close()
            raise

    def address(self, number: int) -> str:
        """Return the address of a host."""
        return f"{NETWORK}.{number + 1}"

    def command(self, number: int, *command: str) -> list[str]:
        """Return a command that runs on a host."""
        return ["ip", "netns", "exec", self.names[number], *command]

    def kill(self, number: int) -> int:
        """Kill every process of a host, as when its power fails; return how many there were."""
        found = subprocess.run(
            ["ip", "netns", "pids", self.names[number]], capture_output=True, text=True, check=True
        ).stdout.split()
        for process in found:
            os.kill(int(process), signal.SIGKILL)
        return len(found)

    def close(self) -> None:
        """Kill what still runs on the hosts, and remove them."""
        there = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        for number, name in enumerate(self.names):
            if name in there:
                self.kill(number)
                _ip("netns", "del", name)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)
