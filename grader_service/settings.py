"""Every setting, read from the environment once; names start with `GRADER_`."""

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit, urlunsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from grader_service import state_folder
from grader_service.errors import ConfigurationError

_CREDENTIALS = re.compile(r"//.*@")


class Settings(BaseSettings):
    """Settings of one process. Secrets are read from files, never from the environment itself."""

    model_config = SettingsConfigDict(env_prefix="GRADER_", frozen=True, extra="forbid")

    state_dir: Path = Field(default_factory=state_folder.default)
    """Run folders, keys, and the embedded store. A runner in a container needs the same path on the host."""
    lock_dir: Path = Path("/run/lock")
    """Folder with the locks of GPUs: the same for every grader of a host, containers included."""
    lab_data: Path | None = None
    """Folder with the JPEGs that the lab hands out; learners find it as GRADER_DATA_DIR."""
    lab_image: str | None = None
    """Lab image to use in place of the one that the lab names."""
    labs_dir: Path | None = None
    """Folder with labs of the operator's, each as ID.toml, ID.yaml or ID.yml, beside those that are installed."""
    lab_python: str | None = None
    """Interpreter for `--sandbox process`; the grader's own when unset."""
    operator: str | None = Field(default=None, max_length=60)
    """Who gives the commands of this shell, for the audit trail; the user's name when unset."""
    production: bool = False
    """Refuse to start on an unsafe Redis, to make a signing key in silence, and submissions that name no learner;
    otherwise warn, make one, and take them."""
    database_url: str | None = None
    """SQLAlchemy URL; SQLite in the state folder when unset."""
    database_password_file: Path | None = None
    """File whose first line is put into the database URL as its password."""
    operator_database_url: str | None = None
    """The same database, in the role in which operators act: by commands and by forms of the admin page. That of
    `database_url` when unset."""
    operator_database_password_file: Path | None = None
    """File whose first line is put into that URL as its password."""
    database_roles_dir: Path | None = None
    """Folder with the password of each service's role of PostgreSQL, in a file `postgres_ROLE`; `grader store migrate`
    makes these roles."""
    signer: Path | None = None
    """Socket of `grader signer`, which signs in another process; the key in the state folder when unset."""
    redis_url: str = "redis://127.0.0.1:6379/0"
    """Broker: where messages come in, and where runs are announced to workers."""
    redis_password_file: Path | None = None
    """File whose first line is put into the Redis URL as its password."""
    result_url: str | None = None
    """Redis of the answers: results of platforms' tasks and the queues that they named. The broker when unset; one of
    its own keeps answers that nobody reads from filling the broker."""
    result_password_file: Path | None = None
    """File whose first line is put into that URL as its password."""
    redis_admin_password_file: Path | None = None
    """File whose first line is the password of the user `admin` of both Redis, for `grader platforms` alone."""
    platform_redis_url: str | None = None
    """The broker as platforms reach it, which `grader platforms add` tells them; the same URL when unset."""
    platform_result_url: str | None = None
    """The same of the answers' Redis."""
    artifact_store: str | None = None
    """Where submissions are kept, as fsspec names it (`file:///…`, `s3://…`); the state folder when unset."""
    artifact_sources: str = ""
    """URL prefixes, separated by spaces, from which a message may have its artifact fetched."""
    backup_store: str | None = None
    """Where backups lie, and every verdict before it is sent, as fsspec names it; without it neither is made."""
    gpu: str = "auto"
    """UUID of the GPU or MIG instance of `worker run`, `auto` for the only one of the host, `none` for rehearsals."""
    preflights_only: bool = False
    """Whether `worker run` takes preflights and nothing else, as one without a GPU does beside those that have one."""
    sandbox: Literal["docker", "kubernetes", "process"] = "docker"
    """`docker`, `kubernetes` for a runner in a cluster, or `process` for trusted code."""
    oci_runtime: str = ""
    """OCI runtime of Docker pods, as `docker info` lists it; the engine's default when empty."""
    pod_uid_first: int = Field(default=60706, ge=1000, le=65533)
    """First user id of Docker pods: no two runs of a host have one of these at the same time."""
    pod_uid_last: int = Field(default=61183, ge=1000, le=65533)
    pod_broker: Path | None = None
    """Socket of the broker that starts Docker pods, for processes that have no engine; the engine itself if unset."""
    pod_runner_uid: int | None = Field(default=None, ge=0)
    """User whose processes `grader pods` starts pods for, beside its own."""
    pod_most_memory_mib: int | None = Field(default=None, ge=1)
    """The most MiB that `grader pods` gives a pod, its shared memory, and each scratch volume; the host's memory, or
    what an installed lab has, if unset."""
    pod_most_pids: int | None = Field(default=None, ge=1)
    """The most processes that it gives a pod; 4096, or what an installed lab has, if unset."""
    pod_most_inodes: int | None = Field(default=None, ge=1)
    """The most files and folders of a scratch volume of its; 2,000,000, or what an installed lab has, if unset."""
    pod_most_pods: int = Field(default=64, ge=1)
    """The most pods that it runs at once."""
    pod_most_runs: int = Field(default=24, ge=1)
    """The most run spaces that it keeps open at once."""
    kubernetes_namespace: str = "grader-sandbox"
    """Namespace of the pods, which holds nothing else."""
    kubernetes_runtime_class: str | None = None
    """RuntimeClass that gives pods the GPU; a runner with a GPU needs it."""
    kubernetes_priority_class: str | None = None
    """PriorityClass of the pods; the namespace's default when unset."""
    node_name: str | None = None
    """Node on which this runner runs; needed with `GRADER_SANDBOX=kubernetes`, as its pods share folders with it."""
    warm_runs: int = Field(default=1, ge=0, le=16)
    """Runs that a worker keeps prepared, their pods waiting with imports done; 0 prepares
    none."""
    reuse_days: float = Field(default=0.0, ge=0.0, le=3650.0)
    """How old a measured run of the same bytes may be whose findings a worker takes instead of running them again."""
    reference_minutes: float = Field(default=30.0, ge=0.0, le=240.0)
    """How old a rate of our reference from between two runs may be that a first attempt is held against, to pass
    by two blocks; 0 measures it in every run."""
    canary_minutes: float = Field(default=10.0, ge=0.0, le=240.0)
    """After how long in quarantine a submission of ours is tried on a GPU, to put it back into service; each failure
    and each relapse doubles it, up to four hours; 0 leaves that to operators."""
    lease_s: float = Field(default=60.0, ge=1.0)
    """A worker that does not renew its lease for this long is taken for dead."""
    run_limit_s: float = Field(default=7200.0, ge=1.0)
    """A run that takes this long hangs, whatever its lab allows: it is ended as an infrastructure failure."""
    max_attempts: int = Field(default=3, ge=1)
    """Failures of ours before a run, or an item of a batch, is dead-lettered for an operator."""
    retry_delay_s: float = Field(default=10.0, ge=0.0)
    """Wait before a try after an infrastructure failure; for a run whose runner says what failed, times the number of
    failures."""
    max_queued: int = Field(default=20_000, ge=1)
    """Waiting runs beyond which new submissions are refused for now."""
    learner_per_hour: int = Field(default=60, ge=1)
    """Submissions of one learner within an hour beyond which more are refused for now."""
    learner_gpu_hours: float = Field(default=4.0, gt=0.0)
    """Hours for which one learner's runs may hold GPUs within a day before more submissions are refused for now."""
    result_days: float = Field(default=1.0, gt=0.0, le=3650.0)
    """How long a verdict can be read as the result of its Celery task; afterwards the same message brings it again."""
    reply_queue_length: int = Field(default=2000, ge=1)
    """Answers that may lie unread in a queue that a platform named; further ones wait in the database."""
    keep_evidence_days: float = Field(default=730.0, ge=0.0)
    """How long what runs found is kept; 0, here and below, for ever. Afterwards only a new run can grade again."""
    keep_artifact_days: float = Field(default=730.0, ge=0.0)
    """How long what was handed in is kept. Afterwards it cannot be run again."""
    keep_event_days: float = Field(default=730.0, ge=0.0)
    """How long the audit trail is kept; figures go on counting what was removed."""
    keep_answer_days: float = Field(default=30.0, ge=0.0)
    """How long answers are kept that were delivered; verdicts are kept by themselves."""
    keep_verdict_days: float = Field(default=0.0, ge=0.0)
    """How long submissions are kept after their verdict, with all that belongs to them. Afterwards the same id would be
    graded as a new submission."""
    review_model: str | None = Field(default=None, min_length=1, max_length=200)
    """Name of the chat model that is asked for second opinions, as its server has it."""
    review_model_url: str | None = None
    """OpenAI-compatible server of that model; nobody is asked when unset."""
    review_model_key_file: Path | None = None
    """File whose first line is sent to that server as a bearer token."""
    review_model_timeout_s: float = Field(default=20.0, gt=0.0, le=300.0)
    """How long an opinion may take; what was undecided then stays so."""
    soft_shutdown_s: float = Field(default=30.0, ge=0.0)
    """How long a worker that is told to stop may finish what it has in hand."""
    sweep_s: float = Field(default=5.0, gt=0.0)
    """Time between two looks for lost wake-ups, expired leases and undelivered answers."""
    intake_threads: int = Field(default=4, ge=1, le=64)
    metrics_port: int = Field(default=9464, ge=1, le=65535)
    web_host: str = "127.0.0.1"
    """Address that `grader web` listens on."""
    web_port: int = Field(default=8350, ge=1, le=65535)
    web_viewer_token_file: Path | None = None
    """File whose first line lets its bearer read the admin page; needed to listen beyond the host itself."""
    web_operator_token_file: Path | None = None
    """File whose first line lets its bearer act on the admin page; without it tokens only open it for reading."""
    web_trusted_proxies: str = ""
    """Addresses and networks of reverse proxies, separated by spaces, whose `X-Forwarded-*` is believed."""
    web_oidc_issuer: str | None = None
    """URL of the OpenID provider at which people sign in to the admin page as themselves; tokens only when unset."""
    web_oidc_client_id: str | None = None
    """The page's id at the provider; it needs a secret, too."""
    web_oidc_client_secret_file: Path | None = None
    """File whose first line is that secret."""
    web_oidc_scopes: str = "openid profile email"
    """What the provider is asked for, separated by spaces."""
    web_oidc_name_claim: str = "preferred_username"
    """Claim of the ID token that names a person on the page and in the audit trail."""
    web_oidc_role_claim: str = "groups"
    """Claim of the ID token, one text or a list, that decides what a person may do."""
    web_oidc_operators: str = ""
    """Values of that claim, separated by spaces, with one of which a person may act."""
    web_oidc_viewers: str = ""
    """Values of that claim with one of which a person may read."""

    @field_validator(
        "web_oidc_client_secret_file", "pod_broker", "lab_data", "labs_dir", "review_model", "review_model_url",
        "review_model_key_file", mode="before",
    )  # fmt: skip
    @classmethod
    def _not_set(cls, value: object) -> object:
        return None if value == "" else value  # an empty path is the working directory

    @field_validator("review_model_url")
    @classmethod
    def _review_model_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("expected http://HOST[:PORT][/v1] or https://…")
        if "@" in parts.netloc:
            raise ValueError("a key belongs into the file of GRADER_REVIEW_MODEL_KEY_FILE, not into the address")
        if not info.data.get("review_model"):
            raise ValueError("GRADER_REVIEW_MODEL must say which model of that server is asked")
        return value

    def __init__(self, **values: Any) -> None:
        """Reads the environment.

        Raises:
            ConfigurationError: a variable holds what it must not; every one of them is named.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = (
                f"GRADER_{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}, "
                f"got {_CREDENTIALS.sub('//…@', repr(problem['input']))}"
                for problem in error.errors(include_url=False)
            )
            raise ConfigurationError("; ".join(problems)[:2000]) from None

    @cached_property
    def key_dir(self) -> Path:
        """Folder of the signing keys."""
        return self.state_dir / "keys"

    def broker_address(self) -> str:
        """Redis' URL with the password of its secret file put in."""
        return _with_password(self.redis_url, secret(self.redis_password_file))

    def results_address(self) -> str:
        """That of the answers' Redis; the broker's where no other one is named."""
        if self.result_url is None:
            return self.broker_address()
        return _with_password(self.result_url, secret(self.result_password_file))

    def role_passwords(self, roles: Iterable[str]) -> dict[str, str]:
        """The password of each of these roles of the database; none where no folder has them."""
        if self.database_roles_dir is None:
            return {}
        return {role: secret(self.database_roles_dir / f"postgres_{role}") or "" for role in roles}


def as_user(url: str, user: str, password: str) -> str:
    """This URL with that user and password in it."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))


def _with_password(url: str, password: str | None) -> str:
    return url if password is None else as_user(url, urlsplit(url).username or "", password)


def secret(path: Path | None) -> str | None:
    """The first line of a secret file; None where no file is named.

    Raises:
        ConfigurationError: the file cannot be read, or is empty.
    """
    if path is None:
        return None
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise ConfigurationError(f"the secret file {path} cannot be read: {error}") from error
    if not lines or not lines[0].strip():
        raise ConfigurationError(f"the secret file {path} is empty; its first line must be the secret")
    return lines[0].strip()
