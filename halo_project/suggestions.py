"""What was probably meant: one measure for every name that a person may misspell."""

import difflib
from collections.abc import Iterable

_NEAR = 0.7  # of the letters in common: `tool` is near `tools`, `agent` is not near `args`


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is nearest, if one is near; upper and lower case are the same."""
    by_folded, folded = {each.casefold(): each for each in known}, name.casefold()
    near = difflib.get_close_matches(folded, by_folded, 1, _NEAR)
    # In a short name two letters in the wrong order are a third of it, and still the commonest mistake.
    swapped = (each for each in by_folded if sorted(each) == sorted(folded))
    meant = near[0] if near else next(swapped, None)
    return by_folded[meant] if meant is not None else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean …?` where a known name is near, else nothing."""
    meant = nearest(name, known)
    return f" Did you mean `{meant}`?" if meant is not None else ""
