from ._api import advise as advise
from ._api import assert_fits as assert_fits
from ._api import check as check
from ._api import cudagraphs as cudagraphs
from ._api import diff as diff
from ._api import estimate_memory as estimate_memory
from ._api import export as export
from ._api import fit as fit
from ._api import plan as plan
from ._api import profile as profile
from ._api import run as run
from ._api import sweep as sweep
from ._capture import capture as capture
from ._program import Error as Error
from ._program import program_path as program_path
from ._results import Captured as Captured
from ._results import Check as Check
from ._results import Diff as Diff
from ._results import Fit as Fit
from ._results import Module as Module
from ._results import Peak as Peak
from ._results import Profile as Profile
from ._results import Report as Report
from ._results import Run as Run
from ._results import Sweep as Sweep
from ._results import Tensor as Tensor

__version__: str
