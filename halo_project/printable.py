"""Text from files and folders made safe to print on a terminal."""


def printable(line: str) -> str:
    """A file may be called anything: what is no text, or would steer the terminal, is shown as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
