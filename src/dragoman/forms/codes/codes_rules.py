"""What may follow in the codes of a picture that is being painted: any code, until there is one for
each of its places, and then the end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dragoman.forms.codes.code_symbols import CodeSymbols
from dragoman.forms.rules import Booleans, Rules


class CodesRules(Rules):
    """Of one picture."""

    def __init__(self, symbols: CodeSymbols) -> None:
        self._symbols = symbols

    @property
    def longest(self) -> int:
        return self._symbols.places

    def allowed(self, tokens: npt.NDArray[np.int32]) -> Booleans:
        symbols = self._symbols
        found = np.zeros((len(tokens), symbols.size), np.bool_)
        if tokens.shape[1] >= symbols.places:
            found[:, symbols.eos] = True
        else:
            found[:, symbols.first :] = True
        return found
