"""Certificates for servers of tests."""

import subprocess
from pathlib import Path


def make_certificates(directory: Path, name: str) -> tuple[Path, Path, Path]:
    """An authority, and a certificate of it for 127.0.0.1: authority, certificate, key."""
    ca_key, ca = directory / f"{name}-ca.key", directory / f"{name}-ca.pem"
    key, request, cert = (directory / f"{name}.{end}" for end in ("key", "csr", "pem"))
    extensions = directory / f"{name}.ext"
    extensions.write_text("subjectAltName=IP:127.0.0.1\n")
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    authority = ("-x509", "-days", "2", "-addext", "keyUsage=critical,keyCertSign")
    for command in (
        (*new, *authority, "-keyout", ca_key, "-out", ca, "-subj", f"/CN={name}"),
        (*new, "-keyout", key, "-out", request, "-subj", "/CN=nats"),
        (
            *("openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key),
            *("-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", cert),
        ),
    ):
        subprocess.run(command, check=True, capture_output=True)
    return ca, cert, key
