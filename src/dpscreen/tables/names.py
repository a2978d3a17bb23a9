"""What names of columns mean, as rules: the general knowledge behind `proposals`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_SPELLINGS = {
    "percent": "% percent percentage pct perc prc",
    "kg": "kg kgs kilogram kilograms",
    "lb": "lb lbs pounds",
    "g": "g gram grams",
    "m": "m metre meter metres meters",
    "cm": "cm",
    "mm": "mm",
    "km": "km",
    "in": "in inch inches",
    "ft": "ft feet",
    "miles": "miles",
    "sq ft": "sqft",
    "m²": "sqm",
    "°C": "c celsius degc",
    "°F": "f fahrenheit degf",
    "K": "k kelvin",
    "mmHg": "mmhg",
    "hPa": "hpa",
    "mg/dl": "mgdl",
    "mmol/l": "mmoll",
    "bpm": "bpm",
    "km/h": "kmh",
    "mph": "mph",
    "years": "years yrs",
    "months": "months",
    "weeks": "weeks",
    "days": "days",
    "hours": "hours hrs",
    "minutes": "minutes mins",
    "seconds": "seconds secs",
    "USD": "usd dollars",
    "EUR": "eur euro euros",
    "GBP": "gbp",
    "CHF": "chf",
    "JPY": "jpy",
}
MEASURES = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
"""Words at the end of a name that tell in what a column is measured."""
IN_TWO_WORDS = ("mg_dl", "mmol_l", "mm_hg", "km_h", "sq_ft", "deg_c", "deg_f")
"""Those that a name may spell in two."""


@dataclass(frozen=True)
class NameRule:
    """A form of names, and what columns of such names hold.

    `names` are met by the last words of a name, or by the whole name after ^; * stands for any
    words. A name may end in `measured_in`, must do so if that is `spelled`, and fits no rule if it
    ends in another unit of measurement.
    """

    names: str
    kind: str
    why: str
    bounds: tuple[Any, Any] | None = None
    levels: tuple[str | int, ...] | None = None
    measured_in: str = ""
    spelled: bool = False
    sure: bool = True

    def fits(self, words: str, measure: str) -> bool:
        """Whether a name, as words joined by _ and the unit of measurement that ended it, fits."""
        allowed = (self.measured_in,) if self.spelled else ("", self.measured_in)
        return measure in allowed and self._form.search(words) is not None

    @cached_property
    def _form(self) -> re.Pattern[str]:
        forms = "|".join(self.names.split()).replace("*", ".*")
        return re.compile(f"(?:^|_)(?:{forms})$")


def _number(names: str, low: float, high: float, why: str, unit: str = "") -> NameRule:
    return NameRule(names, "number", why, (low, high), measured_in=unit)


def _in(unit: str, names: str, low: float, high: float, why: str) -> NameRule:
    """Bounds that hold if the name tells the unit of measurement."""
    return NameRule(names, "number", why, (low, high), measured_in=unit, spelled=True)


def _perhaps(names: str, low: float, high: float, why: str, unit: str = "") -> NameRule:
    """Bounds that are a guess, to be confirmed."""
    return NameRule(names, "number", why, (low, high), measured_in=unit, sure=False)


def _count(names: str, low: int, high: int, why: str, *, sure: bool = False) -> NameRule:
    return NameRule(names, "integer", why, (low, high), sure=sure)


def _open(names: str, why: str) -> NameRule:
    """A number whose name does not tell how large it may be."""
    return NameRule(names, "number", why, sure=False)


def _codes(names: str, low: int, high: int, why: str) -> NameRule:
    return NameRule(names, "category", why, levels=tuple(range(low, high + 1)), sure=False)


def _yes_or_no(names: str, why: str, *, sure: bool = True) -> NameRule:
    return NameRule(names, "boolean", why, sure=sure)


_PEOPLE = (
    "patient person subject participant respondent user customer client member employee student "
    "pupil household"
)
_HOLDERS = f"{_PEOPLE} family account card policy device owner teacher doctor"
_WHOSE = " ".join(
    f"{who}_{tag}" for who in _HOLDERS.split() for tag in ("id", "nr", "no", "number")
)
_MANY = "has too many values to be a category."
_YOU = "only you know"

RULES: tuple[NameRule, ...] = (
    _yes_or_no("^is_* ^has_* ^had_* ^was_* ^were_* ^did_* ^does_* ^ever_*", "It asks yes or no."),
    # Whose row it is, and what is no feature.
    NameRule(_WHOSE, "id", "It tells whose row it is."),
    NameRule(_PEOPLE, "id", "It may tell whose row it is.", sure=False),
    NameRule("id uuid guid ssn iban pid uid mrn", "id", "It may tell whose row it is."),
    NameRule(
        "^rownames ^row_names ^row_name ^row ^row_id ^row_nr ^row_no ^row_number ^row_index ^index "
        "^line ^line_number ^unnamed_[0-9]+",
        "skip",
        "It numbers the rows.",
    ),
    NameRule("name names surname firstname lastname", "skip", f"A name {_MANY}", sure=False),
    NameRule(
        "^email ^mail email_address mail_address address phone phone_number url website ip_address",
        "skip",
        "Contact details tell people apart, and predict nothing that lasts.",
    ),
    NameRule(
        "comment comments note notes remark remarks description desc text title",
        "skip",
        f"Free text {_MANY}",
        sure=False,
    ),
    NameRule("zip zipcode zip_code postcode post_code postal_code", "skip", f"A post code {_MANY}"),
    # Yes or no.
    _yes_or_no("flag yn indicator dummy bool", "A flag is yes or no."),
    _yes_or_no(
        "female male smoker married insured employed unemployed retired pregnant deceased died "
        "alive diabetic churn churned spam defaulted homeowner urban rural immigrant citizen "
        "vaccinated treated readmitted survived selfemp self_employed hypertension hypertensive",
        "It reads as yes or no.",
    ),
    _yes_or_no(
        "black white nonwhite hispanic asian union veteran disabled single divorced widowed "
        "partner default diabetes smoking",
        "It may be yes or no.",
        sure=False,
    ),
    # Shares and percentages.
    NameRule(
        "growth change increase decrease difference return inflation growth_* change_*",
        "number",
        "A change in percent can be negative, and more than 100.",
        (-100, 100),
        measured_in="percent",
        spelled=True,
        sure=False,
    ),
    _in("percent", "*", 0, 100, "A percentage."),
    _number("percent* percentage* pct* perc_*", 0, 100, "A percentage.", "percent"),
    _number(
        "share share_* fraction fraction_* frac proportion proportion_* prop prob prob_* "
        "probability probability_*",
        *(0, 1, "A share lies between 0 and 1."),
    ),
    # Ages and times.
    _in("months", "age", 0, 1500, "An age."),
    _in("days", "age", 0, 45000, "An age."),
    _number("age age_at_* mage fage", 0, 120, "An age.", "years"),
    NameRule(
        "birthdate birth_date date_of_birth dob birthday",
        *("date", "A day of birth.", ("1900-01-01", "2030-12-31")),
    ),
    _count("birthyear birth_year year_of_birth yob", 1900, 2030, "A year of birth.", sure=True),
    NameRule(
        "date datetime timestamp time_stamp date_* *_at time_hour",
        *("date", "A day: give the first and the last that your table can hold."),
        sure=False,
    ),
    _count("day_of_year", 1, 366, "A day of the year.", sure=True),
    _count("*_last_year *_this_year *_past_year", 0, 100, f"A count: how far it goes, {_YOU}."),
    _count("year year_of_* yr", 1900, 2100, "A year: narrow it to those of your study."),
    _codes("quarter", 1, 4, "A quarter, if coded 1 to 4."),
    _codes("month month_of_year", 1, 12, "A month, if coded 1 to 12."),
    NameRule(
        "weekday day_of_week dayofweek dow",
        *("category", "A weekday, if coded 0 to 6 or 1 to 7."),
        levels=(1, 2, 3, 4, 5, 6, 7, 0),  # the first, which others are compared with, is in both
        sure=False,
    ),
    _count("^day day_of_month", 1, 31, "A day of the month."),
    _count("^hour hour_of_day", 0, 24, "An hour of the day.", sure=True),
    _count("^minute", 0, 60, "A minute of the hour."),
    _number(
        "hours_per_week hours_a_week weekly_hours hours_week", 0, 168, "Hours of a week.", "hours"
    ),
    _number("hours_per_day hours_a_day daily_hours", 0, 24, "Hours of a day.", "hours"),
    _perhaps("sleep", 0, 24, "Hours of a day, if not minutes or of a week.", "hours"),
    _perhaps("experience exper tenure seniority", 0, 60, "Years, if not months.", "years"),
    _perhaps("^years years_*", 0, 100, "A number of years.", "years"),
    NameRule(
        "*", "number", "A number of years.", (0, 100), None, "years", spelled=True, sure=False
    ),
    _open("^hours ^days ^weeks ^months ^minutes ^seconds", f"How long is possible, {_YOU}."),
    _perhaps("educ meduc feduc schooling", 0, 25, "Years of schooling, if it is no level."),
    _perhaps("gestation gestational_age", 15, 45, "Weeks of a pregnancy.", "weeks"),
    # Bodies.
    _number("bmi body_mass_index", 10, 80, "A body-mass index."),
    _in("kg", "birthweight birth_weight", 0, 8, "The weight of a newborn."),
    _perhaps("birthweight birth_weight", 0, 8000, "The weight of a newborn, if in grams.", "g"),
    _in("kg", "weight mass", 0, 300, "The weight of a person."),
    _in("lb", "weight mass", 0, 660, "The weight of a person."),
    _open("weight mass", f"A weight: in what, and how much is possible, {_YOU}."),
    _in("cm", "height stature", 30, 250, "The height of a person."),
    _in("m", "height stature", 0.3, 2.5, "The height of a person."),
    _in("in", "height stature", 12, 100, "The height of a person."),
    _perhaps("height stature", 30, 250, "The height of a person, if in centimetres.", "cm"),
    _in("cm", "waist hip waist_* hip_*", 30, 250, "A girth."),
    _number("systolic systolic_* sbp bp_systolic", 60, 260, "A systolic pressure.", "mmHg"),
    _number("diastolic diastolic_* dbp bp_diastolic", 30, 160, "A diastolic pressure.", "mmHg"),
    _perhaps("blood_pressure bp", 40, 260, "A blood pressure, if in mmHg.", "mmHg"),
    _number("heart_rate heartrate pulse pulse_rate", 20, 250, "A heart rate.", "bpm"),
    _number("respiratory_rate breathing_rate resp_rate", 4, 80, "Breaths a minute."),
    _number("spo2 oxygen_saturation", 50, 100, "An oxygen saturation.", "percent"),
    _in("mmol/l", "glucose blood_sugar", 1, 35, "A blood glucose."),
    _in("mg/dl", "glucose blood_sugar", 20, 600, "A blood glucose."),
    _perhaps("glucose blood_sugar", 20, 600, "A blood glucose, if in mg/dl."),
    _number("hba1c", 3, 20, "A glycated haemoglobin, in percent.", "percent"),
    _in("mmol/l", "cholesterol chol", 1, 15, "A blood cholesterol."),
    _in("mg/dl", "cholesterol chol", 50, 500, "A blood cholesterol."),
    _perhaps("cholesterol chol", 50, 500, "A blood cholesterol, if in mg/dl."),
    _in("mmol/l", "ldl hdl", 0, 10, "A blood cholesterol."),
    _perhaps("ldl", 10, 350, "A blood cholesterol, if in mg/dl.", "mg/dl"),
    _perhaps("hdl", 10, 150, "A blood cholesterol, if in mg/dl.", "mg/dl"),
    _perhaps("triglycerides", 20, 1000, "Blood fats, if in mg/dl.", "mg/dl"),
    _perhaps("creatinine", 0, 15, "A creatinine, if in mg/dl.", "mg/dl"),
    _in("°C", "body_temp body_temperature", 30, 45, "The temperature of a body."),
    _number("iq", 40, 200, "An intelligence quotient."),
    # Weather and places.
    _in("°C", "temp temperature", -60, 60, "A temperature."),
    _in("°F", "temp temperature", -76, 140, "A temperature."),
    _in("K", "temp temperature", 213, 333, "A temperature."),
    _perhaps("temp temperature", -60, 60, "The weather's, if in degrees Celsius."),
    _number("lat latitude", -90, 90, "A latitude."),
    _number("lon lng longitude", -180, 180, "A longitude."),
    _number("humid humidity", 0, 100, "A relative humidity.", "percent"),
    _number("wind_dir wind_direction bearing azimuth", 0, 360, "A direction in degrees."),
    _perhaps("air_pressure pressure", 850, 1100, "An air pressure, if in hPa.", "hPa"),
    # Counts and marks.
    _count(
        "beds bedrooms baths bathrooms children kids siblings sibs household_size family_size "
        "fsize dependents cylinders gears doors",
        *(0, 20, "A small number of things."),
        sure=True,
    ),
    _count("rooms floors visits", 0, 50, "A number of things."),
    _count(
        "^count_* ^number_* ^num_* ^no_* ^n_* count counts cnt *_number",
        *(0, 100, f"A count: how far it goes, {_YOU}."),
    ),
    _perhaps("gpa", 0, 4, "A grade point average, if 4 is the best."),
    _perhaps("rating stars satisfaction", 0, 10, "A rating, if not above 10."),
    _perhaps("mpg", 0, 150, "Miles per gallon."),
    _perhaps("horsepower hp", 0, 1000, "A horsepower."),
    _open("hourly_rate daily_rate weekly_rate monthly_rate", f"How much is possible, {_YOU}."),
    _perhaps(
        "ratio ratio_* rate rate_*", 0, 100, "0 to 1 if it is a part of 1, 0 to 100 in percent."
    ),
    _open("score score_*", f"A score: its smallest and largest mark {_YOU}."),
    # What only the owner of the table knows.
    NameRule(
        "income salary wage wages earnings pay price cost costs charge charges fee fees rent "
        "revenue sales amount budget debt loan asset assets savings expense expenses expenditure "
        "spending balance premium tuition tax taxes profit turnover *_per_year *_per_month",
        *("number", f"An amount of money: how much is possible, {_YOU}."),
        sure=False,
    ),
    NameRule(
        "sex gender",
        *("category", f"A category: female and male, f and m, or 1 and 2, {_YOU}."),
        sure=False,
    ),
    NameRule(
        "race ethnicity region state country city county district language occupation job industry "
        "department category type class group level status brand make model color colour "
        "diagnosis treatment arm plan grade marital education religion origin method contract "
        "division league code",
        *("category", f"A category: which words or codes may occur, {_YOU}."),
        sure=False,
    ),
)
"""The first rule that fits decides, so narrow ones stand before wide ones."""
