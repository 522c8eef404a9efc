"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority"]


class Authority:
    """Signs certificates, each valid for a day from yesterday on."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of tests")])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)
        """Its own certificate."""

    def signed(self, name: str, *alternatives: x509.GeneralName) -> tuple[bytes, bytes]:
        """A certificate for localhost, and its key, in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *alternatives]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key.public_key()).add_extension(
            x509.SubjectAlternativeName(hosts), critical=False
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        plain = serialization.NoEncryption()
        return (
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
        )

    def write(self, name: str, certificate: Path, key: Path) -> None:
        """Sign, and put it into files, as operators do: each is replaced as a whole."""
        for path, data in zip((certificate, key), self.signed(name), strict=True):
            beside = path.with_name(f"{path.name}.new")
            beside.write_bytes(data)
            beside.replace(path)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        begins = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=begins,
            not_valid_after=begins + dt.timedelta(days=2),
        )
