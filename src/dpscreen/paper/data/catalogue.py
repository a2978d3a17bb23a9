"""What can go wrong with a data set, each as its own kind of error.

The names say what happened, which an `Error` at their end would not make clearer.
"""

from dataclasses import dataclass
from typing import Literal

from dpscreen.tables.problem import DataError


class UnknownDataset(DataError, ValueError):
    """The name, or the target asked for, is not in the catalogue."""


class MissingDataset(DataError, FileNotFoundError):
    """The data set is known, but no copy of it was found here."""


class CorruptDataset(DataError, ValueError):
    """A file is there, but it does not hold the data set it is named after."""


class DownloadFailed(DataError):
    """The archive could not be reached, or did not deliver."""


class CorruptDownload(DownloadFailed, CorruptDataset):
    """The archive delivered something other than the data set; nothing was kept."""


_ELEMENTS = "polar size flex h_doner h_acceptor pi_doner pi_acceptor polarisable sigma"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _substituents(positions: int, properties: str) -> tuple[str, ...]:
    return tuple(f"p{p}_{name}" for p in range(1, positions + 1) for name in _words(properties))


ABALONE = _words("Sex Length Diameter Height WholeWeight ShuckedWeight VisceraWeight ShellWeight")
HOUSING = _words("CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT")
BODYFAT = _words(
    """BodyFatPct Age Weight Height Neck Chest Abdomen Hip Thigh Knee Ankle Biceps Forearm
    Wrist"""
)
PYRIM = _substituents(3, _ELEMENTS)
TRIAZINES = _substituents(6, f"{_ELEMENTS} branch")
RESIDENTIAL = (
    *(f"V-{k}" for k in range(1, 9)),
    *(f"V-{k}_lag{lag}" for lag in range(1, 6) for k in range(11, 30)),
)
BLOGFEEDBACK = tuple(f"x{k}" for k in range(1, 281))

COMMUNITIES_NOT_PREDICTIVE = ("state", "county", "community", "communityname", "fold")
COMMUNITIES = _words(
    """population householdsize racepctblack racePctWhite racePctAsian racePctHisp agePct12t21
    agePct12t29 agePct16t24 agePct65up numbUrban pctUrban medIncome pctWWage pctWFarmSelf
    pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc whitePerCap blackPerCap
    indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov PctLess9thGrade
    PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ PctOccupManu
    PctOccupMgmtProf MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam
    PctFam2Par PctKids2Par PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg
    PctIlleg NumImmig PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10 PctRecentImmig
    PctRecImmig5 PctRecImmig8 PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell
    PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous PersPerRentOccHous
    PctPersOwnOccup PctPersDenseHous PctHousLess3BR MedNumBR HousVacant PctHousOccup
    PctHousOwnOcc PctVacantBoarded PctVacMore6Mos MedYrHousBuilt PctHousNoPhone PctWOFullPlumb
    OwnOccLowQuart OwnOccMedVal OwnOccHiQuart RentLowQ RentMedian RentHighQ MedRent
    MedRentPctHousInc MedOwnCostPctInc MedOwnCostPctIncNoMtg NumInShelters NumStreet
    PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT
    LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop
    PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp
    PctPolicAsian PctPolicMinor OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea
    PopDens PctUsePubTrans PolicCars PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy
    LemasPctOfficDrugUn PolicBudgPerPop"""
)

ConverterName = Literal[
    "uci-abalone", "uci-communities", "uci-blogfeedback", "uci-residential", "libsvm"
]


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: the features, then `target` as its last column."""

    name: str
    target: str
    content_hash: str


@dataclass(frozen=True)
class TargetColumns:
    """What is predicted: a weighted sum of target columns."""

    name: str
    terms: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Archive:
    """Where the original is published, and which converter turns it into our files.

    `member` names the file wanted inside a zip; None when the URL is that file.
    """

    url: str
    converter: ConverterName
    member: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One data set. The first of `targets` is the default, the paper's choice.

    `features` is empty where the file's own header is used. `from_libsvm` marks the sets that the
    paper took in LIBSVM's column-scaled form. `missing` is the rule that fits the paper's tables.
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    features: tuple[str, ...]
    files: tuple[DataFile, ...]
    targets: tuple[TargetColumns, ...]
    origin: str
    licence: str
    archive: Archive | None
    from_libsvm: bool = False
    missing: Literal["none", "zero"] = "none"

    def target(self, name: str | None = None) -> TargetColumns:
        """The target of that name, or the default one."""
        for candidate in self.targets:
            if name is None or candidate.name == name:
                return candidate
        offered = ", ".join(candidate.name for candidate in self.targets)
        raise UnknownDataset(f"{self.name} has no target {name!r}; it offers {offered}")


def dataset(name: str) -> Dataset:
    """The catalogue's entry of that name."""
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    raise UnknownDataset(f"there is no data set {name!r}; known are {', '.join(names())}")


def names() -> tuple[str, ...]:
    """Every name in the catalogue, in the order of the paper's tables."""
    return tuple(entry.name for entry in CATALOGUE)


def _only(column: str) -> tuple[TargetColumns, ...]:
    return (TargetColumns(column, ((column, 1.0),)),)


def _uci(number: int, slug: str, converter: ConverterName, member: str) -> Archive:
    url = f"https://archive.ics.uci.edu/static/public/{number}/{slug}.zip"
    return Archive(url, converter, member)


def _libsvm(name: str) -> Archive:
    base = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/regression/"
    return Archive(base + name, "libsvm")


_CC_BY = "CC BY 4.0, as UCI is understood to state"
_QSAR = "unknown for the LIBSVM copy; UCI's entry is understood to be CC BY 4.0"

CATALOGUE: tuple[Dataset, ...] = (
    Dataset(
        name="abalone",
        title="Abalone",
        n_rows=4177,
        n_features=8,
        features=ABALONE,
        files=(
            DataFile(
                "abalone.csv",
                "Rings",
                "7522e87417665f7cca0414ef09df072e406c56b9c98996d660249ec3ed2e247b",
            ),
        ),
        targets=_only("Rings"),
        origin="UCI 1, Nash et al. 1994; Sex coded M = 1, F = 2, I = 3 as LIBSVM does",
        licence=_CC_BY,
        archive=_uci(1, "abalone", "uci-abalone", "abalone.data"),
        from_libsvm=True,
    ),
    Dataset(
        name="housing",
        title="Housing",
        n_rows=506,
        n_features=13,
        features=HOUSING,
        files=(
            DataFile(
                "housing.csv",
                "MEDV",
                "d08fdf7e5c0b3a604881fa0120174c1c5411f109050d60b8cb6854c5ff717d3a",
            ),
        ),
        targets=_only("MEDV"),
        origin="Boston housing, Harrison and Rubinfeld 1978, uncorrected; LIBSVM's row order",
        licence="unknown, widely treated as public domain",
        archive=_libsvm("housing"),
        from_libsvm=True,
    ),
    Dataset(
        name="bodyfat",
        title="Body Fat",
        n_rows=252,
        n_features=14,
        features=BODYFAT,
        files=(
            DataFile(
                "bodyfat.csv",
                "Density",
                "287f946d06ae5f459b8e97f073c097ef7b8a9a4939b281a6b5803b87b15d99cd",
            ),
        ),
        targets=_only("Density"),
        origin="StatLib bodyfat, Penrose et al.; BodyFatPct nearly determines the target",
        licence="free to distribute and to use for non-commercial purposes, says StatLib",
        archive=_libsvm("bodyfat"),
        from_libsvm=True,
    ),
    Dataset(
        name="pyrim",
        title="Pyrim",
        n_rows=74,
        n_features=27,
        features=PYRIM,
        files=(
            DataFile(
                "pyrim.csv",
                "activity",
                "e74c95030940bbaa6dbfa9b08628321d1d68be40bcccc918606fb2a0a17dd6d0",
            ),
        ),
        targets=_only("activity"),
        origin="pyrimidines QSAR, King et al.; LIBSVM's row order",
        licence=_QSAR,
        archive=_libsvm("pyrim"),
        from_libsvm=True,
    ),
    Dataset(
        name="triazines",
        title="Triazines",
        n_rows=186,
        n_features=60,
        features=TRIAZINES,
        files=(
            DataFile(
                "triazines.csv",
                "activity",
                "711254dce9fe0ce81e713dc7a3dc3d15c7298bd86005daa6ee80b192568fb071",
            ),
        ),
        targets=_only("activity"),
        origin="triazines QSAR, Hirst et al. 1994; LIBSVM's row order",
        licence=_QSAR,
        archive=_libsvm("triazines"),
        from_libsvm=True,
    ),
    Dataset(
        name="residential",
        title="Residential Buildings",
        n_rows=372,
        n_features=103,
        features=RESIDENTIAL,
        files=(
            DataFile(
                "residential.csv",
                "V-9",
                "4467f1fa23047a23d499f0a7d0e5f8186775c01401b3e400fe5bd29f00278ed5",
            ),
            DataFile(
                "residential_cost.csv",
                "V-10",
                "1c721d2c34a7177e8690112739a923a21c886b7ccbc64c902cafb1fabd814960",
            ),
        ),
        targets=(
            TargetColumns("profit", (("V-9", 1.0), ("V-10", -1.0))),
            TargetColumns("sales", (("V-9", 1.0),)),
            TargetColumns("cost", (("V-10", 1.0),)),
        ),
        origin="UCI 437, Rafiei and Adeli, sheet Data; the four date columns are left out",
        licence=_CC_BY,
        archive=_uci(
            437,
            "residential+building+data+set",
            "uci-residential",
            "Residential-Building-Data-Set.xlsx",
        ),
    ),
    Dataset(
        name="communities",
        title="Communities and Crime",
        n_rows=1994,
        n_features=122,
        features=COMMUNITIES,
        files=(
            DataFile(
                "communities.csv",
                "ViolentCrimesPerPop",
                "08fa9e15069e9220982742c0f6976fbd5efb106bfab02833c90228c911013e51",
            ),
        ),
        targets=_only("ViolentCrimesPerPop"),
        origin="UCI 183, Redmond, normalized; 36851 cells of 23 columns are missing",
        licence=_CC_BY,
        archive=_uci(183, "communities+and+crime", "uci-communities", "communities.data"),
        missing="zero",
    ),
    Dataset(
        name="blogfeedback",
        title="BlogFeedback",
        n_rows=52397,
        n_features=280,
        features=BLOGFEEDBACK,
        files=(
            DataFile(
                "blogfeedback.csv.gz",
                "target",
                "4a7edf60ae6b0983b32f80a667277cb1664a2a943a42f4dd52adf34e575a6950",
            ),
        ),
        targets=_only("target"),
        origin="UCI 304, Buza, the training file (2010 and 2011)",
        licence=_CC_BY,
        archive=_uci(304, "blogfeedback", "uci-blogfeedback", "blogData_train.csv"),
    ),
    Dataset(
        name="riboflavin",
        title="Riboflavin",
        n_rows=71,
        n_features=4088,
        features=(),
        files=(
            DataFile(
                "riboflavin.csv.gz",
                "log_riboflavin_production",
                "d89ba78c6b124a46ebbb2aa9453861b6f4089458b17ea62294a34bffe736bf10",
            ),
        ),
        targets=_only("log_riboflavin_production"),
        origin="R package hdi, Bühlmann, Kalisch and Meier 2014; not among the paper's",
        licence="GPL, that of the R package",
        archive=None,  # published as R data, which needs R to convert
    ),
)
