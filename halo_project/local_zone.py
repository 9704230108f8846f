"""The time zone of this machine, which a schedule without one of its own goes by.

Asked while the settings are read, before Django makes UTC the zone of its processes.
"""

import logging
from zoneinfo import ZoneInfo

import tzlocal

logger = logging.getLogger(__name__)


def local_zone_name() -> str:
    """An IANA name, `UTC` when the machine does not say which or says one that is not known here."""
    try:
        name = tzlocal.get_localzone_name()
        if name:
            return ZoneInfo(name).key
        error: object = "it names none; HALO_TIMEZONE can"
    except (OSError, ValueError, LookupError) as failure:
        error = failure
    logger.warning("this machine's time zone is not known, schedules without one go by UTC: %s", error)
    return "UTC"
