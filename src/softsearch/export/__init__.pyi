from .bundle import BundleFormat as BundleFormat
from .bundle import export_bundle as export_bundle
from .format import ExportFormat as ExportFormat
from .format import ExportInputs as ExportInputs
from .format import ExportSummary as ExportSummary
from .parity import Parity as Parity
from .parity import compare as compare
from .single import SingleFormat as SingleFormat
