from headcount._core.convergence import ConvergenceWarning as ConvergenceWarning
from headcount._core.frame import Frame as Frame
from headcount.bags import Bags as Bags
from headcount.evaluation import evaluate as evaluate
from headcount.evaluation import evaluate_many as evaluate_many
from headcount.evaluation import leaderboard as leaderboard
from headcount.exceptions import HeadcountError as HeadcountError
from headcount.exceptions import HeadcountWarning as HeadcountWarning
from headcount.exceptions import InputError as InputError
from headcount.exceptions import UndefinedMeasureWarning as UndefinedMeasureWarning
from headcount.exceptions import UnreliableWarning as UnreliableWarning
from headcount.inference.diagnosis import Diagnosis as Diagnosis
from headcount.inference.draws import Draws as Draws
from headcount.inference.intervals import Interval as Interval
from headcount.measures import Measure as Measure
from headcount.measures import measure as measure
from headcount.measures import signed_errors as signed_errors
from headcount.methods import *
from headcount.methods.files import load as load
from headcount.methods.files import save as save
from headcount.protocols.artificial import DirichletPrevalence as DirichletPrevalence
from headcount.protocols.artificial import PrevalenceGrid as PrevalenceGrid
from headcount.protocols.artificial import UniformPrevalence as UniformPrevalence
from headcount.protocols.natural import ByGroup as ByGroup
from headcount.protocols.natural import ByTime as ByTime
from headcount.protocols.natural import NaturalPrevalence as NaturalPrevalence
from headcount.selection.auto import AutoQuantifier as AutoQuantifier
from headcount.selection.search import GridSearch as GridSearch
from headcount.selection.search import RandomSearch as RandomSearch

__version__: str
__all__: list[str]
