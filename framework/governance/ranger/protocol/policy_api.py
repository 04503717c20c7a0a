"""Policies of a service, found and changed through the REST interface of Ranger's admin.

Source: Ranger's PublicAPIsv2 (`/service/public/v2/api`) and ServiceREST (grant and revoke).
"""

from __future__ import annotations

import http
import urllib.parse
from collections.abc import Mapping
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import NotFoundError, PolicyError
from lockgate.framework.governance.ranger.policies.grant_changes import GrantChange, extended, policy_of
from lockgate.framework.governance.ranger.protocol.admin_client import AdminClient, as_it_is
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.net import HttpAnswer, NoAnswerError, UnusableAnswerError

Policy = dict[str, Any]
_POLICY = "/service/public/v2/api/policy"
_PAGE = 200
# Others may change the same policy between a look at it and its update.
_TRIES = 4
_ANSWERS = {
    http.HTTPStatus.UNAUTHORIZED: "does not know this client",
    http.HTTPStatus.FORBIDDEN: "does not let this client",
}


@checked_arguments
class PolicyApi:
    """The policies of one service; a policy is a document in Ranger's JSON.

    All methods raise AdminError (a StorageError) if the admin does not answer or refuses. It answers only
    clients that it knows, except for `grant` and `revoke`.
    """

    def __init__(self, settings: AdminSettings) -> None:
        self._settings, self._admins = settings, settings.client()
        self._client = AdminClient(settings)

    def find(self, name: str) -> Policy | None:
        """Return the policy of a name, None if there is none."""
        # As a parameter, since servers refuse a path with an encoded slash, which names may have.
        named = {"serviceName": self._settings.service, "policyName": name}
        for each in self._list(_POLICY, named):
            if each.get("name") == name and each.get("service") == self._settings.service:
                return each
        return None

    def all(self) -> list[Policy]:
        """Return all policies of the service."""
        service = urllib.parse.quote(self._settings.service, safe="")
        path, found = f"/service/public/v2/api/service/{service}/policy", dict[int, Policy]()
        while True:
            page = self._list(path, {"startIndex": str(len(found)), "pageSize": str(_PAGE)})
            fresh = {int(each["id"]): each for each in page if int(each["id"]) not in found}
            found.update(fresh)
            if not fresh or len(page) < _PAGE:
                return list(found.values())

    def create(self, policy: Mapping[str, Any]) -> Policy:
        """Make a policy, and return it as the admin keeps it, with its `id`."""
        made = {**policy, "service": self._settings.service}
        return self._changed(self._send("POST", _POLICY, made), f"create policy {policy.get('name')!r}")

    def update(self, policy: Mapping[str, Any]) -> Policy:
        """Put a policy in the place of the one with its `id`; NotFoundError if there is none."""
        what = f"update policy {policy.get('name')!r}"
        return self._changed(self._send("PUT", f"{_POLICY}/{int(policy['id'])}", policy), what)

    def delete(self, name: str) -> None:
        """Delete the policy of a name; NotFoundError if there is none."""
        found = self.find(name)
        if found is None:
            raise NotFoundError(f"service {self._settings.service!r} has no policy {name!r}")
        answer = self._send("DELETE", f"{_POLICY}/{int(found['id'])}")
        if answer.status not in (http.HTTPStatus.NO_CONTENT, http.HTTPStatus.OK):
            raise self._refusal(answer, f"delete policy {name!r}")

    def create_or_extend(self, name: str, change: GrantChange) -> Policy:
        """Give what a change says by the policy of a name: an item is added for what this does not give.

        A policy is made if there is none of the name. Raises PolicyError if the policy is about another
        resource, or does not allow access there without a condition.
        """
        for _ in range(_TRIES):
            found = self.find(name)
            if found is None:
                try:
                    return self.create(policy_of(name, change))
                except AdminError:
                    if self.find(name) is None:
                        raise
                    continue
            wanted = extended(found, change)
            if wanted is None:
                return found
            self.update(wanted)
        raise PolicyError(f"policy {name!r} lacks the change: others change it at the same time; try again")

    def grant(self, change: GrantChange) -> None:
        """Have the admin put a grant in a policy of its choice, in the name of the grantor."""
        self._client.change("grant", change.to_ranger())

    def revoke(self, change: GrantChange) -> None:
        """Have the admin take a grant back, in the name of the grantor."""
        self._client.change("revoke", change.to_ranger())

    def _list(self, path: str, parameters: Mapping[str, str]) -> list[Policy]:
        try:
            return self._admins.ask("GET", path, _policies, parameters=parameters)
        except NoAnswerError as error:
            raise AdminError(f"no policies from Ranger's admin: {error}") from error

    def _send(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> HttpAnswer:
        """Ask one admin, the first that can be reached: another might do again what this one has done."""
        try:
            return self._admins.ask(method, path, as_it_is, document=document, repeatable=False)
        except NoAnswerError as error:
            raise AdminError(f"no answer of Ranger's admin: {error}") from error

    def _changed(self, answer: HttpAnswer, what: str) -> Policy:
        if answer.status != http.HTTPStatus.OK:
            raise self._refusal(answer, what)
        try:
            found = answer.document()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise AdminError(f"Ranger's admin gave an answer that is no policy to: {what}")
        return found

    def _refusal(self, answer: HttpAnswer, what: str) -> Exception:
        if answer.status == http.HTTPStatus.NOT_FOUND:
            return NotFoundError(f"Ranger's admin has no such policy: {what}")
        status = http.HTTPStatus(answer.status) if answer.status in set(http.HTTPStatus) else None
        meaning = _ANSWERS.get(status, f"answers with status {answer.status} to") if status else "refuses to"
        return AdminError(f"Ranger's admin {meaning} {what}{_message(answer)}")


def _policies(answer: HttpAnswer) -> list[Policy]:
    if answer.status != http.HTTPStatus.OK:
        raise UnusableAnswerError(f"answered with status {answer.status}")
    found = answer.document()
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UnusableAnswerError("gave an answer that is no list of policies")
    return found


def _message(answer: HttpAnswer) -> str:
    """Return the admin's own words (VXResponse.msgDesc), of which it gives a line or two."""
    try:
        text = answer.document()["msgDesc"]
    except (ValueError, TypeError, KeyError):
        return ""
    return f": {' '.join(str(text).split())[:300]}"
