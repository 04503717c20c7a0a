"""The public interface for policies of a stand-in for Ranger's admin, as PublicAPIsv2 answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

Policy = dict[str, Any]
Answer = tuple[int, Any]
PUBLIC = "/service/public/v2/api/"


class PolicyRooms:
    """Policies of one service, which `has` keeps as its download of policies."""

    def __init__(self, has: dict[str, dict[str, Any]], service: str) -> None:
        self._has, self._service = has, service
        self.before_update: list[Callable[[], None]] = []

    @property
    def policies(self) -> list[Policy]:
        """The policies as the admin keeps them."""
        found: list[Policy] = self._has["plugins"].setdefault("policies", [])
        for number, each in enumerate(found, 1):
            each.setdefault("id", number)
            each.setdefault("service", self._service)
        return found

    def answer(self, method: str, path: str, asked: dict[str, str], sent: Policy | None) -> Answer:
        rest = path.removeprefix(PUBLIC).rstrip("/")
        if method == "GET" and rest == f"service/{self._service}/policy":
            start, size = int(asked.get("startIndex", 0)), int(asked.get("pageSize", 200))
            return 200, deepcopy(self.policies[start : start + size])
        if method == "GET" and rest == "policy":
            # An admin takes the name as a part of names in some versions.
            named = [each for each in self.policies if asked["policyName"] in str(each.get("name"))]
            return 200, deepcopy([each for each in named if each["service"] == asked["serviceName"]])
        if method == "POST" and rest == "policy" and sent is not None:
            return self._create(sent)
        number = re.fullmatch(r"policy/(\d+)", rest)
        if number is None:
            return 405, "no such method"
        found = [each for each in self.policies if each["id"] == int(number[1])]
        if not found:
            return 404, said("no policy found for id")
        if method == "DELETE":
            self.policies.remove(found[0])
            return self._changed(204, None)
        return self._update(found[0], sent or {})

    def _create(self, sent: Policy) -> Answer:
        if sent.get("service") != self._service:
            return 404, said("service not found")
        if any(each.get("name") == sent.get("name") for each in self.policies):
            return 400, said("error code[3010], reason[Another policy already exists for this name]")
        made = {**sent, "id": max((each["id"] for each in self.policies), default=0) + 1, "version": 1}
        self.policies.append(made)
        return self._changed(200, made)

    def _update(self, old: Policy, sent: Policy) -> Answer:
        if sent.get("id", old["id"]) != old["id"]:
            return 400, said("policyID mismatch")
        self.policies[self.policies.index(old)] = {**sent, "version": old.get("version", 1) + 1}
        for each in self.before_update[:1]:
            self.before_update.remove(each)
            each()
        return self._changed(200, sent)

    def _changed(self, status: int, policy: Policy | None) -> Answer:
        self._has["plugins"]["policyVersion"] = self._has["plugins"].get("policyVersion", 0) + 1
        return status, deepcopy(policy)


def said(text: str) -> dict[str, Any]:
    """The body of a refusal: a VXResponse."""
    return {"statusCode": 1, "msgDesc": text, "messageList": []}
