"""At home in river, scikit-learn, scikit-activeml, Gymnasium, PyTorch and Label Studio.

Each adapter is loaded when it is first used, since its host may not be installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparingly.adapters.gymnasium import PartialMonitoringEnv as PartialMonitoringEnv
    from sparingly.adapters.river import ActiveClassifier as ActiveClassifier
    from sparingly.adapters.river_ensemble import RiverEnsemble as RiverEnsemble
    from sparingly.adapters.skactiveml import SparingQueryStrategy as SparingQueryStrategy
    from sparingly.adapters.sklearn import ActivePipeline as ActivePipeline
    from sparingly.adapters.sklearn import SparingClassifier as SparingClassifier
    from sparingly.adapters.sklearn_ensemble import SklearnEnsemble as SklearnEnsemble
    from sparingly.adapters.torch import Extractor as Extractor
    from sparingly.adapters.torch import FrozenFeatures as FrozenFeatures
    from sparingly.adapters.torch import ModuleOf as ModuleOf

_HOME = {
    "ActiveClassifier": "river",
    "RiverEnsemble": "river_ensemble",
    "SparingClassifier": "sklearn",
    "ActivePipeline": "sklearn",
    "SklearnEnsemble": "sklearn_ensemble",
    "SparingQueryStrategy": "skactiveml",
    "PartialMonitoringEnv": "gymnasium",
    "Extractor": "torch",
    "FrozenFeatures": "torch",
    "ModuleOf": "torch",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sparingly.adapters' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sparingly.adapters.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
