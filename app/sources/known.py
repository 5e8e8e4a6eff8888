"""All recipes by name, and which of them reads a source.

Owns how recipes are found: each module of `app.sources.recipes` has a `RECIPE`. Nothing lists
them, so a new file is all it takes.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType, ModuleType

from app.core.spec_checks import did_you_mean
from app.errors import InputError
from app.sources import recipes
from app.sources.contract import Recipe, Row

_REMEDY = 'name one (recipe = "…") or say which column is what (columns = { prompt = "…" })'
_SHOWN_COLUMNS = 12


@cache
def all_recipes() -> Mapping[str, Recipe]:
    """Return every recipe by its name, in the order of names."""
    return recipes_in(recipes)


def recipes_in(package: ModuleType) -> Mapping[str, Recipe]:
    """Return the recipes of a package; raise InputError for a file that holds none, or a twin."""
    found: dict[str, Recipe] = {}
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        recipe = getattr(import_module(module.name), "RECIPE", None)
        if not isinstance(recipe, Recipe):
            raise InputError(
                f"{module.name} has no RECIPE", hint="end the file with RECIPE = Recipe(…)"
            )
        if recipe.name in found:
            raise InputError(
                f'two recipes are named "{recipe.name}", one of them in {module.name}',
                hint="give one of them another name",
            )
        found[recipe.name] = recipe
    return MappingProxyType(dict(sorted(found.items())))


def by_name(name: str) -> Recipe:
    """Return the recipe of that name; raise InputError with the nearest name, or with all."""
    recipe = all_recipes().get(name)
    if recipe is None:
        raise InputError(f'no recipe is named "{name}"', hint=did_you_mean(name, all_recipes()))
    return recipe


def recognised(columns: Iterable[str], first_row: Row | None = None) -> Recipe:
    """Return the one recipe that fits a source; raise InputError if none does, or several.

    Of those whose columns are all there, and that the first row suits, the one that names most
    columns wins; then the one that asks for more than columns.
    """
    have = frozenset(columns)
    fitting = [one for one in all_recipes().values() if one.columns <= have]
    fitting = [one for one in fitting if one.fits is None or (first_row and one.fits(first_row))]
    if not fitting:
        raise InputError(
            f"no recipe fits the columns {_listed(have)}", hint=f"{_nearest(have)}{_REMEDY}"
        )
    closest = max(map(_closeness, fitting))
    best = [one for one in fitting if _closeness(one) == closest]
    if len(best) > 1:
        names = " and ".join(one.name for one in best)
        raise InputError(f"{names} fit the columns {_listed(have)} equally", hint=_REMEDY)
    return best[0]


def _closeness(recipe: Recipe) -> tuple[int, bool]:
    return len(recipe.columns), recipe.fits is not None


def _listed(columns: Iterable[str]) -> str:
    names = sorted(columns)
    more = f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
    return (", ".join(name[:40] for name in names[:_SHOWN_COLUMNS]) or "(none)") + more


def _nearest(have: frozenset[str]) -> str:
    """Return what the recipe lacks that has most columns in common, nothing if none has any."""
    sharing = [one for one in all_recipes().values() if one.columns & have]
    if not sharing:
        return ""
    near = max(sharing, key=lambda one: (len(one.columns & have), -len(one.columns - have)))
    if near.columns <= have:
        return f"the recipe {near.name} has these columns, but does not suit the first row; "
    return f"the recipe {near.name} needs {_listed(near.columns - have)} too; "
