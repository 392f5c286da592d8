"""A tool in Python that knows only the PMIx bindings (Debian: python3-pmix): prints what it is told, as JSON.

usage: python_tool.py URI [PLANE]: PMIx_Fabric_register (with the plane as a directive), some queries, update.
"""
import json
import sys

import pmix


def string(key, value):
    return {"key": key, "value": value, "val_type": pmix.PMIX_STRING}


def values(answer):
    """What the bindings give: (status, array of dictionaries)."""
    status, infos = answer
    return status, {info["key"]: info["value"] for info in infos or ()}


def main():
    tool = pmix.PMIxTool()
    status, _ = tool.init([string(pmix.PMIX_SERVER_URI, sys.argv[1])])
    if status != pmix.PMIX_SUCCESS:
        print(f"init: {status}", file=sys.stderr)
        return 1
    plane = [string(pmix.PMIX_FABRIC_PLANE, name) for name in sys.argv[2:]]
    fresh = {"key": pmix.PMIX_QUERY_REFRESH_CACHE, "value": True, "val_type": pmix.PMIX_BOOL}

    def query(key, *qualifiers):
        return values(tool.query([{"keys": [key], "qualifiers": [*qualifiers, fresh]}]))

    told = {
        "register": values(tool.fabric_register(plane)),
        "planes": query(pmix.PMIX_FABRIC_PLANE),
        "switches": query(pmix.PMIX_FABRIC_SWITCH),
        "groups": query(pmix.PMIX_FABRIC_GROUPS, *plane),
        "dims": query(pmix.PMIX_FABRIC_DIMS, *plane),
        "index": query(pmix.PMIX_FABRIC_DEVICE_INDEX, string(pmix.PMIX_HOSTNAME, "node0006"),
                       string(pmix.PMIX_FABRIC_DEVICE_NAME, "HCA-1")),
        "nothing": query(pmix.PMIX_FABRIC_DEVICES, string(pmix.PMIX_HOSTNAME, "nowhere")),
        "update": values(tool.fabric_update()),
    }
    print(json.dumps(told))
    tool.finalize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
