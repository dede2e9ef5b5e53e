"""What learner code is compared with: loaders with declared and with fair settings, and what it claims of itself."""

from collections.abc import Mapping

from grader_service.model.discovery import Discovery, LoaderFacts
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, ClaimBesideMeasurement, LoaderSettings

_MOST_WORKERS = 32
_MOST_BATCH = 4096
_MOST_PREFETCH = 16
_FAIR_BATCHES = (16, 256)


def declared_settings(loader: LoaderFacts, batch_size: int) -> LoaderSettings:
    """The settings of the learner's own loader, within what a pod can bear.

    Args:
        batch_size: taken where the loader has none of its own, such as with a batch sampler.
    """
    return LoaderSettings(
        batch_size=min(loader.batch_size or batch_size, _MOST_BATCH),
        num_workers=min(loader.num_workers, _MOST_WORKERS),
        pin_memory=loader.pin_memory,
        persistent_workers=loader.persistent_workers,
        prefetch_factor=min(loader.prefetch_factor, _MOST_PREFETCH) if loader.prefetch_factor else None,
    )


def fair_settings(plan: MeasurementPlan, cpus: int, batch_size: int) -> LoaderSettings:
    """How anyone would configure a DataLoader on this pod; the graph's batch size, as far as that is reasonable."""
    least, most = _FAIR_BATCHES
    return LoaderSettings(
        batch_size=min(max(batch_size, least), most),
        num_workers=min(plan.fair_workers, cpus),
        pin_memory=True,
        persistent_workers=True,
        prefetch_factor=2,
    )


def reference_settings(declared: LoaderSettings, fair: LoaderSettings) -> dict[Arm, LoaderSettings]:
    """The references to time, in order; the fair one is left out where the declared one is just that."""
    return {Arm.DECLARED: declared} if declared == fair else {Arm.DECLARED: declared, Arm.FAIR: fair}


def claims_beside(
    discovery: Discovery, rates: Mapping[Arm, float | None]
) -> tuple[ClaimBesideMeasurement, ClaimBesideMeasurement]:
    """The learner's two numbers next to ours; where its loader was not timed, the reference stands in for it."""
    pytorch, dali = discovery.pytorch_throughput.value, discovery.dali_throughput.value
    loader = rates.get(Arm.LEARNER) or rates.get(Arm.DECLARED)
    return (
        ClaimBesideMeasurement(name="pytorch_throughput", claimed=pytorch, measured=loader),
        ClaimBesideMeasurement(name="dali_throughput", claimed=dali, measured=rates.get(Arm.DALI)),
    )
