"""The Spark sessions behind the connector's requests, reached through pyspark's own gateway."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from lockgate.errors import BridgeError
from lockgate.framework.spark.context.driver_jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Sessions:
    """The sessions of the JVM that this process attached to."""

    def __init__(self) -> None:
        self._attached: SparkSession | None = None
        # The JVM's class. To find it by its name would cost each question another call.
        self._requests: Any = None
        self._client: Any = None
        self._pinned = False

    def attach(self, session: SparkSession) -> None:
        """Make `session` the way to the JVM; who answers a question is still the session that asks it."""
        from py4j.clientserver import ClientServer

        context: Any = session.sparkContext
        self._requests = java_class(context, "io.lockgate.spark.bridge.RequestSessions")
        self._client = context._gateway._gateway_client
        # Only with it do all calls of one thread here arrive on one thread of the JVM.
        self._pinned = isinstance(context._gateway, ClientServer)
        self._attached = session

    @property
    def attached(self) -> SparkSession | None:
        """The session that this process attached to; None once it is stopped."""
        found: Any = self._attached
        return None if found is None or found.sparkContext._jsc is None else found

    def request_session(self, number: int | None) -> RequestSession:
        """Return the session that a request came from, by the number of the request."""
        return RequestSession(self, number)

    def thread_ends(self) -> None:
        """Close the calling thread's connection to the JVM; py4j would leave it to the garbage collector."""
        find = getattr(self._client, "get_thread_connection", None)
        connection = None if find is None else find()
        if connection is not None:
            with contextlib.suppress(ValueError):
                self._client.deque.remove(connection)
            with contextlib.suppress(Exception):  # the JVM is gone
                connection.close()

    def _enter(self, number: int | None) -> tuple[SparkSession, Any]:
        from pyspark.sql import SparkSession

        if self._attached is None:
            raise BridgeError("no Spark session is attached: call lockgate.attach(spark)")
        found = None
        if number is not None:
            found = self._requests.enter(number) if self._pinned else self._requests.session(number)
        if found is None:
            return self._attached, None
        return SparkSession(self._attached.sparkContext, found), found if self._pinned else None

    def _leave(self, entered: Any) -> None:
        self._requests.leave(entered)


class RequestSession:
    """The thread of the JVM that waits for an answer.

    Python answers on another thread. What that calls in the JVM acts for the one that waits, with its active
    session and its job group, from `spark` on until `leave`.
    """

    def __init__(self, sessions: Sessions, number: int | None) -> None:
        self._sessions = sessions
        self._number = number
        self._entered: Any = None

    def apart(self) -> RequestSession:
        """Return the same session for another thread."""
        return RequestSession(self._sessions, self._number)

    def spark(self) -> SparkSession:
        """Return the session that asks; BridgeError if none is attached."""
        session, self._entered = self._sessions._enter(self._number)
        return session

    def leave(self) -> None:
        """Let the calling thread act for itself again."""
        if self._entered is not None:
            entered, self._entered = self._entered, None
            self._sessions._leave(entered)
