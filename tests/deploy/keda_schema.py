"""Strict schemas of the two KEDA kinds in use, with the fields that KEDA 2.22 documents and this project needs.

Metadata of a trigger is text throughout: KEDA refuses numbers there.
"""


def _object(properties, required=()):
    """An object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _kind(name, spec):
    """A whole document of a kind, of which no part may be missing."""
    told = {"apiVersion": {"const": "keda.sh/v1alpha1"}, "kind": {"const": name}, "metadata": _METADATA, "spec": spec}
    return _object(told, told)


_TEXT = {"type": "string", "minLength": 1}
_METADATA = _object({"name": _TEXT, "namespace": _TEXT}, ("name", "namespace"))
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}
_POSTGRESQL = _object(
    {
        "host": _TEXT,
        "port": _NUMBER,
        "userName": _TEXT,
        "dbName": _TEXT,
        "sslmode": {"enum": ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]},
        "query": _TEXT,
        "targetQueryValue": _NUMBER,
        "activationTargetQueryValue": _NUMBER,
    },
    ("host", "port", "userName", "dbName", "sslmode", "query", "targetQueryValue"),
)
SCHEMAS = {
    "TriggerAuthentication": _kind(
        "TriggerAuthentication",
        _object(
            {
                "secretTargetRef": {
                    "type": "array",
                    "minItems": 1,
                    "items": _object({"parameter": _TEXT, "name": _TEXT, "key": _TEXT}, ("parameter", "name", "key")),
                }
            },
            ("secretTargetRef",),
        ),
    ),
    "ScaledObject": _kind(
        "ScaledObject",
        _object(
            {
                "scaleTargetRef": _object({"apiVersion": _TEXT, "kind": _TEXT, "name": _TEXT}, ("name",)),
                "pollingInterval": _COUNT,
                "cooldownPeriod": _COUNT,
                "minReplicaCount": _COUNT,
                "maxReplicaCount": _COUNT,
                "advanced": _object(
                    {
                        "horizontalPodAutoscalerConfig": _object(
                            {"behavior": _object({"scaleDown": _object({"stabilizationWindowSeconds": _COUNT})})}
                        )
                    }
                ),
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": _object(
                        {
                            "type": {"const": "postgresql"},
                            "metricType": {"enum": ["AverageValue", "Value"]},
                            "authenticationRef": _object({"name": _TEXT}, ("name",)),
                            "metadata": _POSTGRESQL,
                        },
                        ("type", "metadata"),
                    ),
                },
            },
            ("scaleTargetRef", "triggers"),
        ),
    ),
}
