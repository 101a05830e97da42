"""The privacy loss of one release: one object, of which every definition of privacy is a view."""

from sordino.privacy.loss.base import Loss
from sordino.privacy.loss.best_of_many import BestOfManyLoss, NegativeBinomialRuns, PoissonRuns
from sordino.privacy.loss.bounded_range import BoundedRangeLoss
from sordino.privacy.loss.declared import EpsilonDeltaLoss, MomentLoss, RenyiLoss, ZcdpLoss
from sordino.privacy.loss.finite import FiniteLoss
from sordino.privacy.loss.gaussian import GaussianLoss
from sordino.privacy.loss.gaussian_mixture import GaussianMixtureLoss
from sordino.privacy.loss.integer_noise import DiscreteGaussianLoss, DiscreteLaplaceLoss
from sordino.privacy.loss.laplace import LaplaceLoss
from sordino.privacy.loss.mixed import MixedLoss, truncated_poisson
from sordino.privacy.loss.sampling import SampledFiniteLoss, WithoutReplacementLoss
from sordino.privacy.loss.shuffled import ShuffledBinaryLoss, ShuffledLoss
from sordino.privacy.loss.subsampled import SubsampledLoss
from sordino.privacy.normal_pair import largest_mu

__all__ = [
    "BestOfManyLoss",
    "BoundedRangeLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "EpsilonDeltaLoss",
    "FiniteLoss",
    "GaussianLoss",
    "GaussianMixtureLoss",
    "LaplaceLoss",
    "Loss",
    "MixedLoss",
    "MomentLoss",
    "NegativeBinomialRuns",
    "PoissonRuns",
    "RenyiLoss",
    "SampledFiniteLoss",
    "ShuffledBinaryLoss",
    "ShuffledLoss",
    "SubsampledLoss",
    "WithoutReplacementLoss",
    "ZcdpLoss",
    "largest_mu",
    "truncated_poisson",
]
