"""Which signer the settings mean."""

from grader_service.errors import ConfigurationError
from grader_service.settings import Settings
from grader_service.signer import key_folder
from grader_service.signer.asking import SocketSigner
from grader_service.signer.signatures import FolderSigner, Signer


def signer_of(settings: Settings) -> Signer:
    """The one behind the socket that the settings name; else the key in the state folder, which may be made.

    Raises:
        ConfigurationError: the key cannot be read, or is not there in production.
    """
    return folder_signer(settings) if settings.signer is None else SocketSigner(settings.signer)


def folder_signer(settings: Settings) -> FolderSigner:
    """With the key in the state folder; made where none is, but in production.

    Raises:
        ConfigurationError: as above.
    """
    if settings.production and not key_folder.has_key(settings.key_dir):
        raise ConfigurationError(
            f"there is no signing key in {settings.key_dir}, and none is made in silence with GRADER_PRODUCTION: "
            "platforms would refuse what it signs. Bring the key back from where you keep secrets; `grader keys make` "
            "makes the first one of a new service"
        )
    return Signer.from_folder(settings.key_dir)


def own_keys_only(settings: Settings) -> None:
    """For what changes keys, which is done where they lie.

    Raises:
        ConfigurationError: they lie elsewhere.
    """
    if settings.signer is not None:
        raise ConfigurationError(
            f"the keys are not here: GRADER_SIGNER={settings.signer} signs. Give the command where the signer runs, "
            "with compose in the container `signer`"
        )
