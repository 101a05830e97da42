"""The privacy loss of one release: one object, of which every definition of privacy is a view."""

from sordino.privacy.loss.base import Loss
from sordino.privacy.loss.bounded_range import BoundedRangeLoss
from sordino.privacy.loss.finite import FiniteLoss
from sordino.privacy.loss.gaussian import GaussianLoss
from sordino.privacy.loss.laplace import LaplaceLoss
from sordino.privacy.loss.shuffled import ShuffledLoss
from sordino.privacy.loss.subsampled import SubsampledLoss
from sordino.privacy.normal_pair import largest_mu

__all__ = [
    "BoundedRangeLoss",
    "FiniteLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "ShuffledLoss",
    "SubsampledLoss",
    "largest_mu",
]
