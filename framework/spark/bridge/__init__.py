"""The private connection between the connector in the JVM and the driver's Python.

`transport` has the frames, `server` the socket and its threads, `protocol` what a message holds, `sessions`
the way back to Spark. Messages are answered by `lockgate.framework.spark.bridge.dispatcher`;
`lockgate.framework.spark.bridge.gateway` makes the two sides known to each other.
"""

from lockgate.framework.spark.bridge.protocol import Question
from lockgate.framework.spark.bridge.server import BridgeServer
from lockgate.framework.spark.bridge.sessions import Asker, Sessions

__all__ = ["Asker", "BridgeServer", "Question", "Sessions"]
