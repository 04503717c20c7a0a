"""The certificate of one query service: made for it at its start, and trusted by its registration alone."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# The name in every certificate: askers know the one certificate, not the host.
SERVICE_NAME = "lockgate-query-service"
_DAY = datetime.timedelta(days=1)
_VALID_DAYS = 3650


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key in PEM; the key is in the memory of the service only."""

    certificate: str
    key: bytes = field(repr=False)


def make_certificate() -> Certificate:
    """Make a key (P-256) and a certificate that it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVICE_NAME)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _VALID_DAYS * _DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVICE_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        made.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def fingerprint_of(certificate: str) -> str:
    """Return the SHA-256 of a certificate in PEM, as `openssl x509 -fingerprint -sha256` shows it."""
    digest = x509.load_pem_x509_certificate(certificate.encode()).fingerprint(hashes.SHA256())
    return digest.hex(":").upper()
