"""Whether a connector jar links with a Spark, told by class files alone: every class, field and method that
the jar names must be there, of its kind, and no class may lack a method that an ancestor leaves to it.

  link_check.py JAR FOLDER [JAR FOLDER ...]   each jar with the folder of one Spark's jars
"""

from __future__ import annotations

import struct
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

STATIC, INTERFACE, ABSTRACT = 0x8, 0x200, 0x400
# Tags of a constant pool: text, class, and members of classes and interfaces; the sizes of others.
TEXT, CLASS, FIELD, METHOD, INTERFACE_METHOD = 1, 7, 9, 10, 11
NAME_AND_TYPE, LONGS = 12, (5, 6)
SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 15: 3, 17: 4, 18: 4}
# What the JVM itself brings; its classes are in no jar.
OF_JAVA = ("java/", "javax/", "jdk/", "sun/", "com/sun/", "org/xml/", "org/w3c/", "[")
OBJECT = "java/lang/Object"
# Ancestors of Java's that have no members which a class could inherit by them.
WITHOUT_MEMBERS = (OBJECT, "java/io/Serializable", "java/lang/Cloneable")
METHODS_OF_OBJECT = frozenset(
    ("clone", "equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait")
)


@dataclass
class ClassFile:
    """What a class file says: its ancestors, its members, and the members of others that its code names."""

    name: str
    flags: int
    ancestors: list[str]
    members: dict[tuple[str, str, bool], int] = field(default_factory=dict)
    named: list[tuple[int, str, str, str]] = field(default_factory=list)


def parsed(data: bytes) -> ClassFile:
    """Read a class file."""
    (count,), place, index = struct.unpack_from(">H", data, 8), 10, 1
    texts: dict[int, str] = {}
    links: dict[int, tuple[int, int, int]] = {}
    while index < count:
        tag = data[place]
        if tag == TEXT:
            (size,) = struct.unpack_from(">H", data, place + 1)
            texts[index] = data[place + 3 : place + 3 + size].decode("utf-8", "replace")
            place += 3 + size
        elif tag in SIZES:
            place += 1 + SIZES[tag]
        elif tag in (FIELD, METHOD, INTERFACE_METHOD, NAME_AND_TYPE):
            links[index] = (tag, *struct.unpack_from(">HH", data, place + 1))
            place += 5
        else:
            links[index] = (tag, *struct.unpack_from(">H", data, place + 1), 0)
            place += 3
        index += 2 if tag in LONGS else 1

    def class_at(number: int) -> str:
        return texts[links[number][1]]

    flags, this, above, interfaces = struct.unpack_from(">HHHH", data, place)
    others = struct.unpack_from(f">{interfaces}H", data, place + 8)
    found = ClassFile(class_at(this), flags, [class_at(each) for each in (above, *others) if each])
    place += 8 + 2 * interfaces
    for is_method in (False, True):
        (members,) = struct.unpack_from(">H", data, place)
        place += 2
        for _ in range(members):
            access, name, kind, attributes = struct.unpack_from(">HHHH", data, place)
            place += 8
            for _ in range(attributes):
                place += 6 + struct.unpack_from(">I", data, place + 2)[0]
            found.members[texts[name], texts[kind], is_method] = access
    for tag, first, second in links.values():
        if tag == CLASS:
            found.named.append((tag, texts[first], "", ""))
        elif tag in (FIELD, METHOD, INTERFACE_METHOD):
            name, kind = links[second][1:]
            found.named.append((tag, class_at(first), texts[name], texts[kind]))
    return found


class ClassPath:
    """The classes of some jars; of those that are in several, the first."""

    def __init__(self, jars: Iterable[Path]) -> None:
        self._where: dict[str, tuple[zipfile.ZipFile, str]] = {}
        self._read: dict[str, ClassFile | None] = {}
        for jar in jars:
            archive = zipfile.ZipFile(jar)
            for entry in archive.namelist():
                if entry.endswith(".class") and not entry.startswith("META-INF/"):
                    self._where.setdefault(entry.removesuffix(".class"), (archive, entry))

    def find(self, name: str) -> ClassFile | None:
        """Return a class, None if no jar has it."""
        if name not in self._read:
            archive, entry = self._where.get(name, (None, ""))
            self._read[name] = None if archive is None else parsed(archive.read(entry))
        return self._read[name]

    def lineage(self, name: str) -> list[str]:
        """Return a class and all its ancestors."""
        found, waiting = [], [name]
        while waiting:
            each = waiting.pop(0)
            if each not in found:
                found.append(each)
                known = self.find(each)
                waiting += known.ancestors if known else []
        return found


def faults(jar: Path, spark_jars: Iterable[Path]) -> list[str]:
    """Return what does not link."""
    path = ClassPath([jar, *spark_jars])
    with zipfile.ZipFile(jar) as archive:
        ours = [each.removesuffix(".class") for each in archive.namelist() if each.endswith(".class")]
    found: set[str] = set()
    for name in ours:
        own = path.find(name)
        assert own is not None
        named = (_fault(path, *each) for each in own.named)
        for fault in (*filter(None, named), *_left_out(path, own)):
            found.add(f"{name.partition('$')[0].replace('/', '.')}: {fault}")
    return sorted(found)


def _fault(path: ClassPath, tag: int, owner: str, name: str, kind: str) -> str | None:
    """Return what is wrong with a class, or a member of one, that code names."""
    if owner.startswith(OF_JAVA):
        return None
    known = path.find(owner)
    if known is None:
        return f"there is no class {owner}"
    if tag == CLASS:
        return None
    if tag != FIELD and (tag == INTERFACE_METHOD) != bool(known.flags & INTERFACE):
        return f"{owner} has become {'an interface' if known.flags & INTERFACE else 'a class'}"
    for each in path.lineage(owner):
        ancestor = path.find(each)
        if ancestor is None:
            # A class of Java's, whose members nothing here tells.
            if each not in WITHOUT_MEMBERS or name in METHODS_OF_OBJECT:
                return None
        elif (name, kind, tag != FIELD) in ancestor.members:
            return None
    return f"there is no {owner}.{name}{kind if tag != FIELD else ''}"


def _left_out(path: ClassPath, own: ClassFile) -> Iterator[str]:
    """Return the methods that a class must have and has not."""
    if own.flags & (INTERFACE | ABSTRACT):
        return
    there, wanted = set(), {}
    for each in path.lineage(own.name):
        ancestor = path.find(each)
        for (name, kind, is_method), access in ancestor.members.items() if ancestor else ():
            if is_method and access & ABSTRACT:
                wanted.setdefault((name, kind), each)
            elif is_method and not access & STATIC:
                there.add((name, kind))
    for (name, kind), each in wanted.items():
        if (name, kind) not in there and name not in METHODS_OF_OBJECT:
            yield f"{each}.{name}{kind} is not implemented"


def main(arguments: list[str]) -> int:
    """Print what does not link; return 1 if something does not."""
    wrong = 0
    for jar, folder in zip(arguments[::2], arguments[1::2], strict=True):
        found = faults(Path(jar), sorted(Path(folder).glob("*.jar")))
        print(f"{Path(jar).name}: {len(found)} faults", *found, sep="\n  ", flush=True)
        wrong += len(found)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
