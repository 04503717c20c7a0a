"""Commands wait for executors, each once and in order."""

from __future__ import annotations

from lockgate.lookup.driver.waiting_commands import WaitingCommands
from lockgate.lookup.server.server_messages import SayCommand, StopCommand


def say(name: str, snapshot: int) -> SayCommand:
    return {"do": "say", "name": name, "message": {"op": "build", "snapshot": snapshot, "serve": True}}


STOP: StopCommand = {"do": "stop", "name": "a"}


def test_each_command_is_taken_once_in_order() -> None:
    commands = WaitingCommands()
    for command in (say("a", 1), say("b", 2), STOP):
        commands.add("1", command)
    commands.add("2", say("a", 3))
    assert commands.take("1") == [say("a", 1), say("b", 2), STOP]
    assert commands.take("1") == []
    assert commands.take("2") == [say("a", 3)]


def test_commands_for_a_lost_executor_wait_no_longer() -> None:
    commands = WaitingCommands()
    for executor in ("1", "2"):
        for command in (say("a", 1), say("b", 2)):
            commands.add(executor, command)
    commands.forget("1", "a")
    assert commands.take("1") == [say("b", 2)]
    assert commands.take("2") == [say("a", 1), say("b", 2)]
    commands.forget("3", "a")
    assert commands.take("3") == []
