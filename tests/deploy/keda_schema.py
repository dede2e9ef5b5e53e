"""Strict schemas of the two KEDA kinds in use, with the fields that KEDA 2.22 documents and this project needs.

Metadata of a trigger is text throughout: KEDA refuses numbers there.
"""


def _object(properties, required=()):
    """An object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _some(item):
    """A list of these."""
    return {"type": "array", "minItems": 1, "items": item}


def _kind(name, spec, required):
    """A whole document of a kind, of which no part may be missing; its specification has these properties."""
    told = {"apiVersion": {"const": "keda.sh/v1alpha1"}, "kind": {"const": name}, "metadata": _METADATA}
    told["spec"] = _object(spec, required)
    return _object(told, told)


_TEXT = {"type": "string", "minLength": 1}
_METADATA = _object({"name": _TEXT, "namespace": _TEXT}, ("name", "namespace"))
_KEY = ("parameter", "name", "key")
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
_TRIGGER = _object(
    {
        "type": {"const": "postgresql"},
        "metricType": {"enum": ["AverageValue", "Value"]},
        "authenticationRef": _object({"name": _TEXT}, ("name",)),
        "metadata": _POSTGRESQL,
    },
    ("type", "metadata"),
)
_SCALE_DOWN = _object({"scaleDown": _object({"stabilizationWindowSeconds": _COUNT})})
SCHEMAS = {
    "TriggerAuthentication": _kind(
        "TriggerAuthentication",
        {"secretTargetRef": _some(_object(dict.fromkeys(_KEY, _TEXT), _KEY))},
        required=("secretTargetRef",),
    ),
    "ScaledObject": _kind(
        "ScaledObject",
        {
            "scaleTargetRef": _object({"apiVersion": _TEXT, "kind": _TEXT, "name": _TEXT}, ("name",)),
            "pollingInterval": _COUNT,
            "cooldownPeriod": _COUNT,
            "minReplicaCount": _COUNT,
            "maxReplicaCount": _COUNT,
            "advanced": _object({"horizontalPodAutoscalerConfig": _object({"behavior": _SCALE_DOWN})}),
            "triggers": _some(_TRIGGER),
        },
        required=("scaleTargetRef", "triggers"),
    ),
}
