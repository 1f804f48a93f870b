"""What is written out, against how people read it."""

import datetime as dt

import pytest

from softsearch.data.corpora.speller import Language, Speller

DAY = dt.date(1984, 3, 21)
EVENING = dt.time(19, 45)


@pytest.fixture(scope="module")
def english() -> Speller:
    return Speller("en")


@pytest.fixture(scope="module")
def german() -> Speller:
    return Speller("de")


def test_numbers(english: Speller, german: Speller) -> None:
    assert english.cardinal(1984) == "one thousand nine hundred and eighty-four"
    assert german.cardinal(4321) == "viertausenddreihunderteinundzwanzig"
    assert (english.ordinal(21), german.ordinal(21)) == ("twenty-first", "einundzwanzigste")


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "wednesday march the twenty-first nineteen eighty-four"),
        ("de", "mittwoch der einundzwanzigste märz neunzehnhundertvierundachtzig"),
        ("fr", "mercredi vingt et un mars mille neuf cent quatre-vingt-quatre"),
        ("es", "miércoles veintiuno de marzo de mil novecientos ochenta y cuatro"),
    ],
)
def test_date(lang: Language, expected: str) -> None:
    assert Speller(lang).date(DAY) == expected


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "wednesday at seven forty-five in the evening"),
        ("de", "mittwoch um sieben uhr fünfundvierzig abends"),
        ("fr", "mercredi à sept heures quarante-cinq du soir"),
        ("es", "miércoles a las siete cuarenta y cinco de la tarde"),
    ],
)
def test_time(lang: Language, expected: str) -> None:
    speller = Speller(lang)
    assert speller.at_time(speller.weekday(DAY), EVENING) == expected


def test_full_hours_name_no_minutes(english: Speller, german: Speller) -> None:
    assert english.at_time("today", dt.time(0)) == "today at twelve midnight"
    assert german.at_time("heute", dt.time(12)) == "heute um zwölf uhr mittags"


def test_relative(english: Speller, german: Speller) -> None:
    assert english.relative(-3, "day") == "three days ago"
    assert german.relative(-3, "day") == "vor drei tagen"
    assert english.relative(90, "minute") == "in ninety minutes"
    assert german.relative(60, "year") == "in sechzig jahren"


def test_money_and_measures(english: Speller, german: Speller) -> None:
    assert english.amount(12, 5, "USD") == "twelve dollars five cents"
    assert german.amount(12, 53, "EUR") == "zwölf euro und dreiundfünfzig cent"
    assert english.quantity(12_345, "CHF") == "twelve thousand three hundred and forty-five swiss francs"
    assert german.quantity(20, "%") == "zwanzig prozent"
    assert english.joined([english.quantity(2, "km"), english.quantity(3, "l")]) == "two kilometers and three liters"
    assert german.joined(["eins", "zwei"], "or") == "eins oder zwei"
