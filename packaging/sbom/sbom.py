#!/usr/bin/env python3
"""What is in xstrace's files, as SPDX 2.3 (JSON). Meson runs it at build time.

usage: sbom.py OUTPUT VERSION NAME:HOW=VERSION...   HOW: static or dynamic
       sbom.py --files FOLDER SPDX                  prints SPDX with each file below FOLDER and its SHA-256 and SHA-1
"""

import hashlib
import json
import os
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path

# As docs/LICENSES.md has them.
LICENSES = {
    "musl": "MIT",
    "glibc": "LGPL-2.1-or-later",
    "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "libsupc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libunwind": "MIT",
    "zlib": "Zlib",
}
LINKED = {"static": "STATIC_LINK", "dynamic": "DYNAMIC_LINK"}


def package(name, version, license):
    return {
        "SPDXID": f"SPDXRef-{name.replace('+', 'p')}",
        "name": name,
        "versionInfo": version or "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license,
        "licenseDeclared": license,
        "copyrightText": "NOASSERTION",
    }


def document(version, parts):
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))  # never now: the same build has the same bytes
    packages, relations = [package("xstrace", version, "Apache-2.0")], [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-xstrace")]
    for part in parts:
        (name, how), part_version = part.split("=", 1)[0].split(":"), part.split("=", 1)[1]
        packages.append(package(name, part_version, LICENSES[name]))
        relations.append(("SPDXRef-xstrace", LINKED[how], packages[-1]["SPDXID"]))
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"xstrace-{version}",
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, ' '.join([version, *parts]))}",
        "creationInfo": {
            "created": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: xstrace-sbom-{version}"],
        },
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b} for a, how, b in relations],
    }


def add_files(made, folder):
    made["files"] = []
    for number, path in enumerate(sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())):
        data = path.read_bytes()
        made["files"].append(
            {
                "SPDXID": f"SPDXRef-File-{number}",
                "fileName": f"./{path.relative_to(folder)}",
                "checksums": [
                    {"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                    {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()},
                ],
                "licenseConcluded": "NOASSERTION",
                "copyrightText": "NOASSERTION",
            }
        )
        relation = {"spdxElementId": "SPDXRef-xstrace", "relationshipType": "CONTAINS", "relatedSpdxElement": f"SPDXRef-File-{number}"}
        made["relationships"].append(relation)
    return made


def main():
    if len(sys.argv) < 3 or (sys.argv[1] == "--files" and len(sys.argv) != 4):
        sys.exit(__doc__)
    if sys.argv[1] != "--files":
        Path(sys.argv[1]).write_text(json.dumps(document(sys.argv[2], sys.argv[3:]), indent=1) + "\n")
        return
    try:
        made = json.loads(Path(sys.argv[3]).read_text())
        print(json.dumps(add_files(made, Path(sys.argv[2])), indent=1))
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"sbom.py: {sys.argv[3]}: {error}; it takes the file that a build has made, packaging/xstrace.spdx.json")


if __name__ == "__main__":
    main()
