"""Column names of the data sets; most archives publish bare numbers."""

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
