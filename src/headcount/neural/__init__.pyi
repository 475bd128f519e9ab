from headcount.neural.base import NetworkQuantifier as NetworkQuantifier
from headcount.neural.iwdan import DANN as DANN
from headcount.neural.iwdan import IWDAN as IWDAN
from headcount.neural.networks import DeepSets as DeepSets
from headcount.neural.networks import GMNet as GMNet
from headcount.neural.networks import HistNetQ as HistNetQ
from headcount.neural.networks import SetTransformer as SetTransformer
from headcount.neural.quanet import QuaNet as QuaNet
from headcount.neural.sampling import Sampling as Sampling
from headcount.neural.training import Training as Training

__all__: list[str]
