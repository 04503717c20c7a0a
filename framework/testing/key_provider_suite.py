"""Ready-made tests for the author of a key provider: subclass, make providers, and let pytest find it.

from lockgate.plugins import KeyProviderConformance

class TestVaultKeys(KeyProviderConformance):
    def make_provider(self):
        return VaultKeys(...)
"""

from __future__ import annotations

import base64
import pickle
import traceback
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from unittest import SkipTest

from lockgate.errors import (
    AlreadyExistsError,
    EncryptionKeyError,
    InputError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    UnsupportedError,
    WrongKeyError,
)
from lockgate.framework.keys import KeyAlgorithm, KeyMetadata, KeyProvider, provider_from, unwrap

_ABSENT = "no-such-key-of-lockgate"


class KeyProviderConformance:
    """Tests of what every key provider promises, wherever its keys are.

    Implement `make_provider`, and as many of the other methods as the key store allows: a method that returns
    None skips its tests. Each test calls `make_provider`, which must give access to the same keys within one
    test. It must hold a key of each algorithm in `algorithms`.
    """

    algorithms: Collection[KeyAlgorithm] = tuple(KeyAlgorithm)

    def make_provider(self) -> KeyProvider:
        """Return a provider that may use all its keys."""
        # Not abstract: test runners make objects of this class only where an author gives this method.
        raise NotImplementedError

    def make_denied(self) -> KeyProvider | None:
        """Return a provider to which every key of `make_provider` is denied."""
        return None

    def make_wrong(self) -> KeyProvider | None:
        """Return a provider that holds other keys under the same names, versions and algorithms."""
        return None

    def break_service(self) -> None:
        """Let the key store stop answering, for every provider made before and after."""
        raise SkipTest("this place of keys cannot be broken here")

    def master_keys(self, provider: KeyProvider) -> dict[str, bytes]:
        """Return the master keys by name@version, as far as the test can know them."""
        return {}

    # --- what is held ---

    def test_names_and_current_versions(self) -> None:
        """Names are sorted and unique, and each has a current version, which is usable."""
        provider = self.make_provider()
        names = provider.key_names()
        assert names
        assert names == sorted(set(names))
        for name in names:
            key = provider.current_key(name)
            assert (key.name, type(key.version), type(key.algorithm)) == (name, int, KeyAlgorithm)
            assert key.version >= 0
            assert provider.usable(name) is True

    def test_both_algorithms(self) -> None:
        """Keys of 128 and of 256 bits are held, except those that the author has excluded."""
        provider = self.make_provider()
        held = {provider.current_key(name).algorithm for name in provider.key_names()}
        assert held == set(self.algorithms)

    def test_versions(self) -> None:
        """The versions that are listed are sorted and unique, and hold every current one."""
        provider = self.make_provider()
        versions = provider.key_versions()
        assert versions == sorted(set(versions))
        assert {provider.current_key(name) for name in provider.key_names()} <= set(versions)

    # --- wrapping ---

    def test_wrapping_round_trip(self) -> None:
        """A local key comes back from its encrypted form, from another provider of the same keys too."""
        provider, other = self.make_provider(), self.make_provider()
        for key in provider.key_versions():
            local = provider.create_local_key(key)
            assert len(local.plain) == len(local.encrypted) == key.algorithm.key_length
            assert local.plain != local.encrypted
            assert provider.decrypt_local_key(key, local.encrypted) == local.plain
            assert other.decrypt_local_key(key, local.encrypted) == local.plain

    def test_the_wrapping_is_that_of_orc(self) -> None:
        """AES in counter mode, the first 16 bytes of the encrypted key being the IV, so that Java agrees."""
        provider = self.make_provider()
        material = self.master_keys(provider)
        for key in provider.key_versions():
            encrypted = provider.create_local_key(key).encrypted
            if str(key) in material:
                plain = provider.decrypt_local_key(key, encrypted)
                assert plain == unwrap(material[str(key)], encrypted), "not AES-CTR with the key itself as IV"
            if key.algorithm is KeyAlgorithm.AES_CTR_256:
                # The key stream depends on the first half only, whatever the master key.
                flipped = encrypted[:16] + bytes(byte ^ 0x5A for byte in encrypted[16:])
                one, two = (provider.decrypt_local_key(key, each) for each in (encrypted, flipped))
                assert one[:16] == two[:16]
                assert bytes(byte ^ 0x5A for byte in one[16:]) == two[16:]

    def test_fresh_local_keys_never_repeat(self) -> None:
        """A local key is used for one file only: reusing it would reuse its key stream."""
        provider = self.make_provider()
        for name in provider.key_names():
            key = provider.current_key(name)
            made = [provider.create_local_key(key) for _ in range(32)]
            assert len({local.plain for local in made}) == len({local.encrypted for local in made}) == 32

    def test_many_threads(self) -> None:
        """Files are opened by many threads at once."""
        provider = self.make_provider()
        keys = [provider.current_key(name) for name in provider.key_names()]

        def one(number: int) -> bool:
            local = provider.create_local_key(keys[number % len(keys)])
            return provider.decrypt_local_key(keys[number % len(keys)], local.encrypted) == local.plain

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(one, range(48)))

    # --- what goes wrong ---

    def test_missing_keys(self) -> None:
        """An unknown name and an unknown version count as missing, so readers show masks."""
        provider = self.make_provider()
        assert provider.usable(_ABSENT) is False
        self._raises(KeyMissingError, lambda: provider.current_key(_ABSENT))
        for name in provider.key_names():
            key = provider.current_key(name)
            later = KeyMetadata(
                name, max(each.version for each in provider.key_versions()) + 7, key.algorithm
            )
            absent = KeyMetadata(_ABSENT, 0, key.algorithm)
            for unknown in (later, absent):
                encrypted = bytes(range(key.algorithm.key_length))
                self._raises(KeyMissingError, lambda: provider.decrypt_local_key(unknown, encrypted))  # noqa: B023 - called at once

    def test_keys_of_another_length(self) -> None:
        """A file written with a longer or shorter key of that name has another key."""
        provider = self.make_provider()
        for key in provider.key_versions():
            other = next(each for each in KeyAlgorithm if each is not key.algorithm)
            stranger = KeyMetadata(key.name, key.version, other)
            for unfit, length in ((stranger, other.key_length), (key, other.key_length), (key, 0), (key, 5)):
                self._raises(WrongKeyError, lambda: provider.decrypt_local_key(unfit, bytes(length)))  # noqa: B023 - called at once

    def test_another_key_of_the_same_name(self) -> None:
        """Another key opens a local key wrongly or not at all, never to the same bytes."""
        provider, wrong = self.make_provider(), self.make_wrong()
        if wrong is None:
            raise SkipTest("no provider with other keys is given")
        for name in provider.key_names():
            key = provider.current_key(name)
            local = provider.create_local_key(key)
            with suppress(WrongKeyError):
                assert wrong.decrypt_local_key(key, local.encrypted) != local.plain

    def test_denied_keys(self) -> None:
        """A denied key differs from a missing one: the message refers to the people who grant keys."""
        provider, denied = self.make_provider(), self.make_denied()
        if denied is None:
            raise SkipTest("no provider without rights is given")
        for name in provider.key_names():
            key = provider.current_key(name)
            encrypted = provider.create_local_key(key).encrypted
            self._raises(KeyDeniedError, lambda: denied.decrypt_local_key(key, encrypted))  # noqa: B023 - called at once
            self._raises(KeyDeniedError, lambda: denied.create_local_key(key))  # noqa: B023 - called at once
            assert denied.usable(name) is False

    def test_a_service_that_does_not_answer(self) -> None:
        """A silent service is an error, never a missing key, since readers would show masks for no reason."""
        provider = self.make_provider()
        key = provider.current_key(provider.key_names()[0])
        encrypted = provider.create_local_key(key).encrypted
        self.break_service()
        self._raises(KeyServiceError, lambda: self.make_provider().current_key(key.name))
        self._raises(KeyServiceError, lambda: self.make_provider().decrypt_local_key(key, encrypted))

    # --- secrets ---

    def test_nothing_shows_a_key(self) -> None:
        """Neither text nor pickle nor error holds a master or local key, in any usual spelling."""
        provider = self.make_provider()
        hidden = list(self.master_keys(provider).values())
        for key in provider.key_versions():
            local = provider.create_local_key(key)
            assert provider.decrypt_local_key(key, local.encrypted) == local.plain
            hidden.append(local.plain)
        for shown in self._shown(provider):
            for secret in hidden:
                assert not shows(shown, secret), "a key is shown"

    def test_another_process(self) -> None:
        """A provider is pickled, or made from its `spec`, with the same keys; or it refuses."""
        provider = self.make_provider()
        again: list[KeyProvider] = []
        try:
            again.append(pickle.loads(pickle.dumps(provider)))  # noqa: S301 - what the line itself has pickled
        except TypeError as error:
            _explains(error)
        if provider.spec is not None:
            again.append(provider_from(provider.spec))
            assert again[-1].spec == provider.spec
        for other in again:
            for name in provider.key_names():
                key = provider.current_key(name)
                local = provider.create_local_key(key)
                assert other.decrypt_local_key(key, local.encrypted) == local.plain

    # --- tables, and keeping keys ---

    def test_tables(self) -> None:
        """A table without keys of its own uses the provider; equal options give the same object."""
        provider = self.make_provider()
        assert provider.for_table({}) is provider
        for name in provider.key_names():
            assert provider.for_table({"orc.encrypt": f"{name}:x"}).current_key(name).name == name
        assert provider.for_table({"a": "b"}) is provider.for_table({"a": "b"})

    def test_rolling_a_key(self) -> None:
        """A new version is current at once, and older ones stay; or an error says where to roll keys."""
        provider = self.make_provider()
        name = provider.key_names()[0]
        old = provider.current_key(name)
        local = provider.create_local_key(old)
        try:
            new = provider.roll_key(name)
        except UnsupportedError as error:
            _explains(error)
            return
        assert new.version > old.version
        assert provider.current_key(name) == new
        assert {old, new} <= set(provider.key_versions())
        assert provider.decrypt_local_key(old, local.encrypted) == local.plain
        fresh = provider.create_local_key(new)
        assert provider.decrypt_local_key(new, fresh.encrypted) == fresh.plain
        self._raises(KeyMissingError, lambda: provider.roll_key(_ABSENT))

    def test_creating_a_key(self) -> None:
        """A new key is there at once; a known name is never reused; or an error says where to make keys."""
        provider = self.make_provider()
        held = provider.key_names()
        try:
            new = provider.create_key("made-by-conformance", 256)
        except UnsupportedError as error:
            _explains(error)
            return
        assert (new.name, new.algorithm) == ("made-by-conformance", KeyAlgorithm.AES_CTR_256)
        assert provider.current_key(new.name) == new
        assert provider.key_names() == sorted([*held, new.name])
        self._raises(AlreadyExistsError, lambda: provider.create_key(new.name))
        self._raises(AlreadyExistsError, lambda: provider.create_key(held[0]))
        for name, bits in (("a b", 128), ("a:b", 128), ("", 128), ("fine", 192)):
            self._raises(InputError, lambda: provider.create_key(name, bits))  # noqa: B023 - called at once

    # --- helpers ---

    def _raises(self, kind: type[Exception], action: Callable[[], object]) -> Exception:
        try:
            action()
        except kind as error:
            _explains(error)
            if issubclass(kind, EncryptionKeyError) and type(error) is not kind:
                raise AssertionError(f"{type(error).__name__} was raised, not {kind.__name__}") from error
            return error
        raise AssertionError(f"{kind.__name__} was not raised")

    def _shown(self, provider: KeyProvider) -> Iterator[str | bytes]:
        yield repr(provider)
        yield str(provider)
        yield repr(vars(provider)) if hasattr(provider, "__dict__") else ""
        yield provider.spec or ""
        try:
            yield pickle.dumps(provider)
        except TypeError as error:
            yield str(error)
        key = provider.current_key(provider.key_names()[0])
        other = next(each for each in KeyAlgorithm if each is not key.algorithm)
        for unfit in (
            KeyMetadata(_ABSENT, 0, key.algorithm),
            KeyMetadata(key.name, key.version + 7, key.algorithm),
            KeyMetadata(key.name, key.version, other),
        ):
            try:
                provider.decrypt_local_key(unfit, bytes(unfit.algorithm.key_length))
            except EncryptionKeyError as error:
                yield "".join(traceback.format_exception(error))


def _explains(error: Exception) -> None:
    assert str(error), f"a {type(error).__name__} says what was wrong and what to do"


def shows(shown: str | bytes, secret: bytes) -> bool:
    """Say whether a text or bytes contain `secret`: raw, as Python's repr, in hexadecimal or in base64."""
    raw = shown.encode("utf-8", "surrogateescape") if isinstance(shown, str) else shown
    folded = raw.lower()
    spellings = {secret, repr(secret)[2:-1].encode(), repr(list(secret))[1:-1].encode()}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        # Within a longer text base64 falls in one of three ways; the ends mix with their neighbours.
        spellings |= {encode(bytes(lead) + secret)[4 if lead else 0 :][:-4] for lead in range(3)}
    return any(spelling in raw for spelling in spellings) or secret.hex().encode() in folded
