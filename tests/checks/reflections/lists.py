"""Lists that tests share."""

from checks.reflections.check import reflections

WINS = (
    "A folder of 12 MP photos on a host with four cores: decoding keeps the GPU waiting.",
    "H.264 clips, since NVDEC decodes them instead of the CPU.",
    "Two blurred and jittered views of every picture (SimCLR), which overload the workers.",
)
LOSES = (
    "Text that was tokenised beforehand: only ids, nothing to decode.",
    "A huge ViT that keeps the GPU at 100 % on its own.",
)


def judge(wins=WINS, loses=LOSES, **params):
    """Judges two lists."""
    observation = reflections.observation_model(
        where_dali_wins=tuple(wins), where_dali_loses=tuple(loses), one_texts=()
    )
    return reflections.decide(observation, reflections.params_model(**params))


def reasons(result, side="where_dali_wins"):
    """Reasons of one list's items, in order."""
    return [item["reason"] for item in result.details[side]]
