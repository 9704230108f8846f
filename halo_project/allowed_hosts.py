"""Which host names we answer to. Pure; which pages may call us is the doors' business (`channels_app.auth.origins`)."""

from halo_project.env import HaloEnv

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_ANY_ADDRESS = ("0.0.0.0", "::")


def allowed_host_names(env: HaloEnv) -> list[str]:
    """Django's ALLOWED_HOSTS: this machine's own names, the address we listen on, and what was configured."""
    own = [] if env.host in _ANY_ADDRESS else [f"[{env.host}]" if ":" in env.host else env.host]
    return list(dict.fromkeys((*_LOOPBACK, *own, *env.allowed_hosts)))
