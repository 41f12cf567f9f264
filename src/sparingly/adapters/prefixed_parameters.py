"""Parameters with a prefix, `module__hidden=32`, as skorch has them."""

from __future__ import annotations

from typing import Any, Self


class PrefixedParameters:
    """Mixed into a scikit-learn estimator: options of its parts are parameters like its own, for clone and searches.

    Each is kept as an attribute of its whole name. As everywhere in scikit-learn they are looked at when something is
    fitted, not before.
    """

    _prefixes = ("module__", "strategy__", "estimator__")

    def _own_params(self) -> dict[str, Any]:
        own: dict[str, Any] = super().get_params(deep=False)  # type: ignore[misc]
        return own

    def _extra_params(self) -> dict[str, Any]:
        public = {name: value for name, value in vars(self).items() if name[0] != "_" and name[-1] != "_"}
        return {name: value for name, value in public.items() if name not in self._own_params()}

    def _options_of(self, part: str) -> dict[str, Any]:
        """The options of one part, without its prefix; an option of no part is an error."""
        for name in self._extra_params():
            if not name.startswith(self._prefixes):
                raise TypeError(f"there is no parameter {name!r}: options begin with {' or '.join(self._prefixes)}")
        start = f"{part}__"
        given = self._extra_params().items()
        return {name.removeprefix(start): value for name, value in given if name.startswith(start)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name, the options of parts among them."""
        own: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        return own | self._extra_params()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and options of parts."""
        for name, value in params.items():
            setattr(self, name, value)
        return self
