"""An autoencoder of pictures that has learned, at work on arrays (``forms.codes`` asks for it)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.errors import RunError
from dragoman.forms.codes.code_symbols import CodeSymbols
from dragoman.models.picture_codes import PictureCodes
from dragoman.models.settings import CodesSettings

_TOGETHER = 256
"""Pictures that are computed at once."""


class PictureCoder:
    """Pictures to codes, and codes to pictures, on the CPU, in fp32."""

    def __init__(self, network: PictureCodes, patches: int) -> None:
        self._network = network.eval()
        self._patches = patches

    @classmethod
    def of(cls, symbols: CodeSymbols, weights: Mapping[str, Tensor], where: str) -> PictureCoder:
        """Errors: ``RunError``, naming ``where``, for weights of another autoencoder."""
        try:
            settings = CodesSettings.model_validate(symbols.model)
            network = PictureCodes(settings, symbols.source)
            network.load_state_dict(dict(weights))
        except (ValueError, RuntimeError) as error:
            raise RunError(
                f"{where} does not hold the weights that codes.json describes"
            ) from error
        return cls(network, symbols.places)

    def codes(self, patches: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        with torch.inference_mode():
            parts = [
                self._network.codes(torch.from_numpy(part).flatten(0, 1))
                for part in np.array_split(patches, -(-len(patches) // _TOGETHER))
            ]
        found: npt.NDArray[np.int64] = torch.cat(parts).view(-1, self._patches).numpy()
        return found

    def pictures(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        with torch.inference_mode():
            parts = [
                self._network.pictures(torch.from_numpy(part).flatten())
                for part in np.array_split(codes, -(-len(codes) // _TOGETHER))
            ]
        rows = torch.cat(parts)
        found: npt.NDArray[np.uint8] = rows.view(-1, self._patches, rows.shape[-1]).numpy()
        return found
