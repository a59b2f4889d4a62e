"""Plans that measure and estimate: the TopDown Algorithm."""

from stirred.release.job import Kind
from stirred.release.kinds.topdown.job import TopDownJob
from stirred.release.kinds.topdown.section import STARTER, TopDownSection

TOPDOWN = Kind("topdown", TopDownSection, TopDownJob, STARTER, 3, "rho squared")
